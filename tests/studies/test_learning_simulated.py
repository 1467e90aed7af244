"""Error rates and power of learning effects, group effects, and strategies, in simulated studies of 24 people."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from judged.studies.effects import group_effects, learning_effects, system_effects
from judged.studies.outcomes import Outcome, TrialValue, find_outcome, outcomes
from studies_made import crossed, sample_values
from studies_simulated import simulate

STUDIES, ALPHA = 200, 0.05
MOST = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / STUDIES)  # two Monte Carlo errors: 8.1%
BOTH, PLAIN, WEIGHTS, LEARNS_FASTER = ("", ""), ("plain", ""), ("weights", ""), ("weights", "plain")


def results(*names: str, **effects: float) -> dict[Any, Any]:
    """Return the share of significant results and the mean estimate over simulated studies."""
    rng, rows = np.random.default_rng(53), defaultdict[Any, list[tuple[float, float]]](list)
    for _ in range(STUDIES):
        records = simulate(rng, **effects)
        groups = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
        for outcome in (find_outcome(outcomes(records), name) for name in names):
            for row in learning_effects(outcome, by="variant"):
                rows[outcome.name, "learning", (row.system, row.minus)].append((row.p <= ALPHA, row.change))
            for row in group_effects(outcome, groups, by="variant"):
                rows[outcome.name, "group", (row.system, row.minus)].append((row.p <= ALPHA, row.difference))
            # The difference of conditions in other outcomes has its own simulations.
            for row in system_effects(outcome, by="variant") if outcome.name == "strategies" else ():
                rows[outcome.name, "condition", (row.second, row.first)].append((row.p <= ALPHA, row.difference))
    return {key: tuple(np.mean(values, axis=0).tolist()) for key, values in rows.items()}


def test_without_effects_few_results_are_significant() -> None:
    """Although practice, conditions, and topics change the times of single people."""
    found = results("minutes", "saved", "strategies")
    assert len(found) == 2 * (4 + 2) + 3
    assert {key: rejected for key, (rejected, _) in found.items() if rejected > MOST} == {}
    assert found["strategies", "condition", LEARNS_FASTER][1] == pytest.approx(0, abs=0.05)


def test_a_learning_effect_is_found() -> None:
    """0.2 standard deviations of single trials faster per task, and 0.3 more log odds to save."""
    minutes, saved = results("minutes", learning=0.2), results("saved", learning=0.3)
    assert minutes["minutes", "learning", BOTH][0] >= 0.8
    assert minutes["minutes", "learning", BOTH][1] == pytest.approx(-0.2, abs=0.02)
    assert saved["saved", "learning", BOTH][0] >= 0.8
    assert minutes["minutes", "learning", LEARNS_FASTER][0] <= MOST


def test_learning_with_weights_alone_is_found() -> None:
    found = results("minutes", faster=0.35)
    assert found["minutes", "learning", LEARNS_FASTER][0] >= 0.8
    assert found["minutes", "learning", LEARNS_FASTER][1] == pytest.approx(-0.35, abs=0.03)
    assert found["minutes", "learning", WEIGHTS][0] >= 0.8
    assert found["minutes", "learning", PLAIN][0] <= MOST


def test_the_advantage_of_experts_with_weights_and_more_strategies_are_found() -> None:
    """2 standard deviations of single trials, and a term that is raised in half of the trials."""
    found = results("minutes", "strategies", interaction=2.0, raised=0.5)
    rejected, difference = found["minutes", "group", LEARNS_FASTER]
    assert rejected >= 0.8
    assert difference == pytest.approx(2.0, abs=0.15)  # novices less experts, of minutes
    assert found["minutes", "learning", BOTH][0] <= MOST
    assert found["strategies", "condition", LEARNS_FASTER][0] >= 0.8


@pytest.mark.parametrize("people", [10, 12])
def test_arms_of_different_people_need_six_each(people: int) -> None:
    """Each person has one system, so both the difference in learning and groups are between people."""
    where = crossed(people, 6, between=True)
    names = ("person", "position", "topic", "system")
    values = sample_values(np.random.default_rng(2), where).tolist()
    rows = zip(*(where[name].tolist() for name in names), values, strict=True)
    outcome = Outcome("o", "more", tuple(TrialValue(f"p{p}", k + 1, f"t{t}", "ab"[s], "", v) for p, k, t, s, v in rows))
    learning = {(row.system, row.minus): row.p for row in learning_effects(outcome)}
    assert math.isnan(learning["b", "a"]) == (people < 12)
    assert not math.isnan(learning["", ""])
    groups = {trial.participant: trial.system.upper() for trial in outcome.values}
    assert group_effects(outcome, groups) == ()  # groups and systems cannot be separated
    thirds = {f"p{person}": "xyx"[person % 3] for person in range(people)}
    main, *_ = group_effects(outcome, thirds)
    assert (main.first, main.second, main.people) == ("x", "y", people)
    assert math.isnan(main.p)
    assert main.reason


@pytest.mark.parametrize("fewest", [4, 6])
def test_an_interaction_needs_six_people_in_each_group(fewest: int) -> None:
    where = crossed(12, 6)
    names = ("person", "position", "topic", "system")
    values = sample_values(np.random.default_rng(3), where).tolist()
    rows = zip(*(where[name].tolist() for name in names), values, strict=True)
    outcome = Outcome("o", "more", tuple(TrialValue(f"p{p}", k + 1, f"t{t}", "ab"[s], "", v) for p, k, t, s, v in rows))
    groups = {f"p{person}": "xy"[person < fewest] for person in range(12)}
    _, interaction = group_effects(outcome, groups)
    assert (interaction.system, interaction.minus) == ("b", "a")
    assert math.isnan(interaction.p) == (fewest < 6)
