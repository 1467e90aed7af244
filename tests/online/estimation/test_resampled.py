"""Bootstrap intervals over users: if the resamples do not bound a metric, the delta method's interval stays."""

from __future__ import annotations

import math
from typing import Any

import pytest

from judged.online import OnlineEstimate, online_metrics
from typed_logs import typed_log

USERS = 400


def both(clicking_users: int, metric: str = "PageCTR", **options: Any) -> tuple[OnlineEstimate, OnlineEstimate]:
    """Estimate a metric of `USERS` users with one page each, by the bootstrap and by the delta method."""
    pages = [{"serp": i, "session": i, "user": i, "time_ms": i, "query": "a", "n_shown": 10} for i in range(USERS)]
    clicks = [{**pages[i], "time_ms": i + 5, "action": "click", "rank": 1} for i in range(clicking_users)]
    log = typed_log(pages, clicks)
    bootstrap = online_metrics(log, metric, interval="bootstrap", **options).of(metric)
    return bootstrap, online_metrics(log, metric, **{key: options[key] for key in options if key == "level"}).of(metric)


@pytest.mark.parametrize(
    ("clicking_users", "level"), [(1, 0.95), (2, 0.95), (3, 0.95), (397, 0.95), (1, 0.8), (4, 0.99)]
)
def test_few_events_keep_the_interval_of_the_delta_method(clicking_users: int, level: float) -> None:
    """None of three users is drawn in e**-3 = 5.0 % of resamples: more than the 2.5 % that an end leaves out."""
    bootstrap, delta = both(clicking_users, level=level)
    assert bootstrap == delta
    assert bootstrap.method == "delta"
    assert 0 < bootstrap.low < clicking_users / USERS < bootstrap.high < 1


@pytest.mark.parametrize(
    ("clicking_users", "low", "high"),
    [(4, 0.00273, 0.02540), (20, 0.03081, 0.07615), (200, 0.44991, 0.55009), (396, 0.97460, 0.99727)],
)
def test_enough_events_are_near_the_exact_interval(clicking_users: int, low: float, high: float) -> None:
    """Users with a page each: there the exact interval is that of Clopper and Pearson."""
    bootstrap, _ = both(clicking_users)
    assert bootstrap.method == "bootstrap"
    assert bootstrap.low == pytest.approx(low, abs=0.003)
    assert bootstrap.high == pytest.approx(high, abs=0.003)


@pytest.mark.parametrize(("clicking_users", "low", "high"), [(0, 0.0, 0.0091798), (USERS, 0.9908202, 1.0)])
def test_what_nobody_or_everybody_did_keeps_the_exact_interval(clicking_users: int, low: float, high: float) -> None:
    bootstrap, _ = both(clicking_users)
    assert bootstrap.method == "exact"
    assert (bootstrap.low, bootstrap.high) == pytest.approx((low, high), rel=1e-5)  # 0.025 ** (1 / 400)


def test_a_count_of_few_is_not_unbounded_either() -> None:
    bootstrap, delta = both(2, "ClicksPerPage")
    assert bootstrap == delta
    assert bootstrap.value < bootstrap.high < math.inf


def test_resamples_with_nothing_to_divide_by_are_left_out() -> None:
    """Three users who clicked once have 2, 1 and 0 carts, many have neither: in e**-3 = 5.0 % nothing is divided by."""
    pages = [
        {"serp": user, "session": user, "user": user, "time_ms": user, "query": "a", "n_shown": 10}
        for user in range(50)
    ]
    actions = [(0, "click"), (1, "click"), (2, "click"), (0, "add_to_cart"), (0, "add_to_cart"), (1, "add_to_cart")]
    events = [{**pages[user], "time_ms": 99, "action": action, "rank": 1} for user, action in actions]
    log = typed_log(pages, events)
    estimate = online_metrics(log, "CartsPerClick", interval="bootstrap", level=0.63).of("CartsPerClick")
    assert (estimate.value, estimate.units, estimate.method) == (1.0, 3, "bootstrap")
    # of the others, t is at most -sqrt(2) in 21.5 %, and less in 15.5 %: as where the first is not drawn, but the
    # second and third once each; the error is sqrt(1 + 0 + 1) / 3
    assert (estimate.low, estimate.high) == pytest.approx((1 / 3, 5 / 3), rel=1e-9)
