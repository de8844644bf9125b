"""aerie-conformance: reads the flags, runs a suite, prints its report."""

from __future__ import annotations

import json
import pathlib
import sys

from aerie_draft.conformance.command import run_command, run_when_asked
from aerie_draft.conformance.flags import make_parser
from aerie_draft.conformance.probe import Broken, Refused
from aerie_draft.conformance.rules import ALL_RULES
from aerie_draft.conformance.server_suite import ServerSettings, check_server
from aerie_draft.conformance.shape import DrafterShape, parse_captures, sizes_of_target
from aerie_draft.conformance.worker_suite import (
    WorkerFailed,
    WorkerSettings,
    check_worker,
)
from aerie_draft.security import Security

CONFORMANT, NOT_CONFORMANT, USAGE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    # Everything behind -- is the worker's.
    command: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1 :]
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.list:
        for rule in ALL_RULES.values():
            print(f"{rule.name:22}{rule.says}")
        return CONFORMANT
    if options.mode is None:
        parser.error("no mode was given; expected `server ADDRESS` or `worker`; see --help")
    try:
        report = _server(options) if options.mode == "server" else _worker(options, command)
    except (ValueError, OSError, WorkerFailed, Broken, Refused) as error:
        print(f"aerie-conformance: {_sentence(error)}", file=sys.stderr)
        return USAGE
    print(report.text())
    if options.json:
        pathlib.Path(options.json).write_text(report.json() + "\n")
    failed = not report.conformant or (options.fail_on_skip and report.skipped())
    return NOT_CONFORMANT if failed else CONFORMANT


def _sentence(error: Exception) -> str:
    if isinstance(error, Broken):
        return f"{error.seen}; expected {error.expected}; {error.remedy}"
    if isinstance(error, Refused):
        return f"the server does not tell what it is: {error}; see its log, and the address"
    return str(error)


def _server(options):
    rules = frozenset(options.rule) if options.rule else None
    security = Security(
        options.tls_ca,
        options.tls_cert,
        options.tls_key,
        options.tls_server_name,
        options.token_file,
    )
    settings = ServerSettings(rules, options.drafter, options.intrusive, security)
    return check_server(options.address, settings, _progress(options))


def _worker(options, command: list[str]):
    if bool(command) == options.manual:
        raise ValueError(
            "both --manual and a COMMAND were given; expected one of them; leave the other out"
            if command
            else "no COMMAND was given; expected one behind --, or --manual; see --help"
        )
    for name in ("max_k", "patience", "timeout", "row_tolerance"):
        value = getattr(options, name)
        if not value > 0:
            raise ValueError(
                f"--{name.replace('_', '-')} is {value}; expected a number above 0; raise it"
            )
    if options.same_output and options.expect_output:
        raise ValueError(
            "--same-output and --expect-output were both given; expected one of them: the latter "
            "says more; leave the former out"
        )
    settings = WorkerSettings(
        listen=options.listen,
        rules=frozenset(options.rule) if options.rule else None,
        scenarios=frozenset(options.scenario) if options.scenario else None,
        texts=_read_texts(options.texts) if options.texts else (),
        same_output=options.same_output,
        expected_output=options.expect_output.read_text() if options.expect_output else None,
        max_k=options.max_k,
        row_tolerance=options.row_tolerance,
        patience=options.patience,
        comeback=options.comeback,
    )
    run = run_when_asked() if options.manual else run_command(command, options.timeout)
    subject = "by hand" if options.manual else " ".join(command)
    return check_worker(run, _shape(options), settings, subject, _progress(options))


def _shape(options) -> DrafterShape:
    sizes = {
        "num_layers": options.num_layers,
        "hidden_size": options.hidden_size,
        "vocab_size": options.vocab_size,
    }
    given = {name: value for name, value in sizes.items() if value is not None}
    if options.target is not None and given:
        raise ValueError(
            f"--target {options.target} and {', '.join('--' + n.replace('_', '-') for n in given)} "
            "were given; expected the one or the other; leave one out"
        )
    if options.target is not None:
        sizes = sizes_of_target(options.target)
    elif len(given) < len(sizes):
        missing = ", ".join("--" + n.replace("_", "-") for n in sizes if n not in given)
        raise ValueError(f"{missing} is missing; expected all sizes, or --target; give them")
    return DrafterShape(captures=parse_captures(options.boundaries), **sizes)


def _read_texts(path: pathlib.Path) -> tuple[list[int], ...]:
    try:
        texts = json.loads(path.read_text())
    except ValueError:
        texts = None
    whole = isinstance(texts, list) and all(
        isinstance(text, list) and len(text) > 1 and all(isinstance(t, int) for t in text)
        for text in texts
    )
    if not whole:
        raise ValueError(
            f"--texts {path} is no list of lists of token ids; expected [[1, 2, 3], ...], each of "
            "two ids or more; write one list a text"
        )
    return tuple(texts)


def _progress(options):
    if options.quiet:
        return lambda line: None
    return lambda line: print(f"  {line}", file=sys.stderr, flush=True)
