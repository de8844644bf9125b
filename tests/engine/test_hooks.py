"""The installed vLLM has what our workers hook into, in its GPU runner too, which does not run
here."""

import json
import subprocess

SCRIPT = """
import dataclasses, inspect, json
from vllm.v1.core.sched.output import NewRequestData, SchedulerOutput
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.gpu_input_batch import InputBatch
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.sampling_params import SamplingParams
import aerie_draft.vllm
from aerie_draft.vllm.worker import BATCH_FIELDS, DraftingWorker, RUNNER_HOOKS, RoundProposer

missing = []
for kind, names in ((GPUModelRunner, RUNNER_HOOKS), (InputBatch, BATCH_FIELDS)):
    source = inspect.getsource(kind)
    missing += [f"{kind.__name__}.{n}" for n in names if not hasattr(kind, n)
                and not any(f"self.{n}{mark}" in source for mark in (" = ", ": "))]
fields = {f.name for f in dataclasses.fields(SchedulerOutput)}
missing += [f"SchedulerOutput.{n}" for n in ("num_scheduled_tokens", "scheduled_new_reqs",
            "scheduled_spec_decode_tokens", "finished_req_ids", "num_spec_tokens_to_schedule")
            if n not in fields]
missing += [f"SamplingParams.{n}"
            for n in ("max_tokens", "min_tokens", "stop_token_ids", "eos_token_id")
            if not hasattr(SamplingParams, n)]

ours = list(inspect.signature(RoundProposer.__call__).parameters)[1:7]
theirs = list(inspect.signature(GPUModelRunner.propose_draft_token_ids).parameters)[1:7]

workers = {}
for worker in (aerie_draft.vllm.CPUWorker, aerie_draft.vllm.GPUWorker):
    base = worker.__mro__[2]
    workers[worker.__name__] = dict(
        base=f"{base.__module__}.{base.__name__}",
        hooked=[n for n in ("init_device", "load_model", "execute_model", "shutdown")
                if getattr(worker, n) is not getattr(base, n) and hasattr(base, n)])
# The runners hook in at the same place: the CPU's is the GPU's with another device.
same = CPUModelRunner.propose_draft_token_ids is GPUModelRunner.propose_draft_token_ids
print(json.dumps(dict(missing=missing, ours=ours, theirs=theirs, workers=workers, same=same)))
"""


def test_what_the_workers_use_of_vllm_is_there(python, package):
    result = subprocess.run(
        [python, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(package), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["missing"] == []
    assert found["ours"] == found["theirs"]
    hooked = ["init_device", "load_model", "execute_model", "shutdown"]
    assert found["workers"] == {
        "CPUWorker": {"base": "vllm.v1.worker.cpu_worker.CPUWorker", "hooked": hooked},
        "GPUWorker": {"base": "vllm.v1.worker.gpu_worker.Worker", "hooked": hooked},
    }
    assert found["same"], "the CPU's runner proposes in a place of its own"
