"""Runs the checks of the S rules against a server, one after the other, and judges them.

What a check leaves open is closed before the next one begins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import grpc

from aerie_draft.conformance import (
    server_checks_calls,
    server_checks_limits,
    server_checks_open,
    server_checks_repeats,
    server_checks_rounds,
    server_checks_shared,
    server_checks_stream,
    server_checks_trees,
)
from aerie_draft.conformance.probe import Broken, NotSeen, Probe, Refused
from aerie_draft.conformance.report import Evidence, Report
from aerie_draft.conformance.rules import SERVER_RULES
from aerie_draft.security import Security

CHECKS = tuple(
    check
    for module in (
        server_checks_open,
        server_checks_rounds,
        server_checks_trees,
        server_checks_calls,
        server_checks_repeats,
        server_checks_stream,
        server_checks_shared,
        server_checks_limits,
    )
    for check in module.CHECKS.checks
)
_DETAILS = ("S-MANIFEST-MISMATCH", "S-BYTE-COUNT", "S-BASE-AHEAD", "S-SESSION-UNKNOWN")


@dataclasses.dataclass(frozen=True)
class ServerSettings:
    rules: frozenset[str] | None = None  # None: all
    drafter: str = ""  # empty: the only one
    intrusive: bool = False  # also what holds all of a server's memory or sessions for a moment
    security: Security | None = None  # TLS and token


def check_server(
    address: str,
    settings: ServerSettings = ServerSettings(),
    progress: Callable[[str], None] = lambda line: None,
) -> Report:
    """Refused when the server does not even tell what it is."""
    evidence = Evidence()
    probe = Probe(address, evidence, settings.drafter, settings.security)
    wanted = [r for r in SERVER_RULES if settings.rules is None or r in settings.rules]
    # Details are judged on whatever is refused while other rules are tried.
    details = _DETAILS if "S-ERROR-DETAIL" in wanted else ()
    ran = [check for check in CHECKS if check.rule in wanted or check.rule in details]
    try:
        for check in ran:
            progress(check.rule)
            _run(check, probe, evidence, settings)
    finally:
        probe.close()
    return Report("server", address, evidence.outcomes(wanted))


def _run(check, probe: Probe, evidence: Evidence, settings: ServerSettings) -> None:
    rule = check.rule
    if check.intrusive and not settings.intrusive:
        evidence.undecided(rule, "it takes all of the server's room for a moment: --intrusive")
        return
    probe.where = rule
    try:
        check.run(probe)
    except NotSeen as why:
        evidence.undecided(rule, str(why))
    except Broken as broken:
        evidence.violated(rule, rule, broken.seen, broken.expected, broken.remedy)
    except Refused as refused:
        evidence.violated(
            rule,
            rule,
            f"a call that is right was refused: {refused}",
            "it to be served",
            "see the server's log",
        )
    except grpc.RpcError as error:
        evidence.violated(
            rule,
            rule,
            f"a call ended with {error.code().name}: {error.details()}",
            "an answer",
            "see the server's log",
        )
    except Exception as error:  # Whatever a server sends must not end the tool.
        evidence.violated(
            rule,
            rule,
            f"an answer that cannot be read: {type(error).__name__}: {error}",
            "one as the contract describes it",
            "compare it with the contract",
        )
    else:
        evidence.saw(rule)
    finally:
        probe.clear()
