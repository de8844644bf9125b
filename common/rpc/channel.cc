#include "common/rpc/channel.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/token_source.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/client_interceptor.h"

namespace aerie::rpc {
namespace {

// Puts the token into the metadata of every call, whatever its kind.
class TokenBearer final : public grpc::experimental::Interceptor {
 public:
  explicit TokenBearer(const std::string& token) : value_(absl::StrCat("Bearer ", token)) {}
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->insert({"authorization", value_});
    }
    methods->Proceed();
  }

 private:
  const std::string value_;
};

class TokenBearers final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenBearers(const ChannelSecrets& secrets)
      : source_(secrets.token, secrets.token_file) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenBearer(source_.Current());
  }

 private:
  TokenSource source_;
};

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ChannelSecrets& secrets,
                                           grpc::ChannelArguments arguments) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!secrets.ca.empty() && !absl::StartsWith(address, "unix:")) {
    credentials = grpc::SslCredentials({secrets.ca, secrets.key, secrets.certificate});
    if (!secrets.server_name.empty()) arguments.SetSslTargetNameOverride(secrets.server_name);
  }
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!secrets.token.empty()) {
    interceptors.push_back(std::make_unique<TokenBearers>(secrets));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, credentials, arguments,
                                                                 std::move(interceptors));
}

}  // namespace aerie::rpc
