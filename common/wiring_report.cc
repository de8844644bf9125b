#include "common/wiring_report.h"

#include "common/check.h"

namespace aerie {

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

}  // namespace aerie
