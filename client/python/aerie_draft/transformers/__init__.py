"""Hugging Face models as targets of Aerie: needs the extra `aerie-draft[transformers]`."""

from aerie_draft.transformers.report import Round, Summary
from aerie_draft.transformers.target import CachedTarget
from aerie_draft.transformers.worker import Generation, TargetWorker

__all__ = ["CachedTarget", "Generation", "Round", "Summary", "TargetWorker"]
