"""A worker in a process of its own, for tests that kill it: a line on stdin is a command, a line on stdout its answer.

    shared_worker.py ADDRESS ROWS TRANSPORT TOKENS_AND_ROWS

ROWS is what DraftClient calls so; TOKENS_AND_ROWS a .npz with `tokens` and `rows` (bf16 words). Commands: `open`;
`draft FIRST LAST K`. Answers are JSON, of a call that failed {"error": the exception's name, "reason": ...}.
"""

import json
import sys

import aerie_draft
import numpy as np


def main() -> None:
    address, rows, transport, path = sys.argv[1:]
    with np.load(path) as stored:
        tokens, states = stored["tokens"], stored["rows"]
    manifest = aerie_draft.Manifest(
        target_id="shared worker", num_layers=30, hidden_size=576, vocab_size=49152,
        captures=aerie_draft.captures_at((2, 15, 27)), dtype=aerie_draft.DType.BFLOAT16)
    client = aerie_draft.DraftClient(address, rows=rows, transport=transport, timeout=60)
    session = None
    for line in sys.stdin:
        command, *numbers = line.split()
        try:
            if command == "open":
                session = client.open_session(manifest)
                answer = {"session": session.session_id}
            else:
                first, last, k = map(int, numbers)
                proposal = session.draft(first, [int(t) for t in tokens[first:last]], states[first:last], k)
                answer = {"tokens": proposal.tokens, "length": proposal.length}
        except aerie_draft.AerieError as error:
            answer = {"error": type(error).__name__, "reason": error.reason}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
