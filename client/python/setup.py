"""Generates the gRPC stubs from the wire contract while the package is built.

The contract lives once, in the repository's proto/. A source distribution carries a copy, since it
is built far from the repository; a checkout never does: proto/ beside this file exists only there.
Stubs go to aerie_draft/_proto, in the build folder or, for an editable install, in the source tree
(where git ignores them).
"""

import pathlib
import re
import shutil
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
CONTRACT = "aerie/v1/draft.proto"


def contract_root() -> pathlib.Path:
    roots = [HERE / "proto", HERE.parent.parent / "proto"]
    for root in roots:
        if (root / CONTRACT).is_file():
            return root
    sys.exit(
        f"aerie-draft: {CONTRACT} is in neither {roots[0]} nor {roots[1]}; expected a checkout of "
        "the repository or a source distribution; build from one of these"
    )


def generate_stubs(package: pathlib.Path) -> None:
    """Writes draft_pb2.py, draft_pb2.pyi and draft_pb2_grpc.py into `package`."""
    from importlib.resources import files

    from grpc_tools import protoc

    root = contract_root()
    package.mkdir(parents=True, exist_ok=True)
    scratch = package / "generated"
    scratch.mkdir(exist_ok=True)
    well_known = files("grpc_tools") / "_proto"
    arguments = [f"-I{root}", f"-I{well_known}"]
    arguments += [f"--{kind}_out={scratch}" for kind in ("python", "pyi", "grpc_python")]
    if protoc.main(["protoc", *arguments, CONTRACT]) != 0:
        sys.exit(
            f"aerie-draft: protoc refused {root / CONTRACT}; expected a contract that it reads; "
            "its messages are above; mend the contract"
        )
    for stub in sorted((scratch / "aerie" / "v1").iterdir()):
        # Flat and relative: a top-level `aerie` package on the path belongs to somebody else.
        text = re.sub(
            r"^from aerie\.v1 import", "from . import", stub.read_text(), flags=re.MULTILINE
        )
        (package / stub.name).write_text(text)
    (package / "__init__.py").write_text(
        '"""Generated from aerie/v1/draft.proto. Not for editing."""\n'
    )
    shutil.rmtree(scratch)


class BuildPy(build_py):
    """Adds the stubs to what is built. No list of packages names them: they do not exist yet."""

    def run(self):
        super().run()
        root = HERE if self.editable_mode else pathlib.Path(self.build_lib)
        generate_stubs(root / "aerie_draft" / "_proto")


class Sdist(sdist):
    """Puts the contract into the source distribution and leaves the stubs out of it."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(
            base_dir, [f for f in files if "_proto" not in pathlib.Path(f).parts]
        )
        copy = pathlib.Path(base_dir) / "proto" / CONTRACT
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(contract_root() / CONTRACT, copy)


setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
