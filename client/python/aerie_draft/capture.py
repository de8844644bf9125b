"""Records the hidden states of a Hugging Face model: python -m aerie_draft.capture --help.

What one would get wrong: index n of output_hidden_states is not boundary n. It is taken after the
final norm, so boundary n comes from a hook on the last layer, and both can be recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys

from aerie_draft.dtypes import DType
from aerie_draft.recording import RecordedTensor, RecordingWriter, Target, read_recording
from aerie_draft.wiring import FINAL_NORM, Capture, CaptureKind, captures_at

_DTYPES = {
    "bf16": DType.BFLOAT16,
    "bfloat16": DType.BFLOAT16,
    "fp16": DType.FLOAT16,
    "float16": DType.FLOAT16,
    "fp32": DType.FLOAT32,
    "float32": DType.FLOAT32,
}


def tensor_name(capture: Capture) -> str:
    """"boundary_15", "final_norm"."""
    if capture.kind is CaptureKind.FINAL_NORM:
        return "final_norm"
    return f"boundary_{capture.boundary}"


def recorded_tensors(captures) -> list[RecordedTensor]:
    return [RecordedTensor(tensor_name(c), str(c), c) for c in captures]


def parse_boundaries(text: str, num_layers: int) -> tuple[Capture, ...]:
    """"all" or "2,15,27", in this order. ValueError for one outside 0 .. num_layers."""
    if text == "all":
        return captures_at(range(num_layers + 1))
    try:
        boundaries = [int(part) for part in text.split(",") if part]
    except ValueError:
        boundaries = []
    wrong = [b for b in boundaries if not 0 <= b <= num_layers]
    if not boundaries or wrong or len(set(boundaries)) != len(boundaries):
        raise ValueError(
            f"--boundaries is {text!r}; expected 'all' or distinct numbers in 0 .. {num_layers} "
            "such as 2,15,27; correct it"
        )
    return captures_at(boundaries)


def read_prompts(path: pathlib.Path) -> list[str | list[dict]]:
    """One prompt a line; in a .jsonl file objects with "prompt" or with chat "messages"."""
    prompts: list[str | list[dict]] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        if path.suffix != ".jsonl":
            prompts.append(line)
            continue
        try:
            entry = json.loads(line)
            prompts.append(entry["messages"] if "messages" in entry else entry["prompt"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"line {number} of {path} holds no prompt; expected an object with \"prompt\" or "
                "\"messages\"; correct the line"
            ) from None
    if not prompts:
        raise ValueError(f"{path} holds no prompt; expected one a line; add some")
    return prompts


class StateCapture:
    """Hidden states of whole texts from one model. One thread at a time.

    Works on any causal model of transformers whose decoder layers stand in one list and that gives
    output_hidden_states; refuses a model where the two disagree.
    """

    def __init__(self, model, captures):
        self._model = model
        self._captures = tuple(captures)
        self._num_layers = model.config.get_text_config().num_hidden_layers
        self._layers = _decoder_layers(model, self._num_layers)
        self._checked = False

    def states(self, tokens):
        """{tensor name: [len(tokens), hidden] float32 NumPy} in one forward over all tokens."""
        import torch

        outputs = {}

        def keep(name):
            def hook(module, arguments, output):
                outputs[name] = output[0] if isinstance(output, tuple) else output

            return hook

        hooks = [self._layers[-1].register_forward_hook(keep("last"))]
        if len(self._layers) > 1:
            hooks.append(self._layers[-2].register_forward_hook(keep("last but one")))
        try:
            with torch.inference_mode():
                ids = torch.tensor([list(map(int, tokens))], device=self._model.device)
                hidden = self._model(
                    input_ids=ids, output_hidden_states=True, use_cache=False
                ).hidden_states
        finally:
            for hook in hooks:
                hook.remove()
        self._check(hidden, outputs)
        places = {}
        for capture in self._captures:
            if capture.kind is CaptureKind.FINAL_NORM:
                state = hidden[self._num_layers]
            elif capture.boundary == self._num_layers:
                state = outputs["last"]
            else:
                state = hidden[capture.boundary]
            places[tensor_name(capture)] = state.reshape(len(tokens), -1).float().cpu().numpy()
        return places

    def _check(self, hidden, outputs) -> None:
        """Once a model: hooks and hidden_states speak of the same places, but for the last."""
        import torch

        if self._checked:
            return
        name = type(self._model).__name__
        if len(hidden) != self._num_layers + 1:
            raise ValueError(
                f"{name} gives {len(hidden)} hidden states for {self._num_layers} layers; expected "
                f"{self._num_layers + 1}; this model cannot be recorded here"
            )
        if "last but one" in outputs and not torch.equal(
            outputs["last but one"].reshape(-1), hidden[self._num_layers - 1].reshape(-1)
        ):
            raise ValueError(
                f"the output of the last layer but one of {name} is not its hidden state "
                f"{self._num_layers - 1}; expected the residual stream from both; this model "
                "cannot be recorded here"
            )
        if FINAL_NORM in self._captures and torch.equal(
            outputs["last"].reshape(-1), hidden[self._num_layers].reshape(-1)
        ):
            raise ValueError(
                f"{name} gives its last hidden state without a final norm; expected one after it; "
                "leave --final-norm away"
            )
        self._checked = True


def _decoder_layers(model, num_layers: int):
    import torch

    lists = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == num_layers
    ]
    if len(lists) != 1:
        raise ValueError(
            f"{type(model).__name__} has {len(lists)} lists of {num_layers} modules; expected one, "
            "its decoder layers; this model cannot be recorded here"
        )
    return lists[0]


def _encode(tokenizer, prompt, raw: bool) -> list[int]:
    if raw and isinstance(prompt, str):
        return tokenizer(prompt)["input_ids"]
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _generate(model, prompt_ids, options):
    import torch

    if options.max_new_tokens == 0:
        return list(prompt_ids)
    ids = torch.tensor([prompt_ids], device=model.device)
    sampling = (
        {"do_sample": True, "temperature": options.temperature, "top_k": 0, "top_p": 1.0}
        if options.temperature > 0
        else {"do_sample": False}
    )
    with torch.inference_mode():
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=options.max_new_tokens,
            pad_token_id=0,
            **sampling,
        )
    return output[0].tolist()


def parse_arguments(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m aerie_draft.capture",
        description="Record hidden states of a Hugging Face model for aerie-verify.",
    )
    parser.add_argument("--model", required=True, help="folder or name of a causal model")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--prompts", type=pathlib.Path, help="one prompt a line, or .jsonl: prompt or messages"
    )
    what.add_argument(
        "--like", type=pathlib.Path, help="re-run the tokens of this recording instead"
    )
    parser.add_argument(
        "--boundaries", default="all", help="'all' or numbers such as 2,15,27 (default all)"
    )
    parser.add_argument(
        "--final-norm", action="store_true", help="also record the output of the final norm"
    )
    parser.add_argument(
        "--dtype", choices=sorted(_DTYPES), default="bf16", help="of the rows (default bf16)"
    )
    parser.add_argument(
        "--model-dtype", choices=sorted(_DTYPES), default="fp32", help="of the run (default fp32)"
    )
    parser.add_argument(
        "--max-new-tokens", type=int, default=128, help="a prompt; 0: prompts alone (default 128)"
    )
    parser.add_argument(
        "--temperature", type=float, default=0.0, help="0 is greedy (default), else sampling"
    )
    parser.add_argument("--seed", type=int, default=0, help="of sampling (default 0)")
    parser.add_argument("--raw", action="store_true", help="do not put prompts in a chat template")
    parser.add_argument("--device", default="cpu", help="where the model runs (default cpu)")
    parser.add_argument("--threads", type=int, help="of the CPU (default: torch's)")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder to make")
    options = parser.parse_args(arguments)
    if options.max_new_tokens < 0:
        parser.error(
            f"--max-new-tokens is {options.max_new_tokens}; expected 0 or more; correct it"
        )
    if not 0 <= options.temperature < float("inf"):
        parser.error(f"--temperature is {options.temperature}; expected 0 or more; correct it")
    return options


def _texts(options, tokenizer, model):
    """(name, tokens, prompt tokens) of each sample."""
    if options.like is not None:
        for sample in read_recording(options.like):
            yield sample.name, sample.tokens.tolist(), sample.prompt_tokens
        return
    for number, prompt in enumerate(read_prompts(options.prompts)):
        prompt_ids = _encode(tokenizer, prompt, options.raw)
        yield str(number), _generate(model, prompt_ids, options), len(prompt_ids)


def run(options: argparse.Namespace) -> int:
    """Returns how many samples were recorded."""
    import torch
    import transformers

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    run_dtype = getattr(torch, _DTYPES[options.model_dtype].name.lower())
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=run_dtype)
    model = model.to(options.device).eval()
    tokenizer = None
    if options.like is None:
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    config = model.config.get_text_config()
    captures = parse_boundaries(options.boundaries, config.num_hidden_layers)
    captures += (FINAL_NORM,) if options.final_norm else ()
    capture = StateCapture(model, captures)
    target = Target(
        id=pathlib.Path(options.model).name[-200:],
        hidden_size=config.hidden_size,
        num_layers=config.num_hidden_layers,
        vocab_size=config.vocab_size,
    )
    if options.like is not None:
        source = f"the tokens of {options.like.name} re-run by transformers"
    elif options.max_new_tokens == 0:
        source = "prompts run by transformers"
    elif options.temperature > 0:
        source = f"sampled by transformers at temperature {options.temperature:g}"
    else:
        source = "greedy decoding by transformers"
    source += f" {transformers.__version__}, {options.model_dtype}"
    count = 0
    with RecordingWriter(
        options.output, target, recorded_tensors(captures), _DTYPES[options.dtype], source
    ) as writer:
        for name, tokens, prompt_tokens in _texts(options, tokenizer, model):
            writer.add(tokens, capture.states(tokens), prompt_tokens, name)
            count += 1
            print(f"sample {name}: {len(tokens)} tokens", file=sys.stderr)
    return count


def main(arguments=None) -> int:
    options = parse_arguments(arguments)
    if pathlib.Path(options.model).is_dir():
        # Everything is local: an unreachable hub must not cost a time-out.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as missing:
        print(
            f"capture: {missing.name} is not installed; expected the extra "
            "aerie-draft[transformers]; install it",
            file=sys.stderr,
        )
        return 2
    try:
        count = run(options)
    except (OSError, ValueError) as fault:
        print(f"capture: {fault}", file=sys.stderr)
        return 2
    print(f"{options.output}: {count} samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
