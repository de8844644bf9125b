#include "server/verify/verify_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "server/inspect/checkpoint_flags.h"

namespace aerie {
namespace {

constexpr char kAbout[] =
    "aerie-verify: says which of a target's recorded hidden states a head wants, in which order, "
    "by "
    "drafting from them and looking at the tokens that followed. Labels are checked, not believed. "
    "Exit code 0: the declared wiring is verified; 3: it is contradicted; 4: undecided; 5: others "
    "are as good; 2: the input is bad; 1: the command line cannot be read.";

void AddSearchFlags(CLI::App& app, VerifyOptions& options) {
  app.add_option("--rows", options.max_rows, "Most rows that a candidate is scored on.")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str()
      ->type_name("ROWS");
  app.add_option("--depth", options.depth, "Draft depths to report.")
      ->check(CLI::Range(1, 16))
      ->capture_default_str()
      ->type_name("DEPTH");
  app.add_option("--chains", options.max_chains,
                 "Most rows behind which chains are drafted, for the accuracy by depth.")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str()
      ->type_name("ROWS");
  app.add_option("--coarse-rows", options.search.coarse_rows,
                 "Rows on which all candidates are scored, before the close ones are on more.")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str()
      ->type_name("ROWS");
  app.add_option("--max-candidates", options.search.max_candidates,
                 "Most candidates that are looked at when there are too many to try all.")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->type_name("COUNT");
  app.add_option("--max-thorough", options.search.max_thorough,
                 "Most candidates that are scored on all rows.")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->type_name("COUNT");
  app.add_option("--alpha", options.search.statistics.alpha,
                 "How often any candidate at all may be told apart wrongly.")
      ->check(CLI::Range(1e-9, 0.2))
      ->capture_default_str()
      ->type_name("PROBABILITY");
  app.add_option("--margin", options.search.statistics.margin,
                 "Log-likelihood a row, in nats, below which two candidates are as good.")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str()
      ->type_name("NATS");
}

}  // namespace

absl::StatusOr<VerifyFlags> ParseVerifyFlags(const std::vector<std::string>& arguments) {
  CLI::App app(kAbout, "aerie-verify");
  VerifyFlags flags;
  app.add_option("--drafter", flags.drafter, "Folder of the head: config.json, model.safetensors.")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--captures", flags.captures,
                 "Folder of the recording: recording.json and shards.")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--target", flags.target,
                 "Folder of the target: config.json, what the head borrows, its embedding and its "
                 "final norm.")
      ->required()
      ->type_name("FOLDER");
  app.add_option_function<std::vector<std::string>>(
         "--json",
         [&flags](const std::vector<std::string>& file) {
           flags.json = file.empty() ? std::string() : file[0];
         },
         "Write one JSON object to FILE, or print it in place of the table.")
      ->expected(0, 1)
      ->type_name("FILE");
  app.add_option("--html", flags.html, "Write a report with plots, one file.")->type_name("FILE");
  app.add_flag("--write-wiring", flags.write_wiring,
               "Write wiring.json beside the head when the declared wiring is verified or as good "
               "as any, with the profile that the server's live guard compares rows with.");
  app.add_flag("!--no-what-if", flags.what_if, "Do not try other settings of the head.");
  app.add_option("--threads", flags.threads, "CPU threads; 0: found.")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->type_name("THREADS");
  AddSearchFlags(app, flags.options);
  AddCheckpointFlags(app, flags.checkpoint);
  AddVersionFlag(app);

  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    flags.print = app.help();
    return flags;
  } catch (const CLI::CallForVersion& version) {
    flags.print = version.what();
    return flags;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the command line cannot be read: ", error.what(),
        "; expected --drafter, --captures, --target and only the flags that --help lists; correct "
        "or remove it"));
  }
  flags.checkpoint.ignore_wiring_file = true;
  return flags;
}

}  // namespace aerie
