// The flags of TLS, tokens and sockets. Their values are paths: what stands in the files is shown
// nowhere.
#include "server/config/flag_table_builder.h"

namespace aerie {

void AddSecurityFlags(TableBuilder& table) {
  table.Group("Security");
  table.Text("tls-cert", "FILE",
             "PEM certificates of the server, its own first: TLS on every gRPC listener on TCP. "
             "Read again when it changes. Empty: in the clear.",
             [](Options& o) -> std::string& { return o.grpc.security.tls_cert; });
  table.Text("tls-key", "FILE", "PEM key of --tls-cert, which others may not read.",
             [](Options& o) -> std::string& { return o.grpc.security.tls_key; });
  table.Text("tls-client-ca", "FILE",
             "PEM certificates that sign those of clients: mutual TLS, nobody without one gets in.",
             [](Options& o) -> std::string& { return o.grpc.security.tls_client_ca; });
  table.Text("token-file", "FILE",
             "Who may call, a line each: ROLE[,ROLE] NAME TOKEN, roles draft, admin and metrics. "
             "Read again when it changes; others may not read it. Empty: nobody is asked.",
             [](Options& o) -> std::string& { return o.grpc.security.token_file; });
  table.Raw({.name = "insecure",
             .group = "",
             .value = "on|off",
             .help = "Listen on addresses that other hosts can reach without TLS and tokens: the "
                     "network itself keeps others out. Alone it means on; without it, off.",
             .default_text = "off",
             .may_stand_alone = true,
             .set = [](const std::vector<std::string>& texts, Options* options) -> absl::Status {
               AERIE_ASSIGN_OR_RETURN(options->grpc.security.insecure,
                                      ReadSwitch("insecure", texts.front()));
               return absl::OkStatus();
             }});
  table.Raw({.name = "metrics-tls",
             .group = "",
             .value = "on|off",
             .help = "Serve the metrics page over TLS, with the files of the gRPC listeners: who "
                     "reads it shows a client certificate where those ask for one. Alone it means "
                     "on; without it, off.",
             .default_text = "off",
             .may_stand_alone = true,
             .set = [](const std::vector<std::string>& texts, Options* options) -> absl::Status {
               AERIE_ASSIGN_OR_RETURN(options->metrics.tls,
                                      ReadSwitch("metrics-tls", texts.front()));
               return absl::OkStatus();
             }});
  table.Add("unix-socket-mode", "MODE",
            "Octal permission bits of Unix sockets; who may write may connect.", "0660", ReadMode,
            [](Options& o) -> int32_t& { return o.grpc.security.unix_socket_mode; });
}

}  // namespace aerie
