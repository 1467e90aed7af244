"""What follows from interleaved lists: verdicts at their limits, and intervals by a ratio of sums over users."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judged.data import sample
from judged.online import interleaving, read_log
from judged.online.ab_tests.differences import Looks
from judged.online.interleaving_analysis.analysis import Preference, _verdict, preference

NAN = math.nan
MIXED: Any = SimpleNamespace(rankers=("old", "new"))


def overall(users: int, low: float, high: float) -> Preference:
    return Preference("", users, users, 1.0, 1.0, 0.0, 0.1, low, high, 0.5, 0.0, NAN, NAN, float(users), None)


@pytest.mark.parametrize(
    ("users", "ends", "broken", "decision"),
    [
        (200, (0.01, 0.1), (), "preferred"),
        (199, (0.01, 0.1), (), "keep running"),
        (200, (0.0, 0.1), (), "keep running"),
        (200, (-0.1, 0.0), (), "keep running"),
        (200, (-0.1, -0.01), (), "not preferred"),
        (200, (NAN, NAN), (), "keep running"),
        (200, (0.01, 0.1), ("coins",), "broken"),
    ],
)
def test_an_interval_on_one_side_decides(users: int, ends: tuple[float, float], broken: Any, decision: str) -> None:
    assert _verdict(MIXED, overall(users, *ends), broken, 200)[0] == decision


@pytest.mark.parametrize("part", [None, "x"])
def test_intervals_are_those_of_a_ratio_of_sums(part: str | None) -> None:
    """Fieller's interval over users, by Student's t with n - 1 degrees of freedom; the error is the delta method's."""
    rng = np.random.default_rng(1)
    unit = np.sort(rng.integers(0, 400, 900))
    win, loss = rng.integers(0, 2, (2, 900)).astype(float)
    made: Any = SimpleNamespace(
        unit=unit, win=win, loss=loss, credit=rng.normal(size=900), part=rng.integers(0, 2, 900), parts=["w", "x"]
    )
    found = preference(made, part, Looks(0.9, any_day=False, expected=5000))
    here = np.ones(900, bool) if part is None else made.part == 1
    users, codes = np.unique(unit[here], return_inverse=True)
    n, lists = len(users), np.bincount(codes)
    for values, value, ends in (
        ((win - loss)[here] / 2, found.value, (found.low, found.high)),
        (made.credit[here], found.credit, (found.credit_low, found.credit_high)),
    ):
        ratio, sums = values.sum() / len(values), np.bincount(codes, values)
        error = math.sqrt(n / (n - 1) * ((sums - ratio * lists) ** 2).sum()) / len(values)
        assert value == pytest.approx(ratio)
        assert ends[0] < ratio < ends[1]
        for end in ends:  # Fieller: at its ends the sum of the residuals is as many standard errors from 0
            spread = math.sqrt(n * np.var(sums - end * lists, ddof=1))
            assert abs((sums - end * lists).sum()) / spread == pytest.approx(stats.t.ppf(0.95, n - 1), rel=1e-6)
        if value == found.value:
            assert found.error == pytest.approx(error)
            t = sums.sum() / math.sqrt(n * np.var(sums, ddof=1))
            assert found.p == pytest.approx(2 * stats.t.sf(abs(t), n - 1), rel=1e-6)
    assert (found.part, found.users, found.lists) == (part or "", n, here.sum())
    assert (found.wins, found.losses) == (win[here].sum(), loss[here].sum())
    assert found.effective == pytest.approx(lists.sum() ** 2 / (lists**2).sum())
    assert found.reason is None


def test_what_was_chosen_is_said() -> None:
    log = read_log(sample.INTERLEAVED)
    usual = dict(interleaving(log).policies)
    other = dict(interleaving(log, count_shared=True, count_repeated=True, any_day=False).policies)
    assert usual["several clicks on one result"] == "count once"
    assert other["several clicks on one result"] == "count as several"
    assert usual["above where lists part"] == "clicks of team drafts count for neither"
    assert other["above where lists part"] == "clicks count"
    assert usual["intervals hold"] == "on any day, narrowest at 5,000 users"
    assert other["intervals hold"] == "on one day, set before"
    found = interleaving(log)
    assert (found.unit, found.level, found.by, found.sliced) == ("user", 0.95, None, ())
    tables = {block.name: block for block in found.blocks() if hasattr(block, "labels")}
    assert [*tables] == ["preferences", "ranks"]
    assert (tables["preferences"].labels, tables["ranks"].folded) == (0, True)
