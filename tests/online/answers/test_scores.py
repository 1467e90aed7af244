"""Metrics of a log as text, Markdown, CSV, and JSON, with reasons for missing values and CTR by rank."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError, MeasureError
from judged.online import catalog
from judged.online import findings as log_findings
from judged.online.findings import LogFinding
from judged.online.layout import describe_decline, estimate_decimals, format_estimate, unit_show
from judged.online.metrics import ONLINE_METRICS, online_metric, online_metrics_named
from judged.results.escaping import markdown_text
from online_scores_made import CARTS, CTR, DWELL, NAN, WEIRD, ZERO, estimate, ranks, scores

TABLE = """\
ubi.ndjson (ubi): 1,000 pages, 2,345 events, 120 sessions, 40 users
excluded: facet-request 60 of 1,060 query rows
repaired: rank-base 287 of 2,345 event rows

metric                           value  numerator  denominator  users
Clicks
  PageCTR *         38.1% [36.9%, 39.3%]        381        1,000     40
  TimeToFirstClick 41.2 s   [38.9, 43.6]         60          120     40
  DeepestClickRank *        -                          0            0      0
Outcomes
  ZeroResults       7.14%                         6           84      1
"""


def test_the_table() -> None:
    text = scores().text()
    assert text.split("\n\n")[0] == TABLE.split("\n\n", maxsplit=1)[0]
    assert [line.split() for line in text.split("\n\n")[1].splitlines()] == [
        line.split() for line in TABLE.split("\n\n")[1].splitlines()
    ]
    note = "* the metric depends on rank: read it together with CTR by rank; 95% confidence intervals over users (delta"
    assert note in " ".join(text.split())
    assert "session gap: 30 min; rank base: 1 (found)" in " ".join(text.split())
    assert "DeepestClickRank: the denominator is 0\n" in text
    assert "ZeroResults: no confidence interval (requires 2 users, got 1)\n" in text
    assert text.endswith("AddToCart: not available, because no add_to_cart event is in this log")
    assert "\n1     30.0% [28.0%, 32.0%]      300  1,000     40  ████████████████████████\n" in text


def test_numbers_are_aligned() -> None:
    lines = [line for line in scores().text().splitlines() if re.match(r"  (PageCTR|TimeTo|ZeroRes)", line)]
    assert len({re.search(r" [\d.]+(%| s) ", line).end() for line in lines}) == 1  # type: ignore[union-attr]


def test_slices_are_columns() -> None:
    lines = [line.split() for line in scores(sliced=True).text().splitlines()]
    assert ["metric", "all", "desktop", "<script>alert(1)</script>", "|", "*b*"] in lines
    assert ["pages", "1,000", "500", "500"] in lines
    assert [
        "PageCTR",
        "*",
        "38.1%",
        "[36.9%,",
        "39.3%]",
        "40.0%",
        "[38.0%,",
        "42.0%]",
        "36.2%",
        "[34.2%,",
        "38.2%]",
    ] in lines
    assert ["TimeToFirstClick", "41.2", "s", "[38.9,", "43.6]", "-", "-"] in lines
    assert max(map(len, scores(sliced=True).text(width=60).splitlines())) <= 60


def test_ctr_by_rank_by_slice() -> None:
    slice_ranks = tuple(replace(estimate, slice="desktop") for estimate in ranks(0.4, 0.2))
    text = scores(sliced=True, slices=(("desktop", 500),), ranks=(*ranks(0.3, 0.15), *slice_ranks)).text()
    assert "rank                   all               desktop\n1     30.0% [28.0%, 32.0%]  40.0% [38.0%, 42.0%]" in text


def test_only_click_metrics_have_the_position_bias_warning() -> None:
    for metric in ONLINE_METRICS.values():
        answer = scores(estimates=(estimate(metric, 10, 100, 0.05),))
        for text in (answer.text(), answer.markdown()):
            assert ("depends on rank: read it together" in text) == metric.biased
            assert bool(re.search(r"^(\| )?1 .*30\.0%", text, re.MULTILINE)) == metric.biased
        assert [note.rule for note in answer.notes] == ["unfit-log", *["position-bias"] * metric.biased]
        assert ("ranks" in answer.charts()) == metric.biased


def test_control_characters_of_the_log_are_removed() -> None:
    text = scores(log="a\x1b[31m\nlog", slices=(("\x07bell", 3),), by="device").text()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.startswith("a\ufffd[31m log (ubi)")


def test_markdown_and_csv() -> None:
    answer = scores(sliced=True)
    assert r"|   PageCTR<sup>*</sup> | 38.1% [36.9%, 39.3%] | 40.0% [38.0%, 42.0%] | 36.2%" in answer.markdown()
    assert "| facet-request | query | excluded | 60 | 1,060 | 5.7% |" in answer.markdown(unfold=["findings"])
    assert "facet-request (query): 60 rows: facet requests are no searches. Fix: do not log them" in answer.markdown()
    assert markdown_text(WEIRD) in answer.markdown()
    assert "<script>" not in answer.markdown()
    head, first, *lines = answer.csv().splitlines()
    assert head == "metric,slice,value,ci_low,ci_high,error,numerator,denominator,units,method"
    assert first == f"PageCTR,,0.381,{0.381 - 0.0123!r},{0.381 + 0.0123!r},{0.0123 / 1.96!r},381,1000,40,delta"
    assert lines[-1] == "ZeroResults,," + f"{6 / 84!r},,,,6,84,1,none"
    assert len(lines) == 5
    assert answer.csv("ranks").splitlines()[1].startswith("1,,0.3,")


def test_json() -> None:
    data = scores(sliced=True).to_dict()
    assert data["schema"] == "judged.online/1"
    assert data["log"] == {
        "name": "ubi.ndjson", "layout": "ubi", "pages": 1000, "events": 2345, "sessions": 120, "users": 40,
    }  # fmt: skip
    assert data["slices"] == [{"slice": "desktop", "pages": 500}, {"slice": WEIRD, "pages": 500}]
    assert {row["metric"] for row in data["metrics"]} == {
        "PageCTR", "ZeroResults", "TimeToFirstClick", "DeepestClickRank", "AddToCart",
    }  # fmt: skip
    assert data["estimates"][0]["ci"] == [0.381 - 0.0123, 0.381 + 0.0123]  # as it is, not as it is shown
    assert data["estimates"][-1] == {
        "metric": "ZeroResults", "slice": None, "value": 6 / 84, "ci": None, "error": None, "numerator": 6,
        "denominator": 84, "units": 1, "method": "none",
    }  # fmt: skip
    assert [row["rank"] for row in data["ranks"]] == [1, 2, 3]
    assert data["refused"] == [{"metric": "AddToCart", "reason": "no add_to_cart event is in this log"}]
    assert data["policies"] == {"session_gap": "30 min", "rank_base": "1 (found)", "bots": "exclude"}
    assert data["findings"][0]["fix"] == "do not log them as searches"


def test_ctr_by_rank() -> None:
    answer = scores().by_rank()
    assert "\n1     30.0% [28.0%, 32.0%]      300  1,000     40  ████████████████████████\n" in answer.text()
    assert "Results at rank 1 were clicked 3.0 times as often as results at rank 3." in answer.text()
    assert "| 3 | 10.0%  [8.0%, 12.0%] | 100 | 1,000 | 40 |" in answer.markdown()
    with pytest.raises(InputError, match="no CTR by rank: no add_to_cart event"):
        scores(ranks=()).by_rank()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((0.3, 0.0), "Results at rank 1 were clicked, and no results at rank 2 were."),
        ((0.1, 0.2), "Results at rank 2 were clicked 2.0 times as often as results at rank 1."),
        ((0.3,), ""),
        ((0.0, 0.3), ""),
        ((NAN, 0.3, 0.1), "Results at rank 2 were clicked 3.0 times as often as results at rank 3."),
    ],
)
def test_describe_decline(values: tuple[float, ...], sentence: str) -> None:
    assert describe_decline(ranks(*values)) == sentence


@pytest.mark.parametrize(
    ("half", "text"),
    [(0.05, "12.3%"), (0.005, "12.35%"), (0.0005, "12.345%"), (0.000005, "12.3453%"), (NAN, "12.3%"), (0.5, "12.3%")],
)
def test_decimals_depend_on_the_interval(half: float, text: str) -> None:
    assert format_estimate(estimate(CTR, 0, 1, half, value=0.123453)) == text


def test_the_rate_of_a_rare_event_is_not_shown_as_0() -> None:
    assert format_estimate(estimate(ZERO, 46, 1_000_000, NAN)) == "0.0046%"
    assert unit_show("share").write(-1e-9) == "0.0%"


@given(st.floats(0, 1), st.floats(0, 1))
def test_decimals_stay_within_bounds(value: float, half: float) -> None:
    assert 1 <= estimate_decimals(estimate(CTR, 0, 1, half, value=value)) <= 4


def test_policies_are_shown_where_they_matter() -> None:
    money = ("winsorization", "revenue at the 99.9% quantile"), ("attribution", "same page")
    bots = ("bots", "exclude"), ("bot_rate", "more than 100 pages")
    policies = (("session_gap", "30 minutes"), *bots, *money)
    bot_finding = LogFinding("bot", "query", 1, 1000, "excluded", "pages of programs", "")
    revenue = estimate(online_metric("RevenuePerSearch"), 50, 100, 1.0)
    cart_rate = estimate(CARTS, 5, 100, 0.01)
    for estimates, findings, expected in (
        ((cart_rate,), (), ["session gap", "attribution"]),
        ((revenue,), (), ["session gap", "winsorization", "attribution"]),
        ((estimate(CTR, 1, 2, 0.1),), (bot_finding,), ["session gap", "bots", "bot rate"]),
    ):
        answer = scores(policies=policies, estimates=estimates, findings=findings)
        shown_policies = log_findings.describe_method(answer).split("; ")[1:]
        assert [text.partition(":")[0] for text in shown_policies] == expected


def test_the_limit_of_dwell_times_is_shown() -> None:
    metrics = online_metrics_named(["DwellTime", "DwellTime(t=60)", "DwellTime(q=0.5)"])
    text = log_findings.describe_method(scores(estimates=tuple(estimate(metric, 1, 2, 0.1) for metric in metrics)))
    assert re.findall(r"at most (\d+) s", text) == ["300", "60"]


def test_long_lists_of_metrics_and_reasons_are_truncated() -> None:
    names = [f"PageCTR@{k}" for k in range(1, 12)]
    refused = tuple((metric, "the log has no clicks") for metric in online_metrics_named(names))
    sentence = log_findings.describe_missing(scores(refused=refused))[-1]
    assert sentence == f"{', '.join(names[:8])} and 3 more: not available, because the log has no clicks"
    undefined = tuple(estimate(CTR, 0, 0, NAN, slice=f"s{i}") for i in range(20))
    answer = scores(estimates=undefined, by="device", slices=tuple((f"s{i}", 1) for i in range(20)))
    assert log_findings.describe_missing(answer)[0] == "PageCTR on s0: the denominator is 0"
    assert log_findings.describe_missing(answer)[6] == "and 14 more"


def test_reasons_for_missing_values() -> None:
    undefined = estimate(DWELL, 0, 5, NAN, value=NAN)
    assert log_findings.describe_missing(scores(estimates=(undefined,)))[0] == "TimeToFirstClick: no value"
    answer = scores(estimates=(estimate(CARTS, 1, 5, NAN, units=5, slice="a"),), slices=(("a", 5),), by="device")
    assert (
        log_findings.describe_missing(answer)[0]
        == "AddToCart on a: no confidence interval (not available for this value)"
    )


def test_the_catalog_lists_all_metrics_with_their_definitions() -> None:
    text = catalog.text()
    for metric in ONLINE_METRICS.values():
        assert re.search(rf"^  {metric.name}\b.* {re.escape(metric.title)} ", text, re.MULTILINE)
    page = catalog.page("satisfiedclicks(t=20)", width=80)
    assert page.startswith("# SatisfiedClicks(t=20)\n\nShare of satisfied clicks.\n\n- formula: ")
    labels = re.findall(r"^- ([a-z ]+):", page, re.MULTILINE)
    assert labels == [
        "formula", "value", "numerator", "denominator", "row", "unit", "parameters", "window", "attribution",
        "needs", "source", "caveats",
    ]  # fmt: skip
    assert "`satisfied_events_20`" in page
    assert max(map(len, page.splitlines())) <= 80
    assert "position bias: the metric depends on rank" in catalog.page("PageCTR")
    with pytest.raises(MeasureError, match="did you mean SatisfiedClicks"):
        catalog.page("SatisfyedClicks")


def test_many_slices_are_rows() -> None:
    hours = [f"h{hour:02}" for hour in range(31)]
    rates = tuple(estimate(CTR, clicks, 100, 0.02, slice=hour) for clicks, hour in enumerate(hours))
    top = (replace(ranks(0.3)[0], slice="h00"),)
    many = scores(
        estimates=(estimate(CTR, 465, 3100, 0.02), *rates), by="hour", slices=tuple((hour, 100) for hour in hours),
        ranks=(*ranks(0.2, 0.1), *top),
    )  # fmt: skip
    text = many.text()
    assert max(map(len, text.splitlines())) <= 100
    first, second = (block.splitlines() for block in text.split("\n\n") if block.startswith("hour"))
    assert (len(first), len(second)) == (33, 33)  # a header, all of them, and 31
    assert first[0].split() == ["hour", "pages", "PageCTR", "*"]
    assert first[1].split() == ["all", "1,000", "15.0%", "[13.0%,", "17.0%]"]
    assert first[-1].split() == ["h30", "100", "30.0%", "[28.0%,", "32.0%]"]
    assert second[0].split() == ["hour", "rank", "1", "rank", "2"]
    assert second[2].split() == ["h00", "30.0%", "[28.0%,", "32.0%]", "-"]
    few = replace(many, slices=many.slices[:30])
    assert re.search(r"^metric +all +h00 .*h29$", few.text(), re.MULTILINE)
