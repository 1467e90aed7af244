"""Conclusions of made experiments: numbers of the pieces, a planted effect, promised rates, and what is refused."""

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


def measured(values: np.ndarray, levels: Any = LEVELS, *, measure: str = "nDCG@10", costs: Any = None) -> Any:
    """Give an experiment with these scores, (configurations, topics)."""
    topics = [f"q{at:03}" for at in range(values.shape[1])]
    runs = {name: {topic: ["d"] for topic in topics} for name in levels}
    scores = evaluate({topic: {"d": 1} for topic in topics}, runs, measure)
    known = costs or {name: {"p50_ms": 1.0 + at} for at, name in enumerate(levels)}
    control = CONTROL if CONTROL in levels else next(iter(levels))
    return SimpleNamespace(scores=replace(scores, values=values[:, None]), levels=levels, costs=known, control=control)


def drawn(seed: int, topics: int = 40, levels: Any = LEVELS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 0.5 + 0.1 * rng.normal(size=topics) + 0.03 * rng.normal(size=(len(levels), topics))


def test_numbers_are_those_of_the_pieces() -> None:
    values = drawn(1)
    found = conclude(measured(values), correction="none", **FAST)
    assert found.baseline == CONTROL
    porter = np.array([name.startswith("porter") for name in LEVELS])
    stemmer = next(effect for effect in found.effects.main if effect.factors == ("stemmer",))
    marginal = values[~porter].mean(axis=0), values[porter].mean(axis=0)
    alone = paired_test(*marginal, "t")
    assert stemmer.found is not None
    assert stemmer.found.difference == pytest.approx(alone.difference)
    assert stemmer.found.p == pytest.approx(alone.p)
    assert stemmer.found.interval == pytest.approx(alone.interval)
    assert stemmer.changes == (("none", "porter"),)
    best, possible = choose(values), may_be_best(values, 0.05, "t")
    assert (found.choice.best, found.choice.honest) == (best.best, best.honest)
    assert set(found.may_be_best) == {name for name, of in zip(LEVELS, possible, strict=True) if of}
    assert found.may_be_best[0] == found.best
    board = found.table("leaderboard")
    assert board.column("value").values == pytest.approx(sorted(values.mean(axis=1), reverse=True))
    assert found.table("effects").column("change").values[:3] == ["none to porter", "no to yes", "1.2 to 0.9"]
    assert [effect.factors for effect in found.effects.interactions] == [
        ("stemmer", "stop"), ("stemmer", "k1"), ("stop", "k1"),
    ]  # fmt: skip
    topics = found.table("effect_topics")
    gaps = marginal[1] - marginal[0]
    assert topics.column("query_id").values[:6] == [f"q{at:03}" for at in
                                                    [*np.argsort(-gaps)[:3], *np.argsort(gaps)[:3]]]  # fmt: skip


def test_intervals_leave_out_0_just_where_the_corrected_p_is_small() -> None:
    values = drawn(2)
    values[4:] += 0.02
    found = conclude(measured(values), attributes=kinds(40), by="kind", **FAST)
    tests = [effect.found for effect in (*found.effects.main, *found.effects.interactions)]
    tests += [part.found for effect in found.effects.main for part in effect.slices]
    assert any(test.significant for test in tests if test)
    for test in tests:
        assert test is not None
        assert test.interval is not None
        assert test.significant == (test.interval[0] > 0 or test.interval[1] < 0)


def kinds(topics: int) -> Any:
    return {f"q{at:03}": {"kind": "abcd"[at % 4]} for at in range(topics)}


@pytest.mark.parametrize(("measure", "within"), [("nDCG@10", True), ("DCG", False)])
def test_no_interval_holds_what_no_difference_can_be(measure: str, within: bool) -> None:
    levels = {"old": {"stemmer": "none"}, "new": {"stemmer": "porter"}}
    gaps = np.array([-0.99] * 2 + [0.0] * 10 + [0.01, -0.01] * 10)  # of a dozen two are far away: a wide interval
    values = np.stack([np.full(32, 0.99), 0.99 + gaps])
    about = {f"q{at:03}": {"kind": "a" if at < 12 else "b"} for at in range(32)}
    results = measured(values, levels, measure=measure)
    found = conclude(results, attributes=about, by="kind", **FAST)
    (skewed, _) = found.effects.main[0].slices
    compared = results.scores.compare_slices(slice_topics(about, "kind"), "old", test="t").rows[0]
    assert skewed.found.interval is not None
    assert compared.pair is not None
    assert compared.pair.result.interval is not None
    for low, _ in (skewed.found.interval, compared.pair.result.interval):
        assert (low == -1) is within
        assert low <= -1
    values[0, 12:] = np.nan
    gone = conclude(measured(values, levels, measure=measure), attributes=about, by="kind", **FAST)
    assert [part.slice for part in gone.effects.main[0].slices] == ["kind=a"]  # of the other no topic has a value


@pytest.mark.slow
def test_a_planted_effect_is_found_in_its_slice_and_nowhere_else() -> None:
    """Stemming helps on a quarter of the topics; 200 draws. Each family errs in 5 % at most, and 3 errors of that."""
    topics, slicing = 80, slice_topics(kinds(80), "kind")
    here = slicing.mask("kind=b")
    levels = list(LEVELS.values())
    porter = np.array([level["stemmer"] == "porter" for level in levels])
    choices = Choices("t", resamples=500)
    in_slice, varies, elsewhere, other_factor, interactions, no_effect = 0, 0, 0, 0, 0, 0
    for seed in range(200):
        values = drawn(seed, topics)
        values[np.ix_(porter, here)] += 0.03
        found = factor_effects(values, levels, 1, choices, slicing)
        stemmer = next(effect for effect in found.main if effect.factor == "stemmer")
        others = [effect for effect in found.main if effect is not stemmer]
        seen = {
            (effect.factor, part.slice) for effect in found.main for part in effect.slices if part.found.significant
        }
        in_slice += ("stemmer", "kind=b") in seen
        elsewhere += bool(seen - {("stemmer", "kind=b")})
        varies += stemmer.between_p <= 0.05
        other_factor += any(effect.between_p <= 0.05 for effect in others)
        no_effect += any(effect.found.significant for effect in others if effect.found)
        interactions += any(effect.found.significant for effect in found.interactions if effect.found)
    most = 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)
    assert (in_slice, varies) >= (190, 190)
    for errors in (elsewhere, other_factor, no_effect, interactions):
        assert errors <= most


def test_of_one_at_a_time_effects_are_against_the_control_and_said_to_be() -> None:
    some = {name: of for name, of in LEVELS.items() if sum(a != b for a, b in zip(of.values(), LEVELS[CONTROL].values(),
                                                                                  strict=True)) < 2}  # fmt: skip
    values = drawn(3, levels=some)
    found = conclude(measured(values, some), **FAST)
    base = list(some).index(CONTROL)
    for effect in found.effects.main:
        other = next(at for at, of in enumerate(some.values()) if str(of[effect.factor]).replace("True", "yes")
                     == effect.changes[0][1])  # fmt: skip
        assert effect.values == pytest.approx(values[other] - values[base])
    assert not found.effects.full
    same = "the same difference as in that table"
    assert same in found.table("effects").note
    assert same not in conclude(measured(drawn(3)), **FAST).table("effects").note
    assert all(effect.found is None for effect in found.effects.interactions)
    assert len(found.table("effects")) == 3  # interactions that nobody can see are no rows
    assert "no-interaction-assumed" in {note.rule for note in found.notes}
    assert found.effects.assumed == tuple(effect.factor for effect in found.effects.interactions)


def test_an_engine_without_a_factor_is_compared_at_the_controls_level_of_it() -> None:
    """Two stemmers and two methods of one engine, and an engine that has neither: by hand."""
    levels: dict[str, Any] = {
        f"{method}/{stemmer}": {"engine": "bm25s", "method": method, "stemmer": stemmer}
        for method, stemmer in product(("lucene", "atire"), ("none", "english"))
    }
    levels["dense"] = {"engine": "dense"}
    values = drawn(9, levels=levels)
    found = conclude(measured(values, levels), **FAST)
    effects = {effect.factor: effect for effect in (*found.effects.main, *found.effects.interactions)}
    a, b, c, d, dense = values
    assert {name: effect.changes for name, effect in effects.items()} == {
        "engine": (("bm25s", "dense"),),
        "method": (("lucene", "atire"),),
        "stemmer": (("none", "english"),),
        "method \N{MULTIPLICATION SIGN} stemmer": (("lucene", "atire"), ("none", "english")),
    }
    by_hand = [dense - a, (c + d - a - b) / 2, (b + d - a - c) / 2, d - c - b + a]
    for effect, wanted in zip(effects.values(), by_hand, strict=True):
        assert effect.values == pytest.approx(wanted)
    assert [effect.held for effect in found.effects.main] == [("method lucene", "stemmer none"), (), ()]
    assert found.effects.assumed == found.effects.unseen == ()
    assert {note.rule for note in found.notes}.isdisjoint({"aliased", "no-interaction-assumed"})
    turned = measured(values, levels)
    turned.control = "dense"  # the control itself may be what lacks them
    engine, *rest = conclude(turned, **FAST).effects.main
    assert (engine.changes, engine.held) == ((("dense", "bm25s"),), ("method lucene", "stemmer none"))
    assert engine.values == pytest.approx(a - dense)
    assert [effect.values.tolist() for effect in rest] == [pytest.approx(wanted) for wanted in by_hand[1:3]]


def test_an_interaction_that_is_shown_is_not_said_to_be_impossible_to_estimate() -> None:
    some = [cell for cell in product("abc", "xy") if cell != ("c", "y")]
    levels = {"".join(cell): {"one": cell[0], "two": cell[1]} for cell in some}
    effects = conclude(measured(drawn(9, levels=levels), levels), **FAST).effects
    shown = [effect.change for effect in effects.interactions if effect.found]
    left = [effect.change for effect in effects.interactions if not effect.found]
    assert (len(shown), len(left)) == (1, 1)
    assert effects.unseen == (f"{effects.assumed[0]} ({left[0]})",)


def test_what_always_changes_together_is_named() -> None:
    levels = {"a": {"engine": "x", "stemmer": 1}, "b": {"engine": "y", "stemmer": True}, "c": {"engine": "x", "n": 3}}
    found = conclude(measured(drawn(4, levels=levels), levels), **FAST)
    aliased = {(effect.factor, effect.changes[0][1]): effect.aliased for effect in found.effects.main}
    assert aliased == {
        ("engine", "y"): ("stemmer",),
        ("stemmer", "yes"): ("engine",),
        ("stemmer", "-"): ("n",),
        ("n", "3"): ("stemmer",),
    }
    assert "aliased" in {note.rule for note in found.notes}


def test_more_is_needed_only_where_the_best_is_open() -> None:
    values = drawn(5)
    said = {note.rule for note in conclude(measured(values), **FAST).notes}
    assert "another-collection" in said
    values[3] += 0.2
    found = conclude(measured(values), **FAST)
    assert found.may_be_best == (list(LEVELS)[3],)
    assert "another-collection" not in {note.rule for note in found.notes}


def test_costs_inside_the_noise_are_marked() -> None:
    levels = {"a": {"k1": 1}, "b": {"k1": 2}, "c": {"k1": 3}}
    costs = {
        "a": {"p50_ms": 2.0, "p50_ms_ci": (1.0, 4.0), "p50_ms_noise": (1.8, 2.2), "index_mb": 1.0},
        "b": {"p50_ms": 2.3, "p50_ms_ci": (1.0, 4.0), "p50_ms_noise": (2.1, 2.5), "index_mb": None},
        "c": {"p50_ms": 3.0, "p50_ms_ci": (1.0, 4.0), "p50_ms_noise": (2.8, 3.3), "index_mb": 2.0},
    }
    values = drawn(6, levels=levels)
    values[1] += 0.1
    found = conclude(measured(values, levels, costs=costs), **FAST)
    board = found.table("leaderboard")
    marks = dict(zip(board.column("run").values, board.column("p50_ms").mark, strict=True))
    assert "(baseline)" in found.text()
    assert "(baseline)" not in found.csv() + found.json()
    assert {run: bool(mark) for run, mark in marks.items()} == {"a": False, "b": True, "c": False}
    assert found.tradeoff.costs == ("p50_ms",)
    # b is better beyond chance than both, and no slower than a beyond the noise of their rounds
    assert found.tradeoff.front == ("b",)
    assert found.tradeoff.row("a").rivals == found.tradeoff.row("c").rivals == ("b",)
    apart = costs | {"a": {"p50_ms": 2.0, "p50_ms_noise": (1.8, 2.05)}}
    assert conclude(measured(values, levels, costs=apart), **FAST).tradeoff.front == ("a", "b")
    unknown = costs | {"c": {"p50_ms": 1.0, "p50_ms_noise": None}}  # too few rounds to tell how much they vary
    assert conclude(measured(values, levels, costs=unknown), **FAST).tradeoff.front == ("b",)
    assert conclude(measured(values, levels, costs=costs), cost="index_mb", **FAST).tradeoff.costs == ("index_mb",)


def test_names_for_the_same_code_are_equivalent_and_none_is_dominated() -> None:
    levels = {name: {"k1": at} for at, name in enumerate("abcde")}
    costs = {name: {"p50_ms": 2 + 0.01 * at, "p50_ms_noise": (1.9, 2.2)} for at, name in enumerate(levels)}
    values = np.tile(drawn(8, levels={"a": {"k1": 0}, "b": {"k1": 1}})[:1], (5, 1))
    found = conclude(measured(values, levels, costs=costs), **FAST).tradeoff
    assert found.front == ("a", "b", "c", "d", "e")
    for row in found.rows:
        assert set(row.equivalent) == set(levels) - {row.run}
        assert (row.front, row.sure, row.rivals) == (True, True, ())


def test_of_a_measure_that_is_better_low_the_lowest_is_best() -> None:
    low = {"a": {"k1": 1}, "b": {"k1": 2}}
    values = np.abs(drawn(7, levels=low))
    values[1] -= 0.1
    found = conclude(measured(values, low, measure="Fallout(n=10)"), **FAST)
    assert found.best == "b"
    assert found.facts()["naive"] == pytest.approx(values[1].mean())
    ends = found.honest_interval
    assert ends is not None
    assert 0 <= ends[0] <= found.facts()["honest"] <= ends[1] <= 1


def test_topics_that_some_configuration_lacks_are_left_out_of_the_choice() -> None:
    values = drawn(8)
    values[2, :3] = np.nan
    found = conclude(measured(values), **FAST)
    assert {"topics-left-out"} <= {note.rule for note in found.notes}
    assert found.choice.honest == choose(values[:, 3:]).honest
    levels = {**LEVELS, "failed": {"stemmer": "x"}}
    results = measured(drawn(9))
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
def test_what_makes_no_sense_is_refused(changes: Any, options: Any, error: type[Exception]) -> None:
    results = measured(drawn(1))
    vars(results).update(changes)
    with pytest.raises(error):
        conclude(results, **{**FAST, **options})


def test_a_sum_is_no_mean() -> None:
    with pytest.raises(MeasureError):
        conclude(measured(drawn(1), measure="NumRet"), **FAST)


TWO = {"none": {"stemmer": "none"}, "porter": {"stemmer": "porter"}}


def said(found: Any) -> str:
    return " ".join(found.text().split())


def _effect(gaps: np.ndarray, **options: Any) -> Any:
    base = np.full(len(gaps), 0.5)
    return conclude(measured(np.stack([base, base + gaps]), TWO), test="t", **options)


def test_an_effect_that_one_topic_could_undo_is_labeled() -> None:
    """47 topics gain 0.03 or 0.04, one loses 0.4: a share of 11 % such topics is not ruled out, and enough."""
    gaps = 0.03 + 0.01 * (np.arange(48) % 2)
    gaps[5] = -0.4
    found = _effect(gaps)
    (effect,) = found.effects.main
    assert effect.found.significant
    assert effect.sensitive
    assert effect.sensitivity == sensitivity(np.zeros(48), effect.values, max_difference=1.0)
    assert effect.sensitivity.few_topics == (5,)
    assert "Sensitive to a few topics (q005)" in said(found)
    table = found.table("effects")
    assert (table.column("sensitive").values, table.column("few_topics").values) == ([True], [("q005",)])
    assert table.column("difference").mark == ["(*)"]
    assert [note.text for note in found.notes if note.rule == "sensitive"][-1].endswith("few topics: none")
    assert found.may_be_best == ("porter",)


def test_an_effect_that_all_topics_share_is_not_and_states_what_it_may_miss() -> None:
    gaps = 0.03 + 0.01 * (np.arange(48) % 2)
    found = _effect(gaps)
    (effect,) = found.effects.main
    assert (effect.found.significant, effect.sensitive) == (True, False)
    assert found.table("effects").column("difference").mark == ["*"]
    assert "Up to 6.1% of all topics" in said(found)
    assert not [note for note in found.notes if note.rule == "sensitive"]
    none = _effect(gaps - gaps.mean() + 0.001).effects.main[0]
    assert (none.found.significant, none.sensitivity) == (False, None)


def test_five_topics_give_no_verdict_on_effects_or_the_best() -> None:
    for topics, verdict in ((5, False), (6, True)):
        found = _effect(0.3 + 0.01 * np.arange(topics))
        (effect,) = found.effects.main
        assert (effect.found.significant, len(found.may_be_best)) == (verdict, 1 if verdict else 2)
        assert np.isnan(effect.detectable) >= (not verdict)
        assert ("5 topics, at least 6 are required" in said(found)) != verdict
