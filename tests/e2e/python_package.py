"""The Python package of this checkout, built: never one that was installed earlier."""

import os
import shutil
import subprocess
import sys

from server_process import ROOT


def build(folder):
    """Builds it in `folder`; gives the environment to run it in."""
    (folder / "client").mkdir()
    shutil.copytree(ROOT / "proto", folder / "proto")
    shutil.copytree(ROOT / "client/python", folder / "client/python",
                    ignore=shutil.ignore_patterns("_proto", "build", "*.egg-info"))
    subprocess.run([sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(folder / "package")],
                   cwd=folder / "client/python", check=True)
    return {**os.environ, "PYTHONPATH": str(folder / "package")}
