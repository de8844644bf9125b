// Channels to a server, with TLS and a token as files say: the one place where programs get them.
#pragma once

#include <memory>
#include <string>

#include "common/rpc/channel_files.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"

namespace aerie::rpc {

// Does not connect yet. A Unix socket is dialled in the clear whatever the secrets say: servers
// have no TLS on it.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ChannelSecrets& secrets,
                                           grpc::ChannelArguments arguments = {});

}  // namespace aerie::rpc
