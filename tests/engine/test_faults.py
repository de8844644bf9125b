"""No fault of the server costs a token of a real engine under eight clients, and drafts come back."""

import json
import os
import pathlib

import faults


def test_no_fault_of_the_server_costs_a_token_and_drafts_come_back(world, plain):
    print(f"\n{faults.Row.head()}")
    rows = []
    for fault in faults.faults(world):
        rows.append(faults.play(world, plain, *fault))
        print(rows[-1].line(), flush=True)
        if file := os.environ.get("AERIE_ENGINE_JSON"):
            document = [dict(vars(row)) for row in rows]
            pathlib.Path(file).write_text(json.dumps(document, indent=2) + "\n")
    assert [(r.fault, r.lost_tokens, r.wrong_tokens) for r in rows] == [
        (r.fault, 0, 0) for r in rows
    ]
    assert world.engine.alive()
