"""What engines answer and count, as values: answers with how close they were to being others, and
the counters that the engines and aerie-server all have."""

from __future__ import annotations

import dataclasses
import urllib.request

# Where the two best tokens are as good as equally likely, batches of another shape may choose
# otherwise. In natural log of probability; fp32 logits differ by about 1e-4 between shapes.
TIE_GAP = 1e-3


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came back for one prompt."""

    tokens: tuple[int, ...]
    text: str
    # With top-2 log-probabilities asked for: of each token how far the best was before the second.
    gaps: tuple[float, ...] = ()


def compare(plain: Answer, other: Answer) -> str:
    """ "equal"; "tie": they part where the best two tokens were as good as equal; "wrong"."""
    if plain.tokens == other.tokens:
        return "equal"
    for i, (a, b) in enumerate(zip(plain.tokens, other.tokens)):
        if a != b:
            # Written so that a NaN is no tie.
            return "tie" if i < len(plain.gaps) and plain.gaps[i] < TIE_GAP else "wrong"
    return "wrong"


class Metrics:
    """A Prometheus page."""

    def __init__(self, text: str):
        self.text = text
        self._samples = []
        for line in text.splitlines():
            if line and not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                name, _, labels = series.partition("{")
                self._samples.append((name, labels, float(value)))

    @staticmethod
    def of(address: str) -> Metrics:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
            return Metrics(page.read().decode())

    def sum(self, name: str, **labels) -> float:
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            value
            for found, given, value in self._samples
            if found == name and all(label in given for label in wanted)
        )


@dataclasses.dataclass(frozen=True)
class SpecDecode:
    """The counters that all programs have, under their own prefixes."""

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: tuple[int, ...]

    @staticmethod
    def read(metrics: Metrics, prefix: str, k: int) -> SpecDecode:
        """`prefix` is "vllm:", "llamacpp:" or "aerie_"."""
        name = prefix + "spec_decode_num_{}_total"

        def count(what, **labels):
            return int(metrics.sum(name.format(what), **labels))

        return SpecDecode(
            count("drafts"),
            count("draft_tokens"),
            count("accepted_tokens"),
            tuple(count("accepted_tokens_per_pos", position=str(i)) for i in range(k)),
        )

    @property
    def accept_length(self) -> float:
        """Tokens gained a round, the target's own included; 1 without a draft."""
        return 1 + self.accepted_tokens / self.drafts if self.drafts else 1.0
