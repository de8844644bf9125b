"""Heads in the sizes in which they are published: gigabytes each."""

from __future__ import annotations

import dataclasses

from head_plans import HeadPlan, Latent

_KIMI_YARN = {
    "type": "yarn",
    "factor": 64.0,
    "original_max_position_embeddings": 4096,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
_KIMI = HeadPlan(
    hidden=7168,
    target_hidden=7168,
    intermediate=18432,
    heads=64,
    kv_heads=64,
    head_dim=128,
    vocab=163840,
    draft_vocab=32000,
    target_layers=61,
    max_positions=262144,
    rope_theta=1000000.0,
    target_kind="multimodal",
    target_lm_head=False,
)

# Sizes as published. The target has no more than the embedding: its own output matrix would double
# the disk for nothing.
FULL_SIZE: dict[str, HeadPlan] = {
    "kimi_k2_5": _KIMI,
    "kimi_k2_5_mla": dataclasses.replace(
        _KIMI,
        layout="torchspec",
        draft_vocab=163840,
        rope_theta=50000.0,
        rope=_KIMI_YARN,
        eps=1e-6,
        latent=Latent(q_lora=1536, kv_lora=512, nope=128, rope=64, v=128),
    ),
    "llama_3_1_8b": HeadPlan(
        layout="safeailab",
        dtype="F16",
        hidden=4096,
        target_hidden=4096,
        intermediate=14336,
        heads=32,
        kv_heads=8,
        head_dim=128,
        vocab=128256,
        draft_vocab=32000,
        target_layers=32,
        max_positions=2048,
        rope_theta=None,
        target_lm_head=False,
    ),
    "llama_3_3_70b": HeadPlan(
        layout="safeailab",
        dtype="F16",
        hidden=6144,
        target_hidden=8192,
        intermediate=16384,
        heads=48,
        kv_heads=8,
        head_dim=128,
        vocab=128256,
        draft_vocab=32000,
        target_layers=80,
        max_positions=2048,
        rope_theta=None,
        own_embedding=True,
        target_lm_head=False,
    ),
    "qwen3_32b": HeadPlan(
        hidden=5120,
        target_hidden=5120,
        intermediate=25600,
        heads=64,
        kv_heads=8,
        head_dim=128,
        vocab=151936,
        draft_vocab=32000,
        target_layers=64,
        max_positions=40960,
        target_lm_head=False,
    ),
    "gpt_oss_120b": HeadPlan(
        layout="modelopt",
        t2d=False,
        hidden=2880,
        target_hidden=2880,
        intermediate=17280,
        heads=64,
        kv_heads=8,
        head_dim=64,
        vocab=201088,
        draft_vocab=32000,
        target_layers=36,
        max_positions=131072,
        target_lm_head=False,
        rope={
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 4096,
        },
    ),
}
