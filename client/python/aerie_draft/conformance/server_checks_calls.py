"""Calls that a server has to refuse, and what a refusal must leave as it was."""

from __future__ import annotations

import numpy as np

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, expect_same
from aerie_draft.conformance.probe import CheckList, Code, NotSeen, Probe, Refused
from aerie_draft.conformance.server_checks_open import expect

CHECKS = CheckList()
_MIB = 1 << 20


def begun(probe: Probe, seed: int) -> Line:
    line = Line(probe, seed)
    line.advance(8, probe.k)
    return line


def _bad(probe: Probe, line: Line) -> dict[str, tuple[draft_pb2.DraftRequest, str]]:
    """Calls that contradict themselves, with the reason that each has to get."""
    at, two = line.length, line.sample.tokens(0, 2)
    rows = line.sample.rows(0, 2)
    element = probe.dtype.size
    nan = np.frombuffer(rows, f"<u{element}").copy()
    nan[-1] = {4: 0x7FC00000, 2: 0x7FC0 if probe.dtype.value == 3 else 0x7E00}[element]
    infinite = np.frombuffer(rows, f"<u{element}").copy()
    infinite[0] = {4: 0x7F800000, 2: 0x7F80 if probe.dtype.value == 3 else 0x7C00}[element]
    request = probe.request
    k = probe.k
    other = request(line.id, at, two, rows, k)
    other.hidden_states.dtype = next(d for d in (1, 2, 3) if d != probe.dtype.value)
    vocab = probe.drafter.vocab_size
    return {
        "a byte too few": (request(line.id, at, two, rows[:-1], k), "BYTE_COUNT"),
        "a row too few": (request(line.id, at, two, rows[: len(rows) // 2], k), "BYTE_COUNT"),
        "a row too many": (request(line.id, at, two[:1], rows, k), "BYTE_COUNT"),
        "another dtype": (other, ""),
        "a NaN": (request(line.id, at, two, nan.tobytes(), k), "NON_FINITE"),
        "an infinity": (request(line.id, at, two, infinite.tobytes(), k), "NON_FINITE"),
        "token id vocab_size": (
            request(line.id, at, [two[0], vocab], rows, k),
            "TOKEN_OUT_OF_RANGE",
        ),
        "token id -1": (
            request(line.id, at, [(1 << 32) - 1, two[1]], rows, k),
            "TOKEN_OUT_OF_RANGE",
        ),
        "k above max_k": (
            request(line.id, at, two, rows, probe.limits.max_k + 1),
            "K_OUT_OF_RANGE",
        ),
        "k without a row": (request(line.id, at, [], b"", k), "K_WITHOUT_ROWS"),
    }


def _refuse_bad(probe: Probe, names: set[str]) -> list[Refused]:
    line = begun(probe, 11)
    refusals = []
    for what, (request, reason) in _bad(probe, line).items():
        if what in names:
            refusals.append(
                probe.refused(
                    "Draft", request, Code.INVALID_ARGUMENT, f"a call with {what}", reason
                )
            )
    line.close()
    return refusals


@CHECKS.add("S-BYTE-COUNT")
def byte_count(probe: Probe) -> None:
    _refuse_bad(probe, {"a byte too few", "a row too few", "a row too many", "another dtype"})


@CHECKS.add("S-NON-FINITE")
def non_finite(probe: Probe) -> None:
    for refused in _refuse_bad(probe, {"a NaN", "an infinity"}):
        expect(
            "row" in refused.message,
            f"message {refused.message!r}",
            "the row and the capture that holds it",
            "say where the value is",
        )


@CHECKS.add("S-VOCAB")
def vocab(probe: Probe) -> None:
    _refuse_bad(probe, {"token id vocab_size", "token id -1"})
    line = begun(probe, 12)
    request = draft_pb2.CloseSessionRequest(
        session_id=line.id, final_token_ids=[probe.drafter.vocab_size]
    )
    probe.refused("CloseSession", request, Code.INVALID_ARGUMENT, "a final token out of range")
    line.close()


@CHECKS.add("S-K-RANGE")
def k_range(probe: Probe) -> None:
    _refuse_bad(probe, {"k above max_k", "k without a row"})


@CHECKS.add("S-BASE-AHEAD")
def base_ahead(probe: Probe) -> None:
    line = begun(probe, 13)
    request = probe.request(line.id, 11, line.sample.tokens(11, 12), line.sample.rows(11, 12), 1)
    refused = probe.refused(
        "Draft", request, Code.FAILED_PRECONDITION, "base_length 11 of 8 rows", "BASE_LENGTH_AHEAD"
    )
    told = refused.detail.resend_from if refused.detail.HasField("resend_from") else None
    expect(told == 8, f"resend_from {told}", "8, the rows that are held", "name the row")
    line.advance(4, 1)
    line.close()


@CHECKS.add("S-REFUSAL-UNCHANGED")
def unchanged(probe: Probe) -> None:
    line, twin = begun(probe, 14), begun(probe, 14)
    cases = {what: request for what, (request, _) in _bad(probe, line).items()}
    cases["a gap"] = probe.request(line.id, 99, [1], line.sample.rows(0, 1), 1)
    rollback = probe.request(line.id, 2, [probe.drafter.vocab_size], line.sample.rows(0, 1), 1)
    cases["a rollback with a bad token"] = rollback
    numbered = probe.request(line.id, 8, [1], b"", 1, seq=77)
    cases["a numbered call without rows"] = numbered
    for what, request in cases.items():
        try:
            probe.call("Draft", request)
        except Refused:
            ours, theirs = line.advance(2, probe.k), twin.advance(2, probe.k)
            expect_same(
                ours,
                theirs,
                f"after the refusal of a call with {what}",
                "check a call completely before anything changes",
            )
            expect(
                ours.HasField("accepted") == theirs.HasField("accepted"),
                f"after the refusal of a call with {what} the last proposal is judged "
                f"{ours.HasField('accepted')}",
                str(theirs.HasField("accepted")),
                "a refused call brings no outcome",
            )
        else:
            raise NotSeen(f"a call with {what} was served, see the rule for that")
    line.close()
    twin.close()


@CHECKS.add("S-SESSION-UNKNOWN")
def unknown(probe: Probe) -> None:
    line = begun(probe, 15)
    line.close()
    for name, what in (
        ("no-such-session", "a session that never was"),
        (line.id, "a closed session"),
    ):
        request = probe.request(name, 0, [1], line.sample.rows(0, 1), 1)
        probe.refused("Draft", request, Code.NOT_FOUND, f"a call of {what}", "SESSION_UNKNOWN")
        probe.refused(
            "CloseSession",
            draft_pb2.CloseSessionRequest(session_id=name),
            Code.NOT_FOUND,
            f"a close of {what}",
            "SESSION_UNKNOWN",
        )


@CHECKS.add("S-ROWS-LIMIT")
def rows_limit(probe: Probe) -> None:
    count = probe.limits.max_rows_per_call + 1
    size = count * (probe.width * probe.dtype.size + 5) + 4096
    if size > min(probe.limits.max_message_bytes, 128 * _MIB):
        raise NotSeen(f"{count} rows are {size} bytes, more than a message may have")
    line = begun(probe, 18)
    row = line.sample.rows(0, 1)
    request = probe.request(line.id, 8, [1] * count, row * count, 0)
    probe.refused("Draft", request, Code.INVALID_ARGUMENT, f"a call of {count} rows")
    line.advance(1, 1)
    line.close()


@CHECKS.add("S-MESSAGE-LIMIT")
def message_limit(probe: Probe) -> None:
    limit = probe.limits.max_message_bytes
    if limit > 128 * _MIB:
        raise NotSeen(f"max_message_bytes is {limit}; a message above it is too much to try")
    line = begun(probe, 19)
    request = probe.request(line.id, 8, [1], b"\0" * limit, 1)
    probe.refused(
        "Draft", request, Code.RESOURCE_EXHAUSTED, f"a message of {request.ByteSize()} bytes"
    )
    line.advance(1, 1)
    line.close()
