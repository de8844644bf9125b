"""vLLM's GPU worker, drafting through Aerie."""

from vllm.v1.worker.gpu_worker import Worker as _Base

from aerie_draft.vllm.worker import DraftingWorker


class GPUWorker(DraftingWorker, _Base):
    """Named by `--worker-cls aerie_draft.vllm.GPUWorker`."""
