"""Whether a measure of the lists that people got goes with what they said of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.stats.crossed import dummies
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Floats, Ints
    from judged.scoring.evaluation.scores import Scores
    from judged.stats.sufficiency import Insufficiency
    from judged.studies.outcomes import Outcome

_NONE = 1e-12
FEWEST = 3
"""Trials, of all people or of one, from which a correlation is told."""


class Agreement(NamedTuple):
    """Pearson's correlation of a measure with an outcome.

    ``pooled``: over all trials; ``within``: of what differs from each person's means, which is free of how people use
    scales; ``rank``: Kendall's tau-b within persons, over all their pairs of trials. Intervals are over people (see
    `_jackknife_interval`); None where there are too few people, and ``reason`` then says so.
    """

    measure: str
    outcome: str
    trials: int
    people: int
    pooled: float
    ci: tuple[float, float] | None
    within: float
    within_ci: tuple[float, float] | None
    rank: float
    persons: tuple[float, ...]
    reason: str = ""


def measure_agreement(
    outcome: Outcome, measured: Mapping[tuple[str, int], float], measure: str, *, level: float = 0.95
) -> Agreement:
    """Correlate an outcome with a measure of the list of each trial.

    Parameters
    ----------
    outcome
        For example satisfaction.
    measured
        The measure by participant and position; trials without it do not count.
    measure
        Its name.

    Raises
    ------
    InputError
        If fewer than three trials have both.
    """
    rows = [(one, measured[one.participant, one.position]) for one in outcome.values
            if (one.participant, one.position) in measured]  # fmt: skip
    if len(rows) < FEWEST:
        raise InputError(f"{len(rows)} trials have {measure} and {outcome.name}", fix="give scores of the lists shown")
    x, y = np.array([score for _, score in rows]), np.array([one.value for one, _ in rows])
    names, person = np.unique([one.participant for one, _ in rows], return_inverse=True)
    sums, centred = _sums(x, y, person, centred=False), _sums(x, y, person, centred=True)
    (ci, lacking), (within_ci, _) = (_jackknife_interval(table, level) for table in (sums, centred))
    own = _r(sums[sums[:, 0] >= FEWEST]).tolist()
    return Agreement(
        measure, outcome.name, len(rows), len(names),
        float(_r(sums.sum(axis=0))), ci, float(_r(centred.sum(axis=0))), within_ci,
        _tau(x, y, person), tuple(sorted(one for one in own if not math.isnan(one))),
        lacking.sentence("participant") if lacking else "",
    )  # fmt: skip


def measured_trials(outcome: Outcome, scores: Scores, measure: str) -> dict[tuple[str, int], float]:
    """Give the score of each trial's list, its system being a run and its topic a topic of the scores."""
    found = dict[tuple[str, int], float]()
    by_run = scores.per_topic()
    for one in outcome.values:
        score = by_run.get(one.system, {}).get(measure, {}).get(one.query_id, math.nan)
        if not math.isnan(score):
            found[one.participant, one.position] = score
    return found


def _sums(x: Floats, y: Floats, person: Ints, *, centred: bool) -> Floats:
    """Give n and the sums of x, y, their squares and product, by person."""
    members = dummies(person)
    if centred:
        x, y = (values - members @ (values @ members / members.sum(axis=0)) for values in (x, y))
    return members.T @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def _r(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    return np.where(spread > _NONE, (n * xy - x * y) / np.sqrt(np.maximum(spread, _NONE)), np.nan)


def _jackknife_interval(sums: Floats, level: float) -> tuple[tuple[float, float] | None, Insufficiency | None]:
    """Return an interval for the correlation of sums by person, (P, 6), or why there is none.

    Student's t interval of Fisher's z, whose standard error is that of the jackknife over people. Percentiles of a
    bootstrap over people cover 80 to 85% with few people.
    """
    people, total = len(sums), sums.sum(axis=0)
    weights = sums[:, 0]
    if lacking := insufficiency(people, weights=weights):
        return None, lacking
    r, without = float(_r(total)), _r(total - sums)
    if math.isnan(r) or np.isnan(without).any() or max(abs(r), float(np.abs(without).max())) >= 1 - _NONE:
        return None, insufficiency(people, variance=0.0)
    z, z_without = math.atanh(r), np.arctanh(without)
    error = math.sqrt((people - 1) * float(z_without.var()))
    if lacking := insufficiency(people, variance=error if error > _NONE else 0.0):
        return None, lacking
    far = student_quantile((1 + level) / 2, people - 1) * error
    return (math.tanh(z - far), math.tanh(z + far)), None


def _tau(x: Floats, y: Floats, person: Ints) -> float:
    agreed, unequal = 0.0, np.zeros(2)
    for code in range(int(person.max()) + 1):
        own = person == code
        signs = [np.sign(values[own][:, None] - values[own]) for values in (x, y)]
        agreed += float((signs[0] * signs[1]).sum())
        unequal += [np.count_nonzero(sign) for sign in signs]
    below = math.sqrt(float(unequal.prod()))  # each pair counts twice, above and below
    return agreed / below if below else math.nan
