"""Every expression of every dashboard and every recording rule, as Debian's Prometheus evaluates it over the real
server, against what a scripted worker knows to be true.

All of it lands in a table, table.md and table.json in $AERIE_REPORT (build/prometheus-report). $AERIE_LOAD_MINUTES says
how long the load goes on (default 0: the script once).
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import types

import pytest
from aerie_draft._proto import draft_pb2
from server_process import ServerProcess, wait_until

import deploy_files
import expected
import expected_wiring
from expectation import Expectation, found_text
from load import ROW_BYTES, Books, Worker
from prometheus_process import SCRAPE_INTERVAL, Prometheus, milliseconds
from promql_math import rate_factor
from script import FLAGS, PAGE_ROWS, PAGES, play
from truth import Truth, scrape
from wiring_exporter import WiringExporter

LOAD_SECONDS = 60 * float(os.environ.get("AERIE_LOAD_MINUTES", "0"))
# Seconds. Longer than all of this lasts: a counter's increase is then what happened since the start, which is known.
WINDOW = 600 + int(LOAD_SECONDS)  # what $__rate_interval becomes
WINDOWS = {name: max(seconds, int(LOAD_SECONDS) + 300) for name, seconds in (("5m", 300), ("15m", 900), ("1h", 3600))}
WEEK_AGO = 2.0  # accept length, in the database from the start
REPORT = pathlib.Path(os.environ.get("AERIE_REPORT", deploy_files.ROOT / "build/prometheus-report"))
EXPRESSIONS = deploy_files.dashboard_expressions()
RULES = deploy_files.recording_rules()


def week_old_samples(now, drafter, target):
    """Half an hour around this time a week ago, a sample every 15 s, as Prometheus would have recorded it."""
    labels = f'job="aerie",drafter="{drafter}",target="{target}"'
    lines = [f"aerie:accept_length:1h{{{labels}}} {WEEK_AGO} {now - 7 * 86400 + offset}"
             for offset in range(-1800, 1800, 15)]
    return "\n".join(["# TYPE aerie:accept_length:1h gauge", *lines, "# EOF", ""])


def process_facts(pid):
    """What the kernel says of the process: CPU seconds so far, the most memory it had, descriptors it may have."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    peak = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)
    most = re.search(r"Max open files\s+(\d+)", pathlib.Path(f"/proc/{pid}/limits").read_text()).group(1)
    return {"cpu_seconds": (int(fields[11]) + int(fields[12])) / ticks, "peak_memory": int(peak) * 1024,
            "most_descriptors": int(most)}


def widen(rules):
    """The text of a rule file with the windows of WINDOWS; as it is when the load is short."""
    return re.sub(r"\[(5m|15m|1h)\]", lambda window: f"[{WINDOWS[window.group(1)]}s]", rules)


class Played:
    """Server, exporter of the wiring and Prometheus after the script: all samples up to the moment `at` are there."""

    def __init__(self, folder, server, guard, started):
        self.server, self.guard = server, guard
        self.drafter, self.target = "drafter", "target"
        self.prometheus = Prometheus(folder, [server.ports["metrics"], guard.address], change_rules=widen,
                                     backfill=week_old_samples(int(time.time()), self.drafter, self.target))
        try:
            self._play(started)
        except BaseException:
            self.prometheus.stop()
            raise

    def _play(self, started):
        prometheus, server = self.prometheus, self.server
        scraped = (f'aerie_sessions{{instance="{server.ports["metrics"]}"}}',
                   f'aerie_wiring_expected_accept_length{{instance="{self.guard.address}"}}')
        rules = [name for name, _ in RULES]
        # Counters must be seen at 0, or their first rise is nobody's.
        self.wait_for(*scraped)
        assert prometheus.query("sum(aerie_spec_decode_num_drafts_total)") == {frozenset(): 0.0}
        self.reload()
        self.books = Books()
        with Worker(server.address, self.books) as worker:
            info = worker.client._transport.server_info(draft_pb2.GetServerInfoRequest(), 60)
            play(worker, server.address, until=time.time() + LOAD_SECONDS)
            self.guard.samples = expected_wiring.wiring_samples(self.drafter, self.target, counted=True)
            wait_until(self.settled, "the server to have counted the last call")
            # Some scrapes of what is final, then some evaluations that saw these.
            self.wait_for(*scraped, after=time.time() + 3 * SCRAPE_INTERVAL)
            self.wait_for(*rules, after=time.time())
            self.at = wait_until(lambda: self.sound_moment(scraped, rules), "a moment at which no scrape had failed")
        self.page = scrape(server)
        self.times, guard_times = (prometheus.sample_times(selector, f"{WINDOW}s", self.at) for selector in scraped)
        self.truth = Truth(self.books, self.page, self.factor(self.times, self.at))
        self.facts = self.gather(info, guard_times, started)

    def reload(self):
        """Once, of the same files: the drafter stays the one it was."""
        begun = time.time()
        self.server.signal(signal.SIGHUP)
        wait_until(lambda: self.server.metric("aerie_drafter_reloads_total", result="ok") == 1, "the reload")
        self.reloaded = (begun, time.time())

    def sound_moment(self, scraped, rules):
        """A moment up to which everything is in the database: the next of each kind is. None when a scrape had failed
        just before it, as happens on a machine that is busy: then gauges have no value."""
        moment = round(time.time(), 3)
        self.wait_for(*scraped, *rules, after=moment)
        whole = (self.prometheus.query("sum(up)", moment) == {frozenset(): 2.0}
                 and all(self.prometheus.query(name, moment) for name in [*scraped, *rules]))
        return moment if whole else None

    def gather(self, info, guard_times, started):
        drafter, build = info.drafters[0], info.build
        settings = {setting.name: setting.value for setting in drafter.settings}
        return types.SimpleNamespace(
            drafter=self.drafter, target=self.target, instance=self.server.ports["metrics"],
            other_instance=self.guard.address, week_ago=WEEK_AGO, window=WINDOW, row_bytes=ROW_BYTES,
            page_bytes=PAGE_ROWS * info.limits.kv_bytes_per_row, weight_bytes=drafter.weight_bytes,
            uptime=(self.at - started[1] - 1, self.at - started[0] + 1), settings=settings, reloads=1,
            since_reload=(self.at - self.reloaded[1], self.at - self.reloaded[0]),
            other_factor=self.factor(guard_times, self.at),
            drafter_labels={"version": drafter.version, "wiring": "[2, 15, 27]", "device": "cpu", "dtype": "float32",
                            "draft_vocab_size": str(drafter.draft_vocab_size),
                            "hidden_size": str(drafter.hidden_size)},
            build_labels={"version": build.version, "revision": build.revision, "compiler": build.compiler,
                          "libtorch": build.libtorch},
            **process_facts(self.server.process.pid))

    @staticmethod
    def factor(times, at, window=WINDOW):
        return rate_factor(times, milliseconds(at - window), milliseconds(at))

    def settled(self):
        """Told to the metrics after the reply went out: the end of the last RPC, and of the stream's session."""
        metric = self.server.metric
        return (metric("grpc_server_handled_total") == metric("grpc_server_started_total") == len(self.books.rpcs)
                and metric("aerie_sessions_ended_total") == sum(self.books.ended.values()))

    def wait_for(self, *selectors, after=0.0):
        """Until each has a sample that was taken after that moment."""
        for selector in selectors:
            wait_until(lambda: min(self.prometheus.query(f"timestamp({selector})").values(), default=0.0) > after,
                       f"a sample of {selector}")

    def evaluate(self, expr):
        for name, value in (("job", "aerie"), ("drafter", self.drafter), ("target", self.target), ("instance", ".*"),
                            ("__rate_interval", f"{WINDOW}s")):
            expr = expr.replace(f"${name}", value)
        assert "$" not in expr, expr
        return self.prometheus.query(expr, self.at)

    def recorded(self, name):
        """(what was recorded, what may have been). A scrape that began just before the rule was evaluated may have come
        into the database just after, so there are two truths, with it and without it; they differ in their factor."""
        found = self.prometheus.query(name, self.at)
        moment = max(self.prometheus.query(f"timestamp({name})", self.at).values())
        window = WINDOWS.get(name.rsplit(":", 1)[1], 300)
        times = [time for time in self.times if time <= milliseconds(moment)]
        truths = [Truth(self.books, self.page, self.factor(seen, moment, window)) for seen in (times, times[:-1])]
        return found, [expected_wiring.recorded(truth, self.facts).get(name) for truth in truths]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    begun = time.time()
    samples = expected_wiring.wiring_samples("drafter", "target", counted=False)
    with ServerProcess(tmp_path_factory.mktemp("server"), *FLAGS) as server, WiringExporter(samples) as guard:
        played = Played(tmp_path_factory.mktemp("prometheus"), server, guard, (begun, time.time()))
        with played.prometheus:
            yield played


@pytest.fixture(scope="module")
def table(played):
    """[(where, expression, expected, found, complaint)] of everything; written down whether or not it is right."""
    wanted = {"aerie-overview": expected.overview(played.truth, played.facts),
              "aerie-requests": expected.requests(played.truth, played.facts),
              "aerie-wiring": expected_wiring.wiring(played.truth, played.facts)}
    rows = []
    for uid, title, letter, expr in EXPRESSIONS:
        expectation = wanted[uid].get(title)
        if isinstance(expectation, dict):
            expectation = expectation.get(letter)
        rows.append(checked((uid, title, letter), expr, expectation, played.evaluate(expr)))
    for name, expr in RULES:
        found, expectations = played.recorded(name)
        choices = [checked(("rules", name, ""), expr, expectation, found) for expectation in expectations]
        rows.append(next((choice for choice in choices if not choice[-1]), choices[0]))
    write_report(rows)
    return rows


def checked(where, expr, expectation, found):
    if not isinstance(expectation, Expectation):
        return where, expr, "nobody says what it should be", found_text(found), "it has no expected value"
    return where, expr, expectation.text(), found_text(found), expectation.complaint(found)


def write_report(rows):
    REPORT.mkdir(parents=True, exist_ok=True)
    names = ("dashboard", "panel", "query", "expression", "expected", "prometheus", "complaint")
    as_dicts = [dict(zip(names, (*where, *rest))) for where, *rest in rows]
    (REPORT / "table.json").write_text(json.dumps(as_dicts, indent=1) + "\n")
    lines = ["| | dashboard | panel | query | expression | expected | Prometheus |", "|---|---|---|---|---|---|---|"]
    for row in as_dicts:
        cells = ["wrong" if row["complaint"] else "ok", *(row[name] for name in names[:3]), f"`{row['expression']}`",
                 row["expected"], row["prometheus"]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    (REPORT / "table.md").write_text("\n".join(lines) + "\n")


def test_every_panel_shows_the_truth(table):
    wrong = [f"{where}: {complaint}" for where, _, _, _, complaint in table if where[0] != "rules" and complaint]
    assert not wrong, "\n".join(wrong)
    assert sum(where[0] != "rules" for where, *_ in table) == len(EXPRESSIONS)


def test_every_recording_rule_records_the_truth(table):
    wrong = [f"{where}: {complaint}" for where, _, _, _, complaint in table if where[0] == "rules" and complaint]
    assert not wrong, "\n".join(wrong)


def test_the_expected_values_name_panels_that_exist(played):
    wanted = {"aerie-overview": expected.overview(played.truth, played.facts),
              "aerie-requests": expected.requests(played.truth, played.facts),
              "aerie-wiring": expected_wiring.wiring(played.truth, played.facts)}
    panels = {(uid, title) for uid, title, _, _ in EXPRESSIONS}
    assert {(uid, title) for uid, titles in wanted.items() for title in titles} == panels


def test_variables_offer_what_is_there(played):
    offered = {}
    for variable in deploy_files.dashboards()["aerie-overview"]["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
        found = played.evaluate(f"count by ({label}) ({selector})")
        offered[variable["name"]] = [dict(labels)[label] for labels in found]
    assert offered == {"job": ["aerie"], "drafter": [played.drafter], "target": [played.target],
                       "instance": [played.server.ports["metrics"]]}


def test_annotations_tell_what_the_script_does_wrong_once_it_has_done_so_for_long(played):
    """Its worker miscounts and makes calls that are refused, and its exporter tells of rows of another size. The alerts
    wait for up to ten minutes of that."""
    wrongs = {"AerieAcceptReportMismatch", "AerieCallsRejected", "AerieHiddenRowsSizeOff"}
    expected = wrongs if LOAD_SECONDS >= 600 else set()
    found = [labels for annotation in deploy_files.dashboards()["aerie-overview"]["annotations"]["list"]
             for labels in played.evaluate(annotation["expr"])]
    assert {dict(labels).get("alertname") for labels in found} == expected


def test_a_drafter_that_is_not_there_is_no_traffic(played):
    """Selecting another drafter shows nothing rather than everything: no panel forgets a variable."""
    for uid, title, letter, expr in EXPRESSIONS:
        if '"$drafter"' in expr:
            assert played.evaluate(expr.replace('"$drafter"', '"nobody"')) == {}, f"{uid}, {title}, {letter}"


def test_promtool_finds_nothing_to_complain_about_in_the_page(played):
    lint = subprocess.run(["promtool", "check", "metrics"], input=played.page, capture_output=True, text=True)
    assert (lint.returncode, lint.stdout + lint.stderr) == (0, "")


def test_pages_are_as_many_as_the_script_counts_on(played):
    assert played.server.metric("aerie_kv_pages") == PAGES
