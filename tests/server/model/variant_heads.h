// Small random heads of other kinds than the demo's, and rows for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/draft_model.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/server/model/demo_head.h"

namespace aerie {

struct HeadKind {
  std::string name;
  std::function<void(TinyHead&)> change;
};

// Three layers; latent attention; norms on queries and keys; dynamic rotation.
std::vector<HeadKind> HeadKinds();
// All but dynamic rotation, by which rows depend on the pass that they come with.
std::vector<HeadKind> SteadyHeadKinds();
HeadKind DynamicHead();

// In float32. Null, and a failed test, when the head is refused.
std::unique_ptr<DraftModel> LoadVariant(const HeadKind& kind, int32_t page_rows = 16);

// Random rows in the form of a recording; `bytes` are its states.
struct NoiseRows {
  NoiseRows(uint32_t seed, int64_t count);
  NoiseRows(const NoiseRows&) = delete;

  std::string bytes;
  RecordedSequence sequence;
};

}  // namespace aerie
