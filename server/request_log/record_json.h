// One line of the request log: what became of one session. docs/logging.md lists the fields.
#pragma once

#include <string>

#include "server/engine/round_observer.h"

namespace aerie {

// What is the same in all lines.
struct RecordOrigin {
  std::string drafter;
  std::string version;  // digest of its weights
};

// A JSON object without a line break. What is not defined (a rate of no drafts) is null.
std::string ToJsonLine(const SessionRecord& record, const RecordOrigin& origin);

}  // namespace aerie
