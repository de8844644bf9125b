"""llama.cpp as an engine of the comparison: files converted, server started, asked over HTTP.

Prompts go there as token ids of the target's own tokenizer, so that no second tokenizer decides
what was asked.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse

from engine_answers import Answer, Metrics
from engine_process import ROOT, EngineError, Session, one_thread, wait_for

PREFIX = "llamacpp:"


def convert(
    folder: pathlib.Path, model, output: pathlib.Path, *flags, outtype: str = "f32"
) -> pathlib.Path:
    """A Hugging Face folder as GGUF. `folder`: build/llamacpp; `outtype`: f32, bf16, q8_0 ..."""
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    command = [sys.executable, folder / "source/llama.cpp/convert_hf_to_gguf.py", model]
    command += ["--outtype", outtype, "--outfile", output, *flags]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **one_thread(), "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise EngineError(f"llama.cpp's converter failed on {model}:\n{done.stderr[-2000:]}")
    return output


class LlamaCpp(Session):
    """llama.cpp's server with one thread. Ready once the constructor returns."""

    prefix = PREFIX

    def __init__(self, python, tokenizer, target, folder: pathlib.Path, drafter=None, k: int = 0):
        folder.mkdir(parents=True, exist_ok=True)
        self._tokenizer = tokenizer
        port_file = folder / "address"
        port_file.unlink(missing_ok=True)
        command = [python, ROOT / "demo/llama_cpp_server.py", "--target", target]
        command += ["--port-file", port_file]
        if drafter is not None:
            command += ["--drafter", drafter, "--k", k]
        super().__init__(command, folder / "engine.log", one_thread())
        try:
            wait_for(lambda: port_file.exists() or not self.alive(), "llama.cpp's server", 300.0)
            if not self.alive():
                raise EngineError(f"llama.cpp's server ended:\n{self.log_tail()}")
            self._address = urllib.parse.urlparse(port_file.read_text()).netloc
        except BaseException:
            self.stop()
            raise

    def ask(self, prompt: str, max_tokens: int, top_logprobs: bool = False) -> Answer:
        chat = [{"role": "user", "content": prompt}]
        ids = self._tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_dict=False
        )
        body = {"prompt": ids, "n_predict": max_tokens, "temperature": 0, "return_tokens": True}
        body |= {"cache_prompt": False, "n_probs": 2 if top_logprobs else 0}
        document = self._post("/completion", body)
        tokens = tuple(document["tokens"])
        if not document["stop"] or not tokens:
            raise EngineError(f"an answer is not whole: {document}")
        gaps = ()
        if top_logprobs:
            tops = [token["top_logprobs"] for token in document["completion_probabilities"]]
            gaps = tuple(top[0]["logprob"] - top[1]["logprob"] for top in tops)
        return Answer(tokens, document["content"], gaps)

    def metrics(self) -> Metrics:
        return Metrics.of(self._address)

    def _post(self, path: str, body: dict) -> dict:
        connection = http.client.HTTPConnection(self._address, timeout=600)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise EngineError(f"{path} answered {response.status}: {content[:500]!r}")
        return json.loads(content)
