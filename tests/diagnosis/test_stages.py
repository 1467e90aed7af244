"""`stages`: splits of losses by hand and against enumeration of all orders, and sums of their parts."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import evaluate, judge
from judged.comparison.slicing.topic_slices import Slice, slice_topics
from judged.diagnosis.matrix import matrix
from judged.diagnosis.stages import Stages, stages
from judged.diagnosis.stages.trace import best_order, check_measure
from judged.errors import InputError, MeasureError
from judged.results import Answer, Table
from judged.scoring.judging import judge_list
from judged.scoring.measures import parse

SPLIT = (
    "nDCG", "nDCG@3", "nDCG(gain=exp2)@2", "nDCG(judged_only=true)@3", "DCG@3", "CG@2", "AP", "AP(rel=2)", "AP@3", "RR",
    "RR(rel=2)@2", "P@3", "R@3", "F@3", "Success@2", "Rprec", "RBP(p=0.8)", "RBP(p=0.8)@3", "ERR(max=3)@3", "Bpref",
    "InfAP", "GAP", "AP11", "RelP@3", "NCG@3", "Compat", "BinG",
)  # fmt: skip
GRADES = st.one_of(st.none(), st.sampled_from([-1, 0, 0, 1, 1, 2, 3]))

QRELS = {
    "a": {"d1": 2, "d2": 1, "d3": 1, "n": 0},  # all returned, one below the cutoff
    "b": {"d1": 1, "d2": 1},  # one returned
    "c": {"d1": 1},  # missing from the run
    "d": {"n": 0},  # nothing relevant
}
RUN = {"a": ["x", "d2", "d1", "y", "d3"], "b": ["d2", "x", "y", "z"], "d": ["n"]}
LOG3 = math.log2(3)


def sample_stages(**options: object) -> Stages:
    return stages(QRELS, RUN, cutoff=3, **options)


def lost_documents(answer: Answer) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in answer.table("documents").records()]


def test_by_hand() -> None:
    result = sample_stages(measure="DCG@2")
    trace = result.trace
    assert result.query_ids == ("a", "b", "c", "d")
    np.testing.assert_allclose(trace.best, [2 + 1 / LOG3, 1 + 1 / LOG3, 1, 0])
    np.testing.assert_allclose(trace.attainable, [2 + 1 / LOG3, 1, 0, 0])
    np.testing.assert_allclose(trace.score, [1 / LOG3, 1, 0, 0])
    np.testing.assert_allclose(trace.parts, [[0, 1 / LOG3, 1, 0], [2, 0, 0, 0]])
    assert trace.recall.tolist() == [2 / 3, 0.5, 0, 0]
    assert (trace.num_retrieved.tolist(), trace.relevant.tolist()) == ([2, 1, 0, 0], [3, 2, 1, 0])
    assert trace.judged[[0, 3]].tolist() == pytest.approx([2 / 3, 1.0])
    assert result.verdicts == ("ranked low", "not retrieved", "not retrieved", "no relevant documents")


def test_note_on_few_judgments() -> None:
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(4)}
    judged_run, half_judged_run = (dict.fromkeys(qrels, docs) for docs in (["a", "b"], ["a", "x"]))
    (note,) = (note for note in stages(qrels, half_judged_run, baseline=judged_run).notes if note.rule == "few-judged")
    assert (note.subject, note.weight) == ("run", 0.5)
    assert not any(note.rule == "few-judged" for note in stages(qrels, judged_run, baseline=judged_run).notes)


def test_what_the_final_ranking_leaves_out_was_dropped() -> None:
    qrels = {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}
    result = stages(qrels, {"q": ["a", "b", "x", "c"]}, {"q": ["x", "b"]}, "RR@1", cutoff=3)
    assert lost_documents(result) == [
        ("run", "q", "a", 1, "dropped", 1, None),
        ("run", "q", "b", 1, "ranked low", 2, 2),
        ("run", "q", "c", 1, "below the cutoff", 4, None),
        ("run", "q", "d", 1, "not returned", None, None),
    ]


def test_where_each_relevant_document_was_lost() -> None:
    assert lost_documents(sample_stages(measure="RR@1")) == [
        ("run", "a", "d1", 2, "ranked low", 3, 3),
        ("run", "a", "d2", 1, "ranked low", 2, 2),
        ("run", "a", "d3", 1, "below the cutoff", 5, None),
        ("run", "b", "d1", 1, "not returned", None, None),
        ("run", "c", "d1", 1, "not returned", None, None),
    ]
    assert lost_documents(sample_stages().topic("b")) == [("run", "b", "d1", 1, "not returned", None, None)]


@pytest.mark.parametrize("name", SPLIT)
@settings(max_examples=8)
@given(grades=st.lists(GRADES, min_size=1, max_size=5), missing=st.lists(st.integers(0, 3), max_size=3))
def test_the_attainable_score_is_the_best_of_all_orders(
    name: str, grades: list[int | None], missing: list[int]
) -> None:
    measure = parse(name)
    check_measure(measure)
    if all(grade is None for grade in grades) and not missing:
        return
    judged_list = judge_list(grades, missing=missing)
    best = max(measure(judge_list(list(order), missing=missing))[0] for order in set(permutations(grades)))
    attainable = measure(best_order(judged_list))[0]
    assert attainable == pytest.approx(best, abs=1e-12)
    assert measure(judged_list.ideal)[0] >= attainable - 1e-12


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(st.permutations(range(8)), st.lists(st.integers(-1, 3), min_size=8, max_size=8)),
        min_size=1,
    ),
    st.integers(1, 8),
    st.sampled_from(["nDCG@3", "AP", "RR", "P@3", "DCG"]),
)
def test_parts_add_up_and_are_never_negative(
    topics: dict[str, tuple[list[int], list[int]]], depth: int, measure: str
) -> None:
    qrels = {topic: {f"d{i}": grade for i, grade in enumerate(grades)} for topic, (_, grades) in topics.items()}
    run = {topic: [f"d{i}" for i in order[:6]] for topic, (order, _) in topics.items()}
    other = {topic: run[topic][::-1] for topic in topics}
    result = stages(qrels, run, measure=measure, cutoff=depth, baseline=other, resamples=100)
    for trace in (result.trace, result.baseline):
        assert trace is not None
        np.testing.assert_allclose(trace.parts.sum(axis=0), trace.best - trace.score, atol=1e-12)
        assert (trace.parts >= 0).all()
        assert not trace.non_candidates.any()
    assert result.baseline is not None
    gains = result.trace.score - result.baseline.score
    np.testing.assert_allclose((result.baseline.parts - result.trace.parts).sum(axis=0), gains, atol=1e-12)
    differences = {change.part: change.result.difference for change in result.changes if change.is_overall}
    assert differences["candidates"] + differences["ranking"] == pytest.approx(differences["score"], abs=1e-12)


def test_the_score_of_a_final_ranking_is_that_of_evaluate() -> None:
    final = {"a": ["d1", "x", "d2"], "b": ["x", "d2", "y"], "c": ["u"], "d": ["n"]}
    result = stages(QRELS, RUN, final, "nDCG@10", cutoff=3)
    scores = evaluate(QRELS, {"final": final}, ["nDCG@10", "Judged@10"])
    assert result.trace.score.tolist() == scores.values[0, 0].tolist()
    assert result.parts[0].score.value == pytest.approx(scores.value("nDCG@10"))
    non_candidates, _, no_relevant, _, missing = result.warnings  # the others: few judged documents, and few topics
    assert non_candidates.startswith(
        "run: returned documents that are not in the top 3 of run: 1, on 1 topic; 0 of these documents are relevant"
    )
    assert no_relevant == "nDCG@10: 1 of 4 topics have no relevant document: d"
    assert missing == "run: no documents returned for 1 of 4 topics (score 0): c"
    assert result.trace.candidates == "run"


def test_warnings_are_those_of_evaluate() -> None:
    """Other document ids, and ties."""
    foreign = {query: [f"other {doc}" for doc in docs] for query, docs in RUN.items()}
    result = stages(QRELS, foreign)
    assert any(warning.startswith("run: no score") for warning in result.warnings)
    tied = {query: dict.fromkeys(docs, 1.0) for query, docs in RUN.items()}
    with pytest.warns(judged.JudgedWarning):
        scores = evaluate(QRELS, {"run": tied}, "nDCG@10")
    warnings = stages(QRELS, tied).warnings
    assert any(warning.startswith("ties among the judged documents") for warning in warnings)
    assert set(scores.warnings) <= set(warnings)


def test_a_final_ranking_of_other_documents_is_no_split_of_the_loss() -> None:
    qrels = {f"q{i}": {"a": 1, "b": 1} for i in range(4)}
    run, final = (dict.fromkeys(qrels, docs) for docs in (["x", "a", "y", "b"], ["x", "z", "a"]))
    mixed = stages(qrels, run, final, cutoff=2)
    assert mixed.trace.non_candidate_share == pytest.approx(1 / 3)
    assert mixed.headroom.losses[-1].value > 0
    assert mixed.sentences[0].startswith("run does not only rank the candidates: 33% of the documents of run are not")
    assert "no reranker" not in " ".join(mixed.sentences)
    proper = stages(qrels, run, {query: ["x", "a"] for query in qrels}, cutoff=2)
    assert proper.trace.non_candidate_share == 0
    assert "is not a ranking" not in proper.sentences[0]
    assert "no reranker of the top 2 of run can gain more than" in " ".join(proper.sentences)


def test_one_topic_as_a_text() -> None:
    result = sample_stages(measure="DCG@2")
    topic = result.topic("a", query="cats")
    assert topic.title == "a: cats"
    (sentence,) = topic.sentences
    assert sentence == (
        "run: ranked low: DCG@2 0.6309 of at most 2.6309, with losses of 0.0000 due to the candidates and 2.0000"
        " due to the ranking; relevant"
        " documents in the top 3: 2 of 3."
    )
    assert [line.split()[:2] for line in topic.text().splitlines()[-2:]] == [["a", "d1"], ["a", "d3"]]
    assert topic.to_dict()["topics"][0]["lost_ranking"] == 2
    assert result.topic("d").sentences[-1] == "The qrels have no relevant document for this topic."
    perfect = stages({"q": {"a": 1}}, {"q": ["a"]})
    assert perfect.topic("q").sentences[-1] == "No relevant document was lost."
    with pytest.raises(InputError, match="no topic 'z'"):
        result.topic("z")


def test_tables_fit_a_hundred_columns() -> None:
    qrels, good, bad = planted_losses()
    attributes = {topic: {"query_class": "known-item" if i % 2 else "how-to"} for i, topic in enumerate(qrels)}
    slicing = slice_topics(attributes, "query_class")
    result = stages(
        qrels,
        judged.Run.of(bad, name="bm25"),
        baseline=judged.Run.of(good, name="tfidf"),
        slicing=slicing,
        resamples=100,
    )
    tables = [block for block in result.blocks() if isinstance(block, Table) and block.only != "data"]
    assert [table.name for table in tables] == ["slices", "verdicts", "changes", "topics"]
    assert all(max(map(len, table.text().splitlines())) <= 100 for table in tables)
    grid = result.table("changes").grid()
    assert grid.header == ("slice", "of", "topics", "bm25 - tfidf", "p")
    assert grid.rows[0][:3] == ("all topics", "nDCG@10", "40")
    assert grid.rows[0][3].startswith("-1.0000")


def test_two_columns_are_never_called_the_same() -> None:
    header = sample_stages(measure="nDCG@10", recall="nDCG@10").table().grid().header
    assert header[2:4] == ("nDCG@10", "nDCG@10 of candidates")


def test_csv_has_slices_where_there_are_any() -> None:
    qrels, _, bad = planted_losses()
    slicing = slice_topics({topic: {"side": i % 2 == 0} for i, topic in enumerate(qrels)}, "side")
    result = stages(qrels, bad, slicing=slicing)
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    assert [row["slice"] for row in rows] == ["all topics", "side=false", "side=true"]
    assert float(rows[2]["lost_candidates"]) == result.parts[2].losses[0].value
    assert float(rows[0]["lost_ranking_low"]) == result.parts[0].losses[1].low
    assert (rows[1]["ranked low"], rows[2]["not retrieved"]) == ("20", "20")
    assert len(result.csv("topics").splitlines()) == 41


def test_the_document_has_the_head_of_evaluate() -> None:
    qrels, good, bad = planted_losses(12)
    document = stages(qrels, bad, baseline=good, resamples=100).to_dict()
    scores = evaluate(qrels, {"run": bad}, "nDCG@10").to_dict()
    for name in ("judged", "versions", "qrels"):
        assert document[name] == scores[name]
    assert document["policies"]["topics"] == "qrels"
    assert list(document["runs"]) == ["run", "run (2)"]
    assert document["runs"]["run"] == scores["runs"]["run"]


def test_slices_must_be_a_slicing() -> None:
    with pytest.raises(InputError, match="must be slices or a table, got 'side'"):
        sample_stages(slicing="side")


def test_documents_that_are_no_candidates_are_counted() -> None:
    final = {"a": ["d1", "d2", "d3"], "b": ["d2", "d1"], "c": ["d1", "q"]}
    result = stages(QRELS, RUN, final, "nDCG@10", cutoff=3)
    assert result.trace.non_candidates.tolist() == [1, 1, 2, 0]
    assert result.trace.parts[1, 2] == -1  # nothing among the candidates, and ranked first all the same
    assert result.notes[0].rule == "not-candidates"
    assert (
        "returned documents that are not in the top 3 of run: 4, on 3 topics; 3 of these documents are relevant"
        " and within the cutoff" in result.notes[0].text
    )
    np.testing.assert_allclose(result.trace.parts.sum(axis=0), result.trace.best - result.trace.score, atol=1e-12)


def test_note_on_measures_that_depend_on_ranks_below_the_cutoff() -> None:
    result = sample_stages(measure="AP")
    assert result.notes[0].rule == "below-cutoff"
    assert "--cutoff" in str(result.notes[0])
    judged_to_cutoff = judge(QRELS, RUN, depth=3)
    assert result.trace.score.tolist() == parse("AP")(judged_to_cutoff).tolist()
    assert all(note.rule != "below-cutoff" for note in sample_stages(measure="RR@3").notes)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SetR", "does not depend on the order"),
        ("Judged@10", "sorted by grade"),
        ("GMAP", "geometric mean"),
        ("AlphanDCG@10", "sorted by grade"),
        ("nDCG(gain={1:3,2:1})@10", "sorted by grade"),
    ],
)
def test_measures_that_cannot_be_split_are_refused(name: str, reason: str) -> None:
    with pytest.raises(MeasureError, match=reason):
        sample_stages(measure=name)


def test_which_topics_count() -> None:
    assert sample_stages(topics="both").query_ids == ("a", "b", "d")
    assert sample_stages(topics="both", baseline={"a": ["d1"], "q": ["x"]}).query_ids == ("a",)
    with pytest.raises(InputError, match="must be 'qrels' or 'both', got 'run'"):
        sample_stages(topics="run")
    with pytest.raises(InputError, match="no topic in common"):
        stages(QRELS, {"z": ["d"]})
    skipped = sample_stages(measure="nDCG(undefined=skip)@10")
    assert np.isnan(skipped.trace.score).tolist() == [False, False, False, True]
    assert (skipped.parts[0].n, skipped.verdicts[3]) == (3, "no relevant documents")


def planted_losses(topics: int = 40) -> tuple[dict[str, dict[str, int]], dict[str, list[str]], dict[str, list[str]]]:
    """Return qrels, a run with the relevant document first, and one that lacks it (even topics) or has it 15th."""
    qrels = {f"q{i:02}": {"rel": 1} for i in range(topics)}
    good = {topic: ["rel", *(f"x{i}" for i in range(20))] for topic in qrels}
    bad = {
        topic: docs[1:] if i % 2 == 0 else [*docs[1:15], "rel", *docs[15:]]
        for i, (topic, docs) in enumerate(good.items())
    }
    return qrels, good, bad


def test_two_systems_and_slices() -> None:
    qrels, good, bad = planted_losses()
    attributes = {topic: {"side": "even" if i % 2 == 0 else "odd", "few": i < 5} for i, topic in enumerate(qrels)}
    slicing = slice_topics(attributes, ["side", "few"], min_topics=10)
    result = stages(qrels, bad, baseline=good, slicing=slicing, resamples=999)
    changes = {(change.slice, change.part): change for change in result.changes}
    assert changes["all topics", "candidates"].result.difference == -0.5
    assert (
        changes["side=even", "candidates"].result.difference == changes["side=odd", "ranking"].result.difference == -1
    )
    assert changes["side=even", "ranking"].result.difference == changes["side=odd", "candidates"].result.difference == 0
    small = changes[next(name for name, part in changes if "few" in name and changes[name, part].small), "score"]
    assert math.isnan(small.result.p)
    assert not small.significant
    # four slices, one of them too small: Holm over 3 x 2 parts; p of 20 equal signs is 1 / 1000 at 999 resamples
    assert changes["side=even", "candidates"].result.adjusted == pytest.approx(
        6 * changes["side=even", "candidates"].result.p
    )
    losses = result.lost
    assert losses["candidates"].mask.tolist() == [i % 2 == 0 for i in range(40)]
    assert losses["ranking"].mask.tolist() == [i % 2 == 1 for i in range(40)]
    assert result.lost_kinds[:2] == ("candidates", "ranking")
    text = " ".join(result.sentences)
    assert "run scores 1.0000 lower than run (other)" in text
    assert re.search(r"side=even\D*-1\.0000", text)
    assert re.search(r"side=odd\D*-1\.0000", text)
    assert "40 of 40 topics are worse by 1 or more, and 0 are better by 1 or more" in text
    assert ". Cause of the loss: candidates on 20 topics, ranking on 20 topics." in text
    assert "by the change due to the candidates only: 20 of 40 topics are worse by 1 or more" in text
    assert 0.9 < result.parts[1].losses[0].low < result.parts[1].losses[0].value == result.parts[1].losses[0].high == 1


def test_a_pair_of_candidates_and_final_ranking_is_a_system_too() -> None:
    qrels, good, bad = planted_losses()
    result = stages(qrels, good, bad, baseline=(good, good), resamples=100)
    assert result.baseline is not None
    differences = {change.part: change.result.difference for change in result.changes if change.is_overall}
    assert differences == {"score": -1.0, "candidates": 0.0, "ranking": -1.0}
    same = stages(qrels, good, baseline=good)
    assert "have the same nDCG@10 and the same losses" in same.sentences[0]


def test_a_part_counts_from_a_share_of_the_best_and_of_the_loss_on() -> None:
    # R@5 with 10 relevant documents, 4 among the candidates and 3 in the top 5: best 0.5, lost 0.1 and 0.1
    qrels = {"q": {f"d{i}": 1 for i in range(10)}}
    run = {"q": ["d0", "d1", "d2", "x", "y", "d3", "z"]}
    assert stages(qrels, run, measure="R@5").verdicts == ("both",)
    assert stages(qrels, run, measure="R@5", min_loss=0.21).verdicts == ("small loss",)
    assert stages(qrels, run, measure="R@5", min_loss=0.2).verdicts == ("both",)
    run = {"q": ["x", "d1", "y", "z", "w", "d3", "d4"]}  # 0.2 by candidates, 0.2 by ranking
    assert stages(qrels, run, measure="R@5", min_share=0.49).verdicts == ("both",)
    run = {"q": ["x", "d1", "y", "z", "w", "d3"]}  # 0.3 by candidates, 0.1 by ranking
    assert stages(qrels, run, measure="R@5", min_share=0.3).verdicts == ("not retrieved",)
    assert stages(qrels, run, measure="R@5", min_share=0.25).verdicts == ("both",)


def test_a_deeper_recall_and_measures_by_class() -> None:
    result = stages(QRELS, RUN, cutoff=3, recall="R@5", measure=judged.nDCG(cutoff=10))
    assert result.trace.recall.tolist() == [1, 0.5, 0, 0]
    assert stages(QRELS, RUN, measure=judged.RR).measure == parse("RR")
    with pytest.raises(InputError, match="exactly one measure is required"):
        stages(QRELS, RUN, measure="P@5,10")


def test_invalid_options() -> None:
    for options in ({"cutoff": 0}, {"min_loss": 0.0}, {"fdr": 1.0}, {"alpha": 0.7}, {"min_share": 0.6}):
        with pytest.raises(InputError):
            stages(QRELS, RUN, **options)
    with pytest.raises(InputError, match="must be one run, got 2"):
        stages(QRELS, {"one": RUN, "two": RUN})
    with pytest.raises(InputError, match="no table 'changes'"):
        sample_stages().table("changes")


def test_forms() -> None:
    qrels, good, bad = planted_losses()
    result = stages(qrels, bad, baseline=good, resamples=100)
    document = result.to_dict()
    assert document["systems"] == ["run", "run (other)"]
    topic = document["topics"][0]
    assert (topic["query_id"], topic["lost_candidates"], topic["lost_ranking"], topic["other_score"]) == (
        "q00",
        1,
        0,
        1,
    )
    assert document["documents"][1] == {
        "system": "run", "query_id": "q01", "doc_id": "rel", "grade": 1.0, "lost": "ranked low", "candidate_rank": 15,
        "final_rank": 15,
    }  # fmt: skip
    assert document["lost"][1]["part"] == "candidates"
    assert document["lost"][1]["topics"][:2] == ["q00", "q02"]
    rows = list(csv.DictReader(io.StringIO(result.csv("topics"))))
    assert (len(rows), rows[0]["verdict"], rows[-1]["lost_ranking"]) == (40, "not retrieved", "1.0")
    assert all(text in result.text(unfold=["topics"]) for text in ("loss: candidates", "q00", "Holm"))
    first = sample_stages(measure="nDCG(undefined=skip)@10").topics_table().grid().rows[0]
    assert first[:2] == ("c", "not retrieved")


def test_slices_that_cannot_be_tested() -> None:
    """Slices without topics, with one topic, and with too few are shown, not tested, and not counted by Holm."""
    qrels, good, bad = planted_losses()
    attributes = {topic: {"at": float(i)} for i, topic in enumerate(qrels)}
    expressions = {"empty": "at > 99", "single": "at == 1", "small": "at < 4", "large": "at >= 4"}
    slicing = slice_topics(
        attributes, slices=[Slice(name, text, 10 if name == "small" else 1) for name, text in expressions.items()]
    )
    result = stages(qrels, bad, baseline=good, slicing=slicing, resamples=999)
    tests = {(change.slice, change.part): change.result for change in result.changes}
    assert [row.n for row in result.parts[1:]] == [0, 1, 4, 36]
    for name in ("empty", "single", "small"):
        assert math.isnan(tests[name, "ranking"].p)
    assert tests["large", "ranking"].adjusted == pytest.approx(2 * tests["large", "ranking"].p)
    assert "p corrected by Holm for 2 tests" in " ".join(result.sentences)
    json.dumps(result.to_dict(), allow_nan=False)
    quadrants = matrix(qrels, {"good": good, "bad": bad}, x="R@100", slicing=slicing, resamples=999)
    points = {(point.run, point.slice): point for point in quadrants.points}
    assert [points["bad", name].quadrant for name in expressions] == ["", "", "", "both problems"]
    assert "Bonferroni: 1 slice, two measures" in quadrants.table("points").note
    json.dumps(quadrants.to_dict(), allow_nan=False)


def test_bars_add_up_to_the_best() -> None:
    qrels, good, bad = planted_losses(12)
    result = stages(qrels, bad, baseline=good, resamples=100)
    titles = []
    for name, bars in (("slices", 2), ("topics", 12)):
        chart = result.charts()[name]
        ends: dict[str, float] = {}
        for row in chart.table.records():
            ends[row["bar"]] = max(ends.get(row["bar"], 0.0), row["end"])
        assert list(ends.values()) == [1.0] * bars
        titles.append(chart.title)
    assert titles == ["run and run (other): loss of nDCG@10 by stage", "run: loss of nDCG@10 by topic"]
