"""Aggregation of labels to qrels: results by hand, properties of the rules, and the origin."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import Qrels
from judged.errors import InputError
from judged.labels import Labels, LabelStore, qrels_of
from judged.labels.consensus import RULES, consensus_notes, dawid_skene

#       ann bob cy   majority  mean
# q a     2   2  0         2   4/3
# q b     1   0  -   (tie) 0   1/2
# q c     3   1  2   (tie) 1     2
# r a     -   -  1         1     1
JUDGMENTS = {
    "ann": {"q": {"a": 2, "b": 1, "c": 3}},
    "bob": {"q": {"a": 2, "b": 0, "c": 1}},
    "cy": {"q": {"a": 0, "c": 2}, "r": {"a": 1}},
}


def grades(qrels: Qrels) -> dict[tuple[str, str], float]:
    rows = qrels.table.to_pylist()
    return {(row["query_id"], row["doc_id"]): row["relevance"] for row in rows}


def test_each_rule_by_hand() -> None:
    labels = Labels.of(JUDGMENTS)
    pairs = [("q", "a"), ("q", "b"), ("q", "c"), ("r", "a")]
    by = {rule: [grades(qrels_of(labels, by=rule))[pair] for pair in pairs] for rule in ("majority", "mean")}
    assert by["majority"] == [2, 0, 1, 1]
    assert by["mean"] == pytest.approx([4 / 3, 1 / 2, 2, 1])
    assert grades(qrels_of(labels, by="bob")) == {("q", "a"): 2, ("q", "b"): 0, ("q", "c"): 1}


def test_dawid_skene_rules_use_the_model() -> None:
    labels = Labels.of(JUDGMENTS)
    model = dawid_skene(labels.grades, smoothing=0.1)
    assert qrels_of(labels, by="dawid-skene", smoothing=0.1).grades.tolist() == model.mode.tolist()
    assert qrels_of(labels, by="dawid-skene-mean", smoothing=0.1).grades == pytest.approx(model.mean)


def test_pairs_with_too_few_judges_stay_unjudged() -> None:
    labels = Labels.of(JUDGMENTS)
    assert set(grades(qrels_of(labels, min_judges=2))) == {("q", "a"), ("q", "b"), ("q", "c")}
    assert set(grades(qrels_of(labels, min_judges=3))) == {("q", "a"), ("q", "c")}
    with pytest.raises(InputError):
        qrels_of(labels, min_judges=4)


def test_the_last_label_counts_and_repeats_and_skips_do_not() -> None:
    store = LabelStore.open("sqlite://")
    store.add("ann", "q", "a", 3)
    store.add("ann", "q", "a", 1)  # replaces the label before
    store.add("ann", "q", "a", 2, repeat=1)
    store.add("ann", "q", "b", None)  # skipped
    store.add("ann", "q", "c", 1)
    store.add("ann", "q", "c", None, valid=False)  # undone
    store.add("ann", "q", "d", 2, repeat=1)  # a repeat without a first label
    assert grades(qrels_of(store)) == {("q", "a"): 1}


def test_the_origin_describes_the_labels_that_count() -> None:
    store = LabelStore.open("sqlite://")
    store.add_topics({"q": "asked", "s": "made of a document"}, synthetic=False)
    store.add_topics({"t": "made of a document"}, synthetic=True)
    rows = [("ann", "q", "a", 2, "human"), ("llm", "q", "a", 3, "model"), ("log", "t", "a", 0.4, "click")]
    store.add_many(
        {"judge": judge, "query_id": topic, "doc_id": doc, "grade": grade, "kind": kind, "time": f"2026-01-0{day}"}
        for day, (judge, topic, doc, grade, kind) in enumerate(rows, 1)
    )
    origin = qrels_of(store, kinds=["human", "model", "click"]).origin
    assert origin is not None
    assert (origin.how, origin.human, origin.model, origin.click) == ("majority", 1, 1, 1)
    assert (origin.judges, origin.synthetic, origin.tied, origin.last) == (("ann", "llm", "log"), 1, 1, "2026-01-03")
    counted_labels = [("q", "a", "ann", "human", 2.0), ("q", "a", "llm", "model", 3.0), ("t", "a", "log", "click", 0.4)]
    assert origin.sha256 == hashlib.sha256(repr(counted_labels).encode()).hexdigest()
    assert [note.rule for note in consensus_notes(origin)] == ["tied-majority"]
    people = qrels_of(store, kinds=["human"]).origin
    assert people is not None
    assert (people.human, people.model, people.click, people.synthetic, people.tied) == (1, 0, 0, 0, 0)
    assert qrels_of(store, by="ann").origin.how == "judge"  # type: ignore[union-attr]


LABELS = st.lists(
    st.tuples(st.sampled_from("qr"), st.sampled_from("abc"), st.sampled_from(["ann", "bob", "cy"]), st.integers(0, 3)),
    min_size=1,
    unique_by=lambda row: row[:3],
)


@given(LABELS, st.randoms(use_true_random=False), st.sampled_from(RULES))
def test_results_do_not_depend_on_the_order_of_labels(
    rows: list[tuple[str, str, str, int]], random: object, rule: str
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (
        qrels_of(Labels.of(pa.table({name: [row[i] for row in label_rows] for i, name in enumerate(names)})), by=rule)
        for names in [("query_id", "doc_id", "judge", "grade")]
        for label_rows in (rows, shuffled)
    )
    assert first.table.select(["query_id", "doc_id"]).equals(second.table.select(["query_id", "doc_id"]))
    assert first.grades == pytest.approx(second.grades, abs=1e-9)
    assert first.origin == second.origin


@given(LABELS)
def test_majority_and_mean_are_between_the_grades_of_judges(rows: list[tuple[str, str, str, int]]) -> None:
    table = {name: [row[i] for row in rows] for i, name in enumerate(("query_id", "doc_id", "judge", "grade"))}
    labels = Labels.of(pa.table(table))
    low, high = np.nanmin(labels.grades, axis=1), np.nanmax(labels.grades, axis=1)
    for rule in RULES:
        grades = qrels_of(labels, by=rule).grades
        assert (grades >= (low if rule in {"majority", "mean"} else 0) - 1e-9).all()
        assert (grades <= (high if rule in {"majority", "mean"} else 3) + 1e-9).all()
    same = low == high
    assert (qrels_of(labels).grades[same] == low[same]).all()


def test_unknown_rules_raise() -> None:
    with pytest.raises(InputError, match="dawid-skene"):
        qrels_of(Labels.of(JUDGMENTS), by="eve")
    with pytest.raises(InputError):
        qrels_of(Labels.of(JUDGMENTS), kinds=["model"])


@pytest.mark.parametrize("by", ["majority", "mean", "dawid-skene"])
def test_the_adjudicator_is_not_a_vote(by: str) -> None:
    judges = {
        "ann": {"q": {"a": 0, "b": 2, "c": 1}}, "bob": {"q": {"a": 0, "b": 2, "c": 1}},
        "adjudicator": {"q": {"a": 3, "d": 1}},
    }  # fmt: skip
    qrels = qrels_of(Labels.of(judges), by=by, min_judges=2)
    grades = dict(zip(qrels.table["doc_id"].to_pylist(), qrels.table["relevance"].to_pylist(), strict=True))
    assert grades == {"a": 3.0, "b": 2.0, "c": 1.0, "d": 1.0}


def test_unknown_kinds_raise() -> None:
    labels = Labels.of({"ann": {"q": {"a": 1}}})
    for kinds in ("human", ["huma"]):
        with pytest.raises(InputError, match="type of judge"):
            qrels_of(labels, kinds=kinds)  # type: ignore[arg-type]


def test_columns_of_another_type_raise() -> None:
    table = pa.table({"query_id": ["q"], "doc_id": ["d"], "judge": ["ann"], "grade": [{"value": 1}]})
    with pytest.raises(InputError, match="grade"):
        Labels.of(table)


@pytest.mark.parametrize("smoothing", [-1.0, float("nan"), float("inf")])
def test_invalid_smoothing_raises(smoothing: float) -> None:
    with pytest.raises(InputError, match="smoothing"):
        dawid_skene(np.array([[1.0, 0.0]]), smoothing=smoothing)


def test_human_labels_count_by_default() -> None:
    rows = [("q", "a", "ann", "human", 0.0), ("q", "a", "gpt", "model", 3.0), ("q", "b", "gpt", "model", 3.0)]
    names = ["query_id", "doc_id", "judge", "kind", "grade"]
    labels = Labels.of(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
    assert qrels_of(labels).table.to_pylist() == [{"query_id": "q", "doc_id": "a", "relevance": 0.0}]
    with_models = qrels_of(labels, by="mean", kinds=["human", "model"])
    assert with_models.table["relevance"].to_pylist() == [1.5, 3.0]
