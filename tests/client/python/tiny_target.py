"""A small random Llama, its plain greedy text, and a drafter that knows the text but lies.

A pytest plugin: test modules that need a target name it.
"""

import aerie_draft
import pytest
import torch
import transformers
from aerie_draft.transformers import TargetWorker
from fake_server import FakeServer

torch.set_num_threads(1)  # Threads that wait for each other are all that a model this small gains.

PROMPT = [5, 9, 17, 3, 40, 11]
VOCAB = 64
NEVER = ()


def tiny_llama(**overrides):
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        **{
            **dict(
                vocab_size=VOCAB,
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=4,
                num_attention_heads=4,
                num_key_value_heads=2,
                initializer_range=0.6,
                max_position_embeddings=512,
                tie_word_embeddings=False,
            ),
            **overrides,
        }
    )
    return transformers.LlamaForCausalLM(config).float().eval()


@pytest.fixture(scope="module")
def model():
    return tiny_llama()


@pytest.fixture(scope="module")
def plain(model):
    """80 tokens of plain greedy decoding by transformers' own loop."""
    with torch.inference_mode():
        output = model.generate(
            torch.tensor([PROMPT]),
            max_new_tokens=80,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    text = output[0, len(PROMPT) :].tolist()
    assert len(set(text)) > 8, "a text that repeats itself proves little; choose another seed"
    return text


class Liar:
    """Proposes the right continuation but for the places where `wrong(position)` says so."""

    def __init__(self, plain, wrong):
        self._text = PROMPT + plain
        self._wrong = wrong

    def __call__(self, row_tokens, k):
        first = len(row_tokens) + 1
        right = self._text[first : first + k]
        right += [0] * (k - len(right))
        return [(t + 1) % VOCAB if self._wrong(first + i) else t for i, t in enumerate(right)]


DRAFTERS = {
    "always_right": lambda position: False,
    "always_wrong": lambda position: True,
    "every_third_wrong": lambda position: position % 3 == 0,
    "irregular": lambda position: (position * position) % 7 < 2,
}


@pytest.fixture(params=["unary", "stream"])
def make_worker(request, model):
    """A worker on a server with the given drafter; everything is closed at the end."""
    opened = []

    def make(drafter, k=4, target=model, **kwargs):
        server = FakeServer(drafter)
        server.hidden = 16
        server.start()
        client = aerie_draft.DraftClient(server.address, transport=request.param, timeout=60)
        opened.extend([client.close, server.stop])
        return TargetWorker(target, None, client, k, timeout=30, **kwargs), server

    yield make
    for close in opened:
        close()


def run(generation):
    rounds = list(generation)
    summary = generation.summary
    assert [t for r in rounds for t in r.tokens] == summary.tokens
    return rounds, summary
