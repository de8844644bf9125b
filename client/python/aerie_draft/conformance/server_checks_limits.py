"""Context, memory, sessions, leases: what a server does when there is no more room."""

from __future__ import annotations

import time

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, expect_same
from aerie_draft.conformance.probe import (
    Broken,
    CheckList,
    Code,
    NotSeen,
    Probe,
    Refused,
)
from aerie_draft.conformance.server_checks_open import expect

CHECKS = CheckList()
pb = draft_pb2
_MOST_ROWS = 8192  # to fill a server's draft KV with
_MOST_SESSIONS = 2048
_LONGEST_LEASE = 5.0  # seconds


@CHECKS.add("S-CONTEXT-LIMIT")
def context_limit(probe: Probe) -> None:
    most = probe.limits.max_context
    if most < 8:
        raise NotSeen(f"max_context is {most}, too few rows to come near it")
    line = Line(probe, 71, start=most - 4)
    whole = line.advance(3, probe.k)
    expect(
        len(whole.tree.token_ids) > 0 or whole.no_draft_reason == pb.NO_DRAFT_REASON_CONTEXT_LIMIT,
        "no draft and no reason near the limit",
        "either",
        "say why there is no draft",
    )
    at = line.length
    request = probe.request(
        line.id, at, line.sample.tokens(at, at + 3), line.sample.rows(at, at + 3), probe.k, 50
    )
    try:
        past = probe.call("Draft", request)
    except Refused as refused:
        raise Broken(
            f"rows past max_context got {refused}",
            "an answer without a draft, CONTEXT_LIMIT",
            "a long sequence goes on without drafts; it is no error",
        ) from None
    expect(
        not past.tree.token_ids and past.no_draft_reason == pb.NO_DRAFT_REASON_CONTEXT_LIMIT,
        f"{len(past.tree.token_ids)} tokens, reason {past.no_draft_reason} past max_context",
        "none, CONTEXT_LIMIT",
        "say why there is no draft",
    )
    line.close()


@CHECKS.add("S-EVICTED", intrusive=True)
def evicted(probe: Probe) -> None:
    limits = probe.limits
    if not limits.kv_memory_bytes or not limits.kv_bytes_per_row:
        raise NotSeen("the server does not tell how much draft KV it has")
    capacity = limits.kv_memory_bytes // limits.kv_bytes_per_row
    if capacity > _MOST_ROWS:
        raise NotSeen(f"draft KV holds {capacity} rows; {_MOST_ROWS} are the most that is filled")
    idle = Line(probe, 72)
    idle.advance(40, probe.k)
    crowd = []
    rows = 0
    while rows < 2 * capacity and len(crowd) + 2 < limits.max_sessions:
        noise = Line(probe, 80 + len(crowd))
        crowd.append(noise)
        while noise.length < min(limits.max_context - 8, capacity // 2):
            count = min(256, limits.max_rows_per_call, capacity // 4)
            noise.advance(max(count, 1), 0)
            rows += count
    at = idle.length
    request = probe.request(
        idle.id, at, idle.sample.tokens(at, at + 2), idle.sample.rows(at, at + 2), probe.k, 90
    )
    refused = probe.refused(
        "Draft",
        request,
        Code.FAILED_PRECONDITION,
        "a session that was idle while others filled the draft KV",
        "EVICTED",
    )
    expect(
        refused.detail.HasField("resend_from"), "EVICTED without resend_from", "the row", "name it"
    )
    for noise in crowd:
        noise.close()
    row = refused.detail.resend_from
    again = probe.draft(
        idle.id, row, idle.sample.tokens(row, at + 2), idle.sample.rows(row, at + 2), probe.k, 90
    )
    twin = Line(probe, 72)
    expect_same(
        again,
        twin.advance(at + 2, probe.k),
        "a session whose rows were evicted and sent again",
        "take the rows again, from the row that was named",
    )
    twin.close()
    idle.close()


@CHECKS.add("S-SESSION-LIMIT", intrusive=True)
def session_limit(probe: Probe) -> None:
    most = probe.limits.max_sessions
    if most > _MOST_SESSIONS:
        raise NotSeen(f"max_sessions is {most}; {_MOST_SESSIONS} are the most that are opened")
    opened = []
    try:
        for _ in range(most + 1):
            try:
                opened.append(probe.open().session_id)
            except Refused as refused:
                detail = refused.detail
                expect(
                    refused.code is Code.RESOURCE_EXHAUSTED
                    and detail is not None
                    and detail.HasField("retry_after"),
                    f"session {len(opened) + 1} got {refused}",
                    "RESOURCE_EXHAUSTED with retry_after",
                    "say when to try again",
                )
                return
        raise Broken(
            f"{len(opened)} sessions at once", f"at most max_sessions, {most}", "keep the limit"
        )
    finally:
        for name in opened:
            probe.end(name)


@CHECKS.add("S-LEASE")
def lease(probe: Probe) -> None:
    told = probe.limits.session_lease
    seconds = told.seconds + told.nanos * 1e-9
    if seconds > _LONGEST_LEASE:
        raise NotSeen(f"the lease is {seconds:g} s; {_LONGEST_LEASE:g} are the most to wait for")
    line = Line(probe, 73)
    line.advance(3, 1)
    for _ in range(3):
        # A call begins the lease anew, so each time counts for itself.
        time.sleep(seconds + 0.5)
        try:
            line.advance(1, 1)
        except Refused as refused:
            expect(
                refused.code is Code.NOT_FOUND,
                f"{refused} after the lease",
                "NOT_FOUND",
                "close idle sessions, and tell so",
            )
            return
    raise Broken(
        f"a session that was idle for {seconds + 0.5:g} s three times lives",
        "NOT_FOUND",
        "close sessions whose lease has run out",
    )
