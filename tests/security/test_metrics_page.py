"""Who reads the metrics page of the real server: tokens with the role, TLS, and neither on a public address."""

import json
import pathlib
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import ADMIN_TOKEN, DRAFT_TOKEN, METRICS_TOKEN
from server_process import BINARY, DRAFTER, PATIENCE, TARGET, ServerProcess


def scrape(server, scheme="http", token=None, ca=None, pair=None):
    """(status, text, headers) of the page; a connection that fails is an error."""
    context = None
    if scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        if pair:
            context.load_cert_chain(*pair)
    request = urllib.request.Request(f"{scheme}://{server.ports['metrics']}/metrics")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as page:
            return page.status, page.read().decode(), page.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


def test_the_metrics_page_wants_a_token_of_its_role(token_file, tmp_path):
    with ServerProcess(tmp_path, "--token-file", token_file, "--log-level", "debug") as server:
        status, text, headers = scrape(server)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer")
        assert text.startswith("the call has no token; expected") and "aerie_" not in text
        assert scrape(server, token="a-wrong-token-0123456789")[0] == 401
        for token in (DRAFT_TOKEN, ADMIN_TOKEN):
            status, text, _ = scrape(server, token=token)
            assert status == 403 and "has not the role metrics" in text and "aerie_" not in text
        status, text, headers = scrape(server, token=METRICS_TOKEN)
        assert status == 200 and "aerie_build_info{" in text
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
        # A renewed token counts at once.
        token_file.write_text("metrics prometheus another-token-0123456789\n")
        assert scrape(server, token=METRICS_TOKEN)[0] == 401
        assert scrape(server, token="another-token-0123456789")[0] == 200
        for secret in (METRICS_TOKEN, "another-token-0123456789", "a-wrong-token-0123456789"):
            assert secret not in server.log()


def test_the_metrics_page_over_tls_is_read_by_whoever_shows_a_certificate(authority, stranger, tmp_path):
    certificate, key = authority.issue("page", "127.0.0.1")
    with ServerProcess(tmp_path, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate,
                       "--metrics-tls") as server:
        pair = authority.issue("prometheus")
        status, text, _ = scrape(server, "https", ca=authority.certificate, pair=pair)
        assert status == 200 and "aerie_build_info{" in text
        for ca, shown in ((authority.certificate, None), (authority.certificate, stranger.issue("prometheus")),
                          (stranger.certificate, pair)):
            with pytest.raises(OSError):
                scrape(server, "https", ca=ca, pair=shown)
        with pytest.raises(OSError):
            scrape(server)
        # It still answers those that may ask.
        assert scrape(server, "https", ca=authority.certificate, pair=pair)[0] == 200


def test_a_certificates_name_may_have_the_role_of_the_metrics_page(authority, tmp_path):
    certificate, key = authority.issue("page", "127.0.0.1")
    tokens = tmp_path / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text("metrics prometheus certificate\ndraft worker certificate\n")
    with ServerProcess(tmp_path, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate,
                       "--metrics-tls", "on", "--token-file", tokens) as server:
        for name, expected in (("prometheus", 200), ("worker", 403), ("nobody", 401)):
            status, _, _ = scrape(server, "https", ca=authority.certificate, pair=authority.issue(name))
            assert status == expected, name


def test_a_renewed_certificate_is_on_the_page_without_a_restart(authority, tmp_path):
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"

    def put(pair):
        for source, target in zip(pair, (certificate, key)):
            fresh = target.with_suffix(".new")
            fresh.touch(mode=0o600)
            fresh.write_bytes(pathlib.Path(source).read_bytes())
            fresh.rename(target)

    put(authority.issue("first", "127.0.0.1"))
    with ServerProcess(tmp_path, "--tls-cert", certificate, "--tls-key", key, "--metrics-tls") as server:
        host, port = server.ports["metrics"].rsplit(":", 1)

        def shown():
            return ssl.get_server_certificate((host, int(port)))

        first = shown()
        assert first == certificate.read_text()
        put(authority.issue("second", "127.0.0.1"))
        assert shown() == certificate.read_text() != first
        certificate.write_text("no certificate\n")
        assert shown() != first and "stay in force" in server.log()
        assert scrape(server, "https", ca=authority.certificate)[0] == 200


def started_in_vain(*flags):
    done = subprocess.run([str(word) for word in (BINARY, "--drafter", DRAFTER, "--target", TARGET, "--listen",
                                                  "127.0.0.1:0", *flags)], capture_output=True, text=True,
                          timeout=PATIENCE)
    return done.returncode, done.stderr


@pytest.mark.parametrize("flags", [(), ("--tls-cert", "c.pem", "--tls-key", "k.pem")])
def test_a_public_metrics_page_that_nothing_guards_is_refused(flags):
    code, message = started_in_vain("--metrics-listen", "0.0.0.0:0", *flags)
    assert code == 2
    assert "--metrics-listen 0.0.0.0:0 can be reached from other hosts, and neither tokens nor TLS guard" in message
    for remedy in ("--token-file", "--metrics-tls", "--insecure"):
        assert remedy in message


@pytest.mark.parametrize("flags, message", [
    (("--metrics-tls",), "--metrics-tls is on but --tls-cert is not given; expected both;"),
    (("--metrics-listen", "off", "--metrics-tls", "on"), "--metrics-tls is on but --metrics-listen is off; expected"),
])
def test_flags_of_the_page_that_contradict_each_other_are_named(flags, message):
    code, said = started_in_vain(*flags)
    assert code == 2 and message in said


def test_a_public_page_with_tokens_in_the_clear_is_warned_of(token_file, tmp_path):
    ports = tmp_path / "ports.json"
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([str(word) for word in (
            BINARY, "--drafter", DRAFTER, "--target", TARGET, "--listen", "127.0.0.1:0", "--metrics-listen",
            "0.0.0.0:0", "--token-file", token_file, "--port-file", ports, "--threads", "1")], stderr=log)
    try:
        from server_process import wait_until
        wait_until(lambda: ports.exists() or process.poll() is not None, "the port file")
        assert json.loads(ports.read_text())["metrics"].startswith("0.0.0.0:")
        assert "--metrics-listen 0.0.0.0:0 takes tokens in the clear" in (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()
