#include "client/loadtest/page_reader.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/loadtest/page_connection.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

constexpr int kOk = 200, kUnauthorized = 401, kForbidden = 403;

// What was seen, as the page tells it, in brackets: its remedy is for clients of every kind.
std::string Reason(const std::string& body) {
  std::string words = body.substr(0, std::min<size_t>(body.find_first_of(";\r\n"), 120));
  for (char& letter : words) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(letter))) letter = '?';
  }
  return words.empty() ? "" : absl::StrCat(" (", words, ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageReader>> PageReader::Create(const LoadOptions& options) {
  AERIE_ASSIGN_OR_RETURN(PageAddress address, PageAddress::Parse(options.metrics));
  const auto [flag, path] = options.MetricsToken();
  AERIE_ASSIGN_OR_RETURN(std::string token, rpc::ReadTokenFile(path, flag));
  return absl::WrapUnique(new PageReader(options, std::move(address), std::move(token)));
}

PageReader::PageReader(const LoadOptions& options, PageAddress address, std::string token)
    : address_(std::move(address)),
      files_(options.files),
      token_flag_(options.MetricsToken().first),
      token_file_(options.MetricsToken().second),
      token_(std::move(token), token_file_) {}

absl::StatusOr<MetricsPage> PageReader::Read() {
  AERIE_ASSIGN_OR_RETURN(const PageAnswer answer, GetPage(address_, files_, token_.Current()));
  const std::string seen = absl::StrCat(address_.Url(), ": answered ", answer.status);
  if (answer.status == kUnauthorized) {
    return absl::UnauthenticatedError(
        absl::StrCat(seen, Reason(answer.body), "; expected a token of the role metrics; ",
                     token_file_.empty()
                         ? "give one in --metrics-token-file FILE"
                         : absl::StrCat("correct ", token_flag_, " ", token_file_,
                                        ", or give the page's own in --metrics-token-file FILE")));
  }
  if (answer.status == kForbidden) {
    return absl::PermissionDeniedError(
        absl::StrCat(seen, Reason(answer.body),
                     "; expected the role metrics; give a token that has it in "
                     "--metrics-token-file FILE, or add the role in the server's token file"));
  }
  const auto no_page = [&seen](absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat(seen, why,
                     "; expected the server's metrics page; give the HOST:PORT of its "
                     "--metrics-listen to --metrics, or leave it out"));
  };
  if (answer.status != kOk) return no_page("");
  absl::StatusOr<MetricsPage> page = MetricsPage::Parse(answer.body);
  if (!page.ok()) return no_page(absl::StrCat(", and ", page.status().message()));
  return page;
}

}  // namespace aerie::loadtest
