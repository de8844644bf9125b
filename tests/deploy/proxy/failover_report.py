"""What one run of a lost server came to, as a table and as JSON."""

import json


def write(folder, proxy, failure, facts):
    (folder / f"{failure}-{proxy}.json").write_text(json.dumps(dict(proxy=proxy, failure=failure, **facts), indent=2))
    paths = sorted(path for path in folder.glob("*.json") if not path.stem.startswith("added-"))
    runs = [json.loads(path.read_text()) for path in paths]
    columns = ["failure", "proxy", "hosts", "sessions", "on_lost_server", "moved_elsewhere_unasked", "rounds",
               "lost_rounds", "lost_rounds_of_others", "resyncs", "sessions_going_on", "wrong_drafts",
               "milliseconds_to_last_resync"]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(str(run[name]) for name in columns) + " |" for run in runs]
    (folder / "failover.md").write_text("\n".join(lines) + "\n")
    print()
    width = max(map(len, columns))
    print(f"{failure} one of three behind {proxy}")
    for name in columns[2:]:
        print(f"  {name.replace('_', ' '):{width}}  {facts[name]}")
