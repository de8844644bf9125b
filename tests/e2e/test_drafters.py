"""Several drafters in one server: named by manifests, loaded, swapped under sessions that go on, unloaded.

The heads are the demo's, twice, and one whose last norm is negated, which drafts quite other tokens."""

import json
import os
import shutil
import signal
import struct
import subprocess

import grpc
import pytest

from server_process import BINARY, DRAFTER, PATIENCE, TARGET, ServerProcess, wait_until

ADMIN = BINARY.parent / "aerie-admin"
K = 8  # of the recorded first drafts


def write_negated_head(folder):
    """The demo's head with the sign of its last norm turned over, so that it ranks tokens the other way round."""
    folder.mkdir()
    shutil.copy(DRAFTER / "config.json", folder)
    data = bytearray((DRAFTER / "model.safetensors").read_bytes())
    header = struct.unpack("<Q", data[:8])[0]
    first, end = json.loads(data[8:8 + header])["norm.weight"]["data_offsets"]
    for at in range(8 + header + first + 1, 8 + header + end, 2):  # the upper bytes of bfloat16
        data[at] ^= 0x80
    (folder / "model.safetensors").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def negated(tmp_path_factory):
    return write_negated_head(tmp_path_factory.mktemp("negated") / "head")


def copy_head(folder):
    folder.mkdir()
    for file in ("config.json", "model.safetensors"):
        shutil.copy(DRAFTER / file, folder)
    return folder


@pytest.fixture
def server(tmp_path):
    """Drafters "one" and "two", each from a folder of its own; the paths in the file are relative to it."""
    copy_head(tmp_path / "head_one")
    copy_head(tmp_path / "head_two")
    file = tmp_path / "drafters.json"
    file.write_text(json.dumps([{"name": name, "drafter": f"head_{name}", "target": str(TARGET)}
                                for name in ("one", "two")]))
    with ServerProcess(tmp_path, "--drafters", file, "--admin-listen", "127.0.0.1:0", "--kv-memory", "64MiB",
                       drafter=None) as process:
        yield process


def admin(server, *words):
    """(exit code, standard output, standard error) of aerie-admin."""
    command = [ADMIN, "--admin-address", server.ports["admin"], *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def told(server, *words):
    """What it prints as JSON."""
    code, out, err = admin(server, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def listed(server):
    """[(name, state, version, sessions)]"""
    return [(drafter["name"], drafter["state"].removeprefix("DRAFTER_STATE_"), drafter["info"]["version"],
             int(drafter["sessions"])) for drafter in told(server, "drafters")["drafters"]]


class Worker:
    """One session of a drafter, which has sent 30 rows and can ask for the recorded first draft."""

    def __init__(self, stub, pb, manifest, recording, drafter):
        self.stub, self.pb, self.sequence = stub, pb, recording.sequences[0]
        self.expected = recording.facts["expected"]["first_drafts"][0]
        named = pb.Manifest()
        named.CopyFrom(manifest)
        named.drafter = drafter
        self.session = stub.OpenSession(pb.OpenSessionRequest(manifest=named)).session_id
        stub.Draft(pb.DraftRequest(session_id=self.session, **self.sequence.rows(pb, 0, 30)))

    def drafts_as_recorded(self):
        rows = self.sequence.rows(self.pb, 30, self.expected["slot"] + 1)
        answer = self.stub.Draft(self.pb.DraftRequest(session_id=self.session, k=K, **rows))
        assert len(answer.tree.token_ids) == K
        return list(answer.tree.token_ids) == self.expected["draft"]

    def close(self):
        self.stub.CloseSession(self.pb.CloseSessionRequest(session_id=self.session))


@pytest.fixture
def open_worker(server, pb, connect, manifest, recording):
    stub = connect(server.address)
    return lambda drafter: Worker(stub, pb, manifest, recording, drafter)


def test_each_manifest_names_its_drafter(server, pb, connect, manifest, open_worker):
    for name in ("one", "two"):
        assert open_worker(name).drafts_as_recorded()
    assert [(name, state, sessions) for name, state, _, sessions in listed(server)] == [
        ("one", "SERVING", 1), ("two", "SERVING", 1)]
    stub = connect(server.address)
    assert [drafter.name for drafter in stub.GetServerInfo(pb.GetServerInfoRequest()).drafters] == ["one", "two"]
    with pytest.raises(grpc.RpcError) as refused:
        stub.OpenSession(pb.OpenSessionRequest(manifest=manifest))
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert "names no drafter and there are several; expected one of: one, two" in refused.value.details()


def test_a_swap_leaves_open_sessions_on_the_version_that_they_have(server, negated, open_worker):
    old = open_worker("one")
    version = listed(server)[0][2]
    code, out, err = admin(server, "reload", "one", "--folder", negated)
    assert (code, err) == (0, "")
    assert "takes new sessions" in out and version not in out
    new = open_worker("one")
    assert not new.drafts_as_recorded()
    assert old.drafts_as_recorded()
    assert [line for line in listed(server) if line[2] == version] == [
        ("one", "DRAINING", version, 1), ("two", "SERVING", version, 0)]
    old.close()
    # Looked at once a second.
    wait_until(lambda: len(listed(server)) == 2, "the old version to be freed")
    assert not any(line[1] == "DRAINING" for line in listed(server))
    assert server.metric("aerie_drafter_reloads_total", drafter="one", result="ok") == 1


def test_a_reload_of_what_is_served_replaces_nothing(server):
    before = listed(server)
    code, out, err = admin(server, "reload", "one")
    assert (code, err) == (0, "")
    assert "is what is served already; nothing was replaced" in out
    assert listed(server) == before


def test_a_reload_that_fails_leaves_all_as_it_was(server, tmp_path, open_worker):
    worker, before = open_worker("one"), listed(server)
    (tmp_path / "broken").mkdir()
    code, out, err = admin(server, "reload", "one", "--folder", tmp_path / "broken")
    assert (code, out) == (5, "")
    assert "refused, and nothing has changed" in err and str(tmp_path / "broken") in err
    assert listed(server) == before
    assert worker.drafts_as_recorded()
    assert open_worker("one").drafts_as_recorded()
    assert server.metric("aerie_drafter_reloads_total", drafter="one", result="failed") == 1
    assert server.metric("aerie_drafter_last_reload_successful", drafter="one") == 0
    assert server.metric("aerie_drafter_last_reload_successful", drafter="two") == 1


def test_a_hangup_loads_all_drafters_anew_from_where_they_came(server, negated, tmp_path, open_worker):
    old, before = open_worker("one"), listed(server)
    # Moved there, not written over: the server may still read the old file.
    shutil.copy(negated / "model.safetensors", tmp_path / "next")
    os.replace(tmp_path / "next", tmp_path / "head_one" / "model.safetensors")
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.metric("aerie_drafter_reloads_total", result="ok") == 2, "both to be read")
    after = {name: version for name, state, version, _ in listed(server) if state == "SERVING"}
    assert after["one"] != before[0][2]
    assert after["two"] == before[1][2]
    assert not open_worker("one").drafts_as_recorded()
    assert old.drafts_as_recorded()


def test_a_drafter_comes_and_goes_while_the_server_runs(server, pb, connect, manifest, negated, open_worker):
    code, out, err = admin(server, "load", "three", negated, "--target", TARGET)
    assert (code, err) == (0, "")
    assert out.startswith("drafter three version ") and out.endswith(" takes sessions\n")
    code, _, err = admin(server, "load", "three", negated, "--target", TARGET)
    assert code == 5
    assert 'a drafter is called "three" already' in err
    worker = open_worker("two")
    for name, left in (("three", 0), ("two", 1)):
        code, out, err = admin(server, "unload", name)
        assert (code, err) == (0, "")
        assert f"takes no new sessions; {left} finish on it" in out
    with pytest.raises(grpc.RpcError) as refused:
        open_worker("two")
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert '"two"' in refused.value.details() and "one" in refused.value.details()
    assert worker.drafts_as_recorded()
    code, _, err = admin(server, "unload", "one")
    assert code == 5
    assert '"one" is the only drafter' in err
    code, _, err = admin(server, "unload", "four")
    assert code == 5
    assert 'no drafter is called "four"' in err


def test_the_table_is_for_people(server):
    code, out, err = admin(server, "drafters")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["NAME", "VERSION", "STATE", "SINCE", "SESSIONS", "FOLDER"]
    assert [(line[0], line[2], line[4]) for line in lines[1:]] == [("one", "serving", "0"), ("two", "serving", "0")]


@pytest.mark.parametrize("text, seen, expected", [
    ("[", "is no JSON", "expected a JSON list with an object for each drafter"),
    ("{}", "is no list of drafters", "expected a JSON list with an object for each drafter"),
    ('[{"name": "a", "drafter": "d"}]', "drafter 1: target: is missing", "expected a text that is not empty"),
    ('[{"name": "a", "drafter": "d", "target": "t", "folder": "f"}]', "drafter 1: folder: is no key of a drafter",
     "expected name, drafter, target"),
    ('[{"name": "a", "drafter": "d", "target": "t"}, {"name": "a", "drafter": "e", "target": "t"}]',
     'two drafters are called "a"', "expected a name for each"),
    ('[{"name": ' + "[" * 9000 + "]" * 9000 + "}]", "drafter 1: name: a list", "expected a text"),
])
def test_a_file_with_a_mistake_stops_the_start(tmp_path, text, seen, expected):
    file = tmp_path / "drafters.json"
    file.write_text(text)
    done = subprocess.run([BINARY, "--drafters", file, "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 2
    assert f"--drafters {file}: " in done.stderr
    for part in (seen, expected, "; correct the file"):
        assert part in done.stderr
