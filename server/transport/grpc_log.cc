#include "server/transport/grpc_log.h"

#include <grpc/support/log.h>

#include "common/log.h"

namespace aerie {

void SendGrpcLogToOurs() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    switch (args->severity) {
      case GPR_LOG_SEVERITY_ERROR:
        // Its errors are ours only when a call of ours fails too, and then we say so.
        AERIE_LOG(warn, "grpc: {}", args->message);
        return;
      case GPR_LOG_SEVERITY_INFO:
        AERIE_LOG(info, "grpc: {}", args->message);
        return;
      case GPR_LOG_SEVERITY_DEBUG:
        AERIE_LOG(debug, "grpc: {}", args->message);
        return;
    }
  });
}

}  // namespace aerie
