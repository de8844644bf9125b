"""aerie-server as a process: started on free ports, asked, stopped."""

import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("AERIE_BIN", ROOT / "build/release/bin")) / "aerie-server"
TARGET = pathlib.Path(os.environ.get("AERIE_TARGET", ROOT / "build/target"))
DRAFTER = ROOT / "demo/drafter"
PATIENCE = 120.0  # seconds; far more than anything here takes, for slow machines and sanitizers


def wait_until(condition, what):
    """Polls until `condition()` is true and gives its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {PATIENCE} s in vain for {what}")


class ServerProcess:
    """A running server; use as a context manager. `flags` come last and so may not repeat those given here. With
    `drafter=None` they have to say what is drafted with."""

    def __init__(self, folder, *flags, dtype="float32", drafter=DRAFTER):
        self.folder = pathlib.Path(folder)
        port_file = self.folder / "ports.json"
        self.log_path = self.folder / "server.log"
        head = [] if drafter is None else ["--drafter", drafter, "--target", TARGET]
        command = [BINARY, *head, "--listen", "127.0.0.1:0",
                   "--listen", f"unix:{self.folder}/aerie.sock", "--metrics-listen", "127.0.0.1:0",
                   "--port-file", port_file, "--dtype", dtype, "--threads", "1", *flags]
        # Where the tests find their target is a setting of the server, too.
        variables = {name: value for name, value in os.environ.items() if name != "AERIE_TARGET"}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stderr=log, env=variables)
        wait_until(lambda: port_file.exists() or self.process.poll() is not None, "the port file")
        assert self.process.poll() is None, self.log()
        self.ports = json.loads(port_file.read_text())
        self.address, self.unix_address = self.ports["grpc"][:2]  # those of `flags` follow

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text()

    def metrics(self, token=None):
        """The metrics page, read with a token where it asks for one: {series with its labels: value}."""
        request = urllib.request.Request(f"http://{self.ports['metrics']}/metrics")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=PATIENCE) as page:
            lines = page.read().decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines
                if line and not line.startswith("#")}

    def metric(self, name, token=None, **labels):
        """The sum over the series of `name` that carry `labels`."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(value for series, value in self.metrics(token).items()
                   if series.split("{")[0] == name and all(label in series for label in wanted))

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """Its exit code."""
        return self.process.wait(timeout=PATIENCE)
