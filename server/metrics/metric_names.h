// Every metric by name, with its definition, and every value of its labels. Nothing else knows
// these strings.
//
// prometheus-cpp writes both as they stand: a counter's name has to carry its `_total`, and a HELP
// text must hold no backslash and no line break.
#pragma once

#include <array>
#include <string_view>

#include "absl/status/status.h"
#include "server/engine/round_observer.h"
#include "server/guard/wiring_observer.h"
#include "server/request_log/request_log_observer.h"
#include "server/transport/rpc_observer.h"

namespace aerie {

struct MetricName {
  const char* name;
  const char* help;
};

// Acceptance. A draft is one proposal that went to verification; a is the length of the path
// through it that the target kept. Positions are levels: a chain of k tokens has k, a tree has its
// depth, however many tokens share a level.
inline constexpr MetricName kNumDrafts = {"aerie_spec_decode_num_drafts_total",
                                          "Drafts (proposals) whose outcome is known. Mean accept "
                                          "length, bonus included = 1 + accepted tokens / drafts."};
inline constexpr MetricName kNumDraftTokens = {
    "aerie_spec_decode_num_draft_tokens_total",
    "Tokens proposed in drafts whose outcome is known. "
    "Acceptance rate = accepted tokens / draft tokens; of a "
    "tree all tokens count, of which one path can be "
    "kept."};
inline constexpr MetricName kNumAcceptedTokens = {"aerie_spec_decode_num_accepted_tokens_total",
                                                  "Draft tokens that the target kept: the longest "
                                                  "path from the root of each draft, bonus token "
                                                  "not counted."};
inline constexpr MetricName kNumAcceptedTokensPerPos = {
    "aerie_spec_decode_num_accepted_tokens_per_pos_total",
    "Draft tokens that the target kept, by position in the draft from 0; of a tree, by level. "
    "Divide "
    "by the draft tokens of the same position; divided by drafts it understates the late positions "
    "when drafts differ in length. Divided by itself at the position before it is the conditional "
    "acceptance: kept here, given all before were."};
inline constexpr MetricName kNumDraftTokensPerPos = {
    "aerie_spec_decode_num_draft_tokens_per_pos_total",
    "Drafts whose outcome is known and that reached this position, from 0: the tokens of a chain, "
    "the levels of a tree."};
inline constexpr MetricName kCommittedTokens = {
    "aerie_committed_tokens_total",
    "Tokens that the target committed once a session had its first draft: accepted and bonus "
    "tokens. Rejected draft "
    "tokens are not among them."};
inline constexpr MetricName kDraftsUnreported = {
    "aerie_drafts_unreported_total",
    "Drafts whose outcome never came, by reason. They are in no ratio."};
inline constexpr MetricName kDraftsSkipped = {
    "aerie_drafts_skipped_total",
    "Served calls that got no draft or a shortened one, by reason. not_asked: k was 0. "
    "not_worthwhile: adaptive k chose fewer."};
inline constexpr MetricName kAcceptReportMismatch = {
    "aerie_accept_report_mismatch_total",
    "Drafts of which the worker reported another accepted count than its next tokens show."};

// Calls and sessions.
inline constexpr MetricName kRejected = {
    "aerie_rejected_total",
    "Calls that were refused, by reason. quota: sessions or waiting calls of one client. "
    "kv_memory: no room for their rows. client_rows, client_bytes: a client's rows a second, bytes "
    "in unanswered requests. target_quota: of one target."};
inline constexpr MetricName kSessionsEnded = {"aerie_sessions_ended_total",
                                              "Sessions that ended, by reason."};
inline constexpr MetricName kHiddenRows = {
    "aerie_hidden_rows_total", "Rows of hidden states committed, by the way they travelled."};
inline constexpr MetricName kHiddenBytes = {
    "aerie_hidden_bytes_total", "Bytes of the hidden states committed, by the way they travelled."};

// Quotas of targets, by name.
inline constexpr MetricName kTargetSessions = {"aerie_target_sessions",
                                               "Open sessions that count for the quota of a "
                                               "target; *: of all that have none of their own."};
inline constexpr MetricName kTargetRows = {
    "aerie_target_rows_total", "Rows of calls that were taken for the quota of a target."};
inline constexpr MetricName kTargetRefused = {
    "aerie_target_refused_total",
    "Calls that were refused for the quota of a target, by what it had no more of."};

// Per request: one observation for each session with a draft whose outcome is known, when it ends.
inline constexpr MetricName kRequestAcceptLength = {
    "aerie_request_accept_length_tokens",
    "Mean accept length of a request, bonus included: 1 + accepted tokens / drafts, from 1 to k + "
    "1."};
inline constexpr MetricName kRequestAcceptanceRatio = {
    "aerie_request_acceptance_ratio",
    "Acceptance rate of a request: accepted tokens / draft tokens. Its mean is not the "
    "token-weighted rate."};
inline constexpr MetricName kRequestTokensPerSecond = {
    "aerie_request_tokens_per_second",
    "Committed tokens (accepted and bonus) of a request over the time from its first commit to its "
    "last."};

// Drafting.
inline constexpr MetricName kDraftDuration = {
    "aerie_draft_duration_seconds",
    "Time of a served draft call by phase. copy_in: reading and checking the request, its rows "
    "included. queue: from there to its first pass. extend: passes that took its rows. step: "
    "passes that took its draft rows. total: arrival to answer, copy_in to step and the passes of "
    "others in between. copy_out, behind total: encoding the answer."};
inline constexpr MetricName kVerifyDuration = {"aerie_verify_duration_seconds",
                                               "Time of one verification by the target, as workers "
                                               "reported it (verify_cost) with served draft "
                                               "calls."};
inline constexpr MetricName kBatchSessions = {"aerie_batch_sessions",
                                              "Sessions that shared one pass of the drafter."};
inline constexpr MetricName kDraftLength = {"aerie_draft_length_tokens",
                                            "Tokens of a draft when it was made, whether or not "
                                            "its outcome ever came; calls without a draft "
                                            "are not in it."};
inline constexpr MetricName kDraftDepth = {
    "aerie_draft_depth_levels",
    "Levels of a draft when it was made: the most that the target could keep of it."};

inline constexpr MetricName kAdaptiveK = {
    "aerie_adaptive_k_tokens",
    "What adaptive k chose for a served draft call, 0 (no draft) included; only of sessions that "
    "asked for it."};

// Draft KV.
inline constexpr MetricName kKvPages = {
    "aerie_kv_pages",
    "Pages of draft KV by state: free, private to one session, or shared by forks of one. They add "
    "up to all there are."};
inline constexpr MetricName kKvPageBytes = {"aerie_kv_page_bytes",
                                            "Bytes of one page of draft KV, all layers."};
inline constexpr MetricName kKvEvictions = {"aerie_kv_evictions_total",
                                            "Sessions that lost their draft KV to make room for "
                                            "busier ones; they go on once their rows are "
                                            "sent again."};
inline constexpr MetricName kKvEvictedRows = {"aerie_kv_evicted_rows_total",
                                              "Rows of draft KV that were lost so."};

inline constexpr MetricName kSessions = {"aerie_sessions", "Open sessions."};
inline constexpr MetricName kQueueDepth = {"aerie_queue_depth",
                                           "Draft calls that wait for their first pass."};
inline constexpr MetricName kInflight = {
    "aerie_inflight", "Draft calls that are being served by passes of the drafter."};
inline constexpr MetricName kDrafterInfo = {"aerie_drafter_info",
                                            "Always 1; its labels say what the loaded drafter is."};
// Loads while the server runs. A failed one leaves everything as it was.
inline constexpr MetricName kDrafterReloads = {
    "aerie_drafter_reloads_total",
    "Loads of a drafter after the start, new ones and reloads, by what came of them."};
inline constexpr MetricName kDrafterLastReload = {
    "aerie_drafter_last_reload_timestamp_seconds",
    "When the last load of this drafter after the start ended, in seconds since the Unix epoch; 0: "
    "there was none."};
inline constexpr MetricName kDrafterLastReloadOk = {
    "aerie_drafter_last_reload_successful",
    "1 while the last load of this drafter after the start went well, or there was none; 0 once it "
    "failed."};

inline constexpr MetricName kBuildInfo = {"aerie_build_info",
                                          "Always 1; its labels say what this build is."};

// The live guard. A source is a client with a target; which ones there are is in the admin
// service's report, since what a client calls itself must not become a label.
inline constexpr MetricName kWiringGuardInfo = {
    "aerie_wiring_guard_info", "Always 1; its label says what the guard does: --wiring-guard."};
inline constexpr MetricName kWiringSources = {
    "aerie_wiring_sources", "Sources (a client with a target) by what is thought of their rows."};
inline constexpr MetricName kWiringState = {"aerie_wiring_state",
                                            "1 for the worst state of all sources, 0 for the "
                                            "others. Worst is wrong, then suspect, unknown, "
                                            "ok."};
inline constexpr MetricName kWiringChecks = {
    "aerie_wiring_checks_total",
    "Groups of sampled rows that were weighed, by what came of them. fits: as declared. odd: like "
    "no recorded capture, left out. off: something does not fit."};
inline constexpr MetricName kWiringAlarms = {"aerie_wiring_alarms_total",
                                             "How often a source came into this state."};
inline constexpr MetricName kWiringPlacePosition = {
    "aerie_wiring_place_position",
    "Where the rows of a source in the worst state lie, by capture: 0 as declared, 1 as another "
    "capture."};
inline constexpr MetricName kHiddenRowRms = {
    "aerie_hidden_row_rms",
    "Root mean square of incoming rows, by capture, over the recent past; 0 before the first."};
inline constexpr MetricName kHiddenRowRmsExpected = {
    "aerie_hidden_row_rms_expected",
    "The same of the rows that the wiring was measured with. Texts vary by more than layers do."};
inline constexpr MetricName kWiringExpectedAcceptLength = {
    "aerie_wiring_expected_accept_length",
    "Mean accept length, bonus included, on the recording that the wiring was measured with."};

// RPCs, under the names that gRPC dashboards know.
inline constexpr MetricName kRpcStarted = {"grpc_server_started_total",
                                           "RPCs started on the server."};
inline constexpr MetricName kRpcHandled = {"grpc_server_handled_total",
                                           "RPCs completed on the server, by status code."};
inline constexpr MetricName kRpcMessagesReceived = {"grpc_server_msg_received_total",
                                                    "Messages received by the server."};
inline constexpr MetricName kRpcMessagesSent = {"grpc_server_msg_sent_total",
                                                "Messages sent by the server."};
inline constexpr MetricName kRpcHandlingSeconds = {
    "grpc_server_handling_seconds", "Time of an RPC on the server from its start to its end."};
inline constexpr MetricName kRpcReceivedBytes = {"aerie_rpc_received_bytes_total",
                                                 "Bytes of the messages received by the server."};
inline constexpr MetricName kRpcSentBytes = {"aerie_rpc_sent_bytes_total",
                                             "Bytes of the messages sent by the server."};

inline constexpr MetricName kCalls = {
    "aerie_calls_total",
    "Requests that were answered, by what they asked for, how they came and with which code; those "
    "on a stream one by one, while grpc_server_handled_total has one code for the whole stream."};
inline constexpr MetricName kTracesIgnored = {"aerie_traceparents_ignored_total",
                                              "Traceparents of callers that could not be read."};

// The request log (--request-log); 0 without one.
inline constexpr MetricName kRequestLogRecords = {"aerie_request_log_records_total",
                                                  "Records written to the request log."};
inline constexpr MetricName kRequestLogDropped = {
    "aerie_request_log_dropped_total",
    "Records that are not in the request log, by reason. queue_full: sessions ended faster than "
    "the disk takes records. write_failed: the log says why."};

// The process, under the names that every exporter uses.
inline constexpr MetricName kProcessCpuSeconds = {"process_cpu_seconds_total",
                                                  "User and system CPU time of this process."};
inline constexpr MetricName kProcessResidentMemory = {"process_resident_memory_bytes",
                                                      "Resident memory of this process."};
inline constexpr MetricName kProcessVirtualMemory = {"process_virtual_memory_bytes",
                                                     "Virtual memory of this process."};
inline constexpr MetricName kProcessOpenFds = {"process_open_fds",
                                               "File descriptors that this process holds."};
inline constexpr MetricName kProcessMaxFds = {"process_max_fds",
                                              "File descriptors that this process may hold."};
inline constexpr MetricName kProcessStartTime = {
    "process_start_time_seconds", "When this process started, in seconds since the Unix epoch."};

// An enumerator and what it is called in a label.
template <typename Enum>
struct LabelValue {
  Enum value;
  const char* label;
};

inline constexpr auto kUnreportedReasons = std::to_array<LabelValue<UnreportedReason>>({
    {UnreportedReason::kClosed, "closed"},
    {UnreportedReason::kLease, "lease"},
    {UnreportedReason::kRollback, "rollback"},
    {UnreportedReason::kStreamClosed, "stream_closed"},
    {UnreportedReason::kShutdown, "shutdown"},
});
inline constexpr auto kSkipReasons = std::to_array<LabelValue<SkipReason>>({
    {SkipReason::kNotAsked, "not_asked"},
    {SkipReason::kContextLimit, "context_limit"},
    {SkipReason::kDeadline, "deadline"},
    {SkipReason::kNotWorthwhile, "not_worthwhile"},
});
inline constexpr auto kSessionEnds = std::to_array<LabelValue<SessionEnd>>({
    {SessionEnd::kClosed, "closed"},
    {SessionEnd::kLease, "lease"},
    {SessionEnd::kStreamClosed, "stream_closed"},
    {SessionEnd::kShutdown, "shutdown"},
});
inline constexpr auto kRejectReasons = std::to_array<LabelValue<RejectReason>>({
    {RejectReason::kQueueFull, "queue_full"},
    {RejectReason::kDeadline, "deadline"},
    {RejectReason::kLease, "lease"},
    {RejectReason::kWiring, "wiring"},
    {RejectReason::kShape, "shape"},
    {RejectReason::kQuota, "quota"},
    {RejectReason::kKvMemory, "kv_memory"},
    {RejectReason::kClientRows, "client_rows"},
    {RejectReason::kClientBytes, "client_bytes"},
    {RejectReason::kTargetQuota, "target_quota"},
});
inline constexpr auto kWiringStates = std::to_array<LabelValue<WiringState>>({
    {WiringState::kUnknown, "unknown"},
    {WiringState::kOk, "ok"},
    {WiringState::kSuspect, "suspect"},
    {WiringState::kWrong, "wrong"},
});
inline constexpr auto kVoteOutcomes = std::to_array<LabelValue<VoteOutcome>>({
    {VoteOutcome::kFits, "fits"},
    {VoteOutcome::kOdd, "odd"},
    {VoteOutcome::kOff, "off"},
});
inline constexpr auto kRecordLosses = std::to_array<LabelValue<RecordLoss>>({
    {RecordLoss::kQueueFull, "queue_full"},
    {RecordLoss::kWriteFailed, "write_failed"},
});
inline constexpr auto kCallKinds = std::to_array<LabelValue<CallKind>>({
    {CallKind::kOpenSession, "open_session"},
    {CallKind::kDraft, "draft"},
    {CallKind::kCloseSession, "close_session"},
});
// Spelt as gRPC's Go libraries do, which is what dashboards filter by: "Canceled" with one l.
inline constexpr auto kRpcCodes = std::to_array<LabelValue<absl::StatusCode>>({
    {absl::StatusCode::kOk, "OK"},
    {absl::StatusCode::kCancelled, "Canceled"},
    {absl::StatusCode::kUnknown, "Unknown"},
    {absl::StatusCode::kInvalidArgument, "InvalidArgument"},
    {absl::StatusCode::kDeadlineExceeded, "DeadlineExceeded"},
    {absl::StatusCode::kNotFound, "NotFound"},
    {absl::StatusCode::kAlreadyExists, "AlreadyExists"},
    {absl::StatusCode::kPermissionDenied, "PermissionDenied"},
    {absl::StatusCode::kResourceExhausted, "ResourceExhausted"},
    {absl::StatusCode::kFailedPrecondition, "FailedPrecondition"},
    {absl::StatusCode::kAborted, "Aborted"},
    {absl::StatusCode::kOutOfRange, "OutOfRange"},
    {absl::StatusCode::kUnimplemented, "Unimplemented"},
    {absl::StatusCode::kInternal, "Internal"},
    {absl::StatusCode::kUnavailable, "Unavailable"},
    {absl::StatusCode::kDataLoss, "DataLoss"},
    {absl::StatusCode::kUnauthenticated, "Unauthenticated"},
});
inline constexpr auto kRpcTypes = std::to_array<LabelValue<RpcType>>({
    {RpcType::kUnary, "unary"},
    {RpcType::kBidiStream, "bidi_stream"},
});

inline constexpr std::string_view kDraftService = "aerie.v1.DraftService";
inline constexpr std::string_view kAdminService = "aerie.v1.AdminService";
inline constexpr auto kRpcMethods = std::to_array<RpcName>({
    {RpcType::kUnary, kDraftService, "Draft"},
    {RpcType::kBidiStream, kDraftService, "DraftStream"},
    {RpcType::kUnary, kDraftService, "OpenSession"},
    {RpcType::kUnary, kDraftService, "CloseSession"},
    {RpcType::kUnary, kDraftService, "GetServerInfo"},
    {RpcType::kUnary, kDraftService, "RegisterSharedMemory"},
    {RpcType::kUnary, kDraftService, "UnregisterSharedMemory"},
    {RpcType::kUnary, kAdminService, "GetWiringReport"},
    {RpcType::kUnary, kAdminService, "GetLogLevel"},
    {RpcType::kUnary, kAdminService, "SetLogLevel"},
    {RpcType::kUnary, kAdminService, "ListDrafters"},
    {RpcType::kUnary, kAdminService, "LoadDrafter"},
    {RpcType::kUnary, kAdminService, "ReloadDrafter"},
    {RpcType::kUnary, kAdminService, "UnloadDrafter"},
});

}  // namespace aerie
