// What the pages of runs and sweeps begin with.
#pragma once

#include <string>
#include <vector>

#include "client/loadtest/report.h"

namespace aerie::loadtest {

// Up to and with the page's heading; ends inside the body. The style serves svg_chart.h too.
std::string HtmlHead(const std::string& title, absl::Time started, const ServerFacts& server,
                     const std::vector<std::string>& arguments);

}  // namespace aerie::loadtest
