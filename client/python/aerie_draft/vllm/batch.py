"""What one round of vLLM computed, request by request: plain values without torch or vLLM.

The engine runs all requests of a round as one flat batch, in an order that changes from round to
round, so everything is keyed by request id. Of a request's rows only those that were committed
count: with n tokens after the round and the first row at position p, rows p .. n-2. What the engine
computed for rejected draft tokens lies behind them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from aerie_draft.vllm.request_state import NewRows


@dataclasses.dataclass(frozen=True)
class Slice:
    """Of one request: where its committed rows lie in the flat batch, and what is to be said."""

    request_id: str
    begin: int  # of its rows in the flat batch
    first: int  # position of the row at `begin`
    tokens: list[int]
    k: int
    verified: tuple[int, ...] | None
    accepted: int
    fresh: bool
    ending: bool

    def with_rows(self, rows: np.ndarray) -> NewRows:
        return NewRows(
            request_id=self.request_id,
            first=self.first,
            tokens=self.tokens,
            rows=rows,
            k=self.k,
            verified=self.verified,
            accepted=self.accepted,
            fresh=self.fresh,
            ending=self.ending,
        )


def slices_of(
    scheduled,
    batch,
    sampled: Sequence[Sequence[int]],
    requests: Mapping[str, object],
    k: int,
    max_model_len: int,
) -> list[Slice]:
    """Of vLLM's SchedulerOutput, its InputBatch after bookkeeping, what was sampled, in the order
    of the batch, and its requests by id."""
    fresh = {new.req_id for new in scheduled.scheduled_new_reqs}
    slices, begin = [], 0
    for i, request_id in enumerate(batch.req_ids):
        computed = scheduled.num_scheduled_tokens[request_id]
        first = int(batch.num_computed_tokens_cpu[i])
        length = int(batch.num_tokens_no_spec[i])  # with what was sampled now
        count = max(0, min(computed, length - 1 - first))
        new = sampled[i]
        slices.append(
            Slice(
                request_id=request_id,
                begin=begin,
                first=first,
                tokens=batch.token_ids_cpu[i, first + 1 : first + 1 + count].tolist(),
                # Nothing was sampled: amid a prompt. And no draft past the engine's last position.
                k=max(0, min(k, max_model_len - 1 - length)) if new else 0,
                verified=tuple(scheduled.scheduled_spec_decode_tokens.get(request_id, ()))
                if new
                else None,
                accepted=max(0, len(new) - 1),
                fresh=request_id in fresh,
                ending=bool(new) and _ends(requests.get(request_id), new),
            )
        )
        begin += computed
    return slices


def row_index(slices: Sequence[Slice]) -> np.ndarray:
    """Rows of the flat batch that are committed, slice by slice."""
    ranges = [np.arange(s.begin, s.begin + len(s.tokens)) for s in slices]
    return np.concatenate(ranges) if ranges else np.empty(0, np.int64)


def cut_rows(slices: Sequence[Slice], rows: np.ndarray) -> list[NewRows]:
    """`rows` are those of row_index(), in its order."""
    news, at = [], 0
    for one in slices:
        news.append(one.with_rows(rows[at : at + len(one.tokens)]))
        at += len(one.tokens)
    return news


def _ends(request, new: Sequence[int]) -> bool:
    """Whether the engine is going to end the request with these tokens, as far as is known here.

    A wrong guess does no harm: if the request goes on, its next round brings these rows again.
    """
    sampling = getattr(request, "sampling_params", None)
    if sampling is None:
        return False
    made = len(request.output_token_ids)
    if sampling.max_tokens is not None and made >= sampling.max_tokens:
        return True
    if made < sampling.min_tokens:
        return False
    stops = set(sampling.stop_token_ids or ())
    if sampling.eos_token_id is not None:
        stops.add(sampling.eos_token_id)
    return not stops.isdisjoint(new)
