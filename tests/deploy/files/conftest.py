"""Fixtures: the built overlays, what the server's help says, the names of its metrics."""

import os
import pathlib
import re
import subprocess

import pytest

import kustomize

ROOT = pathlib.Path(__file__).resolve().parents[3]
SERVER = pathlib.Path(os.environ.get("AERIE_BIN", ROOT / "build/release/bin")) / "aerie-server"
KUBERNETES = ROOT / "deploy/kubernetes"
FOLDERS = ["base", "overlays/autoscaled", "overlays/sidecar", "overlays/scaled-out"]


@pytest.fixture(params=FOLDERS)
def resources(request):
    return kustomize.build(KUBERNETES / request.param)


@pytest.fixture(scope="session")
def server_help():
    return subprocess.run([SERVER, "--help"], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def flags(server_help):
    """{flag: its environment variable, or None}"""
    known = {}
    for entry in re.split(r"\n(?=  -)", server_help):
        name = re.match(r"  (?:-\w,)?(--[a-z0-9-]+)", entry)
        if name:
            variable = re.search(r"Env:\s+(AERIE_[A-Z0-9_]+)", entry)
            known[name.group(1)] = variable and variable.group(1)
    assert known.get("--drafter") == "AERIE_DRAFTER"
    return known


@pytest.fixture(scope="session")
def metric_names():
    text = (ROOT / "server/metrics/metric_names.h").read_text()
    return set(re.findall(r'"((?:aerie|grpc|process)_[a-z0-9_]+)"', text))


def pod_specs(resources):
    for resource in resources:
        if resource["kind"] == "Deployment":
            yield resource, resource["spec"]["template"]["spec"]


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]
