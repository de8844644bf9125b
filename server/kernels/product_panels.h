// A product as the levels' functions take it: plain numbers and pointers, because the files
// product_avx*.cc are compiled for more than every processor has. An inline function of a
// header that others use as well would be compiled there a second time, and the linker keeps one
// of the two for all. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aerie {

enum class PanelElement {
  kFloat32,
  kBFloat16,
  kInt8,
  kRounded,  // kBFloat16, and the inputs are bfloat16 as well
};
enum class PanelFinish { kStore, kAdd, kSwiGlu };

struct PanelProduct {
  PanelElement element;
  PanelFinish finish;
  const std::byte* weights;
  int64_t panel_bytes;
  const float* weight_scales;  // of all channels, or null
  int64_t channels;            // behind kSwiGlu, of what is left
  int64_t inputs;
  int64_t rows;
  const float* x;  // [rows, x_stride]
  int64_t x_stride;
  const int16_t* x_integers;  // [rows, x_integers_stride]
  int64_t x_integers_stride;
  const float* x_scales;  // [rows, blocks]
  int64_t blocks;
  const uint16_t* x_rounded;  // [rows, x_rounded_stride]
  int64_t x_rounded_stride;
  const float* bias;
  float* out;
  int64_t out_stride;
  int64_t first_channel;
};

// Plain loops: the specification of all others.
void MultiplyReference(const PanelProduct& product, int64_t first, int64_t end);
void MultiplyAvx2(const PanelProduct& product, int64_t first, int64_t end);
void MultiplyAvx512(const PanelProduct& product, int64_t first, int64_t end);
void MultiplyAvx512Vnni(const PanelProduct& product, int64_t first, int64_t end);
// The one besides the plain loops that takes kRounded.
void MultiplyAvx512Bf16(const PanelProduct& product, int64_t first, int64_t end);

}  // namespace aerie
