// Proposals <-> aerie.v1.DraftTree.
//
// A message tells more than a DraftTree holds: positions always, mask and links on demand. All of
// that follows from the parents, so a decoder that finds it otherwise has met a broken server.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "aerie/v1/draft.pb.h"
#include "common/draft_tree.h"
#include "common/session_options.h"

namespace aerie::rpc {

// `root_position`: of the last committed token, which is the length of its session in rows.
void EncodeDraftTree(const DraftTree& tree, int64_t root_position, const TreeExtras& extras,
                     v1::DraftTree* out);

// INTERNAL when the tree is not valid, an id is no int32, or positions, mask or links are there and
// say something else than the parents do.
absl::StatusOr<DraftTree> DecodeDraftTree(const v1::DraftTree& tree);

}  // namespace aerie::rpc
