"""The generator of heads: what it promises to whoever compares with its heads."""

from __future__ import annotations

import json
import resource

import numpy as np
import pytest

import head_folder
import random_heads
import safetensors_stream as stream
import tensor_file
from head_folder import HeadConfig
from head_plans import HeadPlan
from head_tensors import draft_to_target
from head_variants import VARIANTS
from published_sizes import FULL_SIZE

SEED = random_heads.DEFAULT_SEED


@pytest.mark.parametrize("name", VARIANTS)
def test_config_says_what_was_planned(case_of, name):
    """The reference's reading of the file, against the plan from which the file was written."""
    plan, config = case_of(name).plan, HeadConfig.load(case_of(name).drafter)
    assert config.hidden_size == plan.hidden
    assert config.num_heads == plan.heads
    assert config.rms_norm_eps == plan.eps
    assert config.rope.theta == (plan.rope_theta or 10000.0)
    for flag in ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output", "use_aux"):
        assert getattr(config, flag) == getattr(plan, flag), flag
    if plan.latent is None:
        assert (config.num_kv_heads, config.head_size) == (plan.kv_heads, plan.head_dim)
        assert config.rope.dim == plan.head_dim * (plan.partial_rotary or 1)
    else:
        assert config.latent.kv_lora == plan.latent.kv_lora
        assert (config.latent.nope, config.latent.rope) == (plan.latent.nope, plan.latent.rope)
        assert config.latent.v == plan.latent.v
    assert config.rope.interleaved == (plan.latent is not None)


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        random_heads.make_pair(tmp_path / name, "all_settings")
    random_heads.make_pair(tmp_path / "other", "all_settings", seed=SEED + 1)
    one, two, other = (
        (tmp_path / name / "head" / "model.safetensors").read_bytes()
        for name in ("one", "two", "other")
    )
    assert one == two
    assert one != other


def test_shards_hold_what_one_file_would(case_of, tmp_path):
    whole = VARIANTS["specforge_sharded"]
    random_heads.make_head(tmp_path, whole)
    sharded = case_of("specforge_sharded").drafter
    index = json.loads((sharded / "model.safetensors.index.json").read_text())["weight_map"]
    expected = tensor_file.read_tensors(tmp_path / "model.safetensors")
    assert set(index) == set(expected)
    assert len(set(index.values())) == 3
    for name, array in expected.items():
        np.testing.assert_array_equal(tensor_file.read_tensor(sharded / index[name], name), array)


def test_the_map_is_far_from_an_identity():
    plan = HeadPlan()
    ids = draft_to_target(plan, SEED) + np.arange(plan.draft_vocab)
    assert np.all(np.diff(ids) > 0) and ids[0] >= 0 and ids[-1] < plan.vocab
    assert np.mean(ids == np.arange(plan.draft_vocab)) < 0.05


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2"])
def test_fp8_codes_are_read_back_as_the_nearest_numbers(dtype):
    codes = np.arange(256, dtype=np.uint8)
    finite = codes[np.isfinite(stream.fp8_values(dtype))]
    values = tensor_file.widen_fp8(finite, dtype)
    np.testing.assert_array_equal(stream.fp8_values(dtype)[finite], values)
    again = tensor_file.widen_fp8(stream.fp8_codes(values, dtype), dtype)
    np.testing.assert_array_equal(again, values)
    between = np.random.default_rng(3).uniform(-400, 400, 1000).astype(np.float32)
    nearest = np.abs(values[None] - between[:, None]).min(axis=1)
    rounded = tensor_file.widen_fp8(stream.fp8_codes(between, dtype), dtype)
    np.testing.assert_allclose(np.abs(rounded - between), nearest)


def test_fp8_codes_of_no_number_are_refused():
    with pytest.raises(ValueError, match="finite"):
        tensor_file.widen_fp8(np.array([0x7F], np.uint8), "F8_E4M3")


def test_bf16_is_rounded_to_the_nearest_and_ties_to_even():
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-16, -2.7], np.float32)
    expected = [1.0, 1.0, 1 + 2**-6, 1 + 2**-7, -2.703125]
    np.testing.assert_array_equal(tensor_file.widen_bf16(stream.bf16_words(values)), expected)


def test_a_large_tensor_is_written_in_little_memory(tmp_path):
    rows = 6 * stream.POOL_ELEMENTS // 1024
    tensor = stream.random_normal("large", "BF16", (rows, 1024), 0.5, SEED, "large")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream.write_file(tmp_path / "model.safetensors", [tensor])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    # The pool and a few copies of it, not the tensor as float32 (six pools).
    assert grown < 5 * 4 * stream.POOL_ELEMENTS
    values = tensor_file.read_tensor(tmp_path / "model.safetensors", "large")
    assert values.shape == (rows, 1024)
    assert abs(values.std() - 0.5) < 0.01
    # Repeated, but not row by row.
    period = stream.POOL_ELEMENTS // 1024
    assert not np.array_equal(values[:period], values[period : 2 * period])


@pytest.mark.parametrize(
    "name, gigabytes",
    [("kimi_k2_5", 2.38), ("kimi_k2_5_mla", 3.68)],
)
def test_full_sizes_are_the_published_ones(name, gigabytes):
    """Bytes of the published files, from the plan alone: nothing is written."""
    tensors = random_heads.head_tensors(FULL_SIZE[name], SEED)
    assert sum(tensor.num_bytes for tensor in tensors) / 1e9 == pytest.approx(gigabytes, rel=0.01)


def test_every_file_is_listed_by_the_program(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["random_heads.py", "--list"])
    assert random_heads.main() == 0
    listed = capsys.readouterr().out.split()
    assert {*VARIANTS, *FULL_SIZE} < set(listed)
    assert len(listed) == len(set(listed))


def test_plain_names_undo_every_spelling():
    for plan in VARIANTS.values():
        for tensor in random_heads.head_tensors(plan, SEED):
            stored = random_heads.stored_name(plan, tensor.name)
            assert head_folder.plain_name(stored) == tensor.name
