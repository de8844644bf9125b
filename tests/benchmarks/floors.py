#!/usr/bin/env python3
"""Prints, as a Markdown table, the least time that a draft step can take: bytes of weights that it reads over the
bandwidth that a device's maker states. Nothing is measured.

  tests/benchmarks/floors.py
"""

# Of the maker's data sheets, bytes a second.
BANDWIDTH = {"A100 80 GB": 2.04e12, "H100 SXM": 3.35e12, "H200": 4.8e12, "B200": 8.0e12}
# hidden, intermediate, query width, key width, draft vocabulary: of common EAGLE-3 heads with one layer.
HEADS = {
    "for Llama-3.1-8B": (4096, 14336, 4096, 1024, 32000),
    "demo": (576, 1536, 576, 192, 6144),
}


def elements(hidden, intermediate, query, key, vocabulary):
    """Of the matrices that a step reads: all but fc and the embedding."""
    attention = 2 * hidden * (query + 2 * key) + query * hidden
    return attention + 3 * hidden * intermediate + hidden * vocabulary


def main():
    print("| head | bytes in bfloat16 | " + " | ".join(BANDWIDTH) + " |")
    print("|---|---|" + "---|" * len(BANDWIDTH))
    for name, sizes in HEADS.items():
        count = elements(*sizes)
        cells = [f"{2e6 * count / rate:.1f} / {1e6 * count / rate:.1f}" for rate in BANDWIDTH.values()]
        print(f"| {name} | {2 * count / 1e6:.0f} MB | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
