#include "server/transport/grpc_log.h"

#include <grpc/support/log.h>

#include <string>

#include "common/log.h"
#include "google/protobuf/stubs/logging.h"

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
  // It tells of text that is not UTF-8, which any client can send as often as it likes. The call's
  // answer says so too, so here it is for who asks for everything.
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel level, const char*, int, const std::string& message) {
        if (level == google::protobuf::LOGLEVEL_FATAL) {
          AERIE_LOG(error, "protobuf: {}", message);
        } else {
          AERIE_LOG(debug, "protobuf: {}", message);
        }
      });
}

}  // namespace aerie
