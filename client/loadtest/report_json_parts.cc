#include "client/loadtest/report_json_parts.h"

#include "aerie_version.h"
#include "client/loadtest/host.h"

namespace aerie::loadtest {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

Json Host() {
  const HostFacts host = ReadHostFacts();
  return {{"system", host.system},
          {"cpu", host.cpu},
          {"cpus", host.cpus},
          {"memory_bytes", host.memory_bytes}};
}

Json JsonOf(const LoadProfile& profile) {
  Json pieces = Json::array();
  for (const ProfilePiece& piece : profile.pieces()) {
    const bool infinite = piece.length == absl::InfiniteDuration();
    pieces.push_back({{"from", piece.from},
                      {"to", piece.to},
                      {"seconds", infinite ? Json() : Json(Seconds(piece.length))}});
  }
  return pieces;
}

const char* ArrivalsName(const LoadOptions& options) {
  if (!options.rate.has_value()) return "closed";
  switch (options.arrivals) {
    case Arrivals::kConstant:
      return "constant";
    case Arrivals::kPoisson:
      return "poisson";
    case Arrivals::kGamma:
      return "gamma";
  }
  return "";
}

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json();
}

}  // namespace

Json JsonHead(const char* kind, absl::Time started, const std::vector<std::string>& arguments,
              const ServerFacts& server) {
  return {{"schema", "aerie-load"},
          {"schema_version", kSchemaVersion},
          {"kind", kind},
          {"version", kVersion},
          {"revision", kRevision},
          {"compiler", kCompiler},
          {"started_at", absl::FormatTime(absl::RFC3339_sec, started, absl::UTCTimeZone())},
          {"host", Host()},
          {"arguments", arguments},
          {"server",
           {{"version", server.version},
            {"revision", server.revision},
            {"drafter", server.drafter},
            {"drafter_version", server.drafter_version},
            {"limits",
             {{"max_k", server.max_k},
              {"max_rows_per_call", server.max_rows_per_call},
              {"max_message_bytes", server.max_message_bytes},
              {"max_sessions", server.max_sessions},
              {"max_context", server.max_context}}}}}};
}

Json JsonOf(const Histogram& histogram) {
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

Json JsonOf(const LoadOptions& o, const Manifest& manifest) {
  Json json = {{"address", o.address},
               {"transport", o.transport == TransportKind::kStream ? "stream" : "unary"},
               {"connections", o.connections},
               {"loop", o.rate.has_value() ? "open" : "closed"},
               {"sessions", JsonOf(o.sessions)},
               {"rate", o.rate.has_value() ? JsonOf(*o.rate) : Json()},
               {"arrivals", ArrivalsName(o)},
               {"burstiness", o.arrivals == Arrivals::kGamma ? Json(o.burstiness) : Json()},
               {"think_seconds", Seconds(o.think_time)},
               {"requests", OrNull(o.requests)},
               {"total_rounds", OrNull(o.total_rounds)},
               {"duration_seconds", o.duration.has_value() ? Json(Seconds(*o.duration)) : Json()},
               {"warmup_seconds", Seconds(o.warmup)},
               {"rounds", OrNull(o.rounds)},
               {"k", o.TokensPerRound()}};
  json["tree"] = !o.tree.has_value() ? Json()
                                     : Json{{"depth", o.tree->depth},
                                            {"top_k", o.tree->top_k},
                                            {"total_tokens", o.tree->total_tokens}};
  json["temperature"] = o.temperature;
  json["adaptive_k"] = o.adaptive_k;
  json["verify_seconds"] = o.adaptive_k ? Json(Seconds(o.verify_time)) : Json();
  json["client"] = o.client;
  const bool synthetic = o.recording.empty();
  json["rows"] = synthetic ? "synthetic" : "recorded";
  json["prompt_rows"] = synthetic ? Json(o.prompt_rows) : Json();
  json["accept"] = synthetic ? Json(o.accept.ToString()) : Json();
  json["recording"] = synthetic ? Json() : Json(o.recording);
  json["dtype"] = manifest.fp8 ? "float8_e4m3fn" : DTypeName(manifest.dtype);
  json["fused"] = manifest.fused();
  json["shared_memory"] = o.shared_memory;
  json["row_width"] = manifest.row_width();
  json["seed"] = o.seed;
  json["deadline_seconds"] = Seconds(o.deadline);
  return json;
}

Json JsonOf(const Verdicts& verdicts, const LoadOptions& options) {
  Json terms = Json::array();
  for (const SloResult& slo : verdicts.slo) {
    terms.push_back({{"term", slo.text}, {"value", slo.value}, {"met", slo.met}});
  }
  return {{"slo", std::move(terms)},
          {"error_share", verdicts.error_share},
          {"error_budget", options.error_budget},
          {"within_budget", verdicts.within_budget},
          {"goodput_limit_seconds",
           options.goodput.has_value() ? Json(Seconds(*options.goodput)) : Json()},
          {"good_rounds_per_second", options.goodput.has_value() ? Json(verdicts.goodput) : Json()},
          {"tester_limits", verdicts.tester_limits},
          {"exit_code", verdicts.exit_code}};
}

std::string JsonText(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace aerie::loadtest
