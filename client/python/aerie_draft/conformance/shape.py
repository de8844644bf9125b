"""The drafter that the strict server claims to hold, so that the worker's target fits it."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from aerie_draft._proto import draft_pb2
from aerie_draft.wiring import FINAL_NORM, Capture, CaptureKind


@dataclasses.dataclass(frozen=True)
class DrafterShape:
    num_layers: int
    hidden_size: int
    vocab_size: int
    captures: tuple[Capture, ...]

    @property
    def row_width(self) -> int:
        return len(self.captures) * self.hidden_size

    @property
    def lowest(self) -> int:
        """Which capture is the lowest place; a state shows its own token best there."""
        places = [
            c.boundary if c.kind is CaptureKind.BOUNDARY else self.num_layers + 1
            for c in self.captures
        ]
        return places.index(min(places))

    def info(self, limits: draft_pb2.Limits) -> draft_pb2.GetServerInfoResponse:
        """What a server with such a drafter tells."""
        response = draft_pb2.GetServerInfoResponse(
            protocol_version=1, dtypes=[1, 2, 3], transports=[1], limits=limits
        )
        response.build.version = "conformance"
        drafter = response.drafters.add(
            name="conformance",
            version="script",
            target_num_layers=self.num_layers,
            target_hidden_size=self.hidden_size,
            vocab_size=self.vocab_size,
            draft_vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
        )
        for capture in self.captures:
            drafter.captures.add(kind=capture.kind.value, boundary=capture.boundary)
        return response

    def differences(self, manifest: draft_pb2.Manifest) -> list[draft_pb2.FieldMismatch]:
        """Field by field, as a server tells a worker."""
        pairs = {
            "num_layers": (self.num_layers, manifest.num_layers),
            "hidden_size": (self.hidden_size, manifest.hidden_size),
            "vocab_size": (self.vocab_size, manifest.vocab_size),
            "captures": (
                [(c.kind.value, c.boundary) for c in self.captures],
                [(c.kind, c.boundary) for c in manifest.captures],
            ),
        }
        return [
            draft_pb2.FieldMismatch(field=field, expected=str(ours), received=str(theirs))
            for field, (ours, theirs) in pairs.items()
            if ours != theirs
        ]


def parse_captures(text: str) -> tuple[Capture, ...]:
    """ "2,15,27" or "2,15,final_norm": boundaries, never layer ids."""
    captures = []
    for word in text.split(","):
        word = word.strip()
        if word == "final_norm":
            captures.append(FINAL_NORM)
        elif word.isdigit():
            captures.append(Capture(CaptureKind.BOUNDARY, int(word)))
        else:
            raise ValueError(
                f"{word!r} is no capture; expected a boundary such as 15, or final_norm; give a "
                "comma-separated list in the drafter's order"
            )
    return tuple(captures)


def sizes_of_target(folder: pathlib.Path) -> dict[str, int]:
    """num_layers, hidden_size and vocab_size from a target's config.json."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config = config.get("text_config", config)
    keys = {
        "num_layers": "num_hidden_layers",
        "hidden_size": "hidden_size",
        "vocab_size": "vocab_size",
    }
    missing = [key for key in keys.values() if not isinstance(config.get(key), int)]
    if missing:
        raise ValueError(
            f"{path} has no number for {', '.join(missing)}; expected the config of a causal "
            "model; give --num-layers, --hidden-size and --vocab-size instead"
        )
    return {ours: config[theirs] for ours, theirs in keys.items()}
