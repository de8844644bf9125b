"""A target worker: a Hugging Face model that generates with drafts from Aerie.

One round: the drafter proposes a chain or a tree after the newest token; one target forward over
the newest token and the proposal gives the target's own scores at each place; what agrees with them
is kept, and the target's own next token comes on top. Greedy text is that of plain greedy decoding,
sampled text has the target's own distribution, whatever the drafter says.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import torch

from aerie_draft.availability import Availability
from aerie_draft.client import DraftClient
from aerie_draft.dtypes import DType
from aerie_draft.fused import FusedFc
from aerie_draft.options import ProposalProbs, SessionOptions, VerifyCost
from aerie_draft.sequence import DraftedSequence
from aerie_draft.stopping import cut
from aerie_draft.transformers.report import Round, Summary
from aerie_draft.transformers.target import CachedTarget
from aerie_draft.values import Manifest, Proposal
from aerie_draft.verify import TreeVerdict, verify_greedy, verify_tree_sampled
from aerie_draft.wiring import Capture, hidden_states_index


class _NoDraft:
    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    distributions: dict = {}


# Of a proposal and the target's logits by node, [nodes, vocab]: what is kept.
Verify = Callable[[Proposal | _NoDraft, torch.Tensor], TreeVerdict]


def _greedy(proposal, logits: torch.Tensor) -> TreeVerdict:
    return verify_greedy(proposal, logits.argmax(dim=-1).tolist())


def _sampled(temperature: float, seed: int) -> Verify:
    uniform = random.Random(seed).random

    def verify(proposal, logits):
        probs = torch.softmax(logits.double() / temperature, dim=-1).cpu().numpy()
        return verify_tree_sampled(proposal, probs, uniform)

    return verify


class Generation:
    """Iterate for the rounds as they are made; `summary` is complete when they end.

    Leaving early is fine: close() (or the end of the object's life) ends the session.
    """

    def __init__(self, rounds: Iterator[Round], summary: Summary):
        self.summary = summary
        self._rounds = rounds

    def __iter__(self) -> Iterator[Round]:
        return self._rounds

    def close(self) -> None:
        self._rounds.close()


class TargetWorker:
    """Generates with one model and one server. One thread at a time.

    Args:
        model: A causal model with a KV cache of attention layers, on any device.
        tokenizer: Gives the end-of-sequence id and the chat template; may be None.
        client: The server. It may go away at any time: decoding goes on without drafts, and with
            them again when it is back.
        k: Draft tokens a round, at most the server's limit; of a tree as well.
        options: How to draft: chain or tree, greedy or sampled, a k that adapts. With sampling,
            the text is sampled too, at the same temperature. max_k is `k`.
        captures: What the drafter was trained on. None asks the server, which must be there then.
        dtype: Of hidden states on the wire.
        fused: The drafter's fc, to be applied here: FusedFc.load(folder of the drafter). Rows are
            then as wide as the drafter's own states. None: captures are sent as they are.
        drafter: Which of the server's drafters; empty: its only one.
        timeout: Seconds that a draft call may take before the round goes without.
    """

    def __init__(
        self,
        model,
        tokenizer,
        client: DraftClient,
        k: int,
        *,
        options: SessionOptions = SessionOptions(),
        captures: Sequence[Capture] | None = None,
        dtype: DType = DType.BFLOAT16,
        fused: FusedFc | None = None,
        drafter: str = "",
        timeout: float = 5.0,
        availability: Availability | None = None,
    ):
        if k < 1:
            raise ValueError(
                f"k is {k}; expected at least 1; use generate_plain() to go without drafts"
            )
        if options.max_k not in (0, k):
            raise ValueError(f"options.max_k is {options.max_k} and k {k}; expected one of both")
        sampling = options.sampling
        if sampling is not None and sampling.proposal_probs is not ProposalProbs.TOP_M:
            raise ValueError(
                f"sampling comes with proposal_probs {sampling.proposal_probs.name}; expected "
                "TOP_M: without the distributions that tokens were drawn from, the target's own "
                "cannot be kept"
            )
        if captures is None:
            info = client.server_info()
            captures = info.drafter(drafter).captures
            if info.limits.max_k and k > info.limits.max_k:
                raise ValueError(
                    f"k is {k}; expected at most {info.limits.max_k}, the server's limit; ask less"
                )
        config = model.config.get_text_config()
        for capture in captures:
            hidden_states_index(
                capture, config.num_hidden_layers
            )  # Refuses what cannot be captured.
        self.manifest = Manifest(
            target_id=str(getattr(model.config, "name_or_path", "") or config.model_type)[-200:],
            num_layers=config.num_hidden_layers,
            hidden_size=config.hidden_size,
            vocab_size=config.vocab_size,
            captures=tuple(captures),
            dtype=dtype,
            drafter=drafter,
            fused=None if fused is None else fused.features,
        )
        self._fused = fused
        self.availability = availability or Availability()
        self.k = k
        self._options = dataclasses.replace(options, max_k=k)
        self._model = model
        self._tokenizer = tokenizer
        self._client = client
        self._timeout = timeout

    def encode_chat(self, text: str) -> list[int]:
        """The prompt ids of one user message in the tokenizer's chat template."""
        messages = [{"role": "user", "content": text}]
        prompt = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return self._tokenizer(prompt, add_special_tokens=False)["input_ids"]

    def generate(
        self,
        prompt_ids: Sequence[int],
        max_new_tokens: int,
        eos_ids: Collection[int] | None = None,
        *,
        seed: int = 0,
        traceparent: str = "",
    ) -> Generation:
        """Decoding with drafts. `eos_ids` None: the tokenizer's; empty: never stop early.

        `seed` is of the target's own draws and has an effect with sampling only. `traceparent` is
        of the request that is served: see DraftedSequence.
        """
        sequence = DraftedSequence(
            self._client,
            self.manifest,
            self.availability,
            self._options,
            traceparent=traceparent,
            timeout=self._timeout,
        )
        return self._start(prompt_ids, max_new_tokens, eos_ids, sequence, seed)

    def generate_plain(
        self,
        prompt_ids: Sequence[int],
        max_new_tokens: int,
        eos_ids: Collection[int] | None = None,
        *,
        seed: int = 0,
    ) -> Generation:
        """The same loop without drafts and without captures, to compare with."""
        return self._start(prompt_ids, max_new_tokens, eos_ids, None, seed)

    def _start(self, prompt_ids, max_new_tokens, eos_ids, sequence, seed) -> Generation:
        if not prompt_ids or max_new_tokens < 1:
            raise ValueError(
                f"{len(prompt_ids)} prompt tokens and max_new_tokens {max_new_tokens}; expected at "
                "least one of each; give a prompt and ask for a token"
            )
        if eos_ids is None:
            eos = getattr(self._tokenizer, "eos_token_id", None)
            eos_ids = () if eos is None else (eos,)
        sampling = self._options.sampling
        verify = _greedy if sampling is None else _sampled(sampling.temperature, seed)
        summary = Summary(prompt_tokens=len(prompt_ids))
        rounds = self._rounds(list(prompt_ids), max_new_tokens, eos_ids, sequence, verify, summary)
        return Generation(rounds, summary)

    def _rounds(
        self, prompt, max_new_tokens, eos_ids, sequence, verify: Verify, summary
    ) -> Iterator[Round]:
        clock = time.perf_counter
        target = CachedTarget(self._model, self.manifest.captures if sequence else ())
        started = clock()
        logits, rows = target.forward(prompt, 1)
        new, done = cut(verify(_NoDraft(), logits).tokens, eos_ids, max_new_tokens)
        first_token_at = clock()
        summary.prefill_seconds = first_token_at - started
        summary.forwards = 1
        summary.tokens += new
        follows = prompt[1:] + new  # of each row the token that follows its state
        cost = None  # of the last verification
        try:
            yield Round(new, [False], 0)
            while not done:
                draft = self._draft(sequence, follows, rows, cost, max_new_tokens, summary)
                follows = []  # Committed: the closing call must not bring them again.
                started = clock()
                before = target.length
                logits, rows = target.forward_tree(summary.tokens[-1], draft.tokens, draft.parents)
                verdict = verify(draft, logits)
                # The newest token has been run now; what the target refused has not happened.
                target.keep_path(before, verdict.path)
                now = clock()
                cost = VerifyCost(now - started, len(draft.tokens))
                new, done = cut(verdict.tokens, eos_ids, max_new_tokens - len(summary.tokens))
                kept = min(verdict.accepted, len(new))
                summary.forwards += 1
                summary.count_verified(len(draft.tokens), max(draft.depths, default=0), kept)
                summary.target_seconds += cost.seconds
                summary.decode_seconds = now - first_token_at
                summary.tokens += new
                follows = new
                rows = None if rows is None else rows[[0, *verdict.path]][: len(new)]
                yield Round(new, [i < kept for i in range(len(new))], len(draft.tokens))
        finally:
            # The closing call judges the last draft: its tokens have states that nobody needs.
            if sequence is not None:
                summary.record = sequence.finish(follows)
                summary.missed_rounds, summary.resyncs = sequence.missed, sequence.resyncs

    def _draft(self, sequence, follows, rows, cost, max_new_tokens, summary) -> Proposal | _NoDraft:
        """Commits the rows of the last forward and gets a proposal; empty when there is none."""
        if sequence is None:
            return _NoDraft()
        started = time.perf_counter()
        sequence.commit(follows, rows if self._fused is None else self._fused(rows))
        # The last token of the text needs no draft: the target makes one more than it accepts. Of a
        # tree k counts nodes, and the levels that are too many do no harm.
        room = max_new_tokens - len(summary.tokens) - 1
        k = self.k if self._options.tree is not None and room > 0 else min(self.k, room)
        cost = cost if self._options.adaptive_k else None
        proposal = sequence.propose(k, cost) if k > 0 else None
        summary.draft_seconds += time.perf_counter() - started
        if proposal is None:
            return _NoDraft()
        summary.count_proposal(proposal)
        return proposal
