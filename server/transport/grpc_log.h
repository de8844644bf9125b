// What gRPC itself logs, such as why an address cannot be bound, goes to our log.
#pragma once

namespace aerie {

// Once, before the first server or channel.
void SendGrpcLogToOurs();

}  // namespace aerie
