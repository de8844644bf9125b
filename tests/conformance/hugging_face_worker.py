"""The package's Hugging Face worker on a small random Llama."""

import torch
import transformers
from aerie_draft import (
    Availability,
    DraftClient,
    SessionOptions,
    TreeShape,
    captures_at,
)
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.transformers import TargetWorker

BOUNDARIES = (1, 2, 3)
PROMPT = [5, 9, 17, 3, 40, 11, 9, 17, 3, 22, 5, 40, 8, 9, 11, 3]


def tiny_llama():
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.6,
        max_position_embeddings=512,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config).float().eval()


def shape_of(model, boundaries=BOUNDARIES):
    config = model.config
    return DrafterShape(
        config.num_hidden_layers, config.hidden_size, config.vocab_size, captures_at(boundaries)
    )


def plain_text(model, count, prompt=PROMPT):
    """The prompt and what the model's own greedy loop puts behind it."""
    with torch.inference_mode():
        output = model.generate(
            torch.tensor([prompt]),
            max_new_tokens=count,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    return output[0].tolist()


def generate(model, address, count, *, tree, transport, prompt=PROMPT, timeout=3.0):
    options = SessionOptions(tree=TreeShape(3, 2, 8)) if tree else SessionOptions()
    with DraftClient(address, transport=transport, timeout=timeout) as client:
        worker = TargetWorker(
            model,
            None,
            client,
            8 if tree else 4,
            options=options,
            timeout=timeout,
            availability=Availability(first_wait=0.0),
        )
        generation = worker.generate(prompt, count, eos_ids=())
        for _ in generation:
            pass
        return generation.summary.tokens
