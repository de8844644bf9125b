// Any bytes as the requests of DraftService: they are refused with a reason, or all of them is in
// range, and what was understood encodes to a request that is understood in the same way.
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "google/protobuf/stubs/logging.h"
#include "server/transport/draft_messages.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/fake_draft_model.h"

namespace {

using namespace aerie;  // NOLINT: it is all that this file is about

const DrafterSpec& Spec() {
  static const DrafterSpec* const spec = new DrafterSpec(FakeSpec());
  return *spec;
}

void CheckRefused(const absl::Status& status) {
  const std::string text = status.ToString();
  // Nobody gives these calls a book of shared memory.
  AERIE_CHECK(absl::IsInvalidArgument(status) || DetailOf(status).reason == kReasonSharedMemoryOff)
      << text;
  AERIE_CHECK(!DetailOf(status).reason.empty()) << text;
  AERIE_CHECK(absl::StrContains(status.message(), "expected")) << text;
}

// What the wire keeps of it.
std::string Written(const Manifest& manifest) {
  v1::Manifest out;
  rpc::EncodeManifest(manifest, &out);
  return out.SerializeAsString();
}

void CheckOpen(const v1::OpenSessionRequest& request) {
  const absl::StatusOr<OpenCall> call = DecodeOpenRequest(request);
  if (!call.ok()) return CheckRefused(call.status());
  const SessionOptions& options = call->options;
  AERIE_CHECK(options.Validate().ok());
  AERIE_CHECK(std::isfinite(options.temperature) && options.temperature >= 0.0f);
  AERIE_CHECK(options.client.size() <= kMaxClientBytes && options.start >= 0);
  AERIE_CHECK(call->manifest.row_width() > 0 && call->manifest.vocab_size > 0);
  v1::OpenSessionRequest again;
  rpc::EncodeOpening(options, &again);
  rpc::EncodeManifest(call->manifest, again.mutable_manifest());
  const absl::StatusOr<OpenCall> twice = DecodeOpenRequest(again);
  AERIE_CHECK(twice.ok()) << twice.status().ToString();
  AERIE_CHECK(twice->options == options);
  AERIE_CHECK(Written(twice->manifest) == Written(call->manifest));
}

void CheckDraft(const v1::DraftRequest& request) {
  const absl::Time arrival = absl::FromUnixSeconds(1000), end = arrival + absl::Seconds(9);
  const absl::StatusOr<DraftCall> call = DecodeDraftRequest(request, Spec(), arrival, end);
  if (!call.ok()) return CheckRefused(call.status());
  AERIE_CHECK(arrival < call->deadline && call->deadline <= end);
  AERIE_CHECK(call->k >= 0 && call->base_length >= 0);
  AERIE_CHECK(!call->verify_time.has_value() || *call->verify_time > absl::ZeroDuration());
  AERIE_CHECK(call->verify_tokens >= 0 && call->accepted.value_or(0) >= 0);
  const auto* const manifest = std::get_if<Manifest>(&call->sequence);
  const int32_t vocab_size = manifest != nullptr ? manifest->vocab_size : Spec().vocab_size;
  for (const int32_t token : call->tokens) AERIE_CHECK(0 <= token && token < vocab_size) << token;
  AERIE_CHECK(call->rows.rows() == static_cast<int64_t>(call->tokens.size()));
  std::vector<float> values(static_cast<size_t>(call->rows.rows() * call->rows.width()));
  call->rows.CopyToFloat(absl::MakeSpan(values));
  for (const float value : values) AERIE_CHECK(std::isfinite(value)) << value;
  v1::DraftRequest again;
  rpc::EncodeTokens(call->tokens, again.mutable_token_ids());
  AERIE_CHECK(std::equal(again.token_ids().begin(), again.token_ids().end(),
                         request.token_ids().begin(), request.token_ids().end()));
  if (!call->rows.empty() && !call->fp8) {
    rpc::EncodeHiddenStates(call->rows, again.mutable_hidden_states());
    AERIE_CHECK(again.hidden_states().data() == request.hidden_states().data());
  }
}

void CheckClose(const v1::CloseSessionRequest& request) {
  const auto tokens = DecodeFinalTokens(request, Spec());
  if (!tokens.ok()) return CheckRefused(tokens.status());
  for (const int32_t token : *tokens) AERIE_CHECK(0 <= token && token < Spec().vocab_size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Text that is not UTF-8 would be told of on standard error.
  static const google::protobuf::LogSilencer silence;
  const CallScript script = ReadScript({reinterpret_cast<const char*>(data), size});
  for (const std::string& frame : script.frames) {
    v1::DraftStreamRequest message;
    if (!message.ParseFromString(frame)) continue;
    CheckOpen(message.open_session());
    CheckDraft(message.draft());
    CheckClose(message.close_session());
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return aerie::MutateScript(data, size, max_size, seed);
}
