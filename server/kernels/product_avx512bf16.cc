// Products with 512-bit vectors. Compiled for AVX-512 F, BW, DQ, VL, VNNI and BF16: see
// product_panels.h before including anything here.
#include "server/kernels/product_panels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VNNI__) && \
    defined(__AVX512BF16__)

#include "server/kernels/product_avx512.h"

namespace aerie {

void MultiplyAvx512Bf16(const PanelProduct& product, int64_t first, int64_t end) {
  MultiplyAll<Avx512>(product, first, end);
}

}  // namespace aerie

#else  // a compiler or a processor without: this level is never picked there

namespace aerie {

void MultiplyAvx512Bf16(const PanelProduct& product, int64_t first, int64_t end) {
  MultiplyReference(product, first, end);
}

}  // namespace aerie

#endif
