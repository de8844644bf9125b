"""Of a flat engine batch each request gets its own committed rows, whatever the batch holds."""

import dataclasses
import types

import numpy as np
import pytest
from aerie_draft.vllm.batch import cut_rows, row_index, slices_of


@dataclasses.dataclass
class Sampling:
    max_tokens: int | None = 100
    min_tokens: int = 0
    stop_token_ids: tuple = ()
    eos_token_id: int | None = None


class Batch:
    """What is used of vLLM's InputBatch, after bookkeeping: lists of request ids and arrays."""

    def __init__(self):
        self.req_ids = []
        self.num_computed_tokens_cpu = np.zeros(8, np.int32)
        self.num_tokens_no_spec = np.zeros(8, np.int32)
        # What was of another request before must never be read.
        self.token_ids_cpu = np.full((8, 64), -1, np.int32)


class Round:
    def __init__(self):
        self.batch = Batch()
        self.scheduled = types.SimpleNamespace(
            num_scheduled_tokens={}, scheduled_new_reqs=[], scheduled_spec_decode_tokens={}
        )
        self.sampled = []
        self.requests = {}

    def add(self, name, computed, scheduled, tokens, sampled, drafted=(), fresh=False, **sampling):
        """`tokens`: all of the request after the round, with what was sampled."""
        i = len(self.batch.req_ids)
        self.batch.req_ids.append(name)
        self.batch.num_computed_tokens_cpu[i] = computed
        self.batch.num_tokens_no_spec[i] = len(tokens)
        self.batch.token_ids_cpu[i, : len(tokens)] = tokens
        self.scheduled.num_scheduled_tokens[name] = scheduled
        if drafted:
            self.scheduled.scheduled_spec_decode_tokens[name] = list(drafted)
        if fresh:
            self.scheduled.scheduled_new_reqs.append(types.SimpleNamespace(req_id=name))
        self.sampled.append(list(sampled))
        self.requests[name] = types.SimpleNamespace(
            sampling_params=Sampling(**sampling), output_token_ids=list(sampled)
        )
        return self

    def slices(self, k=3, max_model_len=64):
        return slices_of(self.scheduled, self.batch, self.sampled, self.requests, k, max_model_len)


def test_a_prompt_gives_all_its_rows_and_the_token_after_each():
    (one,) = Round().add("a", 0, 4, [10, 11, 12, 13, 50], [50], fresh=True).slices()
    assert (one.begin, one.first, one.tokens) == (0, 0, [11, 12, 13, 50])
    assert (one.k, one.verified, one.accepted, one.fresh) == (3, (), 0, True)


def test_rows_of_rejected_tokens_are_dropped():
    # Three tokens were drafted, one was kept: rows 5 and 6 stand, 7 and 8 are of rejected tokens.
    (one,) = Round().add("a", 5, 4, [0, 1, 2, 3, 4, 5, 7, 8], [7, 8], [7, 30, 31]).slices()
    assert (one.first, one.tokens) == (5, [7, 8])
    assert (one.verified, one.accepted) == ((7, 30, 31), 1)


def test_a_prompt_in_pieces_gives_rows_without_asking_for_a_draft():
    prompt = list(range(20, 30))
    (one,) = Round().add("a", 3, 4, prompt, []).slices()
    assert (one.first, one.tokens, one.k) == (3, [24, 25, 26, 27], 0)
    assert one.verified is None


def test_a_prompt_whose_beginning_was_cached_starts_behind_it():
    (one,) = Round().add("a", 16, 2, [*range(18), 40], [40], fresh=True).slices()
    assert (one.first, one.tokens) == (16, [17, 40])


def test_the_order_of_the_batch_decides_where_rows_lie_and_nothing_else():
    made = Round()
    made.add("b", 5, 4, [0, 1, 2, 3, 4, 5, 7, 8], [7, 8], [7, 30, 31])
    made.add("c", 0, 3, [60, 61, 62, 63], [])
    made.add("a", 0, 2, [10, 11, 50], [50])
    slices = made.slices()
    index = row_index(slices)
    # Rows 2 and 3 of the flat batch belong to rejected tokens of b.
    assert index.tolist() == [0, 1, 4, 5, 6, 7, 8]
    flat = np.arange(9, dtype=np.float32)[:, None]
    news = {new.request_id: new for new in cut_rows(slices, flat[index])}
    assert news["a"].rows[:, 0].tolist() == [7, 8]
    assert news["b"].rows[:, 0].tolist() == [0, 1]
    assert news["c"].rows[:, 0].tolist() == [4, 5, 6]
    assert all(len(new.rows) == len(new.tokens) for new in news.values())


def test_an_empty_batch_has_no_rows():
    assert row_index(Round().slices()).tolist() == []


@pytest.mark.parametrize("length, k", [(59, 3), (60, 3), (61, 2), (62, 1), (63, 0), (64, 0)])
def test_no_draft_goes_past_the_longest_length_of_the_engine(length, k):
    # With n tokens, drafted ones take positions n .. n + k - 1, and one more is sampled behind.
    (one,) = Round().add("a", length - 2, 1, list(range(length)), [length - 1]).slices()
    assert one.k == k


@pytest.mark.parametrize(
    "sampled, sampling, ending",
    [
        ([7, 8], dict(max_tokens=3), False),
        ([7, 8], dict(max_tokens=2), True),
        ([7, 8], dict(max_tokens=None), False),
        ([7, 8], dict(eos_token_id=7), True),
        ([7, 8], dict(eos_token_id=9), False),
        ([7, 8], dict(stop_token_ids=(8,)), True),
        ([7, 8], dict(eos_token_id=7, min_tokens=3), False),
        ([], dict(max_tokens=0), False),
    ],
)
def test_a_request_that_the_engine_is_going_to_end_is_known(sampled, sampling, ending):
    tokens = [0, 1, 2, 3, *sampled]
    (one,) = Round().add("a", 3, 3, tokens, sampled, **sampling).slices()
    assert one.ending is ending
