"""The last act of demo/wiring: a running server, its live guard, and a worker that sends the wrong states.

Nothing fails here: texts stay right, since the target checks every token. What the guard does about it is what is played.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import time
import urllib.request

import numpy as np
from aerie_draft import DraftClient, Manifest, captures_at
from aerie_draft.recording import read_recording

PATIENCE = 120.0  # seconds for the server to load
# A worker's life: its prompt in one call, then so many tokens a round.
ROWS_OF_ROUNDS = (1, 2, 1, 1, 3)
MOST_ROUNDS = 2000


class Server:
    """aerie-server on free ports; use as a context manager."""

    def __init__(self, program, drafter, target, work: pathlib.Path, threads: int):
        self.log = work / "server.log"
        port_file = work / "ports.json"
        port_file.unlink(missing_ok=True)
        command = [program, "--drafter", drafter, "--target", target, "--listen", "127.0.0.1:0"]
        command += ["--metrics-listen", "127.0.0.1:0", "--port-file", port_file, "--threads", threads]
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen([str(word) for word in command], stderr=log)
        end = time.monotonic() + PATIENCE
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"aerie-server did not get ready; its log is {self.log}")
            time.sleep(0.05)
        ports = json.loads(port_file.read_text())
        self.address, self._metrics = ports["grpc"][0], ports["metrics"]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()

    def state(self) -> str:
        """What the guard thinks of the worst worker: unknown, ok, suspect, wrong."""
        with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=PATIENCE) as page:
            lines = page.read().decode().splitlines()
        for line in lines:
            if line.startswith("aerie_wiring_state{") and line.endswith(" 1"):
                return line.split('state="')[1].split('"')[0]
        raise RuntimeError("the metrics page does not tell the guard's state")

    def warnings(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "wiring of client" in line]


def send(server: Server, recording, tensors: list[str], client_name: str, stop) -> int:
    """Sends the recorded texts round by round with these tensors as the captures; how many rounds, until `stop`."""
    manifest = Manifest(
        recording.target.id,
        recording.target.num_layers,
        recording.target.hidden_size,
        recording.target.vocab_size,
        captures_at([2, 15, 27]),
        recording.dtype,
    )
    rounds = 0
    with DraftClient(server.address, timeout=PATIENCE) as client:
        for sample in recording:
            rows = np.concatenate([sample.stored[name] for name in tensors], axis=1)
            session = client.open_session(manifest, client=client_name)
            last = len(sample.tokens) - 1
            first, end = 0, min(sample.prompt_tokens or 1, last)
            while first < last:
                data = np.ascontiguousarray(rows[first:end]).tobytes()
                tokens = [int(t) for t in sample.tokens[first + 1 : end + 1]]
                session.draft(first, tokens, data, k=0)
                rounds += 1
                if stop() or rounds >= MOST_ROUNDS:
                    return rounds
                first, end = end, min(end + ROWS_OF_ROUNDS[rounds % len(ROWS_OF_ROUNDS)], last)
            session.close()
    return rounds


def play(arguments, head: pathlib.Path, recording_folder: pathlib.Path, say) -> dict:
    """Findings: what the guard said of a right worker, and after how many rounds it found the wrong one."""
    recording = read_recording(recording_folder)
    server_program = arguments.verify.parent / "aerie-server"
    with Server(server_program, head, arguments.target, arguments.work, arguments.threads) as server:
        rounds = send(server, recording, ["aux_0", "aux_1", "aux_2"], "right", lambda: False)
        calm = server.state()
        say(f"A worker sends boundaries 2, 15 and 27: after {rounds} rounds the guard says {calm}.", "32")
        alarm = None
        rounds = send(
            server, recording, ["aux_0", "aux_1", "final"], "wrong", lambda: server.state() == "wrong"
        )
        if server.state() == "wrong":
            alarm = rounds
            say(f"Another one sends the final norm for boundary 27: wrong after {alarm} rounds.", "1;32")
        else:
            say(f"Another one sends the final norm for boundary 27: not found in {rounds} rounds.", "1;31")
        for line in server.warnings()[-1:]:
            say(line.split("] ", 2)[-1], "2")
    return {"guard_of_right_worker": calm, "guard_rounds_to_alarm": alarm}
