"""Calls that come again, come late, or bring what the server does not know."""

from __future__ import annotations

import grpc

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, expect_same
from aerie_draft.conformance.probe import Broken, CheckList, Code, Probe, Refused
from aerie_draft.conformance.server_checks_calls import begun
from aerie_draft.conformance.server_checks_open import expect

CHECKS = CheckList()
# Field 1000, a varint 1: in no version of the contract.
_UNKNOWN_FIELD = b"\xc0\x3e\x01"


@CHECKS.add("S-SEQ-REPEAT")
def seq_repeat(probe: Probe) -> None:
    line, twin = begun(probe, 16), begun(probe, 16)
    new = line.sample.tokens(8, 11)
    request = probe.request(line.id, 8, new, line.sample.rows(8, 11), probe.k, seq=9)
    first, again = probe.call("Draft", request), probe.call("Draft", request)
    for name in ("tree", "length", "seq", "method", "no_draft_reason"):
        expect(
            getattr(first, name) == getattr(again, name),
            f"a repeated call got another {name}",
            "the stored answer, whole",
            "keep the answer of a session's last numbered call",
        )
    expect(
        first.HasField("accepted") == again.HasField("accepted")
        and first.accepted == again.accepted,
        "a repeated call got another `accepted`",
        "the stored answer, whole",
        "judge a proposal once, and keep the answer",
    )
    twin.seq = 8
    twin.advance(3, probe.k)
    line.tokens, line.rows, line.length, line.seq = twin.tokens, twin.rows, 11, 9
    remedy = "a repeated number commits and judges nothing"
    expect_same(line.advance(2, probe.k), twin.advance(2, probe.k), "after a repeated call", remedy)
    ours, theirs = line.close().acceptance, twin.close().acceptance
    expect(
        ours.num_spec_steps == theirs.num_spec_steps,
        f"{ours.num_spec_steps} judged proposals with a repeated call",
        f"{theirs.num_spec_steps}, as without",
        remedy,
    )


@CHECKS.add("S-SEQ-BEHIND")
def seq_behind(probe: Probe) -> None:
    line = begun(probe, 17)
    probe.draft(line.id, 8, line.sample.tokens(8, 9), line.sample.rows(8, 9), 1, seq=40)
    late = probe.request(line.id, 9, line.sample.tokens(9, 10), line.sample.rows(9, 10), 1, seq=39)
    probe.refused("Draft", late, Code.ABORTED, "seq 39 behind seq 40")
    line.close()


@CHECKS.add("S-DEADLINE")
def deadline(probe: Probe) -> None:
    line, twin = begun(probe, 20), begun(probe, 20)
    for timeout in (0.0003, 0.001, 0.003, 0.01, 0.3):
        at = line.length
        request = probe.request(
            line.id, at, line.sample.tokens(at, at + 2), line.sample.rows(at, at + 2), probe.k
        )
        try:
            probe.call("Draft", request, timeout)
        except Refused as refused:
            if refused.code is not Code.DEADLINE_EXCEEDED:
                raise Broken(
                    f"a call with {timeout} s got {refused}",
                    "an answer or DEADLINE_EXCEEDED",
                    "tell a deadline that has passed as such",
                ) from None
        # Cancelled in flight, which the server may see before, during or after its work.
        call = probe.stub.Draft.future(request, timeout=60)
        call.cancel()
        expect_same(
            line.advance(2, probe.k),
            twin.advance(2, probe.k),
            f"sent again after a deadline of {timeout} s and a cancel",
            "commit a call's rows whole or not at all, and take them again from the same row",
        )
    line.close()
    twin.close()


@CHECKS.add("S-UNKNOWN-FIELDS")
def unknown_fields(probe: Probe) -> None:
    pb = draft_pb2

    def raw(method, request, response):
        call = probe.channel.unary_unary(
            f"/aerie.v1.DraftService/{method}", response_deserializer=response.FromString
        )
        try:
            return call(
                request.SerializeToString() + _UNKNOWN_FIELD,
                timeout=60,
                metadata=(("x-conformance", "an entry that nobody knows"),),
            )
        except grpc.RpcError as error:
            raise Broken(
                f"{method} with an unknown field got {error.code().name}: {error.details()}",
                "the answer as without it",
                "ignore what a later contract may add",
            ) from None

    opened = raw(
        "OpenSession", pb.OpenSessionRequest(manifest=probe.manifest()), pb.OpenSessionResponse
    )
    twin = Line(probe, 21)
    request = probe.request(
        opened.session_id, 0, twin.sample.tokens(0, 5), twin.sample.rows(0, 5), probe.k
    )
    expect_same(
        raw("Draft", request, pb.DraftResponse),
        twin.advance(5, probe.k),
        "a call with an unknown field",
        "ignore what a later contract may add",
    )
    raw(
        "CloseSession",
        pb.CloseSessionRequest(session_id=opened.session_id),
        pb.CloseSessionResponse,
    )
    twin.close()
