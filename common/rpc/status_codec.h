// absl::Status with an ErrorDetail <-> grpc::Status with a google.rpc.Status in
// `grpc-status-details-bin`.
//
// Texts are cut before they are sent: HTTP/2 trailers hold about 8 KiB, and a client that quotes
// megabytes at us must not lose the whole error for it.
#pragma once

#include "absl/status/status.h"
#include "aerie/v1/draft.pb.h"
#include "grpcpp/support/status.h"

namespace aerie::rpc {

// The `domain` of google.rpc.ErrorInfo.
inline constexpr char kErrorDomain[] = "aerie";

// Details: aerie.v1.ErrorDetail first, then ErrorInfo, and BadRequest, PreconditionFailure or
// RetryInfo as fits. OK becomes OK.
grpc::Status ToGrpcStatus(const absl::Status& status);
// Details that cannot be read are ignored: code and message are always kept.
absl::Status FromGrpcStatus(const grpc::Status& status);

// For DraftStream, whose errors travel in responses. `status` must not be OK.
v1::ErrorDetail ToErrorDetail(const absl::Status& status);
// A detail whose code is OK or unknown becomes UNKNOWN: an error stays an error.
absl::Status FromErrorDetail(const v1::ErrorDetail& detail);

}  // namespace aerie::rpc
