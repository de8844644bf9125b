"""Fixtures: the image's root, made by the very steps of docker/Dockerfile, and its server."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import dockerfile
from dockerfile import ROOT
from sandbox import Sandbox, run_step

sys.path.insert(0, str(ROOT / "tests/e2e"))
from server_process import DRAFTER, TARGET, wait_until  # noqa: E402

# What a worker says and sends, as the end-to-end tests have it.
_spec = importlib.util.spec_from_file_location("end_to_end", ROOT / "tests/e2e/conftest.py")
_end_to_end = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_end_to_end)
pb, recording, manifest, connect = (getattr(_end_to_end, name) for name in ("pb", "recording", "manifest", "connect"))

BUILD = pathlib.Path(os.environ.get("AERIE_BUILD", ROOT / "build/release"))


def bare_debian(folder):
    """Debian 12 and nothing else: what the image begins with. Kept from run to run."""
    kept = folder / "debian"
    if not (folder / "debian.done").exists():
        shutil.rmtree(kept, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", kept], check=True, stdout=subprocess.DEVNULL)
        (folder / "debian.done").touch()
    return kept


@pytest.fixture(scope="session")
def root():
    """The image's root, put together as the Dockerfile does."""
    if os.geteuid() != 0:
        pytest.skip("chroot and mounts need root; run as root")
    folder = BUILD / "image"
    folder.mkdir(exist_ok=True)
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", bare_debian(folder), root], check=True)
    # Stage base: COPY and RUN.
    *sources, target = dockerfile.only("COPY", "base").split()
    (root / target.strip("/")).mkdir(parents=True)
    hidden = root / "steps"  # Beside /tmp, which is a file system of its own while a step runs.
    (root / target.strip("/")).rename(hidden)
    for source in sources:
        shutil.copy2(ROOT / source, hidden)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    done = run_step(root, dockerfile.only("RUN", "base").replace(target, "/steps/").split())
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(hidden)
    # Stage build, with the programs that are built already: what step `build` does behind its compiler.
    for component in ("server", "tools", "libraries", "docs"):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/opt/aerie", "--component", component], check=True,
                       env={**os.environ, "DESTDIR": str(root)}, stdout=subprocess.DEVNULL)
    # Stage bill.
    subprocess.run([ROOT / "docker/steps/bill_of_materials", root / "opt/aerie", root / "var/lib/dpkg/status"],
                   check=True, env={**os.environ, "AERIE_BILL_PYTHON": str(ROOT / "build/deploy/venv/bin/python")})
    return root


@pytest.fixture
def container(root, tmp_path):
    """The image's server with its own environment, serving the demo's head."""
    sandbox = Sandbox(root, dockerfile.entry_point(), dockerfile.user(), dockerfile.environment(),
                      {DRAFTER: "/models/drafter", TARGET: "/models/target"}, tmp_path / "log")
    try:
        wait_until(lambda: sandbox.process.poll() is not None or (
            sandbox.pid and sandbox.run(dockerfile.health_command()).returncode == 0), "the health check to pass")
        assert sandbox.process.poll() is None, (tmp_path / "log").read_text()
        yield sandbox
    finally:
        sandbox.close()
