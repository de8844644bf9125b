"""The demo's own judgement: what counts as the same text, and products that must stay the same."""

import copy
import math
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "demo"))
import few_rows  # noqa: E402
from aerie_draft.transformers import Round, Summary  # noqa: E402
from comparison import Comparison, compare, percentile, total  # noqa: E402
from screen import AnswerPrinter  # noqa: E402
from tiny_target import DRAFTERS, Liar  # noqa: E402


@pytest.mark.parametrize(
    "first_difference, gap, verdict",
    [
        (None, None, "yes"),
        (4, 1e-4, "tie"),
        (4, 2e-3, "no"),
        (4, math.nan, "no"),
    ],
    ids=["equal", "a_tiny_gap_is_a_tie", "a_gap_is_a_fault", "a_nan_is_a_fault"],
)
def test_verdict(first_difference, gap, verdict):
    assert Comparison("", Summary(), Summary(), first_difference, gap).verdict == verdict


def test_a_worker_that_makes_another_text_is_found_out(make_worker, model, plain):
    worker, _ = make_worker(Liar(plain, DRAFTERS["irregular"]), k=2)
    worker.encode_chat = lambda text: list(text)
    honest = worker.generate

    class Forged:
        def __init__(self, *arguments):
            self._generation = honest(*arguments)
            self.summary = self._generation.summary

        def __iter__(self):
            yield from self._generation
            self.summary.tokens[5] ^= 1

    prompt = bytes([5, 9, 17, 3, 40, 11])
    assert compare(worker, model, prompt, 20).verdict == "yes"
    worker.generate = Forged
    comparison = compare(worker, model, prompt, 20)
    assert (comparison.verdict, comparison.first_difference) == ("no", 5)
    assert total([comparison]).texts_differ == 1


def test_totals_weigh_every_round_alike():
    one, two = Summary(tokens=[1] * 5, decode_seconds=1.0), Summary(
        tokens=[1] * 3, decode_seconds=3.0
    )
    for proposed, accepted in ((2, 2), (2, 0), (1, 1)):
        one.count_verified(proposed, proposed, accepted)
    two.count_verified(2, 2, 1)
    totals = total([Comparison("", two, s, None, None) for s in (one, two)])
    assert (totals.rounds, totals.accept_length) == (4, 2.0)
    assert totals.acceptance_by_position == [3 / 4, 1 / 3]
    assert (totals.tok_s_aerie, totals.tok_s_plain) == (6 / 4, 4 / 6)
    assert not totals.counts_agree, "there is no record of a server"


@pytest.mark.parametrize("percent, value", [(0, 1), (50, 5), (99, 10), (100, 10)])
def test_percentile_is_by_nearest_rank(percent, value):
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value


def test_a_percentile_of_nothing_is_no_number():
    assert math.isnan(percentile([], 50))


@pytest.mark.parametrize("way", few_rows.WAYS, ids=lambda way: way.__name__.lstrip("_"))
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_every_way_to_multiply_gives_the_same_product(way, rows):
    x, weight = torch.randn(rows, 24), torch.randn(7, 24)
    product = way(x, weight)
    assert product.is_contiguous()
    difference = (product.double() - x.double() @ weight.double().T).abs().max().item()
    assert difference <= 1e-5


def test_speed_up_changes_no_result_and_copies_no_weight(model):
    changed = copy.deepcopy(model)
    weights = {p.data_ptr() for p in changed.parameters()}
    ways = few_rows.speed_up(changed, most_rows=3, repeats=1)
    assert sorted(ways) == [1, 2, 3]
    assert {p.data_ptr() for p in changed.parameters()} == weights
    replaced = [m for m in changed.modules() if isinstance(m, few_rows.FewRowsLinear)]
    assert len(replaced) == 4 * 7 + 1
    for width in (1, 2, 3, 4):
        ids = torch.tensor([list(range(width))])
        with torch.inference_mode():
            difference = (changed(ids).logits - model(ids).logits).abs().max().item()
        assert difference <= 1e-4


class Bytes:
    """A tokenizer with one token a byte."""

    def decode(self, tokens, skip_special_tokens):
        return bytes(tokens).decode("utf-8", errors="replace")


def test_a_character_of_several_tokens_is_printed_once_and_whole(capsys):
    printer = AnswerPrinter(Bytes())
    for byte in "aäb".encode():
        printer(Round([byte], [True], 1))
    assert capsys.readouterr().out == "aäb"
