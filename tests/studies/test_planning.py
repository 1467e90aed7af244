"""Power of a study: closed form against simulated studies, and what people cannot do where topics are few."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.stats.sample_size import power, topics_needed_t
from judged.studies.assignment import assignments
from judged.studies.design import Group, first_design, parse_design
from judged.studies.planning import Contrast, Spreads, plan_study
from studies.study_designs import make_design

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.studies.design import Design

STUDIES = 2000


def columns(codes: list[Any]) -> Floats:
    """Give a column of zeros and ones for each value."""
    values = sorted(set(codes))
    return np.array([[float(code == value) for value in values] for code in codes])


def basis(*spreads: Floats) -> Floats:
    left, sizes, _ = np.linalg.svd(np.hstack(spreads), full_matrices=False)
    return left[:, sizes > 1e-9 * sizes[0]]


def simulated_power(design: Design, difference: float, spreads: Spreads, seed: int) -> float:
    """Simulate studies, and test the last of the conditions against the first: how often is p below 0.05?

    Least squares with people and topics; the variance over people and over topics less that of trials.
    """
    rows = assignments(design).to_pylist()
    used = [(row["system"], row["variant"]) for row in rows]
    person, topic = columns([row["participant"] for row in rows]), columns([row["query_id"] for row in rows])
    system = columns(used)
    between = design.variants == "between"
    nuisance = basis(topic) if between else basis(person, topic)
    free = system - nuisance @ (nuisance.T @ system)
    inverse = np.linalg.pinv(free, rcond=1e-9)
    weights = inverse[-1] - inverse[0]
    model_basis = basis(nuisance, system)

    random, n = np.random.default_rng(seed), len(rows)
    both = [person[:, :, None] * system[:, None, :], topic[:, :, None] * system[:, None, :]]
    by_system = [record.reshape(n, -1) for record in both]
    made_of = (
        (person, spreads.people), (by_system[0], spreads.people_by_system), (by_system[1], spreads.topics_by_system),
        (topic, 3.0), (np.eye(n), spreads.trials),
    )  # fmt: skip
    values = system[:, -1:] * difference + sum(
        members @ random.normal(0.0, sd, (members.shape[1], STUDIES)) for members, sd in made_of
    )

    left = values - model_basis @ (model_basis.T @ values)
    alone = basis(*by_system)
    beyond = values - alone @ (alone.T @ values)
    of_trials = (beyond**2).sum(axis=0) / (n - alone.shape[1]) * (weights @ weights), n - alone.shape[1]
    variances = [(-of_trials[0], of_trials[1])]
    for members in (person, topic):
        shares = members.T * weights
        is_correlated = between and members is person
        errors = (
            shares @ (members - model_basis @ (model_basis.T @ members))
            if is_correlated
            else shares - shares @ model_basis @ model_basis.T
        )
        nominal = float(((shares @ members) ** 2).sum()) if is_correlated else float(weights @ weights)
        spread = errors @ errors.T
        factor, df = nominal / np.trace(spread), np.trace(spread) ** 2 / (spread**2).sum()
        variances.append((((shares @ left) ** 2).sum(axis=0) * factor, df))
    variance = np.maximum(sum(record for record, _ in variances), np.maximum(variances[1][0], variances[2][0]))
    freedom = variance**2 / sum(record**2 / df for record, df in variances)
    p = 2 * stats.t.sf(np.abs(weights @ values) / np.sqrt(variance), freedom)
    return float((p < 0.05).mean())


@pytest.mark.parametrize(
    ("people", "topics", "systems", "spreads", "difference"),
    [
        (12, 6, 2, Spreads(2.0, 0.5, 0.3, 1.0), 0.7),
        (24, 8, 2, Spreads(1.0, 0.2, 0.4, 1.0), 0.5),
        (36, 6, 3, Spreads(1.0, 0.4, 0.1, 1.0), 0.6),
        (48, 8, 2, Spreads(1.0, 0.2, 0.6, 1.0), 0.7),
    ],
)
def test_power_of_people_who_use_every_system(
    people: int, topics: int, systems: int, spreads: Spreads, difference: float
) -> None:
    design = make_design(systems, topics, groups=(Group("", people),))
    closed = Contrast(systems).power(difference, spreads, people, topics)
    assert simulated_power(design, difference, spreads, people) == pytest.approx(closed, abs=0.06)


def test_power_of_people_who_have_one_variant_each() -> None:
    spreads = Spreads(0.8, 0.0, 0.2, 1.0)
    design = make_design(1, 6, interfaces=2, variants="between", groups=(Group("", 40),))
    closed = Contrast(2, between=True).power(0.8, spreads, 40, 6)
    assert simulated_power(design, 0.8, spreads, 3) == pytest.approx(closed, abs=0.06)


def test_more_people_leave_what_topics_add() -> None:
    """With ever more people the power becomes that of a paired t-test over topics, and not more."""
    spreads = Spreads(0.0, 0.5, 0.4, 1.0)
    rising = [Contrast().power(0.5, spreads, people, 6) for people in (4, 12, 48, 200, 2000, 200_000)]
    assert rising == sorted(rising)
    assert Contrast.max_power(0.5, spreads, 6) == power(0.5, math.sqrt(2) * 0.4, 6)
    assert rising[-1] == pytest.approx(Contrast.max_power(0.5, spreads, 6), abs=0.02)
    assert Contrast().people_needed(0.5, spreads, 6, alpha=0.05, power=0.8) is None
    plan = plan_study(parse_design(first_design()), 0.5, spreads)
    assert plan.topics_needed == topics_needed_t(0.5, math.sqrt(2) * 0.4)
    needed = dict(zip(plan.to_arrow()["n"].to_pylist(), plan.to_arrow()["people"].to_pylist(), strict=True))
    assert needed[6] is None
    assert needed[18] is not None
    assert needed[24] < needed[18]


def test_people_needed_is_the_least_multiple() -> None:
    spreads = Spreads(0.0, 0.3, 0.1, 1.0)
    contrast = Contrast(2)
    needed = contrast.people_needed(0.5, spreads, 8, alpha=0.05, power=0.8, step=4)
    assert needed is not None
    assert needed % 4 == 0
    assert contrast.power(0.5, spreads, needed - 4, 8) < 0.8 <= contrast.power(0.5, spreads, needed, 8)


def test_levels_of_people_matter_where_they_are_compared_with_each_other() -> None:
    similar, different = Spreads(0.0, 0.2, 0.1, 1.0), Spreads(2.0, 0.2, 0.1, 1.0)
    assert Contrast(2).variances(similar, 20, 6) == Contrast(2).variances(different, 20, 6)
    assert Contrast(2).variances(similar, 20, 6) == pytest.approx((2 * 0.04 / 20, 2 * 0.01 / 6, 4 / 120))
    # two groups of ten: each mean has a variance of (4 + 0.04) / 10
    assert Contrast(2, between=True).variances(different, 20, 6)[0] == pytest.approx(2 * 4.04 / 10)


def test_a_design_says_what_is_compared() -> None:
    spreads = Spreads(trials=1.0)
    design = parse_design(first_design())
    plan = plan_study(design, -0.5, spreads)
    assert (plan.difference, plan.people, plan.n, plan.step) == (0.5, 24, 6, 4)
    between = make_design(1, 6, interfaces=3, variants="between")
    assert plan_study(between, 0.5, spreads).contrast == Contrast(3, between=True)
    assert plan_study(replace(design, groups=(Group("", 8),)), 0.5, spreads).step == 2
    assert "More people" not in plan.text()
    for wrong in ({"difference": 0.0}, {"alpha": 0.0}, {"power": 0.01}):
        with pytest.raises(InputError):
            plan_study(design, **{"difference": 0.5, "spreads": spreads, **wrong})
    with pytest.raises(InputError, match="people by system"):
        Spreads(people_by_system=-1)


def plain_power(n: int, between: bool, difference: float, spreads: Spreads, people: int, topics: int) -> float:
    """Average the power over the middles of 24 equal parts of both estimated variances, with SciPy's distributions."""
    of_people = 2 * spreads.people_by_system**2 / people
    if between:
        of_people = 2 * n * (spreads.people**2 + spreads.people_by_system**2) / people
    of_topics, of_trials = 2 * spreads.topics_by_system**2 / topics, 2 * n * spreads.trials**2 / (people * topics)
    df_people, df_topics = people - (n if between else 1), topics - 1
    df_trials = people * topics - (people if between else n * people) - n * (topics - 1)
    middles = (np.arange(24) + 0.5) / 24
    over_topics = (of_topics + of_trials) * stats.chi2.ppf(middles, df_topics) / df_topics
    true = stats.norm(difference, math.sqrt(of_people + of_topics + of_trials))
    powers = []
    for over_people in (of_people + of_trials) * stats.chi2.ppf(middles, df_people) / df_people:
        both, squares = over_people + over_topics, over_people**2 / df_people + over_topics**2 / df_topics
        if df_trials > 0:
            both, squares = both - of_trials, squares + of_trials**2 / df_trials
        variance = np.maximum(np.maximum(both, over_people), over_topics)
        limit = stats.t.ppf(0.975, variance**2 / squares) * np.sqrt(variance)
        powers.append(true.sf(limit) + true.cdf(-limit))
    return float(np.mean(powers))


@pytest.mark.parametrize(
    ("n", "between", "spreads", "people", "topics"),
    [
        (2, False, Spreads(3.0, 0.3, 0.2, 1.0), 8, 6),
        (3, False, Spreads(3.0, 0.1, 0.1, 2.0), 6, 7),
        (2, True, Spreads(0.5, 0.3, 0.2, 2.0), 14, 6),
        (6, False, Spreads(0.0, 0.3, 0.2, 1.0), 6, 6),  # no trials are left over
        (4, False, Spreads(0.0, 0.3, 0.2, 1.0), 7, 8),  # 56 - 28 - 28: none either
        (5, False, Spreads(0.0, 0.3, 0.2, 2.0), 8, 12),  # 96 - 40 - 55: one
    ],
)
def test_power_is_that_of_a_plain_program(n: int, between: bool, spreads: Spreads, people: int, topics: int) -> None:
    for difference in (0.4, 1.2, -1.2):
        expected = plain_power(n, between, difference, spreads, people, topics)
        assert Contrast(n, between).power(difference, spreads, people, topics) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("difference", "text"), [(5.0, "> 99%"), (0.5, None)])
def test_the_power_of_a_plan_is_written_in_percent(difference: float, text: str | None) -> None:
    design = parse_design(first_design())
    spreads = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)
    plan = plan_study(design, difference, spreads)
    power = plan_power(design, difference, spreads)
    assert (power > 0.99) == (text is not None)
    assert f"difference of {difference:g} is {text or f'{100 * power:.0f}%'} (" in plan.sentences[0]


def plan_power(design: Design, difference: float, spreads: Spreads) -> float:
    people = sum(group.participants for group in design.groups)
    return plain_power(len(design.conditions), False, difference, spreads, people, len(design.tasks))
