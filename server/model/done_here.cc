#include "server/model/done_here.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace aerie {

absl::Status CheckDoneHere(const Checkpoint& checkpoint) {
  const HeadSpec& spec = checkpoint.spec;
  std::vector<std::string> missing;
  const auto refuse_if = [&](bool asked, const std::string& what, const std::string& source) {
    if (asked) missing.push_back(absl::StrCat(what, " (", source, ")"));
  };
  refuse_if(spec.attention.value != AttentionKind::kGroupedQuery, "latent attention",
            spec.attention.source);
  refuse_if(spec.num_layers.value != 1, absl::StrCat(spec.num_layers.value, " layers"),
            spec.num_layers.source);
  refuse_if(spec.rope.type.value != RopeType::kDefault,
            absl::StrCat("RoPE of type ", RopeTypeName(spec.rope.type.value)),
            spec.rope.type.source);
  refuse_if(spec.rope.dims.value != spec.head_dim.value, "rotation of a part of the head",
            spec.rope.dims.source);
  refuse_if(spec.rope.interleaved.value, "interleaved rotation", spec.rope.interleaved.source);
  refuse_if(spec.qkv_bias.value, "biases of queries, keys and values", spec.qkv_bias.source);
  refuse_if(spec.output_bias.value, "a bias of o_proj", spec.output_bias.source);
  refuse_if(spec.qk_norm.value, "norms of queries and keys", spec.qk_norm.source);
  refuse_if(spec.norm_before_residual.value, "norm_before_residual",
            spec.norm_before_residual.source);
  refuse_if(spec.norm_before_fc.value, "norm_before_fc", spec.norm_before_fc.source);
  refuse_if(spec.fc_norm.value, "fc_norm", spec.fc_norm.source);
  refuse_if(spec.norm_output.value, "norm_output", spec.norm_output.source);
  refuse_if(!spec.use_aux_hidden_state.value, "use_aux_hidden_state = false",
            spec.use_aux_hidden_state.source);
  refuse_if(!checkpoint.scales.empty(), "fp8 weights", spec.quantisation.source);
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "drafter ", checkpoint.name, " asks for ", absl::StrJoin(missing, "; "),
      "; expected a head of one plain Llama layer, which is all that this build computes; serve "
      "another head, or train this one without"));
}

}  // namespace aerie
