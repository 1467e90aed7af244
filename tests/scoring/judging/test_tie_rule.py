"""One table of rankings that are easy to get wrong, for all five ways in which scores become ranks."""

from __future__ import annotations

from math import nan

import numpy as np
import pyarrow as pa
import pytest

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError
from judged.scoring import arrays
from judged.scoring.judging import judge
from judged.scoring.judging.align import align

# Documents in their order: by falling score as a double, then by falling id, byte by byte in UTF-8 (trec_eval's rule).
CASES = {
    "equal scores": ({"a": 1, "b": 1, "c": 1}, "cba"),
    "a score decides before an id": ({"a": 2, "c": 1, "b": 1}, "acb"),
    "capital letters come first": ({"A": 1, "a": 1, "B": 1}, "aBA"),
    "digits are text": ({"10": 1, "9": 1, "1": 1}, ["9", "10", "1"]),
    "an id that begins another": ({"a": 1, "ab": 1, "b": 1}, ["b", "ab", "a"]),
    "letters beyond ASCII": ({"z": 1, "\u00e9": 1, "\u6587": 1}, "\u6587\u00e9z"),
    "not the order of UTF-16": ({"\uff21": 1, "\U0001d538": 1}, ["\U0001d538", "\uff21"]),
    "signs of zero": ({"a": 0.0, "b": -0.0, "c": 0.0}, "cba"),
    "the smallest number": ({"b": 0.0, "a": 5e-324, "c": -5e-324}, "abc"),
    "the last bit of a double": ({"b": 1.0, "a": 1.0 + 2**-52}, "ab"),
    "negative scores": ({"a": -1.5, "b": -2.5, "c": -1.5}, "cab"),
    "far apart": ({"a": 1e308, "b": -1e308, "c": 1e-308}, "acb"),
}
SINGLE = {  # the same as numbers of single precision, as trec_eval before version 10 compares them
    "the last bit of a double": ({"b": 1.0, "a": 1.0 + 2**-52}, "ba"),
    "the last bit of a single": ({"b": 1.0, "a": 1.0 + 2**-23}, "ab"),
    "whole numbers beyond 2**24": ({"b": 16777216, "a": 16777217}, "ba"),
    "signs of zero": ({"a": 0.0, "b": -0.0}, "ba"),
}


def by_grades(docs, run, **policies):
    """Judge every document with a grade of its own, and read the grades in the order of ranks."""
    judged = judge(Qrels.of({"q": {doc: grade for grade, doc in enumerate(docs, 1)}}), Run.of(run), **policies)
    return [docs[int(grade) - 1] for grade in judged.grade[np.argsort(judged.rank)]]


def table_of(scores):
    docs = [*scores]
    return pa.table({"query_id": ["q"] * len(docs), "doc_id": docs, "score": pa.array(scores.values(), pa.float64())})


def of_rows(scores, **policies):
    return by_grades([*scores], table_of(scores), **policies)


def of_mapping(scores, **policies):
    return by_grades([*scores], {"q": scores}, **policies)


def of_relation(scores, **policies):
    duckdb = pytest.importorskip("duckdb")
    table = table_of(scores)
    return by_grades([*scores], duckdb.connect().from_arrow(table), **policies)


def of_two_runs(scores, **policies):
    both = align({"q": scores}, {"q": scores}, **policies)
    return both.doc.take(pa.array(np.argsort(both.first))).to_pylist()


def of_arrays(scores, **policies):
    """Rank on an array; its columns stand in the order in which equal scores are to come."""
    docs = sorted(scores, key=str.encode, reverse=True)
    kind = np.float32 if policies.get("precision") == "single" else np.float64
    values = np.array([[scores[doc] for doc in docs]], kind)
    grades = np.eye(len(docs), dtype=int)
    ranks = [1 / float(arrays.reciprocal_rank(values, grades[[at]])[0]) for at in range(len(docs))]
    return [doc for _, doc in sorted(zip(ranks, docs, strict=True))]


WAYS = [of_rows, of_mapping, of_relation, of_two_runs, of_arrays]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_documents(name, way):
    scores, order = CASES[name]
    assert way(scores) == [*order]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SINGLE)
def test_the_order_in_single_precision(name, way):
    scores, order = SINGLE[name]
    assert way(scores, precision="single") == [*order]


@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("name", CASES)
def test_rising_ids(name, way):
    scores, _ = CASES[name]
    assert way(scores, ties="docid-rising") == sorted(sorted(scores, key=str.encode), key=lambda doc: -scores[doc])


@pytest.mark.parametrize("way", WAYS[:-1])
def test_a_score_that_is_no_number(way):
    with pytest.raises(InputError):
        way({"a": nan, "b": 1.0})


def in_a_relation(table):
    return by_grades(["a", "b"], pytest.importorskip("duckdb").connect().from_arrow(table))


@pytest.mark.parametrize(
    "way", [lambda table: by_grades(["a", "b"], table), in_a_relation, lambda table: align(table, table)]
)
def test_a_document_that_is_returned_twice(way):
    table = pa.table({"query_id": ["q"] * 3, "doc_id": ["a", "b", "a"], "score": [3.0, 2.0, 1.0]})
    with pytest.raises(InputError):
        way(table)


def test_a_document_that_is_returned_twice_under_two_keys():
    with pytest.raises(InputError):
        judge(Qrels.of({"q": {"1": 1}}), Run.of({"q": {"1": 2.0, 1: 1.0}}))
