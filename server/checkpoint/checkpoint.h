// An EAGLE-3 head on disk together with what it borrows from its target: read, compared and
// complete, or refused.
//
// A partial load does not exist: LoadCheckpoint() either returns everything the model needs or says
// all that is wrong at once. The tensors are views of mapped files, which the checkpoint keeps
// open; the model copies what it needs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/checkpoint/head_config.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/safetensors.h"

namespace aerie {

class WeightsFolder;

struct CheckpointOptions {
  std::string name;  // what the drafter is called; empty: the name of its folder
  std::string
      embedding_key;  // the embedding's tensor in the target folder; empty: found by its suffix
  HeadConfigOptions head;
};

struct Checkpoint {
  std::string name;
  std::string version;  // 16 hex digits: digest of the head's weight files
  TargetSpec target;
  HeadSpec spec;

  // Every matrix and norm of the head, all F32, F16 or BF16, in the shapes of head_tensors.cc.
  std::map<HeadTensor, TensorSpan> tensors;
  // [vocab_size, hidden_size] by target id, from the head if it has one, else from the target.
  TensorSpan embedding;
  std::string embedding_source;
  // Target id of each draft id, strictly increasing; size draft_vocab_size.
  std::vector<int32_t> draft_to_target;

  // Where every setting and every borrowed tensor came from.
  std::vector<Setting> Settings() const;

  // Own the bytes behind the tensors.
  std::shared_ptr<const WeightsFolder> head_weights;
  std::shared_ptr<const WeightsFolder> target_weights;  // null when nothing was borrowed
};

// `drafter_folder` holds config.json and model.safetensors (or shards with an index);
// `target_folder` the same of the target, of which only config.json and the embedding are read.
// NOT_FOUND: a folder or file is missing. INVALID_ARGUMENT: a file is damaged. FAILED_PRECONDITION:
// the files are sound but contradict each other or ask for something that is not done here; the
// message lists every complaint.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& drafter_folder,
                                          const std::string& target_folder,
                                          const CheckpointOptions& options = {});

}  // namespace aerie
