// The registry of drafters as AdminService asks for it.
#pragma once

#include "server/serving/drafter_registry.h"
#include "server/transport/admin_service.h"

namespace aerie {

// Until `registry` goes away.
void AddDrafters(DrafterRegistry* registry, AdminBackend* backend);

}  // namespace aerie
