"""The unit: systemd understands every line, and finds little to take away."""

import os
import shutil
import stat
import subprocess

import pytest

from conftest import ROOT

# Of 10. What is left is the network, which the server is there for.
MOST_EXPOSURE = 15  # in tenths


@pytest.fixture
def unit(tmp_path):
    """As cmake --install writes it, for a prefix with programs in it."""
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/aerie-server").write_text("#!/bin/sh\n")
    (prefix / "bin/aerie-server").chmod(0o755)
    text = (ROOT / "deploy/systemd/aerie.service.in").read_text().replace("@AERIE_PREFIX@", str(prefix))
    assert "@" not in text.replace("~@", "").replace("=@", "").replace(" @", ""), "a place that nobody fills in"
    path = tmp_path / "aerie.service"
    path.write_text(text)
    return path


def analyze(*words):
    assert shutil.which("systemd-analyze"), "systemd-analyze is not there; expected Debian's systemd; tests/run installs it"
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True)


def test_systemd_finds_nothing_wrong_with_the_unit(unit):
    done = analyze("verify", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_is_exposed_to_little(unit):
    done = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE}", unit)
    assert done.returncode == 0, done.stdout


def test_the_user_and_its_folders_are_made(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("making users in another root needs root")
    assert "User=aerie\n" in (ROOT / "deploy/systemd/aerie.service.in").read_text()
    for place in ("etc", "var/lib"):
        (tmp_path / place).mkdir(parents=True)
    for program, file in (("systemd-sysusers", "aerie.sysusers"), ("systemd-tmpfiles", "aerie.tmpfiles")):
        assert shutil.which(program), f"{program} is not there; expected Debian's systemd; tests/run installs it"
        create = ["--create"] * (program == "systemd-tmpfiles")
        done = subprocess.run([program, f"--root={tmp_path}", *create, ROOT / "deploy/systemd" / file],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    (user,) = (tmp_path / "etc/passwd").read_text().splitlines()
    name, _, _, group, *_, shell = user.split(":")
    assert name == "aerie" and shell.endswith("/nologin")
    for place in ("etc/aerie", "var/lib/aerie"):
        made = (tmp_path / place).stat()
        assert (stat.S_IMODE(made.st_mode), made.st_uid, made.st_gid) == (0o750, 0, int(group)), place
