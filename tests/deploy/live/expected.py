"""What every panel of every dashboard must show after the scripted load: (dashboard, panel, query) -> Expectation."""

from expectation import by, labelled, nothing, one, one_between
from script import MAX_K, PAGES

METHODS = ("Draft", "DraftStream", "OpenSession", "CloseSession", "GetServerInfo")
UNREPORTED_REASONS = ("closed", "lease", "rollback", "stream_closed", "shutdown")
SKIP_REASONS = ("not_asked", "context_limit", "deadline", "not_worthwhile")
REJECT_REASONS = ("queue_full", "deadline", "lease", "wiring", "shape", "quota", "kv_memory", "client_rows",
                  "client_bytes", "target_quota")
DROP_REASONS = ("queue_full", "write_failed")
CALLS = ("open_session", "draft", "close_session")
SESSION_ENDS = ("closed", "lease", "stream_closed", "shutdown")

TIMED = "the client's own times bound it"


def positions(truth, over):
    """{position: kept there over `over(position)`}, without those where that is 0."""
    return {i: truth.books.kept_at(i) / over(i) for i in range(MAX_K) if over(i)}


def per_reason(truth, counts, reasons):
    return by("reason", {reason: truth.rate(counts[reason]) for reason in reasons})


def overview(truth, facts):
    """`facts`: what is known of the process and the server beside the books."""
    books, rate = truth.books, truth.rate
    drafter = {("drafter", facts.drafter), ("target", facts.target)}
    instance = [("instance", facts.instance)]
    up = [[("instance", facts.instance)], [("instance", facts.other_instance)]]
    now = {
        "Accept length": one(truth.accept_length),
        "Acceptance rate": one(books.accepted / books.proposed),
        "Output": one(rate(books.committed)),
        "Output from drafts": one(books.accepted / books.committed),
        "Drafts": one(rate(books.drafts)),
        "Draft latency p99": one_between(*truth.phase_quantiles(0.99)["total"], "a rank may fall on a bucket's edge"),
        "Refused calls": one(rate(sum(books.rejected.values()))),
        "Instances up": one(len(up)),
    }
    acceptance = {
        "Accept length by drafter": labelled({frozenset(drafter): truth.accept_length}),
        "Accept length by instance": labelled({frozenset(instance): truth.accept_length}),
        "Accept length against a week ago": labelled(
            {frozenset(drafter | {("job", "aerie")}): truth.accept_length / facts.week_ago}),
        "Acceptance by position": by("position", positions(truth, books.reached)),
        "Token flow": {"A": one(rate(books.proposed)), "B": one(rate(books.accepted)),
                       "C": one(rate(books.proposed - books.accepted)), "D": one(rate(books.committed))},
        "Drafts that no ratio knows": {"A": one(truth.unreported / (truth.unreported + books.drafts)),
                                       "B": one(books.mismatches / books.drafts)},
    }
    latency = {
        "Draft latency p99 by phase": by("phase", truth.phase_quantiles(0.99)),
        "Draft latency p50 by phase": by("phase", truth.phase_quantiles(0.5)),
        "Latency against the objective": {
            "A": labelled({frozenset(drafter | {("job", "aerie"), ("phase", "total")}):
                           truth.phase_quantiles(0.99)["total"]}),
            "B": one(0.1)},
        "Mean time by phase": by("phase", truth.phase_means(), "answers tell whole nanoseconds"),
        "Sessions a pass": labelled({frozenset(instance): 1.0}),
        "Queue": {"A": one(0), "B": one(0)},
        "Draft length": {"A": one(sum(tokens for tokens, _ in books.made) / len(books.made)),
                         "B": one(sum(levels for _, levels in books.made) / len(books.made))},
        "Shortened drafts": per_reason(truth, books.skipped, SKIP_REASONS),
        "Rows of hidden states": by("transport", {"inline": rate(books.rows), "shared_memory": 0.0}),
    }
    memory = {
        "Open sessions": labelled({frozenset(instance): 2}),
        "Ended sessions": per_reason(truth, books.ended, SESSION_ENDS),
        "Draft KV": by("state", {"shared": 2 * facts.page_bytes, "private": 2 * facts.page_bytes,
                                 "free": (PAGES - 4) * facts.page_bytes}),
        "Draft KV in use": labelled({frozenset(instance): 4 / PAGES}),
        "Evictions": labelled({frozenset(instance): 60 * rate(books.evictions)}),
        "Evicted rows": labelled({frozenset(instance): rate(books.evicted_rows)}),
    }
    by_method = truth.rpcs_by_method()
    rpcs = {
        "RPCs": by("grpc_method", {method: rate(by_method[method]) for method in truth.methods() | set(METHODS)}),
        "RPC errors": labelled({frozenset({("grpc_method", method), ("grpc_code", code)}): rate(count)
                                for (method, code), count in truth.rpc_errors().items()}),
        "Refusals by reason": per_reason(truth, books.rejected, REJECT_REASONS),
        "Calls": by("call", {
            call: rate(sum(count for (asked, _), count in truth.calls().items() if asked == call)) for call in CALLS}),
        "Failed calls": labelled({
            frozenset({("call", call), ("grpc_code", code)}): rate(count)
            for (call, code), count in truth.calls().items() if code != "OK"}),
        "Request log": {"A": one(0), "B": by("reason", dict.fromkeys(DROP_REASONS, 0))},
        "RPC latency p99": by("grpc_method", {method: truth.rpc_quantile(0.99, method) for method in METHODS
                                              if method != "DraftStream" and by_method[method]}, TIMED),
        "Hidden states": by("transport", {"inline": rate(books.rows * facts.row_bytes), "shared_memory": 0.0}),
        "Message bytes": {"A": one(rate(sum(rpc.received for rpc in books.rpcs))),
                          "B": one(rate(sum(rpc.sent for rpc in books.rpcs)))},
    }
    loads = {
        "Reloads": by("result", {"ok": 60 * rate(facts.reloads), "failed": 0}),
        "Last reload ok": labelled({frozenset({("drafter", facts.drafter), *instance}): 1}),
        "Time since the last reload": labelled({frozenset({("drafter", facts.drafter), *instance}):
                                                facts.since_reload}, "it ended between two moments"),
    }
    process = {
        "CPU": labelled({frozenset(instance): (0.0, facts.cpu_seconds / facts.window * 1.5)},
                        "less than all it ever used, stretched to the window"),
        "Resident memory": labelled({frozenset(instance): (facts.weight_bytes / 2, facts.peak_memory)},
                                    "weights at least in half, and never above the kernel's high-water mark"),
        "File descriptors": labelled({frozenset(instance): (1 / facts.most_descriptors, 200 / facts.most_descriptors)},
                                     "connections come and go"),
        "Uptime": labelled({frozenset(instance): facts.uptime}, "start is exported in whole seconds"),
        "Drafters": labelled({frozenset({*drafter, *instance, *facts.drafter_labels.items()}): 1}),
        "Builds": labelled({frozenset({*instance, *facts.build_labels.items()}): 1}),
    }
    return now | acceptance | latency | memory | rpcs | loads | process


def requests(truth, facts):
    books, rate = truth.books, truth.rate
    length, ratio_, speed = ("aerie_request_accept_length_tokens", "aerie_request_acceptance_ratio",
                             "aerie_request_tokens_per_second")
    lengths = truth.observations(length)
    edge = "a rank may fall on a bucket's edge"
    slowest, fastest = truth.speeds()
    low, high = truth.bucket_rates(speed, fastest), truth.bucket_rates(speed, slowest)
    shares = (("A", 0.9), ("B", 0.5), ("C", 0.1))
    conditional = {"A": by("position", {0: books.kept_at(0) / books.reached(0)})}
    for letter, i in zip("BCDEF", range(1, 6)):
        before = books.kept_at(i - 1)
        conditional[letter] = one(books.kept_at(i) / before) if before else nothing("nothing was kept before it")
    return {
        "Requests": one(rate(len(books.requests))),
        "Requests without a draft": one(rate(sum(books.ended.values()) - len(books.requests))),
        "Accept length, mean over requests": one(sum(lengths) / len(lengths)),
        "Accept length, mean over drafts": one(truth.accept_length),
        "Accept length, unhappy tenth": one_between(*truth.quantile(0.1, length), edge),
        "Speed, unhappy tenth": one_between(*truth.speed_quantile(0.1), TIMED),
        "Accept length of requests": by("le", truth.bucket_rates(length)),
        "Acceptance rate of requests": by("le", truth.bucket_rates(ratio_)),
        "Speed of requests": by("le", {le: (low[le], high[le]) for le in low}, TIMED),
        "Accept length, quantiles": {letter: one_between(*truth.quantile(share, length), edge)
                                     for letter, share in shares},
        "Acceptance rate, quantiles": {letter: one_between(*truth.quantile(share, ratio_), edge)
                                       for letter, share in shares},
        "Speed, quantiles": {letter: one_between(*truth.speed_quantile(share), TIMED) for letter, share in shares},
        "Given that the one before was kept": conditional,
        "Over all drafts": by("position", positions(truth, lambda _: books.drafts)),
        "Drafts that reached it": by("position", {i: books.reached(i) / books.drafts for i in range(MAX_K)}),
        "Tokens of drafts": by("le", truth.bucket_rates("aerie_draft_length_tokens")),
        "Levels of drafts": by("le", truth.bucket_rates("aerie_draft_depth_levels")),
        "k that was chosen": by("le", truth.bucket_rates("aerie_adaptive_k_tokens", [])),
        "Verification by the target": {letter: nothing("the script's workers report no times") for letter in "AB"},
        "Draft latency": by("le", truth.bucket_rates("aerie_draft_duration_seconds", truth.phases()["total"])),
    }
