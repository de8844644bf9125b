"""vLLM's worker against the strict server: one engine, asked for the same text once a scenario.

To be run by the Python of vLLM's environment, with this package on its path; ends with 77 where
either is missing. The engine is started by the first scenario, since it asks the server what it
holds, and lives through all of them.
"""

import argparse
import os
import pathlib
import sys

SKIPPED = 77
BOUNDARIES = (2, 15, 27)
TOKENS = 80

try:
    import aerie_draft.vllm  # noqa: F401
    import vllm  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; expected vLLM and aerie_draft.vllm; demo/vllm installs them")
    sys.exit(SKIPPED)

from aerie_draft import captures_at
from aerie_draft.conformance.shape import DrafterShape, sizes_of_target
from aerie_draft.conformance.worker_suite import WorkerRun, WorkerSettings, check_worker


class Engine:
    def __init__(self, target, transport):
        self._target, self._transport = target, transport
        self._engine = self._prompt = None

    def start(self, address):
        from vllm import LLM

        table = {"address": address, "transport": self._transport, "deadline": 2.0}
        self._engine = LLM(
            str(self._target),
            dtype="float32",
            enforce_eager=True,
            max_model_len=512,
            max_num_seqs=4,
            enable_prefix_caching=False,
            async_scheduling=False,
            worker_cls="aerie_draft.vllm.CPUWorker",
            speculative_config={
                "method": "custom_class",
                "model": "aerie_draft.vllm.Proposer",
                "num_speculative_tokens": 4,
            },
            additional_config={"aerie": table},
        )
        self._prompt = self._engine.get_tokenizer()(
            "Once upon a time a king and a queen lived in a castle by the sea, and the king and the"
            " queen had a daughter. The daughter"
        )["input_ids"]

    def run(self, address, scenario):
        from vllm import SamplingParams, TokensPrompt

        if self._engine is None:
            self.start(address)
        asked = SamplingParams(temperature=0.0, max_tokens=TOKENS, ignore_eos=True)
        (answer,) = self._engine.generate(TokensPrompt(prompt_token_ids=self._prompt), asked)
        return WorkerRun(0, str(list(answer.outputs[0].token_ids)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=pathlib.Path, required=True, help="folder of the target")
    parser.add_argument("--transport", default="stream", choices=["stream", "unary"])
    parser.add_argument("--json", type=pathlib.Path, help="write the report there, too")
    arguments = parser.parse_args()
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    shape = DrafterShape(captures=captures_at(BOUNDARIES), **sizes_of_target(arguments.target))
    report = check_worker(
        Engine(arguments.target, arguments.transport).run,
        shape,
        WorkerSettings(same_output=True),
        subject=f"aerie_draft.vllm ({arguments.transport})",
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(report.text())
    if arguments.json:
        arguments.json.write_text(report.json() + "\n")
    return 0 if report.conformant else 1


if __name__ == "__main__":
    sys.exit(main())
