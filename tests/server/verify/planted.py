"""Plants wirings for aerie-verify: recordings of the demo's target, and copies of the demo's head that say something
else about them.

The truth of the demo's head is boundaries 2, 15, 27 in this order. A planted head claims another list; a planted
recording calls its tensors by other names, or is shifted.
"""

import dataclasses
import json
import pathlib
import shutil

from aerie_draft.capture_states import StateCapture, recorded_tensors
from aerie_draft.dtypes import DType
from aerie_draft.recording import RecordedTensor, RecordingWriter, Target, read_recording
from aerie_draft.wiring import FINAL_NORM, captures_at

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRUE = (2, 15, 27)


def eval_texts():
    """(name, tokens, prompt tokens) of the demo head's evaluation."""
    from safetensors import safe_open

    # The rows in there are bfloat16, which NumPy does not know, and are not needed.
    stored = safe_open(ROOT / "tests/golden/eval/recording.safetensors", "numpy")
    described = json.loads((ROOT / "tests/golden/eval/recording.json").read_text())
    for entry in described["sequences"]:
        tokens = stored.get_tensor(f"{entry['index']}.tokens")
        yield f"eval{entry['index']}", tokens.tolist(), entry["prompt_tokens"]


def record(target, output, texts, boundaries=range(31), final_norm=True, threads=1):
    """Runs the target over the texts and writes a recording of these boundaries."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
    captures = captures_at(boundaries) + ((FINAL_NORM,) if final_norm else ())
    capture = StateCapture(model, captures)
    config = model.config
    about = Target("SmolLM2-135M-Instruct", config.hidden_size, config.num_hidden_layers, config.vocab_size)
    with RecordingWriter(output, about, recorded_tensors(captures), DType.BFLOAT16, "transformers, float32") as writer:
        for name, tokens, prompt_tokens in texts:
            writer.add(tokens, capture.states(tokens), prompt_tokens, name)


@dataclasses.dataclass(frozen=True)
class Plant:
    """One recorded tensor of a planted recording: what it is, and what it is said to be."""

    tensor: str  # of the recording that it is taken from
    name: str
    label: str = ""
    claim: object = None  # a Capture, "embedding" or None


def replant(recording, output, plants, shift=0, samples=None, length=None):
    """A copy of some tensors of a recording under other names. `shift`: row p is the state of position p - shift."""
    import numpy as np

    source = read_recording(recording)
    tensors = [RecordedTensor(p.name, p.label, p.claim) for p in plants]
    with RecordingWriter(output, source.target, tensors, DType.BFLOAT16, "planted") as writer:
        for i, sample in enumerate(source):
            if samples is not None and i not in samples:
                continue
            end = len(sample.tokens) if length is None else min(len(sample.tokens), sample.prompt_tokens + length)
            rows = {}
            for plant in plants:
                states = np.roll(sample.rows(plant.tensor), shift, axis=0)
                rows[plant.name] = states[:end]
            writer.add(sample.tokens[:end], rows, sample.prompt_tokens, sample.name)


def plant_head(output, ids):
    """A copy of the demo's head whose config.json lists these ids, for --layer-id-convention to read."""
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)
    config = json.loads((ROOT / "demo/drafter/config.json").read_text())
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = list(ids)
    (output / "config.json").write_text(json.dumps(config, indent=1))
    weights = output / "model.safetensors"
    if not weights.exists():
        shutil.copyfile(ROOT / "demo/drafter/model.safetensors", weights)
    return output


def join(recordings, output):
    """One recording of the samples of several, which have the same tensors."""
    first = read_recording(recordings[0])
    with RecordingWriter(output, first.target, first.tensors, DType.BFLOAT16, "joined") as writer:
        for number, folder in enumerate(recordings):
            for sample in read_recording(folder):
                rows = {t.name: sample.stored[t.name] for t in first.tensors}
                writer.add(sample.tokens, rows, sample.prompt_tokens, f"{number}-{sample.name}")
