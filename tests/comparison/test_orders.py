"""Agreement of system orders between measures and depths."""

from __future__ import annotations

import math

import pytest

from judged import InputError, evaluate

QRELS = {"q": {"a": 3, "b": 1, "c": 1}, "r": {"a": 1}}
RUNS = {
    "x": {"q": {"a": 2.0, "n": 1.0}, "r": {"a": 1.0}},
    "y": {"q": {"b": 2.0, "c": 1.0}, "r": {"a": 1.0}},
    "z": {"q": {"n": 2.0, "b": 1.0}, "r": {"n": 2.0, "a": 1.0}},
    "w": {"q": {"n": 1.0}, "r": {"n": 1.0}},
}

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")  # w finds nothing


def test_pairs_that_change_places_by_hand() -> None:
    """x has the best document of q and no other, y the two weak ones: nDCG@2 prefers x, R@2 prefers y."""
    result = evaluate(QRELS, RUNS, ["nDCG@2", "R@2"]).orders()
    (pair,) = result.pairs
    assert (pair.first, pair.second, pair.swapped) == ("nDCG@2", "R@2", (("x", "y"),))
    assert (pair.tau.concordant, pair.tau.discordant, pair.tau.tied) == (4, 1, 1)  # x and z are equal by R@2
    assert pair.tau.value == pytest.approx(3 / math.sqrt(6 * 5))
    assert result.table().grid().rows[0][-1] == "1"
    assert result.to_dict()["swapped"] == [
        {"measure": "nDCG@2", "other": "R@2", "better_by_measure": "x", "better_by_other": "y"}
    ]


def test_depths_and_signs() -> None:
    whole, cut = (evaluate(QRELS, RUNS, ["RR", "RBPResidual(p=0.5)"], depth=depth) for depth in (None, 1))
    result = whole.orders(cut)
    assert [(pair.first, pair.second) for pair in result.pairs][:2] == [("RR", "RR"), ("RR", "RBPResidual(p=0.5)")]
    assert result.pairs[0].tau.discordant == 0  # at depth 1, z falls to w's 0
    assert result.pairs[0].tau.tied == 2  # x and y in both, z and w in one
    assert result.pairs[0].sentence.startswith("RR and RR: tau_b is ")


def test_errors() -> None:
    with pytest.raises(InputError, match="at least 3 runs are required, got 2"):
        evaluate(QRELS, {"x": RUNS["x"], "y": RUNS["y"]}, ["AP", "RR"]).orders()
    with pytest.raises(InputError, match="at least two measures are required"):
        evaluate(QRELS, RUNS, "AP").orders()


def test_means_that_differ_in_the_last_bit_are_tied() -> None:
    """1 + 1/2 + 1/6 and 1/2 + 1/6 + 1 are not the same float; P@1 prefers neither system, nor does RR."""
    assert (1 + 1 / 2 + 1 / 6) / 3 != (1 / 2 + 1 / 6 + 1) / 3
    topics = ("q1", "q2", "q3")
    ranks = {"x": (1, 2, 6), "y": (2, 6, 1), "z": (1, 1, 1)}
    runs = {
        name: {topic: [*(f"n{i}" for i in range(1, rank)), "a"] for topic, rank in zip(topics, result, strict=True)}
        for name, result in ranks.items()
    }
    (pair,) = evaluate({topic: {"a": 1} for topic in topics}, runs, ["RR", "P@1"]).orders().pairs
    assert pair.swapped == ()
    assert pair.tau.value == 1.0  # x and y are tied by both
