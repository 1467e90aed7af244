"""Simulated logs read and prepared like any log: all metrics equal the true values, with and without damage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from judged.online import online_metrics
from judged.online.simulation import (
    Bots,
    LogDamage,
    PageBehavior,
    SimulatedArm,
    SimulatedLog,
    SimulationPlan,
    Users,
    Visits,
    simulate,
)

if TYPE_CHECKING:
    from judged.online import InteractionLog

UNDAMAGED = SimulationPlan(
    arms=(SimulatedArm("control", "a", 1.0, 0.6), SimulatedArm("treatment", "b", 0.3, 0.4)),
    users=Users(number=120),
    visits=Visits(next_page=0.2, churn=0.1),
    page=PageBehavior(filtered=0.1, copy=0.1, heartbeat=20.0),
    applications={"primary-search": 0.7, "type-ahead": 0.3},
)
REPAIRABLE = replace(
    UNDAMAGED,
    bots=Bots(rate=0.02),
    damage=LogDamage(duplicated_events=0.03, duplicated_queries=0.05, facet_requests=0.2, zero_based="type-ahead"),
)
UNLOGGED = {"SatisfiedPages"}  # satisfaction is not observable
RULES = {
    "facet-request": "facet_requests",
    "repeated-query-id": "duplicated_queries",
    "duplicate-event": "duplicated_events",
    "mixed-rank-base": "zero_based_ranks",
}


@pytest.fixture(scope="module", params=[UNDAMAGED, REPAIRABLE], ids=["undamaged", "repairable"])
def logs(request: pytest.FixtureRequest) -> tuple[SimulatedLog, InteractionLog]:
    simulated = simulate(request.param, 5)
    log = simulated.log()
    return simulated, log


def test_shown_results_can_be_read_lazily(logs: tuple[SimulatedLog, InteractionLog]) -> None:
    _, log = logs
    assert len(log.shown.to_arrow()) == sum(log.serp.to_arrow()["n_shown"].to_pylist())


def test_metrics_equal_the_true_values(logs: tuple[SimulatedLog, InteractionLog]) -> None:
    """All damage in this test can be repaired without loss, so every sum must be exact."""
    simulated, log = logs
    truth = simulated.truth
    scores = online_metrics(log, sorted(set(truth.ratios) - UNLOGGED))
    assert not scores.refused
    for estimate in scores.estimates:
        expected = truth.ratios[estimate.metric.name]
        assert estimate.denominator == expected.denominator, estimate.metric
        assert estimate.numerator == pytest.approx(expected.numerator, rel=1e-12), estimate.metric
    for estimate in scores.ranks:
        assert estimate.rank is not None
        expected = truth.ctr_by_rank[estimate.rank - 1]
        assert (estimate.numerator, estimate.denominator) == (expected.numerator, expected.denominator)
    assert {name: dict(scores.counts)[name] for name in truth.counts} == truth.counts


def test_findings_count_the_damage(logs: tuple[SimulatedLog, InteractionLog]) -> None:
    simulated, log = logs
    counts = {finding.rule: finding.rows for finding in log.findings}
    damage = simulated.truth.damage_counts
    assert counts.pop("bot", 0) == simulated.truth.bot_queries - _otherwise_excluded_bot_rows(simulated)
    assert {rule: counts.get(rule, 0) for rule in RULES} == {rule: damage[name] for rule, name in RULES.items()}
    assert set(counts) == {rule for rule, name in RULES.items() if damage[name]}


def _otherwise_excluded_bot_rows(simulated: SimulatedLog) -> int:
    """Count the rows of bots that another rule excludes first: facet requests and copies."""
    queries = simulated.queries.select(["query_id", "client_id"]).to_pylist()
    rows = [query["query_id"] for query in queries if query["client_id"] in simulated.truth.bots]
    return len(rows) - len(set(rows))
