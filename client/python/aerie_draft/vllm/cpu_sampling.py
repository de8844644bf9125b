"""Puts one fault of vLLM's CPU backend right, without which drafts cost wrong tokens.

To verify drafts of requests that sample, vLLM spreads temperature, top_k and top_p over the drafted
tokens. Its CPU form of that writes into a copy and leaves the result as uninitialised memory
(vllm-project/vllm, issue 55005; seen in 0.32), for its own drafters as well. A single sampling
request then spoils its own text and may spoil those of the greedy requests in its batch. The GPU
form is right.
"""

from __future__ import annotations

import logging

import torch

_LOG = logging.getLogger("aerie_draft.vllm")
_KERNEL = "vllm.v1.sample.rejection_sampler.expand_kernel"


def expand(output, values, cu_num_tokens, replace_from, replace_to, max_num_tokens=None):
    """output[j] = values[i] for the tokens j of request i, which end before cu_num_tokens[i]."""
    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    replaced = torch.where(values == replace_from, torch.full_like(values, replace_to), values)
    output.copy_(replaced.repeat_interleave(counts.to(torch.int64)))


def mend_expansion() -> bool:
    """Replaces vLLM's form if it is wrong, by vLLM's own registry. True: it was."""
    from vllm.triton_utils.dispatcher import register_kernels
    from vllm.v1.sample import rejection_sampler

    if _is_right(rejection_sampler.expand_batch_to_tokens):
        return False
    register_kernels({_KERNEL: expand})
    if not _is_right(rejection_sampler.expand_batch_to_tokens):
        raise RuntimeError(
            "vLLM spreads temperatures over drafted tokens wrongly, and its registry of kernels "
            "does not take another form; expected one of both to work; install a vLLM that "
            "docs/vllm.md names"
        )
    _LOG.warning(
        "this vLLM spreads temperatures over drafted tokens wrongly on the CPU (vLLM issue 55005); "
        "replaced by a right form"
    )
    return True


def _is_right(expand_batch_to_tokens) -> bool:
    temperatures = torch.tensor([0.7, 0.0, 1.25])
    ends = torch.tensor([2, 3, 5], dtype=torch.int32)
    expected = torch.tensor([0.7, 0.7, 1.0, 1.25, 1.25])
    try:
        got = expand_batch_to_tokens(temperatures, ends, 5, replace_from=0, replace_to=1)
        whole = expand_batch_to_tokens(torch.tensor([50, 7], dtype=torch.int32), ends[:2], 3)
    except Exception:  # A form that does not even run is no right one.
        return False
    return torch.equal(got, expected) and whole.tolist() == [50, 50, 7]
