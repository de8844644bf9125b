"""The demo's head beside a wiring.json that holds a profile for the live guard, made in a moment from recorded rows."""

import json
import struct
import subprocess

from server_process import BINARY, DRAFTER, TARGET

BOUNDARIES = (2, 15, 27)
HIDDEN = 576
# Of the recorded sequences the first make the profile; workers of the tests send the others.
PROFILE_SEQUENCES = 6


def write_recording(recording, folder):
    """The recorded sequences in the format of docs/recordings.md, every boundary as what it is."""
    folder.mkdir()
    samples, tensors = [], {}
    for number, sequence in enumerate(recording.sequences):
        length = len(sequence.tokens)
        samples.append({"name": str(number), "tokens": length, "file": "rows.safetensors"})
        tensors[f"{number}.tokens"] = ("I32", [length], struct.pack(f"<{length}i", *sequence.tokens))
        width = HIDDEN * 2
        for place, boundary in enumerate(BOUNDARIES):
            rows = b"".join(sequence.aux[row * sequence.row_bytes + place * width:][:width] for row in range(length))
            tensors[f"{number}.boundary_{boundary}"] = ("BF16", [length, HIDDEN], rows)
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "rows.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)
    claims = [{"name": f"boundary_{b}", "label": "", "claim": {"kind": "boundary", "boundary": b}} for b in BOUNDARIES]
    (folder / "recording.json").write_text(json.dumps({
        "format": "aerie-recording/1", "source": "the head's evaluation",
        "target": {"id": "SmolLM2-135M-Instruct", "num_layers": 30, "hidden_size": HIDDEN, "vocab_size": 49152},
        "dtype": "bfloat16", "tensors": claims, "samples": samples}))


def run(program, *arguments):
    done = subprocess.run([str(BINARY.parent / program), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_head(folder, guard):
    """A copy of the demo's head with this profile (JSON text, or None) in its wiring.json."""
    folder.mkdir()
    for file in ("config.json", "model.safetensors"):
        (folder / file).symlink_to(DRAFTER / file)
    digest = json.loads(run("aerie-inspect", folder, "--target", TARGET, "--json"))["version"]
    wiring = {"version": 1, "verified": True, "weights_digest": digest,
              "captures": [{"kind": "boundary", "boundary": b} for b in BOUNDARIES],
              "convention": "output-of-layer", "verdict": "verified"}
    if guard is not None:
        wiring["guard"] = json.loads(guard)
    (folder / "wiring.json").write_text(json.dumps(wiring))
    return folder


def make_guarded_head(recording, folder):
    write_recording(recording, folder / "recording")
    guard = run("aerie-guard-profile", "--recording", folder / "recording", "--boundaries", "2,15,27",
                "--samples", PROFILE_SEQUENCES, "--accuracy", 0.4, "--acceptance", 0.4)
    return write_head(folder / "head", guard)
