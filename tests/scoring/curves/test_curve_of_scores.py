"""Curves of scores that are there already are those that `curve` makes of qrels and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from judged import InputError, MeasureError, Qrels, Run, curve, evaluate, judge
from judged.scoring.curves import at_cutoffs
from judged.scoring.evaluation import Scores, score_lists

if TYPE_CHECKING:
    from pathlib import Path

_RANDOM = np.random.default_rng(11)
QRELS = {f"q{t}": {f"d{d}": int(_RANDOM.integers(0, 3)) for d in range(12)} for t in range(9)}
RUNS = {
    name: {topic: {f"d{d}": float(_RANDOM.random()) for d in range(20)} for topic in QRELS} for name in ("one", "two")
}
CUTOFFS = [1, 2, 5, 10]


def same(first: object, second: object) -> None:
    for name in ("points", "x", "mean", "low", "high", "n"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("measure", ["nDCG", "RBP(p=0.5)", "NumRelRet"])
@pytest.mark.parametrize("ci", ["bootstrap", "t", "none"])
def test_they_are_those_of_curve(measure: str, ci: str) -> None:
    straight = curve(QRELS, RUNS, measure, cutoffs=CUTOFFS, ci=ci, resamples=200, seed=3)  # type: ignore[arg-type]
    scores = evaluate(QRELS, RUNS, at_cutoffs(measure, CUTOFFS))
    curves = scores.curve(ci=ci, resamples=200, seed=3)  # type: ignore[arg-type]
    same(curves, straight)
    assert (curves.name, curves.title, curves.basis()) == (straight.name, straight.title, straight.basis())


def test_judged_lists_are_read_once() -> None:
    qrels = Qrels.of(QRELS)
    lists = [judge(qrels, Run.of(docs, name=name)) for name, docs in RUNS.items()]
    same(score_lists(lists, at_cutoffs("P", CUTOFFS)).curve(), curve(QRELS, RUNS, "P", cutoffs=CUTOFFS))


def test_over_some_topics() -> None:
    scores = evaluate(QRELS, RUNS, at_cutoffs("P", [1, 3]))
    some = np.array([name in {"q1", "q4"} for name in scores.query_ids])
    few = {name: QRELS[name] for name in ("q1", "q4")}
    curves = scores.over_topics(some).curve(ci="none")
    expected = evaluate(few, RUNS, "P@1,3").aggregate()
    assert curves.mean.tolist() == [[expected[run]["P@1"], expected[run]["P@3"]] for run in RUNS]
    assert curves.n.tolist() == [[2, 2], [2, 2]]


def test_cutoffs_in_any_order_are_drawn_rising(tmp_path: Path) -> None:
    scores = evaluate(QRELS, RUNS, ["P@10", "P@1", "P@5"])
    scores.save(tmp_path / "scores.parquet")
    curves = Scores.load(tmp_path / "scores.parquet").curve(ci="none")
    assert curves.points.tolist() == [1, 5, 10]
    assert curves.mean[0].tolist() == [scores.value(f"P@{k}", "one") for k in (1, 5, 10)]


def test_a_series_of_cutoffs() -> None:
    assert [str(measure) for measure in at_cutoffs("nDCG@3")] == ["nDCG@1", "nDCG@2", "nDCG@3"]
    assert [str(measure) for measure in at_cutoffs("nDCG@20", [5, 1, 5])] == ["nDCG@1", "nDCG@5"]
    assert [str(measure) for measure in at_cutoffs("Success")][-1] == "Success@100"
    with pytest.raises(MeasureError, match="AP11 takes no cutoff"):
        at_cutoffs("AP11")
    with pytest.raises(InputError, match="`cutoffs` must be positive integers, got 0"):
        at_cutoffs("P", 0)


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(InputError, match="one measure, got P@k and R@k"):
        evaluate(QRELS, RUNS, ["P@1", "R@1"]).curve()
    with pytest.raises(MeasureError, match="measures with a cutoff, got AP"):
        evaluate(QRELS, RUNS, ["AP@1", "AP"]).curve()
    with pytest.raises(MeasureError, match=r"measures with a cutoff, got IPrec@0\.5"):
        evaluate(QRELS, RUNS, ["IPrec@0.5"]).curve()
    with pytest.raises(InputError, match="cannot show ranges"):
        evaluate(QRELS, RUNS, "P@1,2", ties="bounds").curve()
