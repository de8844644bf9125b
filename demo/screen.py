"""What the demo shows on a terminal: a streamed answer, a line a prompt, the totals."""

from __future__ import annotations

import os
import sys

from comparison import TIE_GAP, Comparison, Totals


def has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if has_colour() else text


class AnswerPrinter:
    """Prints rounds as text, accepted draft tokens in colour.

    Text is decoded from the beginning each time: one character may take several tokens, and a token
    alone would come out as a replacement character.
    """

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._printed = ""

    def __call__(self, made) -> None:
        for token, accepted in zip(made.tokens, made.accepted):
            self._tokens.append(token)
            text = self._tokenizer.decode(self._tokens, skip_special_tokens=True)
            if text.endswith("\ufffd"):
                continue
            new, self._printed = text[len(self._printed) :], text
            print(paint("1;32", new) if accepted else new, end="", flush=True)


def per_position(shares: list[float]) -> str:
    return " ".join(f"{share:.3f}" for share in shares) or "none"


def print_comparison(number: int, of: int, c: Comparison) -> None:
    equal = {"yes": paint("32", "yes"), "tie": paint("33", "tie"), "no": paint("1;31", "NO")}
    plain, drafted = c.plain.tokens_per_second, c.drafted.tokens_per_second
    print(f"{number:2}/{of}  {c.prompt}")
    print(
        f"       text equal {equal[c.verdict]} | {len(c.drafted.tokens)} tokens in "
        f"{c.drafted.rounds} rounds | accept length {c.drafted.accept_length:.3f} | by position "
        f"{per_position(c.drafted.acceptance_by_position)} | tok/s {plain:.1f} plain, "
        f"{drafted:.1f} with Aerie ({drafted / plain if plain else 0:.2f}x)"
    )
    if c.first_difference is not None:
        print(
            f"       texts differ from token {c.first_difference} on; the two best logits there "
            f"are {c.gap:.2e} apart; below {TIE_GAP:g} that is a tie of fp32 sums, above it a fault"
        )
    if c.drafted.missed_rounds:
        print(f"       {c.drafted.missed_rounds} rounds went without a draft: the server was away")
    sys.stdout.flush()


def print_totals(t: Totals, rss_bytes: int) -> None:
    gain = t.tok_s_aerie / t.tok_s_plain if t.tok_s_plain else 0.0
    rows = [
        ("texts equal", f"{t.texts_equal} of {t.prompts}" + (f", {t.ties} ties" if t.ties else "")),
        ("rounds", f"{t.rounds}" + (f", {t.missed_rounds} missed" if t.missed_rounds else "")),
        ("accept length", f"{t.accept_length:.3f} (bonus token counted)"),
        ("acceptance by position", per_position(t.acceptance_by_position)),
        ("tok/s", f"{t.tok_s_plain:.1f} plain, {t.tok_s_aerie:.1f} with Aerie ({gain:.2f}x)"),
        (
            "server's draft latency",
            f"p50 {t.draft_ms_p50:.2f} ms, p99 {t.draft_ms_p99:.2f} ms a round, prompts included",
        ),
        ("server's memory", f"{rss_bytes / 2**20:.0f} MiB resident"),
        ("server's own count", "agrees" if t.counts_agree else paint("1;31", "DISAGREES")),
    ]
    print(paint("1", "Totals"))
    for name, value in rows:
        print(f"  {name:24}{value}")
    sys.stdout.flush()


def print_sweep_head() -> None:
    print(f"\n{'way':34} {'accept length':>13} {'tokens/draft':>12} {'tok/s':>7} {'plain':>7} "
          f"{'draft p50':>10}  texts")


def print_sweep_row(name: str, row) -> None:
    texts = f"{row.texts_equal} equal"
    if row.ties:
        texts += f", {row.ties} tied"
    if row.texts_differ:
        texts += f", {row.texts_differ} DIFFER"
    print(f"{name:34} {row.accept_length:13.3f} {row.mean_draft_tokens:12.2f} {row.tok_s:7.2f} "
          f"{row.tok_s_plain:7.2f} {row.draft_ms_p50:7.2f} ms  {texts}", flush=True)
