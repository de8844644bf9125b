// Text for HTML and SVG, attributes included.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace aerie {

// Safe wherever text may stand. Line breaks and tabs become spaces; other control characters and
// bytes that are no UTF-8 become U+FFFD.
std::string Escaped(absl::string_view text);

}  // namespace aerie
