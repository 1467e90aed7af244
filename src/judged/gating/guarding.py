"""Guardrails: numbers of both runs that are known, and compared as they stand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.gating.check_result import number
from judged.gating.result import GuardrailResult
from judged.gating.run_table import numbers_by_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from judged._types import Floats
    from judged.evaluation import Scores
    from judged.gating.config import Guardrail

_ROUNDING = 1e-12
_ROLES = ("baseline", "candidate")


def judged_share(guardrail: Guardrail, values: Floats) -> GuardrailResult:
    """Compare the mean share of judged documents: `values` holds the scores of baseline and candidate, (2, T)."""
    known = ~np.isnan(values)
    means = [float(row[kept].mean()) if kept.any() else math.nan for row, kept in zip(values, known, strict=True)]
    limits: list[tuple[float, str]] = []
    if guardrail.at_least is not None:
        limits.append((guardrail.at_least, f"at least {number(guardrail.at_least)}"))
    if guardrail.at_most_below_baseline is not None:
        least = means[0] - guardrail.at_most_below_baseline
        limits.append(
            (least, f"at least {number(least)} ({number(guardrail.at_most_below_baseline)} below the baseline)")
        )
    fine = all(means[1] >= least - _ROUNDING for least, _ in limits)
    return _result(guardrail, means[0], means[1], [text for _, text in limits], fine=fine)


def missing_topics(guardrail: Guardrail, scores: Scores, baseline: int, candidate: int) -> GuardrailResult:
    """Count the topics that the candidate returned nothing for, of those that the baseline returned something for."""
    lost = lost_topics(scores, baseline, candidate)
    most = guardrail.missing_topics or 0
    return _result(guardrail, math.nan, float(len(lost)), [f"at most {most}"], fine=len(lost) <= most)


def lost_topics(scores: Scores, baseline: int, candidate: int) -> tuple[str, ...]:
    """Name the topics of the qrels that only the baseline returned something for."""
    theirs = set(scores.runs[baseline].missing_topics)
    return tuple(topic for topic in scores.runs[candidate].missing_topics if topic not in theirs)


def table_numbers(guardrail: Guardrail, names: Sequence[str], folder: Path) -> GuardrailResult:
    """Compare numbers from a table by run."""
    path = folder / (guardrail.table or "")
    numbers = numbers_by_run(path, guardrail.column or "")
    found = [
        _of_run(guardrail, numbers, name, role, str(path))
        for name, role in zip(names, _ROLES, strict=True)
        if role == "candidate" or guardrail.at_most_ratio is not None or name in numbers or role in numbers
    ]
    baseline, candidate = found if len(found) == len(_ROLES) else (math.nan, *found)
    limits: list[tuple[float, str]] = []
    if guardrail.at_most is not None:
        limits.append((guardrail.at_most, f"at most {number(guardrail.at_most)}"))
    if guardrail.at_most_ratio is not None:
        most = guardrail.at_most_ratio * baseline
        limits.append((most, f"at most {number(most)} ({number(guardrail.at_most_ratio)} times the baseline)"))
    fine = all(candidate <= most + _ROUNDING * abs(most) for most, _ in limits)
    return _result(guardrail, baseline, candidate, [text for _, text in limits], fine=fine)


def _of_run(guardrail: Guardrail, known: dict[str, list[float]], name: str, role: str, path: str) -> float:
    """Give the number of one run."""
    key = name if name in known else role
    found = sorted(known.get(key, []))
    if not found:
        there = ", ".join(sorted(known)) or "no numbers"
        raise InputError(
            f"no number for the {role} {name!r}",
            fix=f"name it so in the column run, or call it {role}; the table has {there}",
            path=path,
        )
    if guardrail.quantile is not None:
        return found[max(math.ceil(guardrail.quantile * len(found) * (1 - _ROUNDING)), 1) - 1]
    if len(found) > 1:
        raise InputError(
            f"column {guardrail.column} has {len(found)} rows for {key!r}",
            fix="give quantile = 0.95 in the [[guardrail]], or one row a run",
            path=path,
        )
    return found[0]


def _result(
    guardrail: Guardrail, baseline: float, candidate: float, limits: list[str], *, fine: bool
) -> GuardrailResult:
    return GuardrailResult(guardrail, baseline, candidate, tuple(limits), "pass" if fine else "fail")
