"""One engine, asked the same prompts one after the other, and what that took."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import time
from collections.abc import Sequence

from engine_answers import Answer, SpecDecode, compare
from engine_process import AerieServer, Engine, aerie_flags, head_with_ids, native_flags
from llama_cpp import LlamaCpp, convert

# One sequence after the other; no prefix is taken over from the prompt before.
ENGINE_FLAGS = [
    *("--max-model-len", "1024", "--max-num-seqs", "8", "--no-enable-prefix-caching"),
]
# The demo's target and head are known by these; the head's own config names the layers before.
BOUNDARIES, HEAD_IDS = (2, 15, 27), (1, 14, 26)
# What a busy machine may need for a draft; a production engine waits less.
DEADLINE = 10.0


@dataclasses.dataclass(frozen=True)
class Places:
    """Where programs and models are."""

    python: pathlib.Path  # of the environment with vLLM
    package: pathlib.Path  # folder with aerie_draft
    server: pathlib.Path
    drafter: pathlib.Path
    target: pathlib.Path
    work: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Run:
    """What one engine did with all prompts."""

    name: str
    answers: tuple[Answer, ...]
    seconds: float
    cpu_seconds: float  # of the engine and, if there is one, of the draft server
    memory_bytes: int
    server_memory_bytes: int
    counted: SpecDecode | None  # by the engine
    server_counted: SpecDecode | None

    @property
    def tokens(self) -> int:
        return sum(len(answer.tokens) for answer in self.answers)

    @property
    def tok_per_s(self) -> float:
        return self.tokens / self.seconds

    @property
    def tok_per_cpu_s(self) -> float:
        return self.tokens / self.cpu_seconds

    @property
    def accept_length(self) -> float:
        return self.counted.accept_length if self.counted else 1.0

    def verdicts(self, plain: Run) -> list[str]:
        return [compare(a, b) for a, b in zip(plain.answers, self.answers, strict=True)]


def as_row(run: Run, plain: Run) -> dict:
    """For JSON and tables."""
    verdicts = run.verdicts(plain)
    return {
        "name": run.name,
        "accept_length": run.accept_length,
        "drafts": run.counted.drafts if run.counted else 0,
        "accepted_per_position": list(run.counted.accepted_per_position) if run.counted else [],
        "texts": {kind: verdicts.count(kind) for kind in ("equal", "tie", "wrong")},
        "tok_per_s": run.tok_per_s,
        "tok_per_cpu_s": run.tok_per_cpu_s,
        "memory_bytes": run.memory_bytes,
        "server_memory_bytes": run.server_memory_bytes,
    }


def run_plain(places: Places, prompts, max_tokens: int) -> Run:
    with Engine(places.python, places.target, places.work / "plain", *ENGINE_FLAGS) as engine:
        return _ask(engine, "vLLM", prompts, max_tokens, top_logprobs=True)


def run_native(places: Places, prompts, max_tokens: int, k: int, ids=BOUNDARIES, name="") -> Run:
    """vLLM's own EAGLE-3. It reads the ids in the head's config as boundaries."""
    folder = places.work / f"native-{'-'.join(map(str, ids))}"
    head = head_with_ids(places.drafter, ids, folder / "head")
    flags = [*ENGINE_FLAGS, *native_flags(head, k)]
    with Engine(places.python, places.target, folder, *flags) as engine:
        return _ask(engine, name or "vLLM, its own EAGLE-3", prompts, max_tokens, k=k)


def run_aerie(places: Places, prompts, max_tokens: int, k: int, pages=None) -> Run:
    """`pages`: called with both metrics pages at the end."""
    work = places.work / "aerie"
    with AerieServer(places.server, places.drafter, places.target, work / "server") as server:
        flags = [*ENGINE_FLAGS, *aerie_flags(server.address, k, deadline=DEADLINE)]
        with Engine(
            places.python, places.target, work / "engine", *flags, package=places.package
        ) as engine:
            run = _ask(engine, "vLLM + Aerie", prompts, max_tokens, k=k, server=server)
            if pages is not None:
                pages(engine.metrics(), server.metrics())
            return run


def run_llama_cpp(places: Places, folder: pathlib.Path, prompts, max_tokens: int, k: int):
    """llama.cpp without drafts and with its own EAGLE-3: two runs. `folder`: build/llamacpp."""
    from transformers import AutoTokenizer

    work, python = places.work / "llamacpp", folder / "venv/bin/python"
    work.mkdir(parents=True, exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(places.target)
    target = convert(folder, places.target, work / "target.gguf")
    # It reads layer ids at the top level of the config only, and else has boundaries by default,
    # which for this target are those of the head.
    flags = ("--target-model-dir", places.target)
    drafter = convert(folder, places.drafter, work / "drafter.gguf", *flags)
    with LlamaCpp(python, tokenizer, target, work / "plain") as engine:
        plain = _ask(engine, "llama.cpp", prompts, max_tokens, top_logprobs=True)
    with LlamaCpp(python, tokenizer, target, work / "native", drafter, k) as engine:
        native = _ask(engine, "llama.cpp, its own EAGLE-3", prompts, max_tokens, k=k)
    return plain, native


def _ask(
    engine: Engine | LlamaCpp,
    name: str,
    prompts: Sequence[str],
    max_tokens: int,
    k: int = 0,
    server: AerieServer | None = None,
    top_logprobs: bool = False,
) -> Run:
    print(f"  {name}: ready after {engine.cpu_seconds():.0f} CPU seconds", file=sys.stderr)
    engine.ask("Hello.", 8)  # The first forwards of a process are slow; nobody's measurement.
    used = engine.cpu_seconds() + (server.cpu_seconds() if server else 0.0)
    started = time.monotonic()
    answers = tuple(engine.ask(p, max_tokens, top_logprobs) for p in prompts)
    seconds = time.monotonic() - started
    used = engine.cpu_seconds() + (server.cpu_seconds() if server else 0.0) - used
    counted = server_counted = None
    if k:
        counted, server_counted = _counters(engine, server, k)
    return Run(
        name,
        answers,
        seconds,
        used,
        engine.memory_bytes(),
        server.memory_bytes() if server else 0,
        counted,
        server_counted,
    )


def _counters(engine: Engine | LlamaCpp, server: AerieServer | None, k: int):
    """Both programs' counts; the end of the last request reaches the server in passing."""
    end = time.monotonic() + 30.0
    while True:
        counted = SpecDecode.read(engine.metrics(), engine.prefix, k)
        if server is None:
            return counted, None
        theirs = SpecDecode.read(server.metrics(), "aerie_", k)
        if counted == theirs or time.monotonic() > end:
            return counted, theirs
        time.sleep(0.1)
