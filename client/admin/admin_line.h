// How a command of aerie-admin reaches its server, and what it says when it does not.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/admin/admin_commands.h"
#include "client/admin/admin_flags.h"
#include "grpcpp/grpcpp.h"

namespace aerie::admin {

// One command's way to its server; good for one call, since a context is.
class Line {
 public:
  // To `address`, which `flag` names.
  Line(const std::string& address, const char* flag, const AdminOptions& options);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  absl::Time deadline() const { return deadline_; }
  grpc::ClientContext* context() { return &context_; }
  const std::string& address() const { return address_; }

  Outcome Failed(const absl::Status& status) const;

 private:
  const std::string address_;
  const char* const flag_;
  const absl::Time deadline_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
};

}  // namespace aerie::admin
