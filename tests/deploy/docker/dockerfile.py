"""What docker/Dockerfile says, so that the tests run its very words: the last stage's instructions, and its steps."""

import json
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[3]


def instructions():
    """[(instruction, arguments)] of the whole file, continued lines joined."""
    text = (ROOT / "docker/Dockerfile").read_text()
    lines = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


def stage(name):
    """The instructions of the stage that is called so; None: of the last one, which has no name."""
    stages, names = [], []
    for instruction, arguments in instructions():
        if instruction == "FROM":
            stages.append([])
            names.append(re.search(r"\bAS (\S+)", arguments).group(1) if " AS " in arguments else None)
        stages[-1].append((instruction, arguments))
    return stages[names.index(name)]


def only(instruction, of_stage=None):
    (arguments,) = [arguments for name, arguments in stage(of_stage) if name == instruction]
    return arguments


def environment():
    return dict(word.split("=", 1) for word in shlex.split(only("ENV")))


def health_command():
    return json.loads(only("HEALTHCHECK").split("CMD", 1)[1])


def entry_point():
    return json.loads(only("ENTRYPOINT"))


def user():
    return tuple(int(number) for number in only("USER").split(":"))
