// The commands of aerie-admin about the drafters of a server: drafters, load, reload and unload.
//
// Folders are the server's, which reads them itself; nothing of a head is read or sent from here.
#pragma once

#include "client/admin/admin_commands.h"
#include "client/admin/admin_flags.h"

namespace aerie::admin {

// Each blocks up to the timeout. A server that is asked to load goes on even if the time is up.
Outcome ListDrafters(const AdminOptions& options);
Outcome LoadDrafter(const AdminOptions& options);
Outcome ReloadDrafter(const AdminOptions& options);
Outcome UnloadDrafter(const AdminOptions& options);

}  // namespace aerie::admin
