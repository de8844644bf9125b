// Any bytes as what a server answers: a client refuses them, or has a tree that is one, and
// failures keep their code and detail through all that we make of them.
//
// The first byte of an input says what the rest is: 0 a DraftStreamResponse, 1 what stands in
// grpc-status-details-bin, with a byte for the call's own code in front.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "client/draft_call.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/rpc/status_codec.h"
#include "common/rpc/tree_codec.h"
#include "google/protobuf/stubs/logging.h"
#include "google/rpc/status.pb.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutator.h"

namespace {

using namespace aerie;  // NOLINT: it is all that this file is about

void CheckEqualDetails(const absl::Status& a, const absl::Status& b) {
  AERIE_CHECK(a.code() == b.code()) << a.ToString() << " and " << b.ToString();
  const ErrorDetail first = DetailOf(a), second = DetailOf(b);
  AERIE_CHECK(first.reason == second.reason);
  AERIE_CHECK(first.resend_from == second.resend_from);
  AERIE_CHECK(first.mismatches == second.mismatches);
  AERIE_CHECK(first.retry_after.has_value() == second.retry_after.has_value());
}

void CheckRefusal(const absl::Status& status) {
  AERIE_CHECK(!status.ok());
  // Texts are cut once.
  const absl::Status once = rpc::FromErrorDetail(rpc::ToErrorDetail(status));
  CheckEqualDetails(once, rpc::FromErrorDetail(rpc::ToErrorDetail(once)));
  CheckEqualDetails(once, rpc::FromGrpcStatus(rpc::ToGrpcStatus(once)));
  AERIE_CHECK(DetailOf(once).reason == DetailOf(status).reason);
  AERIE_CHECK(DetailOf(once).resend_from == DetailOf(status).resend_from);
}

void CheckDraft(const v1::DraftResponse& response) {
  DraftOutcome outcome;
  if (!ReadAnswer(response, &outcome).ok()) return;
  const DraftTree& tree = outcome.tree;
  AERIE_CHECK(tree.Validate().ok());
  for (const float log_prob : tree.log_probs) AERIE_CHECK(!std::isnan(log_prob));
  AERIE_CHECK(outcome.positions.empty() || outcome.positions.size() == tree.tokens.size());
  AERIE_CHECK(tree.MaxDepth() <= tree.size());
  AERIE_CHECK(tree.CountAccepted(tree.tokens) <= tree.MaxDepth());
  v1::DraftTree again;
  rpc::EncodeDraftTree(tree, outcome.length, {.ancestor_mask = true, .links = true}, &again);
  const auto twice = rpc::DecodeDraftTree(again);
  AERIE_CHECK(twice.ok()) << twice.status().ToString();
  AERIE_CHECK(*twice == tree);
}

void CheckAnswer(const v1::DraftStreamResponse& response) {
  switch (response.response_case()) {
    case v1::DraftStreamResponse::kOpenSession:
      rpc::DecodeSessionOptions(response.open_session().options()).status().IgnoreError();
      return;
    case v1::DraftStreamResponse::kDraft:
      return CheckDraft(response.draft());
    case v1::DraftStreamResponse::kCloseSession: {
      v1::AcceptanceRecord again;
      rpc::EncodeAcceptanceRecord(
          rpc::DecodeAcceptanceRecord(response.close_session().acceptance()), &again);
      AERIE_CHECK(again.num_spec_steps() == response.close_session().acceptance().num_spec_steps());
      return;
    }
    case v1::DraftStreamResponse::kError:
      return CheckRefusal(rpc::FromErrorDetail(response.error()));
    case v1::DraftStreamResponse::RESPONSE_NOT_SET:
      return;
  }
}

// A proposal of two branches with everything that may come with one.
v1::DraftStreamResponse Sound() {
  DraftTree tree;
  tree.tokens = {5, 7, 9};
  tree.parents = {0, 0, 1};
  tree.log_probs = {-0.5f, -1.5f, -0.25f};
  tree.chosen_probs = {0.5f, 0.25f, 1.0f};
  tree.distributions = {{0, {5, 7}, {0.75f, 0.25f}}, {1, {9}, {1.0f}}};
  v1::DraftStreamResponse response;
  response.set_id(4);
  v1::DraftResponse* const draft = response.mutable_draft();
  rpc::EncodeDraftTree(tree, 12, {.ancestor_mask = true, .links = true}, draft->mutable_tree());
  draft->set_length(12);
  draft->set_accepted(1);
  return response;
}

// The inner messages of a status travel packed, so a change of the outer one does not reach them.
std::string ChangedDetails(const std::string& bytes, std::mt19937_64* random) {
  google::rpc::Status details;
  v1::ErrorDetail detail;
  if (!details.ParseFromString(bytes) || details.details().empty()) {
    details.Clear();
    detail.set_reason(kReasonEvicted);
    detail.set_resend_from(3);
    detail.add_mismatches()->set_field("captures");
    details.add_details()->PackFrom(detail);
  }
  auto* const any = details.mutable_details(
      static_cast<int>(Below(static_cast<size_t>(details.details_size()), random)));
  if (any->UnpackTo(&detail) && Below(4, random) != 0) {
    MutateMessage(&detail, random);
    any->PackFrom(detail);
  } else {
    MutateMessage(&details, random);
  }
  return details.SerializeAsString();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Text that is not UTF-8 would be told of on standard error.
  static const google::protobuf::LogSilencer silence;
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (size < 2) return 0;
  if (data[0] % 2 == 0) {
    v1::DraftStreamResponse response;
    if (response.ParseFromString(input.substr(1))) CheckAnswer(response);
    return 0;
  }
  const auto code = static_cast<grpc::StatusCode>(data[1] % 20);
  const grpc::Status status(code, "a message", input.substr(2));
  const absl::Status read = rpc::FromGrpcStatus(status);
  AERIE_CHECK(read.ok() == status.ok());
  if (!status.ok()) CheckRefusal(read);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  std::mt19937_64 random(seed);
  const std::string input(reinterpret_cast<const char*>(data), size);
  std::string out = input.substr(0, 1);
  if (out.empty()) out.push_back(static_cast<char>(Below(2, &random)));
  if (out[0] % 2 == 0) {
    v1::DraftStreamResponse response;
    if (!response.ParseFromString(input.substr(out.size() > size ? size : 1)) ||
        response.response_case() == v1::DraftStreamResponse::RESPONSE_NOT_SET) {
      response = Sound();
    }
    MutateMessage(&response, &random);
    out += response.SerializeAsString();
  } else {
    out.push_back(size > 1 ? input[1] : '\x03');
    out += ChangedDetails(size > 2 ? input.substr(2) : std::string(), &random);
  }
  out.resize(std::min(out.size(), max_size));
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
