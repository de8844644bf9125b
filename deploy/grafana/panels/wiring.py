"""Aerie wiring: do workers send the hidden states that the head was trained on?

Nothing else shows it: the target checks every token, so texts stay right and only the accept length falls.
"""

from panels.model import Dashboard, Panel, Query, Row, accept_length, rate, ratio, series, total

VERDICT = Row("Verdict", (
    Panel("Worst state", "states", "none",
          "The worst state of any source, by instance. unknown: no profile, or too few rows so far. suspect: "
          "something does not fit, an odd text could explain it. wrong: rows are of another place.",
          (Query(f"max by (instance, state) ({series('aerie_wiring_state')}) == 1", "{{instance}}: {{state}}"),),
          width=8, height=5),
    Panel("What the guard may do", "states", "none",
          "What a wrong wiring leads to, as configured, by instance.",
          (Query(f"max by (instance, mode) ({series('aerie_wiring_guard_info')}) == 1", "{{instance}}: {{mode}}"),),
          width=8, height=5),
    Panel("Wirings that heads want", "table", "none",
          "Boundaries in order, as the loaded head is configured. Boundary 0 is the embedding output, b the output of "
          "layer b - 1.",
          (Query(f"max by (instance, drafter, target, version, wiring) ({series('aerie_drafter_info')})", ""),),
          width=8, height=5),
))

SOURCES = Row("Sources", (
    Panel("Sources by state", "stacked", "none",
          "A source is a client and a target; each is judged by itself, so that ten good workers do not hide a bad "
          "one.",
          (Query(total("aerie_wiring_sources", by=("state",)), "{{state}}"),)),
    Panel("Checks", "timeseries", "suffix: /s",
          "Judgements of the guard per second, by what they found.",
          (Query(rate("aerie_wiring_checks_total", by=("result",)), "{{result}}"),)),
    Panel("Alarms", "timeseries", "suffix: /min",
          "Sources that became suspect or wrong, per minute.",
          (Query(f"60 * {rate('aerie_wiring_alarms_total', by=('state',))}", "{{state}}"),)),
))

ROWS = Row("Rows", (
    Panel("Place of the rows", "timeseries", "none",
          "Where the rows of a capture lie between the place that was declared (0) and the nearest other one (1). "
          "Honest workers stay below 0.4.",
          (Query(f"max by (capture) ({series('aerie_wiring_place_position')})", "capture {{capture}}"),), minimum=None),
    Panel("Size of the rows", "timeseries", "none",
          "Root mean square of the rows of each capture, and what was recorded. Alone it does not tell layers apart, "
          "but it tells an embedding or a normed state from the rest.",
          (Query(f"max by (capture) ({series('aerie_hidden_row_rms')})", "capture {{capture}}"),
           Query(f"max by (capture) ({series('aerie_hidden_row_rms_expected')})", "capture {{capture}}, recorded"))),
    Panel("Size against the recording", "timeseries", "percentunit",
          "The same as a ratio. AerieHiddenRowsSizeOff alerts when it leaves 50 % to 150 %.",
          (Query(ratio(f"max by (instance, capture) ({series('aerie_hidden_row_rms')} > 0)",
                       f"max by (instance, capture) ({series('aerie_hidden_row_rms_expected')})"),
                 "{{instance}}, capture {{capture}}"),)),
))

DRAFTS = Row("Drafts", (
    Panel("Accept length, measured and promised", "timeseries", "suffix: tokens",
          "Measured: mean accept length, bonus included. Promised: what the recording from which the profile was made "
          "gave. Other texts alone may halve it; it is no verdict.",
          (Query(accept_length(by=("drafter",)), "{{drafter}}, measured"),
           Query(f"max by (drafter) ({series('aerie_wiring_expected_accept_length')})", "{{drafter}}, promised")),
          minimum=1),
    Panel("Acceptance of the first token", "timeseries", "percentunit",
          "Accepted at position 0, by instance. Training reports this number; far below it, look at the wiring first.",
          (Query(ratio(rate("aerie_spec_decode_num_accepted_tokens_per_pos_total", 'position="0"', by=("instance",)),
                       rate("aerie_spec_decode_num_draft_tokens_per_pos_total", 'position="0"', by=("instance",))),
                 "{{instance}}"),), maximum=1),
    Panel("Workers that count otherwise", "timeseries", "percentunit",
          "Drafts of which the worker reported another accepted count than its next tokens show: it verifies other "
          "drafts, or other positions.",
          (Query(ratio(rate("aerie_accept_report_mismatch_total", by=("instance",)),
                       rate("aerie_spec_decode_num_drafts_total", by=("instance",))), "{{instance}}"),), maximum=1),
    Panel("Refused manifests", "timeseries", "suffix: /s",
          "Sessions that were not opened because the worker captures other places, sizes or types than the head wants. "
          "The refusal names every field.",
          (Query(rate("aerie_rejected_total", 'reason="wiring"', by=("instance",)), "{{instance}}"),)),
))

DASHBOARD = Dashboard(
    "aerie-wiring", "Aerie wiring",
    "Whether workers send the hidden states that the head was trained on. A wrong wiring gives no error: drafts get "
    "worse, texts stay right.",
    (VERDICT, SOURCES, ROWS, DRAFTS))
