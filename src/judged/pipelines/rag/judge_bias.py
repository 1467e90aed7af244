"""Whether a model may stand for people: the bias of its scores over topics, against a margin."""

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

Believed: TypeAlias = Literal["yes", "no", "undecided", "not tested"]


@dataclass(frozen=True)
class JudgeBias:
    """Mean error of a model's scores, over the topics that people judged, too.

    Parameters
    ----------
    n
        Number of topics.
    mean
        The model's scores less people's; NaN without topics.
    ci
        Interval over topics; None if there is not enough data for one.
    selection_p
        p-value of the hypothesis that the model's mean is the same on all other topics; NaN if not tested.
    believed
        Whether the bias is shown to be within the margin (``yes``) or beyond it (``no``).
    few_topics
        Topics (places) whose uncertain share of all topics could undo ``yes`` or ``no``; usually none.
    """

    n: int
    mean: float
    ci: tuple[float, float] | None
    selection_p: float
    believed: Believed
    few_topics: tuple[int, ...]


def judge_bias(people: Floats, model: Floats, rest: Floats, *, margin: float, level: float = 0.95) -> JudgeBias:
    """Decide whether the bias of a model's scores is within a margin.

    Parameters
    ----------
    people, model
        (n,) scores of the topics that both scored.
    rest
        Scores of all other topics by the model.
    margin
        A bias that does not matter, in units of the measure.
    level
        Of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> people = np.linspace(0.2, 0.9, 40)
    >>> found = judge_bias(people, people + [0.01, -0.02] * 20, people, margin=0.05)
    >>> round(found.mean, 3), found.believed, found.few_topics
    (-0.005, 'yes', ())
    """
    errors, alpha = model - people, 1 - level
    ci = topic_interval(errors, level)
    selection_p = _selection_p(model, rest)
    verdict = believed(len(errors), ci, margin, selection_p=selection_p, alpha=alpha)
    mean = float(errors.mean()) if len(errors) else math.nan
    return JudgeBias(len(errors), mean, ci, selection_p, verdict, _few_topics(errors, verdict, margin, alpha))


def believed(
    n: int, ci: Sequence[float] | None, margin: float, *, selection_p: float = math.nan, alpha: float = 0.05
) -> Believed:
    """Return whether a bias is shown to lie within a margin, or beyond it; with too few topics that is not tested.

    A bias within the margin is not shown for topics that the model scores otherwise than those that people judged, that
    is, if `selection_p` is at most `alpha`.

    >>> believed(40, (-0.01, 0.03), 0.05), believed(40, (0.06, 0.2), 0.05), believed(40, (0.01, 0.2), 0.05)
    ('yes', 'no', 'undecided')
    >>> believed(24, (-0.01, 0.03), 0.05), believed(40, (-0.01, 0.03), 0.05, selection_p=0.01)
    ('not tested', 'undecided')
    """
    if ci is None or insufficiency(n, "verdict", min_units=MIN_N):
        return "not tested"
    low, high = ci
    if -margin <= low and high <= margin:
        return "undecided" if selection_p <= alpha else "yes"
    return "no" if low > margin or high < -margin else "undecided"


def _selection_p(judged: Floats, rest: Floats) -> float:
    """Test whether a model's mean is the same on the topics that people judged and on all others (Welch's t-test).

    Topics chosen at random are like the others, so a small p-value says that people's topics are not.
    """
    from scipy.stats import ttest_ind

    if insufficiency(min(len(judged), len(rest)), "verdict", variance=min(spread(judged), spread(rest))):
        return math.nan
    found: Any = ttest_ind(judged, rest, equal_var=False)
    return float(found.pvalue)


def _few_topics(errors: Floats, verdict: Believed, margin: float, alpha: float) -> tuple[int, ...]:
    """Return the few topics (places) whose uncertain share of all topics could undo the verdict about the bias."""
    if verdict == "yes":
        both = (few_topics(margin - errors, alpha), few_topics(errors + margin, alpha))
        return tuple(sorted({topic for few in both for topic in few.tolist()}))
    if verdict == "no":
        return tuple(few_topics(errors - margin if errors.mean() > 0 else -errors - margin, alpha).tolist())
    return ()
