#!/usr/bin/env python3
"""Prints, as a Markdown table, the least time that a draft step can take: bytes of weights that it reads over the
bandwidth that a device's maker states. Nothing is measured.

  tests/benchmarks/floors.py
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "testing/heads"))

from published_sizes import FULL_SIZE  # noqa: E402

# Of the maker's data sheets, bytes a second.
BANDWIDTH = {"A100 80 GB": 2.04e12, "H100 SXM": 3.35e12, "H200": 4.8e12, "B200": 8.0e12}


def attention(plan):
    """Elements of its matrices. Inputs are twice as wide as the head: embedding and hidden state."""
    if plan.latent is None:
        query, key = plan.heads * plan.head_dim, plan.kv_heads * plan.head_dim
        return 2 * plan.hidden * (query + 2 * key) + query * plan.hidden
    latent = plan.latent
    down = 2 * plan.hidden * (latent.q_lora + latent.kv_lora + latent.rope)
    up_query = latent.q_lora * plan.heads * (latent.nope + latent.rope)
    up_keys = latent.kv_lora * plan.heads * (latent.nope + latent.v)
    return down + up_query + up_keys + plan.heads * latent.v * plan.hidden


def elements(plan):
    """Of the matrices that a step reads: all but fc and the embedding."""
    return attention(plan) + 3 * plan.hidden * plan.intermediate + plan.hidden * plan.draft_vocab


def main():
    print("| head | bytes in bfloat16 | " + " | ".join(BANDWIDTH) + " |")
    print("|---|---|" + "---|" * len(BANDWIDTH))
    for name, plan in FULL_SIZE.items():
        count = elements(plan)
        cells = [f"{2e6 * count / rate:.0f} / {1e6 * count / rate:.0f}" for rate in BANDWIDTH.values()]
        print(f"| {name} | {2 * count / 1e6:.0f} MB | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
