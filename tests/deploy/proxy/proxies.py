"""HAProxy, nginx and Envoy with the configurations of deploy/proxy, of which only addresses are changed."""

import os
import pathlib
import shutil
import signal
import subprocess

import grpc
from draft_server import ROOT, wait_until
from hosts import NAMESPACES

SHIPPED = ROOT / "deploy/proxy"
PORT = 50051


def replaced(text, old, new):
    assert old in text, f"the shipped configuration has no {old!r} any more; mend the test"
    return text.replace(old, new)


def without_line(text, word):
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if word not in line]
    assert len(kept) < len(lines), f"the shipped configuration has no {word!r} any more; mend the test"
    return "".join(kept)


class Proxy:
    """In front of `servers`, at most three; more of them may come with use(). A context manager."""

    program = None

    def __init__(self, host, folder, servers):
        self.host, self.folder = host, folder
        # Loopback has no port that is free for sure; a socket of our own is.
        self.address = f"{host.address}:{PORT}" if NAMESPACES else f"unix:{folder}/proxy.sock"
        self.log_path = folder / f"{self.program}.log"
        self.write(servers)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(host.command(*self.command()), stdout=log, stderr=log)

    def write(self, servers):
        raise NotImplementedError

    def command(self):
        raise NotImplementedError

    def use(self, servers):
        raise NotImplementedError

    def addresses(self, text, servers, form="{address}:{port}"):
        for number in range(3):
            shipped = form.format(address=f"192.0.2.{11 + number}", port=PORT)
            if number < len(servers):
                address, port = servers[number].address.rsplit(":", 1)
                text = replaced(text, shipped, form.format(address=address, port=port))
            else:
                text = without_line(text, shipped)
        return text

    def __enter__(self):
        def serves():
            assert self.process.poll() is None, self.log()
            with grpc.insecure_channel(self.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
                ask = channel.unary_unary("/aerie.v1.DraftService/GetServerInfo")
                try:
                    ask(b"", timeout=5, metadata=(("aerie-session", "first"),))
                except grpc.RpcError:
                    return False
            return True

        try:
            wait_until(serves, f"{self.program} to pass a call on")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)

    def log(self):
        return self.log_path.read_text(errors="replace")


class HAProxy(Proxy):
    program = "haproxy"

    def write(self, servers):
        text = self.addresses((SHIPPED / "haproxy.cfg").read_text(), servers)
        if not NAMESPACES:
            text = replaced(text, "bind :50051 ", f"bind unix@{self.folder}/proxy.sock ")
        (self.folder / "haproxy.cfg").write_text(text)

    def command(self):
        # -W: a master, so that a reload is a signal; -db: in the foreground.
        return "haproxy", "-W", "-db", "-f", self.folder / "haproxy.cfg"

    def use(self, servers):
        self.write(servers)
        self.process.send_signal(signal.SIGUSR2)


class Nginx(Proxy):
    program = "nginx"

    def write(self, servers):
        text = self.addresses((SHIPPED / "nginx.conf").read_text(), servers)
        if not NAMESPACES:
            text = replaced(text, "listen 50051 ", f"listen unix:{self.folder}/proxy.sock ")
        (self.folder / "aerie.conf").write_text(text)
        user = "user root;\n" if os.geteuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            f"{user}pid {self.folder}/nginx.pid;\nworker_processes 2;\nerror_log stderr notice;\n"
            f"events {{}}\nhttp {{\n  include {self.folder}/aerie.conf;\n" + "".join(
                f"  {kind}_temp_path {self.folder}/{kind};\n"
                for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")) + "}\n")

    def command(self):
        return "nginx", "-p", self.folder, "-c", self.folder / "nginx.conf", "-e", "stderr", "-g", "daemon off;"

    def use(self, servers):
        self.write(servers)
        self.process.send_signal(signal.SIGHUP)


class Envoy(Proxy):
    program = "envoy"
    binary = ROOT / "build/deploy/venv/bin/envoy"

    def write(self, servers):
        text = (SHIPPED / "envoy.yaml").read_text()
        text = replaced(text, "/etc/envoy/envoy-endpoints.yaml", f"{self.folder}/envoy-endpoints.yaml")
        text = replaced(text, "socket_address: { address: 127.0.0.1, port_value: 9901 }",
                        f"pipe: {{ path: {self.folder}/admin.sock }}")
        if not NAMESPACES:
            text = replaced(text, "socket_address: { address: 0.0.0.0, port_value: 50051 }",
                            f"pipe: {{ path: {self.folder}/proxy.sock }}")
        (self.folder / "envoy.yaml").write_text(text)
        self.use(servers)

    def command(self):
        return self.binary, "-c", self.folder / "envoy.yaml", "--disable-hot-restart", "--concurrency", "1"

    def use(self, servers):
        text = self.addresses((SHIPPED / "envoy-endpoints.yaml").read_text(), servers,
                              "address: {address}, port_value: {port}")
        (self.folder / "new.yaml").write_text(text)
        os.replace(self.folder / "new.yaml", self.folder / "envoy-endpoints.yaml")


class Xds(Proxy):
    """No proxy: gRPC's own client balances, and a control plane tells it how."""

    program = "xds"

    def __init__(self, host, folder, servers):
        super().__init__(host, folder, servers)
        plane = self.address
        bootstrap = replaced((SHIPPED / "xds/bootstrap.json").read_text(), "control-plane.example:18000", plane)
        (folder / "bootstrap.json").write_text(bootstrap)
        os.environ["GRPC_XDS_BOOTSTRAP"] = str(folder / "bootstrap.json")
        self.address = "xds:///aerie"

    def write(self, servers):
        text = self.addresses((SHIPPED / "xds/resources.yaml").read_text(), servers,
                              "address: {address}, port_value: {port}")
        (self.folder / "resources.yaml").write_text(text)

    def command(self):
        return (ROOT / "build/deploy/venv/bin/python", ROOT / "tests/deploy/proxy/control_plane.py", self.address,
                self.folder / "resources.yaml")

    def use(self, servers):
        self.write(servers)
        self.process.send_signal(signal.SIGHUP)


PROXIES = {"haproxy": HAProxy, "nginx": Nginx, "envoy": Envoy, "xds": Xds}


def proxy_class(name):
    """Of a program that the set-up has installed."""
    found = pathlib.Path(Envoy.binary).exists() if name in ("envoy", "xds") else shutil.which(name)
    assert found, f"{name} is not installed; expected it to be; run tests/run --label proxy, which installs it"
    return PROXIES[name]
