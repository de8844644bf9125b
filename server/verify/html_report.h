// The result of aerie-verify as one HTML file for people: verdict first, then plots and tables.
//
// Self-contained: no script, no link, no font or picture from elsewhere, so it can be mailed and
// opens offline. Names in it come from files and are escaped, all of them.
#pragma once

#include <string>

#include "server/verify/verify_result.h"

namespace aerie {

std::string VerifyResultAsHtml(const VerifyResult& result);

}  // namespace aerie
