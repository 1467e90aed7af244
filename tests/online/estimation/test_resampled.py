"""Intervals by drawing users anew: where the draws say nothing, the delta method's interval stays."""

from __future__ import annotations

import math
from typing import Any

import pytest

from judged.online import OnlineEstimate, online_metrics
from typed_logs import typed_log

USERS = 400


def both(clicked: int, metric: str = "PageCTR", **options: Any) -> tuple[OnlineEstimate, OnlineEstimate]:
    """Estimate it for so many of `USERS` users with a page each that clicked: by the bootstrap, by the delta method."""
    pages = [{"serp": at, "session": at, "user": at, "time_ms": at, "query": "a", "n_shown": 10} for at in range(USERS)]
    clicks = [{**pages[at], "time_ms": at + 5, "action": "click", "rank": 1} for at in range(clicked)]
    log = typed_log(pages, clicks)
    drawn = online_metrics(log, metric, interval="bootstrap", **options).of(metric)
    return drawn, online_metrics(log, metric, **{key: options[key] for key in options if key == "level"}).of(metric)


@pytest.mark.parametrize(("clicked", "level"), [(1, 0.95), (2, 0.95), (3, 0.95), (397, 0.95), (1, 0.8), (4, 0.99)])
def test_few_events_keep_the_interval_of_the_delta_method(clicked: int, level: float) -> None:
    """None of three users is drawn in e**-3 = 5.0 % of resamples: more than the 2.5 % that an end leaves out."""
    drawn, delta = both(clicked, level=level)
    assert drawn == delta
    assert drawn.method == "delta"
    assert 0 < drawn.low < clicked / USERS < drawn.high < 1


@pytest.mark.parametrize(
    ("clicked", "low", "high"),
    [(4, 0.00273, 0.02540), (20, 0.03081, 0.07615), (200, 0.44991, 0.55009), (396, 0.97460, 0.99727)],
)
def test_enough_events_are_near_the_exact_interval(clicked: int, low: float, high: float) -> None:
    """Users with a page each: there the exact interval is that of Clopper and Pearson."""
    drawn, _ = both(clicked)
    assert drawn.method == "bootstrap"
    assert drawn.low == pytest.approx(low, abs=0.003)
    assert drawn.high == pytest.approx(high, abs=0.003)


@pytest.mark.parametrize(("clicked", "low", "high"), [(0, 0.0, 0.0091798), (USERS, 0.9908202, 1.0)])
def test_what_nobody_or_everybody_did_keeps_the_exact_interval(clicked: int, low: float, high: float) -> None:
    drawn, _ = both(clicked)
    assert drawn.method == "exact"
    assert (drawn.low, drawn.high) == pytest.approx((low, high), rel=1e-5)  # 0.025 ** (1 / 400)


def test_a_count_of_few_is_not_unbounded_either() -> None:
    drawn, delta = both(2, "ClicksPerPage")
    assert drawn == delta
    assert drawn.value < drawn.high < math.inf


def test_resamples_with_nothing_to_divide_by_are_left_out() -> None:
    """Three users who clicked once have 2, 1 and 0 carts, many have neither: in e**-3 = 5.0 % nothing is divided by."""
    pages = [{"serp": at, "session": at, "user": at, "time_ms": at, "query": "a", "n_shown": 10} for at in range(50)]
    done = [(0, "click"), (1, "click"), (2, "click"), (0, "add_to_cart"), (0, "add_to_cart"), (1, "add_to_cart")]
    events = [{**pages[at], "time_ms": 99, "action": action, "rank": 1} for at, action in done]
    log = typed_log(pages, events)
    found = online_metrics(log, "CartsPerClick", interval="bootstrap", level=0.63).of("CartsPerClick")
    assert (found.value, found.units, found.method) == (1.0, 3, "bootstrap")
    # of the others, t is at most -sqrt(2) in 21.5 %, and less in 15.5 %: as where the first is not drawn, but the
    # second and third once each; the error is sqrt(1 + 0 + 1) / 3
    assert (found.low, found.high) == pytest.approx((1 / 3, 5 / 3), rel=1e-9)
