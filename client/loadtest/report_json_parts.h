// Parts of the JSON reports that runs and sweeps share. Field names are a contract: docs/load.md
// lists them, and a test holds them.
#pragma once

#include <nlohmann/json.hpp>

#include "client/loadtest/histogram.h"
#include "client/loadtest/report.h"

namespace aerie::loadtest {

// Keeps the order in which fields are written.
using Json = nlohmann::ordered_json;

// schema, schema_version, kind, version, revision, compiler, started_at, host, arguments, server.
Json JsonHead(const char* kind, absl::Time started, const std::vector<std::string>& arguments,
              const ServerFacts& server);
Json JsonOf(const Histogram& histogram);
// The options in force.
Json JsonOf(const LoadOptions& options, const Manifest& manifest);
Json JsonOf(const Verdicts& verdicts, const LoadOptions& options);
// As text, with a line end. What a server said may be no UTF-8: a report is worth more than an
// exception.
std::string JsonText(const Json& json);

}  // namespace aerie::loadtest
