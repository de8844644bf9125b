"""The live guard of the real server: honest rows, swapped ones, and what an operator sees of both."""

import json
import re
import subprocess

import grpc
import guarded_head
import pytest
from server_process import BINARY, PATIENCE, TARGET, ServerProcess, wait_until

WIDTH = guarded_head.HIDDEN * 2  # bytes of one capture of a row


@pytest.fixture(scope="module")
def head(recording, tmp_path_factory):
    return guarded_head.make_guarded_head(recording, tmp_path_factory.mktemp("guarded"))


def rearranged(sequence, order):
    """The bytes of all rows, with the capture `order[i]` in place i."""
    rows = [sequence.aux[at:at + sequence.row_bytes] for at in range(0, len(sequence.aux), sequence.row_bytes)]
    return b"".join(row[place * WIDTH:(place + 1) * WIDTH] for row in rows for place in order)


class Worker:
    """Sends whole sequences, one call each, without asking for drafts: all that the guard looks at."""

    def __init__(self, stub, pb, manifest, recording, client):
        self.stub, self.pb, self.manifest, self.client = stub, pb, manifest, client
        self.sequences = recording.sequences[guarded_head.PROFILE_SEQUENCES:]

    def serve(self, order=(0, 1, 2), times=1, k=0):
        for sequence in self.sequences * times:
            session = self.stub.OpenSession(self.pb.OpenSessionRequest(
                manifest=self.manifest, options=self.pb.SessionOptions(max_k=4),
                client=self.client)).session_id
            rows = len(sequence.tokens) - 1
            states = self.pb.HiddenStates(dtype=self.pb.DATA_TYPE_BFLOAT16,
                                          data=rearranged(sequence, order)[:rows * sequence.row_bytes])
            self.stub.Draft(self.pb.DraftRequest(session_id=session, k=k, token_ids=sequence.tokens[1:],
                                                 hidden_states=states))
            self.stub.CloseSession(self.pb.CloseSessionRequest(session_id=session))


def health(stub):
    """1 SERVING, 2 NOT_SERVING."""
    return stub.channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=PATIENCE)[-1]


def admin(pb, server):
    channel = grpc.insecure_channel(server.ports["admin"], options=[("grpc.use_local_subchannel_pool", 1)])
    return pb.AdminStub(channel)


def reports(pb, server, client=""):
    answer = admin(pb, server).GetWiringReport(pb.admin.GetWiringReportRequest(client=client))
    return {report.client: report for report in answer.reports}, answer.worst


SWAPPED = (0, 2, 1)


def test_a_swapped_worker_is_found_told_of_and_forgiven(tmp_path, pb, connect, manifest, recording, head):
    with ServerProcess(tmp_path, "--wiring-guard", "not-serving", "--admin-listen", "127.0.0.1:0",
                       drafter=head) as server:
        stub = connect(server.address)
        info = stub.GetServerInfo(pb.GetServerInfoRequest()).wiring_guard
        assert (info.mode, info.profile) == (pb.WIRING_GUARD_MODE_NOT_SERVING, True)
        assert info.worst == pb.WIRING_STATE_UNKNOWN
        assert server.metric("aerie_wiring_guard_info", mode="not-serving") == 1
        assert server.metric("aerie_wiring_expected_accept_length") == pytest.approx(1.4)
        assert "wiring guard: not-serving, compares rows with" in server.log()

        good = Worker(stub, pb, manifest, recording, "good")
        bad = Worker(stub, pb, manifest, recording, "bad")
        good.serve()
        assert reports(pb, server)[1] == pb.WIRING_STATE_OK
        assert health(stub) == 1

        bad.serve(order=SWAPPED, times=2)
        found, worst = reports(pb, server)
        assert worst == found["bad"].state == pb.WIRING_STATE_WRONG
        assert found["good"].state == pb.WIRING_STATE_OK, "ten good workers and one bad one: each by itself"
        assert "captures 1 and 2 seem to be swapped" in found["bad"].verdict
        assert found["bad"].target == manifest.target_id
        assert list(reports(pb, server, "good")[0]) == ["good"]
        assert stub.GetServerInfo(pb.GetServerInfoRequest()).wiring_guard.worst == pb.WIRING_STATE_WRONG
        assert health(stub) == 2
        assert server.metric("aerie_wiring_state", state="wrong") == 1
        assert server.metric("aerie_wiring_sources", state="ok") == 1
        assert server.metric("aerie_wiring_sources", state="wrong") == 1
        assert server.metric("aerie_wiring_alarms_total", state="wrong") == 1
        assert server.metric("aerie_wiring_checks_total", result="off") > 0
        assert server.metric("aerie_wiring_checks_total", result="fits") > 0
        assert server.metric("aerie_wiring_place_position", capture="1") > 0.5
        assert server.metric("aerie_hidden_row_rms", capture="0") > 0
        assert server.metric("aerie_hidden_row_rms_expected", capture="2") == pytest.approx(23, rel=0.2)
        assert not re.search(r"bad|good", "".join(s for s in server.metrics() if "aerie_wiring" in s))
        warned = [line for line in server.log().splitlines() if "warning" in line]
        assert any('client "bad" and target "SmolLM2-135M-Instruct" is wrong' in line for line in warned)
        assert any("health says NOT_SERVING" in line for line in warned)

        # The head itself says which order it wants, once the server has had a moment for it.
        def replayed():
            report = reports(pb, server)[0]["bad"]
            return report.HasField("replay") and report.replay

        replay = wait_until(replayed, "rows to be replayed")
        # It hardly reads its first two captures, so few rows do not tell which of them is which.
        assert replay.best in ("in the order 0, 2, 1", "in the order 2, 0, 1")
        assert replay.gain > 1

        # It is served all the same: health is for who sends new traffic, and mended rows must be seen.
        bad.serve(times=4)
        assert reports(pb, server)[1] == pb.WIRING_STATE_OK
        assert health(stub) == 1
        assert "health says SERVING" in server.log()


def test_by_default_it_tells_and_health_stays_as_it_is(tmp_path, pb, connect, manifest, recording, head):
    with ServerProcess(tmp_path, drafter=head) as server:
        assert server.ports["admin"] is None
        stub = connect(server.address)
        Worker(stub, pb, manifest, recording, "bad").serve(order=SWAPPED, times=2)
        info = stub.GetServerInfo(pb.GetServerInfoRequest()).wiring_guard
        assert (info.mode, info.worst) == (pb.WIRING_GUARD_MODE_ALERT, pb.WIRING_STATE_WRONG)
        assert health(stub) == 1


def test_drafts_are_the_same_with_and_without_it(tmp_path, pb, connect, manifest, recording, head):
    drafts = []
    for mode in ("off", "alert"):
        folder = tmp_path / mode
        folder.mkdir()
        with ServerProcess(folder, "--wiring-guard", mode, drafter=head) as server:
            stub = connect(server.address)
            session = stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id
            rows = recording.sequences[3].rows(pb, 0, 60)
            answer = stub.Draft(pb.DraftRequest(session_id=session, k=8, **rows))
            drafts.append(list(answer.tree.token_ids))
            has_states = any("aerie_wiring_state" in series for series in server.metrics())
            assert has_states == (mode == "alert")
    assert drafts[0] == drafts[1]


def test_without_a_profile_it_says_how_little_it_sees(tmp_path, pb, connect, manifest, recording):
    with ServerProcess(tmp_path, "--admin-listen", f"unix:{tmp_path}/admin.sock") as server:
        stub = connect(server.address)
        Worker(stub, pb, manifest, recording, "bad").serve(order=SWAPPED, times=2)
        assert "without a profile of the target's rows" in server.log()
        found, worst = reports(pb, server)
        assert worst == pb.WIRING_STATE_UNKNOWN
        assert "aerie-verify" in found["bad"].verdict
        assert server.metric("aerie_hidden_row_rms", capture="1") > 0
        assert not any("rms_expected" in series for series in server.metrics())


def test_the_admin_report_of_a_guard_that_is_off_says_so(tmp_path, pb):
    with ServerProcess(tmp_path, "--wiring-guard", "off", "--admin-listen", "127.0.0.1:0") as server:
        with pytest.raises(grpc.RpcError) as error:
            reports(pb, server)
        assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert "--wiring-guard=alert" in error.value.details()


def start_in_vain(folder, drafter, *flags):
    """(exit code, last line) of a server that does not come up."""
    command = [BINARY, "--drafter", drafter, "--target", TARGET, "--listen", "127.0.0.1:0", "--metrics-listen", "off"]
    done = subprocess.run([str(word) for word in (*command, *flags)], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stderr.splitlines()[-1]


def test_a_profile_that_cannot_be_used_stops_the_start(tmp_path, head):
    profile = json.loads((head / "wiring.json").read_text())["guard"]
    profile["places"][1]["capture"]["boundary"] = 16
    broken = guarded_head.write_head(tmp_path / "broken", json.dumps(profile))
    code, line = start_in_vain(tmp_path, broken)
    assert code == 1
    assert "wiring.json" in line and "boundary 16" in line and "--wiring-guard off" in line


def test_health_cannot_hang_on_a_profile_that_is_not_there(tmp_path):
    code, line = start_in_vain(tmp_path, guarded_head.DRAFTER, "--wiring-guard", "not-serving")
    assert code == 1
    assert "--wiring-guard is not-serving" in line and "aerie-verify --write-wiring" in line


def test_sessions_are_recorded_for_aerie_verify(tmp_path, pb, connect, manifest, recording):
    folder = tmp_path / "recorded"
    flags = ("--record", folder, "--record-sessions", "3", "--record-limit", "64MiB")
    with ServerProcess(tmp_path, *flags) as server:
        stub = connect(server.address)
        assert stub.GetServerInfo(pb.GetServerInfoRequest()).recording
        assert "recording hidden states and tokens" in server.log()
        Worker(stub, pb, manifest, recording, "a").serve()
        wait_until(lambda: not stub.GetServerInfo(pb.GetServerInfoRequest()).recording, "the recording to be complete")
        assert "the recording is complete; 3 sessions" in server.log()
    assert folder.stat().st_mode & 0o777 == 0o700
    described = json.loads((folder / "recording.json").read_text())
    assert [tensor["claim"]["boundary"] for tensor in described["tensors"]] == [2, 15, 27]
    lengths = [len(s.tokens) - 2 for s in recording.sequences[guarded_head.PROFILE_SEQUENCES:][:3]]
    assert [sample["tokens"] for sample in described["samples"]] == lengths
    # The tool that recordings are for takes it; what it says of so few rows is another test's business.
    done = subprocess.run([str(BINARY.parent / "aerie-verify"), "match", str(folder), str(folder), "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    matches = {match["tensor"]: match for match in json.loads(done.stdout)["matches"]}
    assert all(match["best"] == name and match["verdict"] == "same" for name, match in matches.items())

    # A server that is started again leaves the recording alone, and comes up.
    again = tmp_path / "again"
    again.mkdir()
    with ServerProcess(again, *flags) as server:
        assert "nothing is recorded" in server.log()
        assert not connect(server.address).GetServerInfo(pb.GetServerInfoRequest()).recording
