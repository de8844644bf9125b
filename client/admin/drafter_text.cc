#include "client/admin/drafter_text.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/admin/admin_text.h"

namespace aerie::admin {
namespace {

using Line = std::array<std::string, 6>;

const char* NameOf(v1::DrafterState state) {
  switch (state) {
    case v1::DRAFTER_STATE_LOADING:
      return "loading";
    case v1::DRAFTER_STATE_SERVING:
      return "serving";
    case v1::DRAFTER_STATE_DRAINING:
      return "draining";
    default:
      return "unknown";
  }
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : Printable(text); }

Line ToLine(const v1::DrafterStatus& drafter) {
  return {OrDash(drafter.name()),           OrDash(drafter.info().version()),
          NameOf(drafter.state()),          drafter.has_since() ? TimeText(drafter.since()) : "-",
          absl::StrCat(drafter.sessions()), OrDash(drafter.source().folder())};
}

// "drafter NAME version VERSION".
std::string Called(const v1::DrafterStatus& drafter) {
  return absl::StrCat("drafter ", Printable(drafter.name()), " version ",
                      OrDash(drafter.info().version()));
}

}  // namespace

std::string ToText(const v1::ListDraftersResponse& list) {
  std::vector<Line> lines = {{"NAME", "VERSION", "STATE", "SINCE", "SESSIONS", "FOLDER"}};
  for (const v1::DrafterStatus& drafter : list.drafters()) lines.push_back(ToLine(drafter));
  std::array<size_t, std::tuple_size_v<Line>> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const Line& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      absl::StrAppend(&out, line[i], std::string(widths[i] - line[i].size() + 2, ' '));
    }
    absl::StrAppend(&out, line.back(), "\n");
  }
  return out;
}

std::string ToText(const v1::LoadDrafterResponse& loaded) {
  return absl::StrCat(Called(loaded.drafter()), " takes sessions\n");
}

std::string ToText(const v1::ReloadDrafterResponse& reloaded) {
  return absl::StrCat(Called(reloaded.drafter()),
                      reloaded.unchanged()
                          ? " is what is served already; nothing was replaced\n"
                          : " takes new sessions; those of the version before finish on it\n");
}

std::string ToText(const v1::UnloadDrafterResponse& unloaded) {
  return absl::StrCat(Called(unloaded.drafter()), " takes no new sessions; ",
                      unloaded.drafter().sessions(), " finish on it\n");
}

}  // namespace aerie::admin
