"""vLLM without drafts, with its own EAGLE-3, and with aerie-server's, on the same prompts.

Started by demo/vllm. Exit status 1 when a text differs from plain decoding by more than a tie, or
when the two programs do not count the same drafts.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import signal
import sys

from engine_answers import Metrics
from engine_runs import Places, Run, as_row, run_aerie, run_native, run_plain
from prompts import PROMPTS
from screen import paint

COUNTERS = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, what in (
        ("python", "of the environment with vLLM"),
        ("package", "folder that holds aerie_draft"),
        ("server", "aerie-server"),
        ("drafter", "folder of the head"),
        ("target", "folder of the target"),
        ("work", "folder for logs and files"),
    ):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True, help=what)
    parser.add_argument("--k", type=int, required=True, help="draft tokens a round")
    parser.add_argument("--prompts", type=int, required=True, help="how many of the ten")
    parser.add_argument("--max-new-tokens", type=int, required=True)
    parser.add_argument("--json", type=pathlib.Path, help="file for what was found")
    return parser.parse_args()


def show_pages(k: int):
    def show(engine: Metrics, server: Metrics) -> None:
        print(f"\n{paint('1', 'The two metrics pages')}")
        print(f"  {'':<34}{'vllm:spec_decode_':>20}{'aerie_spec_decode_':>20}")
        rows = [(name, f"{name}_total", {}) for name in COUNTERS]
        rows += [
            (f"accepted at position {i}", "num_accepted_tokens_per_pos_total", {"position": str(i)})
            for i in range(k)
        ]
        for label, name, labels in rows:
            ours = engine.sum(f"vllm:spec_decode_{name}", **labels)
            theirs = server.sum(f"aerie_spec_decode_{name}", **labels)
            print(f"  {label:<34}{ours:>20.0f}{theirs:>20.0f}")

    return show


def show_run(run: Run, plain: Run) -> None:
    verdicts = run.verdicts(plain)
    length = f"accept length {run.accept_length:.3f}" if run.counted else "no drafts"
    print(
        f"  {run.name:<24} {length:<22} {run.tok_per_s:6.2f} tok/s "
        f"{run.tok_per_cpu_s:6.2f} tok/CPU-s   texts: {verdicts.count('equal')} equal, "
        f"{verdicts.count('tie')} ties, {verdicts.count('wrong')} wrong"
    )


def main() -> int:
    # So that what was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = parse_arguments()
    paths = {
        name: getattr(arguments, name).absolute()
        for name in ("python", "package", "server", "drafter", "target", "work")
    }
    places, k = Places(**paths), arguments.k
    prompts, tokens = PROMPTS[: arguments.prompts], arguments.max_new_tokens
    places.work.mkdir(parents=True, exist_ok=True)
    print(
        f"{len(prompts)} prompts, {tokens} tokens each, k = {k}; every start of vLLM takes a while"
    )
    plain = run_plain(places, prompts, tokens)
    show_run(plain, plain)
    native = run_native(places, prompts, tokens, k)
    show_run(native, plain)
    aerie = run_aerie(places, prompts, tokens, k, show_pages(k))
    print()
    for run in (plain, native, aerie):
        show_run(run, plain)
    reconciled = aerie.counted == aerie.server_counted
    verdicts = aerie.verdicts(plain)
    document = {
        "texts_equal": "wrong" not in verdicts,
        "ties": verdicts.count("tie"),
        "accept_length_native": native.accept_length,
        "accept_length_aerie": aerie.accept_length,
        "metrics_reconciled": reconciled,
        "tok_per_cpu_s": {
            "plain": plain.tok_per_cpu_s,
            "native": native.tok_per_cpu_s,
            "aerie": aerie.tok_per_cpu_s,
        },
        "k": k,
        "prompts": len(prompts),
        "max_new_tokens": tokens,
        "runs": [as_row(run, plain) for run in (plain, native, aerie)],
        "plain_answers": [dataclasses.asdict(answer) for answer in plain.answers],
    }
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    if not reconciled:
        print(
            f"demo/vllm: vLLM counted {aerie.counted}, aerie-server {aerie.server_counted}; "
            "expected the same; see the logs in build/demo-vllm",
            file=sys.stderr,
        )
    if "wrong" in verdicts:
        print(
            f"demo/vllm: {verdicts.count('wrong')} texts differ from plain decoding; expected "
            "none; see the logs in build/demo-vllm",
            file=sys.stderr,
        )
    if not aerie.counted.drafts:
        print("demo/vllm: nothing was drafted; expected drafts; see the logs", file=sys.stderr)
    return 0 if reconciled and document["texts_equal"] and aerie.counted.drafts else 1


if __name__ == "__main__":
    sys.exit(main())
