#include "client/admin/drafter_commands.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "aerie/v1/admin.grpc.pb.h"
#include "client/admin/admin_line.h"
#include "client/admin/admin_text.h"
#include "client/admin/drafter_text.h"
#include "common/rpc/status_codec.h"

namespace aerie::admin {
namespace {

// To the listener for administration, with its stub.
struct AdminLine {
  explicit AdminLine(const AdminOptions& options)
      : line(options.admin_address, "--admin-address", options),
        stub(v1::AdminService::NewStub(line.channel())) {}

  Line line;
  const std::unique_ptr<v1::AdminService::Stub> stub;
};

// Of a change that did not come about, or of which nobody knows whether it does.
Outcome NotChanged(const Line& line, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
      return line.Failed(status);
    case absl::StatusCode::kDeadlineExceeded:
      return {.code = kNotAsked,
              .out = "",
              .err = absl::StrCat("the server at ", line.address(),
                                  " gave no answer in time: ", status.message(),
                                  "; expected one within --timeout; if the server was reached it "
                                  "goes on: look at what `aerie-admin drafters` lists, and give "
                                  "more time\n")};
    default:
      return {.code = kRefused,
              .out = "",
              .err = absl::StrCat("the server at ", line.address(),
                                  " refused, and nothing has changed: ", status.message(), "\n")};
  }
}

// Sets in `to` what `changes` says.
void Override(const v1::DrafterSource& changes, v1::DrafterSource* to) {
  // Messages are merged by adding lists, and here the new list is meant.
  if (!changes.ignored_config_keys().empty()) to->clear_ignored_config_keys();
  to->MergeFrom(changes);
}

// A source replaces the old one as a whole, but who names a folder means only that: the rest is
// taken from what the server tells of the drafter that is served.
absl::Status FillSource(const AdminOptions& options, v1::ReloadDrafterRequest* request) {
  AdminLine asked(options);
  v1::ListDraftersResponse list;
  const absl::Status status =
      rpc::FromGrpcStatus(asked.stub->ListDrafters(asked.line.context(), {}, &list));
  if (!status.ok()) return status;
  const auto is_meant = [&](const v1::DrafterStatus& drafter) {
    return drafter.state() == v1::DRAFTER_STATE_SERVING &&
           (options.name.empty() || drafter.name() == options.name);
  };
  // Of none or several the server says what is wrong.
  if (std::count_if(list.drafters().begin(), list.drafters().end(), is_meant) == 1) {
    *request->mutable_source() =
        std::find_if(list.drafters().begin(), list.drafters().end(), is_meant)->source();
  }
  Override(options.source, request->mutable_source());
  return absl::OkStatus();
}

}  // namespace

Outcome ListDrafters(const AdminOptions& options) {
  AdminLine asked(options);
  v1::ListDraftersResponse list;
  const absl::Status status =
      rpc::FromGrpcStatus(asked.stub->ListDrafters(asked.line.context(), {}, &list));
  if (!status.ok()) return asked.line.Failed(status);
  return {.code = kDone, .out = options.json ? ToJson(list) : ToText(list), .err = ""};
}

Outcome LoadDrafter(const AdminOptions& options) {
  AdminLine asked(options);
  v1::LoadDrafterRequest request;
  *request.mutable_source() = options.source;
  request.mutable_source()->set_name(options.name);
  v1::LoadDrafterResponse loaded;
  const absl::Status status =
      rpc::FromGrpcStatus(asked.stub->LoadDrafter(asked.line.context(), request, &loaded));
  if (!status.ok()) return NotChanged(asked.line, status);
  return {.code = kDone, .out = options.json ? ToJson(loaded) : ToText(loaded), .err = ""};
}

Outcome ReloadDrafter(const AdminOptions& options) {
  AdminLine asked(options);
  v1::ReloadDrafterRequest request;
  request.set_name(options.name);
  if (options.source.ByteSizeLong() > 0) {
    if (const absl::Status filled = FillSource(options, &request); !filled.ok()) {
      return asked.line.Failed(filled);
    }
  }
  v1::ReloadDrafterResponse reloaded;
  const absl::Status status =
      rpc::FromGrpcStatus(asked.stub->ReloadDrafter(asked.line.context(), request, &reloaded));
  if (!status.ok()) return NotChanged(asked.line, status);
  return {.code = kDone, .out = options.json ? ToJson(reloaded) : ToText(reloaded), .err = ""};
}

Outcome UnloadDrafter(const AdminOptions& options) {
  AdminLine asked(options);
  v1::UnloadDrafterRequest request;
  request.set_name(options.name);
  v1::UnloadDrafterResponse unloaded;
  const absl::Status status =
      rpc::FromGrpcStatus(asked.stub->UnloadDrafter(asked.line.context(), request, &unloaded));
  if (!status.ok()) return NotChanged(asked.line, status);
  return {.code = kDone, .out = options.json ? ToJson(unloaded) : ToText(unloaded), .err = ""};
}

}  // namespace aerie::admin
