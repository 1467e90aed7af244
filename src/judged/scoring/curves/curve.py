"""`curve` and `precision_recall`: from qrels and runs to curves, by `evaluate`; or from scores that are there."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.scoring.curves.answer import Curves
from judged.scoring.evaluation import dialect_of, evaluate
from judged.scoring.evaluation.inputs import with_rel
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import entry_of
from judged.scoring.measures.registry import REGISTRY
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores
    from judged.stats.interval import IntervalName

_USUAL, _DEEP = 100, 1000  # how far a curve goes if nothing is said: by cutoff, and by recall
_MOST = 100_000
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_NO_BOUNDS = "a curve shows no bounds"
_WITHOUT_BOUNDS = "evaluate at one cutoff, or draw the mean: ties expected"


def curve(
    qrels: Any,
    runs: Any,
    measure: Any = "nDCG",
    *,
    cutoffs: int | Iterable[int] | None = None,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **policies: Any,
) -> Curves:
    """Score runs with one measure at many cutoffs.

    Parameters
    ----------
    qrels, runs
        As `evaluate` takes them.
    measure
        A measure that takes a cutoff, or its name: nDCG, DCG, R, P, Success, RBP(p=0.8) and others.
    cutoffs
        The last cutoff of 1, 2, 3 ..., or all of them. If they are left out: those in the measure's name, where
        nDCG@20 means 1 to 20; else 1 to 100, or to the end of the longest ranking.
    ci, level, resamples, seed
        How intervals over topics are made: ``adjusted``, ``t``, ``bootstrap`` or ``none``, as `IntervalMethod` says.
    policies
        Other policies of `evaluate`: dialect, topics, ties, depth, precision, documents, progress.

    Returns
    -------
    Curves

    Raises
    ------
    InputError
        If something cannot be read, or a cutoff is not a whole number from 1.
    MeasureError
        If there is no such measure, or it takes no cutoff.

    Examples
    --------
    Relevant at ranks 2 and 3 of four:

    >>> made = curve({"q": {"b": 1, "c": 1, "e": 1, "f": 1}}, {"q": ["a", "b", "c", "d"]}, "R", cutoffs=4)
    >>> made.mean.tolist()
    [[0.0, 0.25, 0.5, 0.5]]
    """
    interval = IntervalMethod(ci, level, resamples, seed)
    judgments = Qrels.of(qrels)
    which, named = _read(measure, judgments, policies.get("dialect"))
    which = with_rel(which, policies.get("rel"), written=measure)
    chosen = _chosen(cutoffs, named)
    series = [which.replace(cutoff=k) for k in chosen or range(1, _USUAL + 1)]
    scores = _scores(judgments, runs, series, seed, policies, trimmed=chosen is None)
    return _by_cutoff(scores, interval)


def at_cutoffs(measure: Any = "nDCG", cutoffs: int | Iterable[int] | None = None) -> tuple[Measure, ...]:
    """Give one measure at many cutoffs: what `evaluate` or `score_lists` is asked for to draw a curve.

    >>> at_cutoffs("RBP(p=0.5)", [10, 1]), len(at_cutoffs("nDCG"))
    ((RBP(p=0.5)@1, RBP(p=0.5)@10), 100)
    """
    # `measure`, `cutoffs`: as `curve` takes them; 1 to 100, if nothing is said of cutoffs.
    which, named = _read(measure)
    return tuple(which.replace(cutoff=k) for k in _chosen(cutoffs, named) or range(1, _USUAL + 1))


def curve_of_scores(
    scores: Scores, *, ci: IntervalName = "adjusted", level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Curves:
    """Draw scores that are there already: those of one measure at several cutoffs.

    Parameters
    ----------
    scores
        What `evaluate` returned, over all topics or some; nothing is read again.
    ci, level, resamples, seed
        How intervals over topics are made, as for `curve`.

    Returns
    -------
    Curves
        As `curve` gives them for the same qrels, runs and cutoffs.

    Raises
    ------
    InputError
        If the scores are of several measures, or have bounds.
    MeasureError
        If a measure has no cutoff.

    Examples
    --------
    >>> from judged import evaluate
    >>> scores = evaluate({"q": {"b": 1, "c": 1}}, {"q": ["a", "b", "c"]}, at_cutoffs("R", 3))
    >>> scores.curve().mean.tolist()
    [[0.0, 0.5, 1.0]]
    """
    interval = IntervalMethod(ci, level, resamples, seed)
    if scores.ranges:
        raise InputError(_NO_BOUNDS, fix=_WITHOUT_BOUNDS)
    for one in scores.measures:
        if one.entry.at != "cutoff" or vars(one).get("cutoff") is None:
            raise MeasureError(f"{one} has no cutoff, and so has no place on a curve. Fix: evaluate at_cutoffs('nDCG')")
    if several := {one.replace(cutoff=1) for one in scores.measures} - {scores.measures[0].replace(cutoff=1)}:
        other = _named(next(iter(several)), "cutoff", "k")
        raise InputError(
            f"the scores are of {_named(scores.measures[0], 'cutoff', 'k')} and of {other}: that is not a single curve",
            fix="evaluate one measure at several cutoffs",
        )
    rising = np.argsort(_cutoffs(scores.measures), kind="stable").tolist()
    if rising != sorted(rising):
        measures = tuple(scores.measures[at] for at in rising)
        scores = replace(scores, measures=measures, values=scores.values[:, rising])
    return _by_cutoff(scores, interval)


def _by_cutoff(scores: Scores, interval: IntervalMethod) -> Curves:
    """Draw lines through scores whose measures are one at rising cutoffs."""
    return Curves.of("cutoff", _named(scores.measures[0], "cutoff", "k"), _cutoffs(scores.measures), scores, interval)


def _cutoffs(measures: Sequence[Measure]) -> Floats:
    return np.array([vars(one)["cutoff"] for one in measures], dtype=np.float64)


def precision_recall(
    qrels: Any,
    runs: Any,
    how: Literal["interpolated", "raw"] = "interpolated",
    *,
    rel: float = 1,
    recalls: Iterable[float] = _TENTHS,
    cutoffs: int | Iterable[int] | None = None,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **policies: Any,
) -> Curves:
    """Give precision by recall.

    Parameters
    ----------
    qrels, runs
        As `evaluate` takes them.
    how
        ``interpolated``: the best precision at this recall or a higher one, mean over topics. ``raw``: precision
        and recall at the same cutoffs, each a mean over topics; ``.topic(query_id)`` has one point at each relevant
        document that was found.
    rel
        The lowest grade that counts as relevant.
    recalls
        The recalls, for ``interpolated``.
    cutoffs
        As `curve` takes them, for ``raw``; to the end of the longest ranking, or 1000, if they are left out.
    ci, level, resamples, seed, policies
        As `curve` takes them.

    Returns
    -------
    Curves

    Raises
    ------
    InputError
        If something cannot be read, or levels and cutoffs make no sense.
    MeasureError
        If a level is not a number from 0 to 1.

    Examples
    --------
    Relevant at ranks 1 and 4 of two: the precision is 1 while one document is enough.

    >>> run = {"q": ["a", "x", "y", "b"]}
    >>> precision_recall({"q": ["a", "b"]}, run, recalls=(0, 0.5, 1)).mean.tolist()
    [[1.0, 1.0, 0.5]]
    >>> raw = precision_recall({"q": ["a", "b"]}, run, "raw").topic("q")
    >>> raw.x.tolist(), raw.mean.tolist()
    ([[0.5, nan, nan, 1.0]], [[1.0, nan, nan, 0.5]])
    """
    interval = IntervalMethod(ci, level, resamples, seed)
    judgments = Qrels.of(qrels)
    dialect = policies.get("dialect")
    if how == "interpolated":
        if cutoffs is not None:
            raise InputError("interpolated precision has no cutoffs", fix="give depth=, or how='raw'")
        which = _read("iprec_at_recall_0.5", judgments, dialect, "recall")[0].replace(rel=rel)
        series = [which.replace(recall=one) for one in sorted(set(recalls))]
        if not series:
            raise InputError("no recall level is given", fix="give numbers from 0 to 1")
        scores = _scores(judgments, runs, series, seed, policies)
        at = np.array([vars(one)["recall"] for one in series], dtype=np.float64)
        return Curves.of("interpolated", _named(which, "recall", "c"), at, scores, interval)
    if how != "raw":
        raise InputError(f"no precision by recall of the kind {how!r}", fix="interpolated or raw")
    pair = [_read(name, judgments, dialect)[0].replace(rel=rel) for name in ("P", "R")]
    chosen = _chosen(cutoffs, ())
    series = [[one.replace(cutoff=k) for k in chosen or range(1, _DEEP + 1)] for one in pair]
    scores = _scores(judgments, runs, [*series[0], *series[1]], seed, policies, trimmed=chosen is None)
    at = _cutoffs(scores.measures[: len(scores.measures) // 2])
    name = " and ".join(_named(one, "cutoff", "k") for one in pair)
    return Curves.of("raw", name, at, scores, interval)


def _read(
    measure: Any, qrels: Qrels | None = None, dialect: Any = None, at: str = "cutoff"
) -> tuple[Measure, tuple[int, ...]]:
    """Read a measure as the dialect means it for these qrels, and the cutoffs that its name holds, if any."""
    if isinstance(measure, str):
        entry = entry_of(measure)
    elif isinstance(measure, Measure) or (isinstance(measure, type) and issubclass(measure, Measure)):
        entry = measure.entry
    else:
        raise MeasureError(f"{measure!r:.80} is not one measure. Fix: give one name, such as 'nDCG', or a measure")
    if entry.cutoff is None or entry.at != at:
        fix = "draw precision by recall" if entry.at == "recall" else "take nDCG, DCG, R, P, Success or another"
        raise MeasureError(f"{entry.name} takes no cutoff, and so has no curve by cutoff. Fix: {fix}")
    if isinstance(measure, type):
        return (measure @ 1 if entry.cutoff.required else measure()), ()
    rules = dialect_of(dialect)
    grades = () if qrels is None else rules.prepare_qrels(qrels).distinct_grades
    try:
        found = rules.measures(measure, grades)
    except MeasureError:
        if isinstance(measure, Measure) or not entry.cutoff.required or "@" in measure:
            raise
        return rules.measures(f"{measure}@1", grades)[0], ()
    if len({one.replace(**{at: 1}) for one in found}) > 1:
        raise MeasureError(f"{measure} names several measures. Fix: give one of them")
    named = tuple(vars(one)[at] for one in found)
    return found[0], () if None in named else named


def _named(measure: Measure, at: str, letter: str) -> str:
    """Write a measure's name with a letter for what is behind the ``@``."""
    return str(measure.replace(**{at: 1})).removesuffix("1") + letter


def _chosen(cutoffs: int | Iterable[int] | None, named: Sequence[int]) -> list[int] | None:
    """Give the cutoffs that were asked for, rising; None if that was left open."""
    if cutoffs is None:
        if not named:
            return None
        cutoffs = named[0] if len(named) == 1 else named
    try:
        several = isinstance(cutoffs, Iterable)
        found = sorted({operator.index(one) for one in cutoffs}) if several else [operator.index(cutoffs)]
    except TypeError:
        raise InputError(f"the cutoffs {cutoffs!r:.80} are not whole numbers", fix="give 100, or [1, 5, 10]") from None
    if not found or found[0] < 1:
        raise InputError("a curve needs cutoffs from 1", fix="give 100, or [1, 5, 10]")
    if found[-1] > _MOST and not several:
        raise InputError(f"{found[-1]} cutoffs are too many", fix=f"at most {_MOST}, or choose some: [1, 10, 100]")
    return found if several else list(range(1, found[0] + 1))


def _scores(
    qrels: Qrels, runs: Any, series: Sequence[Measure], seed: int, policies: dict[str, Any], *, trimmed: bool = False
) -> Scores:
    """Evaluate a series of measures at once; trimmed, only to the end of the longest ranking."""
    if policies.get("ties") == "bounds" or policies.get("unjudged"):
        raise InputError(_NO_BOUNDS, fix=_WITHOUT_BOUNDS)
    if not trimmed:
        return evaluate(qrels, runs, series, seed=seed, **policies)
    scores = evaluate(qrels, runs, [*series, REGISTRY["NumRet"].cls()], seed=seed, **policies)
    longest = max(1.0, np.nanmax(scores.values[:, -1], initial=1.0))
    kept = [at for at, one in enumerate(series) if vars(one)["cutoff"] <= longest]
    return replace(scores, measures=tuple(series[at] for at in kept), values=scores.values[:, kept])
