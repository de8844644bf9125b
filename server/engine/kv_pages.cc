#include "server/engine/kv_pages.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace aerie {

PageTable::PageTable(PageTable&& other) noexcept { *this = std::move(other); }

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  AERIE_CHECK(empty()) << "a page table is overwritten that holds pages";
  pages_ = std::exchange(other.pages_, {});
  spare_ = std::exchange(other.spare_, {});
  held_ = std::exchange(other.held_, 0);
  unseen_ = std::exchange(other.unseen_, 0);
  sink_end_ = std::exchange(other.sink_end_, 0);
  return *this;
}

PageTable::~PageTable() {
  AERIE_CHECK(empty()) << "a page table went away with " << held_ << " pages and " << spare_.size()
                       << " spare ones";
}

KvPages::KvPages(const KvStore& store, CopyPage copy_page)
    : store_(store),
      copy_page_(std::move(copy_page)),
      refs_(static_cast<size_t>(store.num_pages), 0) {
  AERIE_CHECK(store.page_rows >= 1 && store.num_pages >= 1)
      << store.num_pages << " pages of " << store.page_rows << " rows";
  for (PageId page = store.num_pages; page > 0; --page) free_.push_back(page - 1);
}

int64_t KvPages::FreshPagesFor(const PageTable& table, int64_t base, int64_t end,
                               int64_t most) const {
  AERIE_CHECK(0 <= base && base <= end) << base << " .. " << end;
  const auto size = static_cast<int64_t>(table.pages_.size());
  int64_t own = static_cast<int64_t>(table.spare_.size());  // in the end, unless some are missing
  int64_t reusable = own;
  for (int64_t i = 0; i < size; ++i) {
    const PageId page = table.pages_[static_cast<size_t>(i)];
    if (page == kNoPage || IsShared(page)) continue;
    ++own;
    reusable += i >= base / store_.page_rows ? 1 : 0;
  }
  const int64_t written = PagesOf(end) - base / store_.page_rows;
  return std::max<int64_t>(0, std::min(written - reusable, most - own));
}

bool KvPages::Reserve(PageTable* table, int64_t base, int64_t end, int64_t most) {
  const int64_t fresh = FreshPagesFor(*table, base, end, most);
  if (fresh > free_pages()) return false;
  Truncate(table, base);
  table->spare_.insert(table->spare_.end(), free_.end() - fresh, free_.end());
  free_.resize(free_.size() - static_cast<size_t>(fresh));
  return true;
}

void KvPages::MakeWritable(PageTable* table, int64_t from, int64_t end) {
  const auto take_spare = [table] {
    AERIE_CHECK(!table->spare_.empty()) << "a page is written that was not reserved";
    const PageId page = table->spare_.back();
    table->spare_.pop_back();
    return page;
  };
  std::vector<PageId>& pages = table->pages_;
  if (PagesOf(end) > static_cast<int64_t>(pages.size())) {
    pages.resize(static_cast<size_t>(PagesOf(end)), kNoPage);
  }
  for (int64_t i = from / store_.page_rows; i < PagesOf(end); ++i) {
    PageId& page = pages[static_cast<size_t>(i)];
    if (page != kNoPage && !IsShared(page)) continue;
    const PageId fresh = take_spare();
    refs_[static_cast<size_t>(fresh)] = 1;
    if (page == kNoPage) {
      ++table->held_;
    } else {
      // Rows before `from` stay; a page without such rows need not be copied.
      if (i * store_.page_rows < from) copy_page_(page, fresh);
      if (--refs_[static_cast<size_t>(page)] == 1) --shared_;
    }
    page = fresh;
  }
}

void KvPages::Truncate(PageTable* table, int64_t length) {
  const int64_t kept = PagesOf(length);
  for (auto i = static_cast<int64_t>(table->pages_.size()); i > kept; --i) LetGo(table, i - 1);
  if (static_cast<int64_t>(table->pages_.size()) > kept) {
    table->pages_.resize(static_cast<size_t>(kept));
  }
  table->unseen_ = std::min(table->unseen_, kept);
  table->sink_end_ = std::min(table->sink_end_, kept);
}

void KvPages::DropUnseen(PageTable* table, const VisibleRows& visible, int64_t position) {
  if (visible.window == 0) return;
  // Rows above position - window are seen, and the pages that hold a row of the sink.
  const int64_t sink_end = PagesOf(visible.start + visible.sink);
  const int64_t seen_from = std::max<int64_t>(0, position - visible.window + 1) / store_.page_rows;
  const int64_t end = std::min(seen_from, static_cast<int64_t>(table->pages_.size()));
  for (int64_t i = std::max(sink_end, table->unseen_); i < end; ++i) {
    LetGo(table, i);
    table->unseen_ = i + 1;
    table->sink_end_ = sink_end;
  }
}

void KvPages::Trim(PageTable* table) {
  free_.insert(free_.end(), table->spare_.rbegin(), table->spare_.rend());
  table->spare_.clear();
}

void KvPages::Release(PageTable* table) {
  Truncate(table, 0);
  Trim(table);
  AERIE_CHECK(table->empty());
}

PageTable KvPages::Fork(const PageTable& table, int64_t length) {
  const int64_t kept = PagesOf(length);
  AERIE_CHECK(kept <= static_cast<int64_t>(table.pages_.size()) || table.held_ == 0)
      << "a fork of " << length << " rows, of " << table.pages_.size() << " pages";
  PageTable fork;
  for (const PageId page : table.pages_) {
    if (static_cast<int64_t>(fork.pages_.size()) == kept) break;
    fork.pages_.push_back(page);
    if (page == kNoPage) continue;
    ++fork.held_;
    if (++refs_[static_cast<size_t>(page)] == 2) ++shared_;
  }
  fork.unseen_ = std::min(table.unseen_, kept);
  fork.sink_end_ = std::min(table.sink_end_, kept);
  return fork;
}

int64_t KvPages::ResumeFrom(const PageTable& table, const VisibleRows& visible,
                            int64_t base) const {
  const int64_t dropped_from = table.sink_end_ * store_.page_rows;
  const int64_t dropped_to = table.unseen_ * store_.page_rows;
  const bool sees_dropped =
      base > dropped_from && dropped_to > dropped_from && base - visible.window + 1 < dropped_to;
  return sees_dropped ? dropped_from : base;
}

int64_t KvPages::FreeBut(const std::vector<const PageTable*>& kept) const {
  std::vector<bool> held(refs_.size(), false);
  for (const PageTable* table : kept) {
    for (const auto* list : {&table->pages_, &table->spare_}) {
      for (const PageId page : *list) {
        if (page != kNoPage) held[static_cast<size_t>(page)] = true;
      }
    }
  }
  return std::count(held.begin(), held.end(), false);
}

KvUsage KvPages::usage() const {
  return {.pages_total = store_.num_pages,
          .pages_used = store_.num_pages - free_pages(),
          .pages_shared = shared_};
}

void KvPages::LetGo(PageTable* table, int64_t index) {
  PageId& page = table->pages_[static_cast<size_t>(index)];
  if (page == kNoPage) return;
  int32_t& refs = refs_[static_cast<size_t>(page)];
  if (--refs == 0) table->spare_.push_back(page);
  if (refs == 1) --shared_;
  --table->held_;
  page = kNoPage;
}

}  // namespace aerie
