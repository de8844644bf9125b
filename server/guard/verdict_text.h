// Findings as sentences: what is seen, what was expected, what to check.
#pragma once

#include <string>
#include <vector>

#include "common/wiring_report.h"

namespace aerie {

// Of captures that look like others, or have another size. Empty when all look as declared.
std::string CaptureVerdict(const std::vector<PlaceReport>& places);
// Of tokens that belong to other states.
std::string AlignmentVerdict(const AlignmentReport& alignment);

// `sentence`, if any, behind what is there.
void AppendSentence(const std::string& sentence, std::string& text);

}  // namespace aerie
