#include "server/config/flags.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "aerie_version.h"
#include "common/status_macros.h"
#include "server/config/flag_table.h"
#include "server/config/probe_flags.h"

namespace aerie {
namespace {

// Of one repeatable flag; CLI11 wants a number.
constexpr int kMostRepeats = 4096;
// What CLI11 reads where a flag stands without a value.
constexpr char kStandsAlone[] = "";

std::string VariableOf(const Flag& flag) {
  return absl::StrCat("AERIE_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(flag.name, {{"-", "_"}})));
}

std::string SettingNameOf(const Flag& flag) { return absl::StrReplaceAll(flag.name, {{"-", "_"}}); }

std::string VersionText() {
  return absl::StrCat("aerie-server ", kVersion, kRevision[0] == '\0' ? "" : " revision ",
                      kRevision, " (", kCompiler, ")\n");
}

// Where a flag's texts came from, and what they are.
struct Source {
  std::vector<std::string> texts;
  std::string name;
};

Source SourceOf(const Flag& flag, const std::vector<std::string>& given,
                const Environment& environment) {
  if (!given.empty() && flag.may_stand_alone && given.front() == kStandsAlone) {
    return {{"on"}, absl::StrCat("flag --", flag.name)};
  }
  if (!given.empty()) return {given, absl::StrCat("flag --", flag.name)};
  if (const std::optional<std::string> text = environment(VariableOf(flag))) {
    std::vector<std::string> texts = {*text};
    if (flag.repeatable) texts = absl::StrSplit(*text, ',');
    return {std::move(texts), absl::StrCat("environment ", VariableOf(flag))};
  }
  return {{}, "default"};
}

// A flag that takes several values as texts; CLI11 reads the line and writes the help, the table
// does the rest.
void AddTo(CLI::App& app, const Flag& flag, std::vector<std::string>& texts) {
  CLI::Option* option = app.add_option(absl::StrCat("--", flag.name), texts,
                                       absl::StrCat(flag.help, " Env: ", VariableOf(flag)));
  // CLI11 would take the default for the value of a flag that stands alone, so it is told by name.
  const std::string value =
      flag.may_stand_alone ? absl::StrCat(flag.value, "=", flag.default_text) : flag.value;
  option->type_name(value)->group(flag.group)->type_size(1)->allow_extra_args(false);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(flag.may_stand_alone ? 0 : 1, flag.repeatable ? kMostRepeats : 1);
  if (!flag.default_text.empty() && !flag.may_stand_alone) option->default_str(flag.default_text);
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

absl::StatusOr<Invocation> ParseCommandLine(const std::vector<std::string>& arguments,
                                            const Environment& environment) {
  CLI::App app("aerie-server: a gRPC draft server for EAGLE-3 speculative decoding.",
               "aerie-server");
  app.get_formatter()->column_width(36);
  app.allow_extras();  // so that they can be named in a message of ours
  app.set_help_flag("-h,--help", "Print this and leave.");
  bool version = false;
  app.add_flag("--version", version, "Print the version and leave.");
  ProbeFlags probe(&app);
  const std::vector<Flag> flags = FlagTable();
  std::map<std::string, std::vector<std::string>> given;
  for (const Flag& flag : flags) AddTo(app, flag, given[flag.name]);

  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  Invocation out;
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    out.print = app.help();
    return out;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the command line cannot be read: ", error.what(),
                     "; expected only the flags that --help lists, each with its value; correct "
                     "or remove it"));
  }
  if (!app.remaining().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::StrJoin(app.remaining(), " "),
                     "\" on the command line is not known; expected only the flags that --help "
                     "lists, each with its value; correct or remove it"));
  }
  if (version) {
    out.print = VersionText();
    return out;
  }
  AERIE_ASSIGN_OR_RETURN(out.probe, probe.Read(given));
  if (out.probe.has_value()) return out;
  for (const Flag& flag : flags) {
    const Source source = SourceOf(flag, given[flag.name], environment);
    Setting setting{SettingNameOf(flag), flag.default_text, source.name};
    if (!source.texts.empty()) {
      if (source.texts.size() > 1 && !flag.repeatable) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--", flag.name, " is given ", source.texts.size(), " times (",
            absl::StrJoin(source.texts, ", "), "); expected once; remove all but one"));
      }
      AERIE_RETURN_IF_ERROR(flag.set(source.texts, &out.options));
      setting.value = absl::StrJoin(source.texts, ",");
    }
    out.options.settings.push_back(std::move(setting));
  }
  AERIE_RETURN_IF_ERROR(out.options.Validate());
  return out;
}

}  // namespace aerie
