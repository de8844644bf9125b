"""Recordings: hidden states of a target with their tokens, in a folder that aerie-verify reads.

Row p of a tensor is the state of position p: row p and token p belong together, and the token that
*follows* the state is token p + 1. A label or a claim says what somebody believes a tensor to hold;
nothing here checks it, and aerie-verify is made to.
"""

from aerie_draft.recording_reader import Recording, read_recording
from aerie_draft.recording_values import RecordedTensor, Sample, Target
from aerie_draft.recording_writer import RecordingWriter

__all__ = [
    "RecordedTensor",
    "Recording",
    "RecordingWriter",
    "Sample",
    "Target",
    "read_recording",
]
