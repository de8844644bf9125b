#include "client/loadtest/options.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "aerie_version.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

constexpr char kFooter[] = R"(
Every session sends its prompt's rows, then rounds: it drafts k tokens, keeps as many as its made-up
target accepts (--accept, or the recording), and sends the rows of these and of one more token. It
closes with the last tokens, and the server's record is compared with what the session counted.

--json writes one object: schema, version, revision, started_at, host {system, cpu, cpus,
memory_bytes}, arguments, server {version, drafter, drafter_version, limits}, options, measured
{seconds, sessions_finished, sessions_failed, rounds, rounds_per_second, committed_tokens,
tokens_per_second, ...}, latency_seconds {round, prompt, open, close: count, mean, stddev, min, p50,
p90, p95, p99, p99_9, max}, server_seconds {queue, extend, step, total: the same}, acceptance
{mean_accept_length (bonus included), rate, drafts, by_position, conditional_by_position},
variety {distinct_trigrams_ratio}, errors {total, by_code}, reconciliation {sessions, equal,
differences}, tester {cpu_share}.

Exit code: 0 fine; 1 errors happened or the server counted differently; 2 bad usage.)";

absl::Status BadFlag(const std::string& flag, const std::string& value, const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " is ", value, "; ", remedy));
}

absl::StatusOr<absl::Duration> ParseTime(const std::string& flag, const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration)) return duration;
  return BadFlag(flag, absl::StrCat("'", text, "'"),
                 "expected a number with a unit; write for example 500ms, 30s or 2m");
}

// The texts of flags whose values CLI11 cannot read by itself.
struct Texts {
  std::string deadline = "30s", duration, warmup = "0s", accept = "0.7", dtype, tree;
  std::string verify_time = "20ms";
  std::string transport = "unary";
};

absl::StatusOr<TreeShape> ParseTree(const std::string& text) {
  const std::vector<std::string> parts = CLI::detail::split(text, ',');
  TreeShape tree;
  if (parts.size() == 3 && CLI::detail::lexical_cast(parts[0], tree.depth) &&
      CLI::detail::lexical_cast(parts[1], tree.top_k) &&
      CLI::detail::lexical_cast(parts[2], tree.total_tokens)) {
    return tree;
  }
  return BadFlag("--tree", absl::StrCat("'", text, "'"),
                 "expected depth, top-k and total tokens; write for example 5,4,16");
}

absl::Status ReadTexts(const Texts& texts, LoadOptions* options) {
  AERIE_ASSIGN_OR_RETURN(options->deadline, ParseTime("--deadline", texts.deadline));
  AERIE_ASSIGN_OR_RETURN(options->warmup, ParseTime("--warmup", texts.warmup));
  AERIE_ASSIGN_OR_RETURN(options->verify_time, ParseTime("--verify-time", texts.verify_time));
  if (!texts.tree.empty()) {
    AERIE_ASSIGN_OR_RETURN(options->tree, ParseTree(texts.tree));
  }
  if (!texts.duration.empty()) {
    AERIE_ASSIGN_OR_RETURN(options->duration, ParseTime("--duration", texts.duration));
  }
  options->transport = texts.transport == "stream" ? TransportKind::kStream : TransportKind::kUnary;
  static const std::map<std::string, DType> kTypes = {
      {"bfloat16", DType::kBF16}, {"float16", DType::kF16}, {"float32", DType::kF32}};
  if (!texts.dtype.empty()) options->dtype = kTypes.at(texts.dtype);
  options->accept.clear();
  for (const std::string& part : CLI::detail::split(texts.accept, ',')) {
    double probability = 0;
    if (!CLI::detail::lexical_cast(part, probability)) {
      return BadFlag("--accept", absl::StrCat("'", texts.accept, "'"),
                     "expected probabilities separated by commas; write for example 0.7,0.5");
    }
    options->accept.push_back(probability);
  }
  return absl::OkStatus();
}

void AddFlags(CLI::App& app, LoadOptions& o, Texts& texts) {
  app.add_option("--address", o.address, "The server: host:port or unix:PATH")
      ->capture_default_str();
  app.add_option("--transport", texts.transport, "unary, or stream (all sessions on one stream)")
      ->check(CLI::IsMember({"unary", "stream"}))
      ->capture_default_str();
  app.add_option("--sessions", o.sessions, "Sessions open at a time (closed loop)")
      ->capture_default_str();
  app.add_option("--requests", o.requests,
                 "Sessions to run in all [default: --sessions, or every recorded sequence]");
  app.add_option("--duration", texts.duration,
                 "Run sessions for this long instead, warm-up included, e.g. 30s");
  app.add_option("--rounds", o.rounds,
                 "Rounds of a session [default: 64, or to the end of the recorded sequence]");
  app.add_option("--warmup", texts.warmup, "Time at the start that no figure counts")
      ->capture_default_str();
  app.add_option("--k", o.k, "Tokens to draft a round; a tree says it itself")
      ->capture_default_str();
  app.add_option("--tree", texts.tree,
                 "D,K,N: draft trees of D levels, K children a node, N tokens");
  app.add_option("--temperature", o.temperature,
                 "Above 0: draw the drafts, and have the server tell what they were drawn from")
      ->capture_default_str();
  app.add_flag("--adaptive-k", o.adaptive_k, "Let the server choose up to k tokens a round");
  app.add_option("--verify-time", texts.verify_time,
                 "With --adaptive-k: what the made-up target says a verification took")
      ->capture_default_str();
  app.add_option("--client", o.client,
                 "Whose quota and share of the server the sessions belong to");
  app.add_option("--prompt-rows", o.prompt_rows, "Rows of a synthetic prompt")
      ->capture_default_str();
  app.add_option("--dtype", texts.dtype,
                 "Of synthetic rows [default: bfloat16 if the server takes it]")
      ->check(CLI::IsMember({"bfloat16", "float16", "float32"}));
  app.add_option(
         "--accept", texts.accept,
         "P1,P2,...: probability that draft token i is accepted when all before it were; the "
         "last one holds for all that follow")
      ->capture_default_str();
  app.add_option("--recording", o.recording,
                 "Recorded rows and tokens in place of synthetic ones: a folder with "
                 "recording.safetensors and recording.json, or the .safetensors file");
  app.add_option("--seed", o.seed, "Of everything random; the same seed runs the same sessions")
      ->capture_default_str();
  app.add_option("--deadline", texts.deadline, "Of one call")->capture_default_str();
  app.add_option("--json", o.json_path,
                 "Write the report as JSON to this file; - for the terminal");
  app.add_flag("--quiet", o.quiet, "Print nothing but errors");
}

}  // namespace

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

absl::Status LoadOptions::Validate() const {
  if (sessions < 1 || sessions > 4096) {
    return BadFlag("--sessions", absl::StrCat(sessions), "give 1 to 4096");
  }
  if (requests.has_value() && duration.has_value()) {
    return BadFlag("--requests", absl::StrCat(*requests),
                   "it contradicts --duration; give only one of the two");
  }
  if (requests.has_value() && *requests < 1) {
    return BadFlag("--requests", absl::StrCat(*requests), "give 1 or more");
  }
  if (rounds.has_value() && *rounds < 1) {
    return BadFlag("--rounds", absl::StrCat(*rounds), "give 1 or more");
  }
  if (duration.has_value() && *duration <= warmup) {
    return BadFlag("--duration", absl::FormatDuration(*duration),
                   absl::StrCat("nothing is left after --warmup ", absl::FormatDuration(warmup),
                                "; give more"));
  }
  if (warmup < absl::ZeroDuration()) {
    return BadFlag("--warmup", absl::FormatDuration(warmup), "give 0s or more");
  }
  if (deadline <= absl::ZeroDuration()) {
    return BadFlag("--deadline", absl::FormatDuration(deadline), "give more than 0s");
  }
  if (absl::Status session = SessionOptionsOf().Validate(); !session.ok()) {
    return BadFlag("--tree, --temperature, --adaptive-k or --client", "contradictory",
                   std::string(session.message()));
  }
  if (verify_time <= absl::ZeroDuration()) {
    return BadFlag("--verify-time", absl::FormatDuration(verify_time), "give more than 0s");
  }
  if (k < 1 || k > 128) return BadFlag("--k", absl::StrCat(k), "give 1 to 128");
  if (prompt_rows < 1 || prompt_rows > 1'000'000) {
    return BadFlag("--prompt-rows", absl::StrCat(prompt_rows), "give 1 to 1000000");
  }
  if (accept.empty()) return BadFlag("--accept", "empty", "give at least one probability");
  for (const double probability : accept) {
    if (!(probability >= 0.0 && probability <= 1.0)) {
      return BadFlag("--accept", absl::StrCat(probability), "give probabilities from 0 to 1");
    }
  }
  return absl::OkStatus();
}

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  Texts texts;
  CLI::App app("aerie-load: puts a draft server under load and reports what a worker would see.",
               "aerie-load");
  app.footer(kFooter);
  app.set_version_flag(
      "--version", absl::StrCat("aerie-load ", kVersion, *kRevision == '\0' ? "" : " ", kRevision));
  AddFlags(app, line.options, texts);
  absl::Status status;
  try {
    app.parse(argc, argv);
    status = ReadTexts(texts, &line.options);
    if (status.ok()) status = line.options.Validate();
    if (status.ok() && line.options.tree.has_value() && app.count("--k") > 0) {
      status = BadFlag("--k", absl::StrCat(line.options.k),
                       "it contradicts --tree, whose last number says how many; leave it out");
    }
    if (status.ok() && !line.options.adaptive_k && app.count("--verify-time") > 0) {
      status =
          BadFlag("--verify-time", "given", "only --adaptive-k asks for it; give both or neither");
    }
    if (status.ok() && !line.options.recording.empty()) {
      for (const char* flag : {"--prompt-rows", "--accept", "--dtype"}) {
        if (app.count(flag) == 0) continue;
        status =
            BadFlag(flag, "given", "it contradicts --recording, which has its own; leave it out");
      }
    }
  } catch (const CLI::CallForHelp&) {
    line.exit_code = 0;
    line.text = app.help();
    return line;
  } catch (const CLI::CallForVersion&) {
    line.exit_code = 0;
    line.text = absl::StrCat(app.version(), "\n");
    return line;
  } catch (const CLI::ParseError& error) {
    status = absl::InvalidArgumentError(
        absl::StrCat(error.what(), "; run aerie-load --help for all flags and their values"));
  }
  if (!status.ok()) {
    line.exit_code = 2;
    line.text = absl::StrCat("aerie-load: ", status.message(), "\n");
  }
  return line;
}

}  // namespace aerie::loadtest
