// Models made of a net of one's choice, and what is asked of every kind of net.
//
// The heads and passes are those that PackedNet and CudaNet are both held to: grouped-query
// attention with everything that goes with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/kernels/packed_matrix.h"
#include "server/model/eagle3_pass.h"
#include "tests/server/model/demo_head.h"
#include "tests/server/model/tapped.h"
#include "tests/server/model/variant_heads.h"

namespace aerie {

// With 2 MiB of draft KV in pages of four rows, so that short sequences have several.
std::unique_ptr<Eagle3Model> ModelOf(const Checkpoint& checkpoint, std::unique_ptr<HeadNet> net);
// On PackedNet.
std::unique_ptr<Eagle3Model> OnKernels(const Checkpoint& checkpoint, WeightElement element,
                                       int32_t threads = 1);

// Every kind of head that has grouped-query attention.
std::vector<HeadKind> GroupedKinds();
// The checkpoint, written into `folder`, which outlives it.
Checkpoint LoadKind(const HeadKind& kind, const TemporaryFolder& folder);

// Every score of a prompt in two pieces, all rows of the second wanted, and of a small tree: 20
// rows.
std::vector<Scores> ScoresOf(DraftModel& model, const RecordedSequence& rows);

}  // namespace aerie
