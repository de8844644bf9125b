// An EAGLE-3 head on disk together with what it borrows from its target: read, compared and
// complete, or refused.
//
// A partial load does not exist: LoadCheckpoint() either returns everything the model needs or says
// all that is wrong at once. The tensors are views of mapped files, which the checkpoint keeps
// open; the model copies what it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/safetensors/safetensors.h"
#include "server/checkpoint/head_config.h"
#include "server/checkpoint/head_tensors.h"

namespace aerie {

class WeightsFolder;

struct CheckpointOptions {
  std::string name;  // what the drafter is called; empty: the name of its folder
  // The tensor of the target folder that is the embedding; empty: found by its suffix.
  std::string embedding_key;
  // Read the head as if there were no wiring.json: by programs that measure it anew.
  bool ignore_wiring_file = false;
  HeadConfigOptions head;
};

struct Checkpoint {
  std::string name;
  std::string version;  // 16 hex digits: digest of the head's weight files
  TargetSpec target;
  HeadSpec spec;
  WiringClaim wiring_claim;

  // Every matrix, norm and bias of the head, in the shapes of head_tensors.h; F32, F16 or BF16,
  // matrices also F8_E4M3 or F8_E5M2 with an entry in `scales`. kOutput is always here, borrowed or
  // not.
  TensorMap tensors;
  TensorMap scales;  // see HeadTensors
  std::string output_source;
  // [vocab_size, hidden_size] by target id, from the head if it has one, else from the target.
  TensorSpan embedding;
  std::string embedding_source;
  // Target id of each draft id, strictly increasing; size draft_vocab_size.
  std::vector<int32_t> draft_to_target;

  // The live guard's profile as wiring.json holds it, a JSON object; empty: there is none.
  std::string guard_profile;

  // What is odd but does not stop the load; each in three parts, as errors are.
  std::vector<std::string> warnings;

  // Where every setting and every borrowed tensor came from.
  std::vector<Setting> Settings() const;

  // Own the bytes behind the tensors.
  std::shared_ptr<const WeightsFolder> head_weights;
  std::shared_ptr<const WeightsFolder> target_weights;  // null when nothing was borrowed
};

// `drafter_folder` holds config.json and model.safetensors (or shards with an index);
// `target_folder` the same of the target, of which only config.json and what is borrowed are read.
// NOT_FOUND: a folder or file is missing. INVALID_ARGUMENT: a file is damaged. FAILED_PRECONDITION:
// the files are sound but contradict each other or ask for something that is not done here; the
// message lists every complaint.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& drafter_folder,
                                          const std::string& target_folder,
                                          const CheckpointOptions& options = {});

// As much of a checkpoint as can be told, and all that is wrong with it.
struct Inspection {
  Complaints complaints;
  std::vector<TensorSpan> tensors;  // of the head, as named in its files
  bool resolved = false;            // `checkpoint.spec` holds what is known
  Checkpoint checkpoint;            // complete only when there are no complaints and a target
  absl::Status unreadable;          // a folder or file that cannot be read; OK otherwise
};

// The same steps, but `target_folder` may be empty: what hangs on the target is then left open.
Inspection InspectCheckpoint(const std::string& drafter_folder, const std::string& target_folder,
                             const CheckpointOptions& options);

}  // namespace aerie
