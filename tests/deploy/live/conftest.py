"""Puts on the path what these tests share: tests/deploy, and the server as a process from tests/e2e."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "deploy"), str(TESTS / "e2e")]
