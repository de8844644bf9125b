// Attention of the rows of a pass over what the pages hold.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "server/model/kv_pages.h"
#include "server/model/pass_rows.h"

namespace aerie {

// `queries` [chosen rows, heads, key_dim]; the keys and values of all rows of the pass have been
// written. `scale` is that of the scores. Returns [chosen rows, heads x value_dim], float32.
at::Tensor Attend(const at::Tensor& queries, const PassRows& rows, const RowChoice& choice,
                  const KvPages& kv, int32_t layer, double scale);

}  // namespace aerie
