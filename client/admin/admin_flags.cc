#include "client/admin/admin_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "aerie_version.h"
#include "client/admin/drafter_flags.h"

namespace aerie::admin {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 done, and what was asked about is well; 1 the server does not serve now; 2 the "
    "command line cannot be read, or the server cannot be asked; 3 a wiring is wrong; 4 a wiring "
    "is suspect or not known yet; 5 a drafter was not loaded, reloaded or unloaded, and nothing "
    "has "
    "changed.";

// Of commands that ask, and of those that wait for loads: large heads on cold disks take minutes.
constexpr absl::Duration kAskTimeout = absl::Seconds(5);
constexpr absl::Duration kLoadTimeout = absl::Minutes(10);

absl::Status Bad(const std::string& seen) {
  return absl::InvalidArgumentError(
      absl::StrCat("the command line cannot be read: ", seen,
                   "; expected one of health, info, wiring, log-level, drafters, load, reload and "
                   "unload with the "
                   "flags that --help lists; correct or remove it"));
}

}  // namespace

absl::StatusOr<AdminOptions> ParseAdminFlags(const std::vector<std::string>& arguments) {
  AdminOptions options;
  CLI::App app(absl::StrCat("aerie-admin: asks a running aerie-server, and tells it. ", kExitCodes),
               "aerie-admin");
  app.get_formatter()->column_width(36);
  app.set_help_flag("-h,--help", "Print this and leave.");
  // So that flags may stand behind the command, where people write them.
  app.fallthrough();
  app.require_subcommand(0, 1);
  bool version = false;
  app.add_flag("--version", version, "Print the version and leave.");
  app.add_option("--address", options.address,
                 "Where the server drafts, its --listen: host:port or unix:PATH. For health and "
                 "info.")
      ->capture_default_str()
      ->type_name("ADDRESS");
  app.add_option("--admin-address", options.admin_address,
                 "Where it is administered, its --admin-listen. For all other commands.")
      ->capture_default_str()
      ->type_name("ADDRESS");
  std::string timeout;
  app.add_option("--timeout", timeout,
                 "How long the command may take, with its unit, above 0s. Default: 5s, and 10m for "
                 "load, reload and unload, which wait for loads.")
      ->type_name("TIME");
  app.add_option("--tls-ca", options.files.tls_ca,
                 "PEM certificates that sign the server's: speak TLS. Not on Unix sockets.")
      ->type_name("FILE");
  app.add_option("--tls-cert", options.files.tls_cert,
                 "PEM certificate of this client, for mutual TLS.")
      ->type_name("FILE");
  app.add_option("--tls-key", options.files.tls_key, "PEM key of --tls-cert.")->type_name("FILE");
  app.add_option("--tls-server-name", options.files.tls_server_name,
                 "Name to find in the server's certificate; default: that of the address.")
      ->type_name("NAME");
  app.add_option("--token-file", options.files.token_file,
                 "File with the token that calls carry, alone on a line.")
      ->type_name("FILE");
  app.add_flag("--json", options.json, "Print one JSON object, as the wire has it.");

  CLI::App* const health = app.add_subcommand("health", "Whether the server serves.");
  CLI::App* const info = app.add_subcommand(
      "info", "What the server is and holds: build, drafter, limits, settings and their sources.");
  CLI::App* const wiring =
      app.add_subcommand("wiring", "What the live guard thinks of the rows that workers send.");
  wiring->add_option("--client", options.client, "Only reports of this client.")->type_name("NAME");
  CLI::App* const level =
      app.add_subcommand("log-level", "Which events the server logs; with LEVEL, changes that.");
  level->add_option("level", options.level, "debug, info, warn, error or off.")->type_name("LEVEL");
  const DrafterWords drafters = AddDrafterCommands(&app, &options);

  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    options.print = app.help("", CLI::AppFormatMode::All);
    return options;
  } catch (const CLI::ParseError& error) {
    return Bad(error.what());
  }
  if (version) {
    options.print = absl::StrCat("aerie-admin ", kVersion, kRevision[0] == '\0' ? "" : " revision ",
                                 kRevision, " (", kCompiler, ")\n");
    return options;
  }
  if (*health) {
    options.command = Command::kHealth;
  } else if (*info) {
    options.command = Command::kInfo;
  } else if (*wiring) {
    options.command = Command::kWiring;
  } else if (*level) {
    options.command = Command::kLogLevel;
  } else if (*drafters.list) {
    options.command = Command::kDrafters;
  } else if (*drafters.load) {
    options.command = Command::kLoad;
  } else if (*drafters.reload) {
    options.command = Command::kReload;
  } else if (*drafters.unload) {
    options.command = Command::kUnload;
  } else {
    return Bad("there is no command");
  }
  if (timeout.empty()) {
    const bool loads = *drafters.load || *drafters.reload || *drafters.unload;
    options.timeout = loads ? kLoadTimeout : kAskTimeout;
  } else if (!absl::ParseDuration(timeout, &options.timeout) ||
             options.timeout <= absl::ZeroDuration() ||
             options.timeout == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout is \"", timeout,
                     "\"; expected a time above 0s with its unit; give one like 5s"));
  }
  if (const absl::Status folders = CheckFolders(options); !folders.ok()) return folders;
  return options;
}

}  // namespace aerie::admin
