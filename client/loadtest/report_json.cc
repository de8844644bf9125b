// ToJson: the machine-readable report of a run.
#include "client/loadtest/report_json_parts.h"

namespace aerie::loadtest {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

Json Window(const RunResult& result) {
  return {{"begin_seconds", Seconds(result.window_begin)},
          {"seconds", Seconds(result.seconds)},
          {"ran_seconds", Seconds(result.ran)}};
}

Json Measured(const RunResult& result) {
  const MeasuredStats& m = result.measured;
  return {{"rounds", m.rounds},
          {"rounds_per_second", PerSecond(m.rounds, result)},
          {"asked_rounds", result.asked_rounds},
          {"late_rounds", m.late_rounds},
          {"failed_rounds", m.failed_rounds},
          {"committed_tokens", m.committed_tokens},
          {"tokens_per_second", PerSecond(m.committed_tokens, result)},
          {"sent_rows", m.sent_rows},
          {"rows_per_second", PerSecond(m.sent_rows, result)},
          {"sent_bytes", m.sent_bytes},
          {"short_drafts", m.short_drafts},
          {"resyncs", m.resyncs},
          {"repeated_messages", m.repeats}};
}

Json Whole(const WholeStats& whole) {
  return {{"rounds", whole.rounds},
          {"failed_rounds", whole.failed_rounds},
          {"sessions_finished", whole.sessions_finished},
          {"sessions_failed", whole.sessions_failed},
          {"sessions_at_context_limit", whole.sessions_at_context_limit}};
}

Json Acceptance(const Report& report) {
  const AcceptanceTally& tally = report.result.measured.acceptance;
  return {{"mean_accept_length", tally.MeanAcceptLength()},
          {"bonus_included", true},
          {"rate", tally.AcceptanceRate()},
          {"drafts", tally.drafts()},
          {"draft_tokens", tally.draft_tokens()},
          {"accepted_tokens", tally.accepted_tokens()},
          {"by_position", tally.RateByPosition()},
          {"conditional_by_position", tally.ConditionalRateByPosition()},
          {"expected_by_position", ExpectedByPosition(report.options)}};
}

Json Pieces(const Report& report) {
  const LoadOptions& o = report.options;
  Json pieces = Json::array();
  for (const PieceStats& piece : report.result.measured.pieces) {
    const size_t index = pieces.size();
    const LoadProfile& load = o.rate.has_value() ? *o.rate : o.sessions;
    pieces.push_back({{"from", load.pieces()[index].from},
                      {"to", load.pieces()[index].to},
                      {"failed_rounds", piece.failed_rounds},
                      {"committed_tokens", piece.committed_tokens},
                      {"mean_accept_length", piece.acceptance.MeanAcceptLength()},
                      {"round_from_intended", JsonOf(piece.round_intended)},
                      {"round", JsonOf(piece.round)}});
  }
  return pieces;
}

Json Timeline(const RunResult& result) {
  Json timeline = Json::array();
  for (const Interval& i : result.intervals) {
    timeline.push_back({{"begin_seconds", Seconds(i.begin)},
                        {"seconds", Seconds(i.length)},
                        {"steady", i.steady},
                        {"asked_rounds", i.asked},
                        {"rounds", i.rounds},
                        {"errors", i.errors},
                        {"in_flight", i.in_flight},
                        {"committed_tokens", i.tokens},
                        {"sent_bytes", i.bytes},
                        {"mean_accept_length", i.accept_length},
                        {"p50", Seconds(i.p50)},
                        {"p90", Seconds(i.p90)},
                        {"p99", Seconds(i.p99)},
                        {"max", Seconds(i.max)},
                        {"send_p99", Seconds(i.send_p99)}});
  }
  return timeline;
}

Json Faults(const WholeStats& whole) {
  Json faults = Json::object();
  for (const auto& [kind, tally] : whole.faults) {
    faults[kind] = {{"injected", tally.injected},
                    {"as_expected", tally.as_expected},
                    {"by_code", tally.by_code},
                    {"first_surprise", tally.first_surprise}};
  }
  return faults;
}

Json Sessions(const WholeStats& whole) {
  return {{"compared", whole.sessions_compared},
          {"not_compared", whole.sessions_not_compared},
          {"drafts", whole.sure.acceptance.drafts()},
          {"draft_tokens", whole.sure.acceptance.draft_tokens()},
          {"accepted_tokens", whole.sure.acceptance.accepted_tokens()},
          {"committed_tokens", whole.sure.committed_tokens},
          {"equal", whole.difference_count == 0},
          {"difference_count", whole.difference_count},
          {"differences", whole.differences}};
}

Json Metrics(const Report& report) {
  const Reconciliation& r = report.reconciliation;
  Json checks = Json::array();
  for (const CounterCheck& check : r.checks) {
    checks.push_back({{"counter", check.counter},
                      {"least", check.least},
                      {"most", check.most},
                      {"found", check.found},
                      {"fits", check.fits()}});
  }
  Json excluded = Json::array();
  for (const ExcludedCounters& e : NotReconciled()) {
    excluded.push_back({{"counters", e.counters}, {"why", e.why}});
  }
  return {{"done", r.done},
          {"error", report.reconciliation_error},
          {"differences", r.differences()},
          {"checks", std::move(checks)},
          {"excluded", std::move(excluded)}};
}

Json Tester(const RunResult& result) {
  const int64_t rounds = result.whole.rounds + result.whole.failed_rounds;
  return {{"cpu_seconds", Seconds(result.tester_cpu)},
          {"cpu_seconds_per_round",
           rounds == 0 ? 0.0 : Seconds(result.tester_cpu) / static_cast<double>(rounds)},
          {"cpu_share", result.tester_cpu_share},
          {"machine_busy_share", result.machine_busy_share},
          {"wake_lag_seconds", JsonOf(result.measured.wake_lag)}};
}

}  // namespace

std::string ToJson(const Report& report) {
  const RunResult& result = report.result;
  const MeasuredStats& m = result.measured;
  const WholeStats& whole = result.whole;
  Json json = JsonHead("run", result.started, report.arguments, report.server);
  json["options"] = JsonOf(report.options, report.manifest);
  json["window"] = Window(result);
  json["measured"] = Measured(result);
  json["whole_run"] = Whole(whole);
  json["latency_seconds"] = {{"round_from_intended", JsonOf(m.round_intended)},
                             {"round", JsonOf(m.round)},
                             {"prompt", JsonOf(m.prompt)},
                             {"open", JsonOf(m.open)},
                             {"close", JsonOf(m.close)}};
  json["latency_by_code_seconds"] = Json::object();
  for (const auto& [code, histogram] : m.round_by_code) {
    json["latency_by_code_seconds"][code] = JsonOf(histogram);
  }
  json["server_seconds"] = {{"queue", JsonOf(m.queue)},
                            {"extend", JsonOf(m.extend)},
                            {"step", JsonOf(m.step)},
                            {"total", JsonOf(m.total)}};
  json["acceptance"] = Acceptance(report);
  json["variety"] = {{"trigrams", whole.trigrams},
                     {"distinct_trigrams", whole.distinct_trigrams},
                     {"distinct_trigrams_ratio",
                      whole.trigrams == 0 ? 0.0
                                          : static_cast<double>(whole.distinct_trigrams) /
                                                static_cast<double>(whole.trigrams)}};
  json["pieces"] = Pieces(report);
  json["timeline"] = Timeline(result);
  json["errors"] = {
      {"total", whole.error_count()}, {"by_code", whole.errors}, {"first", whole.first_error}};
  json["faults"] = Faults(whole);
  json["reconciliation"] = {{"sessions", Sessions(whole)}, {"metrics", Metrics(report)}};
  json["tester"] = Tester(result);
  json["verdicts"] = JsonOf(Judge(report), report.options);
  return JsonText(json);
}

}  // namespace aerie::loadtest
