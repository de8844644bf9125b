"""aerie-load against the real server: its counts equal the metrics page to the unit, and its reports are all there."""

import csv
import json
import subprocess

import pytest

from server_process import BINARY, ROOT, ServerProcess

LOAD = BINARY.with_name("aerie-load")
RECORDING = ROOT / "tests/golden/eval"
FILES = ("report.json", "report.html", "report.csv", "report.hdr")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One of this file's own: what others do, and when their streams are found to have ended, must not be counted."""
    with ServerProcess(tmp_path_factory.mktemp("server")) as process:
        yield process


def run(*arguments):
    """Exit code and what was printed."""
    result = subprocess.run([str(word) for word in (LOAD, *arguments)], capture_output=True, text=True, timeout=600)
    return result.returncode, result.stdout + result.stderr


def load(server, folder, *arguments, address=None):
    """The JSON report of a run that went well."""
    path = folder / "report.json"
    code, text = run("--address", address or server.address, "--metrics", server.ports["metrics"],
                     "--prompt-rows" if "--recording" not in arguments else "--seed", 12, "--json", path, *arguments)
    assert code == 0, text
    return json.loads(path.read_text())


def assert_reconciled(report):
    metrics = report["reconciliation"]["metrics"]
    assert metrics["done"] and metrics["differences"] == 0, metrics
    # Nothing was left open: every counter is known to the unit.
    assert all(check["least"] == check["most"] == check["found"] for check in metrics["checks"]), metrics
    sessions = report["reconciliation"]["sessions"]
    assert sessions["equal"] and sessions["not_compared"] == 0, sessions


def test_a_closed_loop_is_reconciled_to_the_unit_and_writes_every_report(server, tmp_path):
    report = load(server, tmp_path, "--sessions", 3, "--requests", 6, "--rounds", 8, "--accept", "0.8,0.5",
                  "--html", tmp_path / "report.html", "--csv", tmp_path / "report.csv", "--hdr", tmp_path / "report.hdr")
    assert_reconciled(report)
    assert report["whole_run"]["rounds"] == 6 * 8
    assert report["server_seconds"]["total"]["p50"] > 0
    assert all((tmp_path / name).stat().st_size > 0 for name in FILES)
    with open(tmp_path / "report.csv", newline="") as file:
        assert sum(int(row["rounds"]) for row in csv.DictReader(file)) == 6 * 8
    assert "Acceptance by position" in (tmp_path / "report.html").read_text()


def test_an_open_loop_of_trees_over_a_unix_socket_and_streams_is_reconciled(server, tmp_path):
    report = load(server, tmp_path, "--transport", "stream", "--connections", 2, "--sessions", 4, "--rate", 40,
                  "--arrivals", "gamma", "--burstiness", 0.5, "--total-rounds", 40, "--tree", "3,2,6",
                  address=server.unix_address)
    assert_reconciled(report)
    assert report["whole_run"]["rounds"] == 40
    assert report["options"]["loop"] == "open"


def test_recorded_rows_accept_what_their_recording_says(server, tmp_path):
    report = load(server, tmp_path, "--recording", RECORDING, "--requests", 3, "--rounds", 6, "--sessions", 1)
    assert_reconciled(report)
    assert report["acceptance"]["expected_by_position"] == []
    assert report["acceptance"]["mean_accept_length"] > 1.0


def test_faults_beside_the_load_leave_it_reconciled(server, tmp_path):
    shares = [word for kind in ("cancel", "deadline", "slow-reader", "reconnect", "malformed")
              for word in (f"--fault-{kind}", 0.1)]
    report = load(server, tmp_path, "--sessions", 2, "--requests", 4, "--rounds", 10, *shares)
    assert report["faults"] and all(f["injected"] == f["as_expected"] for f in report["faults"].values()), report
    assert report["reconciliation"]["metrics"]["differences"] == 0
    assert report["reconciliation"]["sessions"]["equal"]


def test_exit_codes_tell_a_missed_slo_from_bad_usage_and_from_a_server_that_is_away(server, tmp_path):
    few = ("--sessions", 1, "--requests", 1, "--rounds", 2, "--prompt-rows", 4)
    assert run("--address", server.address, *few, "--slo", "p50=1ns")[0] == 3
    assert run("--address", server.address, *few, "--slo", "p50=1h")[0] == 0
    assert run("--address", server.address, "--rate", 5)[0] == 2
    code, text = run("--address", f"unix:{tmp_path}/none.sock", "--deadline", "500ms", *few)
    assert code == 1 and "none.sock" in text


def test_a_sweep_has_a_knee_and_can_be_compared_with_itself(server, tmp_path):
    path = tmp_path / "sweep.json"
    code, text = run("sweep", "--address", server.address, "--over", "sessions", "--values", "1,2", "--duration", "1s",
                     "--warmup", "100ms", "--prompt-rows", 4, "--json", path, "--html", tmp_path / "sweep.html")
    assert code == 0 and "knee" in text, text
    report = json.loads(path.read_text())
    assert [point["level"] for point in report["points"]] == [1, 2]
    assert report["knee"]["level"] in (1, 2)
    assert "</svg>" in (tmp_path / "sweep.html").read_text()
    code, text = run("compare", path, path)
    assert code == 0 and "knee.p99" in text, text


@pytest.mark.parametrize("command", [(), ("sweep",), ("compare",), ("null-server",)])
def test_every_command_explains_itself(command):
    code, text = run(*command, "--help")
    assert code == 0 and "--" in text
