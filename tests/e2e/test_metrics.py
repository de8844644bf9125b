"""The metrics page of the real server: its numbers equal to what a scripted client did, and no complaint of promtool.

The rows are a real target's; which draft tokens the target "keeps" is the script's choice, so every count is known.
"""

import os
import queue
import re
import shutil
import subprocess
import urllib.request

import grpc
import pytest

from server_process import PATIENCE, ServerProcess, wait_until

# Of one request: its prompt rows, then by round the k that is asked for, how many tokens of the draft before are kept,
# and what the worker says it kept (None: nothing). The closing call keeps `last`; None: it brings no tokens.
REQUESTS = [
    {"prompt": 9, "first_k": 4, "rounds": [(4, 2, 2), (6, 0, 0), (3, 5, 5), (1, 3, None)], "last": 1},
    {"prompt": 30, "first_k": 6, "rounds": [(6, 6, 6), (6, 1, 4), (2, 0, None)], "last": None},
    {"prompt": 2, "first_k": 1, "rounds": [(1, 1, 1), (1, 0, 1), (0, 1, 1)], "last": None},
    {"prompt": 17, "first_k": 5, "rounds": [], "last": None},
]
MAX_K = 6
ROW_BYTES = 3 * 576 * 2
# Series that belong to no drafter.
OF_THE_SERVER = ("aerie_build_info", "aerie_calls_total", "aerie_rpc_", "aerie_request_log_",
                 "aerie_target_", "aerie_traceparents_ignored_total")


class Page:
    """One scrape."""

    def __init__(self, server):
        url = f"http://{server.ports['metrics']}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            self.content_type = answer.headers["Content-Type"]
            self.text = answer.read().decode()
        self.samples = []
        for line in self.text.splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
            self.samples.append((name, dict(pairs), float(value)))

    def labels(self, name):
        return [labels for sample, labels, _ in self.samples if sample == name]

    def sum(self, name, **wanted):
        """Over the series that carry `wanted`; a KeyError when there is none, so that a missing one passes no test."""
        values = [value for sample, labels, value in self.samples
                  if sample == name and wanted.items() <= labels.items()]
        if not values:
            raise KeyError(f"{name} {wanted}")
        return sum(values)


class Script:
    """Plays requests and counts what it does."""

    def __init__(self, pb, stub, manifest, aux):
        self.pb, self.stub, self.manifest, self.aux = pb, stub, manifest, aux
        self.judged = []  # (proposed, accepted)
        self.made = []  # k of every draft
        self.drafts_lost = self.mismatches = self.committed = self.rows = self.calls = self.not_asked = 0
        self.bytes_received = self.bytes_sent = 0
        self.records = []

    def call(self, method, request):
        response = method(request)
        self.bytes_received += request.ByteSize()
        self.bytes_sent += response.ByteSize()
        return response

    def draft_request(self, session, base, tokens, k, accepted=None):
        data = self.aux[base * ROW_BYTES:(base + len(tokens)) * ROW_BYTES]
        assert len(data) == len(tokens) * ROW_BYTES, "the recording is too short for this script"
        states = self.pb.HiddenStates(dtype=self.pb.DATA_TYPE_BFLOAT16, data=data)
        return self.pb.DraftRequest(session_id=session, base_length=base, token_ids=tokens, hidden_states=states, k=k,
                                    accepted=accepted)

    def play(self, request):
        pb = self.pb
        session = self.call(self.stub.OpenSession, pb.OpenSessionRequest(manifest=self.manifest)).session_id
        tokens = [(37 * i + 11) % 49152 for i in range(request["prompt"])]
        length, draft = 0, self.draft(session, 0, tokens, request["first_k"])
        length += len(tokens)
        for k, kept, says in request["rounds"]:
            tokens = self.keep(draft, kept)
            if says is not None and says != kept:
                self.mismatches += 1
            draft = self.draft(session, length, tokens, k, says)
            length += len(tokens)
        final = [] if request["last"] is None else self.keep(draft, request["last"])
        if request["last"] is None and draft:
            self.drafts_lost += 1
        close = pb.CloseSessionRequest(session_id=session, final_token_ids=final)
        self.records.append(self.call(self.stub.CloseSession, close).acceptance)

    def draft(self, session, base, tokens, k, accepted=None):
        response = self.call(self.stub.Draft, self.draft_request(session, base, tokens, k, accepted))
        assert len(response.tree.token_ids) == k
        self.calls += 1
        self.rows += len(tokens)
        self.not_asked += k == 0
        if k > 0:
            self.made.append(k)
        return list(response.tree.token_ids)

    def keep(self, draft, kept):
        """The target keeps so many tokens of the draft and adds one of its own."""
        self.judged.append((len(draft), kept))
        self.committed += kept + 1
        own = (draft[kept] + 1) % 49152 if kept < len(draft) else 5
        return draft[:kept] + [own]


@pytest.fixture(scope="module")
def played(pb, manifest, recording, tmp_path_factory):
    """(server, script, page): the page as it is when the script is over."""
    with ServerProcess(tmp_path_factory.mktemp("metrics"), "--max-k", str(MAX_K)) as server:
        with grpc.insecure_channel(server.address) as channel:
            script = Script(pb, pb.Stub(channel), manifest, recording.sequences[0].aux)
            for request in REQUESTS:
                script.play(request)
            # The last call's end is told after its reply went out.
            page = wait_until(lambda: settled(Page(server)), "the last call to be counted as handled")
            yield server, script, page


def settled(page):
    return page.sum("grpc_server_handled_total") == page.sum("grpc_server_started_total") and page


def test_the_counters_equal_the_script(played):
    _, script, page = played
    judged = script.judged
    assert page.sum("aerie_spec_decode_num_drafts_total") == len(judged) == 11
    assert page.sum("aerie_spec_decode_num_draft_tokens_total") == sum(k for k, _ in judged)
    assert page.sum("aerie_spec_decode_num_accepted_tokens_total") == sum(a for _, a in judged)
    for position in range(MAX_K):
        assert page.sum("aerie_spec_decode_num_draft_tokens_per_pos_total",
                        position=str(position)) == sum(k > position for k, _ in judged)
        assert page.sum("aerie_spec_decode_num_accepted_tokens_per_pos_total",
                        position=str(position)) == sum(a > position for _, a in judged)
    assert page.sum("aerie_committed_tokens_total") == script.committed
    assert page.sum("aerie_accept_report_mismatch_total") == script.mismatches == 2
    assert page.sum("aerie_drafts_unreported_total", reason="closed") == script.drafts_lost == 2
    assert page.sum("aerie_drafts_unreported_total") == script.drafts_lost
    assert page.sum("aerie_drafts_skipped_total", reason="not_asked") == script.not_asked == 1
    assert page.sum("aerie_drafts_skipped_total") == script.not_asked
    assert page.sum("aerie_rejected_total") == 0
    assert page.sum("aerie_hidden_rows_total", transport="inline") == script.rows
    assert page.sum("aerie_hidden_bytes_total", transport="inline") == script.rows * ROW_BYTES
    assert page.sum("aerie_draft_length_tokens_count") == len(script.made)
    assert page.sum("aerie_draft_length_tokens_sum") == sum(script.made)


def test_the_records_of_the_requests_add_up_to_the_counters(played):
    _, script, page = played
    records = script.records
    assert page.sum("aerie_spec_decode_num_drafts_total") == sum(r.num_spec_steps for r in records)
    assert page.sum("aerie_spec_decode_num_draft_tokens_total") == sum(r.num_draft_tokens for r in records)
    assert page.sum("aerie_spec_decode_num_accepted_tokens_total") == sum(
        r.num_accepted_draft_tokens for r in records)
    assert page.sum("aerie_committed_tokens_total") == sum(r.completion_tokens for r in records)
    assert page.sum("aerie_drafts_unreported_total") == sum(r.unreported_drafts for r in records)
    for position in range(MAX_K):
        assert page.sum("aerie_spec_decode_num_accepted_tokens_per_pos_total", position=str(position)) == sum(
            sum(r.acceptance_histogram[position + 1:]) for r in records)


def test_the_request_histograms_hold_the_requests_with_a_judged_draft(played):
    _, script, page = played
    records = [r for r in script.records if r.num_spec_steps]
    assert len(records) == 3
    lengths = [1 + r.num_accepted_draft_tokens / r.num_spec_steps for r in records]
    ratios = [r.num_accepted_draft_tokens / r.num_draft_tokens for r in records]
    assert page.sum("aerie_request_accept_length_tokens_count") == 3
    assert page.sum("aerie_request_accept_length_tokens_sum") == pytest.approx(sum(lengths), rel=1e-12)
    assert page.sum("aerie_request_acceptance_ratio_count") == 3
    assert page.sum("aerie_request_acceptance_ratio_sum") == pytest.approx(sum(ratios), rel=1e-12)
    for labels in page.labels("aerie_request_accept_length_tokens_bucket"):
        assert page.sum("aerie_request_accept_length_tokens_bucket", le=labels["le"]) == sum(
            length <= float(labels["le"]) for length in lengths)
    assert {labels["le"] for labels in page.labels("aerie_request_accept_length_tokens_bucket")} >= {"1", "1.25", "7"}
    assert page.sum("aerie_request_tokens_per_second_count") == 3


def test_every_served_call_has_its_phases(played):
    _, script, page = played
    phase = "aerie_draft_duration_seconds"
    assert page.sum(f"{phase}_count", phase="queue") == script.calls
    assert page.sum(f"{phase}_count", phase="extend") == script.calls
    assert page.sum(f"{phase}_count", phase="step") == sum(k > 1 for k in script.made)
    assert page.sum(f"{phase}_count", phase="total") == script.calls
    parts = sum(page.sum(f"{phase}_sum", phase=name) for name in ("queue", "extend", "step"))
    assert 0 < parts <= page.sum(f"{phase}_sum", phase="total")
    # One at a time: each pass is of one session, one for the rows and one for each token but the first.
    assert page.sum("aerie_batch_sessions_count") == script.calls + sum(k - 1 for k in script.made)
    assert page.sum("aerie_batch_sessions_bucket", le="1") == page.sum("aerie_batch_sessions_count")


def test_the_rpcs_are_counted_by_method_and_code(played):
    _, script, page = played
    service = "aerie.v1.DraftService"
    counts = {"OpenSession": len(REQUESTS), "Draft": script.calls, "CloseSession": len(REQUESTS), "GetServerInfo": 0,
              "DraftStream": 0}
    for method, count in counts.items():
        of_method = {"grpc_service": service, "grpc_method": method,
                     "grpc_type": "bidi_stream" if method == "DraftStream" else "unary"}
        assert page.sum("grpc_server_started_total", **of_method) == count
        assert page.sum("grpc_server_handled_total", grpc_code="OK", **of_method) == count
        assert page.sum("grpc_server_handled_total", **of_method) == count
        assert page.sum("grpc_server_msg_received_total", **of_method) == count
        assert page.sum("grpc_server_msg_sent_total", **of_method) == count
        assert page.sum("grpc_server_handling_seconds_count", **of_method) == count
    assert page.sum("aerie_rpc_received_bytes_total") == script.bytes_received
    assert page.sum("aerie_rpc_sent_bytes_total") == script.bytes_sent


def test_nothing_is_left_open(played):
    _, _, page = played
    assert page.sum("aerie_sessions_ended_total", reason="closed") == len(REQUESTS)
    assert page.sum("aerie_sessions_ended_total") == len(REQUESTS)
    for gauge in ("aerie_sessions", "aerie_queue_depth", "aerie_inflight"):
        assert page.sum(gauge) == 0


def test_the_page_says_what_is_loaded(played, pb):
    server, script, page = played
    info = script.stub.GetServerInfo(pb.GetServerInfoRequest())
    (drafter,) = info.drafters
    (facts,) = page.labels("aerie_drafter_info")
    assert facts == {"drafter": drafter.name, "version": drafter.version, "target": "target", "wiring": "[2, 15, 27]",
                     "device": "cpu", "dtype": "float32", "draft_vocab_size": "6144", "hidden_size": "576"}
    (build,) = page.labels("aerie_build_info")
    assert build == {"version": info.build.version, "revision": info.build.revision, "compiler": info.build.compiler,
                     "libtorch": info.build.libtorch}
    of_drafter = {"drafter": drafter.name, "version": drafter.version, "target": "target"}
    for name, labels, _ in page.samples:
        if name.startswith("aerie_drafter_") and "reload" in name:
            # Loads of what never served are counted without a name.
            assert labels["drafter"] in (drafter.name, "") and not labels.keys() & {"version", "target"}, name
        elif name.startswith(OF_THE_SERVER):
            assert name == "aerie_build_info" or not labels.keys() & of_drafter.keys(), name
        elif name.startswith("aerie_"):
            assert labels.items() >= of_drafter.items(), name
    resident = int(re.search(r"VmRSS:\s+(\d+) kB",
                             open(f"/proc/{server.process.pid}/status").read()).group(1)) * 1024
    assert page.sum("process_resident_memory_bytes") == pytest.approx(resident, rel=0.5)
    assert page.sum("process_cpu_seconds_total") > 0


def test_promtool_finds_nothing_to_complain_about(played):
    _, _, page = played
    assert page.content_type == "text/plain; version=0.0.4; charset=utf-8"
    if shutil.which("promtool") is None:
        assert os.environ.get("AERIE_REQUIRE_PROMTOOL") != "1", "promtool is not installed; Debian's prometheus has it"
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    lint = subprocess.run(["promtool", "check", "metrics"], input=page.text, capture_output=True, text=True)
    assert (lint.returncode, lint.stdout, lint.stderr) == (0, "", "")


def test_refusals_and_a_stream_that_ends_are_told_apart(played, pb, manifest):
    """Runs last: it moves the counters that the tests above look at."""
    server, script, before = played
    session = script.stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id
    for request, code in [
            (script.draft_request(session, 0, [1, 2], MAX_K + 1), grpc.StatusCode.INVALID_ARGUMENT),
            (script.draft_request(session, 0, [49152], 1), grpc.StatusCode.INVALID_ARGUMENT),
            (script.draft_request(session, 4, [1], 1), grpc.StatusCode.FAILED_PRECONDITION),
            (script.draft_request("none", 0, [1], 1), grpc.StatusCode.NOT_FOUND)]:
        with pytest.raises(grpc.RpcError) as failure:
            script.stub.Draft(request)
        assert failure.value.code() == code
    wrong = pb.Manifest()
    wrong.CopyFrom(manifest)
    wrong.captures[0].boundary = 3
    with pytest.raises(grpc.RpcError):
        script.stub.OpenSession(pb.OpenSessionRequest(manifest=wrong))

    requests = queue.Queue()
    responses = script.stub.DraftStream(iter(requests.get, None))
    requests.put(pb.DraftStreamRequest(id=1, open_session=pb.OpenSessionRequest(manifest=manifest)))
    on_stream = next(responses).open_session.session_id
    requests.put(pb.DraftStreamRequest(id=2, draft=script.draft_request(on_stream, 0, [1, 2, 3], 2)))
    assert len(next(responses).draft.tree.token_ids) == 2
    requests.put(pb.DraftStreamRequest(id=3, draft=script.draft_request(on_stream, 0, [1], MAX_K + 1)))
    assert next(responses).error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    requests.put(None)
    assert list(responses) == []

    def without_the_stream():
        # Its session is closed by the engine, which nobody waits for.
        page = settled(Page(server))
        return page and page.sum("aerie_sessions") == 1 and page

    wait_until(without_the_stream, "the stream to be counted as handled and its session as ended")
    page = Page(server)

    def grown(name, **labels):
        return page.sum(name, **labels) - before.sum(name, **labels)

    assert grown("aerie_rejected_total", reason="shape") == 3
    assert grown("aerie_rejected_total", reason="wiring") == 1
    assert grown("aerie_rejected_total") == 4
    assert grown("grpc_server_handled_total", grpc_method="Draft", grpc_code="InvalidArgument") == 2
    assert grown("grpc_server_handled_total", grpc_method="Draft", grpc_code="FailedPrecondition") == 1
    assert grown("grpc_server_handled_total", grpc_method="Draft", grpc_code="NotFound") == 1
    assert grown("grpc_server_handled_total", grpc_method="Draft", grpc_code="OK") == 0
    assert grown("grpc_server_handled_total", grpc_method="OpenSession", grpc_code="FailedPrecondition") == 1
    assert grown("grpc_server_handled_total", grpc_method="DraftStream", grpc_code="OK") == 1
    assert grown("grpc_server_msg_received_total", grpc_method="DraftStream") == 3
    assert grown("grpc_server_msg_sent_total", grpc_method="DraftStream") == 3
    assert grown("aerie_hidden_rows_total") == 3
    assert grown("aerie_spec_decode_num_drafts_total") == 0
    # The session of the stream is gone with its draft; the other one is still open.
    assert grown("aerie_sessions_ended_total", reason="stream_closed") == 1
    assert grown("aerie_drafts_unreported_total", reason="stream_closed") == 1
    assert page.sum("aerie_sessions") == 1
