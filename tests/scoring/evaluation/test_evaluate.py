"""`evaluate`: which topics count, what is warned of, and what is refused."""

from __future__ import annotations

import hashlib
import platform
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import judged
from judged import InputError, JudgedWarning, MeasureError, evaluate
from judged.scoring.evaluation.notes import few_topics_note
from judged.stats.sample_size import smallest_p
from strategies import Qrels, Run, collections

# q1: AP 1, q2: AP 1/2, q3: not in the run, q4: nothing relevant; x: only in the run
QRELS = {"q1": {"d1": 1}, "q2": {"d2": 1, "d1": 0}, "q3": {"d3": 1}, "q4": {"d4": 0}}
RUN = {"x": {"d1": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}, "q1": {"d1": 1.0}, "q4": {"d4": 1.0, "d1": 0.5}}

quiet = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")


def notes(*args: Any, **options: Any) -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return evaluate(*args, **options).warnings


# --- topics -----------------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize(
    ("policy", "topics", "mean", "returned", "relevant"),
    [
        ("qrels", ("q1", "q2", "q3", "q4"), (1 + 1 / 2 + 0 + 0) / 4, 5, 3),
        ("both", ("q1", "q2", "q4"), (1 + 1 / 2 + 0) / 3, 5, 2),
        ("run", ("q1", "q2", "q4", "x"), (1 + 1 / 2 + 0 + 0) / 4, 6, 2),
    ],
)
def test_topic_policies(policy: Any, topics: tuple[str, ...], mean: float, returned: int, relevant: int) -> None:
    scores = evaluate(QRELS, RUN, ["AP", "NumRet", "NumRel", "NumQ", "AP(undefined=skip)"], topics=policy)
    found = scores.aggregate()["run"]
    assert scores.query_ids == topics
    assert list(scores.per_topic()["run"]["AP"]) == list(topics)
    assert found["AP"] == mean
    assert (found["NumRet"], found["NumRel"], found["NumQ"]) == (returned, relevant, len(topics))
    assert scores.policies.topics == policy
    defined = 3 if policy == "qrels" else 2
    assert found["AP(undefined=skip)"] == (1 + 1 / 2) / defined


@quiet
def test_each_run_has_its_own_topics() -> None:
    runs = {"all": RUN, "one": {"q2": {"d2": 1.0}, "y": {"d": 1.0}}}
    scores = evaluate(QRELS, runs, ["AP", "NumQ"], topics="both")
    assert scores.query_ids == ("q1", "q2", "q4")
    assert scores.counted.tolist() == [[True, True, True], [False, True, False]]
    assert scores.per_topic()["one"] == {"AP": {"q2": 1.0}, "NumQ": {"q2": 1.0}}
    assert [(one.run, one.measure, one.value, one.n) for one in scores.estimates(ci="none")] == [
        ("all", "AP", 0.5, 3), ("all", "NumQ", 3.0, 3), ("one", "AP", 1.0, 1), ("one", "NumQ", 1.0, 1),
    ]  # fmt: skip
    assert evaluate(QRELS, runs, "AP", topics="run").query_ids == ("q1", "q2", "q4", "x", "y")


@quiet
@settings(max_examples=40)
@given(collections())
def test_every_mean_is_the_mean_of_its_topics(pair: tuple[Qrels, Run]) -> None:
    for policy in ("qrels", "both", "run"):
        scores = evaluate(*pair, ["AP", "nDCG@3", "RR(rel=2,undefined=skip)", "NumRel"], topics=policy)
        for one in scores.estimates(ci="none"):
            values = [value for value in scores.per_topic()["run"][one.measure].values() if value == value]  # noqa: PLR0124
            total = 0.0
            for value in values:
                total += value
            assert one.n == len(values)
            if one.measure == "NumRel":
                assert (one.aggregate, one.value) == ("sum", total)
            elif values:
                assert (one.aggregate, one.value) == ("mean", total / len(values))
            else:
                assert np.isnan(one.value)


@quiet
def test_a_run_has_the_same_numbers_and_intervals_alone_and_with_others() -> None:
    rng = np.random.default_rng(0)
    topics = [f"q{at}" for at in range(40)]
    qrels = {topic: {f"d{at}": int(rng.integers(0, 3)) for at in range(20)} for topic in topics}
    runs = {name: {t: {f"d{at}": float(rng.random()) for at in range(20)} for t in topics[:size]}
            for name, size in (("a", 40), ("b", 40), ("c", 25))}  # fmt: skip
    for policy in ("qrels", "both", "run"):
        together = evaluate(qrels, runs, ["AP", "nDCG@5"], topics=policy)
        alone = [one for name, run in runs.items()
                 for one in evaluate(qrels, {name: run}, ["AP", "nDCG@5"], topics=policy).estimates()]  # fmt: skip
        for mine, theirs in zip(together.estimates(), alone, strict=True):
            assert (mine.run, mine.measure, mine.value, mine.n) == (
                theirs.run, theirs.measure, theirs.value, theirs.n)  # fmt: skip
            assert mine.ci == pytest.approx(theirs.ci, rel=1e-12)


def test_counts_have_no_interval_and_one_topic_has_none() -> None:
    run = {"q": {"d": 1.0}, "r": {"x": 2.0, "e": 1.0}}
    scores = evaluate({"q": {"d": 1}, "r": {"e": 1}}, run, ["NumRet", "AP", "NumQ"])
    count, mean, topics = scores.estimates()
    assert (count.value, count.ci, topics.aggregate, topics.ci) == (3.0, None, "count", None)
    assert mean.ci is not None
    assert 0.0 <= mean.ci[0] < 0.5
    assert mean.ci[1] == 1.0
    assert evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, "AP").estimates()[0].ci is None
    assert scores.estimates(ci="none")[1].ci is None


def test_depth_is_a_policy() -> None:
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"a": 3.0, "x": 2.0, "b": 1.0}}
    assert evaluate(qrels, run, "AP", depth=2).value("AP") == 1 / 2
    assert evaluate(qrels, run, "NumRet", depth=2).value("NumRet") == 2
    assert evaluate(qrels, run, "AP", depth=3).value("AP") == (1 + 2 / 3) / 2
    assert evaluate(qrels, run, "AP", depth=2).policies == judged.scoring.evaluation.Policies("qrels", "docid", 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "all"}, "unknown value of `topics`: 'all'"),
        ({"ties": "x"}, "unknown value of `ties`"),
        ({"depth": 0}, "got 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, "AP", **options)


# --- warnings ---------------------------------------------------------------------------------------


def test_missing_topics_are_warned_of_aloud() -> None:
    with pytest.warns(JudgedWarning, match=r"run: no documents returned for 1 of 4 topics \(score 0\): q3") as caught:
        scores = evaluate(QRELS, RUN, "AP")
    assert caught[0].filename == __file__
    assert "run: no documents returned for 1 of 4 topics (score 0): q3" in scores.warnings
    assert scores.runs[0].missing_topics == ("q3",)
    assert scores.runs[0].returned_topics == 4
    assert scores.runs[0].extra_topics == 1


def test_a_topic_with_an_empty_ranking_is_missing_too() -> None:
    with pytest.warns(JudgedWarning, match=r"no documents returned for 1 of 2 topics \(score 0\): q2"):
        scores = evaluate({"q1": {"d": 1}, "q2": {"d": 1}}, {"q1": {"d": 1.0}, "q2": {}}, "AP")
    assert scores.value("AP") == 0.5
    assert (scores.runs[0].missing_topics, scores.runs[0].returned_topics) == (("q2",), 1)


def test_many_missing_topics_are_counted_and_some_named() -> None:
    qrels = {f"q{at}": {"d": 1} for at in range(9)}
    with pytest.warns(JudgedWarning):
        scores = evaluate(qrels, {"q0": {"d": 1.0}}, "AP")
    some = "q1, q2, q3, q4, q5, ... (8 in all)"
    assert f"run: no documents returned for 8 of 9 topics (score 0): {some}" in scores.warnings


def test_no_missing_topics_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = evaluate({"q1": {"d1": 1, "d2": 2}}, {"q1": {"d1": 2.0, "d2": 1.0}}, "nDCG")
    assert scores.warnings == ()


def test_notes_say_what_the_topic_policy_does() -> None:
    both, run = notes(QRELS, RUN, "AP", topics="both"), notes(QRELS, RUN, "AP", topics="run")
    assert "run: no documents returned for 1 of 4 topics (excluded from the means): q3" in both
    assert "run: no judgments for 1 topic of the run (excluded): x" in both
    assert "run: no judgments for 1 topic of the run (score 0): x" in run


TWO = {"q1": {"d1": 1, "d2": 2, "d3": 0}}
GOOD = {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}


@pytest.mark.parametrize(
    ("qrels", "run", "measures", "expected"),
    [
        pytest.param(
            TWO, GOOD, ["AP", "RR@5", "nDCG"],
            [("AP, RR@5: grades 1, 2 all count as relevant; to change this, set the lowest relevant grade with rel=,"
             " for example AP(rel=2)")],
            id="grades made binary",
        ),
        pytest.param(TWO, GOOD, ["P(judged_only=true)@5"],
            [("P(judged_only=true)@5: grades 1, 2 all count as relevant; to change this, set the lowest relevant"
              " grade with rel=, for example P(rel=2,judged_only=true)@5")],
            id="grades made binary, with a parameter"),
        pytest.param(TWO, GOOD, ["nDCG", "NumRel"], [], id="grades that count"),
        pytest.param({"q1": {"d1": 2, "d2": 2}}, GOOD, ["nDCG@5", "AP"],
            ["nDCG@5: all relevant documents have grade 2, so grades have no effect"], id="one grade"),
        pytest.param({"q1": {"d1": 101, "d2": 1}}, GOOD, ["nDCG"],
            ["the highest grade is 101; with gain=exp2, one document of this grade outweighs all other documents"],
            id="a huge grade"),
        pytest.param({"q1": {"d1": 1}, "q2": {"d1": 0}, "q3": {"d1": -1}},
            {q: {"d1": 1.0} for q in ("q1", "q2", "q3")}, ["AP"],
            ["AP: 2 of 3 topics have no relevant document: q2, q3", few_topics_note(3)],
            id="topics without relevant documents"),
        pytest.param({"q1": {"d1": 1}}, {"q1": {"d1": 1.0}, "z": {"d": 1.0}}, ["AP"],
            ["run: no judgments for 1 topic of the run (excluded): z"], id="extra topics"),
        pytest.param({"q1": {"d1": 1}}, {"q1": {"D1": 1.0}}, ["AP"],
            [("run: no score: none of the returned documents is judged. Check that the run uses the document"
              " ids of the qrels ('judged check')")], id="nothing judged"),
        pytest.param({"q1": {"d1": 1, "d2": 0}}, {"q1": {"d1": 1.0, "x": 1.0, "d2": 0.5}}, ["AP"],
            [("ties among the judged documents, ordered by descending document id;"
              " share of judged documents with a tie: run 50%; depending on the"
             " order of tied documents, AP of run is between 0.500 and 1.000 (--ties bounds)")], id="ties"),
        pytest.param({"q1": {"d1": 1, "d2": 0}}, {"q1": {"d1": 1.0, "x": 1.0, "d2": 0.5}}, ["P@2"],
            [("ties among the judged documents, ordered by descending document id;"
              " share of judged documents with a tie: run 50%; no order of tied documents"
             " changes a score by 0.001 or more")], id="ties that do not matter"),
        pytest.param({"q1": {"d1": 1}}, {"q1": {"d1": 1.0, "x": 1.0}}, ["AP"],
            [("ties among the judged documents, ordered by descending document id;"
              " share of judged documents with a tie: run 100%; depending on the"
              " order of tied documents, AP of run is between 0.500 and 1.000 (--ties bounds)"),
             "run: in 1 topic, all documents have the same score, so they are ordered by id"],
            id="constant scores"),
        pytest.param({"q1": {"d1": 1}}, {"q1": {"d1": 1.0, "x": 0.5, "y": 0.5}}, ["AP"], [],
            id="ties of unjudged ones"),
    ],
)  # fmt: skip
def test_notes(qrels: Any, run: Any, measures: list[str], expected: list[str]) -> None:
    assert list(notes(qrels, run, measures)) == expected


def test_constant_scores_are_seen_below_a_depth_too() -> None:
    run = {"q1": {"d1": 1.0, "x": 1.0, "y": 1.0}}
    assert any("all documents have the same score" in text for text in notes({"q1": {"d1": 1}}, run, "AP", depth=3))
    assert any("all documents have the same score" in text for text in notes({"q1": {"y": 1}}, run, "AP", depth=1))


def test_a_different_share_of_judged_documents_is_warned_of() -> None:
    qrels = {"q1": {f"d{at}": 1 for at in range(10)}}
    known = {"q1": {f"d{at}": -float(at) for at in range(10)}}
    half = {"q1": {f"{'d' if at % 2 else 'x'}{at}": -float(at) for at in range(10)}}
    assert (
        "the share of judged documents differs between runs: 100% of the first 10 documents for known, but only"
        " 50% for half; unjudged documents count as not relevant"
    ) in notes(qrels, {"known": known, "half": half}, "AP")
    assert notes(qrels, {"half": half, "again": half}, "AP") == ()
    assert notes(qrels, {"half": half}, "AP") == ()


def test_several_labels_for_one_pair_are_noted() -> None:
    columns = {"query_id": ["q1"] * 3, "doc_id": ["d1", "d1", "d2"], "relevance": [0, 1, 0]}
    table = pa.table({**columns, "iteration": ["1", "2", "1"]})
    scores = evaluate(table, {"q1": {"d2": 2.0, "d1": 1.0}}, "AP")
    assert scores.warnings == (
        "1 judgments repeat a pair under another iteration; the highest grade of each pair counts",
    )
    assert scores.value("AP") == 0.5
    with pytest.raises(InputError, match="document d1 is judged 2 times for topic q1"):
        evaluate(table.drop_columns(["iteration"]), {"q1": {"d1": 1.0}}, "AP")


def test_many_topics_without_relevant_documents_are_listed_at_once() -> None:
    qrels = {f"q{at}": {"d": at % 2} for at in range(20_000)}
    found = notes(qrels, {"q0": {"d": 1.0}}, "AP")
    start = "AP: 10000 of 20000 topics have no relevant document: q0, q10, q100,"
    assert any(text.startswith(start) for text in found)


# --- refusals ---------------------------------------------------------------------------------------


def test_a_set_has_set_measures_and_refuses_ranked_ones() -> None:
    table = pa.table({"query_id": ["q1", "q1", "q1"], "doc_id": ["d1", "x", "d3"]})
    qrels = {"q1": {"d1": 1, "d2": 1, "d3": 1, "x": 0}}
    found = evaluate(qrels, {"boolean": table}, ["SetP", "SetR", "SetF", "NumRet"]).aggregate()["boolean"]
    assert found == {"SetP": 2 / 3, "SetR": 2 / 3, "SetF": pytest.approx(2 / 3, rel=1e-15), "NumRet": 3.0}
    for name in ("AP", "P@1", "nDCG", "Judged@10", "RR"):
        with pytest.raises(
            MeasureError, match=r"requires a ranking, but the run boolean has no scores\. Fix: add scores"
        ):
            evaluate(qrels, {"boolean": table}, ["SetP", name])


def test_ranks_stand_in_for_scores() -> None:
    table = pa.table({"query_id": ["q1"] * 3, "doc_id": ["a", "b", "c"], "rank": [3, 1, 2]})
    assert evaluate({"q1": {"a": 1}}, table, "RR").value("RR") == 1 / 3


def test_one_bad_run_fails_the_call() -> None:
    twice = pa.table({"query_id": ["q"] * 2, "doc_id": ["d"] * 2, "score": [1.0, 2.0]})
    with pytest.raises(InputError, match="document d is returned twice"):
        evaluate({"q": {"d": 1}}, {"good": {"q": {"d": 1.0}}, "bad": twice}, "AP")


# --- provenance -------------------------------------------------------------------------------------


def test_a_result_says_what_it_rests_on(tmp_path: Path) -> None:
    qrels, run = tmp_path / "web.qrels", tmp_path / "bm25.run"
    qrels.write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n")
    run.write_text("q1 Q0 d1 1 1.5 t\nq3 Q0 d1 1 1.5 t\n")
    with pytest.warns(JudgedWarning):
        scores = evaluate(qrels, run, "AP")
    facts = scores.runs[0]
    assert (facts.name, facts.path) == ("bm25", str(run))
    assert facts.sha256 == hashlib.sha256(run.read_bytes()).hexdigest()
    assert (facts.returned_topics, facts.missing_topics, facts.extra_topics) == (2, ("q2",), 1)
    about = scores.qrels
    assert (about.name, about.path, about.n, about.judgments) == ("web", str(qrels), 2, 3)
    assert about.grades == (0.0, 1.0, 2.0)
    assert about.sha256 == hashlib.sha256(qrels.read_bytes()).hexdigest()
    assert scores.versions == {
        "judged": judged.__version__, "python": platform.python_version(),
        "numpy": np.__version__, "pyarrow": pa.__version__,
    }  # fmt: skip


def test_progress_is_told_of_every_byte(tmp_path: Path) -> None:
    runs = []
    for name, size in (("a", 400), ("b", 900)):
        runs.append(tmp_path / f"{name}.run")
        runs[-1].write_text("".join(f"q1 Q0 d{at} 0 {-at / 7} t\n" for at in range(size)))
    seen: dict[str, int] = {}

    def tell(name: str, count: int) -> None:
        seen[name] = seen.get(name, 0) + count

    evaluate({"q1": {"d1": 1}}, runs, "AP", progress=tell)
    assert seen == {run.stem: run.stat().st_size for run in runs}


@pytest.mark.parametrize(("topics", "few"), [(1, False), (2, True), (5, True), (6, False)])
def test_what_few_topics_are_worth_is_said(topics: int, few: bool) -> None:
    """Five signs have 2^5 arrangements: the two most extreme are 1 in 16 of them, and six are 1 in 32."""
    qrels = {f"q{at}": {"d": 1} for at in range(topics)}
    said = notes(qrels, {query: {"d": 1.0} for query in qrels}, ["AP"])
    assert [text for text in said if text == few_topics_note(topics)] == ([few_topics_note(topics)] if few else [])
    assert (few_topics_note(topics) != "") == few == (topics > 1 and smallest_p(topics) > 0.05)


def test_topics_at_the_ceiling_leave_room_below() -> None:
    """Five times 1 does not say that the mean is 1, and no interval without a bound is made of one value."""
    qrels = {f"q{at}": {"d": 1} for at in range(5)}
    bounded, free = evaluate(qrels, {query: {"d": 1.0} for query in qrels}, ["nDCG@10", "DCG@10"]).estimates()
    assert bounded.ci is not None
    assert bounded.ci[0] < 0.7
    assert bounded.ci[1] == 1.0
    assert free.ci is None
