"""Hidden states of the demo's target for the guard's tests: what workers would send, right or wrong.

Writes texts.json's sequences and the evaluation recording's, at chosen captures, into one
safetensors file. Row p of N.hidden[c] is the state of position first + p at captures[c]; captures
are boundaries, and -1 is the output of the final norm. The evaluation sequences come first and hold
every capture: the profile is made from them.
"""

import argparse
import json
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
# What the planted wirings of the tests need.
FEW = [0, 1, 2, 3, 8, 14, 15, 16, 20, 26, 27, 28, 29, 30, -1]
# Of a long prompt only its end: sessions may begin anywhere.
KEPT_TOKENS = 256


def evaluation_texts():
    notes = json.loads((GOLDEN / "eval" / "recording.json").read_text())["sequences"]
    tensors = load_file(GOLDEN / "eval" / "recording.safetensors")
    for note in notes:
        tokens = tensors[f"{note['index']}.tokens"].tolist()
        yield {"kind": "evaluation", "prompt_tokens": note["prompt_tokens"], "tokens": tokens}


def all_captures(model, tokens):
    """[captures, tokens, hidden]: boundaries 0..n, then the final norm."""
    last = []
    hook = model.model.layers[-1].register_forward_hook(lambda _, __, out: last.append(out))
    with torch.inference_mode():
        states = model.model(torch.tensor([tokens]), output_hidden_states=True).hidden_states
    hook.remove()
    # transformers hands out the last state behind the final norm.
    before_norm = last[0][0] if isinstance(last[0], tuple) else last[0]
    before_norm = before_norm.view(-1, before_norm.shape[-1])
    return torch.stack([*[state[0] for state in states[:-1]], before_norm, states[-1][0]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder; made if missing")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(arguments.target, dtype=torch.float32).eval()
    layers = model.config.num_hidden_layers
    every = [*range(layers + 1), -1]
    texts = [*evaluation_texts()]
    evaluated = len(texts)
    texts += json.loads((GOLDEN / "guard" / "texts.json").read_text())["texts"]

    tensors, notes = {}, []
    for index, text in enumerate(texts):
        chosen = every if index < evaluated else FEW
        first = max(0, len(text["tokens"]) - KEPT_TOKENS)
        states = all_captures(model, text["tokens"])[:, first:]
        tensors[f"{index}.hidden"] = states[chosen].to(torch.bfloat16).contiguous()
        tensors[f"{index}.tokens"] = torch.tensor(text["tokens"][first:], dtype=torch.int32)
        notes.append(
            {
                "kind": text["kind"],
                "first": first,
                "prompt_rows": int(np.clip(text["prompt_tokens"] - first, 1, None)),
                "captures": chosen,
            }
        )
    arguments.out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, arguments.out / "captures.safetensors")
    description = {"hidden_size": model.config.hidden_size, "layers": layers, "texts": notes}
    (arguments.out / "captures.json").write_text(json.dumps(description))


if __name__ == "__main__":
    main()
