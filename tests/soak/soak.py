"""Minutes of honest work beside every kind of trouble: does anything leak, stick or change?

    build/venv/bin/python tests/soak/soak.py --seconds 600

Honest clients play recorded sequences over and over (replay.py) on a server whose draft KV is too
small for all of them, while others misbehave (faults.py). At the end every proposal must have been
the one of a quiet server, no call may have stuck, memory must be flat, and a server that is asked to
stop under load must answer or refuse every call. Prints a report; exit status 1 when one of these
does not hold.

What a reader would get wrong: memory is compared between the first and the last third of the run,
not with its start, because caches of the allocator fill up in the first minute.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from conftest import Recording  # noqa: E402
from faults import FAULTS, TroubleMaker, World  # noqa: E402
from replay import Player, Refused, Script  # noqa: E402
from server_process import ServerProcess, wait_until  # noqa: E402

LEASE = 6.0  # of which a client's longest rest is a third
FLAGS = (
    "--kv-memory", "3MiB", "--max-context", "1024", "--session-lease", f"{LEASE:.0f}s",
    "--max-queued", "24", "--max-k", "16",
)
MOST_GROWTH = 8 << 20  # bytes between the thirds, beside 2 %


@dataclasses.dataclass
class Counts:
    rounds: int = 0
    plays: int = 0
    ties: int = 0
    other_draws: set = dataclasses.field(default_factory=set)  # places where rounding decides
    resent: int = 0  # times that rows had been evicted
    expired: int = 0  # plays that ended with their lease
    waited: int = 0  # times that the server was full
    different: list = dataclasses.field(default_factory=list)
    stuck: list = dataclasses.field(default_factory=list)
    surprises: list = dataclasses.field(default_factory=list)
    faults: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def generate_stubs(folder):
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}/proto", f"--python_out={folder}",
         f"--grpc_python_out={folder}", "aerie/v1/draft.proto"], check=True,
    )
    sys.path.insert(0, str(folder))
    messages = importlib.import_module("aerie.v1.draft_pb2")
    messages.Stub = importlib.import_module("aerie.v1.draft_pb2_grpc").DraftServiceStub
    messages.folder = folder
    return messages


def make_manifest(pb, stub):
    drafter = stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=30).drafters[0]
    return pb.Manifest(
        target_id="soak", num_layers=drafter.target_num_layers, vocab_size=drafter.vocab_size,
        hidden_size=drafter.target_hidden_size, captures=drafter.captures,
        dtype=pb.DATA_TYPE_BFLOAT16,
    )


def make_scripts(pb, manifest, sequences):
    ways = {
        "chain": (dict(), 4),
        "tree": (dict(tree=pb.TreeShape(depth=4, top_k=3, total_tokens=10)), 10),
        "sampled chain": (dict(sampling=pb.Sampling(temperature=0.8, seed=11)), 4),
        "sampled tree": (
            dict(sampling=pb.Sampling(temperature=1.0, seed=5),
                 tree=pb.TreeShape(depth=3, top_k=3, total_tokens=8)), 8,
        ),
    }
    return [
        Script.make(f"{way} of sequence {number}", sequence, manifest,
                    pb.SessionOptions(**options), k, seed=number)
        for way, (options, k) in ways.items()
        for number, sequence in enumerate(sequences)
    ]


class HonestClient(threading.Thread):
    def __init__(self, pb, address, scripts, expected, seed, stop, counts):
        super().__init__(daemon=True)
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        self._player = Player(pb, pb.Stub(self._channel), counts, random.Random(-seed))
        self._scripts, self._expected = scripts, expected
        self._draw = random.Random(seed)
        self._stop_asked, self._counts = stop, counts
        self.refused = False

    def run(self):
        while not self._stop_asked.is_set():
            script = self._draw.choice(self._scripts)
            rounds = self._draw.randrange(1, len(script.ends) + 1)
            try:
                self._player.play(script, self._expected[script.name], rounds)
                self._counts.plays += 1
            except Refused:
                self.refused = True
                break
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.NOT_FOUND:
                    self._counts.expired += 1  # a client that got no processor in time
                    continue
                self._counts.surprises.append(f"{script.name}: {error.code()} {error.details()}")
        self._channel.close()


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def memory_grew(samples):
    """Growth from the first third, its beginning left out, to the last one, in bytes."""
    third = len(samples) // 3
    early = statistics.median(samples[third // 2 : third]) if third > 1 else samples[0]
    return statistics.median(samples[-max(third, 1) :]) - early, early


def left_over(server):
    """What is still held by a server that nobody uses; empty when all came back."""
    held = {
        name: server.metric(name) for name in ("aerie_sessions", "aerie_inflight", "aerie_queue_depth")
    }
    for state in ("private", "shared"):
        held[f"{state} pages"] = server.metric("aerie_kv_pages", state=state)
    return {name: value for name, value in held.items() if value != 0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--honest", type=int, default=16, help="clients that play recordings")
    parser.add_argument("--trouble", type=int, default=4, help="clients that misbehave")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()

    scratch = tempfile.TemporaryDirectory(prefix="aerie-soak-")
    pb = generate_stubs(scratch.name)
    sequences = Recording().sequences
    counts, stop, samples = Counts(), threading.Event(), []
    with ServerProcess(scratch.name, *FLAGS) as server:
        channel = grpc.insecure_channel(server.address)
        stub = pb.Stub(channel)
        manifest = make_manifest(pb, stub)
        scripts = make_scripts(pb, manifest, sequences)
        expected = {s.name: Player(pb, stub, counts).play(s, None) for s in scripts}
        print(f"{len(scripts)} scripts, {sum(map(len, expected.values()))} proposals", flush=True)

        honest = [
            HonestClient(pb, server.address, scripts, expected, arguments.seed + n, stop, counts)
            for n in range(arguments.honest)
        ]
        trouble_stop = threading.Event()
        trouble = [
            TroubleMaker(World(pb, server.address, manifest, sequences,
                               random.Random(1000 * arguments.seed + n)), trouble_stop, counts)
            for n in range(arguments.trouble)
        ]
        for thread in (*honest, *trouble):
            thread.start()
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end and server.process.poll() is None:
            time.sleep(min(2.0, arguments.seconds / 30))
            samples.append(resident(server.process.pid))

        trouble_stop.set()
        stop.set()
        hanging = [t for t in (*honest, *trouble) if not joined(t)]
        evicted = server.metric("aerie_kv_evictions_total")
        # Abandoned sessions end with their lease.
        wait_until(lambda: not left_over(server), f"an idle server, not {left_over(server)}")
        findings = check(server, counts, hanging, samples, evicted)

        refused = drain_under_load(pb, server, scripts, expected, counts)
        channel.close()
        if server.process.returncode != 0:
            findings.append(f"the drained server ended with {server.process.returncode}")
        if not refused:
            findings.append("no client was told that the server drains")
    report = {
        "seconds": arguments.seconds,
        **{k: v for k, v in dataclasses.asdict(counts).items() if isinstance(v, int)},
        "other_draws": sorted(map(list, counts.other_draws)),
        "faults": dict(counts.faults), "evictions": evicted,
        "rss_first_third": memory_grew(samples)[1], "rss_growth": memory_grew(samples)[0],
        "findings": findings,
    }
    print(json.dumps(report, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if findings else 0


def joined(thread):
    thread.join(timeout=120)
    return not thread.is_alive()


def check(server, counts, hanging, samples, evicted):
    findings = []
    if server.process.poll() is not None:
        findings.append(f"the server ended with {server.process.returncode}: {server.log()[-2000:]}")
    findings += [f"hangs: {thread}" for thread in hanging]
    findings += counts.stuck[:5] + counts.different[:5] + counts.surprises[:5]
    growth, early = memory_grew(samples)
    if not growth <= MOST_GROWTH + early // 50:
        findings.append(f"memory grew by {growth} bytes from {early}")
    if counts.expired > 2 + counts.plays // 50:
        findings.append(f"{counts.expired} of {counts.plays} plays lost their session")
    # One draw in some ten thousand lies that close.
    if len(counts.other_draws) > 8:
        findings.append(f"draws differ at {len(counts.other_draws)} places: {counts.other_draws}")
    if counts.ties > 2 + counts.rounds // 200:
        findings.append(f"{counts.ties} ties in {counts.rounds} rounds: too many for chance")
    if not counts.rounds or not counts.plays:
        findings.append("nothing was played")
    if not evicted:
        findings.append("nothing was evicted: the draft KV is too large for this test")
    findings += [f"fault {f.__name__} never ran" for f in FAULTS if not counts.faults[f.__name__]]
    return findings


def drain_under_load(pb, server, scripts, expected, counts):
    """Asks the server to stop while clients play; every call is answered or refused."""
    stop = threading.Event()
    clients = [
        HonestClient(pb, server.address, scripts, expected, 77 + n, stop, counts) for n in range(6)
    ]
    before = counts.rounds
    for client in clients:
        client.start()
    wait_until(lambda: counts.rounds > before + 50, "rounds before the drain")
    server.signal(signal.SIGTERM)
    server.wait()
    stop.set()
    for client in clients:
        client.join(timeout=120)
        if client.is_alive():
            counts.stuck.append("a client hangs after the drain")
    return sum(client.refused for client in clients)


if __name__ == "__main__":
    sys.exit(main())
