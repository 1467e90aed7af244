"""The split of a loss into stages: by hand, against enumeration, and its sums."""

from __future__ import annotations

import csv
import io
import json
import math
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
    "a": {"d1": 2, "d2": 1, "d3": 1, "n": 0},  # found, one below the depth
    "b": {"d1": 1, "d2": 1},  # one found
    "c": {"d1": 1},  # missing from the run
    "d": {"n": 0},  # nothing relevant
}
RUN = {
    "a": ["x", "d2", "d1", "y", "d3"],
    "b": ["d2", "x", "y", "z"],
    "d": ["n"],
}
LOG3 = math.log2(3)


def made(**options: object) -> Stages:
    return stages(QRELS, RUN, cutoff=3, **options)


def lost_documents(answer: Answer) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in answer.table("documents").records()]


def test_by_hand() -> None:
    found = made(measure="DCG@2")
    trace = found.trace
    assert found.query_ids == ("a", "b", "c", "d")
    np.testing.assert_allclose(trace.best, [2 + 1 / LOG3, 1 + 1 / LOG3, 1, 0])
    np.testing.assert_allclose(trace.attainable, [2 + 1 / LOG3, 1, 0, 0])
    np.testing.assert_allclose(trace.score, [1 / LOG3, 1, 0, 0])
    np.testing.assert_allclose(trace.parts, [[0, 1 / LOG3, 1, 0], [2, 0, 0, 0]])
    assert trace.recall.tolist() == [2 / 3, 0.5, 0, 0]
    assert (trace.found.tolist(), trace.relevant.tolist()) == ([2, 1, 0, 0], [3, 2, 1, 0])
    assert trace.judged[[0, 3]].tolist() == pytest.approx([2 / 3, 1.0])
    assert found.verdicts == ("found but ranked badly", "not found", "not found", "nothing relevant")


def test_few_judgments_are_said() -> None:
    qrels = {f"q{at}": {"a": 1, "b": 0} for at in range(4)}
    known, unknown = (dict.fromkeys(qrels, docs) for docs in (["a", "b"], ["a", "x"]))
    (note,) = (note for note in stages(qrels, unknown, baseline=known).notes if note.rule == "few-judged")
    assert (note.subject, note.weight) == ("run", 0.5)
    assert not any(note.rule == "few-judged" for note in stages(qrels, known, baseline=known).notes)


def test_what_the_final_ranking_leaves_out_was_dropped() -> None:
    qrels = {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}
    found = stages(qrels, {"q": ["a", "b", "x", "c"]}, {"q": ["x", "b"]}, "RR@1", cutoff=3)
    assert lost_documents(found) == [
        ("run", "q", "a", 1, "dropped", 1, None),
        ("run", "q", "b", 1, "ranked low", 2, 2),
        ("run", "q", "c", 1, "below the cutoff", 4, None),
        ("run", "q", "d", 1, "not returned", None, None),
    ]


def test_where_each_relevant_document_was_lost() -> None:
    assert lost_documents(made(measure="RR@1")) == [
        ("run", "a", "d1", 2, "ranked low", 3, 3),
        ("run", "a", "d2", 1, "ranked low", 2, 2),
        ("run", "a", "d3", 1, "below the cutoff", 5, None),
        ("run", "b", "d1", 1, "not returned", None, None),
        ("run", "c", "d1", 1, "not returned", None, None),
    ]
    assert lost_documents(made().topic("b")) == [("run", "b", "d1", 1, "not returned", None, None)]


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
    listed = judge_list(grades, missing=missing)
    best = max(measure(judge_list(list(order), missing=missing))[0] for order in set(permutations(grades)))
    attained = measure(best_order(listed))[0]
    assert attained == pytest.approx(best, abs=1e-12)
    assert measure(listed.ideal)[0] >= attained - 1e-12


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
    qrels = {topic: {f"d{at}": grade for at, grade in enumerate(grades)} for topic, (_, grades) in topics.items()}
    run = {topic: [f"d{at}" for at in order[:6]] for topic, (order, _) in topics.items()}
    other = {topic: run[topic][::-1] for topic in topics}
    found = stages(qrels, run, measure=measure, cutoff=depth, baseline=other, resamples=100)
    for trace in (found.trace, found.baseline):
        assert trace is not None
        np.testing.assert_allclose(trace.parts.sum(axis=0), trace.best - trace.score, atol=1e-12)
        assert (trace.parts >= 0).all()
        assert not trace.foreign.any()
    assert found.baseline is not None
    change = found.trace.score - found.baseline.score
    np.testing.assert_allclose((found.baseline.parts - found.trace.parts).sum(axis=0), change, atol=1e-12)
    whole = {one.part: one.result.difference for one in found.changes if one.every}
    assert whole["candidates"] + whole["ranking"] == pytest.approx(whole["score"], abs=1e-12)


def test_the_score_of_a_final_ranking_is_that_of_evaluate() -> None:
    final = {"a": ["d1", "x", "d2"], "b": ["x", "d2", "y"], "c": ["u"], "d": ["n"]}
    found = stages(QRELS, RUN, final, "nDCG@10", cutoff=3)
    scores = evaluate(QRELS, {"final": final}, ["nDCG@10", "Judged@10"])
    assert found.trace.score.tolist() == scores.values[0, 0].tolist()
    assert found.parts[0].score.value == pytest.approx(scores.value("nDCG@10"))
    first, _, barren, _, second = found.warnings  # and that documents judged, and topics, are few
    assert first.startswith(
        "run: 1 of its documents, on 1 topic, are not among the first 3 of run; 0 of them are relevant"
    )
    assert barren == "nDCG@10: 1 of 4 topics have no relevant document: d"
    assert second == "run: nothing returned for 1 of 4 topics; they score 0: c"
    assert found.trace.candidates == "run"


def test_warnings_are_those_of_evaluate() -> None:
    """Other document ids, and ties: the numbers are doubtful for the same reasons as there."""
    foreign = {query: [f"other {doc}" for doc in docs] for query, docs in RUN.items()}
    found = stages(QRELS, foreign)
    assert any(one.startswith("run: nothing was measured") for one in found.warnings)
    tied = {query: dict.fromkeys(docs, 1.0) for query, docs in RUN.items()}
    with pytest.warns(judged.JudgedWarning):
        scores = evaluate(QRELS, {"run": tied}, "nDCG@10")
    said = stages(QRELS, tied).warnings
    assert any(one.startswith("ties among the judged documents") for one in said)
    assert set(scores.warnings) <= set(said)


def test_a_final_ranking_of_other_documents_is_no_split_of_the_loss() -> None:
    qrels = {f"q{at}": {"a": 1, "b": 1} for at in range(4)}
    run, final = (dict.fromkeys(qrels, docs) for docs in (["x", "a", "y", "b"], ["x", "z", "a"]))
    mixed = stages(qrels, run, final, cutoff=2)
    assert mixed.trace.foreign_share == pytest.approx(1 / 3)
    assert mixed.headroom.losses[-1].value > 0
    assert mixed.sentences[0].startswith("run is not a ranking of these candidates: 33% of its documents are not among")
    assert "no reranker" not in " ".join(mixed.sentences)
    proper = stages(qrels, run, {query: ["x", "a"] for query in qrels}, cutoff=2)
    assert proper.trace.foreign_share == 0
    assert "is not a ranking" not in proper.sentences[0]
    assert "no reranker of the first 2 of run can gain more than" in " ".join(proper.sentences)


def test_one_topic_as_a_text() -> None:
    found = made(measure="DCG@2")
    topic = found.topic("a", query="cats")
    assert topic.title == "a: cats"
    (said,) = topic.sentences
    assert said == (
        "run: found but ranked badly: DCG@2 0.6309 of 2.6309, lost 0.0000 by candidates and 2.0000 by ranking; relevant"
        " documents among the first 3: 2 of 3."
    )
    assert [line.split()[:2] for line in topic.text().splitlines()[-2:]] == [["a", "d1"], ["a", "d3"]]
    assert topic.to_dict()["topics"][0]["lost_ranking"] == 2
    assert found.topic("d").sentences[-1] == "No relevant document is known."
    whole = stages({"q": {"a": 1}}, {"q": ["a"]})
    assert whole.topic("q").sentences[-1] == "No relevant document was lost."
    with pytest.raises(InputError, match="no topic 'z' here"):
        found.topic("z")


def test_tables_fit_a_hundred_columns() -> None:
    qrels, good, bad = big()
    known = {topic: {"query_class": "known-item" if at % 2 else "how-to"} for at, topic in enumerate(qrels)}
    cut = slice_topics(known, "query_class")
    found = stages(
        qrels, judged.Run.of(bad, name="bm25"), baseline=judged.Run.of(good, name="tfidf"), slicing=cut, resamples=100
    )
    tables = [block for block in found.blocks() if isinstance(block, Table) and block.only != "data"]
    assert [table.name for table in tables] == ["slices", "verdicts", "changes", "topics"]
    assert all(max(map(len, table.text().splitlines())) <= 100 for table in tables)
    grid = found.table("changes").grid()
    assert grid.header == ("slice", "of", "topics", "bm25 - tfidf", "p")
    assert grid.rows[0][:3] == ("all topics", "nDCG@10", "40")
    assert grid.rows[0][3].startswith("-1.0000")


def test_two_columns_are_never_called_the_same() -> None:
    header = made(measure="nDCG@10", recall="nDCG@10").table().grid().header
    assert header[2:4] == ("nDCG@10", "nDCG@10 of candidates")


def test_csv_has_slices_where_there_are_any() -> None:
    qrels, _, bad = big()
    cut = slice_topics({topic: {"side": at % 2 == 0} for at, topic in enumerate(qrels)}, "side")
    found = stages(qrels, bad, slicing=cut)
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert [row["slice"] for row in rows] == ["all topics", "side=false", "side=true"]
    assert float(rows[2]["lost_candidates"]) == found.parts[2].losses[0].value
    assert float(rows[0]["lost_ranking_low"]) == found.parts[0].losses[1].low
    assert (rows[1]["found but ranked badly"], rows[2]["not found"]) == ("20", "20")
    assert len(found.csv("topics").splitlines()) == 41


def test_the_document_has_the_head_of_evaluate() -> None:
    qrels, good, bad = big(12)
    document = stages(qrels, bad, baseline=good, resamples=100).to_dict()
    scores = evaluate(qrels, {"run": bad}, "nDCG@10").to_dict()
    for name in ("judged", "versions", "qrels"):
        assert document[name] == scores[name]
    assert document["policies"]["topics"] == "qrels"
    assert list(document["runs"]) == ["run", "run (2)"]
    assert document["runs"]["run"] == scores["runs"]["run"]


def test_slices_must_be_a_slicing() -> None:
    with pytest.raises(InputError, match="must be slices or a table, got 'side'"):
        made(slicing="side")


def test_documents_that_are_no_candidates_are_counted() -> None:
    final = {"a": ["d1", "d2", "d3"], "b": ["d2", "d1"], "c": ["d1", "q"]}
    found = stages(QRELS, RUN, final, "nDCG@10", cutoff=3)
    assert found.trace.foreign.tolist() == [1, 1, 2, 0]
    assert found.trace.parts[1, 2] == -1  # nothing among the candidates, and ranked first all the same
    assert found.notes[0].rule == "not-candidates"
    assert (
        "4 of its documents, on 3 topics, are not among the first 3 of run; 3 of them are relevant and on the page"
        in found.notes[0].text
    )
    np.testing.assert_allclose(found.trace.parts.sum(axis=0), found.trace.best - found.trace.score, atol=1e-12)


def test_what_looks_below_the_depth_says_so() -> None:
    found = made(measure="AP")
    assert found.notes[0].rule == "below-cutoff"
    assert "--cutoff" in str(found.notes[0])
    cut = judge(QRELS, RUN, depth=3)
    assert found.trace.score.tolist() == parse("AP")(cut).tolist()
    assert all(note.rule != "below-cutoff" for note in made(measure="RR@3").notes)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("SetR", "does not look at the order"),
        ("Judged@10", "best grades first"),
        ("GMAP", "geometric mean"),
        ("AlphanDCG@10", "best grades first"),
        ("nDCG(gain={1:3,2:1})@10", "best grades first"),
    ],
)
def test_measures_that_cannot_be_split_are_refused(name: str, why: str) -> None:
    with pytest.raises(MeasureError, match=why):
        made(measure=name)


def test_which_topics_count() -> None:
    assert made(topics="both").query_ids == ("a", "b", "d")
    assert made(topics="both", baseline={"a": ["d1"], "q": ["x"]}).query_ids == ("a",)
    with pytest.raises(InputError, match="no topic policy 'run'"):
        made(topics="run")
    with pytest.raises(InputError, match="no topic in common"):
        stages(QRELS, {"z": ["d"]})
    skipped = made(measure="nDCG(undefined=skip)@10")
    assert np.isnan(skipped.trace.score).tolist() == [False, False, False, True]
    assert (skipped.parts[0].n, skipped.verdicts[3]) == (3, "nothing relevant")


def big(topics: int = 40) -> tuple[dict[str, dict[str, int]], dict[str, list[str]], dict[str, list[str]]]:
    """Give qrels, a run with the relevant document first, and one that lost it on even topics, and pushed it on odd."""
    qrels = {f"q{at:02}": {"rel": 1} for at in range(topics)}
    good = {topic: ["rel", *(f"x{at}" for at in range(20))] for topic in qrels}
    bad = {
        topic: docs[1:] if at % 2 == 0 else [*docs[1:15], "rel", *docs[15:]]
        for at, (topic, docs) in enumerate(good.items())
    }
    return qrels, good, bad


def test_two_systems_and_slices() -> None:
    qrels, good, bad = big()
    known = {topic: {"side": "even" if at % 2 == 0 else "odd", "few": at < 5} for at, topic in enumerate(qrels)}
    cut = slice_topics(known, ["side", "few"], min_topics=10)
    found = stages(qrels, bad, baseline=good, slicing=cut, resamples=999)
    told = {(one.slice, one.part): one for one in found.changes}
    assert told["all topics", "candidates"].result.difference == -0.5
    assert told["side=even", "candidates"].result.difference == told["side=odd", "ranking"].result.difference == -1
    assert told["side=even", "ranking"].result.difference == told["side=odd", "candidates"].result.difference == 0
    small = told[next(name for name, part in told if "few" in name and told[name, part].small), "score"]
    assert math.isnan(small.result.p)
    assert not small.significant
    # four slices, one of them too small: Holm over 3 x 2 parts; p of 20 equal signs is 1 / 1000 at 999 resamples
    assert told["side=even", "candidates"].result.adjusted == pytest.approx(
        6 * told["side=even", "candidates"].result.p
    )
    lost = found.lost
    assert lost["candidates"].mask.tolist() == [at % 2 == 0 for at in range(40)]
    assert lost["ranking"].mask.tolist() == [at % 2 == 1 for at in range(40)]
    assert found.lost_kinds[:2] == ("candidates", "ranking")
    said = " ".join(found.sentences)
    assert "run scores 1.0000 lower than run (other)" in said
    assert "side=even by candidates -1.0000" in said
    assert "side=odd by ranking -1.0000" in said
    assert "40 of 40 topics lost 1 or more, where 0 gained as much" in said
    assert "; 20 by candidates; 20 by ranking." in said
    assert "run by candidates alone: 20 of 40 topics lost 1 or more" in said
    assert 0.9 < found.parts[1].losses[0].low < found.parts[1].losses[0].value == found.parts[1].losses[0].high == 1


def test_a_pair_of_candidates_and_final_ranking_is_a_system_too() -> None:
    qrels, good, bad = big()
    found = stages(qrels, good, bad, baseline=(good, good), resamples=100)
    assert found.baseline is not None
    whole = {one.part: one.result.difference for one in found.changes if one.every}
    assert whole == {"score": -1.0, "candidates": 0.0, "ranking": -1.0}
    same = stages(qrels, good, baseline=good)
    assert "score the same in nDCG@10, and lose it in the same parts" in same.sentences[0]


def test_a_part_counts_from_a_share_of_the_best_and_of_the_loss_on() -> None:
    # R@5 of 10 relevant: candidates hold 4, of which 3 are shown: best 0.5, lost 0.1 and 0.1
    qrels = {"q": {f"d{at}": 1 for at in range(10)}}
    run = {"q": ["d0", "d1", "d2", "x", "y", "d3", "z"]}
    assert stages(qrels, run, measure="R@5").verdicts == ("both",)
    assert stages(qrels, run, measure="R@5", min_loss=0.21).verdicts == ("little lost",)
    assert stages(qrels, run, measure="R@5", min_loss=0.2).verdicts == ("both",)
    run = {"q": ["x", "d1", "y", "z", "w", "d3", "d4"]}  # 0.2 by candidates, 0.2 by ranking
    assert stages(qrels, run, measure="R@5", min_share=0.49).verdicts == ("both",)
    run = {"q": ["x", "d1", "y", "z", "w", "d3"]}  # 0.3 by candidates, 0.1 by ranking
    assert stages(qrels, run, measure="R@5", min_share=0.3).verdicts == ("not found",)
    assert stages(qrels, run, measure="R@5", min_share=0.25).verdicts == ("both",)


def test_a_deeper_recall_and_measures_by_class() -> None:
    found = stages(QRELS, RUN, cutoff=3, recall="R@5", measure=judged.nDCG(cutoff=10))
    assert found.trace.recall.tolist() == [1, 0.5, 0, 0]
    assert stages(QRELS, RUN, measure=judged.RR).measure == parse("RR")
    with pytest.raises(InputError, match="are 2 measures"):
        stages(QRELS, RUN, measure="P@5,10")


def test_options_that_make_no_sense() -> None:
    for wrong in ({"cutoff": 0}, {"min_loss": 0.0}, {"fdr": 1.0}, {"alpha": 0.7}, {"min_share": 0.6}):
        with pytest.raises(InputError):
            stages(QRELS, RUN, **wrong)
    with pytest.raises(InputError, match="2 runs are given where one is expected"):
        stages(QRELS, {"one": RUN, "two": RUN})
    with pytest.raises(InputError, match="no table 'changes'"):
        made().table("changes")


def test_forms() -> None:
    qrels, good, bad = big()
    found = stages(qrels, bad, baseline=good, resamples=100)
    document = found.to_dict()
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
    assert document["lost"][1]["found"][:2] == ["q00", "q02"]
    rows = list(csv.DictReader(io.StringIO(found.csv("topics"))))
    assert (len(rows), rows[0]["verdict"], rows[-1]["lost_ranking"]) == (40, "not found", "1.0")
    assert all(text in found.text(unfold=["topics"]) for text in ("lost: candidates", "q00", "Holm"))
    first = made(measure="nDCG(undefined=skip)@10").topics_table().grid().rows[0]
    assert first[:2] == ("c", "not found")


def test_slices_that_cannot_be_tested() -> None:
    """An empty slice, one of a single topic, and one that is too small: shown, not tested, and not counted by Holm."""
    qrels, good, bad = big()
    known = {topic: {"at": float(at)} for at, topic in enumerate(qrels)}
    wanted = {"empty": "at > 99", "single": "at == 1", "small": "at < 4", "large": "at >= 4"}
    cut = slice_topics(known, slices=[Slice(name, text, 10 if name == "small" else 1) for name, text in wanted.items()])
    found = stages(qrels, bad, baseline=good, slicing=cut, resamples=999)
    told = {(one.slice, one.part): one.result for one in found.changes}
    assert [one.n for one in found.parts[1:]] == [0, 1, 4, 36]
    for name in ("empty", "single", "small"):
        assert math.isnan(told[name, "ranking"].p)
    assert told["large", "ranking"].adjusted == pytest.approx(2 * told["large", "ranking"].p)
    assert "Holm over 2 tests" in " ".join(found.sentences)
    json.dumps(found.to_dict(), allow_nan=False)
    quadrants = matrix(qrels, {"good": good, "bad": bad}, x="R@100", slicing=cut, resamples=999)
    points = {(point.run, point.slice): point for point in quadrants.points}
    assert [points["bad", name].quadrant for name in wanted] == ["", "", "", "both problems"]
    assert "Bonferroni: 1 slice, two axes" in quadrants.table("points").note
    json.dumps(quadrants.to_dict(), allow_nan=False)


def test_bars_add_up_to_the_best() -> None:
    qrels, good, bad = big(12)
    found = stages(qrels, bad, baseline=good, resamples=100)
    titles = []
    for name, bars in (("slices", 2), ("topics", 12)):
        chart = found.charts()[name]
        ends: dict[str, float] = {}
        for row in chart.table.records():
            ends[row["bar"]] = max(ends.get(row["bar"], 0.0), row["end"])
        assert list(ends.values()) == [1.0] * bars
        titles.append(chart.title)
    assert titles == ["run and run (other): where nDCG@10 is lost", "run: where nDCG@10 is lost, by topic"]
