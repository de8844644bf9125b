// ToJson: the machine-readable report. Its field names are a contract; --help lists them.
#include <nlohmann/json.hpp>

#include "aerie_version.h"
#include "client/loadtest/host.h"
#include "client/loadtest/report.h"

namespace aerie::loadtest {
namespace {

// Keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

double PerSecond(int64_t count, absl::Duration duration) {
  return duration > absl::ZeroDuration() ? static_cast<double>(count) / Seconds(duration) : 0.0;
}

Json Latencies(const Histogram& histogram) {
  return {{"count", histogram.count()},
          {"mean", Seconds(histogram.Mean())},
          {"stddev", Seconds(histogram.StandardDeviation())},
          {"min", Seconds(histogram.min())},
          {"p50", Seconds(histogram.Quantile(0.5))},
          {"p90", Seconds(histogram.Quantile(0.9))},
          {"p95", Seconds(histogram.Quantile(0.95))},
          {"p99", Seconds(histogram.Quantile(0.99))},
          {"p99_9", Seconds(histogram.Quantile(0.999))},
          {"max", Seconds(histogram.max())}};
}

Json Host() {
  const HostFacts host = ReadHostFacts();
  return {{"system", host.system},
          {"cpu", host.cpu},
          {"cpus", host.cpus},
          {"memory_bytes", host.memory_bytes}};
}

Json Server(const v1::GetServerInfoResponse& server) {
  const v1::Limits& limits = server.limits();
  Json json = {{"version", server.build().version()}, {"revision", server.build().revision()}};
  if (server.drafters_size() > 0) {
    json["drafter"] = server.drafters(0).name();
    json["drafter_version"] = server.drafters(0).version();
  }
  json["limits"] = {{"max_k", limits.max_k()},
                    {"max_rows_per_call", limits.max_rows_per_call()},
                    {"max_message_bytes", limits.max_message_bytes()},
                    {"max_sessions", limits.max_sessions()},
                    {"max_context", limits.max_context()}};
  return json;
}

Json Options(const Report& report) {
  const LoadOptions& o = report.options;
  Json json = {{"address", o.address},
               {"transport", o.transport == TransportKind::kStream ? "stream" : "unary"},
               {"sessions", o.sessions},
               {"k", o.TokensPerRound()},
               {"temperature", o.temperature},
               {"adaptive_k", o.adaptive_k},
               {"client", o.client},
               {"seed", o.seed},
               {"deadline_seconds", Seconds(o.deadline)},
               {"warmup_seconds", Seconds(o.warmup)},
               {"dtype", std::string(DTypeName(report.manifest.dtype))},
               {"row_width", report.manifest.row_width()}};
  json["tree"] = !o.tree.has_value() ? Json()
                                     : Json{{"depth", o.tree->depth},
                                            {"top_k", o.tree->top_k},
                                            {"total_tokens", o.tree->total_tokens}};
  json["verify_seconds"] = o.adaptive_k ? Json(Seconds(o.verify_time)) : Json();
  json["requests"] = o.requests.has_value() ? Json(*o.requests) : Json();
  json["duration_seconds"] = o.duration.has_value() ? Json(Seconds(*o.duration)) : Json();
  json["rounds"] = o.rounds.has_value() ? Json(*o.rounds) : Json();
  json["rows"] = o.recording.empty() ? Json("synthetic") : Json("recorded");
  if (o.recording.empty()) {
    json["prompt_rows"] = o.prompt_rows;
    json["accept"] = o.accept;
  } else {
    json["recording"] = o.recording;
  }
  return json;
}

Json Measured(const RunResult& result) {
  const MeasuredStats& m = result.measured;
  return {{"seconds", Seconds(result.seconds)},
          {"sessions_finished", m.sessions_finished},
          {"sessions_failed", m.sessions_failed},
          {"sessions_at_context_limit", m.sessions_at_context_limit},
          {"rounds", m.rounds},
          {"rounds_per_second", PerSecond(m.rounds, result.seconds)},
          {"committed_tokens", m.committed_tokens},
          {"tokens_per_second", PerSecond(m.committed_tokens, result.seconds)},
          {"sent_rows", m.sent_rows},
          {"sent_bytes", m.sent_bytes},
          {"short_drafts", m.short_drafts},
          {"resyncs", m.resyncs},
          {"repeated_messages", m.repeats}};
}

Json Acceptance(const AcceptanceTally& tally) {
  return {{"mean_accept_length", tally.MeanAcceptLength()},
          {"bonus_included", true},
          {"rate", tally.AcceptanceRate()},
          {"drafts", tally.drafts()},
          {"draft_tokens", tally.draft_tokens()},
          {"accepted_tokens", tally.accepted_tokens()},
          {"by_position", tally.RateByPosition()},
          {"conditional_by_position", tally.ConditionalRateByPosition()}};
}

}  // namespace

std::string ToJson(const Report& report) {
  const MeasuredStats& m = report.result.measured;
  const WholeStats& whole = report.result.whole;
  Json json;
  json["schema"] = kReportSchema;
  json["version"] = kVersion;
  json["revision"] = kRevision;
  json["compiler"] = kCompiler;
  json["started_at"] =
      absl::FormatTime(absl::RFC3339_sec, report.result.started, absl::UTCTimeZone());
  json["host"] = Host();
  json["arguments"] = report.arguments;
  json["server"] = Server(report.server);
  json["options"] = Options(report);
  json["measured"] = Measured(report.result);
  json["latency_seconds"] = {{"round", Latencies(m.round)},
                             {"prompt", Latencies(m.prompt)},
                             {"open", Latencies(m.open)},
                             {"close", Latencies(m.close)}};
  json["server_seconds"] = {{"queue", Latencies(m.queue)},
                            {"extend", Latencies(m.extend)},
                            {"step", Latencies(m.step)},
                            {"total", Latencies(m.total)}};
  json["acceptance"] = Acceptance(m.acceptance);
  json["variety"] = {
      {"trigrams", m.trigrams},
      {"distinct_trigrams", m.distinct_trigrams},
      {"distinct_trigrams_ratio", m.trigrams == 0 ? 0.0
                                                  : static_cast<double>(m.distinct_trigrams) /
                                                        static_cast<double>(m.trigrams)}};
  json["errors"] = {
      {"total", whole.error_count()}, {"by_code", whole.errors}, {"first", whole.first_error}};
  json["reconciliation"] = {{"sessions", whole.sessions_compared},
                            {"drafts", whole.acceptance.drafts()},
                            {"draft_tokens", whole.acceptance.draft_tokens()},
                            {"accepted_tokens", whole.acceptance.accepted_tokens()},
                            {"committed_tokens", whole.committed_tokens},
                            {"equal", whole.difference_count == 0},
                            {"difference_count", whole.difference_count},
                            {"differences", whole.differences}};
  json["tester"] = {{"cpu_share", report.result.tester_cpu_share}};
  // Texts from a server may be no UTF-8; a report is worth more than an exception.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace aerie::loadtest
