"""A target made of hashes: it has a text, and states that carry their own token, as real ones do.

The next token depends on the whole history, so a wrong token anywhere shows; a state depends on the
history too, so a row of the wrong place, or of a cache that kept rejected tokens, is another row.
"""

import hashlib

import numpy as np

VOCAB = 61
LAYERS = 6
HIDDEN = 32
BOUNDARIES = (1, 4)
PROMPT = [3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 3, 8, 46, 26]


def _digest(tokens, salt):
    data = np.asarray([salt, *tokens], np.int64).tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


_EMBEDDING = np.random.default_rng(7).standard_normal((VOCAB, HIDDEN)).astype(np.float32)


def choice(history):
    """The greedy token behind `history`."""
    return _digest(history, 1) % VOCAB


def row(history):
    """The captures of the last position of `history`, [captures x hidden]."""
    noise = np.random.default_rng(_digest(history, 2)).standard_normal((2, HIDDEN))
    own = _EMBEDDING[history[-1]]
    return np.concatenate([own + 0.4 * noise[0], 8.0 * (0.4 * own + noise[1])]).astype(np.float32)


def rows(history, first):
    """Of positions `first` .. of `history`."""
    return np.stack([row(history[: i + 1]) for i in range(first, len(history))])


def text(count):
    """The prompt and `count` tokens behind it."""
    history = list(PROMPT)
    for _ in range(count):
        history.append(choice(history))
    return history
