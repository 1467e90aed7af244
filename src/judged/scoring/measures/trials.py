"""Measures of the trials of an agent: right answers, stated confidence, and effort."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from judged.errors import MeasureError
from judged.scoring.measures.base import Properties, TrajectoryMeasure, param
from judged.scoring.measures.parameters import Parameter, choice, integer, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints
    from judged.scoring.judging.trajectories import JudgedTrajectories

_SHARE = Properties(reads="trajectories", needs_ranking=False, depends_on_relevance=False)
_LOSS = replace(_SHARE, higher_is_better=False)
_UNBOUNDED_LOSS = replace(_LOSS, high=None)
trial_measure = partial(measure, category="agent trials")
_TRIALS = Parameter("The number of trials.", None, integer(1), required=True)


@trial_measure(
    cite="Voorhees and Tice 2000 (TREC question answering), averaged over trials",
    use="You want to know how often an agent answers right.",
    misleads="A right answer can come from the model's memory. 'judged trajectories where' counts right answers without"
    " evidence.",
    properties=_SHARE,
)
class AnswerAccuracy(TrajectoryMeasure):
    r"""Answer accuracy: the share of the trials with a right answer.

    .. math:: \frac{c}{n}

    n is the number of trials of the question, and c that of its right answers. Trials without a verdict are excluded;
    trials without an answer, and abstentions, are wrong.

    Examples
    --------
    >>> AnswerAccuracy().of_trial(right=[True, False, True, None])
    0.6666666666666666
    """

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return 1 for a right answer, and 0 for a wrong one."""
        return judged.right


class _OfSeveralTrials(TrajectoryMeasure):
    """Base of the measures of k trials that are drawn from the n trials of a question."""

    cutoff: int = param(_TRIALS)

    def _counts(self, judged: JudgedTrajectories) -> tuple[Ints, Ints]:
        """Count the trials with a verdict, and the right ones: (T,) each."""
        has_verdict = ~np.isnan(judged.right)
        question = judged.question[has_verdict]
        counts = np.bincount(question, minlength=len(judged))
        right = np.bincount(question, judged.right[has_verdict], minlength=len(judged)).astype(np.int64)
        if (too_few := (counts > 0) & (counts < self.cutoff)).any():
            raise MeasureError(
                f"{self} requires {self.cutoff} trials of each question, but {judged.name} has {counts[too_few].min()}"
                f" of {judged.query_ids[int(too_few.argmax())]}. Fix: use a lower k, or record more trials"
            )
        return counts, right


def _drawn(counts: Ints, kind: Ints, k: int) -> Floats:
    """Return the probability that k trials, drawn from `counts` without replacement, are all among `kind`: (T,)."""
    draws = np.arange(k)[:, np.newaxis]
    shares = np.maximum(kind - draws, 0) / np.maximum(counts - draws, 1)
    return np.where(counts > 0, shares.prod(axis=0), np.nan)


@trial_measure(
    cite="Chen et al. 2021 (pass@k)",
    use="You can check answers, and try again until one of k answers is right.",
    misleads="Users who get one answer see the accuracy, which is lower.",
    aliases={"pass_at": {}},
    properties=_SHARE,
)
class Pass(_OfSeveralTrials):
    r"""Pass@k: the probability that at least one of k trials is right.

    .. math:: \mathrm{Pass}@k = 1 - \binom{n-c}{k} \Big/ \binom{n}{k}

    n is the number of trials of the question, and c that of its right answers. The estimate is unbiased. A question
    with fewer than k trials is an error.

    Examples
    --------
    >>> Pass(cutoff=2).of_trial(right=[True, False, False])
    0.6666666666666667
    """

    def question_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return one minus the probability that k trials are all wrong."""
        counts, right = self._counts(judged)
        return 1 - _drawn(counts, counts - right, self.cutoff)


@trial_measure(
    cite="Yao et al. 2024 (tau-bench, pass^k)",
    use="You want to know whether an agent is reliable: whether it is right each time.",
    misleads="The measure falls fast with k, so compare agents at the same k.",
    aliases={"pass_all": {}},
    properties=_SHARE,
)
class PassAll(_OfSeveralTrials):
    r"""Pass^k: the probability that all of k trials are right.

    .. math:: \mathrm{PassAll}@k = \binom{c}{k} \Big/ \binom{n}{k}

    n is the number of trials of the question, and c that of its right answers. The estimate is unbiased. A question
    with fewer than k trials is an error.

    Examples
    --------
    >>> PassAll(cutoff=2).of_trial(right=[True, True, False])
    0.3333333333333333
    """

    def question_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return the probability that k trials are all right."""
        counts, right = self._counts(judged)
        return _drawn(counts, right, self.cutoff)


@trial_measure(
    cite="Brier 1950",
    use="An agent states how sure it is, and you want to know whether that can be trusted.",
    misleads="The score includes the accuracy: an agent that is always right and sure scores best.",
    properties=_LOSS,
)
class ConfidenceBrier(TrajectoryMeasure):
    r"""Brier score of the stated confidence: the squared difference of confidence and outcome.

    .. math:: (p - y)^2

    p is the stated probability that the answer is right; y is 1 for a right answer, otherwise 0. Trials without a
    stated confidence or a verdict are excluded.

    Examples
    --------
    >>> round(ConfidenceBrier().of_trial(right=[True, False], confidence=[0.9, 0.6]), 4)
    0.185
    """

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return the squared difference of each trial."""
        return (judged.confidence - judged.right) ** 2


@trial_measure(
    cite="Good 1952",
    use="An agent states how sure it is, and answers that are wrong and sure are much worse than others.",
    misleads="The score depends on the clipping of confidences of 0 and 1, whose logarithm is infinite.",
    properties=_UNBOUNDED_LOSS,
)
class ConfidenceLogLoss(TrajectoryMeasure):
    r"""Log loss of the stated confidence: the negative logarithm of the probability of the outcome.

    .. math:: -\ln p \ \text{if right}, \quad -\ln(1 - p) \ \text{otherwise}

    p is the stated probability, clipped to the range from `clip` to 1 - `clip`. Trials without a stated confidence or a
    verdict are excluded.

    Examples
    --------
    >>> round(ConfidenceLogLoss().of_trial(right=[True, False], confidence=[0.9, 1.0]), 4)  # 0.1054 and -ln(0.01)
    2.3553
    """

    clip: float = param(
        Parameter("The lowest probability; a stated confidence is clipped to it.", 0.01, real(1e-15, 0.5))
    )

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return the negative logarithm of the probability of each outcome."""
        p = np.clip(judged.confidence, self.clip, 1 - self.clip)
        return -np.log(np.where(np.isnan(judged.right), np.nan, np.where(judged.right == 1, p, 1 - p)))


@trial_measure(
    cite="Chen et al. 2025 (BrowseComp-Plus), for the cost of agents",
    use="You want to know the cost of a question, to compare it with the accuracy.",
    misleads="Tokens of different models have different prices.",
    properties=_UNBOUNDED_LOSS,
)
class Effort(TrajectoryMeasure):
    r"""Effort: the tokens, the cost in dollars, or the milliseconds of a trial.

    .. math:: \mathrm{tokens}, \quad \mathrm{dollars}, \quad \text{or} \quad \mathrm{milliseconds}

    Trials without a record are excluded.

    Examples
    --------
    >>> Effort(of="cost").of_trial([["a"]], cost=0.02)
    0.02
    """

    of: Literal["tokens", "cost", "latency"] = param(
        Parameter("The kind of effort.", "tokens", choice("tokens", "cost", "latency"))
    )

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return the recorded effort of each trial."""
        return {"tokens": judged.tokens, "cost": judged.cost, "latency": judged.latency_ms}[self.of]
