// How a client reaches a draft server, and how long it may make its worker wait.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/channel_files.h"

namespace aerie {

// How calls travel. A session that was opened on a stream ends with it, so after a lost connection
// its rows must be sent again; a session opened by unary calls outlives the connection.
enum class TransportKind { kUnary, kStream };

// Where a session's rows are when a call is made (docs/wire.md). Shared memory is for a server on
// this host that allows it; rows that find no room in it go in the message.
enum class RowTravel { kInline, kSharedMemory };

struct ClientOptions {
  rpc::ChannelSecrets secrets;  // TLS and token, of rpc::ReadChannelFiles; empty: neither
  TransportKind transport = TransportKind::kUnary;
  // Of one Open, Draft or Close with all its messages, retries and resent rows. > 0
  absl::Duration deadline = absl::Seconds(2);
  // How long a call waits for a lost connection to come back before it gives up; then calls fail at
  // once until the connection stands again. Never past the deadline. >= 0
  absl::Duration patience = absl::Milliseconds(250);
  // Of one message, both ways; the server's own limit is kept as well. >= 64 KiB
  int64_t max_message_bytes = int64_t{64} << 20;
  // Pings while idle, so that middleboxes keep the connection and a dead peer is noticed. >= 10 s:
  // servers cut off clients that ping more often.
  absl::Duration keepalive = absl::Seconds(20);

  RowTravel rows = RowTravel::kInline;
  // With kSharedMemory: of the segment, taken from /dev/shm as long as the client lives. The rows
  // of all calls that wait for their answers at one time should find room. 64 KiB .. 64 GiB
  int64_t shared_memory_bytes = int64_t{32} << 20;

  // INVALID_ARGUMENT that names the option and the value.
  absl::Status Validate() const;
};

}  // namespace aerie
