"""aerie-inspect: whole heads are taken and described, broken ones refused for every one of their
faults. aerie-head-logits, which loads as the server does, must agree with it."""

from __future__ import annotations

import pytest

import head_logits_tool
from broken_heads import BROKEN, make_broken_pair
from head_variants import VARIANTS
from random_heads import make_rows

pytestmark = pytest.mark.variants

CERTAINTIES = {"certain", "by-default-pattern", "declared-by-flag", "ambiguous"}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_whole_head_is_described(inspector, case_of, name):
    case = case_of(name)
    report = head_logits_tool.inspect(inspector, case.drafter, case.target)
    assert report["ok"], report["errors"]
    assert report["errors"] == []
    assert report["wiring"]["certainty"] in CERTAINTIES - {"ambiguous"}
    if case.plan.use_aux:
        assert report["wiring"]["boundaries"] == case.plan.boundaries
    assert report["tensors"]
    assert report["parameter_bytes"] > 0
    for setting, shown in report["settings"].items():
        assert shown["source"], f"{setting} has no source"


@pytest.mark.parametrize("name", VARIANTS)
def test_settings_are_those_of_another_reading(inspector, case_of, name):
    """The same file read by head_folder.py, which shares no code with the server."""
    case = case_of(name)
    report = head_logits_tool.inspect(inspector, case.drafter, case.target)
    shown = {setting: entry["value"] for setting, entry in report["settings"].items()}
    head = case.reference.head
    config, rope = head.config, head.config.rope
    numbers = {
        "hidden_size": config.hidden_size,
        "num_layers": len(head.layers),
        "num_captures": case.plan.captures if config.use_aux else 1,
        "draft_vocab_size": len(head.lm_head),
        "num_heads": config.num_heads,
        "num_kv_heads": config.num_kv_heads,
        "head_dim": config.head_size,
        "rms_norm_eps": config.rms_norm_eps,
        "softmax_scale": head.attention_scale,
        "rope_theta": rope.theta,
        "rope_dims": rope.dim,
    }
    if rope.kind == "yarn":
        numbers["rope_amplitude"] = rope.amplitude
    # Settings are shown with six digits.
    assert {key: float(shown[key]) for key in numbers} == pytest.approx(numbers, rel=1e-5)
    flags = {
        "norm_before_residual": config.norm_before_residual,
        "norm_before_fc": config.norm_before_fc,
        "fc_norm": config.fc_norm,
        "norm_output": config.norm_output,
        "use_aux_hidden_state": config.use_aux,
        "rope_interleaved": rope.interleaved,
        "qk_norm": head.layers[0].q_norm is not None if not config.latent else False,
    }
    assert {key: shown[key] for key in flags} == {k: str(v).lower() for k, v in flags.items()}
    assert shown["rope_type"] == rope.kind


def test_a_config_that_counts_other_layers_than_the_file_is_warned_of(inspector, case_of):
    """Such files are published: the number is the target's."""
    case = case_of("safeailab_full_vocabulary")
    report = head_logits_tool.inspect(inspector, case.drafter, case.target)
    assert any("num_hidden_layers" in warning and "40" in warning for warning in report["warnings"])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_head_is_refused_for_each_of_its_faults(inspector, tmp_path, name):
    broken = make_broken_pair(tmp_path, name)
    report = head_logits_tool.inspect(inspector, tmp_path / "head", tmp_path / "target")
    assert not report["ok"]
    assert len(report["errors"]) >= (3 if name.startswith("three_faults") else 1)
    for said in broken.says:
        assert any(said.lower() in error.lower() for error in report["errors"]), (
            f"no error speaks of {said}: {report['errors']}"
        )


@pytest.mark.parametrize("name", BROKEN)
def test_no_draft_comes_from_a_broken_head(binaries, tmp_path, name):
    plan = make_broken_pair(tmp_path, name).plan
    rows = make_rows(plan, 4)
    folders = tmp_path / "head", tmp_path / "target"
    with pytest.raises(head_logits_tool.Refused):
        head_logits_tool.run(binaries, *folders, rows.aux, rows.tokens, 1)


def test_ambiguous_layer_ids_can_be_declared(inspector, tmp_path):
    make_broken_pair(tmp_path, "ambiguous_layer_ids")  # ids 3, 7, 9
    folders = tmp_path / "head", tmp_path / "target"
    for convention, boundaries in (("input", [3, 7, 9]), ("output", [4, 8, 10])):
        flags = ("--layer-id-convention", f"{convention}-of-layer")
        report = head_logits_tool.inspect(inspector, *folders, flags)
        assert report["ok"], report["errors"]
        assert report["wiring"]["boundaries"] == boundaries
        assert report["wiring"]["certainty"] == "declared-by-flag"
