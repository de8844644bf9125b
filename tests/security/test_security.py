"""The refusals of the real server: who is let in over TLS, with which token, from where."""

import os
import socket
import stat
import subprocess

import pytest

from calls import CODE, health, info, manifest, refusal
from conftest import ADMIN_TOKEN, DRAFT_TOKEN, METRICS_TOKEN, bearer
from server_process import BINARY, DRAFTER, PATIENCE, TARGET, ServerProcess


def started_in_vain(*flags):
    """What a server says that does not start; (exit code, standard error)."""
    done = subprocess.run([str(word) for word in (BINARY, "--drafter", DRAFTER, "--target", TARGET, "--metrics-listen",
                                                  "off", *flags)], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def tls(authority, tmp_path_factory):
    """A server with mutual TLS."""
    certificate, key = authority.issue("server", "127.0.0.1")
    with ServerProcess(tmp_path_factory.mktemp("tls"), "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca",
                       authority.certificate) as process:
        yield process


def test_a_client_with_a_certificate_of_the_authority_drafts(tls, authority, pb, dial):
    channel = dial(tls.address, authority.certificate, authority.issue("worker-a"))
    assert info(pb, channel).drafters
    opened = pb.Stub(channel).OpenSession(pb.OpenSessionRequest(manifest=manifest(pb)), timeout=PATIENCE)
    assert opened.session_id


def test_a_client_is_quoted_by_its_certificates_name_and_no_other(tls, authority, pb, dial):
    stub = pb.Stub(dial(tls.address, authority.certificate, authority.issue("worker-b")))
    code, message = refusal(stub.OpenSession, pb.OpenSessionRequest(manifest=manifest(pb), client="worker-a"))
    assert code == CODE.PERMISSION_DENIED
    assert message.startswith('client is "worker-a" but the call was admitted as "worker-b"; expected')


@pytest.mark.parametrize("shows", ["nothing", "a certificate of strangers", "no TLS"])
def test_mutual_tls_lets_nobody_in_who_cannot_prove_it(shows, tls, authority, stranger, pb, dial):
    if shows == "no TLS":
        channel = dial(tls.address)
    else:
        pair = stranger.issue("worker-a") if shows.startswith("a cert") else None
        channel = dial(tls.address, authority.certificate, pair)
    code, _ = refusal(pb.Stub(channel).GetServerInfo, pb.GetServerInfoRequest())
    assert code == CODE.UNAVAILABLE


def test_a_client_does_not_talk_to_a_server_of_strangers(tls, stranger, authority, pb, dial):
    channel = dial(tls.address, stranger.certificate, authority.issue("worker-c"))
    code, _ = refusal(pb.Stub(channel).GetServerInfo, pb.GetServerInfoRequest())
    assert code == CODE.UNAVAILABLE


def server_name(channel_address, ca):
    """The common name in the certificate that the server shows now."""
    host, port = channel_address.rsplit(":", 1)
    # It shows session tickets too, whose bytes are no text.
    done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", "-alpn", "h2", "-CAfile", str(ca)],
                          input="", capture_output=True, text=True, errors="replace", timeout=PATIENCE)
    lines = [line for line in done.stdout.splitlines() if line.startswith("subject=")]
    return lines[0].split("CN = ")[-1] if lines else done.stderr


def test_a_changed_certificate_is_used_and_a_broken_one_leaves_the_old(authority, pb, dial, tmp_path):
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"

    def put(pair):
        for source, target in zip(pair, (certificate, key)):
            fresh = target.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_bytes(source.read_bytes())
            fresh.rename(target)

    put(authority.issue("first", "127.0.0.1"))
    with ServerProcess(tmp_path, "--tls-cert", certificate, "--tls-key", key) as server:
        assert server_name(server.address, authority.certificate) == "first"
        put(authority.issue("second", "127.0.0.1"))
        assert server_name(server.address, authority.certificate) == "second"
        certificate.write_text("no certificate\n")
        assert server_name(server.address, authority.certificate) == "second"
        assert "stay in force" in server.log() and "holds no certificate" in server.log()
        assert info(pb, dial(server.address, authority.certificate)).drafters
        put((authority.issue("third", "127.0.0.1")[0], authority.issue("fourth", "127.0.0.1")[1]))
        assert server_name(server.address, authority.certificate) == "second"
        assert "is not the key of the certificate" in server.log()
        assert "PRIVATE KEY" not in server.log()


def test_tokens_open_what_their_roles_are_for(token_file, pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--token-file", token_file, "--admin-listen", "127.0.0.1:0") as server:
        draft, admin = dial(server.address), dial(server.ports["admin"])
        ask, level = pb.Stub(draft).GetServerInfo, pb.AdminStub(admin).GetLogLevel
        assert ask(pb.GetServerInfoRequest(), timeout=PATIENCE, metadata=bearer(DRAFT_TOKEN)).drafters
        assert level(pb.admin.GetLogLevelRequest(), timeout=PATIENCE, metadata=bearer(ADMIN_TOKEN)).level

        for call, request in ((ask, pb.GetServerInfoRequest()), (level, pb.admin.GetLogLevelRequest())):
            code, message = refusal(call, request)
            assert code == CODE.UNAUTHENTICATED and message.startswith("the call has no token; expected")
            code, message = refusal(call, request, metadata=bearer("draft-token-0123456780"))
            assert code == CODE.UNAUTHENTICATED and message.startswith("the call's token is not known; expected")
            code, message = refusal(call, request, metadata=bearer(METRICS_TOKEN))
            assert code == CODE.PERMISSION_DENIED and message.startswith('"prometheus" has not the role')
        code, _ = refusal(level, pb.admin.GetLogLevelRequest(), metadata=bearer(DRAFT_TOKEN))
        assert code == CODE.PERMISSION_DENIED
        # On a stream, and on the Unix socket, it is the same.
        code, _ = refusal(lambda *a, **o: list(pb.Stub(draft).DraftStream(iter(()), **o)))
        assert code == CODE.UNAUTHENTICATED
        code, _ = refusal(pb.Stub(dial(server.unix_address)).GetServerInfo, pb.GetServerInfoRequest())
        assert code == CODE.UNAUTHENTICATED


def test_a_tokens_name_is_the_sessions_client(token_file, pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--token-file", token_file, "--max-sessions-per-client", "1") as server:
        stub = pb.Stub(dial(server.address))
        stub.OpenSession(pb.OpenSessionRequest(manifest=manifest(pb)), timeout=PATIENCE, metadata=bearer(DRAFT_TOKEN))
        code, message = refusal(stub.OpenSession, pb.OpenSessionRequest(manifest=manifest(pb), client="worker"),
                                metadata=bearer(DRAFT_TOKEN))
        assert code == CODE.RESOURCE_EXHAUSTED, message
        code, _ = refusal(stub.OpenSession, pb.OpenSessionRequest(manifest=manifest(pb), client="other"),
                          metadata=bearer(DRAFT_TOKEN))
        assert code == CODE.PERMISSION_DENIED


def test_health_needs_no_token_and_reflection_is_not_there(token_file, dial, tmp_path):
    with ServerProcess(tmp_path, "--token-file", token_file) as server:
        channel = dial(server.address)
        assert health(channel) == b"\x08\x01"
        call = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        code, _ = refusal(lambda **o: list(call(iter([b"\x3a\x00"]), **o)))
        assert code == CODE.UNIMPLEMENTED


def test_a_changed_token_file_is_used_and_a_broken_one_leaves_the_old(token_file, pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--token-file", token_file) as server:
        channel = dial(server.address)
        info(pb, channel, bearer(DRAFT_TOKEN))
        token_file.write_text("draft worker another-token-0123456789\n")
        code, _ = refusal(pb.Stub(channel).GetServerInfo, pb.GetServerInfoRequest(), metadata=bearer(DRAFT_TOKEN))
        assert code == CODE.UNAUTHENTICATED
        info(pb, channel, bearer("another-token-0123456789"))
        token_file.write_text("worker yet-another-token-0123456789\n")
        info(pb, channel, bearer("another-token-0123456789"))
        assert "line 1 has 2 words; expected three" in server.log()
        token_file.chmod(0o644)
        info(pb, channel, bearer("another-token-0123456789"))
        assert "every user of this host may use it" in server.log()


def test_no_token_is_in_the_log_or_the_settings(token_file, pb, dial, tmp_path):
    with ServerProcess(tmp_path, "--token-file", token_file, "--log-level", "debug") as server:
        channel = dial(server.address)
        answer = info(pb, channel, bearer(DRAFT_TOKEN))
        refusal(pb.Stub(channel).GetServerInfo, pb.GetServerInfoRequest(), metadata=bearer("a-wrong-token-0123456789"))
        server.signal()
        assert server.wait() == 0
        for text in (str(answer), server.log()):
            for secret in (DRAFT_TOKEN, ADMIN_TOKEN, METRICS_TOKEN, "a-wrong-token-0123456789"):
                assert secret not in text


def test_a_token_file_that_others_may_read_is_refused(token_file):
    token_file.chmod(0o644)
    code, message = started_in_vain("--listen", "127.0.0.1:0", "--token-file", token_file)
    assert code == 1
    assert f"--token-file {token_file} has mode 0644" in message and f"chmod o= {token_file}" in message


@pytest.mark.parametrize("flag", ["--listen", "--admin-listen"])
def test_a_public_address_without_tls_and_tokens_is_refused(flag):
    other = () if flag == "--listen" else ("--listen", "127.0.0.1:0")
    code, message = started_in_vain(flag, "0.0.0.0:0", *other)
    assert code == 2
    assert f"{flag} 0.0.0.0:0 can be reached from other hosts" in message
    for remedy in ("--tls-cert", "--token-file", "--insecure"):
        assert remedy in message


def test_who_says_insecure_is_served_and_warned(pb, dial, tmp_path):
    # Last, as a flag without a value.
    with ServerProcess(tmp_path, "--admin-listen", "0.0.0.0:0", "--insecure") as server:
        assert info(pb, dial(server.address)).drafters
        assert "--admin-listen 0.0.0.0:0 serves whoever can reach it, in the clear" in server.log()


@pytest.mark.parametrize("flags, message", [
    (("--tls-cert", "c.pem"), "--tls-cert is c.pem but --tls-key is not given; expected both;"),
    (("--tls-client-ca", "c.pem"), "--tls-client-ca is c.pem but --tls-cert is not given; expected both;"),
    (("--token-file", "t", "--reflection", "on"), "--reflection is on but --token-file is given; expected"),
    (("--unix-socket-mode", "999"), '--unix-socket-mode is "999"; expected permission bits'),
])
def test_flags_that_contradict_each_other_are_named(flags, message):
    code, said = started_in_vain(*flags)
    assert code == 2
    assert message in said


def test_a_unix_socket_has_the_mode_that_was_asked_for(tmp_path):
    with ServerProcess(tmp_path, "--unix-socket-mode", "0600") as server:
        assert stat.S_IMODE(os.stat(server.unix_address.removeprefix("unix:")).st_mode) == 0o600
        # And is not taken away by a second server.
        code, message = started_in_vain("--listen", server.unix_address)
        assert code == 1
        assert "another program listens there" in message


def test_a_socket_that_was_left_behind_is_replaced(pb, dial, tmp_path):
    left = socket.socket(socket.AF_UNIX)
    left.bind(f"{tmp_path}/aerie.sock")
    left.close()
    with ServerProcess(tmp_path) as server:
        assert info(pb, dial(server.unix_address)).drafters


def test_a_file_in_the_sockets_place_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    code, message = started_in_vain("--listen", f"unix:{tmp_path}/file")
    assert code == 1 and "there is a file that is no socket" in message
    assert (tmp_path / "file").read_text() == "mine"
