// What opens a session, and what adaptive k is told and tells <-> messages of proto/aerie/v1.
//
// A message without `sampling` is temperature 0 in SessionOptions; one that has it must say a
// temperature above 0.
#pragma once

#include "absl/status/statusor.h"
#include "aerie/v1/draft.pb.h"
#include "common/adaptive_k.h"
#include "common/session_options.h"

namespace aerie::rpc {

// Of `options` what is in v1::SessionOptions: not fork, start, client and traceparent.
void EncodeSessionOptions(const SessionOptions& options, v1::SessionOptions* out);
// INVALID_ARGUMENT, reason OPTIONS_INVALID, names the field: out of its range, or a contradiction.
absl::StatusOr<SessionOptions> DecodeSessionOptions(const v1::SessionOptions& options);

// All of `options`; the manifest is left as it is.
void EncodeOpening(const SessionOptions& options, v1::OpenSessionRequest* out);
// As DecodeSessionOptions.
absl::StatusOr<SessionOptions> DecodeOpening(const v1::OpenSessionRequest& request);

void EncodeVerifyCost(const VerifyCost& cost, v1::VerifyCost* out);
// INVALID_ARGUMENT, reason REQUEST_INVALID, unless the time is above 0.
absl::StatusOr<VerifyCost> DecodeVerifyCost(const v1::VerifyCost& cost);

void EncodeKChoice(const KChoice& choice, v1::KChoice* out);
KChoice DecodeKChoice(const v1::KChoice& choice);

}  // namespace aerie::rpc
