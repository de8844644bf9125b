"""Aerie requests: how single requests fare. A mean over tokens hides the request that gained nothing."""

from panels.model import Dashboard, Panel, Query, Row, accept_length, buckets, mean, quantile, rate, ratio

LENGTH = "aerie_request_accept_length_tokens"
RATIO = "aerie_request_acceptance_ratio"
SPEED = "aerie_request_tokens_per_second"
DURATION = "aerie_draft_duration_seconds"
JUDGED = "aerie_spec_decode_num_drafts_total"
KEPT_AT = "aerie_spec_decode_num_accepted_tokens_per_pos_total"
REACHED = "aerie_spec_decode_num_draft_tokens_per_pos_total"


def quantiles(histogram):
    return tuple(Query(quantile(share, histogram), name)
                 for share, name in ((0.9, "p90"), (0.5, "p50"), (0.1, "p10")))


NOW = Row("Requests that ended", (
    Panel("Requests", "stat", "suffix: requests/s",
          "Sessions that ended and had a draft whose outcome is known. Each is one observation in the histograms "
          "below, when it ends.",
          (Query(rate(f"{LENGTH}_count"), "requests"),), width=4, height=5),
    Panel("Requests without a draft", "stat", "suffix: requests/s",
          "Sessions that ended before any of their drafts was judged: prompts only, or nothing but unreported drafts.",
          (Query(f"{rate('aerie_sessions_ended_total')} - {rate(f'{LENGTH}_count')}", "without"),), width=4, height=5),
    Panel("Accept length, mean over requests", "stat", "suffix: tokens",
          "Every request counts the same, however long it is.",
          (Query(mean(LENGTH), "by request"),), width=4, height=5, minimum=1),
    Panel("Accept length, mean over drafts", "stat", "suffix: tokens",
          "Every draft counts the same, so long requests count more. The two means differ when long requests fare "
          "otherwise than short ones.",
          (Query(accept_length(), "by draft"),), width=4, height=5, minimum=1),
    Panel("Accept length, unhappy tenth", "stat", "suffix: tokens",
          "A tenth of the requests has this accept length or less, bonus included.",
          (Query(quantile(0.1, LENGTH), "p10"),), width=4, height=5, minimum=1),
    Panel("Speed, unhappy tenth", "stat", "suffix: tok/s",
          "A tenth of the requests has this many committed tokens per second or less, from first commit to last.",
          (Query(quantile(0.1, SPEED), "p10"),), width=4, height=5),
))

SPREAD = Row("Spread over requests", (
    Panel("Accept length of requests", "heatmap", "suffix: tokens",
          "Requests per second by their mean accept length, bonus included. Two bands are two kinds of texts, or a "
          "worker that is wired wrongly.",
          (Query(buckets(LENGTH), "{{le}}"),), height=9),
    Panel("Acceptance rate of requests", "heatmap", "percentunit",
          "Requests per second by accepted over proposed tokens.",
          (Query(buckets(RATIO), "{{le}}"),), height=9),
    Panel("Speed of requests", "heatmap", "suffix: tok/s",
          "Requests per second by committed tokens per second. The target's own speed is the larger part of it.",
          (Query(buckets(SPEED), "{{le}}"),), height=9),
    Panel("Accept length, quantiles", "timeseries", "suffix: tokens",
          "Of requests, bonus included. Read from buckets a quarter of a token wide.",
          quantiles(LENGTH), minimum=1),
    Panel("Acceptance rate, quantiles", "timeseries", "percentunit",
          "Of requests. Read from buckets 5 % wide.",
          quantiles(RATIO), maximum=1),
    Panel("Speed, quantiles", "timeseries", "suffix: tok/s",
          "Of requests: committed tokens over the time from the first commit to the last.",
          quantiles(SPEED)),
))

POSITIONS = Row("Positions", (
    Panel("Given that the one before was kept", "bars", "percentunit",
          "Accepted at a position over accepted at the position before it; at position 0 over drafts. Falling bars are "
          "normal; a drop from position 0 to 1 alone hints at how the head is fed with its own states.",
          (Query(ratio(rate(KEPT_AT, 'position="0"', by=("position",)),
                       rate(REACHED, 'position="0"', by=("position",))),
                 "position {{position}}"),
           *(Query(ratio(rate(KEPT_AT, f'position="{i}"'),
                         rate(KEPT_AT, f'position="{i - 1}"')),
                   f"position {i}") for i in (1, 2, 3, 4, 5))), maximum=1),
    Panel("Over all drafts", "bars", "percentunit",
          "Accepted at a position over all drafts, as other systems plot it. It understates late positions when drafts "
          "differ in length.",
          (Query(f"{rate(KEPT_AT, by=('position',))} / on () group_left () ({rate(JUDGED)} > 0)",
                 "position {{position}}"),), maximum=1),
    Panel("Drafts that reached it", "bars", "percentunit",
          "Share of the drafts that were long enough to have a token at the position.",
          (Query(f"{rate(REACHED, by=('position',))} / on () group_left () ({rate(JUDGED)} > 0)",
                 "position {{position}}"),), maximum=1),
))

DRAFTS = Row("Drafts", (
    Panel("Tokens of drafts", "heatmap", "suffix: tokens",
          "Drafts per second by their tokens when they were made, whether or not their outcome ever came.",
          (Query(buckets("aerie_draft_length_tokens"), "{{le}}"),)),
    Panel("Levels of drafts", "heatmap", "suffix: levels",
          "Drafts per second by their levels: the most that a target could keep of them.",
          (Query(buckets("aerie_draft_depth_levels"), "{{le}}"),)),
    Panel("k that was chosen", "heatmap", "suffix: tokens",
          "Served calls per second of sessions with adaptive k, by the k that it chose; 0 is no draft.",
          (Query(buckets("aerie_adaptive_k_tokens"), "{{le}}"),)),
    Panel("Verification by the target", "timeseries", "s",
          "Time of one verification by the target, as workers report it. Drafts are worth their time as long as they "
          "take a small part of it.",
          tuple(Query(quantile(share, "aerie_verify_duration_seconds"), name)
                for share, name in ((0.99, "p99"), (0.5, "p50")))),
    Panel("Draft latency", "heatmap", "s",
          "Served calls per second by the time from arrival to reply.",
          (Query(buckets(DURATION, 'phase="total"'), "{{le}}"),)),
))

DASHBOARD = Dashboard(
    "aerie-requests", "Aerie requests",
    "How single requests fare: the spread of accept length, acceptance and speed over them, and where drafts end.",
    (NOW, SPREAD, POSITIONS, DRAFTS))
