"""Measures of sessions: the gain of several ranked lists, discounted by rank and by the number of the search."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from judged.scoring.judging.trajectories import positions
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import Properties, TrajectoryMeasure, param
from judged.scoring.measures.gain import GAIN, gains
from judged.scoring.measures.parameters import CUTOFF, Parameter, boolean, choice, real
from judged.scoring.measures.searches import ideal_grades, search_measure

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints
    from judged.scoring.judging.trajectories import JudgedTrajectories
    from judged.scoring.measures.gain import GainAttribute

_B = Parameter("The base of the logarithm in the discount of ranks.", 2.0, real(1.0000001), values="number above 1")
_BQ = Parameter("The base of the logarithm in the discount of searches.", 4.0, real(1.0000001), values="number above 1")
_FORM = Parameter(
    "The discounts of rank r and search q. `original`: max(1, log_b r) and 1 + log_bq q. `trec`: log_b(r + b - 1) and"
    " log_bq(q + bq - 1), as in the TREC Session Track.",
    "original",
    choice("original", "trec"),
)
session_measure = partial(
    search_measure, cite="Järvelin et al. 2008; Kanoulas et al. 2011 (TREC Session Track, form=trec)"
)
_REPEATS = Parameter("Whether a document gains each time it is returned, instead of once.", False, boolean)


def _weights(measure: SessionDCG, rank: Ints, number: Ints) -> Floats:
    """Return the weight of each rank of the search with each number: 1 / (discount of rank * discount of search)."""
    if measure.form == "trec":
        of_rank = np.log(rank + measure.b - 1) / np.log(measure.b)
        of_search = np.log(number + measure.bq - 1) / np.log(measure.bq)
    else:
        of_rank = np.maximum(1.0, np.log(rank) / np.log(measure.b))
        of_search = 1 + np.log(number) / np.log(measure.bq)
    return 1 / (of_rank * of_search)


@session_measure(
    use="You want one number for several searches, in which a document is worth less if more searches were needed.",
    misleads="Each search adds gain, so an agent that searches more often never scores less. To compare questions, use"
    " nSessionDCG.",
    properties=Properties(reads="trajectories", high=None, graded=True),
)
class SessionDCG(TrajectoryMeasure):
    r"""Session DCG: the DCG of each search, divided by a discount of the number of the search.

    .. math:: \mathrm{SessionDCG} = \sum_{q} \frac{1}{1 + \log_{bq} q} \sum_{r} \frac{g_{qr}}{\max(1, \log_b r)}

    A document gains at the first search that returned it, unless `repeats` is set. The measure `SDCG` of user models is
    a different one.

    Examples
    --------
    >>> round(SessionDCG().of_trial([["a", "x"], ["a", "b"]], {"a": 3, "b": 2}), 4)  # 3 + 2 / (1 + log4(2))
    4.3333
    >>> round(SessionDCG(repeats=True).of_trial([["a", "x"], ["a", "b"]], {"a": 3, "b": 2}), 4)  # 3 + (3 + 2) / 1.5
    6.3333
    """

    cutoff: int | None = param(CUTOFF)
    b: float = param(_B)
    bq: float = param(_BQ)
    form: Literal["original", "trec"] = param(_FORM)
    gain: GainAttribute = param(GAIN)
    repeats: bool = param(_REPEATS)

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Sum the weighted gains of each trial."""
        is_counted = (judged.rank <= (self.cutoff or np.inf)) & (judged.is_new | self.repeats)
        gain = gains(np.nan_to_num(judged.grade), self.gain) * is_counted
        weights = _weights(self, judged.rank, judged.number[judged.search])
        return np.bincount(judged.trial, gain * weights, minlength=judged.n_trials).astype(np.float64)


@session_measure(
    use="You want one number from 0 to 1 for several searches, to compare questions.",
    misleads="The ideal session has the lists of the trial, so an agent with more or longer lists has a higher ideal.",
    properties=Properties(reads="trajectories", graded=True, monotone=False),
)
class nSessionDCG(SessionDCG):
    r"""Normalized session DCG: session DCG divided by that of the ideal session.

    .. math:: \mathrm{nSessionDCG} = \frac{\mathrm{SessionDCG}}{\mathrm{SessionDCG}(\mathrm{ideal})}

    The ideal session has as many searches, with lists of the same lengths, and the documents with the highest gains at
    the ranks with the highest weights; with `repeats`, each list is the ideal list of its length. Questions without a
    relevant document are excluded. Trials that returned nothing score 0.

    Examples
    --------
    >>> round(nSessionDCG().of_trial([["x", "a"], ["b"]], {"a": 3, "b": 2}), 4)  # (3 + 2 / 1.5) / (3 + 2)
    0.8667
    """

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Divide by the gain of the best documents at the best positions of the session."""
        owner, grades = ideal_grades(judged)
        gain_of = np.maximum(gains(grades, self.gain), 0.0)
        labels = np.lexsort((-gain_of, owner))
        in_depth = np.flatnonzero(judged.rank <= (self.cutoff or np.inf))
        trial, place = judged.trial[in_depth], judged.rank[in_depth]
        weights = _weights(self, place, judged.number[judged.search[in_depth]])
        if not self.repeats:  # otherwise the gain at each rank is that of the ideal list
            order = np.lexsort((-weights, trial))
            trial, weights = trial[order], weights[order]
            place = positions(trial)
        starts = np.searchsorted(owner[labels], np.arange(judged.n_trials + 1))
        index = starts[trial] + place - 1
        label = np.append(labels, -1)[np.where(index < starts[trial + 1], index, -1)]
        ideal = np.bincount(trial, np.append(gain_of, 0.0)[label] * weights, minlength=judged.n_trials)
        has_gain = np.bincount(owner, gain_of > 0, minlength=judged.n_trials) > 0
        return np.where(has_gain, divide(super().trial_scores(judged), ideal), np.nan)
