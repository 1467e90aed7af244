"""Scores of several calls as one: the same numbers as one call gives, and a refusal of what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import judged
from judged import InputError, Run, Scores, evaluate

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {f"q{at}": {"a": 2, "b": 1, "c": 1} for at in range(6)}
OLD = {"q0": {"a": 1.0, "x": 1.0}, "q1": {"b": 2.0, "a": 1.0}, "zz": {"a": 1.0}}
NEW = {"q1": {"y": 3.0, "c": 3.0}, "q2": {"a": 1.0}}
MEASURES = ["nDCG@2", "RR(rel=2)", "P@1"]

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")


@pytest.mark.parametrize("how", [{}, {"topics": "run"}, {"topics": "both"}, {"ties": "bounds", "unjudged": True}])
def test_joined_scores_are_those_of_one_call(how: dict[str, Any], tmp_path: Path) -> None:
    for name, run, measures in (("old", OLD, MEASURES), ("new", NEW, MEASURES[::-1])):
        evaluate(QRELS, {name: run}, measures, **how).save(tmp_path / f"{name}.parquet")
    joined = Scores.load(tmp_path / "old.parquet").join(Scores.load(tmp_path / "new.parquet"))
    together = evaluate(QRELS, {"old": OLD, "new": NEW}, MEASURES, **how)
    assert (joined.run_names, joined.measures, joined.query_ids) == (
        ("old", "new"),
        together.measures,
        together.query_ids,
    )
    assert np.array_equal(joined.values, together.values, equal_nan=True)
    assert np.array_equal(joined.counted, together.counted)
    assert len(joined.ranges) == len(together.ranges)
    for one, other in zip(joined.ranges, together.ranges, strict=True):
        assert np.array_equal(one.low, other.low, equal_nan=True)
        assert np.array_equal(one.high, other.high, equal_nan=True)
        assert np.array_equal(one.judged, other.judged, equal_nan=True)
    assert joined.to_arrow().equals(together.to_arrow())
    assert str(joined.estimates()) == str(together.estimates())  # NaN is NaN


@pytest.mark.parametrize(
    ("qrels", "name", "measures", "how", "message"),
    [
        (QRELS | {"q0": {"a": 2}}, "new", MEASURES, {}, "new and of old must have the same judgments"),
        (QRELS, "new", MEASURES, {"depth": 5}, "must have the same depth, got 5 and None"),
        (
            QRELS,
            "new",
            MEASURES,
            {"dialect": "trec_eval-10"},
            "must have the same dialect, got trec_eval-10 and judged",
        ),
        (QRELS, "new", MEASURES, {"unjudged": True}, "must either all have score ranges"),
        (QRELS, "new", ["nDCG@2", "P@1"], {}, r"must have the same measures, but only one has RR\(rel=2\)"),
        (QRELS, "old", MEASURES, {}, "run names must be unique, got two runs called 'old'"),
    ],
)
def test_what_differs_is_named(qrels: Any, name: str, measures: list[str], how: dict[str, Any], message: str) -> None:
    old = evaluate(QRELS, {"old": OLD}, MEASURES)
    with pytest.raises(InputError, match=message):
        old.join(evaluate(qrels, {name: NEW}, measures, **how))


def test_scores_over_some_topics_are_not_joined_with_those_of_all() -> None:
    old, new = (evaluate(QRELS, {name: run}, MEASURES) for name, run in (("old", OLD), ("new", NEW)))
    with pytest.raises(InputError, match="must have the same topics"):
        old.join(new.over_topics([True] * 5 + [False]))


@pytest.mark.parametrize("saved", ["scores.parquet", "scores.json", "compared.parquet", "compared.json"])
def test_a_saved_result_is_neither_qrels_nor_run(saved: str, tmp_path: Path) -> None:
    scores = evaluate(QRELS, {"old": OLD, "new": NEW}, MEASURES)
    (scores if "scores" in saved else scores.compare(measures="P@1")).save(tmp_path / saved)
    for read in (judged.Qrels.read, Run.read):
        with pytest.raises(InputError, match=r"a saved result of judged.*--scores.*Scores\.load"):
            read(tmp_path / saved)
    if saved != "scores.parquet":
        with pytest.raises(InputError, match=r"Fix: (use|save)"):
            Scores.load(tmp_path / saved)
