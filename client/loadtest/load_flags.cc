// The flags themselves; load_flags_read.cc reads what was typed.
#include "client/loadtest/load_flags.h"

namespace aerie::loadtest {

LoadFlags::LoadFlags(CLI::App* app) : app_(*app) {
  AddConnection();
  AddLoad();
  AddSession();
  AddFaultsAndLimits();
  AddReports();
}

void LoadFlags::AddConnection() {
  const std::string group = "Connection";
  app_.add_option("--address", o_.address, "The server: host:port or unix:PATH")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--tls-ca", o_.files.tls_ca,
                  "PEM certificates that sign the server's: speak TLS. Not on Unix sockets.")
      ->group(group)
      ->type_name("FILE");
  app_.add_option("--tls-cert", o_.files.tls_cert,
                  "PEM certificate of this client, for mutual TLS.")
      ->group(group)
      ->type_name("FILE");
  app_.add_option("--tls-key", o_.files.tls_key, "PEM key of --tls-cert.")
      ->group(group)
      ->type_name("FILE");
  app_.add_option("--tls-server-name", o_.files.tls_server_name,
                  "Name to find in the server's certificate; default: that of the address.")
      ->group(group)
      ->type_name("NAME");
  app_.add_option("--token-file", o_.files.token_file,
                  "File with the token that calls carry, alone on a line.")
      ->group(group)
      ->type_name("FILE");
  app_.add_option("--transport", texts_["--transport"] = "unary",
                  "unary, or stream (the sessions of a connection share one)")
      ->check(CLI::IsMember({"unary", "stream"}))
      ->capture_default_str()
      ->group(group);
  app_.add_flag("--shared-memory", o_.shared_memory,
                "Leave rows in shared memory, for a server on this host that was started with "
                "--shared-memory")
      ->group(group);
  app_.add_option("--connections", o_.connections, "Connections, on which sessions take turns")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--deadline", texts_["--deadline"] = "30s", "Of one call")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--client", o_.client, "Whose quota and share of the server the sessions are of")
      ->group(group);
}

void LoadFlags::AddLoad() {
  const std::string group = "Load (docs/load.md)";
  app_.add_option("--sessions", texts_["--sessions"] = "8",
                  "Sessions open at a time: a number, or steps and ramps with their times, e.g. "
                  "1:10s,8:10s,8-64:30s")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--rate", texts_["--rate"],
                  "Open loop: rounds a second, likewise; without it a session starts a round when "
                  "its last one is done")
      ->group(group);
  app_.add_option("--arrivals", texts_["--arrivals"] = "poisson",
                  "With --rate, when rounds start: constant, poisson or gamma")
      ->check(CLI::IsMember({"constant", "poisson", "gamma"}))
      ->capture_default_str()
      ->group(group);
  app_.add_option("--burstiness", o_.burstiness,
                  "With --arrivals gamma: shape of the gaps; 1 is Poisson, below it bursts")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--think-time", texts_["--think-time"] = "0s",
                  "Without --rate: from a round's end to the next start, as a target verifies")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--requests", o_.requests,
                  "Sessions to run in all [default: --sessions, or every recorded sequence]")
      ->group(group);
  app_.add_option("--total-rounds", o_.total_rounds, "Rounds to run in all, over all sessions")
      ->group(group);
  app_.add_option("--duration", texts_["--duration"], "Time to run, warm-up included, e.g. 30s")
      ->group(group);
  app_.add_option("--warmup", texts_["--warmup"] = "0s", "Time at the start that no figure counts")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--seed", o_.seed, "Of everything random; the same seed runs the same sessions")
      ->capture_default_str()
      ->group(group);
}

void LoadFlags::AddSession() {
  const std::string group = "Session";
  app_.add_option("--rounds", o_.rounds,
                  "Rounds of a session [default: 64, or to the end of the recorded sequence]")
      ->group(group);
  app_.add_option("--k", o_.k, "Tokens to draft a round; a tree says it itself")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--tree", texts_["--tree"],
                  "D,K,N: draft trees of D levels, K children a node, N tokens")
      ->group(group);
  app_.add_option("--temperature", o_.temperature,
                  "Above 0: draw the drafts, and have the server tell what they were drawn from")
      ->capture_default_str()
      ->group(group);
  app_.add_flag("--adaptive-k", o_.adaptive_k, "Let the server choose up to k tokens a round")
      ->group(group);
  app_.add_option("--verify-time", texts_["--verify-time"] = "20ms",
                  "With --adaptive-k: what the made-up target says a verification took")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--prompt-rows", o_.prompt_rows, "Rows of a synthetic prompt")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--dtype", texts_["--dtype"],
                  "Of synthetic rows on the wire [default: bfloat16 if the server takes it]")
      ->check(CLI::IsMember({"bfloat16", "float16", "float32", "float8_e4m3fn"}))
      ->group(group);
  app_.add_flag("--fused", o_.fused,
                "Synthetic rows are as wide as the drafter's own states, as if fc had been applied")
      ->group(group);
  app_.add_option("--accept", texts_["--accept"] = "0.7",
                  "P1,P2,...: probability that draft token i is kept when all before it were, the "
                  "last for all that follow; or fixed:N1,N2,...: tokens kept, round by round")
      ->capture_default_str()
      ->group(group);
  app_.add_option("--recording", o_.recording,
                  "Recorded rows and tokens in place of synthetic ones: a folder with "
                  "recording.safetensors and recording.json, or the .safetensors file")
      ->group(group);
}

void LoadFlags::AddFaultsAndLimits() {
  const std::string faults = "Faults on purpose (shares of rounds, 0 to 1, default 0)";
  app_.add_option("--fault-cancel", o_.faults.cancel, "A call beside is cancelled")->group(faults);
  app_.add_option("--fault-deadline", o_.faults.deadline, "A call beside has too little time")
      ->group(faults);
  app_.add_option("--fault-deadline-time", texts_["--fault-deadline-time"] = "500us", "How little")
      ->capture_default_str()
      ->group(faults);
  app_.add_option("--fault-slow-reader", o_.faults.slow_reader,
                  "A stream beside sends 32 calls before it reads")
      ->group(faults);
  app_.add_option("--fault-reconnect", o_.faults.reconnect,
                  "A session beside loses its connection and goes on on another")
      ->group(faults);
  app_.add_option("--fault-malformed", o_.faults.malformed, "A call beside makes no sense")
      ->group(faults);
  const std::string limits = "Limits";
  app_.add_option("--slo", slo_,
                  "What has to hold, e.g. p99=20ms, mean=5ms, max=1s (latency from the intended "
                  "start), rate=200, accept-length=2.5 (at least); may be repeated")
      ->group(limits);
  app_.add_option("--error-budget", o_.error_budget, "Share of rounds that may fail")
      ->capture_default_str()
      ->group(limits);
  app_.add_option("--goodput", texts_["--goodput"],
                  "Count the rounds up to this latency as good, e.g. 20ms")
      ->group(limits);
}

void LoadFlags::AddReports() {
  const std::string group = "Reports";
  app_.add_option("--metrics", o_.metrics,
                  "HOST:PORT of the server's metrics page, or https://HOST:PORT if it has "
                  "--metrics-tls, to compare its counters with the run. Over HTTPS the --tls flags "
                  "hold; without --tls-ca the system's authorities do.")
      ->group(group)
      ->type_name("HOST:PORT");
  app_.add_option("--metrics-token-file", o_.metrics_token_file,
                  "File with the token that opens the page, alone on a line; its role is metrics "
                  "[default: --token-file]")
      ->group(group)
      ->type_name("FILE");
  app_.add_option("--json", o_.json_path, "Write the report as JSON; - for the terminal")
      ->group(group);
  app_.add_option("--html", o_.html_path, "Write it as one page with plots")->group(group);
  app_.add_flag("--quiet", o_.quiet, "Print nothing but errors")->group(group);
}

}  // namespace aerie::loadtest
