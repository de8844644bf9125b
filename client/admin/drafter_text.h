// What aerie-admin prints for people about drafters. Each text ends with a line break.
#pragma once

#include <string>

#include "aerie/v1/admin.pb.h"

namespace aerie::admin {

// A table with a line for each.
std::string ToText(const v1::ListDraftersResponse& list);
std::string ToText(const v1::LoadDrafterResponse& loaded);
std::string ToText(const v1::ReloadDrafterResponse& reloaded);
std::string ToText(const v1::UnloadDrafterResponse& unloaded);

}  // namespace aerie::admin
