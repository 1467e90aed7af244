"""A simulated log through the reader, the maker and the metrics: every number is the truth, damaged or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from judged.online import online_metrics
from judged.online.simulation import (
    Arm,
    Bots,
    Broken,
    OnThePage,
    SimulatedLog,
    SimulationPlan,
    Users,
    Visits,
    simulate,
)

if TYPE_CHECKING:
    from judged.online import InteractionLog

SOUND = SimulationPlan(
    arms=(Arm("control", "a", 1.0, 0.6), Arm("treatment", "b", 0.3, 0.4)),
    users=Users(number=120),
    visits=Visits(next_page=0.2, churn=0.1),
    page=OnThePage(filtered=0.1, copy=0.1, heartbeat=20.0),
    applications={"primary-search": 0.7, "type-ahead": 0.3},
)
HEALED = replace(
    SOUND,
    bots=Bots(rate=0.02),
    broken=Broken(duplicated_events=0.03, duplicated_queries=0.05, facet_requests=0.2, zero_based="type-ahead"),
)
UNLOGGED = {"SatisfiedPages"}  # no log shows what satisfied
RULES = {
    "facet-request": "facet_requests",
    "repeated-query-id": "duplicated_queries",
    "duplicate-event": "duplicated_events",
    "mixed-rank-base": "zero_based_ranks",
}


@pytest.fixture(scope="module", params=[SOUND, HEALED], ids=["sound", "healed"])
def both(request: pytest.FixtureRequest) -> tuple[SimulatedLog, InteractionLog]:
    made = simulate(request.param, 5)
    log = made.log()
    return made, log


def test_what_is_shown_can_still_be_read(both: tuple[SimulatedLog, InteractionLog]) -> None:
    _, log = both
    assert len(log.shown.to_arrow()) == sum(log.serp.to_arrow()["n_shown"].to_pylist())


def test_metrics_are_the_truth(both: tuple[SimulatedLog, InteractionLog]) -> None:
    """What was broken here can be put right without a loss: so every sum must be exact."""
    simulated, log = both
    truth = simulated.truth
    scores = online_metrics(log, sorted(set(truth.ratios) - UNLOGGED))
    assert not scores.refused
    for one in scores.estimates:
        wanted = truth.ratios[one.metric.name]
        assert one.denominator == wanted.denominator, one.metric
        assert one.numerator == pytest.approx(wanted.numerator, rel=1e-12), one.metric
    for one in scores.ranks:
        assert one.rank is not None
        assert (one.numerator, one.denominator) == (
            truth.ctr_by_rank[one.rank - 1].numerator,
            truth.ctr_by_rank[one.rank - 1].denominator,
        )
    assert {name: dict(scores.counts)[name] for name in truth.counts} == truth.counts


def test_findings_count_the_damage(both: tuple[SimulatedLog, InteractionLog]) -> None:
    simulated, log = both
    found = {one.rule: one.rows for one in log.findings}
    broken = simulated.truth.broken
    assert found.pop("bot", 0) == simulated.truth.bot_queries - _odd_rows_of_bots(simulated)
    assert {rule: found.get(rule, 0) for rule in RULES} == {rule: broken[name] for rule, name in RULES.items()}
    assert set(found) == {rule for rule, name in RULES.items() if broken[name]}


def _odd_rows_of_bots(simulated: SimulatedLog) -> int:
    """Rows of bots that another rule leaves out first: requests for facets, and copies."""
    rows = [
        one["query_id"]
        for one in simulated.queries.select(["query_id", "client_id"]).to_pylist()
        if one["client_id"] in simulated.truth.bots
    ]
    return len(rows) - len(set(rows))
