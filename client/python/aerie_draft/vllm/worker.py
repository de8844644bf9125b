"""What makes a vLLM worker draft through Aerie: the same for the CPU and the GPU.

Hooks, all of them methods or attributes that vLLM's V1 model runner has for its own drafters:

- `use_aux_hidden_state_outputs` and `_get_eagle3_aux_layers_from_config` of the runner make the
  target give its captured states beside its output, as for vLLM's own EAGLE-3: nothing is computed
  twice. vLLM reads layer ids as boundaries.
- `propose_draft_token_ids` of the runner is where a round ends; its result is verified next.
- `execute_model` of the worker tells which requests are over, in rounds without work too.

What one would get wrong: vLLM does not know that this method captures, so its key for compiled
graphs must be made to differ by what is captured. additional_config is part of that key, hence the
captures in force are written into it.
"""

from __future__ import annotations

import logging

import numpy as np
import torch

from aerie_draft.dtypes import DType
from aerie_draft.vllm.admission import AdmissionError, EngineFacts, Plan, check_engine, plan_for
from aerie_draft.vllm.batch import cut_rows, row_index, slices_of
from aerie_draft.vllm.connection import Connection, ask_at_start, connect
from aerie_draft.vllm.drafter import BatchDrafter
from aerie_draft.vllm.settings import KEY, Settings

_LOG = logging.getLogger("aerie_draft.vllm")
_TORCH_DTYPES = {
    DType.FLOAT32: torch.float32,
    DType.FLOAT16: torch.float16,
    DType.BFLOAT16: torch.bfloat16,
}
# What is used of vLLM's model runner and of what it holds. Checked at the start: a vLLM that moved
# one of them is refused by name.
RUNNER_HOOKS = (
    "use_aux_hidden_state_outputs",
    "effective_drafter_max_model_len",
    "_get_eagle3_aux_layers_from_config",
    "propose_draft_token_ids",
    "get_model",
    "input_batch",
    "requests",
)
BATCH_FIELDS = ("req_ids", "num_computed_tokens_cpu", "num_tokens_no_spec", "token_ids_cpu")


class DraftingWorker:
    """Mixed into a vLLM worker class, before it."""

    drafts_through_aerie = True
    # Seconds in which what was just said about finished requests should still be heard.
    shutdown_grace = 1.0

    def init_device(self):
        _log_as_vllm_does()
        facts = EngineFacts.of(self.vllm_config)
        check_engine(facts)
        settings = Settings.from_config(self.vllm_config.additional_config)
        plan = plan_for(settings, facts, ask_at_start(settings))
        _write_back(self.vllm_config, plan)
        self._aerie_plan = plan
        self._aerie_drafter = None
        # Under tensor parallelism all ranks sample the same tokens and capture the same states;
        # vLLM takes drafts from the first one alone.
        if self.rank % self.vllm_config.parallel_config.tensor_parallel_size == 0:
            connection = Connection(
                plan,
                settings,
                connect=lambda: connect(settings),
                check=lambda info: _check_again(settings, facts, info, plan),
            )
            self._aerie_drafter = BatchDrafter(plan, settings, connection)
        super().init_device()

    def load_model(self, *args, **kwargs):
        runner, plan = self.model_runner, self._aerie_plan
        missing = [name for name in RUNNER_HOOKS if not hasattr(runner, name)]
        missing += [name for name in BATCH_FIELDS if not hasattr(runner.input_batch, name)]
        if missing:
            raise AdmissionError(
                f"vLLM's model runner has no {', '.join(missing)}; expected those of vLLM 0.32; "
                "install a version that docs/vllm.md names"
            )
        if plan.aux_boundaries:
            runner.use_aux_hidden_state_outputs = True
            runner._get_eagle3_aux_layers_from_config = lambda: plan.aux_boundaries
        super().load_model(*args, **kwargs)
        _check_captures(runner.get_model(), plan)
        # vLLM skips the drafters of a whole batch near its longest length; then rows would be lost.
        # How far a request may be drafted for is settled request by request instead.
        runner.effective_drafter_max_model_len = runner.max_model_len + plan.k + 1
        runner.propose_draft_token_ids = RoundProposer(runner, plan, self._aerie_drafter)

    def execute_model(self, scheduler_output, *args, **kwargs):
        if self._aerie_drafter is not None and scheduler_output.finished_req_ids:
            _fail_open(
                self._aerie_drafter, self._aerie_drafter.leave, scheduler_output.finished_req_ids
            )
        return super().execute_model(scheduler_output, *args, **kwargs)

    def shutdown(self):
        drafter = getattr(self, "_aerie_drafter", None)
        if drafter is not None:
            drafter.close(self.shutdown_grace)
        super().shutdown()


class RoundProposer:
    """Takes the place of the runner's propose_draft_token_ids.

    Without a drafter (a rank that vLLM does not take drafts from) it proposes nothing.
    """

    def __init__(self, runner, plan: Plan, drafter: BatchDrafter | None):
        self._runner = runner
        self._plan = plan
        self._drafter = drafter

    def __call__(
        self,
        scheduler_output,
        sampled_token_ids,
        sampling_metadata,
        hidden_states,
        sample_hidden_states,
        aux_hidden_states,
        *_,
        **__,
    ) -> list[list[int]]:
        nothing: list[list[int]] = [[] for _ in sampled_token_ids]
        if self._drafter is None or not self._drafter.working:
            return nothing

        def propose():
            runner = self._runner
            slices = slices_of(
                scheduler_output,
                runner.input_batch,
                sampled_token_ids,
                runner.requests,
                scheduler_output.num_spec_tokens_to_schedule,
                self._plan.max_model_len,
            )
            rows = self._gather(aux_hidden_states, hidden_states, row_index(slices))
            return self._drafter.round(cut_rows(slices, rows))

        drafts = _fail_open(self._drafter, propose)
        return nothing if drafts is None else drafts

    def _gather(self, aux, hidden, index: np.ndarray) -> np.ndarray:
        """[rows, width] of the wire's dtype on the host; one copy from the device."""
        dtype = self._plan.manifest.dtype
        at = torch.from_numpy(index).to(hidden.device)
        parts = [
            (hidden if source is None else aux[source]).index_select(0, at)
            for source in self._plan.sources
        ]
        rows = torch.cat(parts, dim=-1).to(_TORCH_DTYPES[dtype])
        if dtype is DType.BFLOAT16:
            return rows.view(torch.int16).cpu().numpy().view(np.uint16)
        return rows.cpu().numpy()


def _fail_open(drafter: BatchDrafter, work, *arguments):
    """A fault in here costs drafts, never a token of the engine."""
    try:
        return work(*arguments)
    except Exception:
        _LOG.exception("drafting failed by a fault of aerie_draft; the engine goes on without")
        drafter.recover()
        return None


def _check_again(settings: Settings, facts: EngineFacts, info, plan: Plan) -> None:
    """A server that came back may be another one."""
    if plan_for(settings, facts, info) != plan:
        raise AdmissionError(
            f"the draft server at {settings.address} now wants other captures than those that this "
            f"engine was started with ({plan.aux_boundaries}); expected the same drafter; start "
            "the server with it, or restart the engine"
        )


def _write_back(vllm_config, plan: Plan) -> None:
    captures = [str(capture) for capture in plan.manifest.captures]
    vllm_config.additional_config = {
        **vllm_config.additional_config,
        f"{KEY} captures": captures,
    }


def _log_as_vllm_does() -> None:
    """vLLM gives handlers to its own loggers only; our lines would lack time and rank."""
    ours, handlers = logging.getLogger("aerie_draft"), logging.getLogger("vllm").handlers
    if handlers and not ours.handlers:
        for handler in handlers:
            ours.addHandler(handler)
        ours.setLevel(logging.INFO)
        ours.propagate = False


def _check_captures(model, plan: Plan) -> None:
    """That the target captures what it was told to: a model may keep ids of its own."""
    found = [
        tuple(module.aux_hidden_state_layers)
        for module in model.modules()
        if getattr(module, "aux_hidden_state_layers", ())
    ]
    if plan.aux_boundaries and plan.aux_boundaries not in found:
        raise AdmissionError(
            f"the target captures at {found or 'no boundary'}; expected {plan.aux_boundaries}; "
            "vLLM's class of this model does not take the boundaries over, use another model or "
            "version"
        )
