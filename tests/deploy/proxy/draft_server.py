"""aerie-server on a host of its own, told from others by the name of its drafter."""

import json
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from hosts import NAMESPACES  # noqa: E402
from server_process import BINARY, DRAFTER, TARGET, wait_until  # noqa: E402

PATIENCE = 600.0  # seconds, for a machine that computes many servers at once


class DraftServer:
    """Started when made."""

    def __init__(self, host, name, folder):
        self.host, self.name = host, name
        port_file, self._log = folder / f"{name}.ports", folder / f"{name}.log"
        command = host.command(BINARY, "--drafter", DRAFTER, "--target", TARGET, "--name", name, "--listen",
                               f"{host.address}:{50051 if NAMESPACES else 0}", "--metrics-listen", "off", "--port-file", port_file,
                               "--insecure", "--dtype", "float32", "--threads", "1", "--drain-timeout", f"{PATIENCE:.0f}s")
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(command, stderr=log)
        wait_until(lambda: port_file.exists() or self.process.poll() is not None, f"{name} to serve")
        assert self.process.poll() is None, self.log()
        (self.address,) = json.loads(port_file.read_text())["grpc"]

    def log(self):
        return self._log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def drain(self):
        """As a rolling upgrade does."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=PATIENCE) == 0, self.log()
