"""What a server tells of itself, and whom it opens a session for."""

from __future__ import annotations

import math

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, expect_same
from aerie_draft.conformance.probe import Broken, CheckList, Code, Probe, Refused

CHECKS = CheckList()


def expect(condition: bool, seen: str, expected: str, remedy: str) -> None:
    if not condition:
        raise Broken(seen, expected, remedy)


@CHECKS.add("S-INFO")
def info(probe: Probe) -> None:
    told, drafter, limits = probe.info, probe.drafter, probe.limits
    remedy = "fill in GetServerInfo: workers are set up from it"
    expect(
        told.protocol_version >= 1, f"protocol_version {told.protocol_version}", "1 or more", remedy
    )
    for name in ("target_num_layers", "target_hidden_size", "vocab_size"):
        value = getattr(drafter, name)
        expect(value > 0, f"drafter {drafter.name!r} with {name} {value}", "a size", remedy)
    expect(len(drafter.captures) > 0, "a drafter without captures", "its wiring", remedy)
    for capture in drafter.captures:
        boundary = capture.kind == draft_pb2.CAPTURE_KIND_BOUNDARY
        fits = boundary and capture.boundary <= drafter.target_num_layers
        expect(
            fits or capture.kind == draft_pb2.CAPTURE_KIND_FINAL_NORM,
            f"a capture of kind {capture.kind} at {capture.boundary}",
            f"a boundary 0..{drafter.target_num_layers}, or the final norm",
            remedy,
        )
    for name in ("max_k", "max_rows_per_call", "max_message_bytes", "max_sessions", "max_context"):
        value = getattr(limits, name)
        expect(value > 0, f"limits.{name} {value}", "the limit in force", remedy)
    lease = limits.session_lease.seconds + limits.session_lease.nanos * 1e-9
    expect(lease > 0, f"a session_lease of {lease} s", "above 0", remedy)
    expect(len(told.dtypes) > 0, "no dtypes", "those that are taken on the wire", remedy)
    expect(
        draft_pb2.TRANSPORT_INLINE in told.transports,
        f"transports {list(told.transports)}",
        "TRANSPORT_INLINE among them",
        remedy,
    )
    for setting in (*told.settings, *drafter.settings):
        expect(
            bool(setting.name and setting.source),
            f"setting {setting.name!r} = {setting.value!r} with source {setting.source!r}",
            "where it came from",
            remedy,
        )


@CHECKS.add("S-HEALTH")
def health(probe: Probe) -> None:
    for service in ("", "aerie.v1.DraftService"):
        try:
            status = probe.health(service)
        except Refused as refused:
            raise Broken(
                f"health of {service!r}: {refused}",
                "SERVING",
                "serve grpc.health.v1.Health for the server and for the service by name",
            ) from None
        expect(status == 1, f"health of {service!r} is {status}", "1, SERVING", "be ready first")


@CHECKS.add("S-OPEN")
def opens(probe: Probe) -> None:
    opened = probe.open()
    remedy = "tell what is in force"
    expect(bool(opened.session_id), "an empty session id", "a name", remedy)
    expect(opened.length == 0, f"length {opened.length}", "0 of a new session", remedy)
    lease = opened.lease.seconds + opened.lease.nanos * 1e-9
    expect(lease > 0, f"a lease of {lease} s", "the idle time after which it is closed", remedy)
    expect(
        opened.options.max_k == probe.limits.max_k,
        f"options.max_k {opened.options.max_k} when none was asked for",
        f"{probe.limits.max_k}, the server's limit",
        remedy,
    )
    other = probe.open()
    expect(other.session_id != opened.session_id, "one id twice", "an id of its own", remedy)
    probe.end(opened.session_id)
    probe.end(other.session_id)


@CHECKS.add("S-MANIFEST-MISMATCH")
def mismatch(probe: Probe) -> None:
    drafter = probe.drafter
    other = [draft_pb2.Capture(kind=c.kind, boundary=c.boundary) for c in drafter.captures]
    place = next((c for c in other if c.kind == draft_pb2.CAPTURE_KIND_BOUNDARY), None)
    if place is None:
        other[0].kind, other[0].boundary = draft_pb2.CAPTURE_KIND_BOUNDARY, 1
    else:
        taken = {c.boundary for c in other}
        place.boundary = next(b for b in range(len(other) + 1) if b not in taken)
    wrong = {
        "hidden_size": drafter.target_hidden_size + 1,
        "vocab_size": drafter.vocab_size + 1,
        "captures": other,
    }
    remedy = "compare all fields, and name each that differs with both values"
    for name, value in wrong.items():
        request = draft_pb2.OpenSessionRequest(manifest=probe.manifest(**{name: value}))
        refused = probe.refused(
            "OpenSession", request, Code.FAILED_PRECONDITION, f"a manifest with another {name}"
        )
        _expect_mismatches(refused, 1, f"another {name}", remedy)
    request = draft_pb2.OpenSessionRequest(manifest=probe.manifest(**wrong))
    refused = probe.refused(
        "OpenSession", request, Code.FAILED_PRECONDITION, "a manifest that differs in three fields"
    )
    _expect_mismatches(refused, 3, "three fields that differ", remedy)


def _expect_mismatches(refused: Refused, at_least: int, what: str, remedy: str) -> None:
    found = [] if refused.detail is None else list(refused.detail.mismatches)
    whole = all(m.field and m.expected and m.received and m.expected != m.received for m in found)
    expect(
        len(found) >= at_least and whole,
        f"{what}: mismatches {[(m.field, m.expected, m.received) for m in found]}",
        f"{at_least} or more, each with field, expected and received",
        remedy,
    )


@CHECKS.add("S-MANIFEST-INVALID")
def invalid_manifest(probe: Probe) -> None:
    beyond = draft_pb2.Capture(
        kind=draft_pb2.CAPTURE_KIND_BOUNDARY, boundary=probe.drafter.target_num_layers + 1
    )
    cases = {
        "no captures": probe.manifest(captures=[]),
        "a boundary above num_layers": probe.manifest(captures=[beyond]),
        "no dtype": probe.manifest(dtype=0),
        "a target_id of 257 bytes": probe.manifest(target_id="x" * 257),
    }
    for what, manifest in cases.items():
        request = draft_pb2.OpenSessionRequest(manifest=manifest)
        probe.refused("OpenSession", request, Code.INVALID_ARGUMENT, f"a manifest with {what}")
    probe.refused(
        "OpenSession", draft_pb2.OpenSessionRequest(), Code.INVALID_ARGUMENT, "no manifest at all"
    )


@CHECKS.add("S-OPTIONS")
def options(probe: Probe) -> None:
    pb = draft_pb2
    tree = dict(depth=2, top_k=2, total_tokens=2)
    cases = {
        "a tree of width 1": dict(tree=pb.TreeShape(**{**tree, "top_k": 1})),
        "a tree of no level": dict(tree=pb.TreeShape(**{**tree, "depth": 0})),
        "a tree with fewer tokens than levels": dict(
            tree=pb.TreeShape(**{**tree, "total_tokens": 1})
        ),
        "adaptive_k with a tree": dict(tree=pb.TreeShape(**tree), adaptive_k=True),
        "temperature 0": dict(sampling=pb.Sampling(temperature=0, top_m=4)),
        "temperature -1": dict(sampling=pb.Sampling(temperature=-1)),
        "temperature NaN": dict(sampling=pb.Sampling(temperature=math.nan)),
    }
    for what, fields in cases.items():
        request = pb.OpenSessionRequest(
            manifest=probe.manifest(), options=pb.SessionOptions(**fields)
        )
        probe.refused("OpenSession", request, Code.INVALID_ARGUMENT, f"options with {what}")
    line = Line(probe, 1)
    line.advance(4, 0)
    both = pb.OpenSessionRequest(
        manifest=probe.manifest(), fork=pb.Fork(session_id=line.id, length=2), start=2
    )
    probe.refused("OpenSession", both, Code.INVALID_ARGUMENT, "a fork with a start")
    line.close()


@CHECKS.add("S-FORK")
def fork(probe: Probe) -> None:
    pb = draft_pb2
    line = Line(probe, 2)
    line.advance(10, probe.k)
    part = pb.Fork(session_id=line.id, length=6)
    forked = Line(probe, 3, fork=part)
    expect(
        forked.length == 6,
        f"length {forked.length} of a fork of 6 rows",
        "6",
        "tell the rows that the session begins with",
    )
    # What it is compared with sends the shared rows itself.
    row_bytes = probe.width * probe.dtype.size
    forked.start, forked.tokens, forked.rows = 0, line.tokens[:6], line.rows[: 6 * row_bytes]
    remedy = "share rows, and copy what is written to"
    expect_same(forked.advance(3, probe.k), forked.fresh(probe.k), "a fork", remedy)
    expect_same(
        line.advance(2, probe.k), line.fresh(probe.k), "the session that was forked", remedy
    )
    line.close()
    expect_same(
        forked.advance(2, probe.k), forked.fresh(probe.k), "a fork whose session was closed", remedy
    )
    longer = pb.OpenSessionRequest(
        manifest=probe.manifest(), fork=pb.Fork(session_id=forked.id, length=forked.length + 1)
    )
    probe.refused("OpenSession", longer, Code.INVALID_ARGUMENT, "a fork longer than its session")
    forked.close()
    probe.refused(
        "OpenSession",
        pb.OpenSessionRequest(manifest=probe.manifest(), fork=part),
        Code.NOT_FOUND,
        "a fork of a session that is not there",
    )


@CHECKS.add("S-START")
def start(probe: Probe) -> None:
    at = min(100, probe.limits.max_context // 2)
    line = Line(probe, 4, start=at)
    expect(
        line.length == at, f"length {line.length} of a session with start {at}", str(at), "tell it"
    )
    answer = line.advance(5, probe.k)
    expect(
        list(answer.tree.positions)[:1] == [at + 6],
        f"first drafted position {list(answer.tree.positions)[:1]}",
        f"[{at + 6}]",
        "count rows that were never sent as positions",
    )
    request = probe.request(line.id, at - 1, [1], line.sample.rows(0, 1), 0)
    probe.refused("Draft", request, Code.INVALID_ARGUMENT, "a row before the start")
    line.close()


@CHECKS.add("S-STATELESS")
def stateless(probe: Probe) -> None:
    line = Line(probe, 44)
    kept = line.advance(7, probe.k)
    once = probe.draft("", 0, line.tokens, line.rows, probe.k)
    expect_same(once, kept, "a call with a manifest", "draft as a session would")
    request = probe.request("", 1, line.tokens, line.rows, probe.k)
    probe.refused("Draft", request, Code.INVALID_ARGUMENT, "base_length 1 without a session")
    line.close()
