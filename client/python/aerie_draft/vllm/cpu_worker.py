"""vLLM's CPU worker, drafting through Aerie. vLLM wants its own module to be imported first."""

from vllm.v1.worker.cpu_worker import CPUWorker as _Base  # isort: skip

from aerie_draft.vllm.cpu_sampling import mend_expansion
from aerie_draft.vllm.worker import DraftingWorker


class CPUWorker(DraftingWorker, _Base):
    """Named by `--worker-cls aerie_draft.vllm.CPUWorker`."""

    def init_device(self):
        super().init_device()
        mend_expansion()
