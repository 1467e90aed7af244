"""Measures of several assessors: against trec_eval's own functions, one assessor at a time, and by hand."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
import trec_eval_c
from judged import Judged, Qrels, judge
from judged.scoring.judging.split import by_aspect
from judged.scoring.measures import RprecMultJg, parse
from strategies import docs, grades, scores, topics

if TYPE_CHECKING:
    from pathlib import Path

    from strategies import Run

Labels = dict[str, dict[str, dict[str, float]]]  # topic, assessor, document, grade


def qrels_of(labels: Labels) -> Qrels:
    rows = [(t, a, d, g) for t, by in labels.items() for a, grades in by.items() for d, g in grades.items()]
    query, assessor, doc, grade = zip(*rows, strict=True)
    return Qrels(pa.table({"query_id": query, "iteration": assessor, "doc_id": doc, "relevance": grade}))


# --- trec_eval's own functions ------------------------------------------------------------------------


def collection(seed: int) -> tuple[Labels, Run]:
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    labels: Labels = {}
    run: Run = {}
    for number in range(8):
        topic = trec_eval_c.topic_name(f"{seed}.{number}")
        documents = [f"{chance.choice('aZé')}{number}" for number in range(chance.randint(1, 40))]
        labels[topic] = {
            user: {
                doc: float(chance.choice([0, 0, 1, 2, 3, -1]))
                for doc in chance.sample(documents, len(documents) // 2 + 1)
            }
            for user in chance.sample(["u0", "u1", "u10", "é"], chance.randint(1, 4))
        }
        returned = [
            *chance.sample(documents, chance.randint(0, len(documents))),
            *(f"x{number}" for number in range(5)),
        ]
        run[topic] = {doc: float(chance.randint(1, 8)) for doc in returned}
    return labels, run


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_every_double_is_the_same(seed: int, level: int, judged_only: bool, tmp_path: Path) -> None:
    labels, run = collection(seed)
    qrels = tmp_path / "qrels"
    qrels.write_text(
        "".join(
            f"{t} {a} {d} {g:.0f}\n" for t, by in labels.items() for a, grades in by.items() for d, g in grades.items()
        ),
        "utf-8",
    )
    rows = [(topic, doc, score) for topic, scores in run.items() for doc, score in scores.items()]
    theirs = trec_eval_c.trec_eval(
        qrels, trec_eval_c.run_file(tmp_path / "run", rows), "qrels_jg", trec_eval_c.ASSESSORS,
        level=level, judged_only=judged_only,
    )  # fmt: skip
    ours = judge(Qrels.read(qrels), run)
    names = list(next(iter(theirs.values())))
    assert len(names) == 1 + 9 + 10
    for name in names:
        factor = name.removeprefix("Rprec_mult_avgjg_")
        measure = parse(name) if factor == name else RprecMultJg(factor=float(factor))
        values = measure.replace(rel=level, judged_only=judged_only)(ours).tolist()
        assert values == [theirs[topic][name] for topic in ours.query_ids], name


# --- one assessor at a time ---------------------------------------------------------------------------

assessors = st.sampled_from(["u", "v", "10", "é"])
judgments = st.dictionaries(assessors, st.dictionaries(docs, grades, min_size=1), min_size=1)
labeled = st.dictionaries(topics, judgments, min_size=1, max_size=4)
ANY = ["AP", "AP(judged_only=true)", "P@3", "RR(rel=2)", "nDCG@5", "Rprec", "Bpref", "SetF", "Unjudged@4", "NumRel"]


@settings(max_examples=60)
@given(labeled, st.data())
def test_each_assessor_is_a_qrels_of_their_own(labels: Labels, data: st.DataObject) -> None:
    run = {topic: data.draw(st.dictionaries(docs, scores), label=topic) for topic in labels}
    judged_list = judge(qrels_of(labels), run)
    split = by_aspect(judged_list)
    names = judged_list.qrels.aspects.names
    pairs = [
        (judged_list.query_ids[topic_index], names[aspect])
        for topic_index, aspect in zip(split.topic.tolist(), split.aspect.tolist(), strict=True)
    ]
    assert pairs == sorted((topic, assessor) for topic, by in labels.items() for assessor in by)
    for name in ANY:
        measure = parse(name)
        values = measure(split.judged).tolist()
        for (topic, assessor), value in zip(pairs, values, strict=True):
            assert value == measure(judge({topic: labels[topic][assessor]}, {topic: run[topic]}))[0], (name, topic)
        expected = [
            np.mean([v for (t, _), v in zip(pairs, values, strict=True) if t == topic])
            for topic in judged_list.query_ids
        ]
        assert split.mean(measure(split.judged)).tolist() == pytest.approx(expected, rel=1e-14)


def two() -> Judged:
    labels: Labels = {"q": {"u": {"a": 2.0, "b": 0.0}, "v": {"b": 1.0, "c": 0.0, "d": 1.0}}}
    return judge(qrels_of(labels), {"q": {"x": 5.0, "a": 4.0, "b": 3.0, "c": 2.0}})


def test_the_parts_of_a_split() -> None:
    split = by_aspect(two())
    assert split.judged.query_ids == ("q u", "q v")
    assert split.judged.doc == ["a", "b", "b", "c"]
    assert split.judged.rank.tolist() == [2, 3, 3, 4]
    assert split.judged.grade.tolist() == [2.0, 0.0, 1.0, 0.0]
    assert split.judged.returned.tolist() == [4, 4]
    assert split.judged.ideal.doc == ["a", "b", "b", "d", "c"]
    assert split.mean(np.array([1.0, 3.0])).tolist() == [2.0]
    assert split.mean(np.array([1.0, 3.0]), np.array([True, False])).tolist() == [1.0]


def test_a_split_has_no_unjudged_documents_to_look_at() -> None:
    with pytest.raises(judged.MeasureError, match="has no unjudged documents"):
        _ = by_aspect(two()).judged.returned_docs


def test_a_topic_of_the_run_alone_has_no_assessors() -> None:
    judged_list = judge({"q": {"a": 1}}, {"q": {"a": 1.0}, "more": {"a": 1.0}}).over("run")
    assert parse("map_avgjg")(judged_list).tolist() == [0.0, 1.0]


def test_an_assessor_who_found_nothing_counts_as_0() -> None:
    """u: a at rank 2 of one relevant; v: b at rank 3 of two. A third without relevant documents lowers it."""
    assert parse("map_avgjg")(two()).tolist() == [(1 / 2 + (1 / 3) / 2) / 2]
    assert parse("P_avgjg_4")(two()).tolist() == [1 / 4]
    assert judged.measures.APjg().of_list([(1, 0)]) == 0.5


def test_judged_only_leaves_out_what_the_assessor_did_not_judge() -> None:
    """For u the ranking is then a b, for v b c: 1 and (1 / 1) / 2. Together it would have been a b c."""
    assert parse("APjg(judged_only=true)")(two()).tolist() == [(1 + 1 / 2) / 2]


def test_undefined_is_said_of_the_topic_and_not_of_an_assessor() -> None:
    nothing_relevant = judge(qrels_of({"q": {"u": {"a": 0.0}, "v": {"a": 0.0}}}), {"q": {"a": 1.0}})
    assert parse("APjg(undefined=0.5)")(nothing_relevant).tolist() == [0.5]
    assert judged.measures.APjg(undefined=0.5).of_list([(1, 0)]) == 0.5  # (1 + 0) / 2: the second assessor counts as 0
    assert judged.measures.APjg(undefined=-1).of_list([(1, 0)]) == 0.5
