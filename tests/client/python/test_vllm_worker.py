"""The worker's hooks, on stand-ins of vLLM's worker and runner: what is captured, what is proposed,
what a fault of ours costs. The same hooks on vLLM itself are tested under the label `engine`."""

import time
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aerie_draft import (  # noqa: E402
    DType,
    bf16_to_float,
    codec,  # noqa: E402
)
from aerie_draft.dtypes import PLAIN_DTYPES  # noqa: E402
from aerie_draft.vllm import worker as worker_module  # noqa: E402
from aerie_draft.vllm.admission import AdmissionError, Plan  # noqa: E402
from aerie_draft.vllm.settings import SettingsError  # noqa: E402
from aerie_draft.vllm.worker import DraftingWorker, RoundProposer  # noqa: E402
from conftest import make_manifest  # noqa: E402
from fake_server import FakeServer  # noqa: E402
from test_vllm_batch import Round  # noqa: E402

WIDTH = 8


class FakeModel(torch.nn.Module):
    """Captures where it is told to, as vLLM's models do: in ascending order."""

    def __init__(self, deaf=False):
        super().__init__()
        self.inner = torch.nn.Module()
        self.inner.aux_hidden_state_layers = ()
        self.deaf = deaf

    def set_aux_hidden_state_layers(self, layers):
        if not self.deaf:
            self.inner.aux_hidden_state_layers = tuple(sorted(set(layers)))


class FakeRunner:
    def __init__(self):
        self.use_aux_hidden_state_outputs = False
        self.effective_drafter_max_model_len = 64
        self.max_model_len = 64
        self.input_batch = Round().batch
        self.requests = {}
        self.model = FakeModel()

    def _get_eagle3_aux_layers_from_config(self):
        return None

    def propose_draft_token_ids(self, *_):
        raise AssertionError("vLLM's own")

    def get_model(self):
        return self.model

    def load_model(self):
        if self.use_aux_hidden_state_outputs:
            self.model.set_aux_hidden_state_layers(self._get_eagle3_aux_layers_from_config())


class FakeEngineWorker:
    def __init__(self, config, rank=0):
        self.vllm_config, self.rank, self.executed = config, rank, []

    def init_device(self):
        self.model_runner = FakeRunner()

    def load_model(self):
        self.model_runner.load_model()

    def execute_model(self, scheduled):
        self.executed.append(scheduled)
        return "output"

    def shutdown(self):
        self.executed.append("shutdown")


class Worker(DraftingWorker, FakeEngineWorker):
    shutdown_grace = 60.0


def config(address, tensor_parallel=1, **settings):
    space = types.SimpleNamespace
    return space(
        model_config=space(
            model="target",
            hf_text_config=space(num_hidden_layers=4),
            get_hidden_size=lambda: WIDTH,
            get_vocab_size=lambda: 64,
            max_model_len=64,
            dtype=torch.float32,
            enable_prompt_embeds=False,
        ),
        parallel_config=space(
            tensor_parallel_size=tensor_parallel,
            pipeline_parallel_size=1,
            prefill_context_parallel_size=1,
            decode_context_parallel_size=1,
            use_ubatching=False,
        ),
        speculative_config=space(num_speculative_tokens=2, method="custom_class"),
        scheduler_config=space(async_scheduling=False),
        use_v2_model_runner=False,
        additional_config={"aerie": {"address": address, "deadline": 60.0, **settings}},
    )


def started(server, rank=0, **kwargs):
    worker = Worker(config(server.address, **kwargs), rank)
    worker.init_device()
    worker.load_model()
    return worker


def states(rows):
    """Of boundary 1, 2 and 3 and of the final norm: each tells place and row."""
    places = [100, 200, 300, 900]
    return [
        (place + torch.arange(rows, dtype=torch.float32))[:, None].repeat(1, WIDTH)
        for place in places
    ]


def propose(worker, made, rows):
    *aux, final = states(rows)
    made.scheduled.num_spec_tokens_to_schedule = 2
    worker.model_runner.input_batch = made.batch
    worker.model_runner.requests = made.requests
    return worker.model_runner.propose_draft_token_ids(
        made.scheduled, made.sampled, None, final, None, aux, None, None, slot_mappings=None
    )


def held(server, number=0):
    session = list(server.sessions.values())[number]
    return np.frombuffer(b"".join(session.rows), np.float32).reshape(-1, 3 * WIDTH)


def test_the_target_captures_where_the_server_says_and_the_rounds_are_drafted_for():
    with FakeServer() as server:
        worker = started(server)
        runner = worker.model_runner
        assert runner.model.inner.aux_hidden_state_layers == (1, 2, 3)
        made = Round().add("a", 0, 3, [10, 11, 12, 50], [50], fresh=True)
        made.add("b", 0, 2, [20, 21, 22, 23], [])
        assert propose(worker, made, rows=5) == [[7, 7], []]
        assert held(server, 0)[:, [0, WIDTH, 2 * WIDTH]].tolist() == [
            [100, 200, 300],
            [101, 201, 301],
            [102, 202, 302],
        ]
        assert held(server, 1)[:, 0].tolist() == [103, 104]
        worker.execute_model(types.SimpleNamespace(finished_req_ids={"a"}))
        worker.shutdown()
    assert [list(s.tokens) for s in server.closed] == [[11, 12, 50], [21, 22]]
    assert worker.executed[-1] == "shutdown"


def test_what_is_captured_is_part_of_the_engines_key_for_compiled_graphs():
    with FakeServer() as server:
        worker = started(server)
        before = config(server.address).additional_config
        assert worker.vllm_config.additional_config != before
        assert "boundary 2" in str(worker.vllm_config.additional_config)
        assert worker.vllm_config.additional_config["aerie"] == before["aerie"]
        worker.shutdown()


def test_a_batch_near_the_engines_longest_length_still_reaches_the_drafter():
    with FakeServer() as server:
        worker = started(server)
        # vLLM asks no drafter unless the longest sequence and a draft are within this.
        assert worker.model_runner.effective_drafter_max_model_len >= 64 + 2
        worker.shutdown()


def test_only_the_first_of_the_tensor_parallel_ranks_asks_the_server():
    with FakeServer() as server:
        worker = started(server, rank=1, tensor_parallel=2)
        made = Round().add("a", 0, 3, [10, 11, 12, 50], [50])
        assert propose(worker, made, rows=3) == [[]]
        worker.execute_model(types.SimpleNamespace(finished_req_ids={"a"}))
        worker.shutdown()
        assert server.opened == []


def test_a_fault_of_ours_costs_drafts_and_never_the_round(caplog):
    with FakeServer() as server:
        worker = started(server)
        made = Round().add("a", 0, 3, [10, 11, 12, 50], [50])
        made.scheduled.num_scheduled_tokens = {}
        assert propose(worker, made, rows=3) == [[]]
        assert "a fault of aerie_draft" in caplog.text
        made = Round().add("b", 0, 3, [10, 11, 12, 50], [50])
        assert propose(worker, made, rows=3) == [[]], "a fault that stays must not fill the log"
        later = time.monotonic() + 60
        worker._aerie_drafter._clock = lambda: later
        assert propose(worker, made, rows=3) == [[7, 7]]
        worker.shutdown()


def test_a_model_that_keeps_captures_of_its_own_stops_the_start():
    with FakeServer() as server:
        worker = Worker(config(server.address))
        worker.init_device()
        worker.model_runner.model = FakeModel(deaf=True)
        with pytest.raises(AdmissionError, match=r"captures at no boundary; expected \(1, 2, 3\)"):
            worker.load_model()


def test_a_vllm_without_one_of_the_hooks_is_refused_by_name():
    with FakeServer() as server:
        worker = Worker(config(server.address))
        worker.init_device()
        del worker.model_runner.requests
        with pytest.raises(AdmissionError, match="has no requests; expected those of vLLM"):
            worker.load_model()


def test_an_engine_that_does_not_fit_stops_before_anything_is_loaded():
    with FakeServer() as server:
        worker = Worker(config(server.address, boundaries=[0, 1, 2]))
        with pytest.raises(AdmissionError, match=r"is \[0, 1, 2\]; expected \[1, 2, 3\].*add 1"):
            worker.init_device()
        assert not hasattr(worker, "model_runner")


def test_without_a_server_the_start_fails_unless_it_may_go_on():
    nobody = dict(start_timeout=0.05)
    with pytest.raises(AdmissionError, match="no answer from the draft server at 127.0.0.1:1"):
        Worker(config("127.0.0.1:1", **nobody)).init_device()
    worker = Worker(config("127.0.0.1:1", required=False, boundaries=[1, 2, 3], **nobody))
    worker.init_device()
    worker.load_model()
    assert worker.model_runner.model.inner.aux_hidden_state_layers == (1, 2, 3)
    made = Round().add("a", 0, 3, [10, 11, 12, 50], [50])
    assert propose(worker, made, rows=3) == [[]]
    worker.shutdown()


def test_without_settings_the_start_fails():
    lacking = config("unused")
    lacking.additional_config = {}
    with pytest.raises(SettingsError, match="--additional-config"):
        Worker(lacking).init_device()


@pytest.mark.parametrize("dtype", PLAIN_DTYPES)
def test_rows_reach_the_wire_in_its_dtype_and_the_drafters_order(dtype):
    manifest = make_manifest(dtype=dtype)
    plan = Plan(manifest, 2, 64, aux_boundaries=(1, 2, 3), sources=(2, None, 0))
    proposer = RoundProposer(None, plan, None)
    *aux, final = states(4)
    rows = proposer._gather(aux, final, np.array([3, 1]))
    if dtype is DType.BFLOAT16:
        assert rows.dtype == np.uint16
        rows = bf16_to_float(rows)
    expected = torch.tensor([[303, 903, 103], [301, 901, 101]], dtype=torch.float32)
    if dtype is DType.BFLOAT16:
        expected = expected.bfloat16().float()
    assert rows[:, [0, WIDTH, 2 * WIDTH]].astype(np.float32).tolist() == expected.tolist()


def test_a_server_with_other_captures_does_not_take_the_place_of_the_first():
    settings = worker_module.Settings.from_config(config("h:1").additional_config)
    facts = worker_module.EngineFacts.of(config("h:1"))
    server = FakeServer()
    info = codec.server_info_value(server.server_info())
    plan = worker_module.plan_for(settings, facts, info)
    worker_module._check_again(settings, facts, info, plan)
    server.boundaries = [1, 2, 4]
    other = codec.server_info_value(server.server_info())
    with pytest.raises(AdmissionError, match="other captures than those"):
        worker_module._check_again(settings, facts, other, plan)
