// A real gRPC server in the test's process: DraftServiceImpl over DraftEngine over FakeDraftModel,
// on a free port.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "server/engine/draft_engine.h"
#include "server/transport/draft_service.h"
#include "server/transport/grpc_server.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/recording_observer.h"

namespace aerie {

// Counts what the transport tells.
class RecordingRpcObserver : public RpcObserver {
 public:
  void OnStarted(const RpcName& name) override;
  void OnMessageReceived(const RpcName& name, int64_t bytes) override;
  void OnMessageSent(const RpcName& name, int64_t bytes) override;
  void OnHandled(const RpcName& name, absl::StatusCode code, absl::Duration duration) override;
  void OnAnswered(CallKind call, RpcType via, absl::StatusCode code) override;
  void OnTraceIgnored() override;

  struct Answered {
    CallKind call;
    RpcType via;
    absl::StatusCode code;
    friend bool operator==(const Answered&, const Answered&) = default;
  };
  std::vector<Answered> answered() const;
  int traces_ignored() const;

  struct Counts {
    int started = 0, received = 0, sent = 0;
    int64_t received_bytes = 0, sent_bytes = 0;
    int most_unanswered = 0;  // highest received - sent
    std::vector<absl::StatusCode> handled;
    RpcType type = RpcType::kUnary;
    std::string service;
  };
  Counts Of(const std::string& method) const;
  void WaitForHandled(const std::string& method, size_t count) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, Counts> counts_ ABSL_GUARDED_BY(mutex_);
  std::vector<Answered> answered_ ABSL_GUARDED_BY(mutex_);
  int traces_ignored_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct InProcessOptions {
  EngineOptions engine;
  FakeDraftModelOptions model;
  ServiceLimits limits;
  SharedMemoryOptions shared_memory;
  bool serve = true;  // otherwise: still loading
  // What changes of GetServerInfo; may be empty.
  std::function<WiringState()> wiring_state;
  std::function<bool()> recording;
};

class InProcessServer {
 public:
  explicit InProcessServer(InProcessOptions options = {});
  ~InProcessServer();

  const std::string& address() const { return server_->addresses().front(); }
  std::shared_ptr<grpc::Channel> NewChannel() const;
  v1::DraftService::Stub& stub() { return *stub_; }
  DraftServiceImpl& service() { return service_; }
  GrpcServer& server() { return *server_; }
  DraftEngine& engine() { return *engine_; }
  FakeDraftModel& model() { return *model_; }
  RecordingObserver& observer() { return observer_; }
  RecordingRpcObserver& rpcs() { return rpcs_; }
  SharedMemoryBook& shared_memory() { return *shared_memory_; }  // only where it is allowed
  // Pages of draft KV that sessions hold, once the engine has done what it was told so far.
  int64_t UsedPages();

 private:
  RecordingObserver observer_;
  RecordingRpcObserver rpcs_;
  std::unique_ptr<SharedMemoryBook> shared_memory_;  // null: not allowed
  DraftServiceImpl service_;
  std::unique_ptr<GrpcServer> server_;
  FakeDraftModel* model_ = nullptr;  // the engine's
  std::unique_ptr<DraftEngine> engine_;
  DrafterDirectory drafters_;
  std::unique_ptr<v1::DraftService::Stub> stub_;
};

// A client's side of one sequence: what it has committed, and what the next draft must be.
class TestSequence {
 public:
  // `id` makes rows and tokens differ from those of other sequences.
  explicit TestSequence(uint64_t id, DType dtype = DType::kF32);
  // Of a session that is opened with `options`, which say top_m at temperature > 0.
  TestSequence(uint64_t id, SessionOptions options);
  // A sequence that begins with the first rows of this one, up to row `length`, in a fork of its
  // session. It goes on as this one does.
  TestSequence Forked(int64_t length) const;

  v1::OpenSessionRequest OpenRequest() const;
  // The next `rows` rows, as a call of this session; does not commit them.
  v1::DraftRequest NextRequest(int rows, int k) const;
  // They are committed: Expected() is about them from now on.
  void Commit(int rows);
  // What a server must draft after the committed rows.
  DraftTree Expected(int k) const;
  int64_t length() const { return options_.start + static_cast<int64_t>(tokens_.size()); }
  const SessionOptions& options() const { return options_; }

  std::string session_id;

 private:
  std::vector<int32_t> TokensFrom(int64_t first, int count) const;

  uint64_t id_;
  DType dtype_;
  SessionOptions options_;
  std::vector<int32_t> tokens_;
};

// Unary calls that must succeed.
void OpenUnary(v1::DraftService::Stub& stub, TestSequence* sequence);
// Commits the rows too, and checks the draft.
void ExpectRightDraft(v1::DraftService::Stub& stub, TestSequence* sequence, int rows, int k);

// Blocks passes of a FakeDraftModel until it is opened: before_step = gate.Hook().
class Gate {
 public:
  std::function<void(absl::Span<const StepSequence>)> Hook();
  void Close();
  void Open();
  // Returns once a pass waits at the closed gate.
  void WaitUntilReached();

 private:
  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace aerie
