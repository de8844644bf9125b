"""Fixtures: hosts, the servers on them, a proxy in front, and who holds which key."""

import contextlib
import os
import pathlib

import grpc
import pytest

from draft_server import DraftServer
from hosts import Host


@pytest.fixture(scope="session")
def results():
    """Where reports go."""
    folder = pathlib.Path(os.environ["AERIE_RESULTS"]) / "results"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def hosts():
    """hosts() -> a new host; gone after the test."""
    with contextlib.ExitStack() as stack:
        def make():
            host = Host()
            stack.callback(host.close)
            return host

        yield make


@pytest.fixture
def start(hosts, tmp_path):
    """start("drafter-1") -> a server on a host of its own; killed after the test."""
    with contextlib.ExitStack() as stack:
        def make(name):
            server = DraftServer(hosts(), name, tmp_path)
            stack.callback(server.kill)
            return server

        yield make


@pytest.fixture(scope="session")
def pb(tmp_path_factory):
    """The messages of aerie.v1, for calls with keys of the test's own."""
    from aerie_draft._proto import draft_pb2, draft_pb2_grpc
    draft_pb2.Stub = draft_pb2_grpc.DraftServiceStub
    return draft_pb2


@pytest.fixture
def holders(pb):
    """holders(address, keys) -> {key: the name of the server that gets it}, on a connection of its own."""
    def ask(address, keys):
        with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub = pb.Stub(channel)
            calls = {key: stub.GetServerInfo.future(pb.GetServerInfoRequest(), timeout=60,
                                                    metadata=(("aerie-session", key),)) for key in keys}
            return {key: call.result().drafters[0].name for key, call in calls.items()}

    return ask
