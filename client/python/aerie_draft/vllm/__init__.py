"""vLLM drafts through Aerie: worker classes and the proposer, named on vLLM's command line.

    vllm serve MODEL --worker-cls aerie_draft.vllm.CPUWorker \
        --speculative-config '{"method": "custom_class", "model": "aerie_draft.vllm.Proposer",
                               "num_speculative_tokens": 4}' \
        --additional-config '{"aerie": {"address": "127.0.0.1:50051"}}'

Importing this package imports nothing of vLLM: the worker classes are made when vLLM asks for them
by name, each in a module of its own, since the CPU's must be imported before all else of vLLM.
"""

from __future__ import annotations

import importlib

from aerie_draft.vllm.proposer import Proposer
from aerie_draft.vllm.settings import Settings

_WORKERS = {"CPUWorker": "cpu_worker", "GPUWorker": "gpu_worker"}

__all__ = ["CPUWorker", "GPUWorker", "Proposer", "Settings"]


def __getattr__(name: str):
    if name not in _WORKERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WORKERS[name]}"), name)
