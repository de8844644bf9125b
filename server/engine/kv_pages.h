// The books of the draft KV: which page of the model's store holds which rows of which sequence.
//
// Pages are shared by forks and copied on write: a page that more than one table names is never
// written to. What a table lets go of and no other table names stays with it as *spare* pages until
// Trim(), so a round that reserved its pages at the start never fails for want of one later.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "server/engine/draft_model.h"
#include "server/engine/round_observer.h"

namespace aerie {

// Where the rows of one sequence lie. Belongs to one KvPages, which must get everything back
// (Release) before the table goes away.
class PageTable {
 public:
  PageTable() = default;
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&& other) noexcept;
  ~PageTable();

  // Row r lies in pages()[r / page_rows]; kNoPage: it is not held.
  const std::vector<PageId>& pages() const { return pages_; }
  bool empty() const { return held_ == 0 && spare_.empty(); }

 private:
  friend class KvPages;
  std::vector<PageId> pages_;
  std::vector<PageId> spare_;
  int64_t held_ = 0;      // entries of pages_ that are pages
  int64_t unseen_ = 0;    // entries before it are pages of the sink, or were dropped as unseen
  int64_t sink_end_ = 0;  // of those, entries before it were not dropped
};

// Engine thread only.
class KvPages {
 public:
  using CopyPage = std::function<void(PageId from, PageId to)>;

  KvPages(const KvStore& store, CopyPage copy_page);

  // How many pages Reserve() would take from the free ones.
  int64_t FreshPagesFor(const PageTable& table, int64_t base, int64_t end, int64_t most) const;
  // Truncates to `base` and puts by what writing rows base .. end - 1 takes: a page for each that
  // is missing or shared, but no more than make `most` pages of the table's own. False: not so many
  // are free, and nothing has changed.
  bool Reserve(PageTable* table, int64_t base, int64_t end, int64_t most);
  // Makes rows from .. end - 1 writable, keeping the rows before. Takes spare pages, which
  // Reserve() must have put by.
  void MakeWritable(PageTable* table, int64_t from, int64_t end);
  // Lets go of the pages behind row length - 1.
  void Truncate(PageTable* table, int64_t length);
  // Lets go of the pages of which no row at `position` or later sees a row.
  void DropUnseen(PageTable* table, const VisibleRows& visible, int64_t position);
  // Frees the spare pages.
  void Trim(PageTable* table);
  // Lets go of everything.
  void Release(PageTable* table);

  // A table with the first `length` rows of `table`, in the same pages.
  PageTable Fork(const PageTable& table, int64_t length);

  // The highest row up to `base` whose visible rows are all held, so that rows may be sent again
  // from there: `base`, or less when DropUnseen() was ahead of it.
  int64_t ResumeFrom(const PageTable& table, const VisibleRows& visible, int64_t base) const;

  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  // Pages that would be free if all sequences but those of `kept` were released.
  int64_t FreeBut(const std::vector<const PageTable*>& kept) const;
  int32_t page_rows() const { return store_.page_rows; }
  KvUsage usage() const;

 private:
  int64_t PagesOf(int64_t rows) const {  // that hold rows 0 .. rows - 1
    return (rows + store_.page_rows - 1) / store_.page_rows;
  }
  bool IsShared(PageId page) const { return refs_[static_cast<size_t>(page)] > 1; }
  // Takes the page out of the table; a page that nobody else names becomes a spare one.
  void LetGo(PageTable* table, int64_t index);

  const KvStore store_;
  const CopyPage copy_page_;
  std::vector<PageId> free_;  // a stack: pages used last are used first
  std::vector<int32_t> refs_;
  int64_t shared_ = 0;
};

}  // namespace aerie
