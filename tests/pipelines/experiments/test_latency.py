"""Latency: exact with a clock of our own, and intervals that hold the quantile as often as they say."""

from __future__ import annotations

import json
import math
import sys
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaincinv

from judged.pipelines.experiments import Plan, QueryRefusedError
from judged.pipelines.experiments.limits import energy, joules_of, machine, quantile, rounds_of, throughput
from judged.pipelines.experiments.results import latency_of
from judged.pipelines.experiments.worker import COSTS, work
from pipelines.experiments import made


class Time:
    """A clock that goes on only when something is done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[str] = []

    def __call__(self) -> float:
        return self.now

    def search(self, query: str) -> None:
        """Take 10 ms for q0, 20 for q1...; each time that it is asked again, 1 ms more."""
        self.now += (10 * (int(query[1:]) + 1) + Counter(self.asked)[query]) / 1000
        self.asked.append(query)


def test_every_query_is_asked_once_a_round_in_an_order_of_its_own() -> None:
    clock, queries = Time(), [f"q{at}" for at in range(30)]
    taken = rounds_of(clock.search, queries, rounds=3, warm_up=0, seed=1, clock=clock)
    expected = [[10 * (at + 1) + row for at in range(30)] for row in range(3)]
    np.testing.assert_allclose(taken, expected, rtol=0, atol=1e-9)
    orders = [clock.asked[30 * row : 30 * (row + 1)] for row in range(3)]
    assert all(sorted(order) == sorted(queries) for order in orders)
    assert len({tuple(order) for order in [*orders, queries]}) == 4
    again = Time()
    rounds_of(again.search, queries, rounds=3, warm_up=0, seed=1, clock=again)
    assert again.asked == clock.asked


def test_the_first_ones_are_not_counted() -> None:
    clock = Time()
    taken = rounds_of(clock.search, ["q0", "q1"], rounds=1, warm_up=2, seed=0, clock=clock)
    assert sorted(clock.asked[:2]) == ["q0", "q1"]
    np.testing.assert_allclose(taken, [[11.0, 21.0]], rtol=0, atol=1e-9)


def test_quantiles_by_hand() -> None:
    """The rounds' own medians are 5, 6 and 9, over five queries; their ends, over six, the median end."""
    ms = np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    taken = np.array([ms - 1, ms, ms + 3])
    found = quantile(taken, 0.5)
    assert (found.value, found.ci) == (6.0, None)  # of five: 1 - 2/32 is less than 0.95
    logs = np.log([5.0, 6.0, 9.0])
    half = 4.302653 * logs.std(ddof=1) / math.sqrt(3)  # Student's quantile with two degrees of freedom
    assert found.noise == pytest.approx((math.exp(logs.mean() - half), math.exp(logs.mean() + half)), rel=1e-6)
    assert quantile(taken[:2], 0.5).noise is None
    assert quantile(np.zeros((3, 6)), 0.5).noise == (0.0, 0.0)  # no logarithm: the range
    six = quantile(np.outer([1.0, 1.0, 1.0, 1.0, 1.0, 1.5], ms), 0.5)
    assert six.noise is not None
    assert six.noise[0] == pytest.approx(6.0 * math.exp(math.log(1.5) * (1 / 6 - 2.570582 / 6)), rel=1e-6)
    assert six.noise[1] == pytest.approx(9.0)  # the range reaches further than Student's interval
    assert quantile(np.column_stack([taken, [30.0, 20.0, 10.0]]), 0.5).ci == (2.0, 20.0)
    assert quantile(np.sort(np.random.default_rng(0).random((1, 71))), 0.95).ci is None
    assert quantile(np.sort(np.random.default_rng(0).random((1, 72))), 0.95).ci is not None


def test_it_is_what_a_round_is_like_where_each_round_is_slow_at_another_query() -> None:
    """Of 100 queries 10 take 9 ms, in every round others: no query by itself is slow, and every round is."""
    rounds = [np.roll(np.r_[np.full(10, 9.0), np.full(90, 1.0)], 30 * at) for at in range(3)]
    found = quantile(np.array(rounds), 0.95)
    assert (found.value, found.noise) == (9.0, pytest.approx((9.0, 9.0)))


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_it_lies_within_its_noise_and_its_interval(share: float) -> None:
    rng = np.random.default_rng(11)
    for rounds in [3, 4, 5] * 10:
        found = quantile(rng.exponential(size=(rounds, 80)), share)
        assert found.ci is not None
        assert found.noise is not None
        assert found.noise[0] <= found.value <= found.noise[1]
        assert found.ci[0] <= found.value <= found.ci[1]


@pytest.mark.parametrize("rounds", [1, 3, 4])
@pytest.mark.parametrize(("share", "n"), [(0.5, 25), (0.5, 48), (0.95, 100), (0.95, 225)])
def test_intervals_hold_the_quantile_as_often_as_they_say(share: float, n: int, rounds: int) -> None:
    """Of a skewed distribution, 2000 times: at least 95 of 100, less what chance takes off.

    What a query takes is its own time and that of the round alike: a sum of two exponential times, whose share below x
    is 1 - (1 + x) exp(-x).
    """
    rng = np.random.default_rng(7)
    truth = float(gammaincinv(2, share))
    held = 0
    for _ in range(2000):
        ci = quantile(rng.exponential(size=(1, n)) + rng.exponential(size=(rounds, n)), share).ci
        assert ci is not None
        held += ci[0] <= truth <= ci[1]
    assert held / 2000 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 2000)


def test_throughput_is_queries_by_time() -> None:
    clock = Time()
    assert throughput(clock.search, ["q0"] * 4, concurrency=1, clock=clock) == pytest.approx(4 / 0.046)


def test_a_job_measures_all_with_the_same_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes 5 ms, 6 ms, ... a call, and refuses one query: cold first, then warm-up, then rounds."""
    clock, module = Time(), types.ModuleType("slow_engine")

    def search(query: str, k: int) -> list[str]:
        if query == "?":
            raise QueryRefusedError("it asks nothing")
        clock.now += (5 + len(clock.asked)) / 1000
        clock.asked.append(query)
        return ["d1", "d2"][:k]

    vars(module)["search"] = search
    monkeypatch.setitem(sys.modules, "slow_engine", module)
    (tmp_path / "slow_engine.py").write_text("search = None")
    monkeypatch.syspath_prepend(tmp_path)
    module.__spec__ = types.SimpleNamespace(origin=str(tmp_path / "slow_engine.py"))  # type: ignore[assignment]
    plan = Plan.of(made.write(tmp_path) | {"control": {"engine": "function", "search": "slow_engine:search"}})
    (part,) = (one.part for one in plan.configurations)
    job = {name: getattr(plan, name) for name in ("documents", "queries", "depth", "seed")}
    job |= {"build_seconds": 60, "query_seconds": 60}
    work(job | {"part": asdict(part), "rounds": 2, "warm_up": 1, "concurrency": 0}, tmp_path, clock)
    told = json.loads((tmp_path / COSTS).read_text())
    assert told["cold_ms"] == pytest.approx([5.0, 6.0, 7.0, 0.0])
    assert told["refused"] == {"q4": [["function", "it asks nothing"]]}
    assert told["timed"] == ["q1", "q2", "q3"]
    assert sorted(taken for one in told["rounds_ms"] for taken in one) == pytest.approx(
        [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]
    )
    assert told["costs"] == dict.fromkeys(
        ("index_seconds", "index_cpu_seconds", "index_joules", "peak_mb", "index_mb"), None
    )
    costs = latency_of(told)
    assert costs["cold_ms"] == pytest.approx(5.5)
    assert costs["p50_ms_noise"] is None  # two rounds do not tell how much rounds vary
    assert costs["p50_ms"] == pytest.approx(11.5)
    assert costs["p50_ms_ci"] is costs["p95_ms_ci"] is None


def test_what_cannot_be_measured_is_unknown_and_never_0() -> None:
    assert [joules_of(said) for said in (b"0.0", b"null", b"", None, b"3.25")] == [None, None, None, None, 3.25]
    assert machine()["cores"] >= 1


@pytest.mark.parametrize(("said", "joules"), [(b"7.5", 7.5), (b"null", None), (None, None)])
def test_energy_is_what_the_tracker_says(
    said: bytes | None, joules: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tirex-tracker 0.2.24 gives it: on a machine without counters the text null."""
    tracker = types.ModuleType("tirex_tracker")

    @contextmanager
    def tracking(measures: list[str]) -> Iterator[dict[str, Any]]:
        yield {} if said is None else {measures[0]: types.SimpleNamespace(value=said)}

    vars(tracker).update(tracking=tracking, Measure=types.SimpleNamespace(CPU_ENERGY_SYSTEM_JOULES="joules"))
    monkeypatch.setitem(sys.modules, "tirex_tracker", tracker)
    with energy() as used:
        pass
    assert used.joules == joules
    monkeypatch.setitem(sys.modules, "tirex_tracker", None)
    with energy() as unknown:
        pass
    assert unknown.joules is None
