// The part of DraftCore that opens and ends sessions, and takes the draft KV of idle ones when
// others need it.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/status_macros.h"
#include "server/engine/draft_core.h"
#include "server/engine/refusals.h"
#include "server/engine/session_options.h"

namespace aerie {

absl::StatusOr<Session::Setup> DraftCore::SetUpSession(const Manifest& manifest,
                                                       const SessionOptions& options) {
  if (absl::Status fits = CheckFits(manifest, model_->spec().requirement()); !fits.ok()) {
    observer_->OnRejected(RejectReason::kWiring);
    return fits;
  }
  AERIE_ASSIGN_OR_RETURN(SessionOptions in_force,
                         SettleOptions(options, options_, model_->spec(), model_->kv_store()));
  const VisibleRows visible{.start = in_force.start,
                            .sink = options_.draft_window == 0 ? 0 : options_.draft_sink,
                            .window = options_.draft_window};
  return Session::Setup{.id = "",
                        .dtype = manifest.dtype,
                        .row_width = manifest.row_width(),
                        .fp8 = manifest.fp8,
                        .fused = manifest.fused(),
                        .target_id = manifest.target_id,
                        .options = std::move(in_force),
                        .visible = visible};
}

TargetShare* DraftCore::ShareOf(const std::string& target) const {
  return options_.target_shares == nullptr ? nullptr : options_.target_shares->Find(target);
}

absl::StatusOr<Client*> DraftCore::TakePlace(const std::string& client, const std::string& target) {
  absl::StatusOr<Client*> place = SessionLimitError(options_.max_sessions);
  if (sessions() + stateless_ < options_.max_sessions) place = clients_.AddSession(client);
  if (!place.ok()) {
    observer_->OnRejected(RejectReason::kQuota);
    return place;
  }
  TargetShare* const share = ShareOf(target);
  const absl::Status fits = share == nullptr ? absl::OkStatus() : share->AddSession();
  if (fits.ok()) return place;
  clients_.RemoveSession(*place);
  observer_->OnRejected(RejectReason::kTargetQuota);
  return fits;
}

void DraftCore::LeavePlace(Client* client, const std::string& target) {
  if (TargetShare* const share = ShareOf(target); share != nullptr) share->RemoveSession();
  clients_.RemoveSession(client);
}

absl::Status DraftCore::TakeRows(const DraftCall& call, const Session& session, absl::Time now) {
  TargetShare* const share = ShareOf(session.target_id());
  if (share == nullptr) return absl::OkStatus();
  absl::Status taken = share->TakeRows(static_cast<int64_t>(call.tokens.size()), now);
  if (!taken.ok()) observer_->OnRejected(RejectReason::kTargetQuota);
  return taken;
}

void DraftCore::Open(const Manifest& manifest, const SessionOptions& options, OpenDone done,
                     absl::Time now) {
  answers_.push_back(
      [done = std::move(done), result = OpenSession(manifest, options, now)]() mutable {
        done(std::move(result));
      });
  TellKvUsage();
}

absl::StatusOr<OpenResult> DraftCore::OpenSession(const Manifest& manifest,
                                                  const SessionOptions& options, absl::Time now) {
  AERIE_ASSIGN_OR_RETURN(Session::Setup setup, SetUpSession(manifest, options));
  AERIE_ASSIGN_OR_RETURN(SessionEntry * forked, FindForked(options));
  if (forked != nullptr) setup.visible.start = setup.options.start = forked->session.start();
  AERIE_ASSIGN_OR_RETURN(Client * client, TakePlace(options.client, manifest.target_id));
  setup.id = options_.session_tag + NewSessionId();
  setup.opened = now;
  SessionEntry* entry = table_.Add(std::move(setup), client, now);
  Session& session = entry->session;
  if (forked != nullptr) {
    const Session& source = forked->session;
    const auto rows = static_cast<size_t>(options.fork_length - source.start());
    session.BeginWith(source.tokens().first(rows),
                      pages_.Fork(source.pages(), options.fork_length));
  }
  observer_->OnSessionOpened();
  entry->watch = Watch({options.client, manifest, session.length()}, now);
  return OpenResult{.session_id = session.id(),
                    .max_k = session.max_k(),
                    .lease = options_.session_lease,
                    .length = session.length(),
                    .top_m = session.options().top_m};
}

std::unique_ptr<RowWatch> DraftCore::Watch(const WatchedRows& rows, absl::Time now) {
  return row_observer_ == nullptr ? nullptr : row_observer_->Watch(rows, now);
}

absl::StatusOr<SessionEntry*> DraftCore::FindForked(const SessionOptions& options) {
  const std::string& id = options.fork_of;
  if (id.empty()) return nullptr;
  SessionEntry* entry = table_.Find(id);
  if (entry == nullptr) {
    return SessionUnknownError(id, table_.HasExpired(id), options_.session_lease);
  }
  const Session& session = entry->session;
  if (!table_.IsIdle(*entry)) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          "session \"", id,
                          "\" has calls that are not answered yet; expected an idle one to "
                          "fork, whose rows are settled; wait for its answers")),
                      kReasonForkInvalid);
  }
  if (session.evicted()) return EvictedError(id, session.start());
  const int64_t length = options.fork_length;
  if (length < session.start() || length > session.length()) {
    return InvalidError(kReasonForkInvalid,
                        absl::StrCat("the fork has length ", length, "; expected ", session.start(),
                                     "..", session.length(), ", up to the rows of session \"", id,
                                     "\"; fork fewer rows and send the others"));
  }
  const int64_t resume = pages_.ResumeFrom(session.pages(), session.visible(), length);
  if (resume == length) return entry;
  return ResendError(kReasonForkInvalid, resume,
                     absl::StrCat("a fork at row ", length, " of ", session.length(),
                                  " looks back on rows that have left the draft window of session "
                                  "\"",
                                  id, "\"; expected a later row; fork its newest rows, or fork ",
                                  resume, " of them"));
}

void DraftCore::ExpireLeases(absl::Time now) {
  while (SessionEntry* entry = table_.FindExpired(now)) {
    table_.RememberExpired(entry->session.id());
    EndSession(entry, SessionEnd::kLease, {}, now);
  }
  TellKvUsage();
}

SessionRecord DraftCore::EndSession(SessionEntry* entry, SessionEnd end,
                                    absl::Span<const int32_t> final_tokens, absl::Time now) {
  const SessionRecord record = entry->session.End(end, final_tokens, now);
  pages_.Release(&entry->session.pages());
  if (entry->watch != nullptr && record.judgement.has_value()) {
    entry->watch->OnJudgement(*record.judgement, now);
  }
  Client* client = entry->client;
  const std::string target = entry->session.target_id();
  table_.Erase(entry);
  LeavePlace(client, target);
  observer_->OnSessionEnded(record);
  return record;
}

bool DraftCore::MakeRoom(int64_t pages) {
  if (pages <= pages_.free_pages()) return true;
  // Every session that is not idle has a round.
  std::vector<const PageTable*> kept;
  for (const auto& [number, active] : rounds_) kept.push_back(&active.session().pages());
  if (pages > pages_.FreeBut(kept)) return false;
  for (SessionEntry* entry : table_.idle()) {
    if (pages <= pages_.free_pages()) break;
    Session& session = entry->session;
    if (session.pages().empty()) continue;
    const int64_t rows = session.length() - session.start();
    pages_.Release(&session.pages());
    session.Evict();
    observer_->OnEvicted(rows);
  }
  AERIE_CHECK(pages <= pages_.free_pages());
  return true;
}

}  // namespace aerie
