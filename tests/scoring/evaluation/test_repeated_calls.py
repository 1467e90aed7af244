"""Many small calls: what is made later, or kept with prepared qrels, says what it would have said at once."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import weakref
from typing import Any

import pytest

import judged
from judged import Qrels, Scores, evaluate
from judged.scoring import measures
from judged.scoring.measures.registry import REGISTRY

MEASURES = ["nDCG@10", "AP", "RR(rel=2)", "nDCG(gain=exp2)", "IdealDCG@3", "P@5"]


class _Docs(dict[str, float]):
    """A dict that can be watched."""


def _made(seed: int = 0) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Make ten topics with many ties; q9 is missing from the run."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    topics = [f"q{at}" for at in range(10)]
    qrels = {topic: {f"d{at}": chance.randint(-1, 3) for at in range(20)} for topic in topics}
    run = {topic: {f"d{at}": float(chance.randint(0, 4)) for at in range(30)} for topic in topics[:9]}
    return qrels, {"other": {"d1": 1.0}, **run}


def _quietly(*given: Any, **options: Any) -> Scores:
    with pytest.warns(judged.JudgedWarning, match="no documents returned for 1 of 10 topics"):
        return evaluate(*given, **options)


def test_notes_are_those_of_the_call_whatever_happens_to_its_inputs() -> None:
    qrels, run = _made()
    names = list(MEASURES)
    scores = _quietly(qrels, run, names)
    known = _quietly(qrels, run, names).notes
    for docs in (*run.values(), *qrels.values(), run, qrels):
        docs.clear()
    names[:] = ["P@1"]
    assert scores.notes == known
    assert {note.rule for note in known} >= {"ties", "missing-topics", "extra-topics", "merged-grades"}
    assert "depending on the order of tied documents" in next(note.text for note in known if note.rule == "ties")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda scores: pickle.loads(pickle.dumps(scores))])  # noqa: S301
def test_notes_go_with_a_copy(again: Any) -> None:
    qrels, run = _made()
    made = again(_quietly(qrels, run, MEASURES))
    assert made.notes == _quietly(qrels, run, MEASURES).notes
    assert made.per_topic() == _quietly(qrels, run, MEASURES).per_topic()


def test_scores_whose_notes_nobody_read_do_not_hold_the_run() -> None:
    qrels, given = _made()
    run = {topic: _Docs(docs) for topic, docs in given.items()}
    watched = [weakref.ref(docs) for docs in run.values()]
    scores = _quietly(Qrels.of(qrels), run, MEASURES)
    run.clear()
    gc.collect()
    assert not any(docs() for docs in watched)
    assert scores.notes


def test_notes_of_measures_that_read_the_whole_run_do_not_need_it_later() -> None:
    qrels, run = _made()
    facts = {f"d{at}": {"length": 10 * at} for at in range(30)}
    scores, known = (_quietly(qrels, run, ["TBG", "nDCG"], documents=facts) for _ in range(2))
    known = known.notes
    run.clear()
    assert scores.notes == known


@pytest.mark.parametrize("ties", ["docid", "docid-rising", "stable", "expected", "bounds"])
def test_prepared_qrels_change_nothing(ties: Any) -> None:
    qrels, _ = _made()
    prepared = Qrels.of(qrels)
    for seed in range(5):
        run = _made(seed)[1]
        for topics in ("qrels", "both", "run"):
            often, once = (_quietly(given, run, MEASURES, topics=topics, ties=ties) for given in (prepared, qrels))
            assert often.per_topic() == once.per_topic()
            assert often.notes == once.notes


def test_more_ideals_than_are_kept() -> None:
    qrels, run = _made()
    prepared = Qrels.of(qrels)
    wide = _quietly(prepared, run, "nDCG@1..200")
    for name in ("nDCG@1", "nDCG@200", "nDCG(gain=exp2)@7"):
        assert _quietly(prepared, run, name).per_topic() == _quietly(qrels, run, name).per_topic()
    assert wide.value("nDCG@200") == _quietly(qrels, run, "nDCG@200").value("nDCG@200")


def test_a_name_means_the_measure_that_was_registered_last() -> None:
    def registered(worth: float) -> type[measures.Measure]:
        @measures.measure(category="set", cite="", use="", misleads="", name="OfThisTest")
        class OfThisTest(measures.Measure):
            def score(self, judged: Any) -> Any:
                return judged.returned * worth

        return OfThisTest

    for worth in (1.0, 2.0):
        made = registered(worth)
        assert type(measures.parse("OfThisTest")) is made
    del REGISTRY._entries["OfThisTest"]  # pyright: ignore[reportPrivateUsage]
