"""The benchmark of CUDA devices where there is none: its program on the emulation, the arithmetic of
its ratios, and what it says when time or a target is missing."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import benchmark

PROGRAM = pathlib.Path(os.environ["AERIE_BIN"]) / "aerie-cuda-benchmark"
# So small that a CPU, thread by thread, is done in seconds.
SMALL = {"--device": "emulated", "--batches": "1,2", "--extends": "1,70", "--rounds": "1", "--repeats": "2",
         "--copy-bytes": "4096", "--product-size": "64", "--kv-memory": "4000000"}


def words(flags):
    return [word for pair in flags.items() for word in pair]


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A random head and its target, of the least size."""
    sys.path[:0] = [str(benchmark.ROOT / "tests/testing"), str(benchmark.ROOT / "tests/testing/heads")]
    import random_heads
    from head_plans import HeadPlan

    folder = tmp_path_factory.mktemp("head")
    random_heads.make_head(folder / "head", HeadPlan())
    random_heads.make_target(folder / "target", HeadPlan())
    return folder


def measure(small, *flags):
    """`flags` take the place of those of the same name."""
    heads = {"--drafter": str(small / "head"), "--target": str(small / "target")}
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    return subprocess.run([PROGRAM, *words(heads | SMALL | given)], capture_output=True, text=True, check=False)


def test_the_program_measures_every_pass_with_graphs_and_without(small):
    done = measure(small, "--contexts", "5,20")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert out["device"] == "emulated on the CPU"
    # q, k, v, o, gate, up, down and the output matrix; fc is read by no draft step.
    elements = 128 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 112 + 64 * 96
    assert out["step_bytes"] == 2 * elements
    found = [(entry["context"], entry["batch"], entry["graphs"]) for entry in out["steps"]]
    assert found == [(c, b, g) for c in (5, 20) for b in (1, 2) for g in (True, False)]
    for entry in out["steps"]:
        assert entry["floor_us"] == pytest.approx(out["step_bytes"] / out["bandwidth_gb_s"] / 1e3)
        assert entry["step_over_floor"] == pytest.approx(entry["step_us"] / entry["floor_us"])
        # Two heads of 16 channels, keys and values in bfloat16.
        kv_us = entry["batch"] * entry["context"] * 2 * 2 * 16 * 2 / out["bandwidth_gb_s"] / 1e3
        assert entry["floor_with_kv_us"] == pytest.approx(entry["floor_us"] + kv_us)
        assert entry["step_median_us"] >= entry["step_us"] > 0
    assert [entry["rows"] for entry in out["extends"]] == [1, 70]
    for entry in out["extends"]:
        assert entry["of_product"] == pytest.approx(entry["tflops"] / out["product_tflops"])
    assert out["left_out"] == []


@pytest.mark.parametrize("dtype, bytes_each", [("float32", 4), ("int8", 1), ("fp8", 1)])
def test_every_type_of_weights_is_measured_with_its_bytes(small, dtype, bytes_each):
    done = measure(small, "--contexts", "5", "--batches", "1", "--extends", "1", "--dtype", dtype)
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    elements, channels = 128 * 128 + 64 * 64 + 3 * 64 * 112 + 64 * 96, 128 + 64 + 2 * 112 + 64 + 96
    assert out["step_bytes"] == bytes_each * elements + (4 * channels if bytes_each == 1 else 0)
    assert out["compute_path"].endswith("plain loops")


def test_what_no_time_is_left_for_is_named(small):
    done = measure(small, "--contexts", "5", "--seconds", "0")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert out["steps"] == out["extends"] == []
    assert out["left_out"] == ["step: context 5, batch 1", "step: context 5, batch 2", "extend: 1 rows",
                               "extend: 70 rows"]


@pytest.mark.parametrize("flags, said", [
    (("--device", "cpu"), "--device is \"cpu\"; expected cuda:N or emulated; aerie-step-benchmark"),
    (("--device", "tpu"), "--device is \"tpu\"; expected"),
    (("--drafter", "/nowhere"), "/nowhere"),
])
def test_a_wrong_flag_is_refused_by_name(small, flags, said):
    done = measure(small, "--contexts", "5", *flags)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stdout == ""


def run_of(step_us, batches=(1, 8)):
    """What the program prints, as far as ratios look at it."""
    steps = [{"context": context, "batch": batch, "graphs": graphs,
              "step_us": step_us * batch * (1 if graphs else 3) + context - 128,
              "step_over_floor": (step_us * batch * (1 if graphs else 3) + context - 128) / 50}
             for context in (128, 2048) for batch in batches for graphs in (False, True)]
    return {"device": "NVIDIA H200", "capability": "9.0", "bandwidth_gb_s": 4000.0, "product_tflops": 300.0,
            "steps": steps, "extends": [{"rows": 3, "of_product": 0.1}, {"rows": 512, "of_product": 0.4}],
            "left_out": []}


def test_ratios_are_of_the_entries_that_they_name():
    out = benchmark.assemble({"8b bfloat16": run_of(60.0), "demo bfloat16": run_of(20.0)}, [])
    assert out["device"] == "NVIDIA H200"
    assert out["step_over_floor_b1_8b"] == pytest.approx(60 / 50)
    assert out["step_over_floor_b1"] == pytest.approx(20 / 50)
    assert out["no_graphs_over_graphs_b1_8b"] == pytest.approx(3)
    assert out["b8_over_b1_8b"] == pytest.approx(8)
    assert out["extend512_of_product_8b"] == pytest.approx(0.4)
    assert out["step_over_floor_b1_8b_int8"] is None
    assert out["missing"]["step_over_floor_b1_8b_int8"] == "8b int8 was not run"


def test_a_step_that_was_left_out_is_null_with_its_reason():
    run = run_of(60.0, batches=(1,)) | {"left_out": ["step: context 128, batch 8"]}
    out = benchmark.assemble({"8b bfloat16": run}, ["demo bfloat16: no time was left"])
    assert out["b8_over_b1_8b"] is None
    assert out["missing"]["b8_over_b1_8b"] == "8b bfloat16 has no step of batch 8 at context 128"
    assert out["left_out"] == ["demo bfloat16: no time was left", "8b bfloat16: step: context 128, batch 8"]


def test_the_script_writes_the_file_and_leaves_the_rest_out(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "large_head", lambda folder: small)
    monkeypatch.setattr(benchmark, "PLAN", (benchmark.Measurement("8b", "bfloat16", contexts="5"),
                                            benchmark.Measurement("demo", "int8")))
    file = tmp_path / "out" / "figures.json"
    status = benchmark.main(["--program", str(PROGRAM), "--json", str(file), "--target", str(tmp_path / "none"),
                             "--seconds", "100", *words(SMALL)])
    assert status == 0
    out = json.loads(file.read_text())
    assert out["detail"]["8b bfloat16"]["steps"][0]["context"] == 5
    assert out["left_out"] == [f"demo int8: there is no target in {tmp_path / 'none'}"]
    shown = json.loads(capsys.readouterr().out)
    assert shown == {key: value for key, value in out.items() if key != "detail"}


def test_without_time_nothing_is_begun(small, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "large_head", lambda folder: pytest.fail("a head was made"))
    file = tmp_path / "figures.json"
    assert benchmark.main(["--program", "/nowhere", "--json", str(file), "--only", "8b", "--seconds", "0"]) == 1
    assert json.loads(file.read_text())["left_out"] == [
        f"8b {dtype}: no time was left" for dtype in ("bfloat16", "int8", "fp8")]


def test_a_program_that_fails_or_hangs_is_left_out(tmp_path):
    assert benchmark.run_program([sys.executable, "-c", "raise SystemExit(3)"], 60) == (
        "it ended with 3; see what it said above")
    waits = [sys.executable, "-c", "import signal; signal.pause()"]
    assert benchmark.run_program(waits, 0.2) == "it was stopped after 0 s"
