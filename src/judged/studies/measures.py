"""Whether a measure of the lists that people got goes with what they said of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Floats, Ints
    from judged.evaluation.scores import Scores
    from judged.studies.outcomes import Outcome

_RESAMPLES = 2000
_NONE = 1e-12
FEWEST = 3
"""Trials, of all people or of one, from which a correlation is told."""


class Agreement(NamedTuple):
    """Pearson's correlation of a measure with an outcome.

    ``pooled``: over all trials; ``within``: of what differs from each person's means, which is free of how people use
    scales; ``rank``: Kendall's tau-b within persons, over all their pairs of trials. Intervals draw people again.
    """

    measure: str
    outcome: str
    trials: int
    people: int
    pooled: float
    ci: tuple[float, float]
    within: float
    within_ci: tuple[float, float]
    rank: float
    persons: tuple[float, ...]


def measure_agreement(
    outcome: Outcome, measured: Mapping[tuple[str, int], float], measure: str, *, level: float = 0.95, seed: int = 0
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
    rng = np.random.default_rng(seed)
    sums, centred = _sums(x, y, person, centred=False), _sums(x, y, person, centred=True)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=_RESAMPLES)
    ends = [(1 - level) / 2, (1 + level) / 2]
    ci, within_ci = (tuple(np.nanquantile(_r(drawn @ table), ends).tolist()) for table in (sums, centred))
    own = [float(_r(_sums(x[of], y[of], np.zeros(of.sum(), int), centred=False).sum(axis=0)))
           for of in (person == code for code in range(len(names))) if of.sum() >= FEWEST]  # fmt: skip
    return Agreement(
        measure, outcome.name, len(rows), len(names),
        float(_r(sums.sum(axis=0))), ci, float(_r(centred.sum(axis=0))), within_ci,
        _tau(x, y, person), tuple(sorted(one for one in own if not math.isnan(one))),
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
    members = (person[:, None] == np.arange(int(person.max()) + 1)) * 1.0
    if centred:
        x, y = (values - members @ (values @ members / members.sum(axis=0)) for values in (x, y))
    return members.T @ np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def _r(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    return np.where(spread > _NONE, (n * xy - x * y) / np.sqrt(np.maximum(spread, _NONE)), np.nan)


def _tau(x: Floats, y: Floats, person: Ints) -> float:
    agreed, unequal = 0.0, np.zeros(2)
    for code in range(int(person.max()) + 1):
        own = person == code
        signs = [np.sign(values[own][:, None] - values[own]) for values in (x, y)]
        agreed += float((signs[0] * signs[1]).sum())
        unequal += [np.count_nonzero(sign) for sign in signs]
    below = math.sqrt(float(unequal.prod()))  # each pair counts twice, above and below
    return agreed / below if below else math.nan
