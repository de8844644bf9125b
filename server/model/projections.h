// From the input of a layer to its queries, keys and values: the part in which kinds of attention
// differ. What follows, attend.h, is the same for all.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "server/model/pass_rows.h"
#include "server/model/rotation.h"
#include "server/model/weight_loader.h"

namespace aerie {

// Rotated where they are to be, float32 or the compute dtype.
struct Projected {
  at::Tensor queries;  // [chosen rows, heads, head_dim]
  at::Tensor keys;     // [rows, kv_heads, head_dim]
  at::Tensor values;   // [rows, kv_heads, value_dim]
};

// Immutable once loaded.
class Projections {
 public:
  virtual ~Projections() = default;
  // `x` [rows, input width]; `turns` of all rows. Queries of the chosen rows only.
  virtual Projected Project(const at::Tensor& x, const Turns& turns, const RowChoice& choice,
                            const Rotation& rope) const = 0;
};

// Those of layer `layer`, of the kind that the spec names.
std::unique_ptr<Projections> LoadProjections(WeightLoader& loader, int32_t layer);

// Both kinds, each in its file.
std::unique_ptr<Projections> LoadGroupedProjections(WeightLoader& loader, int32_t layer);
std::unique_ptr<Projections> LoadLatentProjections(WeightLoader& loader, int32_t layer);

}  // namespace aerie
