"""Hosts for the servers and the proxy: network namespaces, or loopback addresses where there are none.

The tests themselves sit on a router between the hosts, so a worker's way to the proxy and the
proxy's way to the servers are real networks, and a host can vanish from them without a word.
"""

import itertools
import os
import subprocess

NAMESPACES = os.environ.get("AERIE_PROXY_HOSTS") == "namespaces"


class Host:
    """`address` is its own; programs are started there with `command`."""

    # Never used twice: the kernel takes its time to take a namespace and its links away.
    _numbers = itertools.count(1)

    def __init__(self):
        number = next(Host._numbers)
        if not NAMESPACES:
            self.address = f"127.0.0.{10 + number}"
            return
        network, self._name, self._link = f"10.77.{number}", f"host-{number}", f"to-host-{number}"
        self.address = f"{network}.2"
        _ip("netns", "add", self._name)
        _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self._name)
        _ip("addr", "add", f"{network}.1/30", "dev", self._link)
        _ip("link", "set", self._link, "up")
        _ip("-n", self._name, "addr", "add", f"{network}.2/30", "dev", "eth0")
        _ip("-n", self._name, "link", "set", "eth0", "up")
        _ip("-n", self._name, "link", "set", "lo", "up")
        self._way = ("default", "via", f"{network}.1")
        _ip("-n", self._name, "route", "add", *self._way)

    def command(self, *words):
        words = [str(word) for word in words]
        return ["ip", "netns", "exec", self._name, *words] if NAMESPACES else words

    def vanish(self):
        """Nothing comes from it any more, and nobody is told: no reset, no ICMP message."""
        _ip("-n", self._name, "route", "del", *self._way)

    def close(self):
        if NAMESPACES:
            _ip("link", "del", self._link)
            _ip("netns", "del", self._name)


def _ip(*words):
    subprocess.run(["ip", *words], check=True)
