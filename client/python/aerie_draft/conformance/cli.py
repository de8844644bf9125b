"""aerie-conformance: reads the flags, runs a suite, prints its report."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import pathlib
import sys

from aerie_draft.conformance.command import run_command, run_when_asked
from aerie_draft.conformance.probe import Broken, Refused
from aerie_draft.conformance.rules import ALL_RULES, SERVER_RULES, WORKER_RULES
from aerie_draft.conformance.scenarios import SCENARIOS
from aerie_draft.conformance.server_suite import ServerSettings, check_server
from aerie_draft.conformance.shape import DrafterShape, parse_captures, sizes_of_target
from aerie_draft.conformance.worker_suite import WorkerFailed, WorkerSettings, check_worker

CONFORMANT, NOT_CONFORMANT, USAGE = 0, 1, 2

_WORKER_HELP = """\
COMMAND decodes the same text once, greedily, with drafts from the address in the environment
variable AERIE_ADDRESS (or in place of {address} among its arguments), and ends. It is started once
for each scenario, whose name is in AERIE_SCENARIO. It may be the worker, or a client that asks an
engine which runs already. Texts of 16 prompt tokens and 64 more show all rules.
"""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    # Everything behind -- is the worker's.
    command: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1 :]
    parser = _parser()
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aerie-conformance",
        description="Plays a strict worker to a server, or a strict server to a worker. Rules: "
        "docs/worker-contract.md. Exit status: 0 conformant, 1 not, 2 wrong use.",
    )
    parser.add_argument("--version", action="version", version=f"aerie-conformance {_version()}")
    parser.add_argument("--list", action="store_true", help="print all rules and end")
    modes = parser.add_subparsers(dest="mode", metavar="MODE")
    server = modes.add_parser("server", help="test a server")
    server.add_argument("address", metavar="ADDRESS", help="host:port or unix:PATH")
    server.add_argument(
        "--drafter", default="", metavar="NAME", help="which drafter; default: the first"
    )
    server.add_argument(
        "--intrusive", action="store_true",
        help="also rules that take all draft KV or all sessions for a moment; not for a server "
        "that others use",
    )
    worker = modes.add_parser(
        "worker", help="test a worker", epilog=_WORKER_HELP,
        usage="aerie-conformance worker --boundaries LIST (--target DIR | sizes) [...] -- COMMAND...",
    )
    _add_worker_flags(worker)
    for mode, rules in ((server, SERVER_RULES), (worker, WORKER_RULES)):
        mode.add_argument(
            "--rule", action="append", metavar="NAME", choices=list(rules),
            help="only this rule; repeatable; see --list",
        )
        mode.add_argument("--json", metavar="FILE", help="write the report there as JSON, too")
        mode.add_argument(
            "--fail-on-skip", action="store_true",
            help="exit 1 as well when a rule never came into play",
        )
        mode.add_argument("--quiet", action="store_true", help="do not say what is being tried")
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("aerie-draft")
    except importlib.metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


def _add_worker_flags(worker: argparse.ArgumentParser) -> None:
    add = worker.add_argument
    add("--boundaries", required=True, metavar="LIST",
        help="what the drafter wants captured, in order, e.g. 2,15,27 or 2,15,final_norm")
    add("--target", type=pathlib.Path, metavar="DIR", help="folder of the target's config.json")
    add("--num-layers", type=int, metavar="N", help="decoder layers, in place of --target")
    add("--hidden-size", type=int, metavar="N", help="in place of --target")
    add("--vocab-size", type=int, metavar="N", help="in place of --target")
    add("--listen", default="127.0.0.1:0", metavar="HOST:PORT",
        help="where the strict server listens; port 0: a free one; default: %(default)s")
    add("--manual", action="store_true",
        help="no COMMAND: say when to decode the text, and wait for Enter after it")
    add("--scenario", action="append", metavar="NAME", choices=[s.name for s in SCENARIOS],
        help="only this scenario beside `plain`; repeatable: "
        + ", ".join(s.name for s in SCENARIOS))
    add("--texts", type=pathlib.Path, metavar="FILE",
        help="JSON list of the token id lists that will be decoded, prompt and text, first token "
        "included: then pairing is judged exactly")
    add("--same-output", action="store_true",
        help="COMMAND prints its text and nothing that varies: compare it between scenarios")
    add("--expect-output", type=pathlib.Path, metavar="FILE", help="what COMMAND has to print")
    add("--max-k", type=int, default=8, metavar="N",
        help="the strict server's limit, 1 or more; default: %(default)s")
    add("--row-tolerance", type=float, default=0.05, metavar="X",
        help="largest difference of one position's row between two passes of the target, relative "
        "to its size; default: %(default)s")
    add("--patience", type=float, default=30.0, metavar="S",
        help="seconds after which a worker that waits for one answer has no deadline; default: "
        "%(default)s")
    add("--comeback", type=float, default=10.0, metavar="S",
        help="seconds within which a worker has to ask again after a failure; default: %(default)s")
    add("--timeout", type=float, default=600.0, metavar="S",
        help="seconds that COMMAND may take for one scenario; default: %(default)s")


def _server(options):
    rules = frozenset(options.rule) if options.rule else None
    settings = ServerSettings(rules, options.drafter, options.intrusive)
    return check_server(options.address, settings, _progress(options))


def _worker(options, command: list[str]):
    if bool(command) == options.manual:
        raise ValueError(
            "both --manual and a COMMAND were given; expected one of them; leave the other out"
            if command else
            "no COMMAND was given; expected one behind --, or --manual; see --help"
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
