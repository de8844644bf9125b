#include "tests/testing/sequences.h"

#include <bit>
#include <utility>

#include "common/check.h"
#include "tests/testing/reference_draft.h"

namespace aerie {
namespace {

void AppendLittleEndian(uint32_t bits, size_t size, std::string* bytes) {
  for (size_t i = 0; i < size; ++i) bytes->push_back(static_cast<char>(bits >> (8 * i)));
}

void AppendElement(DType dtype, uint64_t draw, std::string* bytes) {
  const auto value = static_cast<float>(static_cast<int32_t>(draw % 2000001) - 1000000) / 1e6f;
  switch (dtype) {
    case DType::kF32:
      return AppendLittleEndian(std::bit_cast<uint32_t>(value), 4, bytes);
    case DType::kBF16:
      return AppendLittleEndian(std::bit_cast<uint32_t>(value) >> 16, 2, bytes);
    case DType::kF16: {
      // Any sign and fraction with an exponent of 2^-7 .. 2^-1: finite and normal.
      const auto exponent = static_cast<uint32_t>(8 + (draw >> 40) % 7);
      const auto sign_and_fraction = static_cast<uint32_t>(draw) & 0x83ffu;
      return AppendLittleEndian(sign_and_fraction | (exponent << 10), 2, bytes);
    }
  }
}

void AppendRow(const Manifest& manifest, int64_t position, uint64_t variant, std::string* bytes) {
  uint64_t state =
      static_cast<uint64_t>(position) * 0x9e3779b97f4a7c15ull + variant * 0x2545f491ull;
  for (int64_t column = 0; column < manifest.row_width(); ++column) {
    state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9ull + static_cast<uint64_t>(column) + 1;
    AppendElement(manifest.dtype, state ^ (state >> 32), bytes);
  }
}

}  // namespace

Manifest FittingManifest(const DrafterSpec& spec, DType dtype) {
  Manifest manifest;
  manifest.target_id = "fake-target";
  manifest.num_layers = spec.target_num_layers;
  manifest.hidden_size = spec.target_hidden_size;
  manifest.vocab_size = spec.vocab_size;
  manifest.wiring = spec.wiring;
  manifest.dtype = dtype;
  return manifest;
}

OwnedRows MakeRows(const Manifest& manifest, int64_t first, absl::Span<const uint64_t> variants) {
  auto bytes = std::make_shared<std::string>();
  for (size_t i = 0; i < variants.size(); ++i) {
    AppendRow(manifest, first + static_cast<int64_t>(i), variants[i], bytes.get());
  }
  auto view = HiddenRows::Create(manifest.dtype, static_cast<int64_t>(variants.size()),
                                 manifest.row_width(), *bytes);
  AERIE_CHECK(view.ok()) << view.status().ToString();
  return {std::move(bytes), *view};
}

OwnedRows MakeRows(const Manifest& manifest, int64_t first, int64_t count, uint64_t variant) {
  return MakeRows(manifest, first, std::vector<uint64_t>(static_cast<size_t>(count), variant));
}

DraftCall MakeDraftCall(std::string session_id, int64_t base_length, std::vector<int32_t> tokens,
                        int32_t k, uint64_t variant, const Manifest& manifest) {
  OwnedRows rows = MakeRows(manifest, base_length, static_cast<int64_t>(tokens.size()), variant);
  DraftCall call;
  call.sequence = std::move(session_id);
  call.base_length = base_length;
  call.tokens = std::move(tokens);
  call.rows = rows.view;
  call.rows_owner = std::move(rows.bytes);
  call.k = k;
  return call;
}

DraftTree DraftAlone(absl::Span<const int32_t> tokens, const HiddenRows& rows, int32_t k) {
  return ReferenceDraft({.tokens = tokens, .rows = rows}, SessionOptions(), k);
}

}  // namespace aerie
