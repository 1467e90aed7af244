"""Each column of an effect, of practice, and of the parts of a variance; p-values of permutations by enumeration."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from judged.studies import effects as module
from judged.studies.crossed import TrialArrays, mixed_model
from judged.studies.effects import SystemEffect, learning_effects, system_effects, variance_components
from judged.studies.outcomes import Outcome, TrialValue
from studies_made import crossed, sample_values


def outcome_from(values: Any, where: Any, better: Any = "more", variant: str = "") -> Outcome:
    """Name people p00..., topics t00..., systems a, b, c; and variants likewise where asked for."""
    rows = zip(*(where[name].tolist() for name in ("person", "position", "topic", "system")), values, strict=True)
    return Outcome("made", better, tuple(
        TrialValue(f"p{person:02}", position + 1, f"t{topic:02}", "s" if variant else "abc"[system],
              variant and variant[system], float(value))
        for person, position, topic, system, value in rows
    ))  # fmt: skip


def trials_of(where: Any, values: Any) -> TrialArrays:
    return TrialArrays(values, *(where[name] for name in ("system", "person", "topic", "position")))


def p_of_signs(effect: Any, codes: Any) -> float:
    """List all signs of what each person, or topic, adds to the difference where there is none."""
    shares = np.array([(effect.weights * effect.residuals)[codes == code].sum() for code in np.unique(codes)])
    sums = np.array(list(product([-1, 1], repeat=len(shares)))) @ shares
    return float((np.abs(sums) >= abs(shares.sum()) * (1 - 1e-9)).mean())


def p_of_groups(of: Any, means: Any) -> float:
    """List all ways to draw the people of the second system from those of both."""
    observed = of.sum() * (means[of].mean() - means.mean())
    away = [
        means[list(combination)].sum() - of.sum() * means.mean()
        for combination in combinations(range(len(of)), of.sum())
    ]
    return float((np.abs(away) >= abs(observed) * (1 - 1e-9)).mean())


def test_every_column_of_three_systems_within_people() -> None:
    where = crossed(9, 6, 3)
    values = sample_values(np.random.default_rng(4), where, 0.4, interaction=0.3)
    rows = system_effects(outcome_from(values, where, "less"), level=0.9)
    effects = trials_of(where, values).differences(0.9)
    adjusted = multipletests([effect.over_both.p for effect in effects.values()], method="holm")[1]
    fixed = np.column_stack([where["system"] == code for code in range(3)] + [where["position"]]) * 1.0
    by = [where[name] * 3 + where["system"] for name in ("topic", "person")]
    fit = mixed_model(values, fixed, (where["person"], where["topic"], *by))
    assert len(rows) == 3
    for row, (pair, effect), holm in zip(rows, effects.items(), adjusted, strict=True):
        system_values = [values[where["system"] == code] for code in pair]
        assert (row.outcome, row.better, row.first, row.second) == ("made", "less", *("abc"[code] for code in pair))
        assert row.means == pytest.approx([each.mean() for each in system_values])
        assert row.counts == (18, 18)
        assert (row.difference, row.design, row.people, row.n) == (effect.estimate, "within", 9, 6)
        assert (row.people_ci, row.ci, row.p) == (effect.over_people.ci, effect.over_both.ci, effect.over_both.p)
        assert row.adjusted == pytest.approx(holm)
        assert row.people_p == pytest.approx(p_of_signs(effect, where["person"]))
        assert row.topics_p == pytest.approx(p_of_signs(effect, where["topic"]))
        assert row.mixed == pytest.approx(fit.effects[pair[1]] - fit.effects[pair[0]], abs=1e-3)
        variance = sum(fit.covariance[code, code] for code in pair) - 2 * fit.covariance[pair]
        assert row.mixed_error == pytest.approx(math.sqrt(variance), rel=1e-3)
        assert row.reason == ""
        assert row.has_verdict


def test_people_with_one_system_each_are_drawn_anew() -> None:
    """Of each pair the systems of people change places; some people have fewer trials than others."""
    system_of = np.array([0] * 4 + [1] * 4 + [2] * 5)
    where = {"person": np.repeat(np.arange(13), 6), "topic": np.tile(np.arange(6), 13)}
    where["position"] = (where["topic"] + where["person"]) % 6
    where["system"] = system_of[where["person"]]
    is_used = (where["topic"] < 5) | (where["person"] % 3 > 0)
    where = {name: codes[is_used] for name, codes in where.items()}
    rng = np.random.default_rng(8)
    values = rng.normal(size=is_used.sum()) + rng.normal(size=13)[where["person"]]
    effects = trials_of(where, values).differences()
    for row, (pair, record) in zip(system_effects(outcome_from(values, where)), effects.items(), strict=True):
        in_pair = np.isin(system_of, pair)
        means = np.array([record.residuals[where["person"] == person].mean() for person in range(13)])[in_pair]
        expected = p_of_groups(system_of[in_pair] == pair[1], means)
        assert row.people_p == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 9999))
        assert (row.design, row.people, row.people_ci) == ("between", record.people, record.over_people.ci)
        assert row.topics_p == pytest.approx(p_of_signs(record, where["topic"]))
    again, other = (system_effects(outcome_from(values, where), seed=seed)[0].people_p for seed in (0, 1))
    assert again == system_effects(outcome_from(values, where))[0].people_p != other


def separated_systems(people: int, topics: int) -> Outcome:
    """Make half of the people, who have system b, better by much."""
    where = crossed(people, topics, between=True)
    return outcome_from(where["system"] * 9.0 + where["person"] // 2 % 3 + where["position"] % 2, where)


def test_permutations_of_people_count_the_observed_one() -> None:
    """Of 20 and more people with all of one system above all of the other no draw of 9,999 is as far apart."""
    (many,) = system_effects(separated_systems(24, 6))
    assert many.people_p == 1 / 10_000
    # 2 of 20 ways to draw three of six are as far apart, and ties with the observed one count
    (six,) = system_effects(separated_systems(6, 6))
    assert six.people_p == pytest.approx(0.1, abs=0.012)
    assert six.reason != ""


def within(people: int, topics: int) -> SystemEffect:
    where = crossed(people, topics)
    (row,) = system_effects(outcome_from(sample_values(np.random.default_rng(2), where, 0.5, interaction=0.5), where))
    return row


def test_permutations_need_six_people_or_topics() -> None:
    six = within(6, 6)
    assert not math.isnan(six.people_p)
    assert not math.isnan(six.topics_p)
    five, few = within(5, 8), within(8, 5)
    assert math.isnan(five.people_p)
    assert not math.isnan(five.topics_p)
    assert five.reason == "Not enough data: 5 participants, at least 6 are required."
    assert math.isnan(few.topics_p)
    assert not math.isnan(few.people_p)
    assert few.reason == "Not enough data: 5 topics, at least 6 are required."
    for row in (five, few):
        assert not math.isnan(row.p)  # an interval and a p-value are there, a verdict is not
        assert not row.has_verdict
    # an interval for other topics takes three of them
    where = crossed(8, 3)
    values = sample_values(np.random.default_rng(2), where, 0.5, interaction=0.5)
    three, both = within(8, 3), trials_of(where, values).differences()[0, 1].over_both
    assert (three.p, three.ci) == (both.p, both.ci)
    pair = within(8, 2)
    assert (math.isnan(pair.p), math.isnan(pair.people_p), math.isnan(pair.people_ci[0])) == (True, False, False)
    assert pair.reason == "Not enough data: 2 topics, at least 3 are required."
    two = within(2, 8)
    assert math.isnan(two.p)
    assert math.isnan(two.topics_p)
    assert math.isnan(two.mixed)
    assert math.isnan(two.mixed_error)
    assert not math.isnan(two.difference)


def test_who_adds_nothing_takes_no_part_in_the_signs() -> None:
    """Each of eight people rates both systems once: two rate them alike, six have differences."""
    changes = [1.0, 2.0, -1.0, 3.0, 2.5, 1.5, 0.0, 0.0]
    values = tuple(TrialValue(f"p{i}", 0, "", name, "", code * change + i)
                   for i, change in enumerate(changes) for code, name in enumerate("ab"))  # fmt: skip
    (row,) = system_effects(Outcome("sus", "more", values))
    assert row.difference == pytest.approx(np.mean(changes))
    # of 64 signs those sum to 9 or more that turn nothing, or one of the two 1s; and as many to -9 or less
    assert row.people_p == 6 / 64
    test = stats.ttest_1samp(changes, 0.0)
    assert row.p == row.adjusted == pytest.approx(test.pvalue)
    assert row.ci == row.people_ci == pytest.approx(test.confidence_interval(0.95))
    assert (row.n, row.people, row.counts, row.design) == (1, 8, (8, 8), "within")
    assert math.isnan(row.topics_p)
    assert math.isnan(row.mixed)
    shorter = system_effects(Outcome("sus", "more", tuple(trial for trial in values if trial.participant != "p5")))[0]
    assert math.isnan(shorter.people_p)  # five have a difference


def test_pairs_without_an_estimate_say_why() -> None:
    nan = math.nan
    # each topic with one system
    record = {"person": np.array([0, 0, 1, 1, 2, 2]), "topic": np.array([0, 1] * 3), "system": np.array([0, 1] * 3),
           "position": np.array([0, 1, 1, 0, 0, 1])}  # fmt: skip
    topics, *empty_rows = system_effects(outcome_from([1.0, 2, 3, 5, 2, 5], record), names=("a", "b", "c"))
    assert (topics.means, topics.counts, topics.people, topics.n) == ((2.0, 4.0), (3, 3), 3, 2)
    reason = "The systems were used with different topics, so the effects of systems and of topics cannot be separated."
    assert topics.reason == reason
    assert [(row.first, row.second, row.counts) for row in empty_rows] == [("a", "c", (3, 0)), ("b", "c", (3, 0))]
    assert [row.reason for row in empty_rows] == ["No trial of c has a value of this outcome."] * 2
    assert [(row.people, row.n) for row in empty_rows] == [(3, 1)] * 2  # those of the system that has trials
    for row in (topics, *empty_rows):
        assert row.design == ""
        numbers = (row.difference, row.p, row.adjusted, row.people_p, row.topics_p, row.mixed, row.mixed_error,
                   *row.people_ci, *row.ci)  # fmt: skip
        assert all(math.isnan(number) for number in numbers)
        assert not row.has_verdict
    assert empty_rows[0].means == pytest.approx((2.0, nan), nan_ok=True)
    both = {**record, "position": record["system"]}
    assert "different topics and positions," in system_effects(outcome_from([1.0, 2, 3, 5, 2, 5], both))[0].reason
    (neither,) = system_effects(outcome_from([1.0, 2, 3, 5, 2, 5], record, better=""), names=("a", "b"))
    assert neither.better == ""
    none = Outcome("sus", "more", tuple(TrialValue("p", 0, "", "a", "", 1.0) for _ in range(2)))
    (alone,) = system_effects(none)
    assert alone.reason == "Only one system has trials, so systems cannot be compared."
    assert (alone.people, alone.n, alone.first, alone.second, alone.counts) == (1, 1, "a", "", (2, 0))
    missing = system_effects(none, names=("a", "b", "c"))
    assert [row.reason for row in missing] == [
        f"No trial of {systems} has a value of this outcome." for systems in ("b", "c", "b and c")
    ]
    assert [(row.people, row.n) for row in missing] == [(1, 1), (1, 1), (0, 0)]


def test_variants_are_compared_by_their_own_names() -> None:
    where = crossed(6, 6)
    outcome = outcome_from(sample_values(np.random.default_rng(2), where, 0.5), where, variant="wv")
    (row,) = system_effects(outcome, by="variant")
    plain = within_of(where, 0.5)
    assert (row.first, row.second) == ("v", "w")  # in the order of names: the difference changes its sign
    assert row.difference == pytest.approx(-plain.difference)
    assert row.means == pytest.approx(plain.means[::-1])
    of = (
        variance_components(outcome, by="variant"),
        variance_components(outcome_from([trial.value for trial in outcome.values], where)),
    )
    assert of[0] is not None
    assert of[1] is not None
    assert of[0][1:] == pytest.approx(of[1][1:], abs=1e-3)
    assert variance_components(outcome) is None  # of one system alone


def within_of(where: Any, effect: float) -> SystemEffect:
    (row,) = system_effects(outcome_from(sample_values(np.random.default_rng(2), where, effect), where))
    return row


def test_practice_with_all_systems_and_with_each() -> None:
    where = crossed(6, 6)
    values = sample_values(np.random.default_rng(6), where, 0.5)
    rows = learning_effects(outcome_from(values, where), level=0.8)
    names = [("made", "", ""), ("made", "a", ""), ("made", "b", ""), ("made", "b", "a")]
    assert [(row.outcome, row.system, row.minus) for row in rows] == names
    for row, mask in zip(rows[:3], (where["system"] >= 0, where["system"] == 0, where["system"] == 1), strict=True):
        some = {name: codes[mask] for name, codes in where.items()}
        effect = trials_of(some, values[mask]).learning(0.8)
        assert effect is not None
        assert (row.change, row.people) == pytest.approx((effect.estimate, effect.people))
        assert (*row.ci, row.p) == pytest.approx((*effect.over_people.ci, effect.over_people.p))
        ends = some["position"].min(), some["position"].max()
        assert (row.first, row.last) == pytest.approx([values[mask][some["position"] == end].mean() for end in ends])
    assert learning_effects(outcome_from(np.ones(36), where)) == ()
    alone = learning_effects(outcome_from(values, {**where, "system": np.zeros(36, int)}))
    assert [row.system for row in alone] == [""]  # of one system there is nothing more to say
    first = where["position"] == 0
    assert learning_effects(outcome_from(values[first], {name: codes[first] for name, codes in where.items()})) == ()
    # system b is at the last position only
    late = where | {"system": (where["position"] == 5) * 1}
    assert [row.system for row in learning_effects(outcome_from(values, late))] == ["", "a"]


def test_practice_of_two_positions() -> None:
    """The second less the first of each of eight people, with topics and systems in the model."""
    where = crossed(8, 2)
    values = sample_values(np.random.default_rng(6), where, 0.5)
    rows = learning_effects(outcome_from(values, where))[0]
    columns = [where[name][:, None] == np.arange(1, where[name].max() + 1) for name in ("topic", "system", "person")]
    model = np.column_stack([where["position"], np.ones(16), *columns]) * 1.0
    assert rows.change == pytest.approx(np.linalg.lstsq(model, values, rcond=None)[0][0])
    assert (rows.first, rows.last) == pytest.approx([values[where["position"] == i].mean() for i in (0, 1)])


def test_practice_of_people_and_topics_with_gaps_in_their_codes() -> None:
    """The first person and the first topic have system a alone."""
    where = crossed(6, 6)
    where["system"] = np.where((where["person"] == 0) | (where["topic"] == 0), 0, where["system"])
    values = sample_values(np.random.default_rng(6), where, 0.5)
    mask = where["system"] == 1
    some = {name: codes[mask] for name, codes in where.items()}
    some |= {name: some[name] - 1 for name in ("person", "topic", "system")}
    effect = trials_of(some, values[mask]).learning()
    row = learning_effects(outcome_from(values, where))[2]
    assert effect is not None
    assert (row.system, row.people, row.change) == ("b", effect.people, pytest.approx(effect.estimate))
    assert row.ci == pytest.approx(effect.over_people.ci, nan_ok=True)


def test_when_a_mixed_model_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted(people: int, topics: int, *, noise: float = 1.0) -> bool:
        where = crossed(people, topics)
        values = (
            where["person"] % 3 + where["topic"] % 4 + noise * np.random.default_rng(1).normal(size=people * topics)
        )
        return variance_components(outcome_from(values, where)) is not None

    assert not fitted(8, 2)
    assert fitted(8, 3)
    # people and topics with each of two systems are 12 + 12 levels, of which two are free; 36 trials are left
    assert fitted(6, 6)
    # 4 x 2 + 4 x 2 - 2 = 14 of 16 trials; 3 x 2 + 4 x 2 - 2 = 12 of 12
    assert fitted(4, 4)
    assert not fitted(3, 4)
    # (2 systems + 1) x (6 + 6) levels in all
    monkeypatch.setattr(module, "MAX_LEVELS", 36)
    assert fitted(6, 6)
    monkeypatch.setattr(module, "MAX_LEVELS", 35)
    assert not fitted(6, 6)


@pytest.mark.parametrize(("share", "fitted"), [(1.5e-5, True), (0.6e-5, False)])
def test_a_mixed_model_leaves_some_of_the_variance_to_single_trials(share: float, fitted: bool) -> None:
    """Of values with a variance of 100 single trials have 15, or 6, millionths: 10 are required."""
    where, rng = crossed(16, 12), np.random.default_rng(3)
    levels = rng.normal(size=16)[where["person"]] + rng.normal(size=12)[where["topic"]]
    values = 10 * (levels / levels.std() + math.sqrt(share) * rng.normal(size=16 * 12))
    components = variance_components(outcome_from(values, where))
    assert (components is not None) == fitted
    if components is not None:
        assert components.trials**2 == pytest.approx(100 * share, rel=0.25)


def test_parts_of_people_with_one_system_each() -> None:
    where = crossed(8, 6, between=True)
    values = sample_values(np.random.default_rng(5), where, 1.0, interaction=1.0)
    components = variance_components(outcome_from(values, where))
    assert components is not None
    assert math.isnan(components.people_by_system)
    fixed = np.column_stack([where["system"] == 0, where["system"] == 1, where["position"]]) * 1.0
    fit = mixed_model(values, fixed, (where["person"], where["topic"], 2 * where["topic"] + where["system"]))
    deviations = (components.by_person, components.by_topic, components.topics_by_system, components.trials)
    assert deviations == pytest.approx([*np.sqrt(fit.variances), math.sqrt(fit.residual)], rel=1e-3, abs=1e-3)
    assert components.outcome == "made"


def test_trials_that_are_all_at_one_position() -> None:
    """The position is then no column of the model."""
    where = crossed(8, 6)
    where["position"] = np.zeros(48, int)
    values = sample_values(np.random.default_rng(5), where, 1.0)
    (row,) = system_effects(outcome_from(values, where))
    fixed = np.column_stack([where["system"] == 0, where["system"] == 1]) * 1.0
    by = [where[name] * 2 + where["system"] for name in ("topic", "person")]
    fit = mixed_model(values, fixed, (where["person"], where["topic"], *by))
    assert row.mixed == pytest.approx(fit.effects[1] - fit.effects[0], abs=1e-3)
