#include "tests/benchmarks/wire_server.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "server/engine/draft_engine.h"
#include "server/engine/round_observer.h"
#include "server/transport/draft_service.h"
#include "server/transport/grpc_server.h"
#include "server/transport/server_info.h"

namespace aerie {
namespace {

constexpr int64_t kMessageBytes = 64 << 20;

// The same tokens for every row, whatever it holds.
class NullModel final : public DraftModel {
 public:
  explicit NullModel(DrafterSpec spec) : spec_(std::move(spec)) {}

  const DrafterSpec& spec() const override { return spec_; }
  const KvStore& kv_store() const override { return kv_store_; }
  bool runs_on_any_thread() const override { return true; }
  void CopyPage(PageId, PageId) override {}
  void ReleaseSlot(SlotId) override {}
  absl::StatusOr<std::vector<StepOutput>> Step(absl::Span<const StepSequence> batch,
                                               int32_t top_k) override {
    RowOutput row;
    for (int32_t i = 0; i < top_k; ++i) row.top.push_back({i, -1.0f - static_cast<float>(i)});
    std::vector<StepOutput> outputs(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      const size_t wanted = batch[i].outputs == Outputs::kEvery  ? batch[i].tokens.size()
                            : batch[i].outputs == Outputs::kLast ? 1
                                                                 : 0;
      outputs[i].rows.assign(wanted, row);
    }
    return outputs;
  }

 private:
  const DrafterSpec spec_;
  const KvStore kv_store_ = {.page_rows = 16, .num_pages = 4096, .page_bytes = 1};
};

class SilentObserver final : public RoundObserver {
 public:
  void OnRound(const RoundRecord&) override {}
  void OnPass(const PassRecord&) override {}
  void OnSessionOpened() override {}
  void OnSessionEnded(const SessionRecord&) override {}
  void OnRejected(RejectReason) override {}
  void OnReplyEncoded(absl::Duration) override {}
  void OnLoad(int32_t, int32_t) override {}
  void OnKvUsage(const KvUsage&) override {}
  void OnEvicted(int64_t) override {}
};

absl::StatusOr<DrafterSpec> NullSpec(int32_t hidden_size) {
  DrafterSpec spec;
  spec.name = "null";
  spec.version = "0";
  spec.target_num_layers = 30;
  AERIE_ASSIGN_OR_RETURN(spec.wiring,
                         Wiring::FromLayerIds({2, 15, 27}, LayerIdConvention::kInputOfLayer, 30));
  spec.target_hidden_size = spec.hidden_size = hidden_size;
  spec.vocab_size = spec.draft_vocab_size = 32000;
  spec.fc_digest = std::string(64, '0');  // nobody computes it: rows only have its width
  return spec;
}

}  // namespace

absl::Status ServeWire(const WireServerOptions& options) {
  AERIE_ASSIGN_OR_RETURN(DrafterSpec spec, NullSpec(options.hidden_size));
  SharedMemoryBook shared_memory({.enabled = true}, kMessageBytes);
  DrafterDirectory drafters;
  const EngineOptions engine_options;
  auto model = std::make_unique<NullModel>(spec);
  const v1::Limits limits =
      DescribeLimits(engine_options, model->kv_store(), {.max_message_bytes = kMessageBytes});
  SilentObserver observer;
  DraftEngine engine(engine_options, std::move(model), &observer);
  auto served = std::make_shared<ServedDrafter>();
  served->name = spec.name;
  served->engine = &engine;
  served->info = DescribeDrafter(spec);
  served->limits = limits;
  drafters.Serve(std::move(served));

  DraftServiceImpl service(ServiceLimits{.max_message_bytes = kMessageBytes});
  GrpcServerOptions grpc;
  grpc.listen = {"127.0.0.1:0", absl::StrCat("unix:", options.address_file, ".sock")};
  AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                         GrpcServer::Start(grpc, &service));
  service.Serve({.drafters = &drafters,
                 .info = BuildServerInfo({"benchmark", "", "", ""}, {}, GuardMode::kOff),
                 .shared_memory = &shared_memory});
  server->SetServing(true);
  std::ofstream(options.address_file) << absl::StrJoin(server->addresses(), ",") << "\n";
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return absl::OkStatus();
}

}  // namespace aerie
