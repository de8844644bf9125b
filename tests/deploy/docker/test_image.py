"""The image as docker/Dockerfile describes it, without a container engine: its steps, its server, its limits."""

import json
import os
import signal

import dockerfile
from server_process import PATIENCE


def test_the_server_drafts_as_nobody_in_a_read_only_root(container, connect, pb, manifest, recording):
    status = container.status()
    assert status["Uid"].split() == [str(dockerfile.user()[0])] * 4
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    for place in ("/etc", "/opt/aerie", "/models", "/"):
        assert container.run(["/bin/sh", "-c", f": >{place}/mark"]).returncode != 0, place

    # From outside, through the socket that a worker beside it would use.
    stub = connect(f"unix:/proc/{container.pid}/root/run/aerie/aerie.sock")
    session = stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id
    expected = recording.facts["expected"]["first_drafts"][0]
    rows = recording.sequences[0].rows(pb, 0, expected["slot"] + 1)
    answer = stub.Draft(pb.DraftRequest(session_id=session, k=len(expected["draft"]), **rows))
    assert len(answer.tree.token_ids) == len(expected["draft"])
    assert answer.tree.token_ids[0] == expected["draft"][0]


def test_the_health_check_follows_the_server(container):
    assert container.run(dockerfile.health_command()).returncode == 0
    os.kill(container.pid, getattr(signal, dockerfile.only("STOPSIGNAL")))
    assert container.process.wait(timeout=PATIENCE) == 0


def test_the_health_check_fails_where_no_server_is(container):
    *command, _ = dockerfile.health_command()
    assert container.run([*command, "unix:/run/aerie/other.sock"]).returncode == 2


def test_every_tool_runs_in_the_image(container, root):
    programs = sorted(path.name for path in (root / "opt/aerie/bin").iterdir())
    assert {"aerie-server", "aerie-inspect", "aerie-load", "aerie-verify"} <= set(programs)
    for program in programs:
        done = container.run([f"/opt/aerie/bin/{program}", "--help"])
        assert (done.returncode, done.stderr) == (0, ""), program
        assert program in done.stdout


def test_the_image_holds_no_compiler_and_no_interpreter(root):
    for program in ("gcc", "g++", "cmake", "python3", "curl", "wget"):
        assert not (root / "usr/bin" / program).exists(), program
    assert not (root / "var/lib/apt/lists/lock").exists()
    size = sum(path.lstat().st_size for path in root.rglob("*"))
    print(f"\nthe image's root: {size / 2**20:.0f} MiB")


def test_the_bill_of_materials_names_what_is_in_the_image(root):
    bill = json.loads((root / "opt/aerie/share/doc/aerie/sbom.cdx.json").read_text())
    assert bill["metadata"]["component"]["name"] == "aerie-server"
    parts = {part["name"]: part for part in bill["components"]}
    listed = [line for line in (dockerfile.ROOT / "docker/runtime-packages.txt").read_text().splitlines()
              if not line.startswith("#")]
    assert set(listed) <= set(parts)
    assert all(parts[name]["purl"].startswith(f"pkg:deb/debian/{name.replace('+', '%2B')}@") for name in listed)
    assert parts["torch"]["purl"] == "pkg:pypi/torch@2.11.0"
    in_tree = {path.name for path in (root / "opt/aerie/lib/aerie").iterdir()}
    assert {"libtorch_cpu.so", "libc10.so"} <= in_tree
    assert all(len(parts[name]["hashes"][0]["content"]) == 64 for name in in_tree)
