"""Effects of systems and of practice against a plain program: whole matrices, pseudo-inverses, SciPy's t."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.studies.crossed import CrossedEffect, TrialArrays
from studies_made import crossed, sample_values

if TYPE_CHECKING:
    from judged.results.types import Floats


class Expected(NamedTuple):
    """What the plain program says: estimate, weights, and variance with degrees of freedom of each kind."""

    estimate: float
    weights: Floats
    people: tuple[float, float]
    both: tuple[float, float]


def indicators(codes: Any) -> Floats:
    return (np.asarray(codes)[:, None] == np.unique(codes)) * 1.0


def plain(trials: TrialArrays, tested: Floats, fixed: Floats, contrast: Any, *, between: bool) -> Expected:
    """Fit everything with matrices of n x n.

    Errors of people, or topics, are taken as independent of trial to trial; in a design between people as one of each
    person. Each variance is that of the sums of residuals by person, or topic, divided by its bias.
    """
    y, n = trials.values, len(trials.values)
    person, topic = indicators(trials.person), indicators(trials.topic)
    levels = np.ones((n, 1)) if between else person
    model = np.hstack([tested, fixed, levels])
    full_contrast = np.zeros(model.shape[1])
    full_contrast[: tested.shape[1]] = contrast
    weights = full_contrast @ np.linalg.pinv(model)
    free = np.eye(n) - model @ np.linalg.pinv(model)
    residuals = free @ y

    def of(members: Floats, common: bool) -> tuple[float, float]:
        shares = members.T * weights
        truth = members @ members.T if common else np.eye(n)
        half = shares @ free @ (members if common else np.eye(n))
        covariance = half @ half.T
        wanted_trace = np.trace(shares @ truth @ shares.T)
        observed = ((shares @ residuals) ** 2).sum()
        return observed * wanted_trace / np.trace(covariance), np.trace(covariance) ** 2 / (covariance**2).sum()

    blocks = [topic, person, fixed, *(topic * column[:, None] for column in tested.T)]
    blocks += [person * column[:, None] for column in tested.T]
    alone = np.hstack(blocks)
    rank = np.linalg.matrix_rank(alone)
    beyond = y - alone @ (np.linalg.pinv(alone) @ y)
    trial = (beyond @ beyond / (n - rank) if n > rank else 0.0) * (weights @ weights), n - rank
    people, topics = of(person, between), of(topic, False)
    total = people[0] + topics[0] - trial[0]
    freedom = sum(row[0] ** 2 / row[1] for row in (people, topics, trial) if row[1] > 0)
    both = max((total, total**2 / freedom if total > 0 else 0.0), people, topics)
    return Expected(float(full_contrast @ np.linalg.pinv(model) @ y), weights, people, both)


def compare(effect: CrossedEffect, expected: Expected, level: float) -> None:
    assert effect.estimate == pytest.approx(expected.estimate)
    assert effect.weights == pytest.approx(expected.weights, abs=1e-9)
    # what is left beyond all else makes the estimate, as the values themselves do
    assert effect.weights @ effect.residuals == pytest.approx(expected.estimate)
    for spread, (variance, df) in ((effect.over_people, expected.people), (effect.over_both, expected.both)):
        assert (spread.insufficient, spread.error, spread.df) == (None, pytest.approx(math.sqrt(variance)),
                                                                  pytest.approx(df))  # fmt: skip
        values = stats.t(df, expected.estimate, math.sqrt(variance))
        assert spread.ci == pytest.approx(values.interval(level))
        assert spread.p == pytest.approx(2 * stats.t.sf(abs(expected.estimate) / math.sqrt(variance), df))


def trials_of(where: dict[str, Any], values: Floats, is_used: Any = slice(None)) -> TrialArrays:
    return TrialArrays(
        *(of[is_used] for of in (values, *(where[name] for name in ("system", "person", "topic", "position"))))
    )


@pytest.mark.parametrize(
    ("people", "topics", "systems", "between", "interaction", "missing", "level"),
    [
        (8, 6, 2, False, 0.5, 0.0, 0.95),
        (9, 6, 3, False, 1.0, 0.1, 0.9),
        (12, 8, 2, False, 0.0, 0.15, 0.95),
        (12, 6, 2, True, 0.5, 0.1, 0.95),
        (18, 6, 3, True, 1.0, 0.0, 0.8),
    ],
)
def test_differences(
    people: int, topics: int, systems: int, between: bool, interaction: float, missing: float, level: float
) -> None:
    rng, where = np.random.default_rng(people * topics), crossed(people, topics, systems, between=between)
    values = sample_values(rng, where, 0.6, interaction=interaction)
    trials = trials_of(where, values, rng.random(len(values)) >= missing)
    effects = trials.differences(level)
    assert list(effects) == [(row, other) for row in range(systems) for other in range(row + 1, systems)]
    fixed = np.hstack([indicators(trials.topic), indicators(trials.position)])
    for (first, second), effect in effects.items():
        contrast = np.zeros(systems)
        contrast[[first, second]] = -1, 1
        compare(effect, plain(trials, indicators(trials.system), fixed, contrast, between=between), level)
        assert effect.design == ("between" if between else "within")
        each = [len(set(trials.person[trials.system == row].tolist())) for row in (first, second)]
        # in a design within people those of a third system take part as well, as they tell topics and positions apart
        assert (effect.fewest_people, effect.topics) == (min(each) if between else people, topics)
        # and of a third system only where weights are not 0
        assert effect.people == (sum(each) if between and not missing else people)


@pytest.mark.parametrize(("systems", "missing", "level"), [(2, 0.0, 0.95), (1, 0.2, 0.9)])
def test_practice(systems: int, missing: float, level: float) -> None:
    rng, where = np.random.default_rng(7), crossed(8, 6, 2)
    values = sample_values(rng, where, 0.6)
    is_used = (rng.random(len(values)) >= missing) & (where["system"] < systems)
    trials = trials_of(where, values, is_used)
    effect = trials.learning(level)
    assert effect is not None
    fixed = np.hstack([indicators(trials.topic), indicators(trials.system)])
    position = trials.position[:, None] * 1.0
    expected = plain(trials, position, fixed, [1.0], between=False)
    compare(effect, expected, level)
    used = np.abs(expected.weights) > 1e-12  # with one system topics tell little of some people's practice
    people, topics = (len(set(codes[used].tolist())) for codes in (trials.person, trials.topic))
    assert (people, topics) == ((8, 6) if systems == 2 else (6, 6))
    assert (effect.design, effect.people, effect.fewest_people, effect.topics) == ("within", people, people, topics)
    # topics that stand at one position for everybody say nothing of practice
    fixed_places = TrialArrays(trials.values, trials.system, trials.person, trials.position, trials.position)
    assert fixed_places.learning() is None


def test_an_interval_is_asked_for_with_a_level_between_0_and_1() -> None:
    where = crossed(4, 4)
    trials = trials_of(where, sample_values(np.random.default_rng(1), where))
    for level in (0.0, 1.0, 95.0):
        with pytest.raises(InputError, match="level"):
            trials.differences(level)
        with pytest.raises(InputError, match="level"):
            trials.learning(level)


def test_differences_of_rounding_size_are_0_and_have_no_interval() -> None:
    """All values are a person's and a topic's: what is left is rounding, of some 1e-16."""
    where = crossed(8, 8)
    person, topic = where["person"] / 3, where["topic"] / 7
    effects = trials_of(where, 1e3 * (person + topic)).differences()[0, 1]
    assert effects.estimate == 0.0
    for spread in (effects.over_people, effects.over_both):
        assert spread.insufficient is not None
        assert spread.insufficient.code == "no-variance"
        assert math.isnan(spread.p)
        assert math.isnan(spread.error)
    # of values in the millions a difference of a hundred-thousandth is rounding as well
    large = trials_of(where, 1e6 * (person + topic) + 1e-5 * where["system"]).differences()[0, 1]
    assert large.estimate == 0.0
    # and so are differences of people, whose variance is below the square of that
    values = 1e-8 * np.array([1, -2, 3, 0, 2, -1, 4, -3])[where["person"]]
    people = trials_of(where, 1e3 * (person + topic) + values * where["system"]).differences()[0, 1].over_people
    assert people.insufficient is not None
    assert people.insufficient.code == "no-variance"
    # a difference of a millionth is none of rounding
    small = trials_of(where, person + topic + 1e-6 * where["system"]).differences()[0, 1]
    assert small.estimate == pytest.approx(1e-6, rel=1e-6)


def test_topics_that_do_not_differ_where_people_do() -> None:
    """Each of six people does each of six topics with both systems, which differ by what a person adds."""
    person, topic, system = (codes.ravel() for codes in np.meshgrid(range(6), range(6), range(2), indexing="ij"))
    values = np.array([1.0, 2.0, 4.0, 2.0, 0.0, 3.0])
    effects = TrialArrays(topic + values[person] * system, system, person, topic, np.zeros(72, int)).differences()[0, 1]
    assert effects.over_people.ci == pytest.approx(stats.ttest_1samp(values, 0.0).confidence_interval(0.95))
    assert reasons(effects) == [("", "", "person"), ("no-variance", "no-variance", "topic")]


def test_people_of_systems_that_more_and_fewer_used() -> None:
    where = crossed(18, 6, 3, between=True)
    trials = trials_of(where, sample_values(np.random.default_rng(1), where), ~np.isin(where["person"], [1, 2, 5, 8]))
    effects = trials.differences()
    assert {pair: (row.fewest_people, row.people) for pair, row in effects.items()} == {
        (0, 1): (5, 6 + 5), (0, 2): (3, 6 + 3), (1, 2): (3, 5 + 3),
    }  # fmt: skip
    assert [reasons(row)[0] for row in effects.values()] == [("", "few-units", "person")] * 3
    lacking = [row.over_people.no_verdict for row in effects.values()]
    assert [row and (row.observed, row.required) for row in lacking] == [(5, 6), (3, 6), (5, 6)]  # the first that lacks


def test_who_tried_one_topic_alone_has_no_part() -> None:
    where = crossed(6, 6)
    values = sample_values(np.random.default_rng(1), where)
    more = {"person": 6, "topic": 6, "position": 0, "system": 1}
    trials = trials_of({name: np.append(of, more[name]) for name, of in where.items()}, np.append(values, 99.0))
    effect, effect_without = trials.differences()[0, 1], trials_of(where, values).differences()[0, 1]
    assert (effect.people, effect.topics, effect.fewest_people) == (6, 6, 6)
    assert effect.estimate == pytest.approx(effect_without.estimate)
    assert effect.weights[-1] == pytest.approx(0.0, abs=1e-12)
    assert reasons(effect) == [("", "", "person")] * 2


def whole(people: int, topics: int, *, between: bool = False) -> CrossedEffect:
    where = crossed(people, topics, between=between)
    return trials_of(where, sample_values(np.random.default_rng(people), where)).differences()[0, 1]


def reasons(effect: CrossedEffect) -> list[tuple[str, str, str]]:
    """Give what is missing over people, and over both: for an interval, for a verdict, and of what unit."""
    return [
        (row.insufficient.code if row.insufficient else "", row.no_verdict.code if row.no_verdict else "", row.unit)
        for row in (effect.over_people, effect.over_both)
    ]


def test_which_unit_there_is_too_little_of() -> None:
    full, few, none = ("", "", "person"), ("", "few-units"), ("few-units", "few-units")
    assert reasons(whole(6, 6)) == [full, full]
    assert reasons(whole(5, 6)) == [(*few, "person")] * 2
    assert reasons(whole(6, 5)) == [full, (*few, "topic")]
    # of topics that lack an interval is said more than of people who lack a verdict
    assert reasons(whole(4, 2)) == [(*few, "person"), (*none, "topic")]
    assert reasons(whole(2, 5)) == [(*none, "person")] * 2
    assert reasons(whole(12, 6, between=True)) == [full, full]
    assert reasons(whole(10, 6, between=True)) == [(*few, "person")] * 2  # five with each system
    assert reasons(whole(4, 6, between=True)) == [(*none, "person")] * 2


@pytest.mark.parametrize(("pairs", "verdict"), [(6, True), (9, False)])
def test_five_effective_people_are_enough_for_a_verdict(pairs: int, verdict: bool) -> None:
    """Of six people one tried more topics with both systems: its weight is more, the effective number less than 6."""
    person = np.repeat(np.arange(6), [2 * pairs, 6, 6, 6, 6, 6])
    system, topic = np.tile([0, 1], len(person) // 2), np.zeros(len(person), int)
    topic = np.concatenate([np.repeat(np.arange(of), 2) for of in (pairs, 3, 3, 3, 3, 3)])
    values = np.random.default_rng(3).normal(size=len(person))
    effects = TrialArrays(values, system, person, topic, np.zeros(len(person), int)).differences()[0, 1]
    weight = np.bincount(person, np.abs(effects.weights))
    # pairs are worth the same each: 6, 3, 3, 3, 3, 3 of 21 count as 441 / 81 people, 9 and 3s of 24 as 576 / 126
    assert weight / weight.sum() == pytest.approx(np.bincount(person) / len(person))
    assert (effects.over_people.no_verdict is None) == verdict
    assert effects.over_people.insufficient is None
    if not verdict:
        assert effects.over_people.no_verdict is not None
        assert effects.over_people.no_verdict.observed == pytest.approx(24**2 / (9**2 + 5 * 3**2))


def test_one_person_and_one_topic_have_no_variance() -> None:
    trials = TrialArrays(np.array([1.0, 4.0, 2.0, 6.0]), np.array([0, 1, 0, 1]), np.zeros(4, int), np.zeros(4, int),
                    np.zeros(4, int))  # fmt: skip
    effects = trials.differences()[0, 1]
    assert effects.estimate == pytest.approx(5.0 - 1.5)
    assert (effects.people, effects.topics, effects.design) == (1, 1, "within")
    assert math.isnan(effects.over_people.error)
    assert math.isnan(effects.over_both.p)
    assert (effects.over_people.df, effects.over_both.df) == (0.0, 0.0)
    assert reasons(effects) == [("few-units", "few-units", "person")] * 2


def test_confounders_are_empty_for_a_system_without_trials() -> None:
    none = np.zeros(4, int)
    trials = TrialArrays(np.arange(4.0), np.array([0, 2, 0, 2]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), none)
    assert trials.confounders(0, 1) == ()
    assert trials.confounders(1, 2) == ()
    assert trials.confounders(0, 2) == ("topics",)
    assert list(trials.differences()) == []
