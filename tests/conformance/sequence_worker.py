"""A worker loop of the client library, DraftedSequence, over the target of hashes."""

import fake_target
from aerie_draft import (
    Availability,
    DraftClient,
    DraftedSequence,
    DType,
    Manifest,
    OnLoss,
    SessionOptions,
    captures_at,
)

MANIFEST = Manifest(
    "fake",
    fake_target.LAYERS,
    fake_target.HIDDEN,
    fake_target.VOCAB,
    captures_at(fake_target.BOUNDARIES),
    DType.FLOAT32,
)


def generate(
    address,
    count,
    *,
    transport="unary",
    options=SessionOptions(),
    on_loss=OnLoss.RESEND,
    keep_rows=256,
    k=4,
    timeout=3.0,
):
    """`count` tokens behind the prompt."""
    history = list(fake_target.PROMPT)
    end = len(history) + count
    with DraftClient(address, transport=transport, timeout=timeout) as client:
        sequence = DraftedSequence(
            client,
            MANIFEST,
            Availability(first_wait=0.0),
            options,
            on_loss=on_loss,
            keep_rows=keep_rows,
            timeout=timeout,
        )
        rows = fake_target.rows(history, 0)
        history.append(fake_target.choice(history))
        follows = history[1:]
        while len(history) < end:
            sequence.commit(follows, rows)
            follows = []
            room = end - len(history) - 1
            wanted = k if options.tree is not None and room > 0 else min(k, room)
            proposal = sequence.propose(wanted) if wanted > 0 else None
            first = len(history) - 1
            history += _verified(history, proposal)
            del history[end:]
            follows = history[first + 1 :]
            rows = fake_target.rows(history[:-1], first)
        sequence.finish(follows)
    return history[len(fake_target.PROMPT) :]


def _verified(history, proposal):
    """The target's own tokens as far as the proposal has them, and one more."""
    taken, node = [], 0
    while True:
        taken.append(fake_target.choice(history + taken))
        if proposal is None:
            return taken
        children = [
            n
            for n, parent in enumerate(proposal.parents, 1)
            if parent == node and proposal.tokens[n - 1] == taken[-1]
        ]
        if not children:
            return taken
        node = children[0]
