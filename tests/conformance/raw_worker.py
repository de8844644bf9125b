"""A worker straight on the wire, right in everything, or wrong in one named way (`bugs.py`).

It uses no client library on purpose: what it breaks, libraries keep a worker from breaking.
"""

import argparse
import os
import sys
import time

import fake_target
import grpc
import numpy as np
from aerie_draft._proto import draft_pb2 as pb
from aerie_draft._proto import draft_pb2_grpc
from bugs import BUGS
from raw_wire import Failed, Stream, Unary


class Worker:
    def __init__(self, address, bug="", stream=False, k=4, timeout=3.0):
        self.bug, self.k, self.timeout = bug, k, timeout
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        self._stub = draft_pb2_grpc.DraftServiceStub(self._channel)
        wire = Stream(self._stub, bug == "takes_any_answer") if stream else Unary(self._stub)
        self._wire = wire
        info = self._stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=60)
        self._limit = info.limits.max_rows_per_call
        self._max_k = info.limits.max_k
        boundaries = list(fake_target.BOUNDARIES)
        if bug == "layer_ids_for_boundaries":
            boundaries = [b - 1 for b in boundaries]
        self._manifest = pb.Manifest(
            target_id="fake",
            num_layers=fake_target.LAYERS,
            hidden_size=fake_target.HIDDEN,
            vocab_size=fake_target.VOCAB,
            dtype=pb.DATA_TYPE_FLOAT32,
            captures=[pb.Capture(kind=pb.CAPTURE_KIND_BOUNDARY, boundary=b) for b in boundaries],
        )
        self._session = None
        self._told = self._seq = 0
        self._not_before = 0.0
        self._draft, self._accepted = None, None
        self._silent = False  # for the rest of the text

    def close(self):
        self._channel.close()

    def generate(self, count):
        """The prompt's continuation, `count` tokens, decoded with drafts."""
        history, self._rows, self._tokens = list(fake_target.PROMPT), [], []
        end = len(history) + count
        self._forward(history, 0)
        while len(history) < end:
            room = end - len(history) - 1
            draft = self._propose(min(self.k, room)) if room > 0 else []
            self._verify(history, draft, end)
        if self._session is not None and self.bug != "never_closes":
            final = self._tokens[self._told :]
            request = pb.CloseSessionRequest(
                session_id=self._session,
                final_token_ids=[] if self.bug == "no_final_tokens" else final,
            )
            self._try("close_session", request)
            if self.bug == "calls_after_the_close":
                self._try("close_session", request)
        return history[len(fake_target.PROMPT) :]

    def _forward(self, history, first):
        """Adds the target's choice behind `history`, and rows of its positions from `first` on."""
        rows = list(fake_target.rows(history, first))
        history.append(fake_target.choice(history))
        self._keep(history, first, rows)

    def _keep(self, history, first, rows):
        tokens = history[first + 1 :]
        if self.bug == "row_with_its_own_token":
            tokens = history[first:-1]
        if self.bug == "states_one_ahead":
            rows = rows[1:] + [fake_target.row(history)]
        self._tokens += tokens
        self._rows += rows

    def _verify(self, history, draft, end):
        first = len(history) - 1
        kept = 0
        place = 1 if self.bug == "verifies_one_off" else 0
        while kept + place < len(draft) and draft[kept + place] == fake_target.choice(
            history + draft[:kept]
        ):
            kept += 1
        if self.bug == "takes_unverified_tokens":
            kept = len(draft)
        self._accepted = kept + (self.bug == "counts_the_bonus") if draft else None
        accepted = draft[:kept]
        new = accepted + [fake_target.choice(history + accepted)]
        rows = [fake_target.row(history + accepted[:i]) for i in range(len(new))]
        if self.bug == "rejected_tokens_in_kv" and kept < len(draft):
            # The cache holds the rejected token when the next position is computed.
            rows[-1] = fake_target.row(history + draft[: kept + 1])
        if self.bug == "rows_of_the_wrong_node" and kept:
            rows[0] = rows[1]
        if self.bug == "rejected_rows_kept" and kept < len(draft):
            wrong = draft[kept:]
            self._tokens += accepted + wrong
            self._rows += rows + [
                fake_target.row(history + draft[:i]) for i in range(kept + 1, len(draft))
            ]
            history += new
            return
        if self.bug == "bonus_token_left_out" and kept:
            self._tokens += accepted
            self._rows += rows[: len(accepted)]
            history += new
            return
        history += new
        del history[end:]
        self._keep(history, first, rows[: len(history) - 1 - first])

    # The wire.

    def _try(self, kind, request):
        try:
            return self._wire.call(kind, request, self.timeout)
        except Failed:
            return None

    def _propose(self, k):
        if self._silent or time.monotonic() < self._not_before:
            self._draft = None
            return []
        for _ in range(4):
            try:
                return self._send(k)
            except Failed as failed:
                again = self._recover(failed)
                if not again:
                    self._accepted = None
                    return []
        return []

    def _send(self, k):
        if self._session is None:
            request = pb.OpenSessionRequest(manifest=self._manifest)
            self._session = self._wire.call("open_session", request, self.timeout).session_id
            self._told = self._seq = 0
            self._accepted = None  # of no proposal of this session
            if self.bug == "new_session_without_old_rows" and len(self._tokens) > 20:
                self._told = len(self._tokens) - 2
        first, end = self._told, len(self._tokens)
        if self.bug == "builds_on_unanswered_rows":
            self._told = end
        while self.bug != "whole_prompt_in_one_call" and end - first > self._limit:
            self._call(first, first + self._limit, 0)
            first += self._limit
        answer = self._call(first, end, k if self.bug != "k_above_the_limit" else self._max_k + 1)
        tokens = list(answer.tree.token_ids)
        if self.bug == "wants_whole_drafts" and 0 < len(tokens) < k:
            raise IndexError("a draft of another length")
        if answer.no_draft_reason == pb.NO_DRAFT_REASON_CONTEXT_LIMIT:
            if self.bug == "fails_past_the_context":
                raise IndexError("no draft")
            self._silent = True
        return tokens

    def _call(self, first, end, k):
        tokens, data = (
            self._tokens[first:end],
            b"".join(row.astype("<f4").tobytes() for row in self._rows[first:end]),
        )
        base = first
        if self.bug == "length_counts_tokens" and first:
            base += 1
        if self.bug == "one_capture_missing":
            data = data[: len(data) // 2]
        if self.bug == "nan_in_a_row" and first:
            data = np.float32(np.nan).tobytes() + data[4:]
        if self.bug == "padding_ids" and first:
            tokens = [*tokens[:-1], fake_target.VOCAB]
        self._seq += 1
        seq = self._seq
        if self.bug == "numbers_fall":
            seq = 100 - self._seq
        request = pb.DraftRequest(
            session_id=self._session, seq=seq, base_length=base, token_ids=tokens, k=k
        )
        request.hidden_states.dtype = pb.DATA_TYPE_FLOAT32
        request.hidden_states.data = data
        if self._accepted is not None and first + len(tokens) == len(self._tokens):
            request.accepted = self._accepted
        timeout = None if self.bug == "no_deadline" else self.timeout
        try:
            answer = self._wire.call("draft", request, timeout)
        except Failed as failed:
            # A connection that broke under the call: the very same call once more.
            if failed.detail is not None or failed.code is not grpc.StatusCode.UNAVAILABLE:
                raise
            if self.bug == "number_reused":
                self._seq -= 1
                raise
            answer = self._wire.call("draft", request, timeout)
        self._told = answer.length if self.bug != "builds_on_unanswered_rows" else end
        self._accepted = None
        return answer

    def _recover(self, failed):
        """What to do about a refusal; True: send again at once."""
        code, detail = failed.code, failed.detail
        if self.bug == "stops_when_refused":
            raise SystemExit(f"the draft server failed: {code}")
        if code is grpc.StatusCode.NOT_FOUND:
            if self.bug == "calls_a_lost_session":
                return False
            self._session = None
            return True
        if detail is not None and detail.HasField("resend_from"):
            self._told = detail.resend_from
            if self.bug == "resends_too_late":
                self._told += 2
            if self.bug == "resends_the_newest_only":
                kept = self._tokens[: self._told]
                self._tokens = kept + self._tokens[-3:]
                self._rows = self._rows[: self._told] + self._rows[-3:]
            return True
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            if self.bug == "fails_on_new_reasons" and detail.reason not in ("QUEUE_FULL",):
                raise KeyError(detail.reason)
            wait = detail.retry_after.seconds + detail.retry_after.nanos * 1e-9
            if self.bug != "asks_at_once":
                self._not_before = time.monotonic() + wait
        if self.bug == "never_asks_again":
            self._silent = True
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default=os.environ.get("AERIE_ADDRESS"))
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--tokens", type=int, default=60)
    arguments = parser.parse_args()
    worker = Worker(arguments.address, arguments.bug, arguments.stream)
    print(worker.generate(arguments.tokens))
    return 0


if __name__ == "__main__":
    sys.exit(main())
