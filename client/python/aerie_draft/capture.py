"""Records the hidden states of a Hugging Face model: python -m aerie_draft.capture --help."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys

from aerie_draft.dtypes import DType
from aerie_draft.recording import RecordingWriter, Target, read_recording
from aerie_draft.wiring import FINAL_NORM, Capture, captures_at

_DTYPES = {
    "bf16": DType.BFLOAT16,
    "bfloat16": DType.BFLOAT16,
    "fp16": DType.FLOAT16,
    "float16": DType.FLOAT16,
    "fp32": DType.FLOAT32,
    "float32": DType.FLOAT32,
}


def parse_boundaries(text: str, num_layers: int) -> tuple[Capture, ...]:
    """ "all" or "2,15,27", in this order. ValueError for one outside 0 .. num_layers."""
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
                f'line {number} of {path} holds no prompt; expected an object with "prompt" or '
                '"messages"; correct the line'
            ) from None
    if not prompts:
        raise ValueError(f"{path} holds no prompt; expected one a line; add some")
    return prompts


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

    from aerie_draft.capture_states import StateCapture, recorded_tensors

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
