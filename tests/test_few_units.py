"""With 2 to 5 units no function gives a verdict; with enough of them and the same effect each does.

A verdict says that something is better, worse, equivalent, significant, passed, failed, or believed. A unit is what was
sampled independently, the smaller number where two groups are compared:

====================  ==================================================================================================
topics                comparisons, collections, slices, gates, reviews, stages, matrices, needs (information needs),
                      trade-offs, experiments, traces, steps of answers, judges of answers, drift of a judge, agreement
participants          user studies, also their topics; preferences for a side
users in each arm     A/B tests, interleaving, periods, off-policy estimates, click models, scores against outcomes
points of a baseline  watches and deployments
reviewed results      false positives of a change
====================  ==================================================================================================

Effects are large, have the same sign in all units, and vary a little.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from diagnosis.gates.check_scores import decided, pair
from few_users import (
    Verdicts,
    ab_test,
    clicks_preferred,
    mixed_lists,
    models,
    outcomes,
    periods,
    preferred_side,
    study,
    watched_days,
)  # fmt: skip
from judged.comparison import Choices, collections_of_scores
from judged.comparison.choices import JOINT_TESTS
from judged.comparison.slicing import by_slice, compare_slices, slice_topics
from judged.diagnosis.matrix import matrix
from judged.diagnosis.matrix.points import UNDECIDED
from judged.diagnosis.needs.needs import needs
from judged.diagnosis.stages import stages
from judged.diagnosis.stages.trace import SCORE
from judged.labels import Labels, quality
from judged.online.clicks import off_policy
from judged.pipelines.experiments.conclusions import conclude
from judged.pipelines.experiments.effects import factor_effects
from judged.pipelines.rag import waterfall
from judged.pipelines.rag.judge_bias import judge_bias
from judged.pipelines.traces import diff, failures, funnel, gaps, traces_of_runs
from judged.reports.changes import review
from judged.reports.changes.questions import collect_evidence
from judged.stats.agreement import cohen_kappa
from judged.stats.correction import losers
from judged.stats.effect import equivalence, non_inferiority
from judged.stats.paired import TESTS, paired_test
from judged.stats.prediction_powered import prediction_powered
from judged.stats.rank_stability import discriminative_power
from judged.stats.selection import may_be_best
from judged.stats.sensitivity import leave_one_topic_out
from online.clicks.test_off_policy import log_of as logged_propensities
from pipelines.experiments.test_conclusions import experiment
from slices_made import scores_of, slicing_of

FAST: dict[str, Any] = {"resamples": 2000}


def gain(n: int, start: float = 0.5) -> Any:
    """Return differences between `start` and `start` + 0.2."""
    return start + 0.2 * (np.arange(n) * 0.37 % 1.0)


def systems(n: int, *more: float) -> Any:
    """Return scores of an old and a new system, and of others that are better than the old one by `more`."""
    old = 0.1 + 0.1 * (np.arange(n) * 0.61 % 1.0)
    return scores_of({"old": old, "new": old + gain(n), **{f"new {g}": old + gain(n, g) for g in more}})


def collection(n: int) -> tuple[Any, Any, Any]:
    """Return judgments and two runs; the new one has the three relevant documents at the top, the old one below."""
    topics = [f"t{topic:02}" for topic in range(n)]

    def run(depth: int) -> Any:
        others = [f"x{rank}" for rank in range(depth + 3)]
        return {
            topic: [*others[: (at := depth + place % 3)], "r0", "r1", "r2", *others[at:]]
            for place, topic in enumerate(topics)
        }

    return {topic: dict.fromkeys(("r0", "r1", "r2"), 1) for topic in topics}, run(8), run(0)


def halves(n: int) -> tuple[Any, Any, Any, Any]:
    """Return a collection whose first n topics gain and whose other n do not, and the table of these slices."""
    qrels, old, new = collection(2 * n)
    kinds = {topic: {"kind": "x" if at < n else "y"} for at, topic in enumerate(qrels)}
    new = {topic: new[topic] if kinds[topic]["kind"] == "x" else old[topic] for topic in qrels}
    return qrels, old, new, slice_topics(kinds, "kind", min_topics=2)


def verdicts_of_pairs(pairs: Any) -> Verdicts:
    return [one for pair in pairs for one in (pair.significant, pair.better)]


def comparison(n: int, test: str) -> Verdicts:
    many = {"baseline": "old", "test": test} if test in JOINT_TESTS else {"test": test}
    scores = systems(n, *((0.4,) if test in JOINT_TESTS else ()))
    return verdicts_of_pairs(scores.compare(**many, **FAST).pairs[:1])


def pair_tested(n: int, test: str) -> Verdicts:
    how: dict[str, Any] = FAST | ({"max_difference": 1.0} if test == "bounded" else {})
    old, new = systems(n).values[:, 0]
    return [paired_test(old, new, test, **how).significant]


def equivalent_systems(n: int) -> Verdicts:
    old = systems(n).values[0, 0]
    scores = scores_of({"old": old, "new": old + gain(n, 0.0) / 1000})
    return [one.equivalence.significant for one in scores.compare(margin=0.05, **FAST).pairs]


def collections(n: int) -> Verdicts:
    found = collections_of_scores({"news": systems(n), "web": systems(n)}, baseline="old", **FAST)
    return [one for of in found.comparisons.values() for one in verdicts_of_pairs(of.pairs)]


def slices_compared(n: int) -> Verdicts:
    old = np.tile(systems(n).values[0, 0], 2)
    scores = scores_of({"old": old, "new": old + np.concatenate([gain(n), gain(n, 0.0) / 100])})
    found = compare_slices(scores, slicing_of(["x"] * n + ["y"] * n, min_topics=2), **FAST)
    return [
        *(one for row in found.rows for one in verdicts_of_pairs(filter(None, [row.pair]))),
        *(one.significant for one in found.between),
    ]


def slices_scored(n: int) -> Verdicts:
    scores = scores_of({"run": np.concatenate([gain(n), gain(n, 0.0)])})
    found = by_slice(scores, slicing_of(["x"] * n + ["y"] * n, min_topics=2))
    return [one for row in found.tested for one in (row.significant, row.better is not None)]


def gated(n: int) -> Verdicts:
    return [decided(pair(sign * gain(n, 0.1), min_topics=2))[0].status != "inconclusive" for sign in (-1, 1)]


def change_reviewed(n: int) -> Verdicts:
    kinds = {topic: {"kind": "x" if at % 2 else "y"} for at, topic in enumerate(collection(n)[0])}
    checks = {"check": [{"measure": "RR", "margin": 0.02, "min_topics": 2}], "gate": {"resamples": 2000}}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "reviewed.csv"
        table.write_text(f"run,wrong,reviewed\nbaseline,{n},{n}\ncandidate,0,{n}\n")
        qrels, old, new = collection(n)
        given: dict[str, Any] = {"config": checks, "reviewed": table, "attributes": kinds, "by": "kind"}
        made = review(qrels, {"old": old}, {"new": new}, "RR", **given)
    states = {one.question: one.state for one in made.questions}
    asked = ("Is the candidate better?", "Are fewer results wrong in the manual review?", "Does the gate pass?")
    return [made.decision != "undecided", *(states[name] in {"good", "bad"} for name in asked)]


def evidence(n: int) -> Verdicts:
    pages = [(user, shown, (0.5, 1.0), (0,) if shown == ["a", "b"] and (user + at) % 4 else ())
             for user in range(n) for shown in (["a", "b"], ["b", "a"]) for at in range(3)]  # fmt: skip
    made = off_policy(logged_propensities(pages, "conditional"), {"q": ["a", "b"]}, depth=2, topics={"q": "q"})
    return [
        one.verdict != "undecided" for one in collect_evidence(systems(min(n, 12)).compare(**FAST), None, None, made)
    ]


def trade_offs(n: int) -> Verdicts:
    return [not systems(n).tradeoff({"old": {"ms": 10.0}, "new": {"ms": 10.0}}, cost="ms").row("old").front]


def stages_compared(n: int) -> Verdicts:
    qrels, old, new = collection(n)
    found = stages(qrels, old, measure="AP", cutoff=20, baseline=new, fdr=0.5, **FAST)
    return [*(one.significant for one in found.changes if one.part == SCORE), found.lost[SCORE].count]


def matrices(n: int) -> Verdicts:
    qrels, old, new, slicing = halves(n)
    found = matrix(qrels, {"old": new, "new": old}, x="R@20", y="RR", slicing=slicing, fdr=0.5, cuts=(0.5, 0.3), **FAST)
    alone = matrix(*collection(n)[:2], x="R@20", y="RR", cuts=(0.5, 0.3), **FAST)
    return [
        *(
            point.quadrant not in {"", UNDECIDED}
            for point in (*found.points, *alone.points)
            if point.n == n and point.slice != "kind=y"
        ),
        *(one.significant for one in found.changes if (one.slice, one.part) == ("kind=x", "RR")),
        *(lost["RR"].count for lost in found.lost.values()),
    ]


def needs_compared(n: int) -> Verdicts:
    qrels, old, new = collection(2 * n)
    mapping = {topic: str(at // 2) for at, topic in enumerate(qrels)}
    found = needs(qrels, {"old": old, "new": new}, mapping, "RR")
    assert found.comparison is not None
    return verdicts_of_pairs(found.comparison.pairs)


def experiments(n: int) -> Verdicts:
    old = np.tile(systems(n).values[0, 0], 2)
    levels = {"none": {"stemmer": "none"}, "porter": {"stemmer": "porter"}}
    kinds = [f"{'xy'[at // n]}" for at in range(2 * n)]
    values = np.stack([old, old + np.concatenate([gain(n), gain(n, 0.0) / 100])])
    found = conclude(experiment(values[:, :n], levels, costs={name: {"p50_ms": 1.0} for name in levels}), **FAST)
    (effect,) = found.effects.main
    choices = Choices("t", baseline="none")
    (sliced,) = factor_effects(values, [*levels.values()], 0, choices, slicing_of(kinds, min_topics=2), 1.0).main
    return [
        effect.estimate and effect.estimate.significant, len(found.may_be_best) == 1, len(found.tradeoff.front) == 1,
        sliced.slices[0].estimate.significant, sliced.between_p <= 0.05,
    ]  # fmt: skip


def trace_losses(n: int) -> Verdicts:
    qrels, old, new, slicing = halves(n)
    before, after = (traces_of_runs({"bm25": run}) for run in (old, new))
    changes = diff(qrels, before, after, "RR", slicing=slicing, **FAST).changes
    of_slices = funnel(qrels, after, "RR", slicing=slicing)
    return [
        *(one.significant for one in changes if (one.slice, one.part) == ("kind=x", SCORE)),
        *(p <= 0.05 for _, p in of_slices.against_others.values()),
    ]


def trace_failures(n: int) -> Verdicts:
    qrels = {f"t{at:02}": {"a": 1, "b": 1, "c": 1, "d": 2} for at in range(n)}
    documents = [{"doc_id": doc, "day": f"2020-01-0{day}"} for day, doc in enumerate("acbd", 1)]
    runs = {topic: list(("ab", "acb")[at % 2]) for at, topic in enumerate(qrels)}
    found = failures(qrels, traces_of_runs({"list": runs}), "R@2", documents=documents)
    return [test.significant for test in found.tests]


def trace_gaps(n: int) -> Verdicts:
    qrels, _, new, slicing = halves(n)
    texts = {topic: "a zip" if at < n else "a tar" for at, topic in enumerate(qrels)}
    del slicing
    return list(gaps(qrels, traces_of_runs({"bm25": new}), "RR", entities=[{"entity": "zip"}, {"entity": "tar"}],
                     queries=texts).worse)  # fmt: skip


def answer_steps(n: int) -> Verdicts:
    rows = [{"query_id": f"q{at}", "run_id": run} for at in range(n) for run in "ab"]
    context = [{**row, "doc_id": doc} for row in rows for doc in "wxyz"]
    cited = [{**row, "sentence": 1} for row in context
             if row["run_id"] == "b" or (row["doc_id"] == "w" and int(row["query_id"][1:]) % 2)]  # fmt: skip
    given = {"answers": [{**row, "text": "So."} for row in rows], "context": context, "citations": cited}
    made = waterfall(given, {f"q{at}": dict.fromkeys("wxyz", 1) for at in range(n)})
    return [
        made.weakest["a"].p <= 0.05,
        *(one.p <= 0.05 for one in made.differences if (one.unit, one.step) == ("document", "cited")),
    ]


def judge_believed(n: int) -> Verdicts:
    people = systems(n).values[0, 0]
    found = [judge_bias(people, people + bias, np.tile(people, 3), margin=0.05) for bias in (gain(n), gain(n, 0) / 100)]
    return [one.within_margin in {"yes", "no"} for one in found]


def judge_worth(n: int) -> Verdicts:
    if n < 3:  # refused
        return []
    people = gain(n)
    return [prediction_powered(people, people + gain(n, 0) / 100, np.tile(people, 4), resamples=100).worth_interval]


def judge_drift(n: int) -> Verdicts:
    usual = {"kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "prompt": ""}
    rows = [
        {**usual, "query_id": f"q{at}", "doc_id": f"d{doc}", "judge": judge, "time": f"2026-01-01T{half:02}:{at:02}:00",
         "grade": float((3.0 - (at + doc) % 4 // 3) if half == 1 and judge == "ann" else 0)}
        for half in (0, 1) for at in range(n) for doc in (4 * half, 4 * half + 1) for judge in ("ann", "bob")
    ]  # fmt: skip
    return [one.drift_p <= 0.05 for one in quality(Labels.of(pa.Table.from_pylist(rows))).judges]


def judges_disagree(n: int) -> Verdicts:
    first = np.tile([0.0, 1.0, 0.0, 1.0, 0.0], n)
    second = 1 - first
    second[::15] = first[::15]
    return ["disagree more" in cohen_kappa(first, second, groups=np.repeat(np.arange(n), 5)).sentence]


def robust(n: int) -> Verdicts:
    old, new = systems(n).values[:, 0]
    return [leave_one_topic_out(old, new, lambda kept: paired_test(old[kept], new[kept], "t").p).significant]


def margins(n: int) -> Verdicts:
    old, new = systems(n).values[:, 0]
    return [equivalence(old, old + gain(n, 0) / 1000, 0.05).significant, non_inferiority(old, new, 0.05).significant]


FUNCTIONS: dict[str, tuple[Callable[[int], Verdicts], int]] = {  # and how many units are enough
    **{f"compare {test}": (partial(comparison, test=test), 12) for test in (*TESTS, *JOINT_TESTS)},
    **{f"paired_test {test}": (partial(pair_tested, test=test), 12) for test in TESTS if test != "bayes"},
    "compare with a margin": (equivalent_systems, 12),
    "compare_collections": (collections, 12),
    "compare_slices": (slices_compared, 12),
    "by_slice": (slices_scored, 12),
    "gate": (gated, 12),
    "review of a change": (change_reviewed, 12),
    "evidence of a change": (evidence, 120),
    "tradeoff": (trade_offs, 12),
    "stages": (stages_compared, 12),
    "matrix": (matrices, 12),
    "needs": (needs_compared, 12),
    "conclude": (experiments, 12),
    "traces diff and funnel": (trace_losses, 12),
    "traces failures": (trace_failures, 12),
    "traces gaps": (trace_gaps, 12),
    "waterfall": (answer_steps, 12),
    "judge_bias": (judge_believed, 40),
    "prediction_powered": (judge_worth, 40),
    "quality": (judge_drift, 12),
    "cohen_kappa": (judges_disagree, 12),
    "study, participants": (lambda n: study(n, 8), 12),
    "study, topics": (lambda n: study(12, n), 8),
    "sides": (preferred_side, 12),
    "abtest": (ab_test, 60),
    "overview": (periods, 12),
    "interleaving": (mixed_lists, 100),
    "against_qrels": (outcomes, 12),
    "preference_agreement": (clicks_preferred, 12),
    "compare_models": (models, 12),
    "watch": (watched_days, 28),
    "equivalence and non_inferiority": (margins, 12),
    "leave_one_topic_out": (robust, 12),
    "discriminative_power": (lambda n: [discriminative_power(systems(n).values[:, 0], test="t").significant], 12),
    "may_be_best": (lambda n: [not may_be_best(systems(n).values[:, 0], test="t").all()], 12),
    "losers": (lambda n: [losers(-gain(n), 0.5).count], 12),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("units", [2, 3, 4, 5])
def test_too_few_units_give_no_verdict(name: str, units: int) -> None:
    function, _ = FUNCTIONS[name]
    assert not any(function(units))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_enough_units_give_every_verdict(name: str) -> None:
    function, enough = FUNCTIONS[name]
    given = function(enough)
    assert given
    assert all(given)
