"""Verdicts on interleaved lists at their thresholds, and intervals by a ratio of sums over users."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judged.data import sample
from judged.online import interleaving, read_log
from judged.online.ab_tests.differences import Inference
from judged.online.interleaving_analysis.analysis import Preference, _verdict, estimate_preference

NAN = math.nan
MIXED: Any = SimpleNamespace(rankers=("old", "new"))


def overall(users: int, low: float, high: float) -> Preference:
    return Preference("", users, users, 1.0, 1.0, 0.0, 0.1, low, high, 0.5, 0.0, NAN, NAN, float(users), None)


@pytest.mark.parametrize(
    ("users", "interval", "invalid", "decision"),
    [
        (200, (0.01, 0.1), (), "preferred"),
        (199, (0.01, 0.1), (), "keep running"),
        (200, (0.0, 0.1), (), "keep running"),
        (200, (-0.1, 0.0), (), "keep running"),
        (200, (-0.1, -0.01), (), "not preferred"),
        (200, (NAN, NAN), (), "keep running"),
        (200, (0.01, 0.1), ("coins",), "invalid"),
    ],
)
def test_an_interval_on_one_side_decides(
    users: int, interval: tuple[float, float], invalid: Any, decision: str
) -> None:
    assert _verdict(MIXED, overall(users, *interval), invalid, 200)[0] == decision


@pytest.mark.parametrize("slice_name", [None, "x"])
def test_intervals_are_those_of_a_ratio_of_sums(slice_name: str | None) -> None:
    """Fieller's interval over users, by Student's t with n - 1 degrees of freedom; the error is the delta method's."""
    rng = np.random.default_rng(1)
    unit = np.sort(rng.integers(0, 400, 900))
    win, loss = rng.integers(0, 2, (2, 900)).astype(float)
    outcomes: Any = SimpleNamespace(
        unit=unit,
        win=win,
        loss=loss,
        credit=rng.normal(size=900),
        slice_code=rng.integers(0, 2, 900),
        slices=["w", "x"],
    )
    preference = estimate_preference(outcomes, slice_name, Inference(0.9, any_day=False, expected=5000))
    selected = np.ones(900, bool) if slice_name is None else outcomes.slice_code == 1
    users, codes = np.unique(unit[selected], return_inverse=True)
    n, lists = len(users), np.bincount(codes)
    for values, value, interval in (
        ((win - loss)[selected] / 2, preference.value, (preference.low, preference.high)),
        (outcomes.credit[selected], preference.credit, (preference.credit_low, preference.credit_high)),
    ):
        ratio, sums = values.sum() / len(values), np.bincount(codes, values)
        error = math.sqrt(n / (n - 1) * ((sums - ratio * lists) ** 2).sum()) / len(values)
        assert value == pytest.approx(ratio)
        assert interval[0] < ratio < interval[1]
        for limit in interval:  # Fieller: at its ends the sum of the residuals is as many standard errors from 0
            spread = math.sqrt(n * np.var(sums - limit * lists, ddof=1))
            assert abs((sums - limit * lists).sum()) / spread == pytest.approx(stats.t.ppf(0.95, n - 1), rel=1e-6)
        if value == preference.value:
            assert preference.error == pytest.approx(error)
            t = sums.sum() / math.sqrt(n * np.var(sums, ddof=1))
            assert preference.p == pytest.approx(2 * stats.t.sf(abs(t), n - 1), rel=1e-6)
    assert (preference.slice_name, preference.users, preference.lists) == (slice_name or "", n, selected.sum())
    assert (preference.wins, preference.losses) == (win[selected].sum(), loss[selected].sum())
    assert preference.effective_users == pytest.approx(lists.sum() ** 2 / (lists**2).sum())
    assert preference.reason is None


def test_what_was_chosen_is_said() -> None:
    log = read_log(sample.INTERLEAVED)
    default = dict(interleaving(log).policies)
    changed = dict(interleaving(log, count_shared=True, count_repeated=True, any_day=False).policies)
    assert default["repeated clicks on a result"] == "count once"
    assert changed["repeated clicks on a result"] == "count separately"
    assert default["clicks above the first difference"] == "do not count in team drafts"
    assert changed["clicks above the first difference"] == "count"
    assert default["intervals"] == "anytime-valid, narrowest at 5,000 users"
    assert changed["intervals"] == "fixed-sample"
    result = interleaving(log)
    assert (result.unit, result.level, result.by, result.sliced) == ("user", 0.95, None, ())
    tables = {block.name: block for block in result.blocks() if hasattr(block, "labels")}
    assert [*tables] == ["preferences", "ranks"]
    assert (tables["preferences"].labels, tables["ranks"].folded) == (0, True)
