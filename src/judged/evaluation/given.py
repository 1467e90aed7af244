"""Scores that a function is given: as they are, in a file, or as qrels and runs to make them of."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from judged.errors import InputError, JudgedWarning
from judged.evaluation.dialects import dialect_of
from judged.evaluation.inputs import measures_of
from judged.evaluation.scores import Scores
from judged.evaluation.scoring import evaluate

TESTED_MEASURES = ("nDCG@10", "AP")
"""Where nothing is said; few, for every measure that is tested is another chance to find something by luck."""

_FEW = 3


def scores_of(given: Any, runs: Any, measures: Any, policies: dict[str, Any]) -> Scores:
    """Take scores as they are, read them, or make them."""
    if runs is not None:
        wanted = _usual(policies.get("dialect")) if measures is None else measures
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)  # they are part of the result
            return evaluate(given, runs, wanted, **policies)
    if policies:
        raise InputError(
            f"{', '.join(policies)} cannot change scores that were already made",
            fix="give qrels and runs, or choose this where the scores are made",
        )
    if isinstance(given, (str, Path)):
        given = Scores.load(given)
    if not isinstance(given, Scores):
        raise InputError(
            f"{type(given).__name__} is no table of scores", fix="give Scores, a file of scores, or qrels and runs"
        )
    return given if measures is None else chosen_measures(given, measures)


def _usual(dialect: Any) -> tuple[str, ...]:
    """Take a dialect's own measures where they are few."""
    rules = dialect_of(dialect)
    count = len(rules.measures(list(rules.defaults), (0.0, 1.0))) if rules.defaults else 0
    return rules.defaults if 0 < count <= _FEW else TESTED_MEASURES


def chosen_measures(scores: Scores, measures: Any) -> Scores:
    """Give the same scores with some of their measures."""
    wanted = measures_of(measures)
    if missing := [str(one) for one in wanted if str(one) not in scores.measure_names]:
        raise InputError(f"{missing[0]} was not evaluated", fix=f"one of {', '.join(scores.measure_names)}")
    rows = [scores.measure_names.index(str(one)) for one in wanted]
    return replace(scores, measures=wanted, values=scores.values[:, rows], ranges=())
