"""What the real server drafts for recorded rows of a real target, and what it says of itself."""

import threading

import grpc
import pytest

K_OF_FIRST_DRAFTS = 8


def open_session(stub, pb, manifest):
    return stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id


@pytest.mark.parametrize("address", ["address", "unix_address"])
def test_the_first_drafts_are_those_of_the_recording(server, pb, connect, manifest, recording, address):
    stub = connect(getattr(server, address))
    for sequence, expected in zip(recording.sequences, recording.facts["expected"]["first_drafts"]):
        session = open_session(stub, pb, manifest)
        rows = sequence.rows(pb, 0, expected["slot"] + 1)
        response = stub.Draft(pb.DraftRequest(session_id=session, k=K_OF_FIRST_DRAFTS, **rows))
        assert list(response.tree.token_ids) == expected["draft"], sequence.fact
        assert list(response.tree.parents) == list(range(K_OF_FIRST_DRAFTS))
        stub.CloseSession(pb.CloseSessionRequest(session_id=session))


def test_a_prompt_in_chunks_drafts_what_it_drafts_in_one_call(server, pb, connect, manifest, recording):
    stub = connect(server.address)
    sequence = recording.sequences[3]
    expected = recording.facts["expected"]["first_drafts"][3]
    session = open_session(stub, pb, manifest)
    end = expected["slot"] + 1
    for first in range(0, end, 7):
        last = min(first + 7, end)
        response = stub.Draft(pb.DraftRequest(session_id=session, k=0 if last < end else K_OF_FIRST_DRAFTS,
                                              **sequence.rows(pb, first, last)))
        assert response.length == last
    assert list(response.tree.token_ids) == expected["draft"]
    stub.CloseSession(pb.CloseSessionRequest(session_id=session))


def replay(stub, pb, manifest, sequence, k):
    """Drafts over a recorded continuation as the head's README counts: (accepted by round, the server's record)."""
    session = open_session(stub, pb, manifest)
    tokens, sent, known, accepted = sequence.tokens, 0, sequence.fact["prompt_tokens"] + 1, []
    while known < len(tokens):
        request = pb.DraftRequest(session_id=session, k=k, **sequence.rows(pb, sent, known - 1))
        if accepted:
            request.accepted = accepted[-1]
        response = stub.Draft(request)
        if accepted:
            assert response.accepted == accepted[-1]
        draft, truth = list(response.tree.token_ids), tokens[known:known + k]
        assert len(draft) == k
        kept = 0
        while kept < len(truth) and draft[kept] == truth[kept]:
            kept += 1
        accepted.append(kept)
        sent, known = known - 1, known + kept + 1
    final = tokens[sent + 1:]
    record = stub.CloseSession(pb.CloseSessionRequest(session_id=session, final_token_ids=final)).acceptance
    return accepted, record


@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_accept_length_is_that_of_the_heads_readme(server, pb, connect, manifest, recording, k):
    stub = connect(server.address)
    accepted = []
    for sequence in recording.sequences:
        of_sequence, record = replay(stub, pb, manifest, sequence, k)
        assert record.num_accepted_draft_tokens == sum(of_sequence)
        assert record.num_spec_steps == len(of_sequence)
        assert record.num_draft_tokens == k * len(of_sequence)
        assert list(record.acceptance_histogram) == [of_sequence.count(a) for a in range(max(of_sequence) + 1)]
        accepted += of_sequence
    expected = recording.facts["expected"]
    accept_length = 1 + sum(accepted) / len(accepted)
    print(f"k={k}: accept length {accept_length:.4f} over {len(accepted)} rounds")
    assert abs(accept_length - expected["accept_length"][str(k)]) <= 0.01 * expected["accept_length"][str(k)]


def test_the_server_says_what_it_is(server, pb, connect, manifest):
    info = connect(server.address).GetServerInfo(pb.GetServerInfoRequest())
    assert info.protocol_version == 1
    assert info.build.version and info.build.compiler and info.build.libtorch.startswith("2.")
    (drafter,) = info.drafters
    assert list(drafter.captures) == list(manifest.captures)
    assert (drafter.target_num_layers, drafter.target_hidden_size) == (30, 576)
    assert (drafter.vocab_size, drafter.draft_vocab_size, drafter.hidden_size) == (49152, 6144, 576)
    assert len(drafter.version) == 16
    sources = {setting.name: setting.source for setting in drafter.settings}
    assert sources["rope_theta"] == "config.json: rope_theta"
    settings = {setting.name: (setting.value, setting.source) for setting in info.settings}
    assert settings["dtype"] == ("float32", "flag --dtype")
    assert settings["max_k"] == ("16", "default")
    assert info.limits.max_message_bytes == 64 << 20
    for setting in info.settings:
        assert f"server {setting.name} = {setting.value} ({setting.source})" in server.log()


def test_health_says_serving(server, connect):
    """Spoken in bytes: the health service's stubs are not installed. SERVING is 1 in field 1."""
    channel = connect(server.address).channel
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    name = b"aerie.v1.DraftService"
    assert check(b"") == b"\x08\x01"
    assert check(b"\x0a" + bytes([len(name)]) + name) == b"\x08\x01"


def test_nan_rows_are_named_by_row_and_boundary(server, pb, connect, manifest, recording):
    stub = connect(server.address)
    session = open_session(stub, pb, manifest)
    rows = recording.sequences[0].rows(pb, 0, 5)
    data = bytearray(rows["hidden_states"].data)
    at = (3 * 1728 + 576 + 9) * 2  # row 3, element 9 of the second boundary
    data[at:at + 2] = b"\xc0\x7f"
    rows["hidden_states"].data = bytes(data)
    with pytest.raises(grpc.RpcError) as failure:
        stub.Draft(pb.DraftRequest(session_id=session, k=2, **rows))
    assert failure.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "row 3 (row 3 of the sequence)" in failure.value.details()
    assert "boundary 15, element 9" in failure.value.details()
    trailer = dict(failure.value.trailing_metadata())["grpc-status-details-bin"]
    detail = pb.ErrorDetail()
    assert pb.StatusDetails.FromString(trailer).details[0].Unpack(detail)
    assert detail.reason == "NON_FINITE"
    stub.CloseSession(pb.CloseSessionRequest(session_id=session))


def test_many_streams_draft_what_one_session_drafts(server, pb, connect, manifest, recording):
    stub = connect(server.address)
    expected = recording.facts["expected"]["first_drafts"]

    def requests():
        for number in range(12):
            yield pb.DraftStreamRequest(id=number, open_session=pb.OpenSessionRequest(manifest=manifest))
        sessions_known.wait()
        for number, session in sorted(sessions.items()):
            rows = recording.sequences[number].rows(pb, 0, expected[number]["slot"] + 1)
            yield pb.DraftStreamRequest(id=100 + number,
                                        draft=pb.DraftRequest(session_id=session, k=K_OF_FIRST_DRAFTS, **rows))

    sessions, drafts, sessions_known = {}, {}, threading.Event()
    for response in stub.DraftStream(requests()):
        assert response.WhichOneof("response") != "error", response
        if response.HasField("open_session"):
            sessions[response.id] = response.open_session.session_id
            if len(sessions) == 12:
                sessions_known.set()
        else:
            drafts[response.id - 100] = list(response.draft.tree.token_ids)
    assert drafts == {number: expected[number]["draft"] for number in range(12)}
