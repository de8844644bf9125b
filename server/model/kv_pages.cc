#include "server/model/kv_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/float16.h"

namespace aerie {
namespace {

// Fewer would hardly hold one sequence with its drafts.
constexpr int64_t kLeastPages = 16;

}  // namespace

absl::StatusOr<KvPages> KvPages::Reserve(const KvShape& shape, int64_t memory_bytes,
                                         int32_t page_rows) {
  KvStore store;
  store.page_rows = page_rows;
  store.page_bytes = shape.layers * page_rows * shape.row_bytes();
  const int64_t pages = memory_bytes / store.page_bytes;
  if (pages < kLeastPages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--kv-memory is ", memory_bytes, " bytes, which hold ", pages, " pages of ", page_rows,
        " rows (--kv-page-rows) at ", store.page_bytes, " bytes a page; expected at least ",
        kLeastPages, " pages; set --kv-memory to ", kLeastPages * store.page_bytes,
        " or more, or lower --kv-page-rows"));
  }
  store.num_pages =
      static_cast<int32_t>(std::min<int64_t>(pages, std::numeric_limits<PageId>::max()));
  const int64_t bytes = store.num_pages * store.page_bytes;
  // Without a reserve of swap space: most of it may never be written.
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the system gives no ", bytes,
                     " bytes for draft KV; expected as many as --kv-memory says; lower it"));
  }
  // Only a wish. Rows of eight long sequences lie in more small pages of the system than the
  // processor keeps at hand, and each that is looked up costs as much as reading it.
  madvise(memory, bytes, MADV_HUGEPAGE);
  return KvPages(shape, store, static_cast<std::byte*>(memory));
}

KvPages::KvPages(KvPages&& other) noexcept
    : shape_(other.shape_), store_(other.store_), memory_(std::exchange(other.memory_, nullptr)) {}

KvPages& KvPages::operator=(KvPages&& other) noexcept {
  std::swap(shape_, other.shape_);
  std::swap(store_, other.store_);
  std::swap(memory_, other.memory_);
  return *this;
}

KvPages::~KvPages() {
  if (memory_ != nullptr) munmap(memory_, bytes());
}

int64_t KvPages::KeysAt(int64_t layer, int64_t kv_head) const {
  return store_.page_rows *
         (layer * shape_.row_bytes() + kv_head * shape_.key_dim * shape_.element_bytes());
}

int64_t KvPages::ValuesAt(int64_t layer, int64_t kv_head) const {
  return KeysAt(layer, shape_.kv_heads) +
         store_.page_rows * kv_head * shape_.value_dim * shape_.element_bytes();
}

void KvPages::Copy(PageId from, PageId to) {
  AERIE_CHECK(from >= 0 && from < store_.num_pages && to >= 0 && to < store_.num_pages &&
              from != to)
      << "page " << from << " to " << to << " of " << store_.num_pages;
  std::memcpy(memory_ + to * store_.page_bytes, memory_ + from * store_.page_bytes,
              store_.page_bytes);
}

void KvPages::Write(int64_t layer, absl::Span<const PageId> pages, int64_t first_row, int64_t rows,
                    const void* keys, const void* values) {
  const int64_t key_bytes = shape_.key_dim * shape_.element_bytes();
  const int64_t value_bytes = shape_.value_dim * shape_.element_bytes();
  const auto* key = static_cast<const std::byte*>(keys);
  const auto* value = static_cast<const std::byte*>(values);
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    std::byte* const page = memory_ + pages[row / store_.page_rows] * store_.page_bytes;
    const int64_t at = row % store_.page_rows;
    for (int64_t head = 0; head < shape_.kv_heads; ++head) {
      std::memcpy(page + KeysAt(layer, head) + at * key_bytes, key, key_bytes);
      std::memcpy(page + ValuesAt(layer, head) + at * value_bytes, value, value_bytes);
      key += key_bytes;
      value += value_bytes;
    }
  }
}

void KvPages::WriteFloats(int64_t layer, absl::Span<const PageId> pages, int64_t first_row,
                          int64_t rows, const float* keys, const float* values, int64_t stride) {
  const auto write = [this](const float* from, int64_t count, std::byte* to) {
    if (shape_.element == KvElement::kFloat32) {
      std::memcpy(to, from, count * sizeof(float));
    } else {
      auto* const halves = reinterpret_cast<uint16_t*>(to);
      for (int64_t i = 0; i < count; ++i) halves[i] = FloatToBf16(from[i]);
    }
  };
  const int64_t key_bytes = shape_.key_dim * shape_.element_bytes();
  const int64_t value_bytes = shape_.value_dim * shape_.element_bytes();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = first_row + i, at = row % store_.page_rows;
    std::byte* const page = memory_ + pages[row / store_.page_rows] * store_.page_bytes;
    for (int64_t head = 0; head < shape_.kv_heads; ++head) {
      write(keys + i * stride + head * shape_.key_dim, shape_.key_dim,
            page + KeysAt(layer, head) + at * key_bytes);
      write(values + i * stride + head * shape_.value_dim, shape_.value_dim,
            page + ValuesAt(layer, head) + at * value_bytes);
    }
  }
}

PagedRows KvPages::RowsOf(int64_t layer, int64_t kv_head, absl::Span<const PageId> pages) const {
  return {.keys = memory_ + KeysAt(layer, kv_head),
          .values = memory_ + ValuesAt(layer, kv_head),
          .page_bytes = store_.page_bytes,
          .pages = pages.data(),
          .page_rows = store_.page_rows,
          .key_dim = static_cast<int32_t>(shape_.key_dim),
          .value_dim = static_cast<int32_t>(shape_.value_dim),
          .element = shape_.element};
}

}  // namespace aerie
