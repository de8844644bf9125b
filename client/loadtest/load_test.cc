#include "client/loadtest/load_test.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "aerie/v1/draft.pb.h"
#include "client/draft_client.h"
#include "client/loadtest/fault_injector.h"
#include "client/loadtest/page_reader.h"
#include "client/loadtest/recorded_workload.h"
#include "client/loadtest/runner.h"
#include "client/loadtest/synthetic_workload.h"
#include "common/rpc/codec.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

absl::StatusOr<DType> ChooseDType(const LoadOptions& options,
                                  const v1::GetServerInfoResponse& server) {
  std::vector<DType> accepted;
  for (const int dtype : server.dtypes()) {
    // A newer server may know types that this program does not.
    const auto known = rpc::DecodeDType(static_cast<v1::DataType>(dtype), "dtypes");
    if (known.ok()) accepted.push_back(*known);
  }
  const DType wanted = options.dtype.value_or(DType::kBF16);
  if (std::find(accepted.begin(), accepted.end(), wanted) != accepted.end()) return wanted;
  if (!options.dtype.has_value() && !accepted.empty()) return accepted.front();
  return absl::InvalidArgumentError(absl::StrCat("--dtype is ", DTypeName(wanted),
                                                 ", which the server does not take; leave it out"));
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const LoadOptions& options,
                                                       const v1::GetServerInfoResponse& server) {
  if (server.drafters().empty()) {
    return absl::FailedPreconditionError(
        "the server holds no drafter; a load test needs one; load it first");
  }
  const v1::DrafterInfo& drafter = server.drafters(0);
  const auto vocab_size = static_cast<int32_t>(drafter.vocab_size());
  if (!options.recording.empty()) return RecordedWorkload::Load(options.recording, vocab_size);
  SyntheticOptions synthetic;
  synthetic.manifest.target_id = "aerie-load";
  synthetic.manifest.num_layers = static_cast<int32_t>(drafter.target_num_layers());
  synthetic.manifest.hidden_size = static_cast<int32_t>(drafter.target_hidden_size());
  synthetic.manifest.vocab_size = vocab_size;
  AERIE_ASSIGN_OR_RETURN(synthetic.manifest.wiring,
                         rpc::DecodeWiring(drafter.captures(), synthetic.manifest.num_layers));
  AERIE_ASSIGN_OR_RETURN(synthetic.manifest.dtype, ChooseDType(options, server));
  synthetic.manifest.fp8 = options.fp8;
  if (options.fused) {
    if (drafter.fc_digest().empty()) {
      return absl::InvalidArgumentError(
          "--fused is given, but the server's drafter takes no fused rows; leave it out");
    }
    synthetic.manifest.fused_width = static_cast<int32_t>(drafter.hidden_size());
    synthetic.manifest.fc_digest = drafter.fc_digest();
  }
  synthetic.prompt_rows = options.prompt_rows;
  synthetic.accept = options.accept;
  synthetic.seed = options.seed;
  return std::make_unique<SyntheticWorkload>(std::move(synthetic));
}

ServerFacts FactsOf(const v1::GetServerInfoResponse& server) {
  ServerFacts facts;
  facts.version = server.build().version();
  facts.revision = server.build().revision();
  if (server.drafters_size() > 0) {
    facts.drafter = server.drafters(0).name();
    facts.drafter_version = server.drafters(0).version();
  }
  const v1::Limits& limits = server.limits();
  facts.max_k = limits.max_k();
  facts.max_rows_per_call = limits.max_rows_per_call();
  facts.max_message_bytes = static_cast<int64_t>(limits.max_message_bytes());
  facts.max_sessions = limits.max_sessions();
  facts.max_context = limits.max_context();
  return facts;
}

}  // namespace

LoadTest::LoadTest() = default;
LoadTest::~LoadTest() = default;

absl::StatusOr<std::unique_ptr<LoadTest>> LoadTest::Prepare(LoadOptions options, Clock* clock) {
  AERIE_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<LoadTest> test(new LoadTest());
  AERIE_ASSIGN_OR_RETURN(options.secrets, rpc::ReadChannelFiles(options.files));
  test->options_ = std::move(options);
  const LoadOptions& o = test->options_;
  ClientOptions client_options;
  client_options.secrets = o.secrets;
  client_options.transport = o.transport;
  if (o.shared_memory) client_options.rows = RowTravel::kSharedMemory;
  client_options.deadline = o.deadline;
  std::vector<DraftClient*> clients;
  for (int32_t i = 0; i < o.connections; ++i) {
    AERIE_ASSIGN_OR_RETURN(auto client, DraftClient::Create(o.address, client_options));
    clients.push_back(client.get());
    test->clients_.push_back(std::move(client));
  }
  AERIE_ASSIGN_OR_RETURN(const auto server, clients.front()->ServerInfo());
  test->server_ = FactsOf(*server);
  if (o.TokensPerRound() > test->server_.max_k) {
    return absl::InvalidArgumentError(absl::StrCat(
        o.tree.has_value() ? "--tree asks for " : "--k is ", o.TokensPerRound(),
        ", but the server drafts at most ", test->server_.max_k, " tokens; give less"));
  }
  AERIE_ASSIGN_OR_RETURN(test->workload_, MakeWorkload(o, *server));
  if (!o.metrics.empty()) {
    AERIE_ASSIGN_OR_RETURN(test->page_, PageReader::Create(o));
    AERIE_RETURN_IF_ERROR(test->page_->Read().status());
  }
  if (o.faults.Any()) {
    test->faults_ = std::make_unique<FaultInjector>(o, test->workload_.get());
  }
  test->runner_ = std::make_unique<Runner>(o, std::move(clients), test->workload_.get(),
                                           test->faults_.get(), clock);
  return test;
}

Report LoadTest::Run(const std::function<void(const Interval&)>& live) {
  Report report;
  report.options = options_;
  report.server = server_;
  report.manifest = workload_->manifest();
  absl::StatusOr<MetricsPage> before = absl::UnknownError("not asked for");
  if (page_ != nullptr) before = page_->Read();
  report.result = runner_->Run(live);
  if (page_ == nullptr) return report;
  const absl::StatusOr<MetricsPage> after = page_->Read();
  absl::StatusOr<Reconciliation> reconciled =
      !before.ok()  ? absl::StatusOr<Reconciliation>(before.status())
      : !after.ok() ? absl::StatusOr<Reconciliation>(after.status())
                    : Reconcile(*before, *after, report.result.whole, options_.TokensPerRound());
  if (reconciled.ok()) {
    report.reconciliation = *std::move(reconciled);
  } else {
    report.reconciliation_error = std::string(reconciled.status().message());
  }
  return report;
}

void LoadTest::Stop() { runner_->Stop(); }

}  // namespace aerie::loadtest
