"""Aerie overview: is it up, what do drafts gain, what do they cost, what is refused. The page to open first."""

from panels.model import (SELECT_LOADS, SELECT_PROCESS, SELECT_RULE, Dashboard, Panel, Query, Row, accept_length, mean, quantile,
                          rate, ratio, series, total)

DRAFTS = "aerie_spec_decode_num_drafts_total"
PROPOSED = "aerie_spec_decode_num_draft_tokens_total"
ACCEPTED = "aerie_spec_decode_num_accepted_tokens_total"
COMMITTED = "aerie_committed_tokens_total"
UNREPORTED = "aerie_drafts_unreported_total"
DURATION = "aerie_draft_duration_seconds"
RPC_DURATION = "grpc_server_handling_seconds"

NOW = Row("Now", (
    Panel("Accept length", "stat", "suffix: tokens",
          "Tokens gained per pass of the target, bonus token included: 1 + accepted / drafts. 1 is no gain at all, k "
          "+ 1 the most that drafts of k tokens can give.",
          (Query(accept_length(), "accept length"),), width=3, height=5, minimum=1,
          thresholds=((None, "red"), (1.1, "orange"), (1.4, "green"))),
    Panel("Acceptance rate", "stat", "percentunit",
          "Accepted over proposed tokens. Of trees it is low by nature: all their tokens count, and one path can be "
          "kept.",
          (Query(ratio(rate(ACCEPTED), rate(PROPOSED)), "acceptance rate"),), width=3, height=5, maximum=1),
    Panel("Output", "stat", "suffix: tok/s",
          "Committed tokens per second, accepted and bonus, of sessions that are drafted for. Rejected drafts are not "
          "output.",
          (Query(rate(COMMITTED), "output"),), width=3, height=5),
    Panel("Output from drafts", "stat", "percentunit",
          "Share of the output that was drafted. The rest are bonus tokens, which the target gives anyway.",
          (Query(ratio(rate(ACCEPTED), rate(COMMITTED)), "from drafts"),), width=3, height=5, maximum=1),
    Panel("Drafts", "stat", "suffix: drafts/s",
          "Proposals whose outcome is known, per second: verifications by the targets.",
          (Query(rate(DRAFTS), "drafts"),), width=3, height=5),
    Panel("Draft latency p99", "stat", "s",
          "99 % of the calls that were served took no longer on the server, from arrival to reply.",
          (Query(quantile(0.99, DURATION, 'phase="total"'), "p99"),), width=3, height=5),
    Panel("Refused calls", "stat", "suffix: /s",
          "Calls refused for any reason, per second. Those rounds are decoded without a draft.",
          (Query(rate("aerie_rejected_total"), "refused"),), width=3, height=5,
          thresholds=((None, "green"), (0.1, "orange"), (1, "red"))),
    Panel("Instances up", "stat", "none",
          "Instances whose metrics Prometheus could read at its last attempt.",
          (Query(f'sum (up{{{SELECT_PROCESS}}})', "up"),), width=3, height=5,
          thresholds=((None, "red"), (1, "green"))),
))

ACCEPTANCE = Row("Acceptance", (
    Panel("Accept length by drafter", "timeseries", "suffix: tokens",
          "Mean accept length, bonus included, of each drafter and target.",
          (Query(accept_length(by=("drafter", "target")), "{{drafter}} for {{target}}"),), minimum=1),
    Panel("Accept length by instance", "timeseries", "suffix: tokens",
          "Mean accept length, bonus included, of each instance. One that lies below the others has workers that are "
          "wired differently, or other texts.",
          (Query(accept_length(by=("instance",)), "{{instance}}"),), minimum=1),
    Panel("Accept length against a week ago", "timeseries", "percentunit",
          "Accept length over an hour, divided by what it was a week before. AerieAcceptLengthDrift alerts below 85 %.",
          (Query(f"aerie:accept_length:1h{{{SELECT_RULE}}} / (aerie:accept_length:1h{{{SELECT_RULE}}} offset 7d)",
                 "{{drafter}} for {{target}}"),)),
    Panel("Acceptance by position", "timeseries", "percentunit",
          "Accepted at a position over drafts that reached it, from position 0; right whatever the drafts' lengths "
          "are. Position 0 far below the head's training accuracy hints at the wiring.",
          (Query(ratio(rate("aerie_spec_decode_num_accepted_tokens_per_pos_total", by=("position",)),
                       rate("aerie_spec_decode_num_draft_tokens_per_pos_total", by=("position",))),
                 "position {{position}}"),), maximum=1),
    Panel("Token flow", "timeseries", "suffix: tok/s",
          "Proposed tokens, what targets kept of them, what they threw away, and the output they made of it.",
          (Query(rate(PROPOSED), "proposed"), Query(rate(ACCEPTED), "accepted"),
           Query(f"{rate(PROPOSED)} - {rate(ACCEPTED)}", "rejected"), Query(rate(COMMITTED), "output"))),
    Panel("Drafts that no ratio knows", "timeseries", "percentunit",
          "Unreported: drafts whose outcome never came, of all. Mismatch: drafts of which the worker counted another "
          "number than its tokens show. Above 5 % acceptance is not to be believed.",
          (Query(ratio(rate(UNREPORTED), f"{rate(UNREPORTED)} + {rate(DRAFTS)}"), "unreported"),
           Query(ratio(rate("aerie_accept_report_mismatch_total"), rate(DRAFTS)), "mismatch")), maximum=1),
))

LATENCY = Row("Latency and batching", (
    Panel("Draft latency p99 by phase", "timeseries", "s",
          "queue: arrival to first pass. extend: passes over the call's rows. step: passes over draft rows. total: "
          "arrival to reply. Phases that a call did not go through are not counted for it.",
          (Query(quantile(0.99, DURATION, by=("phase",)), "{{phase}}"),)),
    Panel("Draft latency p50 by phase", "timeseries", "s",
          "The same for half of the calls.",
          (Query(quantile(0.5, DURATION, by=("phase",)), "{{phase}}"),)),
    Panel("Latency against the objective", "timeseries", "s",
          "p99 from arrival to reply over five minutes, and the objective that AerieDraftLatencyHigh holds it against "
          "(aerie:draft_seconds_objective in aerie.rules.yml).",
          (Query(f'aerie:draft_seconds_p99:5m{{{SELECT_RULE},phase="total"}}', "{{drafter}} for {{target}}"),
           Query("aerie:draft_seconds_objective", "objective"))),
    Panel("Mean time by phase", "timeseries", "s",
          "Where the time of a call goes on average. Long in the queue: too much load; long in extend: long prompts; "
          "long in step: many tokens a draft.",
          (Query(mean(DURATION, by=("phase",)), "{{phase}}"),)),
    Panel("Sessions a pass", "timeseries", "suffix: sessions",
          "How many sessions share one pass of the drafter, on average. Passes cost nearly the same however many share "
          "them.",
          (Query(mean("aerie_batch_sessions", by=("instance",)), "{{instance}}"),)),
    Panel("Queue", "timeseries", "suffix: calls",
          "Calls that wait for their first pass, and calls that are being served, at the moment of the scrape.",
          (Query(total("aerie_queue_depth"), "waiting"), Query(total("aerie_inflight"), "served"))),
    Panel("Draft length", "timeseries", "suffix: tokens",
          "Tokens of a draft when it was made, and its levels, on average: the k that is really used.",
          (Query(mean("aerie_draft_length_tokens"), "tokens"), Query(mean("aerie_draft_depth_levels"), "levels"))),
    Panel("Shortened drafts", "timeseries", "suffix: /s",
          "Served calls that got no draft or a shorter one. not_asked: k was 0 (prompts in several calls). "
          "context_limit: past --max-context. deadline: cut. not_worthwhile: adaptive k chose fewer.",
          (Query(rate("aerie_drafts_skipped_total", by=("reason",)), "{{reason}}"),)),
    Panel("Rows of hidden states", "timeseries", "suffix: rows/s",
          "Rows that workers sent and the server committed.",
          (Query(rate("aerie_hidden_rows_total", by=("transport",)), "{{transport}}"),)),
))

MEMORY = Row("Sessions and draft KV", (
    Panel("Open sessions", "stacked", "suffix: sessions",
          "Sequences that the server holds.",
          (Query(total("aerie_sessions", by=("instance",)), "{{instance}}"),)),
    Panel("Ended sessions", "timeseries", "suffix: /s",
          "closed: by the client. lease: idle too long. stream_closed: with their stream. shutdown: with the server.",
          (Query(rate("aerie_sessions_ended_total", by=("reason",)), "{{reason}}"),)),
    Panel("Draft KV", "stacked", "bytes",
          "Memory of draft KV by state: private to one session, shared by forks of one, free. They add up to "
          "--kv-memory, but for less than a page.",
          (Query(f"sum by (state) ({series('aerie_kv_pages')} * on (job, instance, drafter, target) group_left () "
                 f"max by (job, instance, drafter, target) ({series('aerie_kv_page_bytes')}))", "{{state}}"),)),
    Panel("Draft KV in use", "timeseries", "percentunit",
          "Share of the pages in use. At 100 % idle sessions lose their rows to busy ones.",
          (Query(ratio(total("aerie_kv_pages", 'state!="free"', by=("instance",)),
                       total("aerie_kv_pages", by=("instance",))), "{{instance}}"),), maximum=1),
    Panel("Evictions", "timeseries", "suffix: /min",
          "Sessions a minute that lost their rows to busier ones. Above 6 AerieKvEvictions alerts.",
          (Query(f"60 * {rate('aerie_kv_evictions_total', by=('instance',))}", "{{instance}}"),)),
    Panel("Evicted rows", "timeseries", "suffix: rows/s",
          "Rows lost by evictions: each is sent and computed again when its session goes on.",
          (Query(rate("aerie_kv_evicted_rows_total", by=("instance",)), "{{instance}}"),)),
))

RPCS = Row("RPCs, refusals and bytes", (
    Panel("RPCs", "timeseries", "reqps",
          "RPCs completed by method. A DraftStream is one RPC for as long as it lives.",
          (Query(rate("grpc_server_handled_total", by=("grpc_method",), select=SELECT_PROCESS), "{{grpc_method}}"),)),
    Panel("RPC errors", "timeseries", "reqps",
          "RPCs that ended with another code than OK. Internal, Unknown and DataLoss are the server's own faults.",
          (Query(rate("grpc_server_handled_total", 'grpc_code!="OK"', by=("grpc_method", "grpc_code"),
                      select=SELECT_PROCESS) + " > 0", "{{grpc_method}}: {{grpc_code}}"),)),
    Panel("Refusals by reason", "timeseries", "suffix: /s",
          "queue_full: --max-queued. quota: of one client. kv_memory: no room for the rows. wiring: the manifest does "
          "not fit the drafter. shape: the call contradicts itself. deadline: too late to serve. lease: the session "
          "was closed for being idle.",
          (Query(rate("aerie_rejected_total", by=("reason",)), "{{reason}}"),)),
    Panel("Calls", "timeseries", "reqps",
          "Requests answered, by what they asked for; those on a stream one by one.",
          (Query(rate("aerie_calls_total", by=("call",), select=SELECT_PROCESS), "{{call}}"),)),
    Panel("Failed calls", "timeseries", "reqps",
          "Requests answered with another code than OK, those on a stream too.",
          (Query(rate("aerie_calls_total", 'grpc_code!="OK"', by=("call", "grpc_code"), select=SELECT_PROCESS) + " > 0",
                 "{{call}}: {{grpc_code}}"),)),
    Panel("Request log", "timeseries", "suffix: /s",
          "Records written to the file of --request-log, and records that are missing there, by reason: queue_full, "
          "the disk is slower than sessions end; write_failed, the server's log says why.",
          (Query(rate("aerie_request_log_records_total", select=SELECT_PROCESS), "written"),
           Query(rate("aerie_request_log_dropped_total", by=("reason",), select=SELECT_PROCESS),
                 "dropped: {{reason}}"))),
    Panel("RPC latency p99", "timeseries", "s",
          "From the start of a unary RPC to its end, decoding included. DraftStream lasts as long as its client wants "
          "and is left out.",
          (Query(quantile(0.99, RPC_DURATION, 'grpc_type="unary"', by=("grpc_method",), select=SELECT_PROCESS),
                 "{{grpc_method}}"),)),
    Panel("Hidden states", "timeseries", "Bps",
          "Bytes of the hidden states committed, by the way they travelled.",
          (Query(rate("aerie_hidden_bytes_total", by=("transport",)), "{{transport}}"),)),
    Panel("Message bytes", "timeseries", "Bps",
          "Bytes of all messages received and sent. Hidden states make nearly all of what is received.",
          (Query(rate("aerie_rpc_received_bytes_total", select=SELECT_PROCESS), "received"),
           Query(rate("aerie_rpc_sent_bytes_total", select=SELECT_PROCESS), "sent"))),
))

LOADS = Row("Drafters loaded while the server runs", (
    Panel("Reloads", "timeseries", "suffix: /min",
          "Drafters loaded after the start, per minute, by what came of it. failed: what was served before goes on, and "
          "the server's log says why. Those of drafters that never served are in it while all drafters are chosen.",
          (Query(f"60 * {rate('aerie_drafter_reloads_total', by=('result',), select=SELECT_LOADS)}", "{{result}}"),)),
    Panel("Last reload ok", "timeseries", "none",
          "1: the last reload of the drafter succeeded, or there was none. 0: it failed, the version before it goes on, "
          "and AerieDrafterReloadFailed alerts.",
          (Query("min by (instance, drafter) "
                 f"({series('aerie_drafter_last_reload_successful', select=SELECT_LOADS)})",
                 "{{drafter}} on {{instance}}"),), maximum=1),
    Panel("Time since the last reload", "timeseries", "s",
          "Since the last reload of each drafter ended, well or not. Those that were never reloaded have no line.",
          (Query("time() - max by (instance, drafter) "
                 f"({series('aerie_drafter_last_reload_timestamp_seconds', select=SELECT_LOADS)} > 0)",
                 "{{drafter}} on {{instance}}"),)),
))

PROCESS = Row("Process", (
    Panel("CPU", "timeseries", "suffix: cores",
          "Processor time used, user and system.",
          (Query(rate("process_cpu_seconds_total", by=("instance",), select=SELECT_PROCESS), "{{instance}}"),),
          width=6),
    Panel("Resident memory", "timeseries", "bytes",
          "Memory in use. Weights are mapped from the file and count as far as they were read.",
          (Query(total("process_resident_memory_bytes", by=("instance",), select=SELECT_PROCESS), "{{instance}}"),),
          width=6),
    Panel("File descriptors", "timeseries", "percentunit",
          "Share of the descriptors that the process may hold. Every connection takes one.",
          (Query(ratio(total("process_open_fds", by=("instance",), select=SELECT_PROCESS),
                       total("process_max_fds", by=("instance",), select=SELECT_PROCESS)), "{{instance}}"),),
          width=6, maximum=1),
    Panel("Uptime", "timeseries", "s",
          "Time since the process started.",
          (Query(f"time() - max by (instance) ({series('process_start_time_seconds', select=SELECT_PROCESS)})",
                 "{{instance}}"),), width=6),
    Panel("Drafters", "table", "none",
          "What is loaded: wiring (boundaries in order), device, dtype, sizes, and the digest of the weights.",
          (Query(f"max by (instance, drafter, target, version, wiring, device, dtype, draft_vocab_size, hidden_size) "
                 f"({series('aerie_drafter_info')})", ""),), width=12, height=6),
    Panel("Builds", "table", "none",
          "What runs: version, revision of the source, compiler and LibTorch.",
          (Query(f"max by (instance, version, revision, compiler, libtorch) "
                 f"({series('aerie_build_info', select=SELECT_PROCESS)})", ""),), width=12, height=6),
))

DASHBOARD = Dashboard(
    "aerie-overview", "Aerie overview",
    "What drafts gain, what they cost, and whether the server is well. Texts stay right whatever is red here: the "
    "target checks every token.",
    (NOW, ACCEPTANCE, LATENCY, MEMORY, RPCS, LOADS, PROCESS))
