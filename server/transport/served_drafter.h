// One loaded version of a drafter, as calls see it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "aerie/v1/draft.pb.h"
#include "common/wiring_report.h"
#include "server/engine/draft_engine.h"
#include "server/engine/round_observer.h"

namespace aerie {

struct ServedDrafter {
  std::string name;
  // What the ids of its sessions begin with, and those of no other version; kSessionTagLength
  // characters. Empty only where there is never another drafter.
  std::string session_tag;
  DraftEngine* engine = nullptr;            // lives as long as this
  RoundObserver* round_observer = nullptr;  // told of malformed calls; may be null
  // Of GetServerInfo: what it is, what its calls may bring, whether the guard has a profile.
  v1::DrafterInfo info;
  v1::Limits limits;
  bool guard_profile = false;
  // What changes while it is served. Any thread; must not block.
  std::function<WiringState()> wiring_state;  // the worst of all sources; empty: the guard is off
  std::function<bool()> recording;            // empty: nothing is ever recorded
};

// Whoever holds it keeps the version loaded.
using ServedDrafterPtr = std::shared_ptr<const ServedDrafter>;

inline constexpr size_t kSessionTagLength = 4;

}  // namespace aerie
