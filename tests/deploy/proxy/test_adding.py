"""One server is added to two: only its share of the sessions moves, and all that moves goes there."""

import json

import pytest

from draft_server import wait_until
from proxies import proxy_class

KEYS = [f"session-{number}" for number in range(300)]


@pytest.mark.parametrize("proxy_name", ["haproxy", "nginx", "envoy", "xds"])
def test_only_the_share_of_the_new_server_moves(proxy_name, start, hosts, holders, tmp_path, results):
    make_proxy = proxy_class(proxy_name)
    servers = [start("drafter-1"), start("drafter-2")]
    with make_proxy(hosts(), tmp_path, servers) as proxy:
        def settled(names):
            """The holders, once two looks in a row agree and these are all the servers."""
            first = holders(proxy.address, KEYS)
            return first if set(first.values()) == names and holders(proxy.address, KEYS) == first else None

        before = wait_until(lambda: settled({"drafter-1", "drafter-2"}), "both servers to get calls")
        servers.append(start("drafter-3"))
        proxy.use(servers)
        after = wait_until(lambda: settled({"drafter-1", "drafter-2", "drafter-3"}), "the new server to get calls")

    moved = [key for key in KEYS if after[key] != before[key]]
    shares = {name: list(after.values()).count(name) for name in sorted(set(after.values()))}
    (results / f"added-{proxy_name}.json").write_text(
        json.dumps(dict(proxy=proxy_name, keys=len(KEYS), moved=len(moved), after=shares), indent=2))
    print(f"\nadding a third server behind {proxy_name}: {len(moved)} of {len(KEYS)} keys moved; now {shares}")
    elsewhere = [key for key in moved if after[key] != "drafter-3"]
    # A Maglev table disturbs a few entries of the other servers, and gRPC's ring has fewer points for each server when
    # there are more; those of HAProxy and nginx do neither.
    disturbed = {"haproxy": 0, "nginx": 0, "envoy": 0.05, "xds": 0.15}[proxy_name]
    assert len(elsewhere) <= disturbed * len(KEYS), elsewhere
    # A third, as even as a ring is.
    assert 0.15 <= len(moved) / len(KEYS) <= 0.55
    assert min(shares.values()) >= 0.15 * len(KEYS)
