"""Each named variant of a head, what drafts with it, and how far the answers are apart.

Who draws the chain decides its tokens; everyone else is made to follow them, since two right
programs may choose differently between almost equal logits and would never meet again.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import numpy as np

import head_logits_tool
import random_heads
from draft_chain import Sequence
from head_plans import HeadPlan
from head_variants import VARIANTS
from numpy_eagle3 import Head

ROWS = 24
DEPTHS = 5

THIRD_PARTIES = ("transformers", "specforge", "speculators")


@dataclasses.dataclass(frozen=True)
class Case:
    """One head on disk, its target and input rows."""

    name: str
    plan: HeadPlan
    folder: pathlib.Path
    rows: random_heads.Rows

    @property
    def drafter(self) -> pathlib.Path:
        return self.folder / "head"

    @property
    def target(self) -> pathlib.Path:
        return self.folder / "target"

    @functools.cached_property
    def reference(self) -> Sequence:
        sequence = Sequence(Head.load(self.drafter, self.target))
        sequence.extend(self.rows.aux, self.rows.tokens)
        return sequence

    def server(self, binaries: pathlib.Path, dtype: str) -> tuple[np.ndarray, np.ndarray]:
        return head_logits_tool.run(
            binaries, self.drafter, self.target, self.rows.aux, self.rows.tokens, DEPTHS, dtype
        )


def make_case(folder: pathlib.Path, name: str) -> Case:
    plan = random_heads.make_pair(folder, name)
    return Case(name, plan, folder, random_heads.make_rows(plan, ROWS))


def along(tokens: np.ndarray) -> np.ndarray:
    """Tokens of one chain as Sequence.draft() wants them forced."""
    return np.asarray(tokens)[None]


# --- Third parties ---


def judges(oracle: str, plan: HeadPlan) -> bool:
    """Whether the package has code for all that this head does."""
    rope = plan.rope or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if oracle == "transformers":
        return kind != "mrope"
    plain = (
        plan.latent is None
        and plan.use_aux
        and plan.own_lm_head
        and plan.fp8 is None
        and plan.partial_rotary is None
        and kind != "dynamic"  # both build their tables for the whole trained length at once
    )
    if oracle == "speculators":
        return (
            plain
            and kind != "mrope"
            and plan.hidden == plan.target_hidden
            and plan.qkv_bias == plan.o_bias
        )
    return (
        plain
        and plan.layout != "speculators"
        and plan.captures == 3
        and plan.layers == 1
        and (kind != "yarn" or "mscale" in rope)
        and not (plan.qk_norm or plan.qkv_bias or plan.norm_before_fc or plan.aux_norm_names)
        and not (plan.norm_before_residual or plan.norm_output)
    )


def third_party(oracle: str, case: Case):
    """Its drafter of this head. ImportError where the package or what it needs is missing."""
    # Imported here: each takes seconds, and not every environment has all of them.
    if oracle == "transformers":
        from huggingface_drafter import HuggingFaceDrafter as drafter
    elif oracle == "specforge":
        from specforge_drafter import SpecForgeDrafter as drafter
    else:
        from speculators_drafter import SpeculatorsDrafter as drafter
    return drafter(case.drafter, case.target)


def third_party_draft(oracle: str, case: Case, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits [DEPTHS, Vd] along the chain `tokens`, and its own choice of each, [DEPTHS]."""
    drafter = third_party(oracle, case)
    return drafter.draft(case.rows.aux, case.rows.tokens, DEPTHS, forced=tokens)


def all_cases() -> list[tuple[str, str]]:
    """(variant, third party) wherever the latter can judge."""
    return [
        (name, oracle)
        for name, plan in VARIANTS.items()
        for oracle in THIRD_PARTIES
        if judges(oracle, plan)
    ]
