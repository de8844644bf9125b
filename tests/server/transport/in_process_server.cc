#include "tests/server/transport/in_process_server.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/check.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/rpc/tree_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/server_info.h"
#include "tests/testing/reference_draft.h"
#include "tests/testing/sequences.h"

namespace aerie {

void RecordingRpcObserver::OnStarted(const RpcName& name) {
  absl::MutexLock lock(&mutex_);
  Counts& counts = counts_[std::string(name.method)];
  ++counts.started;
  counts.type = name.type;
  counts.service = std::string(name.service);
}

void RecordingRpcObserver::OnMessageReceived(const RpcName& name, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  Counts& counts = counts_[std::string(name.method)];
  ++counts.received;
  counts.received_bytes += bytes;
  counts.most_unanswered = std::max(counts.most_unanswered, counts.received - counts.sent);
}

void RecordingRpcObserver::OnMessageSent(const RpcName& name, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  Counts& counts = counts_[std::string(name.method)];
  ++counts.sent;
  counts.sent_bytes += bytes;
}

void RecordingRpcObserver::OnHandled(const RpcName& name, absl::StatusCode code,
                                     absl::Duration duration) {
  EXPECT_GE(duration, absl::ZeroDuration());
  absl::MutexLock lock(&mutex_);
  counts_[std::string(name.method)].handled.push_back(code);
}

void RecordingRpcObserver::OnAnswered(CallKind call, RpcType via, absl::StatusCode code) {
  absl::MutexLock lock(&mutex_);
  answered_.push_back({call, via, code});
}

void RecordingRpcObserver::OnTraceIgnored() {
  absl::MutexLock lock(&mutex_);
  ++traces_ignored_;
}

std::vector<RecordingRpcObserver::Answered> RecordingRpcObserver::answered() const {
  absl::MutexLock lock(&mutex_);
  return answered_;
}

int RecordingRpcObserver::traces_ignored() const {
  absl::MutexLock lock(&mutex_);
  return traces_ignored_;
}

RecordingRpcObserver::Counts RecordingRpcObserver::Of(const std::string& method) const {
  absl::MutexLock lock(&mutex_);
  const auto found = counts_.find(method);
  return found == counts_.end() ? Counts{} : found->second;
}

void RecordingRpcObserver::WaitForHandled(const std::string& method, size_t count) const {
  absl::MutexLock lock(&mutex_);
  const auto told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = counts_.find(method);
    return found != counts_.end() && found->second.handled.size() >= count;
  };
  mutex_.Await(absl::Condition(&told));
}

InProcessServer::InProcessServer(InProcessOptions options) : service_(options.limits) {
  GrpcServerOptions grpc;
  grpc.listen = {"127.0.0.1:0"};
  grpc.max_message_bytes = options.limits.max_message_bytes;
  auto server = GrpcServer::Start(grpc, &service_);
  AERIE_CHECK(server.ok()) << server.status().ToString();
  server_ = *std::move(server);
  auto model = std::make_unique<FakeDraftModel>(options.model);
  model_ = model.get();
  engine_ = std::make_unique<DraftEngine>(options.engine, std::move(model), &observer_);
  stub_ = v1::DraftService::NewStub(NewChannel());
  if (options.shared_memory.enabled) {
    shared_memory_ =
        std::make_unique<SharedMemoryBook>(options.shared_memory, options.limits.max_message_bytes);
  }
  if (!options.serve) return;
  auto served = std::make_shared<ServedDrafter>();
  served->name = engine_->spec().name;
  served->engine = engine_.get();
  served->round_observer = &observer_;
  served->info = DescribeDrafter(engine_->spec());
  served->limits = DescribeLimits(options.engine, model_->kv_store(), options.limits);
  served->wiring_state = options.wiring_state;
  served->recording = options.recording;
  drafters_.Serve(std::move(served));
  service_.Serve({.drafters = &drafters_,
                  .info = BuildServerInfo({"1.2.3", "abc", "g++", "none"},
                                          {{"max_k", "16", "default"}}, GuardMode::kOff),
                  .rpc_observer = &rpcs_,
                  .shared_memory = shared_memory_.get()});
  server_->SetServing(true);
}

// Calls first, then the engine that they use.
InProcessServer::~InProcessServer() { server_->Shutdown(absl::InfinitePast()); }

int64_t InProcessServer::UsedPages() {
  // The engine's thread takes what it is told one after the other.
  absl::Notification reached;
  engine_->Close("no such session", {}, SessionEnd::kClosed,
                 [&reached](absl::StatusOr<AcceptanceRecord>) { reached.Notify(); });
  reached.WaitForNotification();
  const std::vector<KvUsage> usages = observer_.kv_usages();
  return usages.empty() ? 0 : usages.back().pages_used;
}

std::shared_ptr<grpc::Channel> InProcessServer::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

TestSequence::TestSequence(uint64_t id, DType dtype) : id_(id), dtype_(dtype) {}

TestSequence::TestSequence(uint64_t id, SessionOptions options)
    : id_(id), dtype_(DType::kF32), options_(std::move(options)) {}

TestSequence TestSequence::Forked(int64_t length) const {
  TestSequence out = *this;
  out.options_.start = 0;
  out.options_.fork_of = session_id;
  out.options_.fork_length = length;
  out.tokens_.resize(static_cast<size_t>(length - options_.start));
  out.session_id.clear();
  return out;
}

v1::OpenSessionRequest TestSequence::OpenRequest() const {
  v1::OpenSessionRequest request;
  rpc::EncodeOpening(options_, &request);
  rpc::EncodeManifest(FittingManifest(FakeSpec(), dtype_), request.mutable_manifest());
  return request;
}

v1::DraftRequest TestSequence::NextRequest(int rows, int k) const {
  v1::DraftRequest request;
  request.set_session_id(session_id);
  request.set_base_length(static_cast<uint32_t>(length()));
  rpc::EncodeTokens(TokensFrom(length(), rows), request.mutable_token_ids());
  const OwnedRows owned = MakeRows(FittingManifest(FakeSpec(), dtype_), length(), rows, id_);
  rpc::EncodeHiddenStates(owned.view, request.mutable_hidden_states());
  request.set_k(static_cast<uint32_t>(k));
  return request;
}

void TestSequence::Commit(int rows) {
  for (const int32_t token : TokensFrom(length(), rows)) tokens_.push_back(token);
}

DraftTree TestSequence::Expected(int k) const {
  const auto count = static_cast<int64_t>(tokens_.size());
  const OwnedRows rows = MakeRows(FittingManifest(FakeSpec(), dtype_), options_.start, count, id_);
  Replay replay{.tokens = tokens_, .rows = rows.view, .visible = {.start = options_.start}};
  return ReferenceDraft(replay, options_, k);
}

std::vector<int32_t> TestSequence::TokensFrom(int64_t first, int count) const {
  std::vector<int32_t> tokens;
  for (int64_t i = first; i < first + count; ++i) {
    tokens.push_back(static_cast<int32_t>((static_cast<uint64_t>(i) * 7 + id_ * 31 + 3) % 101));
  }
  return tokens;
}

void OpenUnary(v1::DraftService::Stub& stub, TestSequence* sequence) {
  grpc::ClientContext context;
  v1::OpenSessionResponse response;
  const grpc::Status status = stub.OpenSession(&context, sequence->OpenRequest(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_FALSE(response.session_id().empty());
  sequence->session_id = response.session_id();
}

void ExpectRightDraft(v1::DraftService::Stub& stub, TestSequence* sequence, int rows, int k) {
  grpc::ClientContext context;
  v1::DraftResponse response;
  const grpc::Status status = stub.Draft(&context, sequence->NextRequest(rows, k), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  sequence->Commit(rows);
  EXPECT_EQ(response.length(), sequence->length());
  EXPECT_EQ(rpc::DecodeDraftTree(response.tree()).value(), sequence->Expected(k));
}

std::function<void(absl::Span<const StepSequence>)> Gate::Hook() {
  return [this](absl::Span<const StepSequence>) {
    absl::MutexLock lock(&mutex_);
    ++waiting_;
    mutex_.Await(absl::Condition(&open_));
    --waiting_;
  };
}

void Gate::Close() {
  absl::MutexLock lock(&mutex_);
  open_ = false;
}

void Gate::Open() {
  absl::MutexLock lock(&mutex_);
  open_ = true;
}

void Gate::WaitUntilReached() {
  absl::MutexLock lock(&mutex_);
  const auto reached = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_ > 0 && !open_; };
  mutex_.Await(absl::Condition(&reached));
}

}  // namespace aerie
