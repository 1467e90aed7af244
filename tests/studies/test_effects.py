"""Effects of systems, with people and topics both random: error rates, coverage, and what else must agree."""

import math

import numpy as np
import pytest

from judged.studies.crossed import TrialArrays, dummies, mixed_model
from judged.studies.effects import learning_effects, system_effects, variance_components
from judged.studies.outcomes import Outcome, TrialValue, find_outcome, outcomes
from studies_made import crossed, records, sample_values


@pytest.mark.parametrize(
    ("people", "topics", "systems", "interaction", "between"),
    [
        (12, 8, 2, 0.0, False),
        (24, 8, 2, 0.7, False),
        (12, 4, 2, 0.7, False),
        (18, 9, 3, 0.7, False),
        (24, 8, 2, 0.7, True),
    ],
)
def test_intervals_cover_what_is_true_of_other_people_and_topics(people, topics, systems, interaction, between):
    """And so of no effect at most alpha is found, though people, topics and order do much more than systems."""
    rng, where, count = np.random.default_rng(people + topics), crossed(people, topics, systems, between=between), 300
    covered = 0
    for _ in range(count):
        values = sample_values(rng, where, 0.4, interaction=interaction)
        trials = TrialArrays(values, *(where[name] for name in ("system", "person", "topic", "position")))
        ci = trials.differences()[0, 1].over_both.ci
        covered += ci[0] <= 0.4 <= ci[1]
    assert 0.92 <= covered / count <= 0.99  # 93 to 97.5 %, with three standard errors of 300 simulations


def test_permutations_hold_their_level_and_trials_taken_as_independent_do_not():
    rng, count, people = np.random.default_rng(3), 120, 12
    permuted = naive = 0
    where = crossed(people, 6, between=True)
    for _ in range(count):
        values = sample_values(rng, where)
        (effect,) = system_effects(_outcome(values, where))
        permuted += effect.people_p <= 0.05
        a, b = (values[where["system"] == code] for code in (0, 1))
        error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
        naive += abs(b.mean() - a.mean()) > 1.96 * error
    assert permuted / count <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)
    assert naive / count > 0.15


def test_a_difference_within_people_is_the_paired_t_test_of_their_means():
    """Where topics are all alike and order does nothing."""
    where, none = crossed(8, 4), np.zeros(32, int)
    values = sample_values(np.random.default_rng(1), where, 1.0)
    effect = TrialArrays(values, where["system"], where["person"], none, none).differences()[0, 1]
    means = [[values[(where["person"] == p) & (where["system"] == s)].mean() for s in (0, 1)] for p in range(8)]
    differences = np.diff(means).ravel()
    assert effect.estimate == pytest.approx(differences.mean())
    assert effect.over_people.error == pytest.approx(differences.std(ddof=1) / math.sqrt(8))
    assert effect.over_people.df == pytest.approx(7)
    assert effect.design == "within"
    assert math.isnan(effect.over_both.p)


def test_nothing_is_said_where_each_topic_was_tried_with_one_system():
    system, topic, person = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3])
    trials = TrialArrays(np.arange(4.0), system, person, topic, np.zeros(4, int))
    assert trials.differences() == {}


def test_a_mixed_model_is_the_analysis_of_variance_of_balanced_data():
    """Henderson's method 3 and restricted likelihood agree where no estimate is below 0."""
    rng, people, topics = np.random.default_rng(5), 10, 6
    person, topic = np.repeat(np.arange(people), topics), np.tile(np.arange(topics), people)
    values = 2 * rng.normal(size=people)[person] + 3 * rng.normal(size=topics)[topic] + rng.normal(size=people * topics)
    table = values.reshape(people, topics)
    residuals = table - table.mean(1, keepdims=True) - table.mean(0) + table.mean()
    trial = (residuals**2).sum() / ((people - 1) * (topics - 1))
    fit = mixed_model(values, np.ones((len(values), 1)), (person, topic))
    assert fit.residual == pytest.approx(trial, rel=1e-3)
    assert fit.variances == pytest.approx(
        [table.mean(1).var(ddof=1) - trial / topics, table.mean(0).var(ddof=1) - trial / people], rel=1e-3
    )


def test_the_mixed_model_and_least_squares_say_the_same_of_a_balanced_study():
    (effect,) = system_effects(find_outcome(outcomes(records()), "satisfaction"))
    assert effect.mixed == pytest.approx(effect.difference, abs=0.1)
    assert (effect.second, effect.design, effect.people, effect.n) == ("b", "within", 12, 8)


def test_practice_is_found_and_is_free_of_topics():
    """0.3 a task were put in, and topics change their places from person to person."""
    changes = {row.system: row for row in learning_effects(find_outcome(outcomes(records(people=16)), "satisfaction"))}
    assert set(changes) == {"", "a", "b"}
    assert changes[""].ci[0] <= 0.3 <= changes[""].ci[1]


def test_parts_of_the_variance_are_those_that_were_put_in():
    where = crossed(40, 16)
    components = variance_components(_outcome(sample_values(np.random.default_rng(2), where), where))
    assert components is not None
    assert components.trials == pytest.approx(1, abs=0.1)
    assert components.by_person == pytest.approx(1, abs=0.3)
    assert components.people_by_system < 0.4


def test_codes_of_persons_without_trials_take_no_part():
    assert dummies(np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


def _outcome(values, where):
    names = ("person", "position", "topic", "system")
    rows = zip(*(where[name].tolist() for name in names), values.tolist(), strict=True)
    trial_values = (TrialValue(f"p{p:02}", k + 1, f"t{t:02}", "abc"[s], "", value) for p, k, t, s, value in rows)
    return Outcome("made", "more", tuple(trial_values))
