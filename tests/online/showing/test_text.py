"""What people read of a log: exact tables, reasons for what is missing, and CTR by rank beside clicks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import MeasureError
from judged.online.findings import LogFinding
from judged.online.metrics.registry import ONLINE_METRICS, online_metric, online_metrics_named
from judged.online.showing import listing, text, words
from judged.online.showing.numbers import decimals_of, number, value_of
from judged.tables import markdown_text
from online_scores_made import CARTS, CTR, DWELL, NAN, WEIRD, ZERO, estimate, ranks, scores

TABLE = """\
ubi.ndjson (ubi): 1,000 pages, 2,345 events, 120 sessions, 40 users
left out: facet-request 60 of 1,060 query rows
put right: rank-base 287 of 2,345 event rows

metric                 value    95% interval  numerator  denominator  users
Clicks
  PageCTR *            38.1%  [36.9%, 39.3%]        381        1,000     40
  TimeToFirstClick    41.2 s  [38.9, 43.6 s]         60          120     40
  DeepestClickRank *       –               –          0            0      0
Outcomes
  ZeroResults          7.14%               –          6           84      1

* Position bias: users look at the top whatever stands there, so clicks say where a result stood as
  much as how good it was. Read the metrics marked * beside CTR by rank; between rankings they
  compare attention as well as quality.

rank    CTR    95% interval  clicked  shown
1     30.0%  [28.0%, 32.0%]      300  1,000  ████████████████████████
2     15.0%  [13.0%, 17.0%]      150  1,000  ████████████
3     10.0%   [8.0%, 12.0%]      100  1,000  ████████

– DeepestClickRank: nothing to divide by, its denominator is 0
– ZeroResults: no interval, it takes two users and there is 1
not shown, since no add_to_cart event is in this log: AddToCart
95% intervals over users, by the delta method; session gap: 30 min; rank base: 1 (found)"""


def test_the_table() -> None:
    assert scores().text() == TABLE
    assert str(scores()) == TABLE


def test_slices_are_columns() -> None:
    lines = scores(sliced=True).text().splitlines()
    assert (
        lines[4] == "metric                                  all               desktop  <script>alert(1)</script> | *b*"
    )
    assert (
        lines[5] == "pages                                 1,000                   500                              500"
    )
    assert (
        lines[7] == "  PageCTR *            38.1% [36.9%, 39.3%]  40.0% [38.0%, 42.0%]             36.2% [34.2%, 38.2%]"
    )
    assert (
        lines[8] == "  TimeToFirstClick    41.2 s [38.9, 43.6 s]                     –                                –"
    )
    assert max(map(len, scores(sliced=True).text(width=60).splitlines())) <= 60


def test_ranks_by_slice_stand_beside_slices() -> None:
    by = tuple(replace(one, slice="desktop") for one in ranks(0.4, 0.2))
    shown = scores(sliced=True, slices=(("desktop", 500),), ranks=(*ranks(0.3, 0.15), *by)).text()
    assert "rank                   all               desktop\n1     30.0% [28.0%, 32.0%]  40.0% [38.0%, 42.0%]" in shown


def test_the_warning_is_there_with_every_metric_of_clicks_and_only_then() -> None:
    for metric in ONLINE_METRICS.values():
        one = scores(estimates=(estimate(metric, 10, 100, 0.05),))
        for shown in (one.text(), one.markdown()):
            assert ("Position bias:" in shown) == metric.biased
            assert bool(re.search(r"^(\| )?1 .*30\.0%", shown, re.MULTILINE)) == metric.biased
        assert any("Position bias" in note for note in text.notes(one)) == metric.biased


def test_texts_of_the_log_steer_no_terminal() -> None:
    made = scores(log="a\x1b[31m\nlog", slices=(("\x07bell", 3),), by="device").text()
    assert "\x1b" not in made
    assert "\x07" not in made
    assert made.startswith("a\ufffd[31m log (ubi)")


def test_markdown_and_csv() -> None:
    made = scores(sliced=True)
    assert r"|   PageCTR \* | 38.1% [36.9%, 39.3%] | 40.0% [38.0%, 42.0%] | 36.2% [34.2%, 38.2%] |" in made.markdown()
    assert "| facet-request | query | excluded | 60 | 1,060 | 5.7 % |" in made.markdown()
    assert "\n- facet-request (query): 60 rows: facet requests are no searches. Fix: do not log them" in made.markdown()
    assert markdown_text(WEIRD) in made.markdown()
    assert "<script>" not in made.markdown()
    head, first, *rest = made.csv().splitlines()
    assert head == "metric,by,slice,rank,value,low,high,error,numerator,denominator,row,unit,units,method"
    assert (
        first
        == f"PageCTR,,,,0.381,{0.381 - 0.0123!r},{0.381 + 0.0123!r},{0.0123 / 1.96!r},381,1000,page,share,40,delta"
    )
    assert rest[2] == "ZeroResults,,,," + f"{6 / 84!r},,,,6,84,page,share,1,none"
    assert len(rest) == 5 + 3
    assert text.ranks_csv(made).splitlines()[1].startswith("ImpressionCTR,,,1,0.3,")


def test_ranks_alone() -> None:
    shown = text.ranks_text(scores())
    assert "1     30.0%  [28.0%, 32.0%]      300  1,000  ████████████████████████" in shown
    assert "What stood at rank 1 was clicked 3.0 times as often as what stood at rank 3." in shown
    assert "| 3 | 10.0% | [8.0%, 12.0%] | 100 | 1,000 |" in text.ranks_markdown(scores())


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
    assert words.steepness(ranks(*values)) == said


@pytest.mark.parametrize(
    ("half", "shown"),
    [(0.05, "12.3%"), (0.005, "12.35%"), (0.0005, "12.345%"), (0.000005, "12.3453%"), (NAN, "12.3%"), (0.5, "12.3%")],
)
def test_as_many_decimals_as_are_known(half: float, shown: str) -> None:
    assert value_of(estimate(CTR, 0, 1, half, value=0.123453)) == shown


def test_a_rare_event_is_not_shown_as_nothing() -> None:
    assert value_of(estimate(ZERO, 46, 1_000_000, NAN)) == "0.0046%"
    assert number(-1e-9, "share") == "0.0%"


@given(st.floats(0, 1), st.floats(0, 1))
def test_decimals_stay_within_bounds(value: float, half: float) -> None:
    assert 1 <= decimals_of(estimate(CTR, 0, 1, half, value=value)) <= 4


def test_choices_are_named_where_they_matter() -> None:
    money = ("money", "winsorised at 99.9 %"), ("attribution", "same page")
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
        made = words.policies(scores(policies=chosen, estimates=estimates, findings=findings))
        assert [one.partition(":")[0] for one in made] == said


def test_many_metrics_and_reasons_are_cut() -> None:
    names = [f"PageCTR@{k}" for k in range(1, 12)]
    refused = tuple((one, "the log holds no clicks") for one in online_metrics_named(names))
    (said,) = words.refusals(scores(refused=refused))
    assert said == f"not shown, since the log holds no clicks: {', '.join(names[:8])} and 3 more"
    nothing = tuple(estimate(CTR, 0, 0, NAN, slice=f"s{at}") for at in range(20))
    lines = scores(estimates=nothing, by="device").text().splitlines()
    assert len([line for line in lines if line.startswith("– PageCTR on s")]) == 6
    assert "and 14 more" in lines


def test_a_quantile_and_a_curve_say_why_they_have_no_value() -> None:
    unknown = estimate(DWELL, 0, 5, NAN, value=NAN)
    assert words.reasons(scores(estimates=(unknown,)))[0] == "– TimeToFirstClick: no value"
    known = scores(estimates=(estimate(CARTS, 1, 5, NAN, units=5, slice="a"),))
    assert words.reasons(known)[0] == "– AddToCart on a: no interval, none is known for this value"


def test_no_word_of_a_test_that_was_not_made() -> None:
    for shown in (scores().text(), scores(sliced=True).markdown()):
        assert not re.search(r"\bp\b|p-value|significan|binomial", shown)


def test_the_list_has_every_metric_and_one_of_them_has_everything() -> None:
    shown = listing.text()
    for metric in ONLINE_METRICS.values():
        assert re.search(rf"^  {metric.name}\b.* {re.escape(metric.title)} ", shown, re.MULTILINE)
    page = listing.page("satisfiedclicks(t=20)", width=80)
    assert page.startswith("# SatisfiedClicks(t=20)\n\nClicks that satisfied.\n\n- formula: ")
    labels = re.findall(r"^- ([a-z ]+):", page, re.MULTILINE)
    assert labels == [
        "formula", "value", "numerator", "denominator", "one row", "unit", "parameters", "window", "attribution",
        "needs", "source", "misleads",
    ]  # fmt: skip
    assert "`satisfied_events_20`" in page
    assert max(map(len, page.splitlines())) <= 80
    assert "position bias: depends on rank" in listing.page("PageCTR")
    with pytest.raises(MeasureError, match="did you mean SatisfiedClicks"):
        listing.page("SatisfyedClicks")


def test_many_slices_stand_below_one_another() -> None:
    hours = [f"h{at:02}" for at in range(31)]
    rates = tuple(estimate(CTR, at, 100, 0.02, slice=hour) for at, hour in enumerate(hours))
    top = (replace(ranks(0.3)[0], slice="h00"),)
    many = scores(
        estimates=(estimate(CTR, 465, 3100, 0.02), *rates), by="hour", slices=tuple((hour, 100) for hour in hours),
        ranks=(*ranks(0.2, 0.1), *top),
    )  # fmt: skip
    written = text.text(many)
    assert max(map(len, written.splitlines())) <= 100
    first, second = (block.splitlines() for block in written.split("\n\n") if block.startswith("hour"))
    assert (len(first), len(second)) == (33, 33)  # a header, all of them, and 31
    assert first[0].split() == ["hour", "pages", "PageCTR", "*"]
    assert first[1].split() == ["all", "1,000", "15.0%", "[13.0%,", "17.0%]"]
    assert first[-1].split() == ["h30", "100", "30.0%", "[28.0%,", "32.0%]"]
    assert second[0].split() == ["hour", "rank", "1", "rank", "2"]
    assert second[2].split() == ["h00", "30.0%", "[28.0%,", "32.0%]", "–"]
    few = replace(many, slices=many.slices[:30])
    assert "metric" in text.text(few)
    assert re.search(r"^metric +all +h00 .*h29$", text.text(few), re.MULTILINE)
