"""Survival of a log's clicks: equal to a row-by-row computation, and exact on a coarser grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from judged import InputError
from judged.online.engine import Database, Relation
from judged.online.estimation import survival
from judged.online.estimation.survival import CurveStatistic, SurvivalEstimate, estimate_survival
from judged.online.statistics.survival import clustered_error, kaplan_meier
from judged.stats.ratio import effective_units, woodruff

AT = (3_000, 10_000, 30_000)


def clicks(rows: int = 800, users: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    user = (users * rng.random(rows) ** 2).astype(np.int64)
    durations = np.exp(rng.normal(9, 0.8, users)[user] + rng.normal(0, 1, rows)).astype(np.int64) + 1
    censoring = rng.exponential(40_000, rows).astype(np.int64) + 1
    device = np.array(["desktop", "mobile", "tablet"])[rng.integers(0, 3, rows)]
    return {
        "user": user * 7_919,
        "device": device,
        "dwell_ms": np.minimum(durations, censoring),
        "ended": (durations <= censoring).astype(np.int64),
    }


def table_of(columns: dict[str, object]) -> Relation:
    return Database().register(pa.table(columns))


def row_by_row(columns: dict[str, np.ndarray], time_ms: float | None) -> tuple[float, float, float, float]:
    """Return value, low, high, and error from single rows; without a time, those of the median."""
    times, code = np.unique(columns["dwell_ms"], return_inverse=True)
    ended = columns["ended"]
    ended_counts = np.bincount(code, ended).astype(np.int64)
    curve = kaplan_meier(times, ended_counts, np.bincount(code) - ended_counts)
    _, unit = np.unique(columns["user"], return_inverse=True)
    time = curve.quantile(0.5) if time_ms is None else time_ms
    influence = np.where(ended, curve.influence(time)[0][code], curve.influence(time)[1][code])
    error = clustered_error(curve.survival_at(time), float((np.bincount(unit, influence) ** 2).sum()), unit.max() + 1)
    rows = np.bincount(unit)
    effective = effective_units(rows.sum(), (rows**2).sum())
    if time_ms is not None:
        return curve.survival_at(time), *curve.interval(time, error, unit.max() + 1, 0.95, effective=effective), error
    low, high = woodruff(0.5, error, unit.max() + 1, 0.95, effective=effective)
    limits = curve.quantile(0.5 - error), curve.quantile(0.5 + error)
    return time, curve.quantile(low), curve.quantile(high), (limits[1] - limits[0]) / 2


def survival_of(visits: Relation, *, at_ms: Sequence[int], **options: Any) -> list[SurvivalEstimate]:
    """Return the share that lasts longer, by slice, then time."""
    by_statistic = estimate_survival(visits, [CurveStatistic("share", time) for time in at_ms], **options)
    return [row for by_time in zip(*by_statistic, strict=True) for row in by_time]


def survival_quantile(visits: Relation, **options: Any) -> list[SurvivalEstimate]:
    """Return medians."""
    return estimate_survival(visits, [CurveStatistic("quantile", 0.5)], **options)[0]


def numbers(row: SurvivalEstimate) -> list[float]:
    return [row.value, row.low, row.high, row.error]


def test_it_is_the_curve_made_row_by_row() -> None:
    columns = clicks()
    table = table_of(columns)
    overall = survival_of(table, at_ms=AT)
    assert [(row.slice, row.at_ms) for row in overall] == [(None, time) for time in AT]
    for row in overall:
        assert numbers(row) == pytest.approx(row_by_row(columns, row.at_ms), rel=1e-9)
        assert (row.units, row.observed + row.censored, row.grid_ms) == (len(set(columns["user"])), 800, 1)
        assert row.observed == columns["ended"].sum()
    sliced = survival_of(table, at_ms=AT, by="device")
    assert [row.slice for row in sliced] == [name for name in ("desktop", "mobile", "tablet") for _ in AT]
    for row in sliced:
        of_slice = {name: column[columns["device"] == row.slice] for name, column in columns.items()}
        assert numbers(row) == pytest.approx(row_by_row(of_slice, row.at_ms), rel=1e-9)
    medians = survival_quantile(table, by="device")
    for row in (*medians, *survival_quantile(table)):
        of_slice = {
            name: column[[row.slice in {None, device} for device in columns["device"]]]
            for name, column in columns.items()
        }
        assert numbers(row) == pytest.approx(row_by_row(of_slice, None), rel=1e-9)
        assert row.low < row.at_ms == row.value < row.high


def test_by_hand() -> None:
    """Of four visits, one ended at 10, one at 20, one was watched until 20: S(10) = 3/4, S(20) = 1/2.

    Influences on log S(20): G(10) = 1/12, G(20) = 1/12 + 1/6 = 1/4; ended at 10: 1/12 - 1/3 = -1/4; at 20: 1/4 - 1/2.
    User 1 has both: -1/2; users 2 and 3: 1/4 each. Squares 3/8; error = 1/2 * sqrt(3/8 * 3/2) = 3/8.
    """
    rows = {"user": [1, 1, 2, 3], "dwell_ms": [10, 20, 20, 30], "ended": [1, 1, 0, 1]}
    (row,) = survival_of(table_of(rows), at_ms=[20])
    assert (row.value, row.units, row.observed, row.censored) == (0.5, 3, 3, 1)
    assert row.error == pytest.approx(3 / 8, rel=1e-12)


def test_a_coarser_grid_keeps_the_times_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without censoring S is a plain share, so any shift over a time that is asked for would show."""
    columns = clicks() | {"ended": np.ones(800, dtype=np.int64)}
    monkeypatch.setattr(survival, "DISTINCT", 60)
    times = [2_999, 10_000, 12_345, 30_001]
    table = table_of(columns)
    for row in survival_of(table, at_ms=times):
        assert row.grid_ms == 1000
        assert row.value == pytest.approx((columns["dwell_ms"] > row.at_ms).mean(), rel=1e-12)
    (median,) = survival_quantile(table)
    assert median.value == 1000 * math.ceil(np.sort(columns["dwell_ms"])[399] / 1000)
    with pytest.raises(InputError, match="at most 60 values"):
        survival_of(table.engine.query(f"SELECT *, dwell_ms AS each FROM {table}"), at_ms=[1], by="each")


def test_rows_with_something_missing_do_not_count() -> None:
    rows = {
        "user": pa.array([1, 2, 3, None, 5, 6], pa.int64()),
        "device": pa.array(["a", "a", None, "a", "b", "b"]),
        "dwell_ms": pa.array([10, 30, 10, 10, None, 10], pa.int64()),
        "ended": pa.array([True, False, True, True, True, None]),
    }
    table = table_of(rows)
    (overall,) = survival_of(table, at_ms=[20])
    assert (overall.value, overall.units, overall.observed, overall.censored) == (pytest.approx(1 / 3), 3, 2, 1)
    (sliced,) = survival_of(table, at_ms=[20], by="device")
    assert (sliced.slice, sliced.value, sliced.units) == ("a", 0.5, 2)
    empty = table.where('"user" > 99')
    assert survival_of(empty, at_ms=[20]) == survival_quantile(empty, by="device") == []


def test_the_ends_of_a_curve() -> None:
    rows = {"user": [1, 2, 3, 4], "dwell_ms": [10, 20, 30, 30], "ended": [1, 0, 0, 0], "s": ["x"] * 4}
    early, late, beyond = survival_of(table_of(rows), at_ms=[5, 30, 31])
    assert (early.value, early.high, early.error) == (1.0, 1.0, 0.0)
    assert early.low == pytest.approx(0.025**0.25)
    assert late.value == 0.75
    assert 0 < late.low < 0.75 < late.high < 1
    assert np.isnan(numbers(beyond)).all()
    (median,) = survival_quantile(table_of(rows))
    assert (median.value, math.isnan(median.low), math.isnan(median.high)) == (math.inf, True, True)
    one_user = survival_of(table_of(rows | {"user": [1] * 4}), at_ms=[15])[0]
    assert one_user.value == 0.75
    assert np.isnan([one_user.low, one_user.high, one_user.error]).all()


def test_another_unit() -> None:
    columns = clicks()
    renamed = {"session": columns["user"], "dwell_ms": columns["dwell_ms"], "ended": columns["ended"]}
    (row,) = survival_of(table_of(renamed), at_ms=[10_000], unit="session")
    assert numbers(row) == pytest.approx(row_by_row(columns, 10_000), rel=1e-9)


def test_slices_and_all_rows_in_one_go_are_those_of_two() -> None:
    rng = np.random.default_rng(5)
    rows = {
        "user": rng.integers(0, 40, 400),
        "dwell_ms": rng.integers(0, 60, 400) * 1000,
        "ended": rng.integers(0, 2, 400),
        "part": [f"p{i}" for i in rng.integers(0, 3, 400)],
    }
    clicks = table_of(rows)
    i = [4999, 29_999]
    pooled = survival_of(clicks, at_ms=i, by="part", pooled=True)
    separate = [*survival_of(clicks, at_ms=i), *survival_of(clicks, at_ms=i, by="part")]
    assert len(pooled) == len(separate) == 8
    for row, expected in zip(pooled, separate, strict=True):
        assert (row.slice, row.at_ms, row.units, row.observed) == (
            expected.slice,
            expected.at_ms,
            expected.units,
            expected.observed,
        )
        assert (row.value, row.low, row.high, row.error) == pytest.approx(
            (expected.value, expected.low, expected.high, expected.error), rel=1e-12
        )
