"""Measures that users write: registration and error messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import judged
from judged import MeasureError, evaluate
from judged.scoring.measures import Measure, Parameter, measure, param, parse
from judged.scoring.measures.registry import REGISTRY

ABOUT: dict[str, Any] = {"category": "own", "cite": "here", "use": "never", "misleads": "always"}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Restore the registry after each test."""
    entries = {name: REGISTRY[name] for name in list(REGISTRY)}  # of a registry that has all been imported
    yield
    REGISTRY._entries.clear()
    REGISTRY._entries.update(entries)


def define(worst: float = 0.0) -> type[Measure]:
    @measure(**ABOUT)
    class LastRelevant(Measure):
        """Rank of the last relevant document."""

        rel: float = param(Parameter("Lowest grade that counts.", 1.0, float))

        def score(self, judged: Any) -> Any:
            return np.bincount(judged.topic, judged.rank * judged.relevant(self.rel), len(judged)) + worst

    return LastRelevant


def test_a_measure_of_ones_own_is_a_measure_like_any_other() -> None:
    define()
    assert str(parse("lastrelevant(rel=2)")) == "LastRelevant(rel=2)"
    assert evaluate({"q": {"a": 2}}, {"q": {"x": 3.0, "a": 2.0}}, "LastRelevant").value("LastRelevant") == 2.0


def test_running_a_notebook_cell_again_replaces_it() -> None:
    define()
    define(worst=5.0)
    assert parse("LastRelevant").of_list([1]) == 6.0


def test_another_measure_may_not_take_a_name() -> None:
    with pytest.raises(MeasureError, match="two measures are called AP"):
        measure(**ABOUT, name="AP")(type("Mine", (Measure,), {"__doc__": "x"}))
    assert parse("AP") == judged.AP()


def test_a_field_that_is_no_parameter_is_refused_and_burns_no_name() -> None:
    with pytest.raises(MeasureError, match="Half: k is not a parameter"):
        measure(**ABOUT)(type("Half", (Measure,), {"__annotations__": {"k": int}, "k": 3}))
    with pytest.raises(MeasureError, match="no measure 'Half'"):
        parse("Half")


def test_scores_of_the_wrong_shape_are_refused() -> None:
    @measure(**ABOUT)
    class Hits(Measure):
        """One a hit, not one a topic."""

        def score(self, judged: Any) -> Any:
            return judged.grade

    with pytest.raises(MeasureError, match=r"Hits: score returned shape \(2,\) for 1 topics"):
        Hits().of_list([1, 0])


def test_a_base_without_the_discount_that_has_one_is_refused() -> None:
    with pytest.raises(MeasureError, match="the discount log2 has no base"):
        parse("nDCG(base=10)@5")
    assert str(parse("nDCG(discount=original,base=10)@5")) == "nDCG(discount=original,base=10)@5"


def test_a_collection_smaller_than_what_is_returned_is_refused() -> None:
    with pytest.raises(MeasureError, match="more documents are returned or relevant than n"):
        judged.measures.Accuracy(n=3).of_list([0, 0, 0, 0], missing=[1])
