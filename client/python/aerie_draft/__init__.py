"""Target-side client of Aerie, a draft server for EAGLE-3 speculative decoding.

`DraftClient` speaks the wire contract; `DraftedSequence` keeps one sequence drafted for while the
server comes and goes; `aerie_draft.transformers` (an extra) runs a Hugging Face model on top.
"""

from aerie_draft.availability import Availability
from aerie_draft.client import DraftClient
from aerie_draft.dtypes import (
    DType,
    bf16_to_float,
    encode_rows,
    float_to_bf16,
    float_to_fp8_rows,
    fp8_rows_to_float,
)
from aerie_draft.errors import (
    AerieError,
    DeadlineExceeded,
    FieldMismatch,
    InvalidRequest,
    ManifestMismatch,
    Overloaded,
    Overtaken,
    ProtocolMismatch,
    ResyncNeeded,
    SessionUnknown,
    Unavailable,
)
from aerie_draft.fused import FusedFc
from aerie_draft.options import (
    Fork,
    KChoice,
    ProposalProbs,
    Sampling,
    SessionOptions,
    TreeShape,
    VerifyCost,
)
from aerie_draft.security import Security, SecurityError
from aerie_draft.sequence import DraftedSequence, OnLoss
from aerie_draft.session import DraftSession
from aerie_draft.values import (
    AcceptanceRecord,
    DrafterInfo,
    DraftTiming,
    FusedFeatures,
    Limits,
    Manifest,
    Proposal,
    ProposalDistribution,
    ServerInfo,
    Setting,
)
from aerie_draft.wiring import (
    FINAL_NORM,
    Capture,
    CaptureKind,
    LayerIdConvention,
    boundaries_from_layer_ids,
    captures_at,
)

__all__ = [
    "AcceptanceRecord",
    "AerieError",
    "Availability",
    "Capture",
    "CaptureKind",
    "DType",
    "DeadlineExceeded",
    "DraftClient",
    "DraftSession",
    "DraftTiming",
    "DraftedSequence",
    "DrafterInfo",
    "FINAL_NORM",
    "FieldMismatch",
    "Fork",
    "FusedFc",
    "FusedFeatures",
    "InvalidRequest",
    "KChoice",
    "LayerIdConvention",
    "Limits",
    "Manifest",
    "ManifestMismatch",
    "OnLoss",
    "Overloaded",
    "Overtaken",
    "Proposal",
    "ProposalDistribution",
    "ProposalProbs",
    "ProtocolMismatch",
    "ResyncNeeded",
    "Sampling",
    "Security",
    "SecurityError",
    "ServerInfo",
    "SessionOptions",
    "SessionUnknown",
    "Setting",
    "TreeShape",
    "Unavailable",
    "VerifyCost",
    "bf16_to_float",
    "boundaries_from_layer_ids",
    "captures_at",
    "encode_rows",
    "float_to_bf16",
    "float_to_fp8_rows",
    "fp8_rows_to_float",
]
