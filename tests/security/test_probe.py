"""aerie-server --probe against a server with TLS, mutual TLS and tokens."""

import subprocess

import pytest

from server_process import BINARY, PATIENCE, ServerProcess


@pytest.fixture(scope="module")
def mutual(authority, tmp_path_factory):
    """A server with mutual TLS whose certificate names a host that is not its address."""
    folder = tmp_path_factory.mktemp("mutual")
    certificate, key = authority.issue("aerie.example.net")
    with ServerProcess(folder, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca",
                       authority.certificate) as process:
        yield process


def probe(*words):
    done = subprocess.run([str(word) for word in (BINARY, "--probe", *words)], capture_output=True, text=True,
                          timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def test_a_probe_asks_over_tls_and_trusts_only_its_authority(authority, stranger, mutual):
    certificate, key = authority.issue("probe")
    name = ("--tls-server-name", "aerie.example.net")
    pair = ("--tls-cert", certificate, "--tls-key", key)
    code, out, err = probe(mutual.address, "--tls-ca", authority.certificate, *name, *pair)
    assert (code, out) == (0, "SERVING\n"), err
    for words in (("--tls-ca", stranger.certificate, *name, *pair),  # somebody else's server
                  ("--tls-ca", authority.certificate, *pair),  # the name of another host
                  ("--tls-ca", authority.certificate, *name),  # without a certificate of its own
                  ()):  # in the clear
        code, out, err = probe(mutual.address, *words)
        assert (code, out) == (2, ""), words
        assert "compare --probe with its --listen, and --tls-ca with its --tls-cert" in err
    # The Unix socket has no TLS, whatever is said.
    assert probe(mutual.unix_address, "--tls-ca", authority.certificate)[:2] == (0, "SERVING\n")


def test_a_probe_takes_a_token_that_a_proxy_may_want(mutual, tmp_path):
    (tmp_path / "token").write_text("a-token-0123456789\n")
    assert probe(mutual.unix_address, "--token-file", tmp_path / "token")[:2] == (0, "SERVING\n")


@pytest.mark.parametrize("words, message", [
    (("--tls-cert", "c.pem", "--tls-ca", "a.pem"), "is given alone; expected --tls-cert and --tls-key together"),
    (("--tls-server-name", "n"), "--tls-server-name n is given without --tls-ca"),
    (("--tls-ca", "/nowhere/a.pem"), "--tls-ca /nowhere/a.pem cannot be read"),
    (("--tls-client-ca", "a.pem"), "--tls-client-ca comes with --probe 127.0.0.1:1; expected only"),
])
def test_a_probe_names_files_that_do_not_go_together(words, message):
    code, out, err = probe("127.0.0.1:1", *words)
    assert (code, out) == (2, "") and message in err
