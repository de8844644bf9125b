"""Limits of clients and quotas of targets on the real server: who is refused, who is not, and what the page shows."""

import subprocess

import pytest

from calls import CODE, ROW_BYTES, draft_request, manifest, open_session, refusal
from conftest import bearer
from server_process import BINARY, PATIENCE, ServerProcess

FLOOD, QUIET = "flood-token-0123456789", "quiet-token-0123456789"


@pytest.fixture
def two_tokens(tmp_path):
    path = tmp_path / "tokens"
    path.touch(mode=0o600)
    path.write_text(f"draft flood {FLOOD}\ndraft,metrics quiet {QUIET}\n")
    return path


def test_a_flood_of_one_client_is_refused_and_another_drafts_on(two_tokens, pb, dial, tmp_path):
    # A row in a thousand seconds: whatever the machine is at, nothing is earned while the test runs.
    with ServerProcess(tmp_path, "--token-file", two_tokens, "--max-rows-per-second-per-client", "1",
                       "--row-burst-per-client", "20") as server:
        stub = pb.Stub(dial(server.address))
        flood, quiet = (open_session(pb, dial(server.address), bearer(token)) for token in (FLOOD, QUIET))
        first = stub.Draft(draft_request(pb, 2000, flood), timeout=PATIENCE, metadata=bearer(FLOOD))
        assert first.length == 2000
        # On another connection, too.
        code, message = refusal(pb.Stub(dial(server.address)).Draft, draft_request(pb, 5, flood, base=2000),
                                metadata=bearer(FLOOD))
        assert code == CODE.RESOURCE_EXHAUSTED
        assert message.startswith('client "flood" has brought more rows than it may by now; expected 1 a second')
        # The stream on which it is refused goes on.
        requests = [pb.DraftStreamRequest(id=1, draft=draft_request(pb, 5, flood, base=2000)),
                    pb.DraftStreamRequest(id=2, close_session=pb.CloseSessionRequest(session_id=flood))]
        answers = list(stub.DraftStream(iter(requests), timeout=PATIENCE, metadata=bearer(FLOOD)))
        assert answers[0].error.reason == "CLIENT_LIMIT" and answers[0].error.retry_after.seconds > 1000
        assert answers[1].HasField("close_session")
        for base in range(0, 12, 4):
            answer = stub.Draft(draft_request(pb, 4, quiet, base), timeout=PATIENCE, metadata=bearer(QUIET))
            assert answer.length == base + 4 and len(answer.tree.token_ids) == 2
        assert server.metric("aerie_rejected_total", token=QUIET, reason="client_rows") == 2
        info = stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=PATIENCE, metadata=bearer(QUIET))
        assert info.limits.max_rows_per_second_per_client == 1 and info.limits.row_burst_per_client == 20


def test_without_tokens_a_flood_cannot_rename_itself(pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--max-rows-per-second-per-client", "1", "--row-burst-per-client", "20") as server:
        channel, stub = dial(server.address), pb.Stub(dial(server.address))
        sessions = [open_session(pb, channel, client=name) for name in ("a", "b")]
        stub.Draft(draft_request(pb, 2000, sessions[0]), timeout=PATIENCE)
        code, message = refusal(stub.Draft, draft_request(pb, 1, sessions[1]))
        assert code == CODE.RESOURCE_EXHAUSTED and 'client "ipv4:127.0.0.1"' in message
        # Another address: the Unix socket.
        local = pb.Stub(dial(server.unix_address))
        assert local.Draft(draft_request(pb, 1, sessions[1]), timeout=PATIENCE).length == 1


def test_a_request_that_is_answered_makes_room_for_the_next(pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--max-message-bytes", "1MiB", "--max-bytes-in-flight-per-client", "1MiB") as server:
        channel = dial(server.address)
        session = open_session(pb, channel)
        rows = 440 * 1024 // ROW_BYTES
        for turn in range(4):
            answer = pb.Stub(channel).Draft(draft_request(pb, rows, session, base=turn * rows), timeout=PATIENCE)
            assert answer.length == (turn + 1) * rows
        # Several at once, of which two fit together. How many are refused hangs on how quick the server is.
        requests = [pb.DraftStreamRequest(id=i, draft=draft_request(pb, rows, session, base=(4 + i) * rows))
                    for i in range(6)]
        answers = list(pb.Stub(channel).DraftStream(iter(requests), timeout=PATIENCE))
        reasons = [answer.error.reason for answer in answers if answer.HasField("error")]
        assert len(answers) == 6 and set(reasons) <= {"CLIENT_LIMIT", "BASE_LENGTH_AHEAD"}
        assert server.metric("aerie_rejected_total", reason="client_bytes") == reasons.count("CLIENT_LIMIT")


def test_calls_without_a_session_count_for_the_tokens_name(two_tokens, pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--token-file", two_tokens, "--max-sessions-per-client", "1") as server:
        stub = pb.Stub(dial(server.address))
        open_session(pb, dial(server.address), bearer(FLOOD))
        code, message = refusal(stub.Draft, draft_request(pb, 2), metadata=bearer(FLOOD))
        assert code == CODE.RESOURCE_EXHAUSTED and 'client "flood" holds its maximum of 1 sessions' in message
        assert stub.Draft(draft_request(pb, 2), timeout=PATIENCE, metadata=bearer(QUIET)).length == 2


def test_a_target_is_held_to_its_quota_and_the_page_shows_it(pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--target-quota", "target=2:1", "--target-quota", "*=1") as server:
        channel, stub = dial(server.address), pb.Stub(dial(server.address))
        first, _ = (open_session(pb, channel) for _ in range(2))
        code, message = refusal(stub.OpenSession, pb.OpenSessionRequest(manifest=manifest(pb)))
        assert code == CODE.RESOURCE_EXHAUSTED
        assert message.startswith('the quota of target "target" is used up by 2 sessions; expected fewer;')
        other = manifest(pb)
        other.target_id = "other"
        stub.OpenSession(pb.OpenSessionRequest(manifest=other), timeout=PATIENCE)
        stub.Draft(draft_request(pb, 2000, first), timeout=PATIENCE)
        code, message = refusal(stub.Draft, draft_request(pb, 1, first, base=2000))
        assert code == CODE.RESOURCE_EXHAUSTED and "expected 1 a second" in message
        page = server.metrics()
        assert page['aerie_target_sessions{quota="target"}'] == 2
        assert page['aerie_target_sessions{quota="*"}'] == 1
        assert page['aerie_target_rows_total{quota="target"}'] == 2000
        assert page['aerie_target_refused_total{quota="target",limit="sessions"}'] == 1
        assert page['aerie_target_refused_total{quota="target",limit="rows"}'] == 1
        assert server.metric("aerie_rejected_total", reason="target_quota") == 2
        quotas = {q.target: (q.sessions, q.rows_per_second) for q in stub.GetServerInfo(
            pb.GetServerInfoRequest(), timeout=PATIENCE).limits.target_quotas}
        assert quotas == {"target": (2, 1), "*": (1, 0)}
        told = subprocess.run([BINARY.with_name("aerie-admin"), "info", "--address", server.address],
                              capture_output=True, text=True, timeout=PATIENCE).stdout.splitlines()
        assert {"  of target target: 2 sessions, 1 rows a second", "  of target *: 1 sessions"} <= set(told)
