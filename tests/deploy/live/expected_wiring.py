"""The wiring's metrics as an exporter gives them, what the dashboard must show of them; and of recording rules."""

from expectation import by, labelled, one
from expected import REJECT_REASONS, positions

CAPTURES = {"0": (0.05, 2.7, 2.66), "1": (0.31, 6.0, 6.29), "2": (-0.1, 11.0, 23.2)}  # place, size, size recorded
CHECKS = {"fits": 90, "odd": 7, "off": 3}
ALARMS = {"suspect": 2, "wrong": 0}
SOURCES = {"unknown": 1, "ok": 4, "suspect": 2, "wrong": 0}
PROMISED = 1.75


def wiring_samples(drafter, target, counted):
    """What the exporter serves; counters at 0 until `counted`, so that Prometheus sees them rise."""
    common = f'drafter="{drafter}",target="{target}",version="0"'

    def sample(name, **labels):
        pairs = [common, *(f'{key}="{value}"' for key, value in labels.items())]
        return f"{name}{{{','.join(pairs)}}}"

    samples = {sample("aerie_wiring_guard_info", mode="alert"): 1,
               sample("aerie_wiring_expected_accept_length"): PROMISED}
    for state, count in SOURCES.items():
        samples[sample("aerie_wiring_sources", state=state)] = count
        samples[sample("aerie_wiring_state", state=state)] = int(state == "suspect")
    for result, count in CHECKS.items():
        samples[sample("aerie_wiring_checks_total", result=result)] = count if counted else 0
    for state, count in ALARMS.items():
        samples[sample("aerie_wiring_alarms_total", state=state)] = count if counted else 0
    for capture, (place, size, recorded) in CAPTURES.items():
        samples[sample("aerie_wiring_place_position", capture=capture)] = place
        samples[sample("aerie_hidden_row_rms", capture=capture)] = size
        samples[sample("aerie_hidden_row_rms_expected", capture=capture)] = recorded
    return samples


def wiring(truth, facts):
    """Of the wiring dashboard. The exporter is scraped at other times: rates of its counters have their own factor."""
    books, rate = truth.books, truth.rate
    guard, instance = ("instance", facts.other_instance), [("instance", facts.instance)]
    return {
        "Worst state": labelled({frozenset({guard, ("state", "suspect")}): 1}),
        "What the guard may do": labelled({frozenset({guard, ("mode", "alert")}): 1,
                                           frozenset({*instance, ("mode", "off")}): 1}),
        "Wirings that heads want": labelled({frozenset({
            *instance, ("drafter", facts.drafter), ("target", facts.target),
            ("version", facts.drafter_labels["version"]), ("wiring", facts.drafter_labels["wiring"])}): 1}),
        "Sources by state": by("state", SOURCES),
        "Checks": by("result", {result: count * facts.other_factor for result, count in CHECKS.items()}),
        "Alarms": by("state", {state: 60 * count * facts.other_factor for state, count in ALARMS.items()}),
        "Place of the rows": by("capture", {capture: place for capture, (place, _, _) in CAPTURES.items()}),
        "Size of the rows": {"A": by("capture", {capture: size for capture, (_, size, _) in CAPTURES.items()}),
                             "B": by("capture", {capture: recorded for capture, (*_, recorded) in CAPTURES.items()})},
        "Size against the recording": labelled({frozenset({guard, ("capture", capture)}): size / recorded
                                                for capture, (_, size, recorded) in CAPTURES.items()}),
        "Accept length, measured and promised": {"A": by("drafter", {facts.drafter: truth.accept_length}),
                                                 "B": by("drafter", {facts.drafter: PROMISED})},
        "Acceptance of the first token": labelled({frozenset(instance): books.kept_at(0) / books.reached(0)}),
        "Workers that count otherwise": labelled({frozenset(instance): books.mismatches / books.drafts}),
        "Refused manifests": labelled({frozenset(instance): rate(books.rejected["wiring"])}),
    }


def recorded(truth, facts):
    """{recording rule: Expectation}. `truth` has the rate factor of that rule's window and time."""
    books, rate = truth.books, truth.rate
    common = {("job", "aerie"), ("drafter", facts.drafter), ("target", facts.target)}
    instance = frozenset({*common, ("instance", facts.instance)})

    def plain(value):
        return labelled({frozenset(common): value})

    def each(label, values):
        return labelled({frozenset({*common, (label, str(name))}): value for name, value in values.items()})

    return {
        "aerie:drafts_per_second:5m": plain(rate(books.drafts)),
        "aerie:proposed_tokens_per_second:5m": plain(rate(books.proposed)),
        "aerie:accepted_tokens_per_second:5m": plain(rate(books.accepted)),
        "aerie:committed_tokens_per_second:5m": plain(rate(books.committed)),
        "aerie:rejected_per_second:5m": each("reason", {r: rate(books.rejected[r]) for r in REJECT_REASONS}),
        "aerie:instance_drafts_per_second:5m": labelled({instance: rate(books.drafts)}),
        "aerie:acceptance_rate:5m": plain(books.accepted / books.proposed),
        "aerie:accept_length:5m": plain(truth.accept_length),
        "aerie:accept_length:1h": plain(truth.accept_length),
        "aerie:instance_accept_length:5m": labelled({instance: truth.accept_length}),
        "aerie:acceptance_by_position:5m": each("position", positions(truth, books.reached)),
        "aerie:drafted_output_share:5m": plain(books.accepted / books.committed),
        "aerie:request_accept_length_p10:15m": plain(truth.quantile(0.1, "aerie_request_accept_length_tokens")),
        "aerie:unreported_share:5m": plain(truth.unreported / (truth.unreported + books.drafts)),
        "aerie:mismatch_share:5m": plain(books.mismatches / books.drafts),
        "aerie:draft_seconds_p50:5m": each("phase", truth.phase_quantiles(0.5)),
        "aerie:draft_seconds_p99:5m": each("phase", truth.phase_quantiles(0.99)),
        "aerie:draft_seconds_objective": one(0.1),
        "aerie:kv_used_share": labelled({instance: 4 / 64}),
    }
