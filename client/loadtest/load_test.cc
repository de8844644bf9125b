#include "client/loadtest/load_test.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/loadtest/recorded_workload.h"
#include "client/loadtest/synthetic_workload.h"
#include "common/rpc/codec.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

absl::StatusOr<DType> ChooseDType(const LoadOptions& options,
                                  const v1::GetServerInfoResponse& server) {
  std::vector<DType> accepted;
  for (const int dtype : server.dtypes()) {
    AERIE_ASSIGN_OR_RETURN(accepted.emplace_back(),
                           rpc::DecodeDType(static_cast<v1::DataType>(dtype), "dtypes"));
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
  synthetic.prompt_rows = options.prompt_rows;
  synthetic.accept = options.accept;
  synthetic.seed = options.seed;
  return std::make_unique<SyntheticWorkload>(std::move(synthetic));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadTest>> LoadTest::Prepare(LoadOptions options) {
  AERIE_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<LoadTest> test(new LoadTest());
  test->options_ = std::move(options);
  ClientOptions client_options;
  client_options.transport = test->options_.transport;
  client_options.deadline = test->options_.deadline;
  AERIE_ASSIGN_OR_RETURN(test->client_,
                         DraftClient::Create(test->options_.address, client_options));
  AERIE_ASSIGN_OR_RETURN(const auto server, test->client_->ServerInfo());
  test->server_ = *server;
  if (test->options_.TokensPerRound() > static_cast<int32_t>(server->limits().max_k())) {
    return absl::InvalidArgumentError(
        absl::StrCat(test->options_.tree.has_value() ? "--tree asks for " : "--k is ",
                     test->options_.TokensPerRound(), ", but the server drafts at most ",
                     server->limits().max_k(), " tokens; give less"));
  }
  AERIE_ASSIGN_OR_RETURN(test->workload_, MakeWorkload(test->options_, *server));
  test->runner_ =
      std::make_unique<Runner>(test->options_, test->client_.get(), test->workload_.get());
  return test;
}

Report LoadTest::Run(const std::function<void(const LiveSample&)>& live) {
  Report report;
  report.options = options_;
  report.server = server_;
  report.manifest = workload_->manifest();
  report.result = runner_->Run(live);
  return report;
}

}  // namespace aerie::loadtest
