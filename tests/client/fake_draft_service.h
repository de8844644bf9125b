// A small draft server of its own for the client's tests: keeps tokens and bytes as they came,
// proposes by a rule, and misbehaves on demand.
//
// Rules are those of the contract, so a test can compare what the server holds with what the client
// meant to send.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "common/acceptance_record.h"
#include "common/draft_tree.h"
#include "common/manifest.h"
#include "common/session_options.h"

namespace aerie {

struct FakeSession {
  SessionOptions options;
  std::vector<int32_t> tokens;  // of rows options.start ..
  std::string bytes;            // of all rows held
  bool evicted = false;
  DraftTree proposal;
  AcceptanceRecord record;
  uint64_t last_seq = 0;
  v1::DraftResponse last_answer;
};

class FakeDraftService : public v1::DraftService::Service {
 public:
  FakeDraftService();

  // The rule: what is proposed as draft token `depth` behind `tokens`. Depends on every token and
  // its place.
  static int32_t Proposal(const std::vector<int32_t>& tokens, int32_t depth);
  static constexpr int32_t kVocabulary = 1000;
  static constexpr int32_t kHiddenSize = 4;
  // The chain of k such tokens, or the tree of `options`: at each level that token and its
  // successor, of which the former has children.
  static DraftTree ProposalTree(const std::vector<int32_t>& tokens, int32_t k,
                                const SessionOptions& options);
  // What fits: two boundaries, [1, 3] of 6 layers, fp32.
  static Manifest FittingManifest();

  // Set before the first call.
  v1::Limits limits;
  // Runs before a draft is served; an error is answered in its place.
  std::function<absl::Status(const v1::DraftRequest&)> before_draft;
  // Runs after a draft was served; an error replaces the answer, as a lost connection does.
  std::function<absl::Status(const v1::DraftRequest&)> after_draft;
  // Makes a closed session's record a wrong one.
  std::function<void(AcceptanceRecord*)> bend_record;

  // Changes the options that an answer says are in force.
  std::function<void(v1::SessionOptions*)> bend_options;

  // As a restart does.
  void ForgetSessions();
  // All sessions lose their rows to busier ones.
  void EvictSessions();
  std::vector<v1::OpenSessionRequest> OpenRequests();
  std::vector<v1::DraftRequest> DraftRequests();  // in order of arrival, refused ones too
  std::map<std::string, FakeSession> Sessions();
  int streams_started();
  // What each call said of itself to a proxy, in order of arrival: {rpc, `aerie-session`}.
  std::vector<std::pair<std::string, std::string>> Keys();

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::GetServerInfoResponse* response) override;
  grpc::Status OpenSession(grpc::ServerContext* context, const v1::OpenSessionRequest* request,
                           v1::OpenSessionResponse* response) override;
  grpc::Status Draft(grpc::ServerContext* context, const v1::DraftRequest* request,
                     v1::DraftResponse* response) override;
  grpc::Status DraftStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::DraftStreamResponse, v1::DraftStreamRequest>* stream) override;
  grpc::Status CloseSession(grpc::ServerContext* context, const v1::CloseSessionRequest* request,
                            v1::CloseSessionResponse* response) override;

 private:
  absl::StatusOr<v1::OpenSessionResponse> Open(const v1::OpenSessionRequest& request);
  absl::StatusOr<v1::DraftResponse> ServeDraft(const v1::DraftRequest& request);
  absl::Status CommitRows(const v1::DraftRequest& request, FakeSession* session,
                          v1::DraftResponse* response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::CloseSessionResponse> Close(const v1::CloseSessionRequest& request);

  void NoteKey(const std::string& rpc, const grpc::ServerContext& context);

  absl::Mutex mutex_;
  std::map<std::string, FakeSession> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::OpenSessionRequest> openings_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::DraftRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, std::string>> keys_ ABSL_GUARDED_BY(mutex_);
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace aerie
