#!/usr/bin/env python3
"""The layering check finds each kind of fault in a small tree that has it, and none in one that has not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("layering.py")


def run(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"tests/CMakeLists.txt": "aerie_test(a SRCS a_test.cc)", **files}.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
        return result.returncode, result.stdout


class LayeringTest(unittest.TestCase):
    def test_accepts_what_the_arrows_allow(self):
        code, out = run({"server/engine/a.cc": '#include "common/wiring.h"\n#include <vector>\n',
                         "server/model/b.cc": '#include <torch/torch.h>\n#include "server/engine/draft_model.h"\n',
                         "tests/a_test.cc": '#include "server/engine/a.h"\n'})
        self.assertEqual(code, 0, out)

    def test_refuses_each_forbidden_include(self):
        for name, include in [("server/engine/a.cc", "torch/torch.h"), ("server/engine/a.cc", "grpcpp/grpcpp.h"),
                              ("server/engine/a.cc", "server/model/eagle3_model.h"),
                              ("server/model/a.cc", "server/engine/draft_engine.h"),
                              ("common/a.h", "common/rpc/codec.h"), ("common/a.h", "server/engine/session.h"),
                              ("client/a.cc", "server/engine/session.h"), ("server/metrics/a.cc", "server/engine/session.h"),
                              ("server/recording/a.cc", "server/engine/session.h"),
                              ("server/recording/a.cc", "torch/torch.h"), ("server/engine/a.cc", "prometheus/counter.h"), ("server/config/a.cc", "torch/torch.h")]:
            with self.subTest(file=name, include=include):
                code, out = run({name: f"#include <{include}>\n"})
                self.assertEqual(code, 1, out)
                self.assertIn(include, out)

    def test_refuses_a_test_that_no_build_file_names(self):
        code, out = run({"common/a.h": "", "tests/common/lost_test.cc": ""})
        self.assertEqual(code, 1, out)
        self.assertIn("lost_test.cc", out)


if __name__ == "__main__":
    unittest.main()
