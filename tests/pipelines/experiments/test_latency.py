"""Latency: exact values with a simulated clock, and the coverage of intervals."""

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
from judged.pipelines.experiments.limits import energy, machine, measure_rounds, parse_joules, quantile, throughput
from judged.pipelines.experiments.results import latency_costs
from judged.pipelines.experiments.worker import COSTS, run_job
from pipelines.experiments import small_plan


class SimulatedClock:
    """A clock that advances only during a search."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queries: list[str] = []

    def __call__(self) -> float:
        return self.now

    def search(self, query: str) -> None:
        """Take 10 ms for q0, 20 ms for q1, ...; each repetition takes 1 ms more."""
        self.now += (10 * (int(query[1:]) + 1) + Counter(self.queries)[query]) / 1000
        self.queries.append(query)


def test_every_round_has_every_query_in_random_order() -> None:
    clock, queries = SimulatedClock(), [f"q{i}" for i in range(30)]
    milliseconds = measure_rounds(clock.search, queries, rounds=3, warm_up=0, seed=1, clock=clock)
    expected = [[10 * (i + 1) + row for i in range(30)] for row in range(3)]
    np.testing.assert_allclose(milliseconds, expected, rtol=0, atol=1e-9)
    orders = [clock.queries[30 * row : 30 * (row + 1)] for row in range(3)]
    assert all(sorted(order) == sorted(queries) for order in orders)
    assert len({tuple(order) for order in [*orders, queries]}) == 4
    repeated = SimulatedClock()
    measure_rounds(repeated.search, queries, rounds=3, warm_up=0, seed=1, clock=repeated)
    assert repeated.queries == clock.queries


def test_warm_up_queries_are_not_measured() -> None:
    clock = SimulatedClock()
    milliseconds = measure_rounds(clock.search, ["q0", "q1"], rounds=1, warm_up=2, seed=0, clock=clock)
    assert sorted(clock.queries[:2]) == ["q0", "q1"]
    np.testing.assert_allclose(milliseconds, [[11.0, 21.0]], rtol=0, atol=1e-9)


def test_quantiles_by_hand() -> None:
    """Medians of the rounds are 5, 6, and 9, over five queries; with six, the ends of the interval are medians."""
    latencies = np.array([2.0, 4.0, 6.0, 8.0, 10.0])
    milliseconds = np.array([latencies - 1, latencies, latencies + 3])
    estimate = quantile(milliseconds, 0.5)
    assert (estimate.value, estimate.ci) == (6.0, None)  # five queries: coverage 1 - 2/32 is below 0.95
    logs = np.log([5.0, 6.0, 9.0])
    half_width = 4.302653 * logs.std(ddof=1) / math.sqrt(3)  # Student's quantile with two degrees of freedom
    assert estimate.noise == pytest.approx(
        (math.exp(logs.mean() - half_width), math.exp(logs.mean() + half_width)), rel=1e-6
    )
    assert quantile(milliseconds[:2], 0.5).noise is None
    assert quantile(np.zeros((3, 6)), 0.5).noise == (0.0, 0.0)  # no logarithm of 0, so the range
    estimate_of_six = quantile(np.outer([1.0, 1.0, 1.0, 1.0, 1.0, 1.5], latencies), 0.5)
    assert estimate_of_six.noise is not None
    assert estimate_of_six.noise[0] == pytest.approx(6.0 * math.exp(math.log(1.5) * (1 / 6 - 2.570582 / 6)), rel=1e-6)
    assert estimate_of_six.noise[1] == pytest.approx(9.0)  # the range exceeds Student's interval
    assert quantile(np.column_stack([milliseconds, [30.0, 20.0, 10.0]]), 0.5).ci == (2.0, 20.0)
    assert quantile(np.sort(np.random.default_rng(0).random((1, 71))), 0.95).ci is None
    assert quantile(np.sort(np.random.default_rng(0).random((1, 72))), 0.95).ci is not None


def test_quantiles_describe_single_rounds() -> None:
    """In each round, other 10 of 100 queries take 9 ms. No query is always slow, but every round is."""
    rounds = [np.roll(np.r_[np.full(10, 9.0), np.full(90, 1.0)], 30 * round_index) for round_index in range(3)]
    estimate = quantile(np.array(rounds), 0.95)
    assert (estimate.value, estimate.noise) == (9.0, pytest.approx((9.0, 9.0)))


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_estimate_is_within_its_noise_and_its_interval(share: float) -> None:
    rng = np.random.default_rng(11)
    for rounds in [3, 4, 5] * 10:
        estimate = quantile(rng.exponential(size=(rounds, 80)), share)
        assert estimate.ci is not None
        assert estimate.noise is not None
        assert estimate.noise[0] <= estimate.value <= estimate.noise[1]
        assert estimate.ci[0] <= estimate.value <= estimate.ci[1]


@pytest.mark.parametrize("rounds", [1, 3, 4])
@pytest.mark.parametrize(("share", "n"), [(0.5, 25), (0.5, 48), (0.95, 100), (0.95, 225)])
def test_intervals_have_their_coverage(share: float, n: int, rounds: int) -> None:
    """Coverage of a skewed distribution in 2000 samples is at least 95%, less three standard errors.

    A latency is the sum of two exponential times, one of the query and one of the round: P(X <= x) is 1 - (1 + x)
    exp(-x).
    """
    rng = np.random.default_rng(7)
    truth = float(gammaincinv(2, share))
    covered = 0
    for _ in range(2000):
        ci = quantile(rng.exponential(size=(1, n)) + rng.exponential(size=(rounds, n)), share).ci
        assert ci is not None
        covered += ci[0] <= truth <= ci[1]
    assert covered / 2000 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 2000)


def test_throughput_is_queries_per_second() -> None:
    clock = SimulatedClock()
    assert throughput(clock.search, ["q0"] * 4, concurrency=1, clock=clock) == pytest.approx(4 / 0.046)


def test_all_times_of_a_job_use_the_same_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine takes 5 ms, 6 ms, ... per call and rejects one query. Order: cold, warm-up, rounds."""
    clock, module = SimulatedClock(), types.ModuleType("slow_engine")

    def search(query: str, k: int) -> list[str]:
        if query == "?":
            raise QueryRefusedError("it asks nothing")
        clock.now += (5 + len(clock.queries)) / 1000
        clock.queries.append(query)
        return ["d1", "d2"][:k]

    vars(module)["search"] = search
    monkeypatch.setitem(sys.modules, "slow_engine", module)
    (tmp_path / "slow_engine.py").write_text("search = None")
    monkeypatch.syspath_prepend(tmp_path)
    module.__spec__ = types.SimpleNamespace(origin=str(tmp_path / "slow_engine.py"))  # type: ignore[assignment]
    plan = Plan.of(small_plan.write(tmp_path) | {"control": {"engine": "function", "search": "slow_engine:search"}})
    (node,) = (configuration.node for configuration in plan.configurations)
    job = {name: getattr(plan, name) for name in ("documents", "queries", "depth", "seed")}
    job |= {"build_seconds": 60, "query_seconds": 60}
    run_job(job | {"part": asdict(node), "rounds": 2, "warm_up": 1, "concurrency": 0}, tmp_path, clock)
    measurements = json.loads((tmp_path / COSTS).read_text())
    assert measurements["cold_ms"] == pytest.approx([5.0, 6.0, 7.0, 0.0])
    assert measurements["refused"] == {"q4": [["function", "it asks nothing"]]}
    assert measurements["timed"] == ["q1", "q2", "q3"]
    assert sorted(milliseconds for row in measurements["rounds_ms"] for milliseconds in row) == pytest.approx(
        [9.0, 10.0, 11.0, 12.0, 13.0, 14.0]
    )
    assert measurements["costs"] == dict.fromkeys(
        ("index_seconds", "index_cpu_seconds", "index_joules", "peak_mb", "index_mb"), None
    )
    costs = latency_costs(measurements)
    assert costs["cold_ms"] == pytest.approx(5.5)
    assert costs["p50_ms_noise"] is None  # two rounds are too few
    assert costs["p50_ms"] == pytest.approx(11.5)
    assert costs["p50_ms_ci"] is costs["p95_ms_ci"] is None


def test_unmeasured_values_are_none_and_not_0() -> None:
    assert [parse_joules(value) for value in (b"0.0", b"null", b"", None, b"3.25")] == [None, None, None, None, 3.25]
    assert machine()["cores"] >= 1


@pytest.mark.parametrize(("value", "joules"), [(b"7.5", 7.5), (b"null", None), (None, None)])
def test_energy_is_read_from_the_tracker(
    value: bytes | None, joules: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of tirex-tracker 0.2.24. On a machine without counters, the text is null."""
    tracker = types.ModuleType("tirex_tracker")

    @contextmanager
    def tracking(measures: list[str]) -> Iterator[dict[str, Any]]:
        yield {} if value is None else {measures[0]: types.SimpleNamespace(value=value)}

    vars(tracker).update(tracking=tracking, Measure=types.SimpleNamespace(CPU_ENERGY_SYSTEM_JOULES="joules"))
    monkeypatch.setitem(sys.modules, "tirex_tracker", tracker)
    with energy() as measured:
        pass
    assert measured.joules == joules
    monkeypatch.setitem(sys.modules, "tirex_tracker", None)
    with energy() as unknown:
        pass
    assert unknown.joules is None
