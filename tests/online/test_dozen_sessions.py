"""All metrics on twelve sessions, counted by hand from `dozen_sessions.SESSIONS`.

Pages, in order: 0 red shoes, 1 red running shoes, 2 blue hat, 3 grene tea (empty), 4 green tea, 5 laptop, 6 its second
page, 7 laptop bag, 8 weather, 9 news, 10 tv, 11 tv again, 12 radio, 13 cheap flights (filtered, empty), 14 flights,
15 flights to rome (rescued), 16 white oak book shelf, 17 oak shelf, 18 sofa, 19 lamp, 20 lamps, 21 gift.
"""

from __future__ import annotations

import math

import pytest

from dozen_sessions import pages_and_events
from judged.online import InteractionLog, OnlineScores, online_metrics
from typed_logs import typed_log

COUNTED = {
    "ImpressionCTR": (15, 174),  # 2 + 1 + 2 + 1 + 1 + 1 + 1 + 3 + 1 + 1 + 1 opened
    "ImpressionCTR@1": (7, 19),  # first results of pages 0, 4, 9, 11, 17, 18, 19; page 6 begins at rank 11
    "ImpressionCTR@3": (11, 56),  # and rank 3 of 0, rank 2 of 1, 14, 16; 18 pages have three results, page 19 two
    "ImpressionCTR@10": (14, 164),
    "PageCTR": (11, 20),  # pages 3 and 13 are empty
    "PageCTR@1": (7, 19),
    "PageCTR@3": (10, 19),
    "ClicksPerPage": (15, 20),
    "FirstClickRR": (1 + 1 / 2 + 1 + 1 / 12 + 1 + 1 + 1 / 2 + 1 / 5 + 1 + 1 + 1, 20),
    "TopmostClickRR": (1 + 1 / 2 + 1 + 1 / 12 + 1 + 1 + 1 / 2 + 1 / 2 + 1 + 1 + 1, 20),
    "MeanRR": ((1 + 1 / 3) / 2 + 1 / 2 + 5 / 8 + 1 / 12 + 1 + 1 + 1 / 2 + (1 / 5 + 1 / 2 + 1 / 9) / 3 + 3, 20),
    "DeepestClickRank": (3 + 2 + 4 + 12 + 1 + 1 + 2 + 9 + 1 + 1 + 1, 11),
    "MeanClickRank": (4 + 2 + 5 + 12 + 1 + 1 + 2 + 16 + 1 + 1 + 1, 15),
    "LastClickAtRank(r=1)": (5, 7),  # pages 9, 11, 17, 18, 19; pages 0 and 4 go on to ranks 3 and 4
    "LastClickAtRank(r=2)": (2, 3),  # pages 1, 14; page 16 goes on to rank 9
    "SkipRate": (1 + 1 + 2 + 1 + 1 + 6, 2 + 1 + 3 + 1 + 1 + 8),  # page 6: rank 11 above rank 12
    "TimeToFirstClick": (5 + 5 + 2 + 10 + 5 + 10 + 3 + 10 + 5 + 2, 10),  # page 14's click is before the page
    "SessionCTR": (9, 12),
    "HoverRate": (2, 20),
    "SatisfiedClicks": (8, 16),  # 45, 45, 69 seconds, and five visits that nobody saw end: F leaves its page, no more
    "SatisfiedClicks(t=20)": (11, 16),  # and 20, 20, 27
    "DissatisfiedClicks": (5, 16),  # 5, 5, 1, 1, 8: 15 is not below 15
    "SatisfiedPageCTR": (7, 20),  # pages 0, 1, 4, 9, 16, 17, 18
    "ObservedVisits": (11, 16),
    "Abandonment": (9, 22),  # 2, 3, 5, 7, 8, 13, 15, 20, 21; page 10 led to a cart, page 12 to a purchase
    "BadAbandonment": (7, 22),
    "GoodAbandonment": (1, 22),  # something was copied from page 2
    "UnknownAbandonment": (1, 22),  # page 8: later something else, which succeeded
    "BadAbandonment(look=4)": (6, 22),
    "GoodAbandonment(look=4)": (2, 22),  # and page 21, hovered over after 4 seconds
    "GoodAbandonment(look=4.5)": (1, 22),
    "UnknownAbandonment(look=4)": (1, 22),
    "ExitRate": (5, 22),  # 7, 13, 15, 20, 21; page 2 was copied from, page 12 led to a purchase
    "SecondPageRate": (1, 21),  # of page 5
    "Reformulation": (6, 20),  # 0, 3, 5, 14, 16, 19; page 6 is no first page, page 10 is asked again
    "SpecializeReformulation": (3, 20),
    "GeneralizeReformulation": (1, 20),
    "ZeroResults": (1, 20),
    "ZeroResultQueries": (1, 19),
    "FilteredZeroResults": (1, 1),
    "RescuedZeroResults": (1, 3),
    "AddToCart": (1, 22),
    "CartsPerClick": (1, 16),
    "Conversion": (2, 22),  # G's purchase comes too late
    "RevenuePerSearch": (80, 22),
    "OrderValue": (80, 2),
    "RevenuePerSession": (80, 12),
    "RevenuePerUser": (80, 8),
    "PositiveFeedback": (2, 3),
    "MeanRating": (4 + 2.5, 2),
    "FilterUse": (1, 22),
    "SuggestionUse": (1, 2),  # of pages 0 and 5
    "SessionSuccess": (6, 12),
    "QueriesPerSuccess": (1 + 2 + 2 + 1 + 1 + 1, 6),
    "TimeToSuccess": (25 + 15 + 405 + 9 + 31 + 5, 6),
    "QueriesPerSession": (20, 12),
    "SessionsPerUser": (12, 8),
    "Latency": (sum(100 + number for number in range(22)) / 1000, 22),
}
QUANTILES = {"TimeToFirstClick(q=0.5)": 5.0, "Latency(q=0.5)": 0.110, "Latency(q=0.95)": 0.120}
DESKTOP = {  # sessions 0, 1, 4, 5, 8, 9, 10: pages 0 to 2, 8 to 12, 16 to 20
    "ImpressionCTR": (11, 10 + 5 + 10 + 3 + 40 + 10 + 10 + 10 + 2 + 10),
    "PageCTR": (8, 13),
    "SessionSuccess": (5, 7),
    "SessionsPerUser": (7, 6),
    "QueriesPerSession": (12, 7),
    "AddToCart": (1, 13),
    "SatisfiedClicks": (6, 11),
    "RevenuePerUser": (50, 6),
}
CURVES = {  # three visits are censored at once; 13 are left: 1, 1, 5, 5, 8, 20, 20, 27, 45, 45, (60), 69, (3995)
    "DwellOver": 5 / 13,
    "DwellTime(t=60)": (1 * 13 + 4 * 11 + 3 * 9 + 12 * 8 + 7 * 6 + 18 * 5 + 15 * 3) / 13,
    "DwellTime": (357 + 9 * 3 + 231 * 3 / 2) / 13,
    "DwellTime(q=0.5)": 20,  # 7 of 13
    "DwellTime(q=0.75)": 45,  # 10 of 13
    "ReturnRate(d=0.997)": 1 / 8,  # H after 86,100 seconds
    "ReturnRate(d=1)": 4 / 8,  # A, B, and E after a day to the millisecond; nobody was lost sight of so soon
    "ReturnRate(d=2)": 4 / 8,  # G was, by the end of the log
}


@pytest.fixture(scope="module")
def scores() -> OnlineScores:
    log = typed_log(*pages_and_events())
    return online_metrics(
        log, [*COUNTED, *QUANTILES, *CURVES, "Revenue", "DwellTime(q=0.9)", "ReturnRate"], by="device"
    )


@pytest.mark.parametrize("name", COUNTED)
def test_as_counted_by_hand(scores: OnlineScores, name: str) -> None:
    numerator, denominator = COUNTED[name]
    estimate = scores.of(name)
    assert estimate.numerator == pytest.approx(numerator, rel=1e-12)
    assert estimate.denominator == denominator
    assert estimate.value == pytest.approx(numerator / denominator, rel=1e-12)


@pytest.mark.parametrize("name", DESKTOP)
def test_a_slice_as_counted_by_hand(scores: OnlineScores, name: str) -> None:
    estimate = scores.of(name, "desktop")
    assert (estimate.numerator, estimate.denominator) == DESKTOP[name]


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles(scores: OnlineScores, name: str) -> None:
    assert scores.value(name) == pytest.approx(QUANTILES[name], rel=1e-12)


@pytest.mark.parametrize("name", CURVES)
def test_kaplan_meier(scores: OnlineScores, name: str) -> None:
    assert scores.value(name) == pytest.approx(CURVES[name], rel=1e-12)


def test_survival_curves_are_undefined_beyond_the_observed_times(scores: OnlineScores) -> None:
    assert math.isnan(scores.value("DwellTime(q=0.9)"))
    assert math.isnan(scores.value("ReturnRate"))  # no user was observed for 7 days


def test_return_rate_uses_the_slice_of_the_first_page(scores: OnlineScores) -> None:
    """A and H of A, C, D, F, G, and H return; the error is that of a share of six independent users."""
    estimate = scores.of("ReturnRate(d=1)", "desktop")
    assert (estimate.value, estimate.units) == (pytest.approx(2 / 6), 6)
    assert estimate.error == pytest.approx(math.sqrt(2 / 6 * 4 / 6 / 6 * 6 / 5), rel=1e-9)
    assert estimate.low < estimate.value < estimate.high


def test_a_total_is_the_mean_times_the_number_of_users(scores: OnlineScores) -> None:
    total, mean = scores.of("Revenue"), scores.of("RevenuePerUser")
    assert (total.value, total.denominator) == (80, 8)
    assert [total.low, total.high, total.error] == pytest.approx(
        [8 * value for value in (mean.low, mean.high, mean.error)]
    )


def test_ctr_by_rank(scores: OnlineScores) -> None:
    sums = {row.rank: (row.numerator, row.denominator) for row in scores.ranks if row.slice is None}
    assert sums == {1: (7, 19), 2: (3, 19), 3: (1, 18), 4: (1, 17), 5: (1, 16)} | {
        rank: (int(rank == 9), 15) for rank in range(6, 11)
    }


def test_unsupported_metrics_are_refused_with_a_reason() -> None:
    log = typed_log(*pages_and_events(), has=frozenset({"clicks", "shown", "unclicked"}), has_time=False)
    scores = online_metrics(log, ["PageCTR", "SatisfiedClicks", "TimeToFirstClick", "Latency"])
    assert [str(metric) for metric in scores.metrics] == ["PageCTR"]
    assert {str(metric): reason for metric, reason in scores.refused} == {
        "SatisfiedClicks": "the log has no dwell times: it has no timestamps, all clicks have the time of their"
        " page, or no activity follows a click",
        "TimeToFirstClick": "the log has no timestamps",
        "Latency": "the log does not record the latency of the engine",
    }


def test_intervals_are_over_users() -> None:
    """Delta method by hand: clicked pages and pages of the users A to H."""
    clicked = {"A": 2, "B": 2, "C": 1, "D": 1, "E": 1, "F": 2, "G": 1, "H": 1}
    pages = {"A": 3, "B": 4, "C": 2, "D": 3, "E": 2, "F": 2, "G": 1, "H": 3}
    ratio = sum(clicked.values()) / sum(pages.values())
    squares = sum((clicked[user] - ratio * pages[user]) ** 2 for user in pages)
    error = math.sqrt(squares * 8 / 7) / sum(pages.values())
    estimate = online_metrics(typed_log(*pages_and_events()), "PageCTR").of("PageCTR")
    assert (estimate.units, estimate.method) == (8, "delta")
    assert estimate.error == pytest.approx(error, rel=1e-12)


def test_unit_of_sessions() -> None:
    log: InteractionLog = typed_log(*pages_and_events())
    scores = online_metrics(log, ["PageCTR", "SessionsPerUser"], unit="session")
    assert scores.of("PageCTR").units == 11  # not the session with only an empty page
    assert scores.refused[0][1] == "it requires unit=user"
