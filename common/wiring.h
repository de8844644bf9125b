// Which of the target's hidden states feed the drafter, and in what order.
//
// A *boundary* is a place between decoder layers: boundary 0 is the embedding output; boundary b is
// the output of layer b-1, which is also the input of layer b. Checkpoints name one place by either
// layer, so an id of 2 may mean boundary 2 or 3. Only FromLayerIds() sees such ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace aerie {

enum class LayerIdConvention {
  kInputOfLayer,   // id i is boundary i
  kOutputOfLayer,  // id i is boundary i + 1
};

// One place where a hidden state is taken.
struct Capture {
  enum class Kind { kBoundary, kFinalNorm };
  Kind kind = Kind::kBoundary;
  int32_t boundary = 0;  // only with kBoundary

  static Capture Boundary(int32_t b) { return {Kind::kBoundary, b}; }
  static Capture FinalNorm() { return {Kind::kFinalNorm, 0}; }
  // "boundary 15", "final norm".
  std::string ToString() const;

  friend bool operator==(const Capture&, const Capture&) = default;
};

// An ordered list of distinct captures. Immutable: threads may share it.
class Wiring {
 public:
  // INVALID_ARGUMENT if `captures` is empty, repeats one, or names a boundary outside
  // 0..num_layers.
  static absl::StatusOr<Wiring> Create(std::vector<Capture> captures, int32_t num_layers);

  // INVALID_ARGUMENT if `ids` is empty, repeats an id, or leaves the target's `num_layers` layers.
  static absl::StatusOr<Wiring> FromLayerIds(absl::Span<const int32_t> ids,
                                             LayerIdConvention convention, int32_t num_layers);

  Wiring() = default;  // of nothing; stands where none is known yet

  // In concatenation order: an aux hidden state is [captures()[0] | captures()[1] | ...].
  const std::vector<Capture>& captures() const { return captures_; }
  int32_t size() const { return static_cast<int32_t>(captures_.size()); }

  // "[2, 15, 27]"; a final norm reads "final_norm".
  std::string ToString() const;

  friend bool operator==(const Wiring&, const Wiring&) = default;

 private:
  explicit Wiring(std::vector<Capture> captures) : captures_(std::move(captures)) {}
  std::vector<Capture> captures_;
};

}  // namespace aerie
