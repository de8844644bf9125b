#include "server/config/metrics_page.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/transport/access_control.h"
#include "server/transport/watched_tls.h"

namespace aerie {

SecurityOptions MetricsOptions::SecurityOf(const SecurityOptions& all) const {
  SecurityOptions out = all;
  if (!tls) {
    out.tls_cert.clear();
    out.tls_key.clear();
    out.tls_client_ca.clear();
  }
  return out;
}

absl::Status MetricsOptions::Validate(const SecurityOptions& security) const {
  if (!enabled()) {
    if (!tls) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--metrics-tls is on but --metrics-listen is off; expected a page to serve over TLS; give "
        "--metrics-listen, or leave --metrics-tls out");
  }
  if (listen.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-listen is \"", listen,
                     "\"; expected host:port or off; give an address such as 127.0.0.1:9464"));
  }
  if (tls && !security.tls()) {
    return absl::InvalidArgumentError(
        "--metrics-tls is on but --tls-cert is not given; expected both; give --tls-cert and "
        "--tls-key, or leave --metrics-tls out");
  }
  const SecurityOptions own = SecurityOf(security);
  if (own.insecure || own.tls() || own.tokens() || !IsPublicAddress(listen)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--metrics-listen ", listen,
                   " can be reached from other hosts, and neither tokens nor TLS guard the page; "
                   "expected a page that asks who reads it; give --token-file with a token of the "
                   "role metrics, or --metrics-tls beside --tls-cert, or an address that only this "
                   "host reaches, or say --insecure where the network itself keeps others out"));
}

absl::StatusOr<std::unique_ptr<Exporter>> StartMetricsPage(const Options& options,
                                                           std::shared_ptr<MetricPage> page) {
  if (!options.metrics.enabled()) return nullptr;
  const SecurityOptions security = options.metrics.SecurityOf(options.grpc.security);
  ExporterOptions exporter{.listen = options.metrics.listen};
  if (security.tokens()) {
    AERIE_ASSIGN_OR_RETURN(std::shared_ptr<const AccessControl> access,
                           AccessControl::Create(security));
    exporter.guard = [access = std::move(access)](const Scraper& scraper) {
      return access->AdmitCaller(scraper.authorization, scraper.certificate, Role::kMetrics)
          .status();
    };
  }
  if (security.tls()) {
    AERIE_ASSIGN_OR_RETURN(std::shared_ptr<WatchedTls> files, WatchedTls::Open(security));
    exporter.tls = [files = std::move(files)] {
      const std::shared_ptr<const TlsFiles> now = files->Current();
      return PageTls{now->certificates, now->key, now->client_ca};
    };
  }
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<Exporter> out,
                         StartExporter(std::move(exporter), std::move(page)));
  for (const std::string& warning :
       ExposureWarnings(security, "--metrics-listen", {options.metrics.listen})) {
    AERIE_LOG(warn, "{}", warning);
  }
  AERIE_LOG(info, "metrics at {}://{}/metrics", security.tls() ? "https" : "http", out->address());
  return out;
}

}  // namespace aerie
