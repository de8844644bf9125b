// What gRPC itself logs, such as why an address cannot be bound, goes to our log; and what protobuf
// says of messages that it cannot read, which otherwise stands between the lines of our log.
#pragma once

namespace aerie {

// Once, before the first server or channel.
void SendGrpcLogToOurs();

}  // namespace aerie
