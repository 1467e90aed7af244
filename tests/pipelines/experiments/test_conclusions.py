"""Conclusions of constructed experiments: parts of the result, a planted effect, error rates, and invalid input."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judged import evaluate
from judged.comparison import Choices
from judged.comparison.slicing import slice_topics
from judged.errors import InputError, MeasureError
from judged.pipelines.experiments.conclusions import conclude
from judged.pipelines.experiments.effects import factor_effects
from judged.stats.paired import paired_test
from judged.stats.selection import choose, may_be_best
from judged.stats.sensitivity import sensitivity

LEVELS = {
    f"{stemmer}/{stop}/{k1}": {"stemmer": stemmer, "stop": stop, "k1": k1}
    for stemmer, stop, k1 in product(("none", "porter"), (False, True), (0.9, 1.2))
}
CONTROL = "none/False/1.2"
FAST: dict[str, Any] = {"resamples": 500, "test": "t"}


def experiment(values: np.ndarray, levels: Any = LEVELS, *, measure: str = "nDCG@10", costs: Any = None) -> Any:
    """Return an experiment with these scores, (configurations, topics)."""
    topics = [f"q{i:03}" for i in range(values.shape[1])]
    runs = {name: {topic: ["d"] for topic in topics} for name in levels}
    scores = evaluate({topic: {"d": 1} for topic in topics}, runs, measure)
    costs_by_run = costs or {name: {"p50_ms": 1.0 + i} for i, name in enumerate(levels)}
    control = CONTROL if CONTROL in levels else next(iter(levels))
    return SimpleNamespace(
        scores=replace(scores, values=values[:, None]), levels=levels, costs=costs_by_run, control=control
    )


def random_scores(seed: int, topics: int = 40, levels: Any = LEVELS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 0.5 + 0.1 * rng.normal(size=topics) + 0.03 * rng.normal(size=(len(levels), topics))


def test_conclusions_agree_with_their_parts() -> None:
    values = random_scores(1)
    conclusions = conclude(experiment(values), correction="none", **FAST)
    assert conclusions.baseline == CONTROL
    porter = np.array([name.startswith("porter") for name in LEVELS])
    stemmer = next(effect for effect in conclusions.effects.main if effect.factors == ("stemmer",))
    marginal = values[~porter].mean(axis=0), values[porter].mean(axis=0)
    marginal_test = paired_test(*marginal, "t")
    assert stemmer.estimate is not None
    assert stemmer.estimate.difference == pytest.approx(marginal_test.difference)
    assert stemmer.estimate.p == pytest.approx(marginal_test.p)
    assert stemmer.estimate.interval == pytest.approx(marginal_test.interval)
    assert stemmer.changes == (("none", "porter"),)
    best, is_candidate = choose(values), may_be_best(values, 0.05, "t")
    assert (conclusions.choice.best, conclusions.choice.honest) == (best.best, best.honest)
    assert set(conclusions.may_be_best) == {
        name for name, levels_of_run in zip(LEVELS, is_candidate, strict=True) if levels_of_run
    }
    assert conclusions.may_be_best[0] == conclusions.best
    board = conclusions.table("leaderboard")
    assert board.column("value").values == pytest.approx(sorted(values.mean(axis=1), reverse=True))
    assert conclusions.table("effects").column("change").values[:3] == ["none to porter", "no to yes", "1.2 to 0.9"]
    assert [effect.factors for effect in conclusions.effects.interactions] == [
        ("stemmer", "stop"), ("stemmer", "k1"), ("stop", "k1"),
    ]  # fmt: skip
    topics = conclusions.table("effect_topics")
    differences = marginal[1] - marginal[0]
    extremes = [*np.argsort(-differences)[:3], *np.argsort(differences)[:3]]
    assert topics.column("query_id").values[:6] == [f"q{i:03}" for i in extremes]


def test_intervals_exclude_0_if_and_only_if_the_effect_is_significant() -> None:
    values = random_scores(2)
    values[4:] += 0.02
    conclusions = conclude(experiment(values), attributes=kinds(40), by="kind", **FAST)
    tests = [effect.estimate for effect in (*conclusions.effects.main, *conclusions.effects.interactions)]
    tests += [slice_effect.estimate for effect in conclusions.effects.main for slice_effect in effect.slices]
    assert any(test.significant for test in tests if test)
    for test in tests:
        assert test is not None
        assert test.interval is not None
        assert test.significant == (test.interval[0] > 0 or test.interval[1] < 0)


def kinds(topics: int) -> Any:
    return {f"q{i:03}": {"kind": "abcd"[i % 4]} for i in range(topics)}


@pytest.mark.parametrize(("measure", "within"), [("nDCG@10", True), ("DCG", False)])
def test_intervals_stay_within_the_range_of_differences(measure: str, within: bool) -> None:
    levels = {"old": {"stemmer": "none"}, "new": {"stemmer": "porter"}}
    differences = np.array(
        [-0.99] * 2 + [0.0] * 10 + [0.01, -0.01] * 10
    )  # two of twelve differ greatly, so the interval is wide
    values = np.stack([np.full(32, 0.99), 0.99 + differences])
    attributes = {f"q{i:03}": {"kind": "a" if i < 12 else "b"} for i in range(32)}
    results = experiment(values, levels, measure=measure)
    conclusions = conclude(results, attributes=attributes, by="kind", **FAST)
    (skewed, _) = conclusions.effects.main[0].slices
    compared = results.scores.compare_slices(slice_topics(attributes, "kind"), "old", test="t").rows[0]
    assert skewed.estimate.interval is not None
    assert compared.pair is not None
    assert compared.pair.result.interval is not None
    for low, _ in (skewed.estimate.interval, compared.pair.result.interval):
        assert (low == -1) is within
        assert low <= -1
    values[0, 12:] = np.nan
    without_scores = conclude(experiment(values, levels, measure=measure), attributes=attributes, by="kind", **FAST)
    assert [slice_effect.slice for slice_effect in without_scores.effects.main[0].slices] == [
        "kind=a"
    ]  # no topic of the other slice has a score


@pytest.mark.slow
def test_a_planted_effect_is_detected_only_in_its_slice() -> None:
    """Stemming helps on a quarter of the topics, in 200 samples. Each family errs in 5%, plus 3 standard errors."""
    topics, slicing = 80, slice_topics(kinds(80), "kind")
    in_planted_slice = slicing.mask("kind=b")
    levels = list(LEVELS.values())
    porter = np.array([level["stemmer"] == "porter" for level in levels])
    choices = Choices("t", resamples=500)
    (
        slice_detections,
        heterogeneity_detections,
        other_slice_errors,
        other_factor_errors,
        interaction_errors,
        main_errors,
    ) = 0, 0, 0, 0, 0, 0
    for seed in range(200):
        values = random_scores(seed, topics)
        values[np.ix_(porter, in_planted_slice)] += 0.03
        conclusions = factor_effects(values, levels, 1, choices, slicing)
        stemmer = next(effect for effect in conclusions.main if effect.factor == "stemmer")
        others = [effect for effect in conclusions.main if effect is not stemmer]
        significant_slices = {
            (effect.factor, slice_effect.slice)
            for effect in conclusions.main
            for slice_effect in effect.slices
            if slice_effect.estimate.significant
        }
        slice_detections += ("stemmer", "kind=b") in significant_slices
        other_slice_errors += bool(significant_slices - {("stemmer", "kind=b")})
        heterogeneity_detections += stemmer.between_p <= 0.05
        other_factor_errors += any(effect.between_p <= 0.05 for effect in others)
        main_errors += any(effect.estimate.significant for effect in others if effect.estimate)
        interaction_errors += any(effect.estimate.significant for effect in conclusions.interactions if effect.estimate)
    max_errors = 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)
    assert (slice_detections, heterogeneity_detections) >= (190, 190)
    for errors in (other_slice_errors, other_factor_errors, main_errors, interaction_errors):
        assert errors <= max_errors


def test_effects_of_one_factor_at_a_time_are_against_the_control() -> None:
    control = LEVELS[CONTROL]
    levels = {
        name: row for name, row in LEVELS.items() if sum(row[factor] != control[factor] for factor in control) < 2
    }
    values = random_scores(3, levels=levels)
    conclusions = conclude(experiment(values, levels), **FAST)
    control_index = list(levels).index(CONTROL)
    for effect in conclusions.effects.main:
        new_level = effect.changes[0][1].replace("yes", "True")
        row = next(i for i, run_levels in enumerate(levels.values()) if str(run_levels[effect.factor]) == new_level)
        assert effect.values == pytest.approx(values[row] - values[control_index])
    assert not conclusions.effects.is_full_factorial
    note_text = "each effect equals the difference"
    assert note_text in conclusions.table("effects").note
    assert note_text not in conclude(experiment(random_scores(3)), **FAST).table("effects").note
    assert all(effect.estimate is None for effect in conclusions.effects.interactions)
    assert len(conclusions.table("effects")) == 3  # interactions that cannot be estimated have no rows
    assert "omitted-interactions" in {note.rule for note in conclusions.notes}
    assert conclusions.effects.omitted_interactions == tuple(
        effect.factor for effect in conclusions.effects.interactions
    )


def test_an_engine_without_a_factor_is_compared_at_the_control_level() -> None:
    """Two stemmers and two methods of one engine, and an engine without both, calculated by hand."""
    levels: dict[str, Any] = {
        f"{method}/{stemmer}": {"engine": "bm25s", "method": method, "stemmer": stemmer}
        for method, stemmer in product(("lucene", "atire"), ("none", "english"))
    }
    levels["dense"] = {"engine": "dense"}
    values = random_scores(9, levels=levels)
    conclusions = conclude(experiment(values, levels), **FAST)
    effects = {effect.factor: effect for effect in (*conclusions.effects.main, *conclusions.effects.interactions)}
    a, b, c, d, dense = values
    assert {name: effect.changes for name, effect in effects.items()} == {
        "engine": (("bm25s", "dense"),),
        "method": (("lucene", "atire"),),
        "stemmer": (("none", "english"),),
        "method \N{MULTIPLICATION SIGN} stemmer": (("lucene", "atire"), ("none", "english")),
    }
    by_hand = [dense - a, (c + d - a - b) / 2, (b + d - a - c) / 2, d - c - b + a]
    for effect, expected in zip(effects.values(), by_hand, strict=True):
        assert effect.values == pytest.approx(expected)
    assert [effect.held_levels for effect in conclusions.effects.main] == [("method lucene", "stemmer none"), (), ()]
    assert conclusions.effects.omitted_interactions == conclusions.effects.not_estimated == ()
    assert {note.rule for note in conclusions.notes}.isdisjoint({"aliased", "omitted-interactions"})
    reversed_roles = experiment(values, levels)
    reversed_roles.control = "dense"  # the control may be the engine without these factors
    engine, *other_effects = conclude(reversed_roles, **FAST).effects.main
    assert (engine.changes, engine.held_levels) == ((("dense", "bm25s"),), ("method lucene", "stemmer none"))
    assert engine.values == pytest.approx(a - dense)
    assert [effect.values.tolist() for effect in other_effects] == [
        pytest.approx(expected) for expected in by_hand[1:3]
    ]


def test_an_estimated_interaction_is_not_listed_as_inestimable() -> None:
    cells = [cell for cell in product("abc", "xy") if cell != ("c", "y")]
    levels = {"".join(cell): {"one": cell[0], "two": cell[1]} for cell in cells}
    effects = conclude(experiment(random_scores(9, levels=levels), levels), **FAST).effects
    estimated = [effect.change for effect in effects.interactions if effect.estimate]
    not_estimated = [effect.change for effect in effects.interactions if not effect.estimate]
    assert (len(estimated), len(not_estimated)) == (1, 1)
    assert effects.not_estimated == (f"{effects.omitted_interactions[0]} ({not_estimated[0]})",)


def test_aliased_factors_are_reported() -> None:
    levels = {"a": {"engine": "x", "stemmer": 1}, "b": {"engine": "y", "stemmer": True}, "c": {"engine": "x", "n": 3}}
    conclusions = conclude(experiment(random_scores(4, levels=levels), levels), **FAST)
    aliased = {(effect.factor, effect.changes[0][1]): effect.aliased for effect in conclusions.effects.main}
    assert aliased == {
        ("engine", "y"): ("stemmer",),
        ("stemmer", "yes"): ("engine",),
        ("stemmer", "-"): ("n",),
        ("n", "3"): ("stemmer",),
    }
    assert "aliased" in {note.rule for note in conclusions.notes}


def test_more_topics_are_suggested_only_if_several_may_be_best() -> None:
    values = random_scores(5)
    rules = {note.rule for note in conclude(experiment(values), **FAST).notes}
    assert "another-collection" in rules
    values[3] += 0.2
    conclusions = conclude(experiment(values), **FAST)
    assert conclusions.may_be_best == (list(LEVELS)[3],)
    assert "another-collection" not in {note.rule for note in conclusions.notes}


def test_costs_inside_the_noise_are_marked() -> None:
    levels = {"a": {"k1": 1}, "b": {"k1": 2}, "c": {"k1": 3}}
    costs = {
        "a": {"p50_ms": 2.0, "p50_ms_ci": (1.0, 4.0), "p50_ms_noise": (1.8, 2.2), "index_mb": 1.0},
        "b": {"p50_ms": 2.3, "p50_ms_ci": (1.0, 4.0), "p50_ms_noise": (2.1, 2.5), "index_mb": None},
        "c": {"p50_ms": 3.0, "p50_ms_ci": (1.0, 4.0), "p50_ms_noise": (2.8, 3.3), "index_mb": 2.0},
    }
    values = random_scores(6, levels=levels)
    values[1] += 0.1
    conclusions = conclude(experiment(values, levels, costs=costs), **FAST)
    board = conclusions.table("leaderboard")
    marks = dict(zip(board.column("run").values, board.column("p50_ms").mark, strict=True))
    assert "(baseline)" in conclusions.text()
    assert "(baseline)" not in conclusions.csv() + conclusions.json()
    assert {run: bool(mark) for run, mark in marks.items()} == {"a": False, "b": True, "c": False}
    assert conclusions.tradeoff.costs == ("p50_ms",)
    # b is significantly better than both, and not slower than a beyond the noise of their rounds
    assert conclusions.tradeoff.front == ("b",)
    assert conclusions.tradeoff.row("a").rivals == conclusions.tradeoff.row("c").rivals == ("b",)
    separate_costs = costs | {"a": {"p50_ms": 2.0, "p50_ms_noise": (1.8, 2.05)}}
    assert conclude(experiment(values, levels, costs=separate_costs), **FAST).tradeoff.front == ("a", "b")
    unknown_noise = costs | {"c": {"p50_ms": 1.0, "p50_ms_noise": None}}  # too few rounds to estimate the noise
    assert conclude(experiment(values, levels, costs=unknown_noise), **FAST).tradeoff.front == ("b",)
    assert conclude(experiment(values, levels, costs=costs), cost="index_mb", **FAST).tradeoff.costs == ("index_mb",)


def test_names_for_the_same_code_are_equivalent_and_none_is_dominated() -> None:
    levels = {name: {"k1": i} for i, name in enumerate("abcde")}
    costs = {name: {"p50_ms": 2 + 0.01 * i, "p50_ms_noise": (1.9, 2.2)} for i, name in enumerate(levels)}
    values = np.tile(random_scores(8, levels={"a": {"k1": 0}, "b": {"k1": 1}})[:1], (5, 1))
    conclusions = conclude(experiment(values, levels, costs=costs), **FAST).tradeoff
    assert conclusions.front == ("a", "b", "c", "d", "e")
    for row in conclusions.rows:
        assert set(row.equivalent) == set(levels) - {row.run}
        assert (row.front, row.certain, row.rivals) == (True, True, ())


def test_the_lowest_is_best_for_a_measure_with_low_optimum() -> None:
    levels = {"a": {"k1": 1}, "b": {"k1": 2}}
    values = np.abs(random_scores(7, levels=levels))
    values[1] -= 0.1
    conclusions = conclude(experiment(values, levels, measure="Fallout(n=10)"), **FAST)
    assert conclusions.best == "b"
    assert conclusions.facts()["naive_mean"] == pytest.approx(values[1].mean())
    interval = conclusions.cross_validated_interval
    assert interval is not None
    assert 0 <= interval[0] <= conclusions.facts()["cross_validated_mean"] <= interval[1] <= 1


def test_topics_without_all_scores_are_excluded_from_the_choice() -> None:
    values = random_scores(8)
    values[2, :3] = np.nan
    conclusions = conclude(experiment(values), **FAST)
    assert {"topics-left-out"} <= {note.rule for note in conclusions.notes}
    assert conclusions.choice.honest == choose(values[:, 3:]).honest
    levels = {**LEVELS, "failed": {"stemmer": "x"}}
    results = experiment(random_scores(9))
    results.levels = levels
    assert "not-scored" in {note.rule for note in conclude(results, **FAST).notes}


@pytest.mark.parametrize(
    ("changes", "options", "error"),
    [
        ({"levels": {}}, {}, InputError),
        ({"levels": {name: {"k1": 1} for name in LEVELS}}, {}, InputError),
        ({"control": "nobody"}, {}, InputError),
        ({"costs": {}}, {}, InputError),
        ({}, {"measure": "NumRet"}, InputError),
        ({}, {"test": "tukey"}, InputError),
        ({}, {"test": "sign"}, InputError),
        ({}, {"folds": 1}, InputError),
        ({}, {"cost": "euros"}, InputError),
        ({}, {"by": "kind"}, InputError),
        ({}, {"attributes": {"q001": {"kind": "a"}}, "by": "sort"}, InputError),
    ],
)
def test_invalid_arguments_are_rejected(changes: Any, options: Any, error: type[Exception]) -> None:
    results = experiment(random_scores(1))
    vars(results).update(changes)
    with pytest.raises(error):
        conclude(results, **{**FAST, **options})


def test_a_measure_that_is_a_sum_is_rejected() -> None:
    with pytest.raises(MeasureError):
        conclude(experiment(random_scores(1), measure="NumRet"), **FAST)


TWO_LEVELS = {"none": {"stemmer": "none"}, "porter": {"stemmer": "porter"}}


def squeezed_text(conclusions: Any) -> str:
    return " ".join(conclusions.text().split())


def conclude_from_differences(differences: np.ndarray, **options: Any) -> Any:
    baseline_scores = np.full(len(differences), 0.5)
    return conclude(
        experiment(np.stack([baseline_scores, baseline_scores + differences]), TWO_LEVELS), test="t", **options
    )


def test_an_effect_that_depends_on_one_topic_is_labeled() -> None:
    """47 topics gain 0.03 or 0.04, and one loses 0.4. A share of 11% such topics would suffice."""
    differences = 0.03 + 0.01 * (np.arange(48) % 2)
    differences[5] = -0.4
    conclusions = conclude_from_differences(differences)
    (effect,) = conclusions.effects.main
    assert effect.estimate.significant
    assert effect.sensitive
    assert effect.sensitivity == sensitivity(np.zeros(48), effect.values, max_difference=1.0)
    assert effect.sensitivity.few_topics == (5,)
    assert "Sensitive to a few topics (q005)" in squeezed_text(conclusions)
    table = conclusions.table("effects")
    assert (table.column("sensitive").values, table.column("few_topics").values) == ([True], [("q005",)])
    assert table.column("difference").mark == ["(*)"]
    assert [note.text for note in conclusions.notes if note.rule == "sensitive"][-1].endswith("few topics: none")
    assert conclusions.may_be_best == ("porter",)


def test_an_effect_of_all_topics_is_not_labeled() -> None:
    differences = 0.03 + 0.01 * (np.arange(48) % 2)
    conclusions = conclude_from_differences(differences)
    (effect,) = conclusions.effects.main
    assert (effect.estimate.significant, effect.sensitive) == (True, False)
    assert conclusions.table("effects").column("difference").mark == ["*"]
    assert "Up to 6.1% of all topics" in squeezed_text(conclusions)
    assert not [note for note in conclusions.notes if note.rule == "sensitive"]
    centered = conclude_from_differences(differences - differences.mean() + 0.001).effects.main[0]
    assert (centered.estimate.significant, centered.sensitivity) == (False, None)


def test_five_topics_give_no_verdict_on_effects_or_the_best() -> None:
    for topics, has_verdict in ((5, False), (6, True)):
        conclusions = conclude_from_differences(0.3 + 0.01 * np.arange(topics))
        (effect,) = conclusions.effects.main
        assert (effect.estimate.significant, len(conclusions.may_be_best)) == (has_verdict, 1 if has_verdict else 2)
        assert np.isnan(effect.detectable) >= (not has_verdict)
        assert ("5 topics, at least 6 are required" in squeezed_text(conclusions)) != has_verdict
