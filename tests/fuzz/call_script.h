// Conversations with a server as bytes: what the targets of calls are fed with.
//
// A script is a byte of settings and then stream requests, each behind its length in two bytes,
// little-endian. Nobody knows the ids of sessions before they are opened, so scripts call them @0,
// @1, .. in the order in which they were. A script may also be the text "worker KIND": an honest
// worker's conversation of that kind, from which others are made by changing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aerie/v1/draft.pb.h"

namespace aerie {

struct CallScript {
  uint8_t settings = 0;
  std::vector<std::string> frames;  // messages, or what once were some
};

// Never fails: what is left at the end is a shorter frame, and an unknown kind of worker says
// nothing.
CallScript ReadScript(std::string_view bytes);
std::string WriteScript(const CallScript& script);

// Changes a script in one place: a field of a message, an entry added, repeated, dropped or moved.
// As LLVMFuzzerCustomMutator.
size_t MutateScript(uint8_t* data, size_t size, size_t max_size, unsigned seed);

// Puts the id of a session in the place of @N, anywhere in `message`.
void NameSessions(const std::vector<std::string>& ids, v1::DraftStreamRequest* message);

}  // namespace aerie
