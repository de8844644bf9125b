#include "tests/server/model/net_models.h"

#include <utility>

#include "gtest/gtest.h"
#include "server/checkpoint/fc_digest.h"
#include "server/model/packed_net.h"
#include "tests/testing/status_matchers.h"

namespace aerie {

std::unique_ptr<Eagle3Model> ModelOf(const Checkpoint& checkpoint, std::unique_ptr<HeadNet> net) {
  DrafterSpec spec;
  spec.wiring = checkpoint.spec.wiring.value;
  spec.target_hidden_size = checkpoint.target.hidden_size;
  spec.vocab_size = checkpoint.target.vocab_size;
  spec.draft_vocab_size = checkpoint.spec.draft_vocab_size.value;
  spec.hidden_size = checkpoint.spec.hidden_size.value;
  spec.fc_digest = FcDigest(checkpoint);
  auto kv = KvPages::Reserve(net->kv_shape(), int64_t{2} << 20, 4);
  EXPECT_THAT(kv, IsOk());
  return std::make_unique<Eagle3Model>(std::move(spec), std::move(net), *std::move(kv));
}

std::unique_ptr<Eagle3Model> OnKernels(const Checkpoint& checkpoint, WeightElement element,
                                       int32_t threads) {
  auto net = PackedNet::Load(checkpoint, element);
  EXPECT_THAT(net, IsOk());
  (*net)->StartThreads(threads);
  return ModelOf(checkpoint, *std::move(net));
}

std::vector<HeadKind> GroupedKinds() {
  std::vector<HeadKind> kinds = HeadKinds();
  std::erase_if(kinds, [](const HeadKind& kind) { return kind.name == "Latent"; });
  kinds.push_back({"Plain", [](TinyHead&) {}});
  kinds.push_back(
      {"Biased", [](TinyHead& head) {
         const std::string at = "midlayer.self_attn.";
         head.tensors.push_back({at + "q_proj.bias", "F32", {24}, BytesOf(Noise(24, 80))});
         head.tensors.push_back({at + "k_proj.bias", "F32", {12}, BytesOf(Noise(12, 81))});
         head.tensors.push_back({at + "v_proj.bias", "F32", {12}, BytesOf(Noise(12, 82))});
         head.tensors.push_back({at + "o_proj.bias", "F32", {12}, BytesOf(Noise(12, 83))});
         head.Set("attention_bias", "true");
       }});
  kinds.push_back(
      {"NormedResidual", [](TinyHead& head) { head.Set("norm_before_residual", "true"); }});
  kinds.push_back({"NormedOutput", [](TinyHead& head) { head.Set("norm_output", "true"); }});
  return kinds;
}

Checkpoint LoadKind(const HeadKind& kind, const TemporaryFolder& folder) {
  TinyHead head;
  kind.change(head);
  head.Write(folder);
  auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  EXPECT_THAT(checkpoint, IsOk());
  return *std::move(checkpoint);
}

std::vector<Scores> ScoresOf(DraftModel& model, const RecordedSequence& rows) {
  Tapped tap(model);
  OpenedSlot slot(model);
  StepSequence part = slot.ExtendRows(rows, 9, Outputs::kLast);
  EXPECT_THAT(model.Step({&part, 1}, 1), IsOk());
  slot.Took(9);
  part = slot.ExtendRows(rows, 14, Outputs::kEvery);
  EXPECT_THAT(model.Step({&part, 1}, 1), IsOk());
  slot.Took(14);
  part = slot.DraftRows({3, 7, 1}, {-1, -1, -1});
  EXPECT_THAT(model.Step({&part, 1}, 1), IsOk());
  part = slot.DraftRows({9, 2}, {2, 0});
  EXPECT_THAT(model.Step({&part, 1}, 1), IsOk());
  std::vector<Scores> scores = tap.Take();
  EXPECT_EQ(scores.size(), 1u + 14 + 3 + 2);
  return scores;
}

}  // namespace aerie
