"""What people read of a log: exact tables, reasons for what is missing, and CTR by rank beside clicks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError, MeasureError
from judged.online import catalog
from judged.online import findings as words
from judged.online.findings import LogFinding
from judged.online.layout import decimals_of, in_unit, steepness, value_of
from judged.online.metrics import ONLINE_METRICS, online_metric, online_metrics_named
from judged.results.escaping import markdown_text
from online_scores_made import CARTS, CTR, DWELL, NAN, WEIRD, ZERO, estimate, ranks, scores

TABLE = """\
ubi.ndjson (ubi): 1,000 pages, 2,345 events, 120 sessions, 40 users
left out: facet-request 60 of 1,060 query rows
put right: rank-base 287 of 2,345 event rows

metric                           value  numerator  denominator  users
Clicks
  PageCTR *         38.1% [36.9%, 39.3%]        381        1,000     40
  TimeToFirstClick 41.2 s   [38.9, 43.6]         60          120     40
  DeepestClickRank *        -                          0            0      0
Outcomes
  ZeroResults       7.14%                         6           84      1
"""


def test_the_table() -> None:
    shown = scores().text()
    assert shown.split("\n\n")[0] == TABLE.split("\n\n", maxsplit=1)[0]
    assert [line.split() for line in shown.split("\n\n")[1].splitlines()] == [
        line.split() for line in TABLE.split("\n\n")[1].splitlines()
    ]
    assert "* depends on rank: read it beside CTR by rank; 95% intervals over users, by the delta method" in shown
    assert "session gap: 30 min; rank base: 1 (found)" in " ".join(shown.split())
    assert "DeepestClickRank: nothing to divide by, its denominator is 0\n" in shown
    assert "ZeroResults: no interval, it takes two users and there is 1\n" in shown
    assert shown.endswith("not shown, since no add_to_cart event is in this log: AddToCart")
    assert "\n1     30.0% [28.0%, 32.0%]      300  1,000     40  ████████████████████████\n" in shown


def test_numbers_stand_under_numbers() -> None:
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


def test_ranks_by_slice_stand_beside_slices() -> None:
    by = tuple(replace(one, slice="desktop") for one in ranks(0.4, 0.2))
    shown = scores(sliced=True, slices=(("desktop", 500),), ranks=(*ranks(0.3, 0.15), *by)).text()
    assert "rank                   all               desktop\n1     30.0% [28.0%, 32.0%]  40.0% [38.0%, 42.0%]" in shown


def test_the_warning_is_there_with_every_metric_of_clicks_and_only_then() -> None:
    for metric in ONLINE_METRICS.values():
        one = scores(estimates=(estimate(metric, 10, 100, 0.05),))
        for shown in (one.text(), one.markdown()):
            assert ("depends on rank: read it beside" in shown) == metric.biased
            assert bool(re.search(r"^(\| )?1 .*30\.0%", shown, re.MULTILINE)) == metric.biased
        assert [note.rule for note in one.notes] == ["unfit-log", *["position-bias"] * metric.biased]
        assert ("ranks" in one.charts()) == metric.biased


def test_texts_of_the_log_steer_no_terminal() -> None:
    made = scores(log="a\x1b[31m\nlog", slices=(("\x07bell", 3),), by="device").text()
    assert "\x1b" not in made
    assert "\x07" not in made
    assert made.startswith("a\ufffd[31m log (ubi)")


def test_markdown_and_csv() -> None:
    made = scores(sliced=True)
    assert r"|   PageCTR<sup>*</sup> | 38.1% [36.9%, 39.3%] | 40.0% [38.0%, 42.0%] | 36.2%" in made.markdown()
    assert "| facet-request | query | excluded | 60 | 1,060 | 5.7 % |" in made.markdown(unfold=["findings"])
    assert "facet-request (query): 60 rows: facet requests are no searches. Fix: do not log them" in made.markdown()
    assert markdown_text(WEIRD) in made.markdown()
    assert "<script>" not in made.markdown()
    head, first, *rest = made.csv().splitlines()
    assert head == "metric,slice,value,ci_low,ci_high,error,numerator,denominator,units,method"
    assert first == f"PageCTR,,0.381,{0.381 - 0.0123!r},{0.381 + 0.0123!r},{0.0123 / 1.96!r},381,1000,40,delta"
    assert rest[-1] == "ZeroResults,," + f"{6 / 84!r},,,,6,84,1,none"
    assert len(rest) == 5
    assert made.csv("ranks").splitlines()[1].startswith("1,,0.3,")


def test_json() -> None:
    made = scores(sliced=True).to_dict()
    assert made["schema"] == "judged.online/1"
    assert made["log"] == {
        "name": "ubi.ndjson", "layout": "ubi", "pages": 1000, "events": 2345, "sessions": 120, "users": 40,
    }  # fmt: skip
    assert made["slices"] == [{"slice": "desktop", "pages": 500}, {"slice": WEIRD, "pages": 500}]
    assert {one["metric"] for one in made["metrics"]} == {
        "PageCTR", "ZeroResults", "TimeToFirstClick", "DeepestClickRank", "AddToCart",
    }  # fmt: skip
    assert made["estimates"][0]["ci"] == [0.381 - 0.0123, 0.381 + 0.0123]  # as it is, not as it is shown
    assert made["estimates"][-1] == {
        "metric": "ZeroResults", "slice": None, "value": 6 / 84, "ci": None, "error": None, "numerator": 6,
        "denominator": 84, "units": 1, "method": "none",
    }  # fmt: skip
    assert [one["rank"] for one in made["ranks"]] == [1, 2, 3]
    assert made["refused"] == [{"metric": "AddToCart", "reason": "no add_to_cart event is in this log"}]
    assert made["policies"] == {"session_gap": "30 min", "rank_base": "1 (found)", "bots": "exclude"}
    assert made["findings"][0]["fix"] == "do not log them as searches"


def test_ranks_alone() -> None:
    made = scores().by_rank()
    assert "\n1     30.0% [28.0%, 32.0%]      300  1,000     40  ████████████████████████\n" in made.text()
    assert "What stood at rank 1 was clicked 3.0 times as often as what stood at rank 3." in made.text()
    assert "| 3 | 10.0%  [8.0%, 12.0%] | 100 | 1,000 | 40 |" in made.markdown()
    with pytest.raises(InputError, match="there is no CTR by rank: no add_to_cart event"):
        scores(ranks=()).by_rank()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.3, 0.0), "What stood at rank 1 was clicked, and nothing was at rank 2."),
        ((0.1, 0.2), "What stood at rank 2 was clicked 2.0 times as often as what stood at rank 1."),
        ((0.3,), ""),
        ((0.0, 0.3), ""),
        ((NAN, 0.3, 0.1), "What stood at rank 2 was clicked 3.0 times as often as what stood at rank 3."),
    ],
)
def test_steepness(values: tuple[float, ...], said: str) -> None:
    assert steepness(ranks(*values)) == said


@pytest.mark.parametrize(
    ("half", "shown"),
    [(0.05, "12.3%"), (0.005, "12.35%"), (0.0005, "12.345%"), (0.000005, "12.3453%"), (NAN, "12.3%"), (0.5, "12.3%")],
)
def test_as_many_decimals_as_are_known(half: float, shown: str) -> None:
    assert value_of(estimate(CTR, 0, 1, half, value=0.123453)) == shown


def test_a_rare_event_is_not_shown_as_nothing() -> None:
    assert value_of(estimate(ZERO, 46, 1_000_000, NAN)) == "0.0046%"
    assert in_unit("share").write(-1e-9) == "0.0%"


@given(st.floats(0, 1), st.floats(0, 1))
def test_decimals_stay_within_bounds(value: float, half: float) -> None:
    assert 1 <= decimals_of(estimate(CTR, 0, 1, half, value=value)) <= 4


def test_choices_are_named_where_they_matter() -> None:
    money = ("money", "winsorized at 99.9 %"), ("attribution", "same page")
    bots = ("bots", "exclude"), ("bot_rate", "more than 100 pages")
    chosen = (("session_gap", "30 minutes"), *bots, *money)
    robot = LogFinding("bot", "query", 1, 1000, "excluded", "pages of programs", "")
    spent = estimate(online_metric("RevenuePerSearch"), 50, 100, 1.0)
    cart = estimate(CARTS, 5, 100, 0.01)
    for estimates, findings, said in (
        ((cart,), (), ["session gap", "attribution"]),
        ((spent,), (), ["session gap", "money", "attribution"]),
        ((estimate(CTR, 1, 2, 0.1),), (robot,), ["session gap", "bots", "bot rate"]),
    ):
        made = words.made(scores(policies=chosen, estimates=estimates, findings=findings)).split("; ")[1:]
        assert [one.partition(":")[0] for one in made] == said


def test_many_metrics_and_reasons_are_cut() -> None:
    names = [f"PageCTR@{k}" for k in range(1, 12)]
    refused = tuple((one, "the log holds no clicks") for one in online_metrics_named(names))
    (said,) = words.refusals(scores(refused=refused))
    assert said == f"not shown, since the log holds no clicks: {', '.join(names[:8])} and 3 more"
    nothing = tuple(estimate(CTR, 0, 0, NAN, slice=f"s{at}") for at in range(20))
    made = scores(estimates=nothing, by="device", slices=tuple((f"s{at}", 1) for at in range(20)))
    assert words.missing(made)[0] == "PageCTR on s0: nothing to divide by, its denominator is 0"
    assert words.missing(made)[6] == "and 14 more"


def test_a_quantile_and_a_curve_say_why_they_have_no_value() -> None:
    unknown = estimate(DWELL, 0, 5, NAN, value=NAN)
    assert words.missing(scores(estimates=(unknown,)))[0] == "TimeToFirstClick: no value"
    known = scores(estimates=(estimate(CARTS, 1, 5, NAN, units=5, slice="a"),), slices=(("a", 5),), by="device")
    assert words.missing(known)[0] == "AddToCart on a: no interval, none is known for this value"


def test_the_list_has_every_metric_and_one_of_them_has_everything() -> None:
    shown = catalog.text()
    for metric in ONLINE_METRICS.values():
        assert re.search(rf"^  {metric.name}\b.* {re.escape(metric.title)} ", shown, re.MULTILINE)
    page = catalog.page("satisfiedclicks(t=20)", width=80)
    assert page.startswith("# SatisfiedClicks(t=20)\n\nClicks that satisfied.\n\n- formula: ")
    labels = re.findall(r"^- ([a-z ]+):", page, re.MULTILINE)
    assert labels == [
        "formula", "value", "numerator", "denominator", "one row", "unit", "parameters", "window", "attribution",
        "needs", "source", "misleads",
    ]  # fmt: skip
    assert "`satisfied_events_20`" in page
    assert max(map(len, page.splitlines())) <= 80
    assert "position bias: depends on rank" in catalog.page("PageCTR")
    with pytest.raises(MeasureError, match="did you mean SatisfiedClicks"):
        catalog.page("SatisfyedClicks")


def test_many_slices_stand_below_one_another() -> None:
    hours = [f"h{at:02}" for at in range(31)]
    rates = tuple(estimate(CTR, at, 100, 0.02, slice=hour) for at, hour in enumerate(hours))
    top = (replace(ranks(0.3)[0], slice="h00"),)
    many = scores(
        estimates=(estimate(CTR, 465, 3100, 0.02), *rates), by="hour", slices=tuple((hour, 100) for hour in hours),
        ranks=(*ranks(0.2, 0.1), *top),
    )  # fmt: skip
    written = many.text()
    assert max(map(len, written.splitlines())) <= 100
    first, second = (block.splitlines() for block in written.split("\n\n") if block.startswith("hour"))
    assert (len(first), len(second)) == (33, 33)  # a header, all of them, and 31
    assert first[0].split() == ["hour", "pages", "PageCTR", "*"]
    assert first[1].split() == ["all", "1,000", "15.0%", "[13.0%,", "17.0%]"]
    assert first[-1].split() == ["h30", "100", "30.0%", "[28.0%,", "32.0%]"]
    assert second[0].split() == ["hour", "rank", "1", "rank", "2"]
    assert second[2].split() == ["h00", "30.0%", "[28.0%,", "32.0%]", "-"]
    few = replace(many, slices=many.slices[:30])
    assert re.search(r"^metric +all +h00 .*h29$", few.text(), re.MULTILINE)
