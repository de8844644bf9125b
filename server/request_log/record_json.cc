#include "server/request_log/record_json.h"

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/check.h"
#include "common/trace_context.h"
#include "nlohmann/json.hpp"

namespace aerie {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(SessionEnd end) {
  switch (end) {
    case SessionEnd::kClosed:
      return "closed";
    case SessionEnd::kLease:
      return "lease";
    case SessionEnd::kStreamClosed:
      return "stream_closed";
    case SessionEnd::kShutdown:
      return "shutdown";
  }
  AERIE_CHECK(false) << "no such end of a session";
}

std::string ToRfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// {number: count}, without those that are 0.
Json ToObject(const std::vector<int64_t>& histogram) {
  Json out = Json::object();
  for (size_t i = 0; i < histogram.size(); ++i) {
    if (histogram[i] != 0) out[std::to_string(i)] = histogram[i];
  }
  return out;
}

Json OrNull(bool defined, double value) { return defined ? Json(value) : Json(); }

void AddFacts(const SessionRecord& record, Json* line) {
  const SessionFacts& facts = record.facts;
  (*line)["session"] = facts.id;
  (*line)["client"] = facts.client;
  (*line)["target"] = facts.target_id;
  const std::optional<TraceContext> trace = ParseTraceParent(facts.traceparent);
  (*line)["trace_id"] = trace.has_value() ? Json(trace->trace_id) : Json();
  (*line)["parent_id"] = trace.has_value() ? Json(trace->parent_id) : Json();
  (*line)["kind"] = facts.tree ? "tree" : "chain";
  (*line)["sampled"] = facts.sampled;
  (*line)["adaptive_k"] = facts.adaptive_k;
}

void AddAcceptance(const SessionRecord& record, Json* line) {
  const AcceptanceRecord& acceptance = record.acceptance;
  const bool judged = acceptance.spec_steps > 0;
  (*line)["acceptance_histogram"] = ToObject(acceptance.acceptance_histogram);
  (*line)["depth_histogram"] = ToObject(acceptance.depth_histogram);
  (*line)["num_accepted_draft_tokens"] = acceptance.accepted_draft_tokens;
  (*line)["num_draft_tokens"] = acceptance.draft_tokens;
  (*line)["num_spec_steps"] = acceptance.spec_steps;
  (*line)["num_spec_tokens"] = acceptance.spec_tokens;
  (*line)["completion_tokens"] = acceptance.completion_tokens;
  (*line)["unreported_drafts"] = acceptance.unreported_drafts;
  (*line)["mean_acceptance_length"] = OrNull(judged, acceptance.MeanAcceptLength());
  (*line)["draft_acceptance_rate"] = OrNull(judged, acceptance.AcceptanceRate());
  const double active = absl::ToDoubleSeconds(record.active);
  (*line)["tokens_per_second"] =
      active > 0 ? Json(static_cast<double>(acceptance.completion_tokens) / active) : Json();
  (*line)["active_seconds"] = active;
  if (acceptance.per_step_accepted.empty()) return;
  (*line)["per_step_accepted"] = acceptance.per_step_accepted;
  (*line)["per_step_drafted"] = acceptance.per_step_drafted;
}

void AddCost(const SessionCost& cost, Json* line) {
  (*line)["calls"] = cost.calls;
  (*line)["failed_calls"] = cost.failed_calls;
  (*line)["rows"] = cost.rows;
  (*line)["bytes"] = cost.bytes;
  (*line)["phase_seconds"] = {{"copy_in", absl::ToDoubleSeconds(cost.copy_in)},
                              {"queue", absl::ToDoubleSeconds(cost.queue)},
                              {"extend", absl::ToDoubleSeconds(cost.extend)},
                              {"step", absl::ToDoubleSeconds(cost.step)},
                              {"total", absl::ToDoubleSeconds(cost.total)}};
}

}  // namespace

std::string ToJsonLine(const SessionRecord& record, const RecordOrigin& origin) {
  Json line;
  line["time"] = ToRfc3339(record.ended);
  line["opened"] = ToRfc3339(record.facts.opened);
  line["end"] = NameOf(record.end);
  line["engine"] = kEngineName;
  line["drafter"] = origin.drafter;
  line["version"] = origin.version;
  AddFacts(record, &line);
  AddAcceptance(record, &line);
  AddCost(record.cost, &line);
  // Names come from clients and need not be UTF-8.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace aerie
