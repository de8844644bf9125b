// How an event becomes a line of the log. Not for who logs: see log.h.
//
// One event is one line whatever its message holds: a message may carry what a client sent.
#pragma once

#include <memory>
#include <string>

#include "common/log.h"
#include "spdlog/formatter.h"

namespace aerie {

// Of the innermost LogScope of this thread; never null.
const LogFields* CurrentLogFields();

// "2026-01-31T12:00:00.123+00:00 info listening on ... session=... trace=...". Control characters
// of the message come out as \n, \x1b and so on.
std::unique_ptr<spdlog::formatter> TextLogFormatter();

// {"time": RFC 3339 in UTC, "level", "message", "drafter", "session", "trace"}; the last three only
// when they are known. Bytes that are no UTF-8 come out as U+FFFD.
std::unique_ptr<spdlog::formatter> JsonLogFormatter();

// The name that JSON lines carry; see SetLogDrafter().
std::string LogDrafter();

}  // namespace aerie
