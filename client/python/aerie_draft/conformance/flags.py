"""The flags of aerie-conformance."""

from __future__ import annotations

import argparse
import importlib.metadata
import pathlib

from aerie_draft.conformance.rules import SERVER_RULES, WORKER_RULES
from aerie_draft.conformance.scenarios import SCENARIOS

_WORKER_HELP = """\
COMMAND decodes the same text once, greedily, with drafts from the address in the environment
variable AERIE_ADDRESS (or in place of {address} among its arguments), and ends. It is started once
for each scenario, whose name is in AERIE_SCENARIO. It may be the worker, or a client that asks an
engine which runs already. Texts of 16 prompt tokens and 64 more show all rules.
"""


def make_parser() -> argparse.ArgumentParser:
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
        "--intrusive",
        action="store_true",
        help="also rules that take all draft KV or all sessions for a moment; not for a server "
        "that others use",
    )
    for name, what in (
        ("--tls-ca", "PEM certificates that sign the server's: speak TLS"),
        ("--tls-cert", "PEM certificate of this client, for mutual TLS"),
        ("--tls-key", "PEM key of --tls-cert"),
        ("--token-file", "file with the token that calls carry, alone on a line"),
    ):
        server.add_argument(name, default="", metavar="FILE", help=what)
    server.add_argument(
        "--tls-server-name",
        default="",
        metavar="NAME",
        help="name to find in the server's certificate; default: that of the address",
    )
    worker = modes.add_parser(
        "worker",
        help="test a worker",
        epilog=_WORKER_HELP,
        usage="aerie-conformance worker --boundaries LIST --target DIR [...] -- COMMAND...",
    )
    _add_worker_flags(worker)
    for mode, rules in ((server, SERVER_RULES), (worker, WORKER_RULES)):
        mode.add_argument(
            "--rule",
            action="append",
            metavar="NAME",
            choices=list(rules),
            help="only this rule; repeatable; see --list",
        )
        mode.add_argument("--json", metavar="FILE", help="write the report there as JSON, too")
        mode.add_argument(
            "--fail-on-skip",
            action="store_true",
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
    add(
        "--boundaries",
        required=True,
        metavar="LIST",
        help="what the drafter wants captured, in order, e.g. 2,15,27 or 2,15,final_norm",
    )
    add("--target", type=pathlib.Path, metavar="DIR", help="folder of the target's config.json")
    add("--num-layers", type=int, metavar="N", help="decoder layers, in place of --target")
    add("--hidden-size", type=int, metavar="N", help="in place of --target")
    add("--vocab-size", type=int, metavar="N", help="in place of --target")
    add(
        "--listen",
        default="127.0.0.1:0",
        metavar="HOST:PORT",
        help="where the strict server listens; port 0: a free one; default: %(default)s",
    )
    add(
        "--manual",
        action="store_true",
        help="no COMMAND: say when to decode the text, and wait for Enter after it",
    )
    add(
        "--scenario",
        action="append",
        metavar="NAME",
        choices=[s.name for s in SCENARIOS],
        help="only this scenario beside `plain`; repeatable: "
        + ", ".join(s.name for s in SCENARIOS),
    )
    add(
        "--texts",
        type=pathlib.Path,
        metavar="FILE",
        help="JSON list of the token id lists that will be decoded, prompt and text, first token "
        "included: then pairing is judged exactly",
    )
    add(
        "--same-output",
        action="store_true",
        help="COMMAND prints its text and nothing that varies: compare it between scenarios",
    )
    add("--expect-output", type=pathlib.Path, metavar="FILE", help="what COMMAND has to print")
    add(
        "--max-k",
        type=int,
        default=8,
        metavar="N",
        help="the strict server's limit, 1 or more; default: %(default)s",
    )
    add(
        "--row-tolerance",
        type=float,
        default=0.05,
        metavar="X",
        help="largest difference of one position's row between two passes of the target, relative "
        "to its size; default: %(default)s",
    )
    add(
        "--patience",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds after which a worker that waits for one answer has no deadline; default: "
        "%(default)s",
    )
    add(
        "--comeback",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds within which a worker has to ask again after a failure; default: %(default)s",
    )
    add(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds that COMMAND may take for one scenario; default: %(default)s",
    )
