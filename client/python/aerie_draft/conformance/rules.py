"""The rules that are checked, by name. docs/worker-contract.md explains each of them.

W rules bind workers, S rules servers. Names are stable: people put them into CI.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Rule:
    """`says` is the rule in one sentence; `needs` what must happen before it can be judged."""

    name: str
    says: str
    needs: str


def _rules(*rows: tuple[str, str, str]) -> dict[str, Rule]:
    return {name: Rule(name, says, needs) for name, says, needs in rows}


WORKER_RULES = _rules(
    (
        "W-MANIFEST",
        "The manifest states the target's sizes and the drafter's captures in their order.",
        "an OpenSession or a stateless call",
    ),
    (
        "W-CHUNK",
        "Calls keep to the rows and bytes that GetServerInfo tells; longer prompts come in several "
        "calls, all but the last with k = 0.",
        "a prompt longer than the limit, max_k + 4 rows",
    ),
    (
        "W-K",
        "k is at most the session's max_k, and above 0 only with a row.",
        "a call with k > 0",
    ),
    (
        "W-ROW-BYTES",
        "Each token comes with one row, in the manifest's dtype, of exactly captures x hidden_size "
        "elements.",
        "a call with rows",
    ),
    ("W-FINITE", "No row holds a NaN or an infinity.", "a call with rows"),
    ("W-VOCAB", "Token ids are ids of the target, never padding.", "a call with rows"),
    (
        "W-BASE",
        "base_length is the row index of the first row: at most the length that an answer told.",
        "a second call of a session",
    ),
    (
        "W-PAIRING",
        "Row i pairs the state of position i with the token at position i + 1.",
        "a text in which tokens occur again, or --texts",
    ),
    (
        "W-ROWS-COMMITTED",
        "Rows are of committed tokens: those of the text that the worker decodes without drafts.",
        "a scenario with drafts",
    ),
    (
        "W-REJECTED-DROPPED",
        "A draft token that the target refused leaves no row.",
        "a proposal with wrong tokens whose outcome came",
    ),
    (
        "W-ROWS-SAME",
        "The row of a position is the same however often and after whatever drafts it is sent.",
        "a position sent twice with the same tokens before it",
    ),
    (
        "W-VERIFY",
        "Draft tokens that are right are kept: they are verified at their own positions.",
        "proposals with right tokens before the end of the text",
    ),
    (
        "W-SHORT-DRAFT",
        "A proposal of fewer tokens than k, or of none, is taken as it is.",
        "a call with k > 1 in the scenario `short-drafts`",
    ),
    (
        "W-ACCEPTED",
        "`accepted`, where it is told, is what the tokens say.",
        "a call that tells `accepted`",
    ),
    ("W-SEQ", "The numbers of a session's calls grow.", "numbered calls"),
    (
        "W-SEQ-RETRY",
        "A call with a number that was sent before is that call again, to the byte.",
        "a repeated number",
    ),
    (
        "W-RESEND-FROM",
        "A session that lacks rows gets them from the row that the refusal names.",
        "an eviction (the scenario `lost-rows`)",
    ),
    (
        "W-SESSION-LOST",
        "A session that the server does not know is not called again; a new one gets all rows.",
        "a restart (the scenario `restart`)",
    ),
    (
        "W-FAIL-OPEN",
        "Whatever the server does, the worker ends well and its text is the one without drafts.",
        "a scenario with faults",
    ),
    (
        "W-COMES-BACK",
        "A worker that went without drafts asks again by itself once the server serves.",
        "a call after a refusal",
    ),
    (
        "W-RETRY-AFTER",
        "After RESOURCE_EXHAUSTED a session does not call before retry_after has passed.",
        "a call after such a refusal",
    ),
    (
        "W-DEADLINE",
        "Draft calls carry a deadline, and an answer that does not come is given up.",
        "a unary call, or an answer held back (the scenario `slow`)",
    ),
    (
        "W-LATE-DRAFT",
        "An answer that comes after the worker gave it up is no answer to anything else.",
        "a call behind the one that was held back (the scenario `slow`)",
    ),
    (
        "W-CONTEXT-LIMIT",
        "A sequence past the server's context goes on without drafts.",
        "a call that was answered CONTEXT_LIMIT",
    ),
    (
        "W-NEWER-SERVER",
        "Fields, reasons and enum values that the worker does not know change nothing.",
        "the scenario `newer-server`",
    ),
    (
        "W-CLOSE",
        "A session is closed once when its sequence ends, and not called afterwards.",
        "a session",
    ),
    (
        "W-FINAL-TOKENS",
        "The close brings the tokens since the last Draft, so that the last proposal is judged.",
        "a session closed with a proposal open",
    ),
    (
        "W-OUTPUT",
        "What the worker prints is the same in every scenario.",
        "--same-output or --expect-output",
    ),
)

SERVER_RULES = _rules(
    ("S-INFO", "GetServerInfo tells drafters, limits, dtypes and sources.", ""),
    ("S-HEALTH", "The standard health service says SERVING.", ""),
    ("S-OPEN", "A fitting manifest opens a session; options in force and lease are told.", ""),
    (
        "S-MANIFEST-MISMATCH",
        "A manifest that does not fit is refused with every differing field.",
        "",
    ),
    ("S-MANIFEST-INVALID", "A manifest that contradicts itself is refused.", ""),
    ("S-OPTIONS", "Options that contradict each other are refused, none is overridden.", ""),
    ("S-PROPOSAL", "A proposal is a well-formed draft of k tokens, or says why not.", ""),
    ("S-K-ZERO", "k = 0 commits and drafts nothing.", ""),
    ("S-MAX-K", "A session's max_k is kept.", "max_k of 2 or more"),
    ("S-TREE", "Trees keep to their shape, and mask and links are those of the tree.", "trees"),
    (
        "S-SAMPLING",
        "Sampled drafts come with the distributions that they were drawn from; equal seeds draw "
        "alike.",
        "sampling",
    ),
    ("S-ACCEPTED", "The server finds what was kept from the tokens alone.", ""),
    ("S-BYTE-COUNT", "A wrong number of bytes is refused.", ""),
    ("S-NON-FINITE", "NaN and infinities are refused, named by row.", ""),
    ("S-VOCAB", "Token ids outside the vocabulary are refused.", ""),
    ("S-K-RANGE", "k above the limit, and k above 0 without a row, are refused.", ""),
    ("S-BASE-AHEAD", "A gap is refused with the row to resend from.", ""),
    ("S-ROWS-LIMIT", "More rows than max_rows_per_call are refused.", "room for such a message"),
    ("S-MESSAGE-LIMIT", "A message above max_message_bytes is refused.", "a limit of 128 MiB"),
    (
        "S-SHARED-MEMORY",
        "Rows in shared memory draft what they draft in the message; other places are refused.",
        "TRANSPORT_SHARED_MEMORY among the transports",
    ),
    ("S-REFUSAL-UNCHANGED", "A refused call leaves the session as it was.", ""),
    ("S-ERROR-DETAIL", "Refusals carry code, reason and a message in the trailer.", ""),
    ("S-SEQ-REPEAT", "A repeated number gets the stored answer and commits nothing.", ""),
    ("S-SEQ-BEHIND", "A number below the last one is refused.", ""),
    ("S-ROLLBACK", "Rows taken back leave no trace.", ""),
    ("S-REPLAY", "After rejections a draft is that of a fresh session with the same rows.", ""),
    ("S-ISOLATION", "A session's drafts do not depend on what others send meanwhile.", ""),
    ("S-SESSION-UNKNOWN", "A session that is not there is NOT_FOUND.", ""),
    ("S-CLOSE", "The close tells a record that adds up.", ""),
    ("S-STATELESS", "A call with a manifest drafts as a session would.", ""),
    ("S-FORK", "A fork drafts as its session would, and lives on without it.", ""),
    ("S-START", "A session may begin at a later row.", ""),
    ("S-CONTEXT-LIMIT", "Past max_context there is no draft and a reason.", ""),
    ("S-DEADLINE", "A call that ran out of time can be sent again.", ""),
    ("S-UNKNOWN-FIELDS", "Fields that the server does not know are ignored.", ""),
    ("S-STREAM", "A stream answers by id, a session's calls in order, errors alone.", ""),
    (
        "S-STREAM-BATCH",
        "Requests of one message are answered one by one, each by its id; a bad batch is refused.",
        "max_batch_requests of 3 or more",
    ),
    ("S-STREAM-SESSIONS", "A stream's sessions end with it.", ""),
    ("S-STREAM-GARBAGE", "Bytes that are no message end the stream with INVALID_ARGUMENT.", ""),
    (
        "S-EVICTED",
        "A session that had to make room is told so, with the row, and drafts as before after it.",
        "--intrusive, and draft KV small enough to fill",
    ),
    (
        "S-SESSION-LIMIT",
        "A full server refuses sessions with a time to try again.",
        "--intrusive, and max_sessions of at most 2048",
    ),
    ("S-LEASE", "An idle session is closed after its lease.", "a lease of at most 5 s"),
)

ALL_RULES = {**WORKER_RULES, **SERVER_RULES}
