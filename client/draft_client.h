// A target worker's way to a draft server.
//
//   AERIE_ASSIGN_OR_RETURN(auto client, DraftClient::Create("draft-host:50051", {}));
//   AERIE_ASSIGN_OR_RETURN(auto session, client->Open(manifest, {}));
//   DraftOutcome outcome = session->Draft({.base_length = 0, .tokens = ..., .rows = ..., .k = 4});
//   ... verify outcome.tree (client/acceptance.h), commit, draft again ...
//   session->Close(tokens committed since the last Draft);
//
// No call throws, and none blocks past its deadline: without a server the worker decodes without
// drafts.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client_core.h"
#include "client/client_options.h"
#include "client/draft_session.h"
#include "common/manifest.h"

namespace aerie {

// Any thread. Each client has a connection of its own, and on TransportKind::kStream one stream for
// all its sessions.
class DraftClient {
 public:
  // `address` is host:port or unix:PATH. Does not connect yet. INVALID_ARGUMENT: an option, named.
  static absl::StatusOr<std::unique_ptr<DraftClient>> Create(std::string address,
                                                             ClientOptions options);

  // What the server is and holds; asked once. UNAVAILABLE: no server there, or it is loading.
  absl::StatusOr<std::shared_ptr<const v1::GetServerInfoResponse>> ServerInfo();

  // As DraftService.OpenSession.
  absl::StatusOr<std::unique_ptr<DraftSession>> Open(Manifest manifest, SessionSettings settings);

  // Stateless: all rows of a sequence in one message, nothing is kept. The rows must fit one
  // message. As DraftService.Draft.
  DraftOutcome DraftOnce(const Manifest& manifest, absl::Span<const int32_t> tokens,
                         const HiddenRows& rows, int32_t k);

 private:
  explicit DraftClient(std::shared_ptr<ClientCore> core) : core_(std::move(core)) {}
  const std::shared_ptr<ClientCore> core_;
};

}  // namespace aerie
