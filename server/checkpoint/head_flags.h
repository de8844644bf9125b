// The keys of a head's config.json that change the maths and may hold only one value here.
#pragma once

#include <vector>

#include "common/setting.h"
#include "server/checkpoint/config_view.h"
#include "server/checkpoint/head_config.h"

namespace aerie {

// Complains of every key that asks for something that is not done here. Returns the settings that a
// reader should see, each with its source.
std::vector<Setting> CheckHeadFlags(const ConfigView& config);

// The rotation, from any of the spellings of config.json. Complains of scaled or otherwise unusual
// ones, and of spellings that contradict each other.
RopeSpec ReadRope(const ConfigView& config);

}  // namespace aerie
