"""Runs the benchmarks in turns and writes one JSON object; tests/benchmarks/run calls it.

What a reader would get wrong: every key is a ratio of two times of this run, each the least of all
turns, and programs that are compared take turns (A B A B). `detail` holds what the ratios were made
of. docs/performance.md says what each key means.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
TARGET = ROOT / "build/target"
DEMO = ROOT / "demo/drafter"
sys.path[:0] = [str(ROOT / "tests/testing"), str(ROOT / "tests/testing/heads")]

import llamacpp  # noqa: E402

KEYS = (
    "step_over_floor_b1",
    "step_over_floor_b1_int8",
    "step_over_floor_b1_400mb",
    "step_over_floor_b1_400mb_int8",
    "eager_over_step_b1",
    "eager_over_step_b1_int8",
    "compiled_over_step_b1",
    "llamacpp_over_step_b1",
    "llamacpp_over_step_b1_int8",
    "b8_over_b1",
    "b8_over_b1_one_thread",
    "b8_over_b1_400mb",
    "extend512_of_peak",
    "rpc_minus_compute_over_echo",
    "rpc_minus_compute_over_echo_behind_work",
    "p99_over_p50_half_load",
    "wire_fp8_over_bf16",
    "wire_fused_over_bf16",
    "wire_shm_over_bf16",
    "startup_over_read",
    "demo_speedup",
    "int8_accept_loss",
    "cpu_features",
)
DTYPES = ("bfloat16", "int8", "float32")


def call(*command, **environment) -> dict:
    """The JSON that a program prints."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, env={**os.environ, **environment}, check=False
    )
    if done.returncode != 0:
        sys.exit(f"benchmarks: {' '.join(words)} ended with {done.returncode}; expected figures; "
                 "see what it said above")
    return json.loads(done.stdout)


def cpu() -> dict:
    text = pathlib.Path("/proc/cpuinfo").read_text()
    lines = dict(
        (part.strip() for part in line.split(":", 1)) for line in text.splitlines() if ":" in line
    )
    wanted = ("avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_bf16")
    flags = lines.get("flags", "").split()
    return {
        "model": lines.get("model name", platform.processor()),
        "count": len(os.sched_getaffinity(0)),
        "features": [flag for flag in wanted if flag in flags],
    }


def least(turns: list[dict], key: str, **where) -> float:
    """The least `key` of the steps that match `where`, over all turns."""
    return min(
        step[key]
        for turn in turns
        for step in turn["steps"]
        if all(step[name] == value for name, value in where.items())
    )


def over_floor(turns: list[dict], **where) -> float:
    floor = least(turns, "read_us", **where) * turns[0]["step_bytes"] / turns[0]["read_bytes"]
    return least(turns, "step_us", **where) / floor


def step_benchmark(drafter, target, dtype: str, *flags) -> dict:
    return call(
        BIN / "aerie-step-benchmark", "--drafter", drafter, "--target", target, "--dtype", dtype,
        *flags, OMP_NUM_THREADS="1",
    )


def b8_over_b1(turns: list[dict]) -> float:
    return least(turns, "step_us", batch=8, context=128) / least(
        turns, "step_us", batch=1, context=128
    )


def rival_step(*flags, must: bool = True) -> dict | None:
    """PyTorch's draft step; None where it does not run, unless it must."""
    words = [
        ROOT / "build/venv/bin/python", ROOT / "tests/benchmarks/eager_step.py",
        "--drafter", DEMO, "--target", TARGET, *flags,
    ]
    if must:
        return call(*words, OMP_NUM_THREADS="1")
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def measure_steps(turns: int, out: dict) -> None:
    ours: dict[str, list[dict]] = {dtype: [] for dtype in DTYPES}
    eager = []
    for turn in range(turns):
        for dtype in DTYPES:
            # The whole grid once; what is compared, every time.
            grid = () if turn == 0 else ("--contexts", "128", "--batches", "1,8")
            ours[dtype].append(step_benchmark(DEMO, TARGET, dtype, *grid))
        eager.append(rival_step())
    one = {"batch": 1, "context": 128}
    rival = min(turn["step_us"] for turn in eager)
    out["step_over_floor_b1"] = over_floor(ours["bfloat16"], **one)
    out["step_over_floor_b1_int8"] = over_floor(ours["int8"], **one)
    out["eager_over_step_b1"] = rival / least(ours["bfloat16"], "step_us", **one)
    out["eager_over_step_b1_int8"] = rival / least(ours["int8"], "step_us", **one)
    compiled = rival_step("--compile", must=False)
    if compiled is None:
        out["compiled_over_step_b1"] = None
        out["compiled_reason"] = "torch.compile does not run here; its words are above"
    else:
        out["compiled_over_step_b1"] = compiled["step_us"] / least(
            ours["bfloat16"], "step_us", **one
        )
    out["b8_over_b1_one_thread"] = b8_over_b1(ours["bfloat16"])
    served = [
        step_benchmark(
            DEMO, TARGET, "bfloat16", "--threads", "0", "--contexts", "128", "--batches", "1,8",
            "--extends", "1,3,512",
        )
        for _ in range(turns)
    ]
    out["b8_over_b1"] = b8_over_b1(served)
    out["detail"]["served"] = served
    out["extend512_of_peak"] = max(
        extend["gflops"] for turn in ours["float32"] for extend in turn["extends"]
        if extend["rows"] == 512
    ) / max(
        extend["peak_gflops"] for turn in ours["float32"] for extend in turn["extends"]
        if "peak_gflops" in extend
    )
    out["detail"]["steps"] = ours
    out["detail"]["eager"] = eager
    out["detail"]["compiled"] = compiled


def measure_llamacpp(turns: int, out: dict) -> None:
    def step_median_us(dtype: str) -> float:
        steps = step_benchmark(
            DEMO, TARGET, dtype, "--contexts", "128", "--batches", "1", "--extends", "1"
        )
        return steps["steps"][0]["step_median_us"]

    llamacpp.measure(turns, DEMO, TARGET, step_median_us, out)


def big_head(folder: pathlib.Path) -> pathlib.Path:
    """A head of 400 MB in bfloat16, written once."""
    import random_heads
    from head_plans import HeadPlan

    done = folder / "complete"
    if not done.exists():
        plan = HeadPlan(
            hidden=2560, target_hidden=2560, intermediate=9728, heads=20, kv_heads=4, head_dim=128,
            vocab=32768, draft_vocab=32000, target_layers=36, max_positions=16384,
            target_lm_head=False,
        )
        random_heads.make_head(folder / "head", plan)
        random_heads.make_target(folder / "target", plan)
        done.write_text("both folders\n")
    return folder


def measure_big(turns: int, out: dict) -> None:
    folder = big_head(ROOT / "build/benchmarks/head-400mb")
    ours: dict[str, list[dict]] = {"bfloat16": [], "int8": []}
    for turn in range(turns):
        for dtype, taken in ours.items():
            extends = "1,3,512" if turn == 0 else "1"
            taken.append(step_benchmark(
                folder / "head", folder / "target", dtype, "--contexts", "128", "--batches", "1,8",
                "--rounds", "4", "--repeats", "4", "--extends", extends,
            ))
    one = {"batch": 1, "context": 128}
    out["step_over_floor_b1_400mb"] = over_floor(ours["bfloat16"], **one)
    out["step_over_floor_b1_400mb_int8"] = over_floor(ours["int8"], **one)
    out["b8_over_b1_400mb"] = b8_over_b1(ours["bfloat16"])
    out["detail"]["big"] = ours


def measure_rpc(out: dict) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = subprocess.Popen(
            [BIN / "aerie-server", "--drafter", DEMO, "--target", TARGET, "--threads", "1",
             "--listen", "127.0.0.1:0", "--listen", f"unix:{folder}/aerie.sock",
             "--metrics-listen", "off", "--port-file", folder / "ports.json"],
            stderr=subprocess.DEVNULL,
        )
        echo = subprocess.Popen(
            [BIN / "aerie-rpc-benchmark", "--serve-echo", folder / "echo"], stdin=subprocess.PIPE
        )
        try:
            await_file(folder / "ports.json", server)
            await_file(folder / "echo", echo)
            ports = json.loads((folder / "ports.json").read_text())
            figures = call(
                BIN / "aerie-rpc-benchmark", "--server", ",".join(ports["grpc"]),
                "--echo", (folder / "echo").read_text().strip(),
            )
        finally:
            echo.stdin.close()
            server.terminate()
            echo.wait()
            server.wait()
    for key, ratio in (
        ("rpc_minus_compute_over_echo", "ratio_p50"),
        ("rpc_minus_compute_over_echo_behind_work", "ratio_behind_work_p50"),
    ):
        out[key] = max(entry[ratio] for entry in figures["calls"])
    out["p99_over_p50_half_load"] = figures["half_load"]["p99_over_p50"]
    out["detail"]["rpc"] = figures


def measure_wire(out: dict) -> None:
    """Each way in which rows may travel, beside a drafter that computes nothing."""
    figures = {}
    for hidden in (576, 4096):
        with tempfile.TemporaryDirectory() as name:
            addresses = pathlib.Path(name) / "addresses"
            server = subprocess.Popen(
                [BIN / "aerie-wire-benchmark", "--serve", addresses, "--hidden", str(hidden)],
                stdin=subprocess.PIPE,
            )
            try:
                await_file(addresses, server)
                figures[hidden] = call(
                    BIN / "aerie-wire-benchmark", "--server", addresses.read_text().strip(),
                    "--hidden", hidden,
                )
            finally:
                server.stdin.close()
                server.wait()
    # What is told as one number: long calls of wide rows over the Unix socket.
    for key, way in (("fp8", "fp8"), ("fused", "bf16_fused"), ("shm", "bf16_shm")):
        out[f"wire_{key}_over_bf16"] = next(
            entry["p10_over_bf16"] for entry in figures[4096]["calls"]
            if (entry["way"], entry["rows"], entry["socket"]) == (way, 512, "unix")
        )
    out["detail"]["wire"] = figures


def await_file(path: pathlib.Path, process: subprocess.Popen, interval: float = 0.05) -> None:
    end = time.monotonic() + 120
    while not (path.exists() and path.read_text().endswith("\n")):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"benchmarks: {process.args[0]} did not get ready; expected {path}; start it "
                     "by hand to see why")
        time.sleep(interval)


def start_once(drafter, target) -> dict:
    """From exec until it serves."""
    with tempfile.TemporaryDirectory() as name:
        ready = pathlib.Path(name) / "ports.json"
        start = time.perf_counter()
        server = subprocess.Popen(
            [BIN / "aerie-server", "--drafter", drafter, "--target", target,
             "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--port-file", ready],
            stderr=subprocess.DEVNULL,
        )
        try:
            await_file(ready, server, 0.002)
            seconds = time.perf_counter() - start
            fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
            cpu_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        finally:
            server.terminate()
            server.wait()
    return {"ready_s": seconds, "cpu_s": cpu_seconds}


def read_once(*paths) -> float:
    buffer = bytearray(4 << 20)
    start = time.perf_counter()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - start


def measure_startup(turns: int, out: dict) -> None:
    """Files are in the page cache: the first turn reads them."""
    folder = big_head(ROOT / "build/benchmarks/head-400mb")
    files = [folder / part / "model.safetensors" for part in ("head", "target")]
    read_once(*files)
    demo, big, reads = [], [], []
    for _ in range(turns):
        demo.append(start_once(DEMO, TARGET))
        big.append(start_once(folder / "head", folder / "target"))
        reads.append(read_once(*files))
    out["startup_over_read"] = min(turn["ready_s"] for turn in big) / min(reads)
    read_bytes = sum(file.stat().st_size for file in files)
    out["detail"]["startup"] = {"demo": demo, "big": big, "read_s": reads, "read_bytes": read_bytes}


def measure_accept(out: dict) -> None:
    """By the test that replays the recorded conversations in every dtype."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        subprocess.run(
            [ROOT / "build/release/tests/golden_test", "--gtest_filter=*TypesThatRound*",
             f"--gtest_output=json:{report}"],
            env={**os.environ, "AERIE_SOURCE_DIR": str(ROOT), "AERIE_TARGET": str(TARGET)},
            stdout=subprocess.DEVNULL, check=False,
        )
        test = json.loads(report.read_text())["testsuites"][0]["testsuite"][0]
    out["int8_accept_loss"] = float(test["int8_accept_loss"])
    out["detail"]["bfloat16_accept_loss"] = float(test["bfloat16_accept_loss"])


def measure_demo(out: dict) -> None:
    """The whole demo at several k: words a second with drafts over those without."""
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        for k in (1, 2):
            report = pathlib.Path(folder) / f"{k}.json"
            subprocess.run(
                [ROOT / "demo/run", "--no-setup", "--k", str(k), "--json", report],
                stdout=subprocess.DEVNULL, check=True,
            )
            runs[k] = json.loads(report.read_text())
    out["demo_speedup"] = max(run["tok_s_aerie"] / run["tok_s_plain"] for run in runs.values())
    out["detail"]["demo"] = runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--only", required=True)
    arguments = parser.parse_args()
    parts = {
        "steps": lambda out: measure_steps(arguments.turns, out),
        "big": lambda out: measure_big(arguments.turns, out),
        "llamacpp": lambda out: measure_llamacpp(arguments.turns, out),
        "rpc": measure_rpc,
        "wire": measure_wire,
        "startup": lambda out: measure_startup(arguments.turns, out),
        "accept": measure_accept,
        "demo": measure_demo,
    }
    out: dict = {key: None for key in KEYS}
    machine = cpu()
    out["cpu_features"] = machine["features"]
    out["detail"] = {"cpu": machine, "turns": arguments.turns, "load_before": os.getloadavg()[0]}
    for name in arguments.only.split(","):
        print(f"benchmarks: {name}", file=sys.stderr, flush=True)
        parts[name](out)
    out["detail"]["load_after"] = os.getloadavg()[0]
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(out, indent=1) + "\n")
    print(json.dumps({key: out[key] for key in KEYS}, indent=1))


if __name__ == "__main__":
    main()
