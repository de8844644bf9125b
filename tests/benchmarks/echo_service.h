// A draft service that does nothing: answers every Draft with a proposal of the size that a real
// one has. What gRPC itself takes.
#pragma once

#include "aerie/v1/draft.grpc.pb.h"

namespace aerie {

class EchoService final : public v1::DraftService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Draft(grpc::CallbackServerContext* context,
                                  const v1::DraftRequest* request,
                                  v1::DraftResponse* response) override;
  grpc::ServerBidiReactor<v1::DraftStreamRequest, v1::DraftStreamResponse>* DraftStream(
      grpc::CallbackServerContext* context) override;
};

}  // namespace aerie
