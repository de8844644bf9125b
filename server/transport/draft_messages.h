// Requests of proto/aerie/v1 -> the engine's calls; its results -> responses.
//
// What needs no session is checked here: shapes, ids, finite values. What needs one (length, k,
// seq) is the engine's.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "aerie/v1/draft.pb.h"
#include "common/acceptance_record.h"
#include "server/engine/draft_engine.h"
#include "server/engine/draft_model.h"
#include "server/engine/round_observer.h"
#include "server/transport/drafter_directory.h"
#include "server/transport/shared_memory_book.h"

namespace aerie {

// What OpenSession asks of the engine.
struct OpenCall {
  Manifest manifest;
  SessionOptions options;
};

// Whose a call is. Errors are those of DrafterDirectory::ForManifest(); a call that names neither a
// session nor a manifest is the first one's, to be refused.
absl::StatusOr<ServedDrafterPtr> DrafterOf(const OpenCall& call, const DrafterDirectory& drafters);
absl::StatusOr<ServedDrafterPtr> DrafterOf(const v1::DraftRequest& request,
                                           const DrafterDirectory& drafters);
// Counts a call that is nobody's, for `status`, where engines count theirs: a manifest that nobody
// here can serve, or nothing.
void TellNobodys(const absl::Status& status, const ServedDrafter& drafter);

// The call's rows point into `request` when it leaves rows_owner null: keep it until the call is
// done. Rows in shared memory are copied out through `shared`. `deadline` is set by `arrival`, the
// request's time limit and the RPC's own deadline, whichever is earlier. Cancel is the caller's to
// fill.
absl::StatusOr<DraftCall> DecodeDraftRequest(const v1::DraftRequest& request,
                                             const DrafterSpec& spec, absl::Time arrival,
                                             absl::Time rpc_deadline,
                                             const SharedMemoryAccess& shared = {});
void EncodeDraftResult(const DraftResult& result, v1::DraftResponse* response);
// The same, and tells `observer` (may be null) what it took.
void EncodeAndTell(const DraftResult& result, RoundObserver* observer, v1::DraftResponse* response);

absl::StatusOr<OpenCall> DecodeOpenRequest(const v1::OpenSessionRequest& request);
// `asked` is what the call asked for: the answer says the options in force.
void EncodeOpenResult(const OpenResult& result, SessionOptions asked,
                      v1::OpenSessionResponse* response);

absl::StatusOr<std::vector<int32_t>> DecodeFinalTokens(const v1::CloseSessionRequest& request,
                                                       const DrafterSpec& spec);
void EncodeCloseResult(const AcceptanceRecord& record, v1::CloseSessionResponse* response);

// RESOURCE_EXHAUSTED, reason MESSAGE_TOO_LARGE, for a request of more than `limit` bytes. gRPC
// itself refuses only much larger ones, since it can tell the caller nothing but a code and would
// end a whole stream for one request.
absl::Status CheckMessageSize(int64_t bytes, int64_t limit);

// Bytes of a call's rows in shared memory, which will be copied. At most `max_message_bytes`: what
// is longer is refused, not held.
int64_t BytesInSharedMemory(const v1::DraftRequest& request, int64_t max_message_bytes);

// UNAVAILABLE for calls that come before the drafter is loaded.
absl::Status StillLoading();

}  // namespace aerie
