"""Attribution of wrong answers: planted defects, sums, and hand-made trials of every part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from judged.errors import InputError
from judged.pipelines.trajectories import where
from judged.pipelines.trajectories.where import PARTS
from pipelines.trajectories.agents import simulated

LARGEST = ["corpus", "queries", "opened", "cited", "stopped", "looped"]


def shares(result: Any, run: str = "agent") -> dict[str, float]:
    return {part.name: part.share for part in result.parts if part.run == run}


@pytest.mark.parametrize("defect", LARGEST)
def test_planted_defects_are_the_largest_part(defect: Any) -> None:
    records, qrels, corpus = simulated(defect)
    result = where(records, qrels, corpus=corpus)
    largest = result.largest("agent")
    assert largest is not None
    assert largest.name == defect
    wrong = {name: share for name, share in shares(result).items() if name in PARTS}
    assert sum(wrong.values()) == pytest.approx(1 - shares(result)["accuracy"], abs=1e-12)
    assert wrong[defect] > 2 * max(share for name, share in wrong.items() if name != defect)


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_several_systems_sum_to_one(seed: int) -> None:
    records = [
        record
        for run, defect in (("a", "none"), ("b", "looped"), ("c", "cited"))
        for record in simulated(defect, run=run, seed=seed, rate=0.3, questions=10)[0]  # type: ignore[arg-type]
    ]
    del records[3::7]  # unequal numbers of trials
    result = where(records, simulated("none", questions=10)[1])
    for run in "abc":
        assert sum(shares(result, run).values()) == pytest.approx(1, abs=1e-12)


SEARCH = {"kind": "search", "query": "a", "documents": ["x", "e"]}
MISS = {"kind": "search", "query": "b", "documents": ["x", "y"]}
OPEN = {"kind": "open", "documents": ["e"]}


@pytest.mark.parametrize(
    ("trial", "part"),
    [
        ({"steps": [SEARCH, OPEN], "citations": ["e"], "correct": True}, ""),
        ({"steps": [SEARCH, OPEN], "citations": ["e"]}, "answer"),
        ({"steps": [SEARCH, OPEN], "citations": ["x"]}, "cited"),
        ({"steps": [SEARCH], "citations": ["e"]}, "opened"),
        ({"steps": [SEARCH, OPEN], "answer": ""}, "abstained"),
        ({"steps": [SEARCH, OPEN], "abstained": True}, "abstained"),
        ({"steps": [SEARCH, OPEN], "status": "timeout"}, "failed"),
        ({"steps": [MISS, {**MISS, "query": "c"}, {**MISS, "documents": ["z"]}]}, "looped"),
        ({"steps": [MISS, MISS]}, "looped"),  # half of the searches
        ({"steps": [MISS]}, "stopped"),
        ({"steps": []}, "stopped"),
        ({"steps": [MISS, {**MISS, "query": "c", "documents": ["z"]}]}, "queries"),
        ({"steps": [{"kind": "search", "query": "b"}, MISS]}, "unknown"),
        ({"steps": [OPEN], "citations": ["e"]}, "answer"),  # opened without a search
        ({"query_id": "none", "steps": [SEARCH, OPEN], "citations": ["e"]}, "unknown"),
        ({"query_id": "gap", "steps": [SEARCH, OPEN], "citations": ["e"]}, "corpus"),
    ],
)
def test_each_part_by_hand(trial: dict[str, Any], part: str) -> None:
    # The first trial needs two searches to retrieve the evidence.
    good = {"query_id": "q", "steps": [MISS, SEARCH, OPEN], "citations": ["e"], "answer": "7", "correct": True}
    tested = {"query_id": "q", "answer": "7", "correct": False, **trial}
    result = where([good, tested], {"q": {"e": 1, "n": 0}, "gap": {"g": 1}}, corpus=["e", "x", "y", "z"])
    assert result.losses[-1].part == part or result.losses[0].part == part
    assert sum(loss.part == "" for loss in result.losses) == 1 + (part == "")


def test_stopped_early_means_fewer_searches_than_the_median() -> None:
    misses = [{"kind": "search", "query": f"{i}", "documents": [f"x{i}"]} for i in range(8)]

    def trial(query_id: str, searches: int, *, found: bool) -> dict[str, Any]:
        steps = [*misses[: searches - found], *[SEARCH] * found]
        return {"query_id": query_id, "answer": "7", "correct": found, "steps": steps}

    # the median of q is 2, that of r is 7, and that of all questions is 5
    records = [trial("q", n, found=True) for n in (1, 2, 6)] + [trial("r", n, found=True) for n in (5, 7, 8)]
    records += [trial(query_id, n, found=False) for query_id, n in (("q", 1), ("q", 2), ("r", 6), ("p", 4), ("p", 6))]
    losses = where(records, {query_id: {"e": 1} for query_id in "pqr"}).losses
    wrong = [(loss.query_id, loss.part) for loss in losses if loss.part]
    assert wrong == [("p", "stopped"), ("p", "queries"), ("q", "stopped"), ("q", "queries"), ("r", "stopped")]


def test_steps_and_documents_of_losses() -> None:
    base = {"answer": "7", "correct": False, "citations": ["x"]}
    steps = [{"kind": "reason"}, MISS, SEARCH, MISS]
    trials = [
        {**base, "query_id": "a", "steps": [*steps, OPEN]},  # not cited: the first search with the evidence
        {**base, "query_id": "b", "steps": steps},  # not opened
        {**base, "query_id": "c", "steps": [MISS, {"kind": "reason"}, {**MISS, "query": "c", "documents": ["z"]}]},
        {**base, "query_id": "d", "steps": []},
    ]
    losses = where(trials, {q: {"e": 1, "f": 1} for q in "abcd"}).losses
    assert [(loss.part, loss.step) for loss in losses] == [("cited", 3), ("opened", 3), ("queries", 3), ("stopped", 0)]
    assert [loss.documents for loss in losses] == [("e", "f"), ("e", "f"), ("e", "f"), ("e", "f")]


def test_losses_after_all_evidence_was_retrieved_show_it() -> None:
    wrong = {"query_id": "q", "answer": "7", "correct": False, "citations": ["e"]}
    losses = where([{**wrong, "steps": [MISS, SEARCH, OPEN]}, {**wrong, "steps": [OPEN]}], {"q": {"e": 1}}).losses
    assert [loss[3:] for loss in losses] == [("answer", 2, ("e",)), ("answer", 0, ("e",))]


def test_without_opening_or_citations() -> None:
    wrong = {"query_id": "q", "answer": "7", "correct": False, "steps": [SEARCH]}
    cites = {**wrong, "citations": ["e"]}
    assert [loss.part for loss in where([wrong, cites], {"q": {"e": 1}}).losses] == ["cited", "answer"]
    assert [loss.part for loss in where([wrong], {"q": {"e": 1}}).losses] == ["unknown"]


def test_required_evidence() -> None:
    trial = {"query_id": "q", "answer": "7", "correct": False, "citations": ["a", "b"],
             "steps": [{"kind": "search", "query": "1", "documents": ["a", "b"]}]}  # fmt: skip
    qrels = {"q": {"a": 1, "b": 1, "c": 1}}
    assert where([trial], qrels).losses[0].part == "answer"
    result = where([trial], qrels, required="all")
    assert (result.losses[0].part, result.losses[0].documents) == ("queries", ("c",))
    tables = {
        "trials": [{"query_id": "q", "answer": "7"}],
        "steps": [{"query_id": "q", "kind": "search", "query": "1", "documents": ["a", "b"]}],
        "correctness": [{"query_id": "q", "verdict": "not"}],
        "citations": [{"query_id": "q", "doc_id": "b"}],
        "hops": [{"query_id": "q", "hop": hop, "doc_id": doc} for hop, doc in (("1", "a"), ("1", "c"), ("2", "b"))],
    }
    assert where(tables).losses[0].part == "cited"
    with pytest.raises(InputError, match="any or all"):
        where([trial], qrels, required="some")  # type: ignore[arg-type]


def test_headroom_by_hand() -> None:
    """Two of four trials retrieve the evidence, one of which is right; one stopped early."""
    base = {"answer": "7", "citations": ["e"]}
    long = [MISS, {**MISS, "query": "c", "documents": ["z"]}, {**MISS, "query": "d", "documents": ["w"]}]
    trials = [
        {**base, "query_id": "a", "steps": [*long[:2], SEARCH], "correct": True},
        {**base, "query_id": "b", "steps": [*long[:2], SEARCH], "correct": False},
        {**base, "query_id": "c", "steps": long[:1], "correct": False},
        {**base, "query_id": "d", "steps": long, "correct": False},
    ]
    result = where(trials, {q: {"e": 1} for q in "abcd"})
    assert {row.name: row.share for row in result.headroom} == {
        "retriever": 0.25,
        "stopping rule": 0.125,
        "reader": 0.25,
    }
    assert shares(result)["accuracy"] == 0.25


def test_right_answers_without_evidence_are_counted() -> None:
    lucky = {"query_id": "q", "answer": "7", "correct": True, "steps": [MISS]}
    result = where([lucky, {**lucky, "query_id": "p", "steps": [SEARCH]}], {"q": {"e": 1}, "p": {"e": 1}})
    assert (result.unsupported[0].trials, result.unsupported[0].share) == (1, 0.5)


def test_slices_have_their_own_shares() -> None:
    records, qrels, _ = simulated("looped", questions=20)
    attributes = {query_id: {"half": "first" if int(query_id[1:]) < 10 else "second"} for query_id in qrels}
    from judged.comparison.slicing import slice_topics

    result = where(records, qrels, slicing=slice_topics(attributes, "half", min_topics=1))
    for name in ("half=first", "half=second"):
        assert sum(part.share for part in result.slices if part.slice == name) == pytest.approx(1)


@pytest.mark.slow
def test_intervals_of_parts_cover_the_truth() -> None:
    """Questions differ in difficulty, and trials of a question are alike: 95% intervals cover in 93% to 97%."""
    rng, covered, samples = np.random.default_rng(55), 0, 600
    for _ in range(samples):
        difficulty = rng.beta(1, 1, 40)
        lost = rng.random((40, 3)) < difficulty[:, None]
        trials = [
            {"query_id": f"q{q}", "answer": "7", "correct": not lost[q, t], "steps": [MISS if lost[q, t] else SEARCH]}
            for q in range(40) for t in range(3)
        ]  # fmt: skip
        result = where(trials, {f"q{q}": {"e": 1} for q in range(40)})
        (low, high) = next(part.ci for part in result.parts if part.name == "accuracy" and part.ci)
        covered += low <= 0.5 <= high
    assert 0.93 <= covered / samples <= 0.97
