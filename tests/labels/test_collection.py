"""Checks of a test collection against counts by hand."""

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


def test_coverage_by_hand() -> None:
    result = check_collection(QRELS, RUNS, measure="P@2", cutoff=2, pool_depth=2)
    assert (result.n, result.judgments, result.without_relevant) == (2, 5, ("r",))
    first, second = result.coverage
    assert (first.judged_share, first.full_depth, first.unjudged) == (0.75, 1, 1)  # (2/2 + 1/2) / 2; x is second in r
    assert (second.judged_share, second.full_depth, second.unjudged) == (0.75, 0, 1)  # (1/2 + 1/1) / 2; x is first in q
    assert result.largest_loss is not None
    largest = result.largest_loss[0]
    assert (largest.run, largest.difference) == ("one", -0.5)  # only run one contributed a and b


def test_time_and_agreement_use_the_labels_that_count() -> None:
    rows = [("q", "a", "ann", 1, 4.0), ("q", "b", "ann", 0, 8.0), ("q", "a", "bob", 1, None), ("q", "b", "bob", 1, 6.0)]
    names = ("query_id", "doc_id", "judge", "grade", "seconds")
    labels = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    result = check_collection(QRELS, RUNS, measure="P@2", labels=labels)
    assert result.seconds == 6.0
    assert result.hours == pytest.approx(18 / 3600)
    assert result.agreement is not None
    assert result.agreement.pairs[0].same == 0.5


def test_labels_by_models_give_one_note() -> None:
    qrels = replace(Qrels.of(QRELS), origin=Origin("majority", human=2, model=3))
    for runs in (RUNS, {"one": RUNS["one"]}):
        rules = [note.rule for note in check_collection(qrels, runs, measure="P@2").notes]
        assert rules.count("model-judgments") == 1


def test_a_single_run_has_no_pool() -> None:
    result = check_collection(QRELS, {"one": RUNS["one"]})
    assert (result.pool, result.plans, result.agreement, result.seconds) == (None, None, None, None)


@pytest.mark.parametrize("cutoff", [0, -1])
def test_invalid_cutoffs_raise(cutoff: int) -> None:
    with pytest.raises(InputError, match="cutoff"):
        check_collection({"q": {"a": 1}}, {"one": {"q": ["a"]}}, cutoff=cutoff)


def test_no_losses_are_reported_without_unique_contributions() -> None:
    same = {"one": RUNS["one"], "two": RUNS["one"]}
    result = check_collection(QRELS, same, measure="P@2")
    assert result.pool is not None
    assert not any(row.lost for row in result.pool.rows)
    assert not any("would lose at most" in text for text in result.sentences)
    assert any("would lose at most" in text for text in check_collection(QRELS, RUNS, measure="P@2").sentences)
