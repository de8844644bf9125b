#include "client/loadtest/options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/loadtest/page_address.h"
#include "common/address.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

absl::Status CheckEnd(const LoadOptions& o) {
  const bool profile_ends = (o.rate.has_value() && o.rate->length() != absl::InfiniteDuration()) ||
                            o.sessions.length() != absl::InfiniteDuration();
  const int ends = (o.requests.has_value() ? 1 : 0) + (o.total_rounds.has_value() ? 1 : 0) +
                   (o.duration.has_value() ? 1 : 0) + (profile_ends ? 1 : 0);
  if (ends > 1) {
    return BadFlag("--requests, --total-rounds, --duration and a load with times", "given together",
                   "each of them ends the run; give one");
  }
  if (o.requests.has_value() && *o.requests < 1) {
    return BadFlag("--requests", absl::StrCat(*o.requests), "give 1 or more");
  }
  if (o.total_rounds.has_value() && *o.total_rounds < 1) {
    return BadFlag("--total-rounds", absl::StrCat(*o.total_rounds), "give 1 or more");
  }
  if (o.rate.has_value() && ends == 0) {
    return BadFlag("--rate", "given without an end",
                   "an open loop runs by time or count; add --duration, --total-rounds, --requests "
                   "or times to the rate");
  }
  if (o.warmup < absl::ZeroDuration()) {
    return BadFlag("--warmup", absl::FormatDuration(o.warmup), "give 0s or more");
  }
  if (o.EndOfLoad() <= o.warmup) {
    return BadFlag(o.duration.has_value() ? "--duration" : "the load's times",
                   absl::FormatDuration(o.EndOfLoad()),
                   absl::StrCat("nothing is left after --warmup ", absl::FormatDuration(o.warmup),
                                "; give more"));
  }
  return absl::OkStatus();
}

absl::Status CheckLoad(const LoadOptions& o) {
  if (o.sessions.MaxLevel() < 1 || o.sessions.MaxLevel() > LoadOptions::kMaxSessions) {
    return BadFlag("--sessions", absl::StrCat(o.sessions.MaxLevel()),
                   absl::StrCat("give 1 to ", LoadOptions::kMaxSessions));
  }
  if (o.connections < 1 || o.connections > 256) {
    return BadFlag("--connections", absl::StrCat(o.connections), "give 1 to 256");
  }
  if (o.rate.has_value() && !o.sessions.IsConstant()) {
    return BadFlag("--sessions", "a profile",
                   "it contradicts --rate, which is the load that varies; give one number");
  }
  if (o.rate.has_value() && o.think_time != absl::ZeroDuration()) {
    return BadFlag("--think-time", absl::FormatDuration(o.think_time),
                   "it contradicts --rate, which says when rounds start; leave it out");
  }
  if (o.think_time < absl::ZeroDuration()) {
    return BadFlag("--think-time", absl::FormatDuration(o.think_time), "give 0s or more");
  }
  if (!(o.burstiness > 0 && o.burstiness <= 1000)) {
    return BadFlag("--burstiness", absl::StrCat(o.burstiness),
                   "give more than 0, at most 1000; 1 is Poisson");
  }
  return absl::OkStatus();
}

absl::Status CheckShares(const LoadOptions& o) {
  const std::pair<const char*, double> shares[] = {
      {"--fault-cancel", o.faults.cancel},       {"--fault-deadline", o.faults.deadline},
      {"--fault-reconnect", o.faults.reconnect}, {"--fault-slow-reader", o.faults.slow_reader},
      {"--fault-malformed", o.faults.malformed}, {"--error-budget", o.error_budget}};
  for (const auto& [flag, share] : shares) {
    if (!(share >= 0.0 && share <= 1.0)) {
      return BadFlag(flag, absl::StrCat(share), "give a share from 0 to 1");
    }
  }
  if (o.fault_deadline <= absl::ZeroDuration()) {
    return BadFlag("--fault-deadline-time", absl::FormatDuration(o.fault_deadline),
                   "give more than 0s");
  }
  if (o.goodput.has_value() && *o.goodput <= absl::ZeroDuration()) {
    return BadFlag("--goodput", absl::FormatDuration(*o.goodput), "give more than 0s");
  }
  return absl::OkStatus();
}

absl::Status CheckSession(const LoadOptions& o) {
  if (o.rounds.has_value() && *o.rounds < 1) {
    return BadFlag("--rounds", absl::StrCat(*o.rounds), "give 1 or more");
  }
  if (o.deadline <= absl::ZeroDuration()) {
    return BadFlag("--deadline", absl::FormatDuration(o.deadline), "give more than 0s");
  }
  if (absl::Status session = o.SessionOptionsOf().Validate(); !session.ok()) {
    return BadFlag("--tree, --temperature, --adaptive-k or --client", "contradictory",
                   session.message());
  }
  if (o.verify_time <= absl::ZeroDuration()) {
    return BadFlag("--verify-time", absl::FormatDuration(o.verify_time), "give more than 0s");
  }
  if (o.k < 1 || o.k > 128) return BadFlag("--k", absl::StrCat(o.k), "give 1 to 128");
  if (o.prompt_rows < 1 || o.prompt_rows > 1'000'000) {
    return BadFlag("--prompt-rows", absl::StrCat(o.prompt_rows), "give 1 to 1000000");
  }
  return absl::OkStatus();
}

absl::Status CheckMetrics(const LoadOptions& o) {
  if (o.metrics.empty()) return absl::OkStatus();
  AERIE_ASSIGN_OR_RETURN(const PageAddress page, PageAddress::Parse(o.metrics));
  // A network in which calls carry their token in the clear is no worse a place for the page's.
  const bool network_is_trusted =
      !o.files.token_file.empty() && o.files.tls_ca.empty() && IsPublicAddress(o.address);
  const auto [flag, path] = o.MetricsToken();
  if (page.tls || path.empty() || network_is_trusted || !IsPublicAddress(page.HostAndPort())) {
    return absl::OkStatus();
  }
  return BadFlag("--metrics", o.metrics,
                 absl::StrCat("the token of ", flag, " ", path,
                              " would go there in the clear; write https://HOST:PORT for a page "
                              "with --metrics-tls, or reach a plain one through a port of this "
                              "host, as ssh -L and kubectl port-forward make them"));
}

}  // namespace

absl::Status BadFlag(absl::string_view flag, absl::string_view value, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " is ", value, "; ", remedy));
}

SessionOptions LoadOptions::SessionOptionsOf() const {
  SessionOptions out;
  out.tree = tree;
  out.temperature = temperature;
  if (temperature > 0.0f) {
    out.probs = ProposalProbs::kTopM;
    out.seed = seed;
  }
  out.adaptive_k = adaptive_k;
  out.client = client;
  return out;
}

std::pair<const char*, std::string> LoadOptions::MetricsToken() const {
  if (metrics_token_file.empty()) return {"--token-file", files.token_file};
  return {"--metrics-token-file", metrics_token_file};
}

absl::Duration LoadOptions::EndOfLoad() const {
  if (duration.has_value()) return *duration;
  return rate.has_value() ? rate->length() : sessions.length();
}

absl::Status LoadOptions::Validate() const {
  for (const auto check : {CheckLoad, CheckEnd, CheckSession, CheckShares, CheckMetrics}) {
    if (absl::Status status = check(*this); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<SloTerm> ParseSlo(absl::string_view text) {
  const absl::Status bad = BadFlag(
      "--slo", absl::StrCat("'", text.substr(0, 60), "'"),
      "expected what and its limit; write for example p99=20ms, mean=5ms, max=1s, rate=200 (at "
      "least, rounds a second) or accept-length=2.5 (at least)");
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '=');
  if (parts.size() != 2) return bad;
  SloTerm term;
  term.text = std::string(text.data(), text.size());
  absl::string_view what = parts[0];
  const bool is_rate = what == "rate";
  if (is_rate || what == "accept-length") {
    term.kind = is_rate ? SloTerm::Kind::kMinRate : SloTerm::Kind::kMinAcceptLength;
    if (!absl::SimpleAtod(parts[1], &term.least) || !(term.least > 0)) return bad;
    return term;
  }
  if (!absl::ParseDuration(parts[1], &term.latency) || term.latency <= absl::ZeroDuration()) {
    return bad;
  }
  if (what == "mean") {
    term.kind = SloTerm::Kind::kMean;
  } else if (what == "max") {
    term.kind = SloTerm::Kind::kMax;
  } else {
    double percent = 0;
    if (!absl::ConsumePrefix(&what, "p") || !absl::SimpleAtod(what, &percent) ||
        !(percent > 0 && percent < 100)) {
      return bad;
    }
    term.quantile = percent / 100;
  }
  return term;
}

}  // namespace aerie::loadtest
