"""What layer ids mean: the table of engines, and the one place that Hugging Face cannot give."""

import pytest
from aerie_draft import FINAL_NORM, LayerIdConvention, boundaries_from_layer_ids, captures_at
from aerie_draft import wiring

INPUT, OUTPUT = LayerIdConvention.INPUT_OF_LAYER, LayerIdConvention.OUTPUT_OF_LAYER


@pytest.mark.parametrize(
    "ids, convention, layers, boundaries",
    [
        ([1, 14, 26], OUTPUT, 30, (2, 15, 27)),
        ([2, 15, 27], INPUT, 30, (2, 15, 27)),
        ([2, 30, 58], OUTPUT, 61, (3, 31, 59)),
        ([58, 2, 30], INPUT, 61, (58, 2, 30)),
        ([0], INPUT, 2, (0,)),
        ([2], INPUT, 2, (2,)),
        ([1], OUTPUT, 2, (2,)),
    ],
    ids=[
        "output_ids_move_up_by_one",
        "input_ids_stay",
        "ambiguous_ids_follow_the_convention",
        "order_is_kept",
        "embedding",
        "before_the_final_norm",
        "last_layers_output",
    ],
)
def test_boundaries_from_layer_ids(ids, convention, layers, boundaries):
    assert boundaries_from_layer_ids(ids, convention, layers) == boundaries


@pytest.mark.parametrize(
    "ids, convention, message",
    [
        ([], INPUT, "no layer ids"),
        ([1, 1], INPUT, "repeat"),
        ([-1], INPUT, "layer id -1"),
        ([5], INPUT, "expected 0 .. 4"),
        ([4], OUTPUT, "expected 0 .. 3"),
    ],
)
def test_ids_that_leave_the_target_are_refused(ids, convention, message):
    with pytest.raises(ValueError, match=message):
        boundaries_from_layer_ids(ids, convention, 4)


def test_a_convention_must_be_stated():
    with pytest.raises(TypeError):
        boundaries_from_layer_ids([1], num_layers=4)
    with pytest.raises(TypeError, match="convention"):
        boundaries_from_layer_ids([1], "output", 4)


@pytest.mark.parametrize(
    "engine, ids",
    [
        ("angelslim", [1, 14, 26]),
        ("huggingface", [2, 15, 27]),
        ("llama.cpp", [2, 15, 27]),
        ("modelopt", [1, 14, 26]),
        ("specforge", [1, 14, 26]),
        ("speculators", [2, 15, 27]),
        ("tensorrt-llm", [1, 14, 26]),
        ("vllm", [2, 15, 27]),
    ],
)
def test_every_engines_ids_for_the_usual_wiring_lead_to_the_same_boundaries(engine, ids):
    convention = wiring.engine_convention(engine)
    assert boundaries_from_layer_ids(ids, convention, 30) == (2, 15, 27)


def test_an_engine_without_a_single_convention_is_refused():
    with pytest.raises(ValueError, match="torchspec"):
        wiring.engine_convention("torchspec")


@pytest.mark.parametrize(
    "model_type, ids, layers, boundaries",
    [
        ("llama", [2, 30, 58], 61, (3, 31, 59)),
        ("deepseek_v2", [2, 30, 58], 61, (2, 30, 58)),
        ("deepseek_v2", [1, 29, 57], 61, (2, 30, 58)),
        ("gpt_oss", [24, 30, 36], 36, (24, 30, 36)),
        ("gpt_oss", [1, 17, 32], 36, (2, 18, 33)),
    ],
)
def test_sglang_reads_ids_by_the_targets_class(model_type, ids, layers, boundaries):
    convention = wiring.sglang_convention(model_type, ids, layers)
    assert boundaries_from_layer_ids(ids, convention, layers) == boundaries


def test_hidden_states_are_indexed_by_boundary_and_end_with_the_final_norm():
    indices = [wiring.hidden_states_index(c, 4) for c in (*captures_at([0, 3]), FINAL_NORM)]
    assert indices == [0, 3, 4]


@pytest.mark.parametrize(
    "boundary, message", [(4, "before the final norm"), (5, "leaves a target")]
)
def test_a_boundary_that_hidden_states_lack_is_refused(boundary, message):
    with pytest.raises(ValueError, match=message):
        wiring.hidden_states_index(captures_at([boundary])[0], 4)
