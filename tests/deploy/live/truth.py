"""The books of a load as numbers that expressions are held against: ratios, rates, histograms."""

import collections
import re
import urllib.request

from server_process import PATIENCE

from promql_math import bucket_counts, quantile_range

PHASES = ("queue", "extend", "step", "total")
# Told as whole nanoseconds, observed as fractions of them.
TIMING_SLACK = 1e-5


def scrape(server):
    url = f"http://{server.ports['metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


def bucket_bounds(page, metric):
    """[(label as it is written, its value)] of a histogram, in order: what the server chose, not what it counted."""
    labels = set(re.findall(rf'^{metric}_bucket\{{.*\ble="([^"]+)".*\}}', page, flags=re.MULTILINE))
    return sorted(((label, float(label)) for label in labels), key=lambda bound: bound[1])


class Truth:
    """`factor` is what an increase since the start is multiplied with to become a rate, see promql_math."""

    def __init__(self, books, page, factor):
        self.books, self.page, self.factor = books, page, factor

    def rate(self, increase):
        return increase * self.factor

    @property
    def accept_length(self):
        return 1 + self.books.accepted / self.books.drafts

    @property
    def unreported(self):
        return sum(self.books.unreported.values())

    def observations(self, metric):
        """What a histogram was given, as far as it is known to the unit."""
        requests = self.books.requests
        return {
            "aerie_request_accept_length_tokens": [1 + r.accepted / r.steps for r in requests],
            "aerie_request_acceptance_ratio": [r.accepted / r.proposed for r in requests],
            "aerie_draft_length_tokens": [tokens for tokens, _ in self.books.made],
            "aerie_draft_depth_levels": [levels for _, levels in self.books.made],
        }[metric]

    def quantile(self, share, metric, observations=None):
        """(lowest, highest) value that histogram_quantile may give; None when it got nothing."""
        if observations is None:
            observations = self.observations(metric)
        return quantile_range(share, observations, [bound for _, bound in bucket_bounds(self.page, metric)])

    def speed_quantile(self, share):
        """Of tok/s, of which only bounds are known: the server's time lies between two that the client measured."""
        metric = "aerie_request_tokens_per_second"
        slowest, fastest = self.speeds()
        return self.quantile(share, metric, slowest)[0], self.quantile(share, metric, fastest)[1]

    def speeds(self):
        slowest = [r.completion / r.longest for r in self.books.requests]
        fastest = [r.completion / r.shortest if r.shortest else float("inf") for r in self.books.requests]
        return slowest, fastest

    def bucket_rates(self, metric, observations=None):
        """{le: observations a second} for a heat map."""
        if observations is None:
            observations = self.observations(metric)
        bounds = bucket_bounds(self.page, metric)
        counts = bucket_counts(observations, [bound for _, bound in bounds])
        return {label: self.rate(count) for (label, _), count in zip(bounds, counts)}

    def phases(self):
        """Those that got something: {phase: seconds of each call}."""
        return {phase: self.books.phases[phase] for phase in PHASES if self.books.phases[phase]}

    def unseen_phases(self):
        """Phases that the server has and that its answers do not tell."""
        found = set(re.findall(r'aerie_draft_duration_seconds_count\{.*\bphase="([^"]+)"', self.page))
        return found - set(PHASES)

    def phase_quantiles(self, share):
        metric, longest = "aerie_draft_duration_seconds", max(rpc.seconds for rpc in self.books.rpcs)
        known = {phase: self.quantile(share, metric, seconds) for phase, seconds in self.phases().items()}
        top = self.quantile(share, metric, [longest])[1]
        return known | {phase: (0.0, top) for phase in self.unseen_phases()}

    def phase_means(self):
        means = {phase: sum(seconds) / len(seconds) for phase, seconds in self.phases().items()}
        known = {phase: (mean * (1 - TIMING_SLACK), mean * (1 + TIMING_SLACK)) for phase, mean in means.items()}
        return known | {phase: (0.0, max(rpc.seconds for rpc in self.books.rpcs)) for phase in self.unseen_phases()}

    def calls(self):
        """{(what was asked for, code): how often}, those on streams too: on each a session was opened and drafted for."""
        names = {"OpenSession": "open_session", "Draft": "draft", "CloseSession": "close_session"}
        counts = collections.Counter((names[rpc.method], rpc.code) for rpc in self.books.rpcs if rpc.method in names)
        streams = sum(rpc.method == "DraftStream" for rpc in self.books.rpcs)
        return counts + collections.Counter({("open_session", "OK"): streams, ("draft", "OK"): streams})

    def methods(self):
        """All that the server has; those of administrators are not called here."""
        return set(re.findall(r'^grpc_server_handled_total\{.*\bgrpc_method="([^"]+)"', self.page, flags=re.MULTILINE))

    def rpcs_by_method(self):
        return collections.Counter(rpc.method for rpc in self.books.rpcs)

    def rpc_errors(self):
        return collections.Counter((rpc.method, rpc.code) for rpc in self.books.rpcs if rpc.code != "OK")

    def rpc_quantile(self, share, method):
        """The server's time of an RPC is within the client's."""
        seconds = [rpc.seconds for rpc in self.books.rpcs if rpc.method == method]
        return 0.0, self.quantile(share, "grpc_server_handling_seconds", seconds)[1]
