// Made-up sequences for tests: manifests, hidden rows and draft calls that fit FakeDraftModel.
//
// A row's bytes depend on its position and on a *variant*, a number that stands for the history a
// target had when it computed the row. Same position and variant: same bytes; anything else: other
// bytes in every capture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/draft_tree.h"
#include "common/hidden_rows.h"
#include "common/manifest.h"
#include "server/engine/draft_engine.h"
#include "tests/testing/fake_draft_model.h"

namespace aerie {

// What a worker says whose target fits `spec`.
Manifest FittingManifest(const DrafterSpec& spec = FakeSpec(), DType dtype = DType::kF32);

// Rows with the bytes they view.
struct OwnedRows {
  std::shared_ptr<const std::string> bytes;
  HiddenRows view;
};

// Finite values; rows first, first + 1, ... of one variant.
OwnedRows MakeRows(const Manifest& manifest, int64_t first, int64_t count, uint64_t variant = 0);
// Row first + i is of variants[i].
OwnedRows MakeRows(const Manifest& manifest, int64_t first, absl::Span<const uint64_t> variants);

// A call with rows from MakeRows, one for each token.
DraftCall MakeDraftCall(std::string session_id, int64_t base_length, std::vector<int32_t> tokens,
                        int32_t k, uint64_t variant = 0,
                        const Manifest& manifest = FittingManifest());

// The most likely chain that a fresh FakeDraftModel drafts for one sequence alone, straight through
// the seam: what every engine above it must answer. rows[i] belongs with tokens[i], from row 0 on.
// For drafts of other kinds: reference_draft.h.
DraftTree DraftAlone(absl::Span<const int32_t> tokens, const HiddenRows& rows, int32_t k);

}  // namespace aerie
