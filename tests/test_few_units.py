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
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from clicks.test_off_policy import log_of as logged_propensities
from experiments.test_conclusions import measured
from gates.made import decided, pair
from judged.changes import review
from judged.changes.evidence import told
from judged.clicks import compare_models, off_policy
from judged.comparison import collections_of_scores
from judged.comparison.choices import MANY
from judged.diagnosis.matrix import matrix
from judged.diagnosis.needs.needs import needs
from judged.diagnosis.stages import stages
from judged.experiments.conclusions import conclude
from judged.labels import Labels, quality
from judged.online import interleaving, overview
from judged.online.abtest.abtest import abtest
from judged.online.offline import against_qrels, preference_agreement
from judged.rag import waterfall
from judged.rag.judge_bias import judge_bias
from judged.slicing import by_slice, compare_slices, slice_topics
from judged.stats.agreement import cohen_kappa
from judged.stats.discoveries import losers
from judged.stats.discrimination import discriminative_power
from judged.stats.equivalence_test import equivalence, non_inferiority
from judged.stats.paired import TESTS, paired_test
from judged.stats.prediction_powered import prediction_powered
from judged.stats.robustness import leave_one_topic_out
from judged.stats.selection import may_be_best
from judged.studies.preference import sides
from judged.studies.records import StudyRecords
from judged.studies.study_report import report
from judged.traces import diff, failures, funnel, gaps, traces_of_runs
from judged.watch.config import Event
from judged.watch.rollback import rollbacks
from online.interleaving.test_credit import draft, logged
from online.offline.pages_made import log_of
from slices_made import scores_of, slicing_of
from studies_made import records
from typed_logs import typed_log
from watch.simulated_days import FIRST, config, days, look

DAY = 86_400_000
FAST: dict[str, Any] = {"resamples": 2000}
Verdicts = list[Any]  # each is falsy if there is none


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
    return [one for pair in pairs for one in (pair.significant, pair.better, pair.equivalence and
                                              pair.equivalence.significant)]  # fmt: skip


def comparison(n: int, test: str) -> Verdicts:
    many = {"baseline": "old", "test": test} if test in MANY else {"test": test}
    scores = systems(n, *((0.4,) if test in MANY else ()))
    return verdicts_of_pairs(scores.compare(**many, **FAST).pairs[:1])


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
    return [one for row in found.findings for one in (row.significant, row.better is not None)]


def gated(n: int) -> Verdicts:
    return [decided(pair(sign * gain(n, 0.1), min_topics=2))[0].status != "inconclusive" for sign in (-1, 1)]


def change_reviewed(n: int) -> Verdicts:
    kinds = {topic: {"kind": "x" if at % 2 else "y"} for at, topic in enumerate(collection(n)[0])}
    checks = {"check": [{"measure": "RR", "margin": 0.02, "min_topics": 2}], "resamples": 2000}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "reviewed.csv"
        table.write_text(f"run,wrong,reviewed\nbaseline,{n},{n}\ncandidate,0,{n}\n")
        qrels, old, new = collection(n)
        given: dict[str, Any] = {"config": checks, "reviewed": table, "attributes": kinds, "by": "kind"}
        made = review(qrels, {"old": old}, {"new": new}, "RR", **given)
    states = {one.question: one.state for one in made.questions}
    asked = ("Is it better?", "Are fewer results wrong in review?", "Does the gate let it pass?")
    return [made.decision != "undecided", *(states[name] in {"good", "bad"} for name in asked)]


def evidence(n: int) -> Verdicts:
    pages = [(user, shown, (0.5, 1.0), (0,) if shown == ["a", "b"] else (1,) if user % 5 else ())
             for user in range(n) for shown in (["a", "b"], ["b", "a"]) for _ in range(3)]  # fmt: skip
    made = off_policy(logged_propensities(pages, "conditional"), {"q": ["a", "b"]}, depth=2, topics={"q": "q"})
    return [one.says != "undecided" for one in told(systems(min(n, 12)).compare(**FAST), None, None, made)]


def trade_offs(n: int) -> Verdicts:
    found = systems(n).tradeoff({"old": {"ms": 10.0}, "new": {"ms": 10.0}}, cost="ms")
    return [not row.front for row in found.rows]


def stages_compared(n: int) -> Verdicts:
    qrels, old, new = collection(n)
    found = stages(qrels, old, measure="AP", cutoff=20, baseline=new, fdr=0.5, **FAST)
    return [*(one.significant for one in found.changes), *(one.count for one in found.lost.values())]


def matrices(n: int) -> Verdicts:
    qrels, old, new, slicing = halves(n)
    found = matrix(qrels, {"old": new, "new": old}, x="R@20", y="RR", slicing=slicing, fdr=0.5, cuts=(0.5, 0.5), **FAST)
    return [
        *(point.quadrant not in {"", "not told apart"} for point in found.points if not point.every),
        *(one.significant for one in found.changes if one.slice == "kind=x"),
        *(one.count for by_axis in found.lost.values() for one in by_axis.values()),
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
    kinds = {f"q{at:03}": {"kind": "x" if at < n else "y"} for at in range(2 * n)}
    values = np.stack([old, old + np.concatenate([gain(n), gain(n, 0.0) / 100])])
    slicing: dict[str, Any] = {"attributes": slice_topics(kinds, "kind", min_topics=2)}
    del slicing
    values = values[:, :n]
    found = conclude(measured(values, levels), **FAST)
    (effect,) = found.effects.main
    return [effect.found and effect.found.significant, len(found.may_be_best) == 1, len(found.tradeoff.front) == 1]


def trace_losses(n: int) -> Verdicts:
    qrels, old, new, slicing = halves(n)
    before, after = (traces_of_runs({"bm25": run}) for run in (old, new))
    changes = diff(qrels, before, after, "RR", slicing=slicing, **FAST).changes
    of_slices = funnel(qrels, after, "RR", slicing=slicing)
    return [
        *(one.significant for one in changes if one.slice == "kind=x"),
        *(p <= 0.05 for _, p in of_slices.against_others.values()),
    ]


def trace_failures(n: int) -> Verdicts:
    qrels = {f"t{at:02}": {"a": 1, "b": 1, "c": 1, "d": 2} for at in range(n)}
    documents = [{"doc_id": doc, "day": f"2020-01-0{day}"} for day, doc in enumerate("acbd", 1)]
    runs = {topic: list(("ab", "acb")[at % 2]) for at, topic in enumerate(qrels)}
    found = failures(qrels, traces_of_runs({"list": runs}), "R@2", documents=documents, date="day")
    return [test.found for test in found.tests]


def trace_gaps(n: int) -> Verdicts:
    qrels, _, new, slicing = halves(n)
    texts = {topic: "a zip" if at < n else "a tar" for at, topic in enumerate(qrels)}
    del slicing
    return list(gaps(qrels, traces_of_runs({"bm25": new}), "RR", entities=[{"entity": "zip"}, {"entity": "tar"}],
                     queries=texts).worse)  # fmt: skip


def answer_steps(n: int) -> Verdicts:
    rows = [{"query_id": f"q{at}", "run_id": run} for at in range(n) for run in "ab"]
    context = [{**row, "doc_id": doc} for row in rows for doc in "wxyz"]
    cited = [{**row, "sentence": 1} for row in context if row["run_id"] == "b" or (row["doc_id"] == "w" and
                                                                                   row["query_id"][-1] in "02468")]  # fmt: skip
    given = {"answers": [{**row, "text": "So."} for row in rows], "context": context, "citations": cited}
    made = waterfall(given, {f"q{at}": dict.fromkeys("wxyz", 1) for at in range(n)})
    return [made.weakest["a"].p <= 0.05, *(one.p <= 0.05 for one in made.differences)]


def judge_believed(n: int) -> Verdicts:
    people = systems(n).values[0, 0]
    found = [judge_bias(people, people + bias, np.tile(people, 3), margin=0.05) for bias in (gain(n), gain(n, 0) / 100)]
    return [one.believed in {"yes", "no"} for one in found]


def judge_worth(n: int) -> Verdicts:
    people = gain(n)
    return [prediction_powered(people, people + gain(n, 0) / 100, np.tile(people, 4), resamples=100).worth_interval]


def judge_drift(n: int) -> Verdicts:
    usual = {"kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "prompt": ""}
    rows = [
        {**usual, "query_id": f"q{at}", "doc_id": f"d{doc}", "judge": judge, "at": f"2026-01-01T{half:02}:{at:02}:00",
         "grade": float((3.0 - (at + doc) % 4 // 3) if half == 1 and judge == "ann" else 0)}
        for half in (0, 1) for at in range(n) for doc in (4 * half, 4 * half + 1) for judge in ("ann", "bob")
    ]  # fmt: skip
    return [one.drift_p <= 0.05 for one in quality(Labels.of(pa.Table.from_pylist(rows))).judges]


def judges_disagree(n: int) -> Verdicts:
    first = np.tile([0.0, 1.0, 0.0, 1.0, 0.0], n)
    second = 1 - first
    second[::15] = first[::15]
    return ["disagree more" in cohen_kappa(first, second, groups=np.repeat(np.arange(n), 5)).sentence]


def study(people: int, topics: int) -> Verdicts:
    found = report(records(people=people, topics=topics, effect=9.0), outcome="satisfaction")
    return [row["says"] not in {"not tested", "undecided"} for row in found.table("effects").records()]


def preferred_side(n: int) -> Verdicts:
    people = [{"participant": f"p{at}"} for at in range(n)]
    shown = [{**one, "query_id": f"t{at}", "left": "ab"[at % 2], "right": "ba"[at % 2], "preferred": "ab"[at % 2]}
             for one in people for at in range(4)]  # fmt: skip
    return [sides(StudyRecords.of({"participants": people, "trials": [], "preferences": shown})).preferred]


def click_log(n: int, side: Callable[[int, int], dict[str, Any]], chance: Callable[[dict[str, Any], int], bool]) -> Any:
    """Return a log in which each user has twelve pages, half of them a week later, and clicks on some."""
    pages = [
        {"serp": 12 * user + at, "session": user, "user": user, "time_ms": (at // 6) * 7 * DAY + 1000 * (at + user),
         "query": f"q{at % 2}", "n_shown": 10, "zero_results": False, **side(user, at)}
        for user in range(n) for at in range(12)
    ]  # fmt: skip
    ends = {"session": 0, "user": 0, "query": "q0", "n_shown": 10, "zero_results": False, **side(0, 0)}
    pages += [{**ends, "serp": 12 * n, "time_ms": 14 * DAY - 1}]
    events = [
        {"serp": page["serp"], "session": page["session"], "user": page["user"], "time_ms": page["time_ms"] + 1000,
         "rank": 1, "action": "click", "object_id": "d", "dwell_ms": 60_000}
        for page in pages[:-1] if chance(page, (page["serp"] % 12 + page["user"] % 3) % 6)
    ]  # fmt: skip
    return typed_log(pages, events)


def ab_test(n: int) -> Verdicts:
    log = click_log(2 * n, lambda user, _: {"variant": "ab"[user % 2]},
                    lambda page, at: at < (5 if page["variant"] == "b" else 1))  # fmt: skip
    found = abtest(log, primary="SatisfiedPageCTR", metrics=(), min_users=2)
    return [one.decision != "keep running" for one in found.verdicts]


def periods(n: int) -> Verdicts:
    log = click_log(n, lambda *_: {}, lambda page, at: at < (5 if page["time_ms"] >= 7 * DAY else 1))
    found = overview(log, "PageCTR")
    return [" is higher" in sentence for sentence in found.sentences]


def mixed_lists(n: int) -> Verdicts:
    pages = [(f"u{user}", draft(["a", "b", "a", "b"] if at % 2 else ["b", "a", "b", "a"]),
              [2 if at % 2 else 1] if (user + at) % 7 else [])
             for user in range(n) for at in range(4)]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        found = interleaving(logged(Path(folder), pages), baseline="a", min_users=2)
        return [found.decision != "keep running"]


def outcomes(n: int) -> Verdicts:
    pages = [
        {"topic": "t", "shown": ["a", "b"] if good else ["b", "a"], "user": user, "clicks": (
            ["a"] if good and (user + at) % 5 else ["b", "a"] if not good and (user + at) % 3 == 0 else [])}
        for user in range(n) for at in range(4) for good in (True, False)
    ]  # fmt: skip
    qrels = {"t": {"a": 2, "b": 0}}
    found = against_qrels(log_of(pages), qrels, measures="RR", outcomes=["clicked"])
    said = preference_agreement(log_of(pages), qrels)
    return [
        *("it predicts it" in one for one in found.sentences),
        *("the clicks say more" in one or "the clicks agree less" in one for one in said.sentences),
    ]


def models(n: int) -> Verdicts:
    rng = np.random.default_rng(0)
    docs = [f"d{doc}" for doc in range(6)]
    pages = [{"query": "q", "shown": [docs[at] for at in order], "user": user,
              "clicks": [docs[at] for at in order if at < 3 and (user + page + at) % 9]}
             for user in range(n) for page in range(12) for order in [rng.permutation(6).tolist()]]  # fmt: skip
    rows = compare_models(log_of(pages, has=frozenset({"shown", "clicks", "ranks", "unclicked"})), ["RCTR", "DCTR"],
                          folds=2).rows  # fmt: skip
    return [row.chosen and row.parameters > min(one.parameters for one in rows) for row in rows]


def watched_days(n: int) -> Verdicts:
    found = look(days(np.random.default_rng(1), n + 14, np.repeat([0.4, 0.1], [n, 14])), base=n)
    event = Event(FIRST + timedelta(n), "deployment", deploy=True)
    asked = replace(config(n), event=(event,))
    return [found.state == "alarm", *(one.decision in {"keep", "roll back"} for one in rollbacks([found], asked))]


def statistics(n: int) -> Verdicts:
    old, new = systems(n).values[:, 0]
    close = old + gain(n, 0) / 1000
    robust = leave_one_topic_out(old, new, lambda kept: paired_test(old[kept], new[kept], "t").p)
    return [
        equivalence(old, close, 0.05).significant, non_inferiority(old, new, 0.05).significant,
        discriminative_power([old, new], test="t").significant, robust.significant,
        not may_be_best([old, new], test="t").all(), losers(-gain(n), 0.5).count,
    ]  # fmt: skip


FUNCTIONS: dict[str, tuple[Callable[[int], Verdicts], int]] = {  # and how many units are enough
    **{f"compare {test}": (partial(comparison, test=test), 12) for test in (*TESTS, *MANY)},
    **{f"paired_test {test}": (lambda n, test=test: [paired_test(*systems(n).values[:, 0], test, **FAST).significant], 12)
       for test in TESTS if test not in {"bayes", "bounded"}},
    "equivalence": (equivalent_systems, 12),
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
    "interleaving": (mixed_lists, 120),
    "against_qrels and preference_agreement": (outcomes, 12),
    "compare_models": (models, 12),
    "watch": (watched_days, 28),
    "statistics": (statistics, 12),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("units", [2, 3, 4, 5])
def test_too_few_units_give_no_verdict(name: str, units: int) -> None:
    function, _ = FUNCTIONS[name]
    given = function(units)
    assert given
    assert not any(given), given


@pytest.mark.parametrize("name", FUNCTIONS)
def test_enough_units_give_every_verdict(name: str) -> None:
    function, enough = FUNCTIONS[name]
    given = function(enough)
    assert given
    assert all(given), given
