"""Judgments of several subtopics or assessors for one pair."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from judged import Qrels, judge
from judged.scoring.judging import judge_list

ROWS = [("2", "b", "s2", 1.0), ("1", "a", "s1", 0.0), ("2", "b", "s1", 3.0), ("2", "a", "s10", -2.0)]


def qrels_of(rows: list[tuple[str, str, str, float]]) -> Qrels:
    names = ("query_id", "doc_id", "iteration", "relevance")
    return Qrels(pa.table({name: [row[position] for row in rows] for position, name in enumerate(names)}))


def test_every_label_is_kept_beside_the_highest() -> None:
    qrels = qrels_of(ROWS)
    aspects = qrels.aspects
    assert aspects.names == ("s1", "s10", "s2")  # byte order
    assert aspects.starts.tolist() == [0, 1, 3, 4]  # topic 1: a; topic 2: b, a, as they come in the file
    assert aspects.aspect.tolist() == [0, 0, 2, 1]
    assert aspects.grade.tolist() == [0.0, 3.0, 1.0, -2.0]
    assert qrels.index.grade.tolist() == [0.0, 3.0, -2.0]


def test_hits_and_labels_by_aspect() -> None:
    judged = judge(qrels_of(ROWS), {"2": {"x": 3.0, "b": 2.0, "a": 1.0}})
    assert judged.rank.tolist() == [2, 3]
    of, aspect, grade = judged.aspects
    assert (of.tolist(), aspect.tolist(), grade.tolist()) == ([0, 0, 1], [0, 2, 1], [3.0, 1.0, -2.0])
    assert judged.label_aspects.owner.tolist() == [0, 1, 1, 2]
    assert judged.over("both").label_aspects.grade.tolist() == [3.0, 1.0, -2.0]
    assert judged.ideal.aspects.grade.tolist() == [0.0, 3.0, 1.0]  # of the hits of the ideal: a negative grade is none


def test_judgments_without_iterations_are_one_aspect() -> None:
    judged = judge_list([2, None, 0], missing=[1])
    assert judged.qrels.aspects.names == ("",)
    assert judged.aspects.grade.tolist() == [2.0, 0.0]
    assert judged.label_aspects.aspect.tolist() == [0, 0, 0]


rows = st.lists(
    st.tuples(
        st.sampled_from("12"),
        st.sampled_from("abc"),
        st.sampled_from(["0", "1", "10"]),
        st.sampled_from([-1.0, 0.0, 2.0]),
    ),
    min_size=1,
    unique_by=lambda row: row[:3],
)


@given(rows)
def test_all_labels_are_there_once(given_rows: list[tuple[str, str, str, float]]) -> None:
    qrels = qrels_of(given_rows)
    judged = judge(qrels, {topic: {"a": 1.0, "b": 2.0, "x": 3.0} for topic in "12"})
    index = qrels.index
    names = [(judged.query_ids[index.topic[pair]], index.row_names[pair]) for pair in range(len(index.topic))]
    of, aspect, grade = judged.label_aspects
    listed = [
        (*names[pair], qrels.aspects.names[code], value)
        for pair, code, value in zip(of.tolist(), aspect.tolist(), grade.tolist(), strict=True)
    ]
    assert sorted(listed) == sorted(given_rows)
    assert of.tolist() == sorted(of.tolist())
