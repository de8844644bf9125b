"""aerie-load reads the metrics page of a real server that guards it with TLS, a certificate and a token."""

import json
import pathlib
import subprocess

import pytest

from conftest import DRAFT_TOKEN, METRICS_TOKEN
from server_process import BINARY, PATIENCE, ServerProcess

BOTH_TOKEN = "both-token-0123456789"


@pytest.fixture(scope="module")
def server(authority, tmp_path_factory):
    """One of this file's own, since its counters are compared: its clients come over TLS and show a certificate."""
    folder = tmp_path_factory.mktemp("server")
    certificate, key = authority.issue("measured", "127.0.0.1")
    tokens = folder / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"draft worker {DRAFT_TOKEN}\nmetrics prometheus {METRICS_TOKEN}\n"
                      f"draft,metrics tester {BOTH_TOKEN}\n")
    with ServerProcess(folder, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate,
                       "--token-file", tokens, "--metrics-tls") as process:
        yield process


@pytest.fixture
def load(server, authority, tmp_path):
    """load(words, draft token, metrics token or None) -> (exit code, report or None, what was printed)."""
    certificate, key = authority.issue("tester")

    def run(words, draft, metrics=None, scheme="https://"):
        report = tmp_path / "report.json"
        (tmp_path / "draft").write_text(draft + "\n")
        flags = ["--address", server.address, "--metrics", scheme + server.ports["metrics"], "--tls-ca",
                 authority.certificate, "--tls-cert", certificate, "--tls-key", key, "--token-file", tmp_path / "draft",
                 "--sessions", 2, "--rounds", 4, "--json", report]
        if metrics is not None:
            (tmp_path / "metrics").write_text(metrics + "\n")
            flags += ["--metrics-token-file", tmp_path / "metrics"]
        command = [pathlib.Path(BINARY).with_name("aerie-load"), *words, *flags]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE)
        assert not any(token in done.stdout + done.stderr for token in (DRAFT_TOKEN, METRICS_TOKEN, BOTH_TOKEN))
        return done.returncode, json.loads(report.read_text()) if report.exists() else None, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("draft, metrics", [(DRAFT_TOKEN, METRICS_TOKEN), (BOTH_TOKEN, None)])
def test_the_load_tester_is_reconciled_with_a_guarded_page_to_the_unit(load, draft, metrics):
    code, report, text = load([], draft, metrics)
    assert code == 0, text
    found = report["reconciliation"]["metrics"]
    assert found["done"] and found["differences"] == 0, found
    assert all(check["least"] == check["most"] == check["found"] for check in found["checks"]), found
    assert any(check["found"] > 0 for check in found["checks"])


def test_each_level_of_a_sweep_is_reconciled_with_a_guarded_page(load):
    levels = ["sweep", "--over", "k", "--values", "1,2", "--requests", "2"]
    code, report, text = load(levels, DRAFT_TOKEN, METRICS_TOKEN)
    assert code == 0 and len(report["points"]) == 2, text
    # With the token of another role the first level has no page.
    code, _, text = load(levels, DRAFT_TOKEN)
    assert code == 1 and "answered 403" in text, text


@pytest.mark.parametrize("draft, metrics, scheme, message", [
    (DRAFT_TOKEN, None, "https://", 'answered 403 ("worker" has not the role metrics); expected the role metrics; give'),
    (DRAFT_TOKEN, "a-wrong-token-0123456789", "https://", "answered 401 (the call's token is not known); expected a"),
    (DRAFT_TOKEN, METRICS_TOKEN, "", "with https:// before it if the server has --metrics-tls"),
])
def test_the_load_tester_says_why_a_guarded_page_is_closed_to_it_before_it_loads(load, draft, metrics, scheme, message):
    code, report, text = load([], draft, metrics, scheme)
    assert code == 1 and report is None and message in text, text
