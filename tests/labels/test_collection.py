"""What is said of a collection, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from judged import Qrels
from judged.data.qrels import Origin
from judged.errors import InputError
from judged.labels import check_collection

QRELS = {"q": {"a": 1, "b": 2, "c": 0}, "r": {"a": 0, "d": 0}}
RUNS = {"one": {"q": ["a", "b", "x"], "r": ["a", "x"]}, "two": {"q": ["x", "c"], "r": ["d"]}}


def test_counts_are_those_of_the_lists() -> None:
    found = check_collection(QRELS, RUNS, measure="P@2", cutoff=2, pool_depth=2)
    assert (found.n, found.judgments, found.without_relevant) == (2, 5, ("r",))
    one, two = found.coverage
    assert (one.judged_share, one.full_depth, one.unjudged) == (0.75, 1, 1)  # (2/2 + 1/2) / 2; x is second in r
    assert (two.judged_share, two.full_depth, two.unjudged) == (0.75, 0, 1)  # (1/2 + 1/1) / 2; x is first in q
    assert found.largest_loss is not None
    assert (found.largest_loss[0].run, found.largest_loss[0].difference) == ("one", -0.5)  # a and b are one's alone


def test_time_and_noise_are_of_the_labels_that_count() -> None:
    rows = [("q", "a", "ann", 1, 4.0), ("q", "b", "ann", 0, 8.0), ("q", "a", "bob", 1, None), ("q", "b", "bob", 1, 6.0)]
    names = ("query_id", "doc_id", "judge", "grade", "seconds")
    labels = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    found = check_collection(QRELS, RUNS, measure="P@2", labels=labels)
    assert found.seconds == 6.0
    assert found.hours == pytest.approx(18 / 3600)
    assert found.agreement is not None
    assert found.agreement.pairs[0].same == 0.5


def test_labels_by_models_are_said_with_and_without_a_pool() -> None:
    made = replace(Qrels.of(QRELS), origin=Origin("majority", human=2, model=3))
    for runs in (RUNS, {"one": RUNS["one"]}):
        rules = [note.rule for note in check_collection(made, runs, measure="P@2").notes]
        assert rules.count("model-judgments") == 1


def test_one_run_has_no_pool_to_be_left_out_of() -> None:
    found = check_collection(QRELS, {"one": RUNS["one"]})
    assert (found.pool, found.plans, found.agreement, found.seconds) == (None, None, None, None)


@pytest.mark.parametrize("cutoff", [0, -1])
def test_cutoffs_are_from_1(cutoff: int) -> None:
    with pytest.raises(InputError, match="cutoff"):
        check_collection({"q": {"a": 1}}, {"one": {"q": ["a"]}}, cutoff=cutoff)


def test_nothing_is_said_of_losses_that_could_not_happen() -> None:
    same = {"one": RUNS["one"], "two": RUNS["one"]}
    found = check_collection(QRELS, same, measure="P@2")
    assert found.pool is not None
    assert not any(row.lost for row in found.pool.rows)
    assert not any("loses up to" in text for text in found.sentences)
    assert any("loses up to" in text for text in check_collection(QRELS, RUNS, measure="P@2").sentences)
