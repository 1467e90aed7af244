"""`confidence`: whether the confidence that agents state can be trusted, by calibration errors and proper scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.pipelines.trajectories.evaluation import mean_interval
from judged.pipelines.trajectories.judging import judge_system
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results import COUNT, NUMBER, SHARE, TEXT, Answer, Axis, Chart, Headline, Sentences, Table, columns_of
from judged.results.decimals import counted, percent
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.trials import ConfidenceBrier, ConfidenceLogLoss
from judged.stats.interval import IntervalMethod, resampling_weights
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results import Block
    from judged.results.table import IntervalLimits
    from judged.results.types import Floats, Ints
    from judged.scoring.measures.base import AnswerMeasure

Distance: TypeAlias = Literal["mean", "rms"]
Binning: TypeAlias = Literal["width", "size"]
_BROWSECOMP_BIN = 100  # trials in a bin
_NOTE = (
    "The calibration error is above 0 even for perfect calibration, because bins have few trials; the Brier score and"
    " the log loss need no bins. BrowseComp calibration error: root mean square over bins of 100 trials sorted by"
    " confidence, without the last bin, as published scripts compute it; below 200 trials it counts nothing."
)


class Bin(NamedTuple):
    """Trials of one system with similar stated confidence."""

    run: str
    trials: int
    confidence: float  # mean
    accuracy: float
    accuracy_ci: IntervalLimits  # over questions


class SystemConfidence(NamedTuple):
    """Stated confidence of one system; losses are means over questions, with intervals over questions."""

    run: str
    trials: int
    questions: int
    accuracy: float
    confidence: float
    error: float
    error_ci: IntervalLimits
    brier: float
    brier_ci: IntervalLimits
    log_loss: float
    log_loss_ci: IntervalLimits
    browsecomp: float


@dataclass(frozen=True, eq=False, repr=False)
class StatedConfidence(Answer):
    """Calibration of the stated confidence of agents."""

    kind: ClassVar[str] = "stated-confidence"
    main: ClassVar[str] = "systems"

    systems: tuple[SystemConfidence, ...]
    bins: tuple[Bin, ...]
    name: str  # of the calibration error, with distance, bins, and ties
    level: float

    @property
    def title(self) -> str:
        """Title of a page."""
        return "Stated confidence"

    @property
    def headline(self) -> Headline:
        """Return the calibration error of the first system, and whether it states too much or too little."""
        first = self.systems[0]
        relation = ("less than", "equal to", "more than")[1 + int(np.sign(first.confidence - first.accuracy))]
        sentence = f"{first.run} states {percent(first.confidence)} confidence on average, {relation} its accuracy."
        status, word = ("unknown", "not enough data") if first.error_ci is None else ("info", "calibration error")
        return Headline(status, word, sentence, self.name, first.error, ci=first.error_ci, level=self.level)  # type: ignore[arg-type]

    def facts(self) -> Mapping[str, Any]:
        """Return the name of the calibration error, and the confidence level."""
        return {"calibration_error": self.name, "level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return the systems, and the reliability diagram with its bins."""
        columns = columns_of(
            self.systems, ("run", TEXT, "system"), ("trials", COUNT), ("questions", COUNT), ("accuracy", SHARE),
            ("confidence", SHARE, "mean confidence"), ("error", NUMBER, "calibration error"),
            ("brier", NUMBER, "Brier score"), ("log_loss", NUMBER, "log loss"),
            ("browsecomp", NUMBER, "BrowseComp calibration error"), intervals=True,
        )  # fmt: skip
        axes = [replace(column, axis=Axis(0.0, 1.0)) if column.ci else column for column in columns]
        fields = (("confidence", SHARE, "mean confidence"), ("accuracy", SHARE), ("trials", COUNT))
        bin_columns = columns_of(self.bins, ("run", TEXT, "system"), *fields, intervals=True)
        bins = Table("bins", bin_columns, "Accuracy by stated confidence", folded=True)
        diagram = Chart(
            "reliability", "Reliability diagram", bins, "Points below the diagonal: the agent is too confident.",
            kind="points", x="confidence", y="accuracy", color="run", diagonal=True, percent="xy",
            includes={"x": (0.0, 1.0), "y": (0.0, 1.0)},
        )  # fmt: skip
        sentences = [
            f"{row.run}: accuracy {percent(row.accuracy)}, mean stated confidence {percent(row.confidence)},"
            f" over {counted(row.trials, 'trial')} of {counted(row.questions, 'question')}."
            for row in self.systems
        ]
        systems = Table("systems", tuple(axes), "Stated confidence", f"{self.name}. {_NOTE}")
        return (Sentences(tuple(sentences)), systems, diagram, bins)


def confidence(
    trajectories: Any,
    *,
    accuracy: str | AnswerMeasure | None = None,
    bins: int = 10,
    distance: Distance = "mean",
    binning: Binning = "width",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> StatedConfidence:
    """Compare the confidence that agents state with the accuracy of their answers.

    Parameters
    ----------
    trajectories
        `Trajectories`, or any input of `Trajectories.of`.
    accuracy
        As for `judged.pipelines.trajectories.evaluate`.
    bins
        Number of bins of the calibration error; all bins count.
    distance
        ``mean``: mean distance of confidence and accuracy of a bin (L1); ``rms``: root mean square (L2).
    binning
        ``width``: bins of equal width from 0 to 1, closed above. ``size``: bins with equally many trials; trials with
        the same confidence are never separated.
    level
        Confidence level of the intervals, which resample questions with their trials.
    resamples, seed
        Of the bootstrap.

    Raises
    ------
    InputError
        If no trial has both a stated confidence and a verdict, or an option is invalid.

    Examples
    --------
    >>> trials = [{"query_id": f"q{i}", "answer": "7", "confidence": 0.8, "correct": i < 3} for i in range(6)]
    >>> result = confidence(trials)
    >>> result.name, round(result.systems[0].error, 3)
    ('calibration error (mean distance, 10 bins of equal width)', 0.3)
    """
    if distance not in get_args(Distance) or binning not in get_args(Binning) or bins < 1:
        fix = "use distance mean or rms, binning width or size, and at least one bin"
        raise InputError(
            f"invalid calibration error: distance={distance!r}, binning={binning!r}, bins={bins!r}", fix=fix
        )
    selected = Trajectories.of(trajectories)
    systems, all_bins = list[SystemConfidence](), list[Bin]()
    method = IntervalMethod("bootstrap", level, resamples, seed)
    for run in selected.run_names:
        judged = judge_system(selected, run, accuracy=accuracy).trajectories
        has_both = ~np.isnan(judged.confidence) & ~np.isnan(judged.right)
        if not has_both.any():
            continue
        stated, right = judged.confidence[has_both], judged.right[has_both]
        sums = _bin_sums(stated, right, judged.question[has_both], bin_codes(stated, bins, binning))
        losses = [
            mean_interval(measure(judged), level, measure.properties.bounds)
            for measure in (ConfidenceBrier(), ConfidenceLogLoss())
        ]
        systems.append(
            SystemConfidence(
                run, len(stated), sums.shape[1], float(right.mean()), float(stated.mean()),
                *_calibration_error(sums, distance, method), *losses[0], *losses[1],
                browsecomp_calibration_error(stated, right),
            )
        )  # fmt: skip
        all_bins += _bins(run, sums, level)
    if not systems:
        fix = "add `confidence` from 0 to 1, and verdicts (`correct`) or references, to the trials"
        raise InputError("no trial has both a stated confidence and a verdict", fix=fix, path=selected.where)
    kind = "equal width" if binning == "width" else "equal size, equal confidences together"
    name = f"calibration error ({distance} distance, {bins} bins of {kind})"
    return StatedConfidence(tuple(systems), tuple(all_bins), name, level)


def bin_codes(confidence: Floats, bins: int, binning: Binning = "width") -> Ints:
    """Return the bin of each confidence.

    >>> bin_codes(np.array([0.0, 0.1, 0.11, 1.0]), 10).tolist()
    [0, 0, 1, 9]
    >>> bin_codes(np.array([0.5, 0.5, 0.5, 0.9]), 2, "size").tolist()
    [0, 0, 0, 1]
    """
    if binning == "width":
        return np.clip(np.ceil(np.round(confidence * bins, 9)) - 1, 0, bins - 1).astype(np.int64)
    _, inverse, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    middles = (np.cumsum(counts) - counts / 2) / len(confidence)
    return np.minimum((middles * bins).astype(np.int64), bins - 1)[inverse]


def _bin_sums(stated: Floats, right: Floats, question: Ints, codes: Ints) -> Floats:
    """Return the numbers of trials, and sums of confidence and right answers, by question and bin: (3, T, B)."""
    _, rows = np.unique(question, return_inverse=True)
    shape = int(rows.max()) + 1, int(codes.max()) + 1
    cells = np.ravel_multi_index((rows, codes), shape)
    sums = [np.bincount(cells, values, math.prod(shape)) for values in (np.ones(len(stated)), stated, right)]
    return np.array(sums, dtype=np.float64).reshape(3, *shape)


def _calibration_error(sums: Floats, distance: Distance, method: IntervalMethod) -> tuple[float, IntervalLimits]:
    """Return the calibration error, and a conservative interval over questions.

    Percentiles of resampled errors do not cover, because the error of a sample is too high. By the triangle inequality,
    the errors of sample and population differ by at most the norm of the difference of their terms, whose percentile is
    estimated by resampling questions.
    """
    n, order = sums.shape[1], 1 if distance == "mean" else 2

    def bin_terms(weights: Floats) -> Floats:  # (b, T) to (b, B): their norm is the calibration error
        counts, stated, right = weights @ sums
        total = counts.sum(axis=1, keepdims=True)
        return (stated - right) / total if order == 1 else divide(stated - right, np.sqrt(counts * total))

    terms = bin_terms(np.ones((1, n)))
    error = float(np.linalg.norm(terms[0], order))
    if insufficiency(n) is not None:
        return error, None
    differences = [bin_terms(weights) - terms for weights in resampling_weights(n, method)]
    margin = float(np.quantile(np.linalg.norm(np.concatenate(differences), order, axis=1), method.level))
    return error, (max(error - margin, 0.0), min(error + margin, 1.0))


def _bins(run: str, sums: Floats, level: float) -> Iterator[Bin]:
    """Yield the bins with trials."""
    from judged.stats.ratio import UnitRatio, ratio_interval

    for counts, stated, right in sums.transpose(2, 0, 1):
        if n_trials := int(counts.sum()):
            ratio = UnitRatio.of(right[counts > 0], counts[counts > 0])
            ci = ratio_interval(ratio.value, ratio.error, ratio.units, level, share=True, effective=ratio.effective)
            yield Bin(run, n_trials, float(stated.sum()) / n_trials, ratio.value, None if math.isnan(ci[0]) else ci)


def browsecomp_calibration_error(confidence: Floats, right: Floats) -> float:
    """Return the calibration error as the scripts of BrowseComp-Plus compute it, without the last bin.

    The root mean square over bins of 100 trials sorted by confidence; the last bin also has the remaining trials, and
    is never counted. Compare only with published numbers. NaN below 100 trials, for which the scripts fail.

    >>> browsecomp_calibration_error(np.r_[np.full(100, 0.2), np.full(100, 0.9)], np.zeros(200))
    0.14142135623730948
    """
    n_counted = len(confidence) // _BROWSECOMP_BIN - 1
    if n_counted < 0:
        return math.nan
    rows = np.argsort(confidence, kind="stable")[: n_counted * _BROWSECOMP_BIN].reshape(n_counted, _BROWSECOMP_BIN)
    gaps = (confidence - right)[rows].mean(axis=1)
    return math.sqrt(_BROWSECOMP_BIN / len(confidence) * (gaps**2).sum())
