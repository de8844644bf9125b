// Queries, keys and values straight from the input: Llama's and Qwen's attention.
#include <utility>

#include "server/model/projections.h"
#include "server/model/rms_norm.h"

namespace aerie {
namespace {

class GroupedProjections final : public Projections {
 public:
  GroupedProjections(WeightLoader& loader, int32_t layer)
      : heads_(loader.spec().num_heads.value),
        kv_heads_(loader.spec().num_kv_heads.value),
        head_dim_(loader.spec().head_dim.value) {
    using R = HeadTensor;
    weight_ = loader.Stack({{R::kQuery, layer}, {R::kKey, layer}, {R::kValue, layer}});
    if (loader.spec().qkv_bias.value) {
      bias_ = loader.Stack({{R::kQueryBias, layer}, {R::kKeyBias, layer}, {R::kValueBias, layer}});
    }
    if (loader.spec().qk_norm.value) {
      const double epsilon = loader.spec().rms_norm_eps.value;
      query_norm_ = RmsNorm(loader.Norm({R::kQueryNorm, layer}), epsilon);
      key_norm_ = RmsNorm(loader.Norm({R::kKeyNorm, layer}), epsilon);
    }
  }

  Projected Project(const at::Tensor& x, const Turns& turns, const RowChoice& choice,
                    const Rotation& rope) const override {
    if (choice.every()) {  // one product instead of two
      const at::Tensor all = Heads(x, 0, heads_ + 2 * kv_heads_);
      at::Tensor turning = all.narrow(1, 0, heads_ + kv_heads_);
      if (query_norm_) {
        turning = at::cat({query_norm_.AsFloat(all.narrow(1, 0, heads_)),
                           key_norm_.AsFloat(all.narrow(1, heads_, kv_heads_))},
                          1);
      }
      const at::Tensor turned = rope.Rotate(turning, turns);
      return {turned.narrow(1, 0, heads_), turned.narrow(1, heads_, kv_heads_),
              all.narrow(1, heads_ + kv_heads_, kv_heads_)};
    }
    const at::Tensor kv = Heads(x, heads_, 2 * kv_heads_);
    Projected projected;
    projected.keys = rope.Rotate(Normed(kv.narrow(1, 0, kv_heads_), key_norm_), turns);
    projected.values = kv.narrow(1, kv_heads_, kv_heads_);
    if (choice.count() > 0) {
      const at::Tensor queries = Normed(Heads(choice.Pick(x), 0, heads_), query_norm_);
      projected.queries = rope.Rotate(queries, choice.Pick(turns));
    }
    return projected;
  }

 private:
  // Heads [first, first + count) of queries, keys and values in a row: [rows, count, head_dim].
  at::Tensor Heads(const at::Tensor& x, int64_t first, int64_t count) const {
    const auto part = [&](const at::Tensor& all) {
      return all.narrow(0, first * head_dim_, count * head_dim_);
    };
    const at::Tensor flat =
        bias_.defined() ? at::linear(x, part(weight_), part(bias_)) : at::linear(x, part(weight_));
    return flat.view({x.size(0), count, head_dim_});
  }

  static at::Tensor Normed(const at::Tensor& heads, const RmsNorm& norm) {
    return norm ? norm.AsFloat(heads) : heads;
  }

  int64_t heads_, kv_heads_, head_dim_;
  at::Tensor weight_;  // queries, keys and values on top of each other
  at::Tensor bias_;    // likewise; undefined without
  RmsNorm query_norm_, key_norm_;
};

}  // namespace

std::unique_ptr<Projections> LoadGroupedProjections(WeightLoader& loader, int32_t layer) {
  return std::make_unique<GroupedProjections>(loader, layer);
}

std::unique_ptr<Projections> LoadProjections(WeightLoader& loader, int32_t layer) {
  return loader.spec().attention.value == AttentionKind::kLatent
             ? LoadLatentProjections(loader, layer)
             : LoadGroupedProjections(loader, layer);
}

}  // namespace aerie
