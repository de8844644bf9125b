"""Fixtures: where things are, and the answers of the engine without drafts."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "demo"))

from engine_process import Engine  # noqa: E402
from faults import ENGINE_FLAGS, World, ask_plain  # noqa: E402
from prompts import PROMPTS  # noqa: E402

WORK = pathlib.Path(os.environ["AERIE_ENGINE_WORK"])
PACKAGE = pathlib.Path(os.environ["AERIE_PACKAGE"])
PYTHON = pathlib.Path(os.environ["AERIE_VLLM_VENV"]) / "bin/python"
SERVER = pathlib.Path(os.environ.get("AERIE_BIN", ROOT / "build/release/bin")) / "aerie-server"
TARGET = pathlib.Path(os.environ.get("AERIE_TARGET", ROOT / "build/target"))
HEAD = ROOT / "demo/drafter"


@pytest.fixture(scope="session")
def python():
    return PYTHON


@pytest.fixture(scope="session")
def package():
    return PACKAGE


@pytest.fixture(scope="session")
def plain():
    """By prompt: what the engine answers without a drafter."""
    with Engine(PYTHON, TARGET, WORK / "plain", *ENGINE_FLAGS) as engine:
        return ask_plain(engine, PROMPTS)


@pytest.fixture(scope="session")
def world(plain):
    """After `plain`, so that only one engine runs at a time."""
    with World(PYTHON, PACKAGE, SERVER, HEAD, TARGET, WORK / "world") as running:
        yield running
