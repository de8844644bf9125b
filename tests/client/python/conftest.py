"""Fixtures of the client's tests: a fake server, a client of it, a manifest that fits it."""

import importlib.util

import aerie_draft
import pytest
from fake_server import FakeServer

if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
    pytest_plugins = ["tiny_target"]  # The fixtures make_worker, model and plain.


@pytest.fixture
def server():
    with FakeServer() as fake:
        yield fake


@pytest.fixture(params=["unary", "stream"])
def client(request, server):
    with aerie_draft.DraftClient(server.address, transport=request.param, timeout=60) as connected:
        yield connected


@pytest.fixture
def unary(server):
    with aerie_draft.DraftClient(server.address, timeout=60) as connected:
        yield connected


@pytest.fixture
def manifest():
    return make_manifest()


def make_manifest(boundaries=(1, 2, 3), dtype=aerie_draft.DType.BFLOAT16):
    return aerie_draft.Manifest(
        target_id="fake target",
        num_layers=4,
        hidden_size=8,
        vocab_size=64,
        captures=aerie_draft.captures_at(boundaries),
        dtype=dtype,
    )
