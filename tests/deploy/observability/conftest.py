"""Puts tests/deploy on the path: both folders of tests use what lies there."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
