"""One of three servers is lost under load: every session goes on, and no draft is wrong."""

import time

import grpc
import pytest
from aerie_draft import DraftClient

import failover_report
from draft_server import PATIENCE, wait_until
from hosts import NAMESPACES
from proxies import proxy_class
from walk import Load, Walk, read_recording

SESSIONS_PER_RECORDING = 2
THREADS = 6
# Rounds of each session before the loss at least, and at most, so that all have some behind it.
BEFORE, AT_MOST = 8, 24


def kill(server):
    """SIGKILL: its connections are reset, new ones are refused."""
    server.kill()


def drain(server):
    """SIGTERM: it says that it does not serve, answers what it has, and goes."""
    server.drain()


def vanish(server):
    """Its host is cut off: nothing answers and nothing is refused."""
    server.host.vanish()


def held(holders, address, keys):
    """Who holds which key; None while the proxy sends any of them to a server that cannot be reached."""
    try:
        return holders(address, keys)
    except grpc.RpcError as error:
        if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise
        return None


@pytest.mark.parametrize("failure", [kill, drain, vanish], ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("proxy_name", ["haproxy", "nginx", "envoy", "xds"])
def test_every_session_goes_on_and_no_draft_is_wrong(proxy_name, failure, start, hosts, holders, tmp_path, results):
    make_proxy = proxy_class(proxy_name)
    if failure is vanish and proxy_name == "xds":
        pytest.skip("xDS asks no server for its health: a host that vanishes is lost when the client's own pings say so")
    if failure is vanish and not NAMESPACES:
        pytest.skip("a host that vanishes without a word needs network namespaces, which this machine does not permit")
    servers = [start(f"drafter-{number}") for number in (1, 2, 3)]
    # Only a host that vanishes takes the deadline of a call to be found out.
    timeout = 5.0 if failure is vanish else PATIENCE
    recording = read_recording()
    with make_proxy(hosts(), tmp_path, servers) as proxy, DraftClient(proxy.address, timeout=timeout) as client:
        walks = [Walk(client, recorded, timeout) for recorded in recording * SESSIONS_PER_RECORDING]
        load = Load(walks, THREADS, pause_at=AT_MOST)
        load.wait_for_rounds(BEFORE, PATIENCE)
        keys = {walk.sequence.key: walk for walk in walks}
        before = holders(proxy.address, keys)
        names = list(before.values())
        victim = max(servers, key=lambda server: names.count(server.name))
        lost_at = time.monotonic()
        load_before = {key: len(walk.rounds) for key, walk in keys.items()}
        failure(victim)
        load.resume()
        load.join(PATIENCE * 5)
        after = wait_until(lambda: held(holders, proxy.address, keys), "the proxy to know which server is lost")

    hit = [key for key, name in before.items() if name == victim.name]
    others = [key for key in keys if key not in hit]
    for server in servers:
        server.kill()
    with DraftClient(start("reference").address, timeout=PATIENCE) as direct:
        wrong = {key: walk.wrong_drafts(direct) for key, walk in keys.items()}
    going_on = [key for key, walk in keys.items() if walk.rounds[-1].proposal is not None]
    failover_report.write(results, proxy_name, failure.__name__, dict(
        hosts="namespaces" if NAMESPACES else "loopback addresses", sessions=len(walks), on_lost_server=len(hit),
        moved_elsewhere_unasked=sum(after[key] != before[key] for key in others),
        rounds=sum(len(walk.rounds) for walk in walks),
        lost_rounds=sum(keys[key].lost_rounds for key in hit),
        lost_rounds_of_others=sum(keys[key].lost_rounds for key in others),
        resyncs=sum(walk.sequence.resyncs for walk in walks), sessions_going_on=len(going_on),
        wrong_drafts=sum(map(len, wrong.values())),
        milliseconds_to_last_resync=round(1000 * (max(keys[key].recovered_at for key in hit) - lost_at))))

    assert not any(wrong.values()), wrong
    assert len(going_on) == len(walks)
    assert all(len(walk.rounds) > load_before[key] for key, walk in keys.items()), "the load ended before the loss"
    # Those of the lost server came to the others with all their rows; nobody else was moved, or even noticed.
    assert all(keys[key].sequence.resyncs >= 1 for key in hit)
    assert all(after[key] == before[key] for key in others)
    assert all(after[key] != victim.name for key in hit)
    if failure is not vanish:
        assert [keys[key].sequence.resyncs for key in others] == [0] * len(others)
        assert [keys[key].lost_rounds for key in others] == [0] * len(others)
