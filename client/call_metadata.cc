#include "client/call_metadata.h"

#include "client/session_key.h"
#include "common/trace_context.h"

namespace aerie {

void CallMetadata::AddTo(grpc::ClientContext* context) const {
  AddSessionKey(key, context);
  // gRPC ends the process over metadata that cannot be sent.
  if (ParseTraceParent(traceparent)) context->AddMetadata(kTraceParent, traceparent);
}

}  // namespace aerie
