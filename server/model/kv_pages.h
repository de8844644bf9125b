// The store of draft KV: pages of rows, one block of memory for all.
//
// A page holds its rows for all layers, and of each layer and key head the rows lie together, keys
// and values apart: [layer][keys: kv head, page row, key_dim][values: kv head, page row,
// value_dim]. So attention reads without jumps, and a page is copied in one piece. The whole store
// is reserved at once, but costs no memory until it is written: piece by piece of 2 MiB where the
// system has pages of that size, else of 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/draft_model.h"
#include "server/kernels/attention.h"

namespace aerie {

struct KvShape {
  int64_t layers = 1;
  int64_t kv_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  KvElement element = KvElement::kFloat32;

  int64_t element_bytes() const { return element == KvElement::kFloat32 ? 4 : 2; }
  // Of one row in one layer.
  int64_t row_bytes() const { return kv_heads * (key_dim + value_dim) * element_bytes(); }
};

// Engine thread only; attention may read from several threads while nothing is written.
class KvPages {
 public:
  // As many pages of `page_rows` rows as `memory_bytes` hold. INVALID_ARGUMENT, naming the flags,
  // when those are too few to draft with; RESOURCE_EXHAUSTED when the system does not give the
  // address space.
  static absl::StatusOr<KvPages> Reserve(const KvShape& shape, int64_t memory_bytes,
                                         int32_t page_rows);
  KvPages(KvPages&& other) noexcept;
  KvPages& operator=(KvPages&& other) noexcept;
  ~KvPages();

  const KvShape& shape() const { return shape_; }
  const KvStore& store() const { return store_; }

  // from != to.
  void Copy(PageId from, PageId to);
  // Rows first_row .. first_row + rows - 1 of the sequence that `pages` holds. `keys` [rows, kv
  // heads, key_dim] and `values` [rows, kv heads, value_dim] in the store's element.
  void Write(int64_t layer, absl::Span<const PageId> pages, int64_t first_row, int64_t rows,
             const void* keys, const void* values);
  // The same from float32: `keys` and `values` hold a row each `stride` floats; rounded to the
  // store's element.
  void WriteFloats(int64_t layer, absl::Span<const PageId> pages, int64_t first_row, int64_t rows,
                   const float* keys, const float* values, int64_t stride);
  // One key head's rows of that sequence.
  PagedRows RowsOf(int64_t layer, int64_t kv_head, absl::Span<const PageId> pages) const;

 private:
  KvPages(const KvShape& shape, const KvStore& store, std::byte* memory)
      : shape_(shape), store_(store), memory_(memory) {}

  int64_t bytes() const { return store_.num_pages * store_.page_bytes; }
  // From the start of a page to a head's keys, and to its values.
  int64_t KeysAt(int64_t layer, int64_t kv_head) const;
  int64_t ValuesAt(int64_t layer, int64_t kv_head) const;

  KvShape shape_;
  KvStore store_;
  std::byte* memory_ = nullptr;
};

}  // namespace aerie
