#include "client/loadtest/synthetic_workload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/loadtest/random.h"
#include "common/check.h"

namespace aerie::loadtest {
namespace {

// At least more rows than any round brings, at most a few megabytes: making rows up costs more than
// sending them.
constexpr int64_t kMinPoolRows = 256, kMaxPoolRows = 2048;
// Streams of random numbers apart from those of the sequences, which count from 0.
constexpr uint64_t kPoolStream = ~uint64_t{0} - 1;

// A number between 1/32 and 1 in size, of either sign, in `dtype`. Made from bits: any of them is
// finite.
template <typename Bits>
void AppendNumber(uint64_t random, int mantissa_bits, uint64_t bias, std::string* out) {
  const uint64_t sign = random >> 63;
  const uint64_t exponent = bias - 1 - (random >> 40) % 5;
  const uint64_t mantissa = random & ((uint64_t{1} << mantissa_bits) - 1);
  const auto bits =
      static_cast<Bits>(sign << (8 * sizeof(Bits) - 1) | exponent << mantissa_bits | mantissa);
  out->append(reinterpret_cast<const char*>(&bits), sizeof(bits));
}

std::string MakePool(const SyntheticOptions& options, int64_t rows) {
  Random random(options.seed, kPoolStream);
  const int64_t elements = rows * options.manifest.row_width();
  std::string pool;
  for (int64_t i = 0; i < elements; ++i) {
    switch (options.manifest.dtype) {
      case DType::kBF16:
        AppendNumber<uint16_t>(random.Next(), 7, 127, &pool);
        break;
      case DType::kF16:
        AppendNumber<uint16_t>(random.Next(), 10, 15, &pool);
        break;
      case DType::kF32:
        AppendNumber<uint32_t>(random.Next(), 23, 127, &pool);
        break;
    }
  }
  return pool + pool;
}

class SyntheticSequence : public Sequence {
 public:
  SyntheticSequence(const SyntheticWorkload* workload, int64_t number)
      : workload_(workload),
        random_(workload->options().seed, static_cast<uint64_t>(number)),
        start_(random_.Below(static_cast<int32_t>(workload->pool_rows()))) {}

  RowBatch Prompt() override {
    for (int64_t i = 0; i < workload_->options().prompt_rows; ++i) tokens_.push_back(AnyToken());
    return Rows(0, static_cast<int64_t>(tokens_.size()));
  }

  Verdict Verify(const DraftTree& draft) override {
    const auto first = static_cast<int64_t>(tokens_.size());
    const TreeLinks links = draft.Links();
    Verdict verdict;
    verdict.accepted = workload_->options().accept.Draw(round_++, FirstChildDepth(links), random_);
    // Along the first children, which is all there is of a chain.
    int32_t child = links.first_child[0];
    for (int32_t kept = 0; kept < verdict.accepted; ++kept) {
      tokens_.push_back(draft.tokens[static_cast<size_t>(child) - 1]);
      child = links.first_child[static_cast<size_t>(child)];
    }
    tokens_.push_back(TokenOtherThan(draft, links, child));
    verdict.committed = Rows(first, static_cast<int64_t>(tokens_.size()));
    return verdict;
  }

  RowBatch Rows(int64_t first, int64_t last) override {
    const auto tokens = absl::MakeConstSpan(tokens_).subspan(static_cast<size_t>(first),
                                                             static_cast<size_t>(last - first));
    const int64_t pool_rows = workload_->pool_rows();
    const int64_t at = (start_ + first) % pool_rows;
    if (last - first <= pool_rows) return {tokens, workload_->Pool(at, last - first)};
    // A long prompt, or the replay of a long session: more rows than lie in one piece.
    copy_.clear();
    for (int64_t row = first; row < last; ++row) {
      copy_.append(workload_->Pool((start_ + row) % pool_rows, 1).bytes());
    }
    auto rows = HiddenRows::Create(workload_->manifest().dtype, last - first,
                                   workload_->manifest().row_width(), copy_);
    AERIE_CHECK(rows.ok()) << rows.status();
    return {tokens, *rows};
  }

 private:
  // Tokens of the path that takes the first child at every node.
  static int32_t FirstChildDepth(const TreeLinks& links) {
    int32_t depth = 0;
    for (int32_t at = links.first_child[0]; at != -1; ++depth) {
      at = links.first_child[static_cast<size_t>(at)];
    }
    return depth;
  }
  // The target's own token behind a rejection is by definition none of those that were proposed
  // there: `child` and its siblings.
  int32_t TokenOtherThan(const DraftTree& draft, const TreeLinks& links, int32_t child) {
    int32_t token = AnyToken();
    const auto proposed = [&](int32_t wanted) {
      for (int32_t at = child; at != -1; at = links.next_sibling[static_cast<size_t>(at)]) {
        if (draft.tokens[static_cast<size_t>(at) - 1] == wanted) return true;
      }
      return false;
    };
    const int32_t vocab_size = workload_->manifest().vocab_size;
    for (int32_t tried = 0; tried < vocab_size && proposed(token); ++tried) {
      token = (token + 1) % vocab_size;
    }
    return token;
  }
  int32_t AnyToken() { return random_.Below(workload_->manifest().vocab_size); }

  const SyntheticWorkload* const workload_;
  Random random_;
  const int64_t start_;  // where in the pool row 0 is
  int64_t round_ = 0;
  std::vector<int32_t> tokens_;
  std::string copy_;
};

}  // namespace

SyntheticWorkload::SyntheticWorkload(SyntheticOptions options)
    : options_(std::move(options)),
      pool_rows_(std::clamp(options_.prompt_rows, kMinPoolRows, kMaxPoolRows)),
      pool_(MakePool(options_, pool_rows_)) {
  AERIE_CHECK(options_.prompt_rows >= 1) << "options not validated";
}

std::unique_ptr<Sequence> SyntheticWorkload::NewSequence(int64_t number) const {
  return std::make_unique<SyntheticSequence>(this, number);
}

HiddenRows SyntheticWorkload::Pool(int64_t first, int64_t count) const {
  const int64_t row_bytes =
      options_.manifest.row_width() * static_cast<int64_t>(DTypeSize(options_.manifest.dtype));
  auto rows =
      HiddenRows::Create(options_.manifest.dtype, count, options_.manifest.row_width(),
                         std::string_view(pool_).substr(static_cast<size_t>(first * row_bytes),
                                                        static_cast<size_t>(count * row_bytes)));
  AERIE_CHECK(rows.ok()) << rows.status();
  return *rows;
}

}  // namespace aerie::loadtest
