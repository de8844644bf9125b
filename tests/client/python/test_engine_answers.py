"""What the runs of real engines are judged by: which answers are the same, and what was counted."""

import math
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "demo"))

from engine_answers import Answer, Metrics, SpecDecode, compare  # noqa: E402

PAGE = """# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="target"} 7.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="target"} 1.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="target"} 32.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="target"} 6.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 5.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 1.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="10"} 9.0
"""


def answer(*tokens, gaps=()):
    return Answer(tuple(tokens), "", tuple(gaps))


@pytest.mark.parametrize(
    "other, gap, verdict",
    [
        ((1, 2, 3), 5.0, "equal"),
        ((1, 9, 3), 5.0, "wrong"),
        ((1, 9, 3), 0.0005, "tie"),
        ((1, 9, 3), 0.001, "wrong"),
        ((1, 9, 3), math.nan, "wrong"),
        ((1, 9), 0.0005, "tie"),
        ((1, 2), 0.0005, "wrong"),  # cut off: a lost token is no tie
        ((1, 2, 3, 4), 0.0005, "wrong"),
    ],
)
def test_answers_differ_unless_they_part_where_the_target_itself_was_undecided(other, gap, verdict):
    plain = answer(1, 2, 3, gaps=(5.0, gap, 5.0))
    assert compare(plain, answer(*other)) == verdict


def test_without_log_probabilities_there_are_no_ties():
    assert compare(answer(1, 2), answer(1, 3)) == "wrong"


def test_counters_of_all_engines_are_summed_and_positions_told_apart():
    counted = SpecDecode.read(Metrics(PAGE), "vllm:", 2)
    assert counted == SpecDecode(8, 32, 6, (5, 1))
    assert counted.accept_length == 1.75


def test_without_a_draft_a_round_gains_one_token():
    assert SpecDecode.read(Metrics(""), "aerie_", 2) == SpecDecode(0, 0, 0, (0, 0))
    assert SpecDecode.read(Metrics(""), "aerie_", 2).accept_length == 1.0
