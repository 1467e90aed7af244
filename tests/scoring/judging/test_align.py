"""`align` against a plain join of dicts, and against the ranks of `judge`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import Run, judge
from judged.errors import InputError
from judged.scoring.judging.align import Aligned, align
from judged.scoring.judging.ranking import DuplicateDocumentError
from strategies import collections, docs, ranked, scores, topics

if TYPE_CHECKING:
    from pathlib import Path

runs = st.dictionaries(topics, st.dictionaries(docs, scores, max_size=8), max_size=4)


def plainly(first: dict, second: dict, depth: int | None) -> list[tuple]:
    """Join two runs the plain way: topic, document, ranks, first ranks of ties."""
    rows = []
    for topic in sorted({*first, *second}):
        sides = []
        for run in (first, second):
            docs = run.get(topic, {})
            order = ranked(docs)
            tie = {doc: next(at for at, other in enumerate(order, 1) if docs[other] == docs[doc]) for doc in order}
            sides.append({doc: (at, tie[doc]) for at, doc in enumerate(order[:depth], 1)})
        one, other = sides
        for doc in [*one, *(doc for doc in other if doc not in one)]:
            (rank, tie), (other_rank, other_tie) = one.get(doc, (0, 0)), other.get(doc, (0, 0))
            rows.append((topic, doc, rank, other_rank, tie, other_tie))
    return rows


def rows_of(both: Aligned) -> list[tuple]:
    columns = (both.first, both.second, both.first_tie, both.second_tie)
    names = [both.query_ids[code] for code in both.topic.tolist()]
    return list(zip(names, both.doc.to_pylist(), *(column.tolist() for column in columns), strict=True))


@given(runs, runs, st.sampled_from([None, 1, 3]))
def test_it_is_a_join_of_two_rankings(first: dict, second: dict, depth: int | None) -> None:
    both = align(first, second, depth=depth)
    assert rows_of(both) == plainly(first, second, depth)
    with_documents = {topic for run in (first, second) for topic, docs in run.items() if docs}
    assert with_documents <= set(both.query_ids) <= {*first, *second}
    assert both.starts.tolist() == [sum(row < code for row in both.topic) for code in range(len(both) + 1)]


@given(
    collections(),
    st.sampled_from(["docid", "docid-rising", "stable"]),
    st.sampled_from([None, 2]),
    st.sampled_from(["double", "single"]),
)
def test_ranks_are_those_of_judge(collection: tuple, ties: str, depth: int | None, precision: str) -> None:
    qrels, run = collection
    policies = {"ties": ties, "depth": depth, "precision": precision}
    both, judged = align(run, {}, **policies), judge(qrels, run, **policies)
    place = {(topic, doc): ranks for topic, doc, *ranks in rows_of(both)}
    for code, doc, rank, tie in zip(judged.topic.tolist(), judged.doc, judged.rank, judged.tie_first, strict=True):
        assert place[judged.query_ids[code], doc] == [rank, 0, tie, 0]


def test_columns_cannot_be_written() -> None:
    both = align({"q": {"a": 1.0}}, {"q": {"a": 1.0}})
    with pytest.raises(ValueError, match="read-only"):
        both.first[0] = 2


def test_topics_are_found_by_name() -> None:
    both = align({"b": {"x": 2.0, "y": 1.0}}, {"a": {"z": 1.0}, "b": {"y": 3.0}})
    assert both.query_ids == ("a", "b")
    part = both.rows("b")
    assert both.doc.to_pylist()[part] == ["x", "y"]
    assert both.second[part].tolist() == [0, 1]
    with pytest.raises(InputError, match=r"neither run has a topic 'c'. Fix: use one of a, b"):
        both.rows("c")


def test_files_and_rank_columns(tmp_path: Path) -> None:
    (tmp_path / "one.run").write_text("q Q0 a 2 9.0 t\nq Q0 b 1 8.0 t\n")
    (tmp_path / "two.run").write_text("q Q0 b 1 1.0 t\n")
    both = align(tmp_path / "one.run", tmp_path / "two.run", ties="rank")
    assert both.doc.to_pylist() == ["b", "a"]
    assert both.runs == ("one", "two")
    with pytest.raises(InputError, match="requires a rank column"):
        align(tmp_path / "one.run", {"q": {"a": 1.0}}, ties="rank")


def test_a_run_without_scores_is_one_tie() -> None:
    sets = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "b"]})
    both = align(sets, {"q": {"b": 2.0, "a": 1.0}})
    assert both.first_tie.tolist() == [1, 1]
    assert sorted(both.first.tolist()) == [1, 2]
    with pytest.raises(InputError, match="depth=1 requires scores"):
        align(sets, sets, depth=1)


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.run").write_text("q Q0 a 1 2.0 t\nq Q0 b 2 1.0 t\nq Q0 a 3 0.5 t\n")
    with pytest.raises(DuplicateDocumentError, match=r"twice\.run:3: document a is returned twice for topic q"):
        align(tmp_path / "twice.run", {"q": {"a": 1.0}})
    with pytest.raises(DuplicateDocumentError, match="document 7 is returned twice"):
        align({"q": {"a": 1.0}}, {"q": {"7": 1.0, 7: 2.0}})
    with pytest.raises(InputError, match="got NaN for topic q"):
        align({"q": {"a": 1.0}}, {"q": {"a": math.nan}})
    with pytest.raises(InputError, match="unknown value of `ties`"):
        align({}, {}, ties="guess")


def test_nothing_at_all() -> None:
    both = align({}, Run.of({}))
    assert (len(both), rows_of(both)) == (0, [])
