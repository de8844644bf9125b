#include "common/wiring_report.h"

#include "common/check.h"

namespace aerie {
namespace {

int32_t Badness(WiringState state) {
  switch (state) {
    case WiringState::kOk:
      return 0;
    case WiringState::kUnknown:
      return 1;
    case WiringState::kSuspect:
      return 2;
    case WiringState::kWrong:
      return 3;
  }
  AERIE_CHECK(false) << "no such state";
}

}  // namespace

absl::string_view WiringStateName(WiringState state) {
  switch (state) {
    case WiringState::kUnknown:
      return "unknown";
    case WiringState::kOk:
      return "ok";
    case WiringState::kSuspect:
      return "suspect";
    case WiringState::kWrong:
      return "wrong";
  }
  AERIE_CHECK(false) << "no such state";
}

absl::string_view GuardModeName(GuardMode mode) {
  switch (mode) {
    case GuardMode::kOff:
      return "off";
    case GuardMode::kAlert:
      return "alert";
    case GuardMode::kNotServing:
      return "not-serving";
  }
  AERIE_CHECK(false) << "no such mode";
}

bool IsWorse(WiringState a, WiringState b) { return Badness(a) > Badness(b); }

WiringState WorstWiringState(absl::Span<const WiringReport> reports) {
  if (reports.empty()) return WiringState::kUnknown;
  WiringState worst = WiringState::kOk;
  for (const WiringReport& report : reports) {
    if (IsWorse(report.state, worst)) worst = report.state;
  }
  return worst;
}

}  // namespace aerie
