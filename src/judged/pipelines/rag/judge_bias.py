"""Bias of a model's scores over topics compared with people's, and whether it is within a margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.labels.corrected_systems import topic_interval
from judged.stats.inputs import spread
from judged.stats.prediction_powered import MIN_N
from judged.stats.sensitivity import few_topics
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats

WithinMargin: TypeAlias = Literal["yes", "no", "undecided", "not tested"]


@dataclass(frozen=True)
class JudgeBias:
    """Mean error of a model's scores, over the topics that people judged.

    Parameters
    ----------
    n
        Number of topics.
    mean
        Mean of the model's scores minus people's; NaN without topics.
    ci
        Interval over topics; None if there is not enough data for one.
    selection_p
        p-value of the hypothesis that the model's mean is the same on all other topics; NaN if not tested.
    within_margin
        Whether the bias is shown to be within the margin (``yes``) or beyond it (``no``).
    few_topics
        Indices of topics whose uncertain share of all topics could undo ``yes`` or ``no``; usually none.
    """

    n: int
    mean: float
    ci: tuple[float, float] | None
    selection_p: float
    within_margin: WithinMargin
    few_topics: tuple[int, ...]


def judge_bias(people: Floats, model: Floats, others: Floats, *, margin: float, level: float = 0.95) -> JudgeBias:
    """Decide whether the bias of a model's scores is within a margin.

    Parameters
    ----------
    people, model
        (n,) scores of the topics that both scored.
    others
        Scores of all other topics by the model.
    margin
        Largest bias that does not matter, in units of the measure.
    level
        Confidence level of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> people = np.linspace(0.2, 0.9, 40)
    >>> bias = judge_bias(people, people + [0.01, -0.02] * 20, people, margin=0.05)
    >>> round(bias.mean, 3), bias.within_margin, bias.few_topics
    (-0.005, 'yes', ())
    """
    errors, alpha = model - people, 1 - level
    ci = topic_interval(errors, level)
    selection_p = _selection_p(model, others)
    verdict = within_margin(len(errors), ci, margin, selection_p=selection_p, alpha=alpha)
    mean = float(errors.mean()) if len(errors) else math.nan
    return JudgeBias(len(errors), mean, ci, selection_p, verdict, _few_topics(errors, verdict, margin, alpha))


def within_margin(
    n: int, ci: Sequence[float] | None, margin: float, *, selection_p: float = math.nan, alpha: float = 0.05
) -> WithinMargin:
    """Return whether a bias is significantly within a margin or beyond it; with too few topics it is not tested.

    A bias within the margin is undecided if the model scores the topics that people judged differently from the others,
    that is, if `selection_p` is at most `alpha`.

    >>> [within_margin(40, ci, 0.05) for ci in [(-0.01, 0.03), (0.06, 0.2), (0.01, 0.2)]]
    ['yes', 'no', 'undecided']
    >>> within_margin(24, (-0.01, 0.03), 0.05), within_margin(40, (-0.01, 0.03), 0.05, selection_p=0.01)
    ('not tested', 'undecided')
    """
    if ci is None or insufficiency(n, "verdict", min_units=MIN_N):
        return "not tested"
    low, high = ci
    if -margin <= low and high <= margin:
        return "undecided" if selection_p <= alpha else "yes"
    return "no" if low > margin or high < -margin else "undecided"


def _selection_p(judged: Floats, others: Floats) -> float:
    """Test whether a model's mean is the same on the topics that people judged and on all others (Welch's t-test).

    A small p-value means that people's topics are not a random sample of all topics.
    """
    from scipy.stats import ttest_ind

    if insufficiency(min(len(judged), len(others)), "verdict", variance=min(spread(judged), spread(others))):
        return math.nan
    test: Any = ttest_ind(judged, others, equal_var=False)
    return float(test.pvalue)


def _few_topics(errors: Floats, verdict: WithinMargin, margin: float, alpha: float) -> tuple[int, ...]:
    """Return the indices of topics whose uncertain share of all topics could change the verdict about the bias."""
    if verdict == "yes":
        limits = (few_topics(margin - errors, alpha), few_topics(errors + margin, alpha))
        return tuple(sorted({topic for topics in limits for topic in topics.tolist()}))
    if verdict == "no":
        return tuple(few_topics(errors - margin if errors.mean() > 0 else -errors - margin, alpha).tolist())
    return ()
