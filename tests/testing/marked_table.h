// Tables that tests measure, printed and on request kept in a documentation page.
#pragma once

#include "absl/strings/string_view.h"

namespace aerie {

// Prints `table` (Markdown). When the environment variable AERIE_TABLE_FILE names a file, the lines
// in it between <!-- begin NAME --> and <!-- end NAME --> become the table:
//   AERIE_TABLE_FILE=docs/sampling.md build/release/tests/verify_statistics_test
// False: the file cannot be read or written, or lacks the marks.
bool PutTable(absl::string_view name, absl::string_view table);

}  // namespace aerie
