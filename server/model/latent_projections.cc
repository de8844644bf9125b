// DeepSeek's latent attention: keys and values of all heads from one narrow vector a row, and one
// rotated part of the key that all heads share.
//
// Keys and values are kept as they are attended to, one for each head, not as the narrow vector: an
// expansion of every kept row in every pass would cost more than the memory is worth on a CPU.
#include <utility>

#include "server/model/projections.h"
#include "server/model/rms_norm.h"

namespace aerie {
namespace {

class LatentProjections final : public Projections {
 public:
  LatentProjections(WeightLoader& loader, int32_t layer)
      : heads_(loader.spec().num_heads.value),
        kv_lora_(loader.spec().latent.kv_lora_rank.value),
        nope_(loader.spec().latent.qk_nope_head_dim.value),
        rope_(loader.spec().latent.qk_rope_head_dim.value),
        value_dim_(loader.spec().latent.v_head_dim.value) {
    using R = HeadTensor;
    const double epsilon = loader.spec().rms_norm_eps.value;
    if (loader.spec().latent.q_lora_rank.value > 0) {
      query_down_ = loader.Matrix({R::kQueryDown, layer});
      query_norm_ = RmsNorm(loader.Norm({R::kQueryDownNorm, layer}), epsilon);
      query_ = loader.Matrix({R::kQueryUp, layer});
    } else {
      query_ = loader.Matrix({R::kQuery, layer});
    }
    kv_down_ = loader.Matrix({R::kKvDown, layer});
    kv_norm_ = RmsNorm(loader.Norm({R::kKvDownNorm, layer}), epsilon);
    kv_up_ = loader.Matrix({R::kKvUp, layer});
  }

  Projected Project(const at::Tensor& x, const Turns& turns, const RowChoice& choice,
                    const Rotation& rope) const override {
    const at::Tensor narrow = at::linear(x, kv_down_);
    const at::Tensor wide = at::linear(kv_norm_(narrow.narrow(1, 0, kv_lora_)), kv_up_)
                                .view({x.size(0), heads_, nope_ + value_dim_});
    const at::Tensor shared =
        rope.Rotate(narrow.narrow(1, kv_lora_, rope_).unsqueeze(1), turns).to(x.scalar_type());
    Projected projected;
    projected.keys = at::cat({wide.narrow(2, 0, nope_), shared.expand({-1, heads_, -1})}, 2);
    projected.values = wide.narrow(2, nope_, value_dim_);
    if (choice.count() > 0) projected.queries = Queries(choice.Pick(x), choice.Pick(turns), rope);
    return projected;
  }

 private:
  at::Tensor Queries(const at::Tensor& x, const Turns& turns, const Rotation& rope) const {
    const at::Tensor input = query_norm_ ? query_norm_(at::linear(x, query_down_)) : x;
    const at::Tensor all = at::linear(input, query_).view({x.size(0), heads_, nope_ + rope_});
    const at::Tensor turned = rope.Rotate(all.narrow(2, nope_, rope_), turns);
    return at::cat({all.narrow(2, 0, nope_), turned.to(x.scalar_type())}, 2);
  }

  int64_t heads_, kv_lora_, nope_, rope_, value_dim_;
  at::Tensor query_down_, query_;  // the former undefined when queries come straight from the input
  at::Tensor kv_down_, kv_up_;
  RmsNorm query_norm_, kv_norm_;
};

}  // namespace

std::unique_ptr<Projections> LoadLatentProjections(WeightLoader& loader, int32_t layer) {
  return std::make_unique<LatentProjections>(loader, layer);
}

}  // namespace aerie
