#include "server/config/guard_setup.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/guard/guard_profile_json.h"

namespace aerie {

absl::StatusOr<std::optional<GuardProfile>> LoadGuardProfile(GuardMode mode,
                                                             const std::string& text,
                                                             const Wiring& wiring,
                                                             int32_t target_hidden_size) {
  if (mode == GuardMode::kOff) return std::nullopt;
  if (!text.empty()) {
    absl::StatusOr<GuardProfile> profile = GuardProfileOf(text, wiring, target_hidden_size);
    if (profile.ok()) return *std::move(profile);
    return absl::InvalidArgumentError(
        absl::StrCat(profile.status().message(), ", or start with --wiring-guard off"));
  }
  if (mode == GuardMode::kNotServing) {
    return absl::InvalidArgumentError(
        "--wiring-guard is not-serving but there is no wiring.json with a guard's profile beside "
        "the head; expected one, without which no worker can be told to be wrong; make it with "
        "aerie-verify --write-wiring, or give alert");
  }
  return std::nullopt;
}

std::string DescribeGuard(GuardMode mode, const std::optional<GuardProfile>& profile) {
  if (mode == GuardMode::kOff) return "wiring guard: off";
  const std::string head = absl::StrCat("wiring guard: ", std::string(GuardModeName(mode)));
  if (!profile.has_value()) {
    return absl::StrCat(head,
                        ", without a profile of the target's rows: it sees workers that count "
                        "other drafts as accepted, and nothing else; aerie-verify --write-wiring "
                        "makes one");
  }
  return absl::StrCat(head, ", compares rows with ", profile->rows, " recorded ones of ",
                      profile->sequences, " sequences, at each capture with ",
                      profile->places.front().alternatives.size(), " others");
}

WiringFacts WiringFactsOf(GuardMode mode, const Wiring& wiring,
                          const std::optional<GuardProfile>& profile) {
  WiringFacts facts;
  facts.mode = std::string(GuardModeName(mode));
  if (mode == GuardMode::kOff) return facts;
  facts.captures = wiring.size();
  if (!profile.has_value()) return facts;
  for (const GuardPlace& place : profile->places) facts.expected_rms.push_back(place.rms);
  if (profile->expectation.has_value()) {
    facts.expected_accept_length = profile->expectation->AcceptLength();
  }
  return facts;
}

}  // namespace aerie
