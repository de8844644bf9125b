"""A training dump with wrong labels, as a play: what people concluded from it, and what is true.

Started by demo/wiring. The dump is real: torch-saved states of the demo's target. Its tensors are
the three boundaries that the demo's head was trained on and the final norm, but they are labelled
as if the first were the embedding. At the end a running server meets a worker with the same
mistake. Exit status 1 when the tools do not find it all out.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"  # Everything is local: an unreachable hub must not cost time.

import guard_act  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from aerie_draft import FINAL_NORM, captures_at, importers  # noqa: E402
from aerie_draft.capture_states import StateCapture, recorded_tensors, tensor_name  # noqa: E402
from aerie_draft.dtypes import DType  # noqa: E402
from aerie_draft.recording import RecordedTensor, RecordingWriter, Target  # noqa: E402
from aerie_draft.recording import read_recording  # noqa: E402
from screen import paint  # noqa: E402

DUMPED = (*captures_at([2, 15, 27]), FINAL_NORM)
DUMP_FILES = ("aux_0", "aux_1", "aux_2", "final")
LABELS = ("embed", "layer 2", "layer 15", "layer 27")
# The kinds of prompts that the head was trained on, so that few texts suffice.
TOPICS = ("volcanoes", "bees", "bread", "stress", "inflation", "sleep", "chess", "tea", "rain")
TOPICS += ("gardening", "saving money", "learning a language", "teaching", "a lighthouse keeper")
PROMPTS = [f"Give some tips about {topic}." for topic in TOPICS]
PROMPTS += [f"Explain {topic} to a beginner." for topic in TOPICS]
PROMPTS += [f"Summarize what people should know about {topic}." for topic in TOPICS]
NEW_TOKENS = 64
# What the live captures of the target are compared at: everywhere.
LIVE_PROMPTS = (
    "Write a Python function that reverses a list.",
    "Who was Ada Lovelace?",
    "Where is the train station, and when does the next train leave?",
)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verify", type=pathlib.Path, required=True, help="the program")
    parser.add_argument("--drafter", type=pathlib.Path, required=True, help="folder of the head")
    parser.add_argument("--target", type=pathlib.Path, required=True, help="folder of the target")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for files")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--json", type=pathlib.Path, help="file for the findings")
    return parser.parse_args()


def act(number: int, title: str) -> None:
    print(f"\n{paint('1', f'{number}. {title}')}", flush=True)


def say(text: str, code: str = "0") -> None:
    print(f"   {paint(code, text)}", flush=True)


def write_texts(model, tokenizer) -> list[tuple[list[int], int]]:
    """(tokens, prompt tokens) of texts that the target writes, all in one batch."""
    prompts = [encode(tokenizer, prompt) for prompt in PROMPTS]
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    with torch.inference_mode():
        made = model.generate(
            ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0
        )
    texts = []
    for prompt, row in zip(prompts, made[:, longest:].tolist(), strict=True):
        end = row.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in row else len(row)
        texts.append((prompt + row[:end], len(prompt)))
    return texts


def encode(tokenizer, prompt: str) -> list[int]:
    chat = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def dump(model, texts, folder: pathlib.Path) -> None:
    """As a patched engine would leave it: a folder a sample, a file a tensor, no word on layers."""
    capture = StateCapture(model, DUMPED)
    for number, (tokens, prompt_tokens) in enumerate(texts):
        sample = folder / f"sample_{number}"
        sample.mkdir(parents=True)
        states = capture.states(tokens)
        for file, place in zip(DUMP_FILES, DUMPED, strict=True):
            rows = torch.from_numpy(states[tensor_name(place)]).to(torch.bfloat16)
            torch.save(rows, sample / f"{file}.pt")
        torch.save(torch.tensor(tokens), sample / "input_ids.pt")
        torch.save(torch.arange(len(tokens)) >= prompt_tokens, sample / "loss_mask.pt")


def record_live(model, tokenizer, target: Target, folder: pathlib.Path) -> None:
    """Other texts, everywhere in the target: what a live engine could capture."""
    places = (*captures_at(range(target.num_layers + 1)), FINAL_NORM)
    capture = StateCapture(model, places)
    with RecordingWriter(folder, target, recorded_tensors(places), DType.BFLOAT16, "live") as out:
        for prompt in LIVE_PROMPTS:
            tokens = encode(tokenizer, prompt)
            out.add(tokens, capture.states(tokens))


def relabel(recording: pathlib.Path, claims: dict, folder: pathlib.Path) -> None:
    """The same recording with other claims; rows are copied, not measured again."""
    source = read_recording(recording)
    tensors = [RecordedTensor(t.name, str(claims[t.name]), claims[t.name]) for t in source.tensors]
    with RecordingWriter(folder, source.target, tensors, source.dtype, source.source) as out:
        for sample in source:
            out.add(sample.tokens, sample.stored, sample.prompt_tokens, sample.name)


class Tools:
    def __init__(self, arguments: argparse.Namespace):
        self._arguments = arguments

    def _run(self, *command) -> tuple[int, dict]:
        done = subprocess.run(
            [str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode in (1, 2):
            sys.exit(f"demo/wiring: {' '.join(map(str, command))} ended with {done.returncode}")
        return done.returncode, json.loads(done.stdout)

    def match(self, a: pathlib.Path, b: pathlib.Path) -> dict:
        say(f"$ aerie-verify match {a} {b}", "2")
        return self._run(self._arguments.verify, "match", a, b, "--json")[1]

    def verify(self, drafter, captures, *flags) -> tuple[int, dict]:
        shown = " ".join(map(str, flags))
        say(f"$ aerie-verify --drafter {drafter} --captures {captures} {shown}".rstrip(), "2")
        report = self._arguments.work / "report.json"
        command = (self._arguments.verify, "--drafter", drafter, "--captures", captures)
        command += ("--target", self._arguments.target, "--threads", self._arguments.threads)
        done = subprocess.run(
            [str(part) for part in (*command, "--no-what-if", "--json", report, *flags)],
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode in (1, 2):
            sys.exit(f"demo/wiring: aerie-verify ended with {done.returncode}")
        return done.returncode, json.loads(report.read_text())


def with_ids(drafter: pathlib.Path, ids: list[int], folder: pathlib.Path) -> None:
    """A copy of the head whose config lists these layer ids."""
    shutil.copytree(drafter, folder)
    config = json.loads((folder / "config.json").read_text())
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = ids
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def of_candidate(result: dict, names: list[str]) -> dict | None:
    """The candidate of these tensors, unshifted."""
    for candidate in result["candidates"]:
        if candidate["tensors"] == names and candidate["shift"] == 0:
            return candidate
    return None


def numbers(candidate: dict) -> str:
    accuracy, likelihood = candidate["accuracy"], candidate["mean_log_likelihood"]
    return f"{100 * accuracy:.1f} % of next tokens right, log-likelihood {likelihood:.2f}"


def play(arguments: argparse.Namespace) -> dict:
    work, tools = arguments.work, Tools(arguments)
    model = transformers.AutoModelForCausalLM.from_pretrained(arguments.target, dtype=torch.float32)
    model = model.eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.target)
    config = model.config
    target = Target(
        arguments.target.name, config.hidden_size, config.num_hidden_layers, config.vocab_size
    )

    act(1, "A dump of hidden states, and what its tensors are called")
    dump(model, write_texts(model, tokenizer), work / "dump")
    flags = ["--target", str(arguments.target), "--labels", ",".join(LABELS)]
    flags += ["--output", str(work / "dumped"), "--convention", "input"]
    if importers.main([str(work / "dump"), *flags]) != 0:
        sys.exit(1)
    for file, label in zip(DUMP_FILES, LABELS, strict=True):
        say(f"{file}.pt is called {label!r}")
    ids = json.loads((arguments.drafter / "config.json").read_text())["eagle_config"]
    ids = ids["eagle_aux_hidden_state_layer_ids"]
    say(f"The head was trained on the first three. Its config lists the layers {ids}.")
    say("So the config must be wrong, people say: train and serve the embedding, layers 2 and 15.")

    act(2, "The labels against live captures of the target, on other texts")
    record_live(model, tokenizer, target, work / "live")
    match = tools.match(work / "dumped", work / "live")
    found = {m["tensor"]: m for m in match["matches"]}
    for file, label in zip(DUMP_FILES, LABELS, strict=True):
        m = found[file]
        say(
            f"{file}, called {label!r}: {m['verdict']} as {m['best']}, {m['distance']:.4f} away; "
            f"the next, {m['runner_up']}, is {m['runner_up_distance']:.2f} away"
        )
    for sentence in match["contradictions"]:
        say(f"- {sentence}", "31")
    right = [tensor_name(c) for c in DUMPED]
    labels_contradicted = (
        [found[f]["best"] for f in DUMP_FILES] == right
        and all(found[f]["verdict"] == "same" for f in DUMP_FILES)
        and found["aux_0"]["claims_differ"]
    )

    act(3, "The head's config against the same rows, called by what they are")
    relabel(work / "dumped", dict(zip(DUMP_FILES, DUMPED, strict=True)), work / "relabelled")
    measured = work / "measured-head"
    shutil.copytree(arguments.drafter, measured)
    status, result = tools.verify(
        measured, work / "relabelled", "--layer-id-convention", "output-of-layer", "--write-wiring"
    )
    say(f"{result['verdict']}: {result['reason']}", "1;32" if status in (0, 5) else "1;31")
    declared = result["declared"] or {}
    if declared:
        say(f"{ids} as outputs of layers, {' | '.join(declared['tensors'])}: {numbers(declared)}")
    config_verified = status in (0, 5) and declared.get("tensors") == list(DUMP_FILES[:3])

    act(4, "The fix that the labels suggest")
    with_ids(arguments.drafter, [0, 2, 15], work / "fixed-head")
    status, fixed = tools.verify(
        work / "fixed-head", work / "relabelled", "--layer-id-convention", "input-of-layer"
    )
    say(f"{fixed['verdict']}: {fixed['reason']}", "1;31" if status == 3 else "1;33")
    if wrong := of_candidate(fixed, ["target.embedding", *DUMP_FILES[:2]]):
        say(f"embedding, boundary 2, boundary 15: {numbers(wrong)}")
    wrong_fix_rejected = status == 3

    act(5, "The same mistake in a running server")
    guard = {"guard_of_right_worker": None, "guard_rounds_to_alarm": None}
    if (measured / "wiring.json").exists():
        say("The measurement is beside the head, with a profile of the rows: the live guard reads it.")
        guard = guard_act.play(arguments, measured, work / "relabelled", say)

    return {
        **guard,
        "labels_contradicted": labels_contradicted,
        "config_verified": config_verified,
        "wrong_fix_rejected": wrong_fix_rejected,
        "verdict_of_config": result["verdict"],
        "verdict_of_wrong_fix": fixed["verdict"],
        "contradictions": match["contradictions"],
    }


def main() -> int:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    findings = play(arguments)
    print()
    expected = ("labels_contradicted", "config_verified", "wrong_fix_rejected")
    for key in expected:
        say(f"{key.replace('_', ' ')}: {'yes' if findings[key] else 'NO'}", "1")
    rounds = findings["guard_rounds_to_alarm"]
    say(f"guard rounds to alarm: {'NO' if rounds is None else rounds}", "1")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(findings, indent=2) + "\n")
    guarded = rounds is not None and findings["guard_of_right_worker"] == "ok"
    return 0 if guarded and all(findings[key] for key in expected) else 1


if __name__ == "__main__":
    sys.exit(main())
