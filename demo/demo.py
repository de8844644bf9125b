"""The demo's target worker: SmolLM2-135M-Instruct on the CPU, with and without drafts from Aerie.

Started by demo/run, which starts the server. Exit status 1 when a drafted text differs from plain
greedy decoding by more than a tie (see comparison.py), or when the server did not draft.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
import urllib.request

os.environ["HF_HUB_OFFLINE"] = "1"  # Everything is local: an unreachable hub must not cost time.

import torch  # noqa: E402
import transformers  # noqa: E402
from aerie_draft import DraftClient  # noqa: E402
from aerie_draft.transformers import TargetWorker  # noqa: E402
from comparison import compare, total  # noqa: E402
from few_rows import speed_up  # noqa: E402
from prompts import PROMPTS  # noqa: E402
from screen import (  # noqa: E402
    AnswerPrinter,
    has_colour,
    paint,
    print_comparison,
    print_sweep_head,
    print_sweep_row,
    print_totals,
)
from sweep import MOST_NODES, sweep  # noqa: E402

SHOWN_METRICS = (
    "aerie_spec_decode_num_drafts_total",
    "aerie_spec_decode_num_draft_tokens_total",
    "aerie_spec_decode_num_accepted_tokens_total",
    "aerie_spec_decode_num_accepted_tokens_per_pos_total",
    "aerie_committed_tokens_total",
    "aerie_request_accept_length_tokens_sum",
    "aerie_request_accept_length_tokens_count",
)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", required=True, help="of the server, host:port")
    parser.add_argument("--metrics", help="the server's metrics page, host:port")
    parser.add_argument("--server-pid", type=int, help="to read its memory")
    parser.add_argument("--target", type=pathlib.Path, required=True, help="folder of the target")
    parser.add_argument("--k", type=int, required=True, help="draft tokens a round")
    parser.add_argument("--max-new-tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True, help="of the target")
    parser.add_argument("--transport", choices=("unary", "stream"), required=True)
    parser.add_argument("--prompt", help="stream one answer instead of the ten prompts")
    parser.add_argument("--sweep", action="store_true", help="all ways to draft, as one table")
    parser.add_argument("--json", type=pathlib.Path, help="file for the totals")
    return parser.parse_args()


def load_target(folder: pathlib.Path):
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), tokenizer


def resident_bytes(pid: int | None) -> int:
    if pid is None:
        return 0
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def show_metrics(address: str) -> None:
    url = f"http://{address}/metrics"
    with urllib.request.urlopen(url, timeout=10) as page:
        lines = page.read().decode().splitlines()
    print(paint("1", f"Metrics, a few lines of {url}"))
    for line in lines:
        name = line.split("{")[0].split(" ")[0]
        if name in SHOWN_METRICS and not (name.endswith("per_pos_total") and line.endswith(" 0")):
            print(f"  {line}")


def run_sweep(arguments: argparse.Namespace, client: DraftClient, model, tokenizer) -> int:
    print_sweep_head()
    rows = sweep(
        client, model, tokenizer, PROMPTS, arguments.max_new_tokens,
        lambda way, row: print_sweep_row(way.name, row),
    )
    if arguments.json is not None:
        document = {"rows": [dataclasses.asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    differing = sum(row.texts_differ for row in rows)
    if differing:
        print(f"demo: {differing} texts differ from plain greedy decoding; expected none; the "
              "target worker's verification or its KV cache is at fault", file=sys.stderr)
    return 1 if differing else 0


def main() -> int:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    model, tokenizer = load_target(arguments.target)
    ways = speed_up(model, most_rows=(MOST_NODES if arguments.sweep else arguments.k) + 1)
    client = DraftClient(arguments.address, transport=arguments.transport)
    with client:
        drafter = client.server_info().drafter()
        worker = TargetWorker(model, tokenizer, client, arguments.k)
        places = ", ".join(str(c) for c in drafter.captures)
        print(f"Target: fp32, {arguments.threads} threads; k = {arguments.k}")
        chosen = ", ".join(f"{rows}: {way}" for rows, way in ways.items())
        print(f"Fastest product here by number of rows: {chosen}")
        print(f"Drafter {drafter.name} {drafter.version} takes {places}")
        sys.stdout.flush()
        for _ in worker.generate(worker.encode_chat("Hello."), 8):
            pass  # The first forwards of a process are slow; they are nobody's measurement.

        if arguments.sweep:
            return run_sweep(arguments, client, model, tokenizer)
        comparisons = []
        if arguments.prompt is not None:
            print(f"\n{arguments.prompt}\n")
            on_round = AnswerPrinter(tokenizer)
            comparisons.append(
                compare(worker, model, arguments.prompt, arguments.max_new_tokens, on_round)
            )
            print("\n")
            if has_colour():
                print(f"In {paint('1;32', 'this colour')}: draft tokens that the target kept.")
        else:
            for number, prompt in enumerate(PROMPTS, 1):
                comparisons.append(compare(worker, model, prompt, arguments.max_new_tokens))
                print_comparison(number, len(PROMPTS), comparisons[-1])
    print()
    totals = total(comparisons)
    rss = resident_bytes(arguments.server_pid)
    print_totals(totals, rss)
    if arguments.metrics:
        show_metrics(arguments.metrics)
    if arguments.json is not None:
        document = {**dataclasses.asdict(totals), "server_rss_bytes": rss, "k": arguments.k}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    if totals.texts_differ:
        print(
            f"demo: {totals.texts_differ} texts differ from plain greedy decoding; expected none; "
            "the target worker's verification or its KV cache is at fault",
            file=sys.stderr,
        )
        return 1
    if totals.rounds == 0:
        print("demo: the server drafted nothing; expected drafts; see its log", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
