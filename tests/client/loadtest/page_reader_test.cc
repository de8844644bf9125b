// The load tester in front of metrics pages that ask who reads them: those of the server itself.
#include "client/loadtest/page_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/metrics/exporter.h"
#include "server/metrics/metric_page.h"
#include "server/metrics/server_metrics.h"
#include "tests/client/loadtest/test_authority.h"
#include "tests/testing/status_matchers.h"

namespace aerie::loadtest {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "metrics-token-0123456789";
constexpr char kDraftToken[] = "draft-token-0123456789";

class PageReaderTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return absl::StrCat(::testing::TempDir(), "page_reader_",
                        ::testing::UnitTest::GetInstance()->current_test_info()->name(), "_", name);
  }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }

  // A page that kToken opens, and that knows kDraftToken as one of another role.
  ScrapeGuard Guard() {
    return [this](const Scraper& scraper) -> absl::Status {
      ++scrapes_;
      certificate_ = scraper.certificate;
      if (!scraper.authorization) return absl::UnauthenticatedError("no token; expected \"one\"");
      if (*scraper.authorization == absl::StrCat("Bearer ", token_)) return absl::OkStatus();
      if (*scraper.authorization != absl::StrCat("Bearer ", kDraftToken)) {
        return absl::UnauthenticatedError("not known; expected another");
      }
      return absl::PermissionDeniedError("\"worker\" has not the role; expected it");
    };
  }

  void Start(ExporterOptions options) {
    options.listen = "127.0.0.1:0";
    auto exporter =
        StartExporter(std::move(options), std::make_shared<MetricPage>(server_.metrics()));
    AERIE_CHECK(exporter.ok()) << exporter.status().ToString();
    exporter_ = *std::move(exporter);
  }
  // Over TLS, with a certificate for `names`; scrapers must show one of `client_ca`'s if given.
  void StartTls(const std::string& names, const std::string& client_ca = "") {
    const TestCertificate own = authority_.Issue(names);
    Start({.guard = Guard(), .tls = [=] { return PageTls{own.certificate, own.key, client_ca}; }});
  }

  // Of the page that was started, with a good token and the authority.
  LoadOptions Options(const std::string& scheme = "", const std::string& host = "127.0.0.1") const {
    LoadOptions options;
    options.metrics = absl::StrCat(scheme, host, ":", exporter_->port());
    options.metrics_token_file = Write("token", kToken);
    options.files.tls_ca = Write("ca", authority_.Pem());
    return options;
  }
  static absl::StatusOr<MetricsPage> Read(const LoadOptions& options) {
    auto reader = PageReader::Create(options);
    if (!reader.ok()) return reader.status();
    return (*reader)->Read();
  }
  static std::string Message(const LoadOptions& options) {
    return std::string(Read(options).status().message());
  }

  const TestAuthority authority_;
  std::string token_ = kToken;
  std::atomic<int> scrapes_{0};
  std::string certificate_;  // that the last scrape showed
  ServerMetrics server_{{}};
  std::unique_ptr<Exporter> exporter_;
};

TEST_F(PageReaderTest, ReadsAPageThatAsksForNothing) {
  Start({});
  LoadOptions options;
  options.metrics = exporter_->address();
  const auto page = Read(options);
  ASSERT_THAT(page, IsOk());
  EXPECT_TRUE(page->Sum("process_resident_memory_bytes").has_value());
}

TEST_F(PageReaderTest, ReadsAPageOverTlsWithItsToken) {
  StartTls("IP:127.0.0.1");
  const auto page = Read(Options("https://"));
  ASSERT_THAT(page, IsOk());
  EXPECT_TRUE(page->Sum("process_resident_memory_bytes").has_value());
}

TEST_F(PageReaderTest, GivesThePageTheTokenOfCallsUnlessItHasItsOwn) {
  Start({.guard = Guard()});
  LoadOptions options = Options();
  options.files.token_file = Write("calls", kDraftToken);
  EXPECT_THAT(Read(options), IsOk());
  options.files.token_file = Write("calls", kToken);
  options.metrics_token_file.clear();
  EXPECT_THAT(Read(options), IsOk());
}

TEST_F(PageReaderTest, CarriesTheTokenThatItsFileHasNow) {
  Start({.guard = Guard()});
  const auto reader = PageReader::Create(Options());
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT((*reader)->Read(), IsOk());
  token_ = "renewed-token-0123456789";
  EXPECT_THAT((*reader)->Read(), StatusIs(absl::StatusCode::kUnauthenticated));
  Write("token", token_ + "\n");
  EXPECT_THAT((*reader)->Read(), IsOk());
  Write("token", "");
  EXPECT_THAT((*reader)->Read(), IsOk()) << "the last good one serves";
}

TEST_F(PageReaderTest, ShowsItsCertificateToAPageThatAsksForOne) {
  StartTls("IP:127.0.0.1", authority_.Pem());
  LoadOptions options = Options("https://");
  EXPECT_THAT(Message(options), HasSubstr("if it asks for a certificate, give --tls-cert and"));
  const TestCertificate own = authority_.Issue("DNS:tester");
  options.files.tls_cert = Write("cert", own.certificate);
  options.files.tls_key = Write("key", own.key);
  EXPECT_THAT(Read(options), IsOk());
  EXPECT_EQ(certificate_, "tester");
  const TestCertificate strange = TestAuthority().Issue("DNS:tester");
  Write("cert", strange.certificate);
  Write("key", strange.key);
  EXPECT_THAT(Message(options), HasSubstr("give one in --tls-cert that it trusts"));
  Write("key", own.key);
  EXPECT_THAT(Read(options), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Message(options), AllOf(HasSubstr(Path("key")), HasSubstr("key values mismatch")));
}

TEST_F(PageReaderTest, FindsTheNameInTheCertificateThatItWasToldTo) {
  StartTls("DNS:page.example");
  for (const char* host : {"127.0.0.1", "localhost"}) {
    LoadOptions options = Options("https://", host);
    EXPECT_THAT(Message(options),
                HasSubstr(absl::StrCat("does not name ", host, "; expected one that names")));
    options.files.tls_server_name = "page.example";
    EXPECT_THAT(Read(options), IsOk()) << host;
    options.files.tls_server_name = "elsewhere.example";
    EXPECT_THAT(Message(options), AllOf(HasSubstr("does not name elsewhere.example"),
                                        HasSubstr("correct --tls-ca or --tls-server-name")));
  }
  EXPECT_EQ(scrapes_, 2) << "a page whose certificate is wrong gets no request";
}

TEST_F(PageReaderTest, SendsNothingToAPageWhoseCertificateNobodyVouchesFor) {
  StartTls("IP:127.0.0.1");
  LoadOptions options = Options("https://");
  options.files.tls_ca = Write("strange", TestAuthority().Pem());
  EXPECT_THAT(Message(options), AllOf(HasSubstr("is not to be trusted ("), HasSubstr("--tls-ca")));
  options.files.tls_ca.clear();  // the system's authorities do not know it either
  EXPECT_THAT(Message(options), AllOf(HasSubstr("an authority of this system"),
                                      HasSubstr("give the certificates that sign it in --tls-ca")));
  options.files.tls_ca = Write("none", "no certificate\n");
  EXPECT_THAT(Message(options), HasSubstr(absl::StrCat("expected PEM certificates in --tls-ca ",
                                                       Path("none"), "; correct the file")));
  EXPECT_EQ(scrapes_, 0);
}

TEST_F(PageReaderTest, TrustsACertificateBelowTheRootAsCallsDo) {
  const TestCertificate own = authority_.Issue("IP:127.0.0.1");
  Start({.tls = [=] { return PageTls{own.certificate, own.key, ""}; }});
  LoadOptions options = Options("https://");
  options.files.tls_ca = Write("leaf", own.certificate);
  EXPECT_THAT(Read(options), IsOk());
}

TEST_F(PageReaderTest, SaysWhichTokenThePageWants) {
  Start({.guard = Guard()});
  LoadOptions options = Options();
  options.metrics_token_file.clear();
  EXPECT_THAT(Read(options), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(Message(options),
              AllOf(HasSubstr("answered 401 (no token); expected a token of the role metrics; "),
                    HasSubstr("give one in --metrics-token-file FILE")));
  options.files.token_file = Write("calls", "unknown-token-0123456789");
  EXPECT_THAT(Message(options),
              AllOf(HasSubstr("answered 401 (not known)"),
                    HasSubstr(absl::StrCat("correct --token-file ", Path("calls"))),
                    HasSubstr("--metrics-token-file"), Not(HasSubstr("unknown-token"))));
  Write("calls", kDraftToken);
  EXPECT_THAT(Read(options), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Message(options),
              AllOf(HasSubstr("answered 403 (\"worker\" has not the role); expected the role"),
                    HasSubstr("--metrics-token-file FILE, or add the role")));
}

TEST_F(PageReaderTest, SaysWhatToDoWhereOneSideSpeaksTlsAlone) {
  StartTls("IP:127.0.0.1");
  EXPECT_THAT(Message(Options()),
              AllOf(HasSubstr("--metrics-listen"), HasSubstr("https:// before it")));
  Start({});
  EXPECT_THAT(Message(Options("https://")),
              AllOf(HasSubstr("leave https:// out if the server has no --metrics-tls")));
}

TEST_F(PageReaderTest, SaysWhatToDoWhereNobodyAnswers) {
  for (const char* metrics : {"127.0.0.1:1", "https://127.0.0.1:1"}) {
    LoadOptions options;
    options.metrics = metrics;
    EXPECT_THAT(Read(options), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(Message(options), AllOf(HasSubstr("127.0.0.1:1/metrics: "),
                                        HasSubstr("--metrics-listen to --metrics")));
  }
}

TEST_F(PageReaderTest, NamesATokenFileThatHoldsNoToken) {
  Start({});
  LoadOptions options = Options();
  options.metrics_token_file = Write("book", "metrics prometheus secret-token-0123456789\n");
  EXPECT_THAT(Read(options), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Message(options),
      AllOf(HasSubstr(absl::StrCat("--metrics-token-file ", Path("book"), " holds no token")),
            Not(HasSubstr("secret-token"))));
}

}  // namespace
}  // namespace aerie::loadtest
