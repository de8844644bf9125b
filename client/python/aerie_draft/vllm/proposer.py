"""What vLLM asks for by name in `--speculative-config`: Aerie's proposer.

vLLM's interface for proposers has no way to hand over hidden states, so this class proposes
nothing: the worker class does (aerie_draft.vllm.worker), in the same process, and this one makes
sure that it is there.
"""

from __future__ import annotations

import importlib


class Proposer:
    """Named in vLLM's speculative_config with the method "custom_class"."""

    def __init__(self, vllm_config):
        name = str(vllm_config.parallel_config.worker_cls)
        if not _is_our_worker(name):
            raise ValueError(
                f"worker_cls is {name!r}; expected aerie_draft.vllm.CPUWorker or "
                "aerie_draft.vllm.GPUWorker beside this proposer, since only the worker sees "
                "hidden states; start vLLM with --worker-cls"
            )

    def load_model(self, target) -> None:
        """Called by vLLM once the target is loaded. The drafter is on the server."""

    def propose(self, *_, **__):
        raise RuntimeError(
            "vLLM asked the proposer itself for drafts; expected it to ask the worker; this "
            "version of vLLM does not fit aerie_draft.vllm, see docs/vllm.md for those that do"
        )


def _is_our_worker(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    if not module:
        return False
    worker = getattr(importlib.import_module(module), attribute, None)
    return getattr(worker, "drafts_through_aerie", False)
