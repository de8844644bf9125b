"""Fixtures: generated stubs, one server for the tests that do not stop it, the recorded rows."""

import importlib
import subprocess
import sys

import grpc
import pytest

from recorded_rows import Recording
from server_process import ROOT, ServerProcess


@pytest.fixture(scope="session")
def pb(tmp_path_factory):
    """The messages of aerie.v1, with the stub class as `pb.Stub`; generated afresh from the contract. Those of the
    admin service are `pb.admin`, its stub class `pb.AdminStub`."""
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}/proto", f"--python_out={folder}",
                    f"--grpc_python_out={folder}", "aerie/v1/draft.proto", "aerie/v1/admin.proto"], check=True)
    sys.path.insert(0, str(folder))
    messages = importlib.import_module("aerie.v1.draft_pb2")
    messages.Stub = importlib.import_module("aerie.v1.draft_pb2_grpc").DraftServiceStub
    messages.admin = importlib.import_module("aerie.v1.admin_pb2")
    messages.AdminStub = importlib.import_module("aerie.v1.admin_pb2_grpc").AdminServiceStub
    return messages


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """For tests that leave it as they found it."""
    with ServerProcess(tmp_path_factory.mktemp("server")) as process:
        yield process


@pytest.fixture
def connect(pb):
    """connect(address) -> stub; the channels are closed after the test."""
    channels = []

    def make(address):
        # A pool of its own: otherwise a restarted server is met with the back-off of the one before.
        channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        channels.append(channel)
        stub = pb.Stub(channel)
        stub.channel = channel
        return stub

    yield make
    for channel in channels:
        channel.close()


@pytest.fixture(scope="session")
def recording():
    return Recording()


@pytest.fixture(scope="session")
def manifest(pb):
    """What a worker of the demo's target says."""
    captures = [pb.Capture(kind=pb.CAPTURE_KIND_BOUNDARY, boundary=b) for b in (2, 15, 27)]
    return pb.Manifest(target_id="SmolLM2-135M-Instruct", num_layers=30, hidden_size=576, vocab_size=49152,
                       captures=captures, dtype=pb.DATA_TYPE_BFLOAT16)
