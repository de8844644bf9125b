#include "client/draft_client.h"

#include <utility>

#include "common/rpc/codec.h"
#include "common/status_macros.h"

namespace aerie {

absl::StatusOr<std::unique_ptr<DraftClient>> DraftClient::Create(std::string address,
                                                                 ClientOptions options) {
  AERIE_RETURN_IF_ERROR(options.Validate());
  if (address.empty()) {
    return absl::InvalidArgumentError(
        "the server's address is empty; expected host:port or unix:PATH; give one");
  }
  return std::unique_ptr<DraftClient>(
      new DraftClient(std::make_shared<ClientCore>(std::move(address), options)));
}

absl::StatusOr<std::shared_ptr<const v1::GetServerInfoResponse>> DraftClient::ServerInfo() {
  return core_->ServerInfo(core_->Deadline());
}

absl::StatusOr<std::unique_ptr<DraftSession>> DraftClient::Open(Manifest manifest,
                                                                SessionSettings settings) {
  auto session = std::make_unique<DraftSession>(core_, std::move(manifest), std::move(settings));
  AERIE_RETURN_IF_ERROR(session->Open(core_->Deadline()));
  return session;
}

DraftOutcome DraftClient::DraftOnce(const Manifest& manifest, absl::Span<const int32_t> tokens,
                                    const HiddenRows& rows, int32_t k) {
  auto request = std::make_shared<v1::DraftStreamRequest>();
  v1::DraftRequest& draft = *request->mutable_draft();
  rpc::EncodeManifest(manifest, draft.mutable_manifest());
  rpc::EncodeTokens(tokens, draft.mutable_token_ids());
  if (!rows.empty()) rpc::EncodeHiddenStates(rows, manifest, draft.mutable_hidden_states());
  draft.set_k(static_cast<uint32_t>(k));
  DraftOutcome outcome;
  const auto response =
      core_->Exchange(std::move(request), {core_->key(), ""}, core_->Deadline(), &outcome.attempts);
  outcome.status = response.ok() ? ReadAnswer(response->draft(), &outcome) : response.status();
  return outcome;
}

}  // namespace aerie
