#!/usr/bin/env python3
"""Fails when docs/security.md names a test that does not exist, or a threat names none."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()


def main():
    page = (ROOT / "docs/security.md").read_text()
    rows = [line for line in page.split("## Threats")[1].splitlines() if line.startswith("| ")][1:]
    tests = "\n".join(path.read_text() for end in ("*_test.cc", "test_*.py") for path in (ROOT / "tests").rglob(end))
    fuzz = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
    troubles = [] if rows else ["docs/security.md has no threats; expected a table below \"## Threats\"; mend it"]
    for row in rows:
        threat, _, named = (cell.strip() for cell in row.strip("|").split("|"))
        names = re.findall(r"`(\w+)`", named)
        if not names:
            troubles.append(f"docs/security.md: \"{threat}\" names no test; expected one; write it")
        for name in names:
            # fuzz_NAME is the test of a target that only CMake names.
            target = name.removeprefix("fuzz_") if name.startswith("fuzz_") else None
            if target and re.search(rf"aerie_fuzz_target\({target} ", fuzz):
                continue
            if not re.search(rf"def {name}\(|TEST(_P|_F)?\(\w+, {name}\)", tests):
                troubles.append(f"docs/security.md: \"{threat}\" names {name}; expected a test of that name; correct it")
    print("\n".join(troubles))
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
