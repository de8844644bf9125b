// What FakeDraftModel holds the engine to: the promises of draft_model.h, part by part.
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "tests/testing/fake_draft_model.h"

namespace aerie {
namespace {

// Far above the rounds that any test has under way at once.
constexpr SlotId kMostSlots = 512;

bool Promise(bool kept, const char* promise, SlotId slot) {
  EXPECT_TRUE(kept) << promise << ", slot " << slot;
  return kept;
}

}  // namespace

bool FakeDraftModel::KeepsPromises(absl::Span<const StepSequence> batch, int32_t top_k) const {
  bool fine = Promise(!batch.empty(), "a pass has parts", -1) &&
              Promise(top_k >= 1 && top_k <= options_.spec.draft_vocab_size,
                      "top_k is in 1..draft_vocab_size", -1);
  std::set<SlotId> slots;
  std::map<PageId, SlotId> users;  // of each page, the part that names it; -1: more than one
  for (const StepSequence& part : batch) {
    fine &= Promise(slots.insert(part.slot).second, "slots of a pass are distinct", part.slot);
    std::set<PageId> own;
    for (const PageId page : part.pages) {
      if (page == kNoPage) continue;
      fine &= Promise(0 <= page && page < options_.kv_store.num_pages, "pages exist", part.slot) &&
              Promise(own.insert(page).second, "a table names a page once", part.slot);
      const auto [user, first] = users.emplace(page, part.slot);
      if (!first) user->second = -1;
    }
    if (!fine || !KeepsPromises(part)) return false;
  }
  for (const StepSequence& part : batch) {
    const auto drafts = slots_.find(part.slot);
    const int64_t first =
        part.length + (part.IsExtend() ? 0 : static_cast<int64_t>(drafts->second.drafts.size()));
    const int64_t last = first + static_cast<int64_t>(part.tokens.size()) - 1;
    for (int64_t i = first / options_.kv_store.page_rows; i <= last / options_.kv_store.page_rows;
         ++i) {
      fine &= Promise(users[part.pages[static_cast<size_t>(i)]] == part.slot,
                      "a page that a part writes to is in no other part's table", part.slot);
    }
  }
  return fine;
}

bool FakeDraftModel::KeepsPromises(const StepSequence& part) const {
  const SlotId slot = part.slot;
  const auto rows = static_cast<int64_t>(part.tokens.size());
  const auto found = slots_.find(slot);
  bool fine = Promise(slot >= 0, "slots are not negative", slot) &&
              Promise(slot < kMostSlots, "slots are dense small numbers", slot) &&
              Promise(rows >= 1, "at least one row", slot) &&
              Promise(part.length >= part.visible.start, "rows stand at or behind the start", slot);
  for (const int32_t token : part.tokens) {
    fine &=
        Promise(token >= 0 && token < options_.spec.vocab_size, "ids are in the vocabulary", slot);
  }
  int64_t first = part.length;
  if (part.IsExtend()) {
    const int64_t captures =
        int64_t{options_.spec.target_hidden_size} * options_.spec.wiring.size();
    const int64_t width = part.fused ? options_.spec.hidden_size : captures;
    fine &= Promise(part.aux.rows() == rows, "a hidden state for each token", slot) &&
            Promise(part.aux.width() == width, "rows are as wide as wiring or fc says", slot) &&
            Promise(!part.fused || !options_.spec.fc_digest.empty(), "fused by a known fc", slot) &&
            Promise(part.parents.empty(), "extend rows have no parents", slot);
  } else {
    fine &=
        Promise(found != slots_.end(), "draft rows follow extend rows", slot) &&
        Promise(found->second.length == part.length, "draft rows keep the slot's length", slot) &&
        Promise(static_cast<int64_t>(part.parents.size()) == rows, "a parent for each draft row",
                slot);
    if (!fine) return false;
    const std::vector<State>& drafts = found->second.drafts;
    for (const int32_t parent : part.parents) {
      fine &= Promise(parent >= -1 && parent < static_cast<int32_t>(drafts.size()),
                      "a parent came with an earlier pass", slot);
      if (!fine) return false;
      fine &= Promise(
          parent == -1 ? found->second.root.wanted : drafts[static_cast<size_t>(parent)].wanted,
          "a parent's output was wanted", slot);
    }
    first += static_cast<int64_t>(drafts.size());
  }
  const size_t wanted = part.outputs == Outputs::kNone   ? 0
                        : part.outputs == Outputs::kLast ? 1
                                                         : part.tokens.size();
  fine &= Promise(part.probes.empty() || part.probes.size() == wanted,
                  "a probe for each wanted row, or none", slot);
  const int64_t page_rows = options_.kv_store.page_rows;
  const auto has_page = [&](int64_t row) {
    const auto page = static_cast<size_t>(row / page_rows);
    return page < part.pages.size() && part.pages[page] != kNoPage;
  };
  for (int64_t row = first; row < first + rows; ++row) {
    fine &= Promise(has_page(row), "a written row has a page", slot);
  }
  for (int64_t row = part.visible.start; row < part.length; ++row) {
    if (!part.visible.Sees(part.length, row)) continue;
    fine &= Promise(has_page(row), "a visible row has a page", slot);
  }
  return fine;
}

}  // namespace aerie
