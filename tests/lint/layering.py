#!/usr/bin/env python3
"""Fails when a file includes what its layer may not see, or when a test is in no CMakeLists.txt.

The arrows are those of docs/architecture.md. A rule lists what a folder may include of ours; which third-party
headers it may see is listed in THIRD_PARTY. The most specific folder wins.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

# Folder -> prefixes of our own includes that it may use, beside its own folder.
ALLOWED = {
    "common": ["aerie_version.h"],
    "common/safetensors": ["common/"],
    "common/rpc": ["common/", "aerie/v1/", "google/rpc/"],
    "server/engine": ["common/"],
    "server/checkpoint": ["common/"],
    "server/recording": ["common/", "server/checkpoint/", "server/engine/row_observer.h"],
    "server/verify": ["common/", "server/checkpoint/", "server/recording/", "server/guard/", "server/engine/draft_model.h",
                      "server/model/eagle3_model.h", "server/inspect/checkpoint_flags.h"],
    "server/guard": ["common/", "server/engine/round_observer.h", "server/engine/row_observer.h"],
    "server/kernels": [],
    "server/model": ["common/", "server/engine/draft_model.h", "server/checkpoint/", "server/kernels/"],
    "server/metrics": ["common/", "server/engine/round_observer.h", "server/guard/wiring_observer.h",
                       "server/request_log/request_log_observer.h", "server/transport/rpc_observer.h",
                       "aerie_version.h"],
    "server/request_log": ["common/", "server/engine/round_observer.h"],
    "server/transport": ["common/", "server/engine/", "aerie/v1/", "aerie_version.h"],
    "server/config": ["common/", "server/", "aerie_version.h"],
    "server/serving": ["common/", "server/", "aerie/v1/", "aerie_version.h"],
    "server": ["common/", "server/", "aerie_version.h"],
    "client": ["common/", "aerie/v1/", "aerie_version.h"],
    "client/admin": ["common/", "aerie/v1/", "aerie_version.h"],
    "client/loadtest": ["common/", "client/", "aerie/v1/", "aerie_version.h"],
    "tests": [""],
}
# common without rpc and safetensors: the rest of common must not reach into them.
FORBIDDEN = {
    "common": ["common/rpc/", "common/safetensors/"],
    "common/safetensors": ["common/rpc/"],
    "server/engine": ["common/rpc/"],
    "server/checkpoint": ["common/rpc/"],
    "server/recording": ["common/rpc/"],
    "server/verify": ["common/rpc/"],
    "server/guard": ["common/rpc/"],
    "server/model": ["common/rpc/"],
    "server/metrics": ["common/rpc/"],
    "server/request_log": ["common/rpc/"],
}
# Third-party headers -> the only folders that may see them.
THIRD_PARTY = {
    r"^(torch|ATen|c10|caffe2)/": ["server/model", "tests/server/model", "tests/tools", "tests/benchmarks"],
    r"^(grpc|grpcpp|grpc\+\+)/": ["common/rpc", "server/transport", "server/probe.cc", "client", "tests"],
    r"^google/protobuf/": ["common/rpc", "server/transport", "client", "tests"],
    r"^prometheus/": ["server/metrics", "tests/server/metrics"],
    r"^CLI/": ["server/config", "server/inspect", "server/recording", "server/verify",
              "client/admin", "client/loadtest", "tests/benchmarks", "tests/conformance", "tests/cuda/benchmark", "tests/tools"],
}
OURS = re.compile(r"^(common|server|client|tests|aerie|google/rpc)/|^aerie_version\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def layer_of(path):
    """The longest folder of ALLOWED that holds `path`."""
    return max((f for f in ALLOWED if path.startswith(f + "/")), key=len, default=None)


def check_includes(path, text):
    layer = layer_of(path)
    if layer is None:
        yield f"{path}: no layer of tests/lint/layering.py holds this file; add its folder and its arrows"
        return
    for include in INCLUDE.findall(text):
        for pattern, folders in THIRD_PARTY.items():
            if re.match(pattern, include) and not any(
                    path == f or path.startswith(f + "/") for f in folders):
                yield f"{path}: includes {include}; only {', '.join(folders)} may; move the code there"
        if not OURS.match(include):
            continue
        own = include.startswith(layer + "/")
        allowed = own or any(include.startswith(prefix) for prefix in ALLOWED[layer])
        forbidden = any(include.startswith(prefix) for prefix in FORBIDDEN.get(layer, []))
        if forbidden or not allowed:
            yield (f"{path}: includes {include}; layer {layer} may use "
                   f"{', '.join(ALLOWED[layer]) or 'nothing of ours'}; see docs/architecture.md")


def check_registration():
    listed = "\n".join(p.read_text() for p in ROOT.glob("tests/**/CMakeLists.txt"))
    for test in sorted(ROOT.glob("tests/**/*_test.cc")):
        name = str(test.relative_to(ROOT / "tests"))
        if name not in listed:
            yield f"tests/{name}: no CMakeLists.txt names it, so it never runs; add an aerie_test()"
    for test in sorted(ROOT.glob("tests/**/test_*.py")):
        name = test.name
        folder = test.parent
        while folder != ROOT and not (folder / "CMakeLists.txt").exists():
            folder = folder.parent
        text = (folder / "CMakeLists.txt").read_text()
        # A pytest run over the whole folder takes every file in it.
        if name not in text and "PYTEST_FOLDER" not in text:
            yield f"{test.relative_to(ROOT)}: {folder.relative_to(ROOT)}/CMakeLists.txt does not run it"


def main():
    errors = []
    files = [p for top in ("common", "server", "client", "tests") for p in sorted((ROOT / top).rglob("*"))
             if p.suffix in (".h", ".cc", ".cu", ".cuh")]
    if not files:
        errors.append(f"{ROOT}: no source file found; run this from the repository's root")
    for file in files:
        errors += check_includes(str(file.relative_to(ROOT)), file.read_text())
    errors += check_registration()
    for error in errors:
        print(error)
    print(f"{len(files)} files, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
