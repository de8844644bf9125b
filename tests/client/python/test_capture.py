"""Recording a Hugging Face model: each tensor is what its name says, the last one above all."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from aerie_draft import FINAL_NORM, capture, captures_at  # noqa: E402
from aerie_draft.capture_states import StateCapture  # noqa: E402
from aerie_draft.recording import read_recording  # noqa: E402
from tiny_target import PROMPT, VOCAB, tiny_llama  # noqa: E402

EVERYWHERE = (*captures_at(range(5)), FINAL_NORM)


def by_hand(model, tokens):
    """[boundary 0, ..., boundary 4, final norm], layer by layer, without output_hidden_states."""
    seen = []
    hooks = [
        layer.register_forward_pre_hook(lambda m, args, kw: seen.append(args[0]), with_kwargs=True)
        for layer in model.model.layers
    ]
    norm = model.model.norm
    hooks.append(norm.register_forward_hook(lambda m, args, out: seen.extend([args[0], out])))
    with torch.inference_mode():
        model(input_ids=torch.tensor([tokens]))
    for hook in hooks:
        hook.remove()
    return [s[0].numpy() for s in seen]


def test_every_place_is_the_one_its_name_says(model):
    states = StateCapture(model, EVERYWHERE).states(PROMPT)
    assert list(states) == [*(f"boundary_{b}" for b in range(5)), "final_norm"]
    for (name, rows), expected in zip(states.items(), by_hand(model, PROMPT), strict=True):
        np.testing.assert_array_equal(rows, expected, err_msg=name)
    assert not np.allclose(states["boundary_4"], states["final_norm"])


def test_a_model_without_a_final_norm_has_none_to_record():
    model = tiny_llama()
    model.model.norm = torch.nn.Identity()
    StateCapture(model, captures_at([4])).states(PROMPT)
    with pytest.raises(ValueError, match="without a final norm"):
        StateCapture(model, [FINAL_NORM]).states(PROMPT)


def test_a_model_whose_layers_cannot_be_told_is_refused():
    model = tiny_llama()
    model.twin = torch.nn.ModuleList(torch.nn.Identity() for _ in range(4))
    with pytest.raises(ValueError, match="2 lists of 4 modules"):
        StateCapture(model, EVERYWHERE)


def test_a_model_whose_layers_do_not_give_the_residual_stream_is_refused():
    model = tiny_llama()
    states = StateCapture(model, EVERYWHERE)
    inner = states._layers[-2]
    states._layers = torch.nn.ModuleList([*states._layers[:-2], inner.mlp, states._layers[-1]])
    with pytest.raises(ValueError, match="last layer but one"):
        states.states(PROMPT)


@pytest.mark.parametrize("text, boundaries", [("all", range(5)), ("2,0", [2, 0]), ("4", [4])])
def test_boundaries_are_read_in_their_order(text, boundaries):
    assert capture.parse_boundaries(text, 4) == captures_at(boundaries)


@pytest.mark.parametrize("text", ["", "5", "-1", "1,1", "a", "1;2"])
def test_boundaries_that_the_target_lacks_are_refused(text):
    with pytest.raises(ValueError, match="expected 'all' or distinct numbers in 0 .. 4"):
        capture.parse_boundaries(text, 4)


def test_prompts_are_lines_or_json_lines(tmp_path):
    plain = tmp_path / "a.txt"
    plain.write_text("one\n\ntwo\n")
    assert capture.read_prompts(plain) == ["one", "two"]
    chats = tmp_path / "a.jsonl"
    messages = [{"role": "user", "content": "x"}]
    chats.write_text(json.dumps({"prompt": "one"}) + "\n" + json.dumps({"messages": messages}))
    assert capture.read_prompts(chats) == ["one", messages]
    chats.write_text('{"text": 1}')
    with pytest.raises(ValueError, match="line 1 of"):
        capture.read_prompts(chats)
    plain.write_text("\n")
    with pytest.raises(ValueError, match="holds no prompt"):
        capture.read_prompts(plain)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tiny model with a tokenizer of single words, as a folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("target")
    tiny_llama().save_pretrained(folder)
    words = {f"w{i}": i for i in range(VOCAB)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0")
    fast.chat_template = "{% for m in messages %}w1 {{ m.content }} w2{% endfor %}"
    fast.save_pretrained(folder)
    return folder


def record(saved, tmp_path, *flags):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("w5 w9 w17\nw3\n")
    output = tmp_path / "recording"
    arguments = ["--model", str(saved), "--output", str(output), "--threads", "1"]
    if "--like" not in flags:
        arguments += ["--prompts", str(prompts)]
    assert capture.main([*arguments, *flags]) == 0
    return read_recording(output)


def test_a_recording_holds_the_models_own_text_and_its_states(saved, tmp_path, model):
    recording = record(saved, tmp_path, "--final-norm", "--max-new-tokens", "6", "--dtype", "fp32")
    assert [t.name for t in recording.tensors][-2:] == ["boundary_4", "final_norm"]
    assert [t.claim for t in recording.tensors] == list(EVERYWHERE)
    first, second = recording
    assert first.tokens[: first.prompt_tokens].tolist() == [1, 5, 9, 17, 2]
    assert second.tokens[: second.prompt_tokens].tolist() == [1, 3, 2]
    assert len(first.tokens) == 5 + 6
    expected = by_hand(model, first.tokens.tolist())
    for tensor, rows in zip(recording.tensors, expected, strict=True):
        np.testing.assert_allclose(first.rows(tensor.name), rows, atol=1e-5)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor(first.tokens[None].astype(np.int64))).logits[0]
    assert logits.argmax(-1)[4:-1].tolist() == first.tokens[5:].tolist()  # greedy


def test_sampling_follows_its_seed(saved, tmp_path):
    texts = []
    for number, seed in enumerate(("1", "1", "2")):
        folder = tmp_path / str(number)
        folder.mkdir()
        recording = record(
            saved, folder, "--temperature", "5", "--seed", seed, "--max-new-tokens", "20"
        )
        texts.append(recording.samples[0].tokens.tolist())
    assert texts[0] == texts[1] != texts[2]


def test_raw_prompts_go_without_the_chat_template(saved, tmp_path):
    recording = record(saved, tmp_path, "--raw", "--max-new-tokens", "0", "--boundaries", "2")
    assert recording.samples[0].tokens.tolist() == [5, 9, 17]
    assert [t.name for t in recording.tensors] == ["boundary_2"]


def test_like_re_runs_the_tokens_of_another_recording(saved, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    record(saved, few, "--boundaries", "3", "--max-new-tokens", "4", "--dtype", "fp32")
    again = record(
        saved, tmp_path, "--like", str(few / "recording"), "--final-norm", "--dtype", "fp32"
    )
    original = read_recording(few / "recording")
    for old, new in zip(original, again, strict=True):
        assert (old.name, old.prompt_tokens) == (new.name, new.prompt_tokens)
        assert old.tokens.tolist() == new.tokens.tolist()
        np.testing.assert_allclose(new.rows("boundary_3"), old.rows("boundary_3"), atol=1e-6)
    assert len(again.tensors) == 6


def test_a_fault_is_told_and_ends_with_two(saved, tmp_path, capsys):
    arguments = ["--model", str(saved), "--output", str(tmp_path / "r"), "--threads", "1"]
    prompts = tmp_path / "p.txt"
    prompts.write_text("w1\n")
    assert capture.main([*arguments, "--prompts", str(prompts), "--boundaries", "9"]) == 2
    assert "--boundaries is '9'; expected" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--max-new-tokens", "-1"], ["--temperature", "-1"]])
def test_flags_out_of_range_are_refused(flags, capsys):
    with pytest.raises(SystemExit):
        capture.main(["--model", "m", "--output", "o", "--prompts", "p", *flags])
    assert f"{flags[0]} is" in capsys.readouterr().err
