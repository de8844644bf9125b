// The flags about who may have how much: clients and targets.
#include "server/config/flag_table_builder.h"

namespace aerie {

void AddClientFlags(TableBuilder& table) {
  table.Group("Clients");
  table.Int(
      "max-sessions-per-client",
      "Sessions that one client may hold, by the name that it gives; 0: as many as there are.",
      [](Options& o) -> int32_t& { return o.engine.max_sessions_per_client; });
  table.Int("max-queued-per-client",
            "Calls of one client that wait for their first pass; 0: as many as may wait.",
            [](Options& o) -> int32_t& { return o.engine.max_queued_per_client; });
  table.Raw({.name = "client-weight",
             .group = "",
             .value = "NAME=W",
             .help = "A client's share of each pass against the others', 1..1000; 1 for those that "
                     "are not named. An empty NAME: clients without one. Repeatable; the "
                     "environment variable takes a comma-separated list.",
             .default_text = "",
             .repeatable = true,
             .set = [](const std::vector<std::string>& texts, Options* options) -> absl::Status {
               AERIE_ASSIGN_OR_RETURN(options->engine.client_weights,
                                      ReadWeights("client-weight", texts));
               return absl::OkStatus();
             }});
  table.Int(
      "max-rows-per-second-per-client",
      "Rows that the draft calls of one client may bring a second, by the name of its token or "
      "certificate, or else by its address; 0: not limited.",
      [](Options& o) -> int32_t& { return o.clients.max_rows_per_second; });
  table.Int("row-burst-per-client",
            "Rows that it may bring at once after a pause; 0: those of one second.",
            [](Options& o) -> int32_t& { return o.clients.row_burst; });
  table.Add(
      "max-bytes-in-flight-per-client", "BYTES",
      "Bytes of one client's requests that are not answered yet, by name or address as above, "
      "at least --max-message-bytes; 0: not limited.",
      "0", ReadBytes, [](Options& o) -> int64_t& { return o.clients.max_bytes_in_flight; });
  table.Raw({.name = "target-quota",
             .group = "",
             .value = "NAME=SESSIONS[:ROWS]",
             .help = "Sessions that one target may hold, by the target_id of their manifests, and "
                     "rows that they may bring a second, whichever drafter they use; 0: not "
                     "limited. NAME *: all targets that are not named, together. Repeatable; the "
                     "environment variable takes a comma-separated list.",
             .default_text = "",
             .repeatable = true,
             .set = [](const std::vector<std::string>& texts, Options* options) -> absl::Status {
               AERIE_ASSIGN_OR_RETURN(options->engine.target_quotas,
                                      ReadTargetQuotas("target-quota", texts));
               return absl::OkStatus();
             }});
}

}  // namespace aerie
