"""`curve` and `precision_recall`: compute curves from qrels and runs, or from scores."""

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
from judged.scoring.measures.grammar import find_entry
from judged.scoring.measures.registry import REGISTRY
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores
    from judged.stats.interval import IntervalName


_DEFAULT_CUTOFF, _DEFAULT_RAW_CUTOFF = 100, 1000  # last cutoff by default, of `curve` and of `precision_recall`
_MAX_CUTOFF = 100_000
_RECALL_LEVELS = tuple(tenth / 10 for tenth in range(11))
_NO_BOUNDS = "a curve cannot show ranges of scores (ties='bounds' or unjudged)"
_WITHOUT_BOUNDS = "evaluate at one cutoff, or omit ties='bounds' and unjudged"


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
    """Evaluate runs with one measure at many cutoffs.

    Parameters
    ----------
    qrels, runs
        As for `evaluate`.
    measure
        A measure with a cutoff, or its name: nDCG, DCG, R, P, Success, RBP(p=0.8), and others.
    cutoffs
        The last cutoff of 1, 2, 3, ..., or a list of cutoffs. Default: the cutoffs in the measure's name (nDCG@20
        means 1 to 20), or else 1 to 100, limited to the longest ranking.
    ci, level, resamples, seed
        Options of the confidence intervals, as for `IntervalMethod`: ``adjusted``, ``t``, ``bootstrap`` or ``none``.
    policies
        Other policies of `evaluate`: dialect, topics, ties, depth, precision, documents, progress.

    Raises
    ------
    InputError
        If an input cannot be read, or a cutoff is not a positive integer.
    MeasureError
        If the measure does not exist or has no cutoff.

    Examples
    --------
    Relevant at ranks 2 and 3 of four:

    >>> curves = curve({"q": {"b": 1, "c": 1, "e": 1, "f": 1}}, {"q": ["a", "b", "c", "d"]}, "R", cutoffs=4)
    >>> curves.mean.tolist()
    [[0.0, 0.25, 0.5, 0.5]]
    """
    interval = IntervalMethod(ci, level, resamples, seed)
    judgments = Qrels.of(qrels)
    template, named_cutoffs = _parse_measure(measure, judgments, policies.get("dialect"))
    template = with_rel(template, policies.get("rel"), written=measure)
    selected_cutoffs = _check_cutoffs(cutoffs, named_cutoffs)
    series = [template.replace(cutoff=k) for k in selected_cutoffs or range(1, _DEFAULT_CUTOFF + 1)]
    scores = _evaluate_series(judgments, runs, series, seed, policies, limit_to_lists=selected_cutoffs is None)
    return _curve_by_cutoff(scores, interval)


def at_cutoffs(measure: Any = "nDCG", cutoffs: int | Iterable[int] | None = None) -> tuple[Measure, ...]:
    """Return one measure at many cutoffs, to compute the scores of a curve with `evaluate` or `score_lists`.

    Parameters
    ----------
    measure
        Measure, or its name, without a cutoff.
    cutoffs
        Cutoffs, or the last one; None: up to 100.

    Examples
    --------
    >>> at_cutoffs("RBP(p=0.5)", [10, 1]), len(at_cutoffs("nDCG"))
    ((RBP(p=0.5)@1, RBP(p=0.5)@10), 100)
    """
    # `measure`, `cutoffs`: as for `curve`. Default: 1 to 100.
    template, named_cutoffs = _parse_measure(measure)
    selected_cutoffs = _check_cutoffs(cutoffs, named_cutoffs) or range(1, _DEFAULT_CUTOFF + 1)
    return tuple(template.replace(cutoff=k) for k in selected_cutoffs)


def curve_of_scores(
    scores: Scores, *, ci: IntervalName = "adjusted", level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Curves:
    """Create curves from the scores of one measure at several cutoffs.

    Parameters
    ----------
    scores
        Result of `evaluate`, over all or some topics. No data are read again.
    ci, level, resamples, seed
        Options of the confidence intervals, as for `curve`.

    Returns
    -------
    Curves
        The result of `curve` for the same qrels, runs, and cutoffs.

    Raises
    ------
    InputError
        If there are scores of several measures, or bounds.
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
    for measure in scores.measures:
        if measure.entry.cutoff_name != "cutoff" or vars(measure).get("cutoff") is None:
            raise MeasureError(f"a curve requires measures with a cutoff, got {measure}. Fix: use at_cutoffs('nDCG')")
    if others := {measure.replace(cutoff=1) for measure in scores.measures} - {scores.measures[0].replace(cutoff=1)}:
        names = [_name_with_letter(measure, "cutoff", "k") for measure in (scores.measures[0], next(iter(others)))]
        problem = f"a curve requires scores of one measure, got {' and '.join(names)}"
        raise InputError(problem, fix="evaluate one measure at several cutoffs")
    order = np.argsort(_cutoffs(scores.measures), kind="stable").tolist()
    if order != sorted(order):
        measures = tuple(scores.measures[i] for i in order)
        scores = replace(scores, measures=measures, values=scores.values[:, order])
    return _curve_by_cutoff(scores, interval)


def _curve_by_cutoff(scores: Scores, interval: IntervalMethod) -> Curves:
    name = _name_with_letter(scores.measures[0], "cutoff", "k")
    return Curves.from_scores("cutoff", name, _cutoffs(scores.measures), scores, interval)


def _cutoffs(measures: Sequence[Measure]) -> Floats:
    return np.array([vars(measure)["cutoff"] for measure in measures], dtype=np.float64)


def precision_recall(
    qrels: Any,
    runs: Any,
    how: Literal["interpolated", "raw"] = "interpolated",
    *,
    rel: float = 1,
    recalls: Iterable[float] = _RECALL_LEVELS,
    cutoffs: int | Iterable[int] | None = None,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    **policies: Any,
) -> Curves:
    """Compute precision by recall.

    Parameters
    ----------
    qrels, runs
        As for `evaluate`.
    how
        ``interpolated``: highest precision at this recall or above, averaged over topics. ``raw``: mean precision and
        mean recall at each cutoff; ``.topic(query_id)`` has one point per relevant document in the ranking.
    rel
        Lowest relevant grade.
    recalls
        Recall levels from 0 to 1, for ``interpolated``.
    cutoffs
        As for `curve`, for ``raw``. Default: 1 to 1000, limited to the longest ranking.
    ci, level, resamples, seed, policies
        As for `curve`.

    Raises
    ------
    InputError
        If an input cannot be read, or if `recalls` or `cutoffs` are invalid.
    MeasureError
        If a recall level is not a number from 0 to 1.

    Examples
    --------
    The two relevant documents are at ranks 1 and 4. Up to recall 0.5, the first is enough, and the precision is 1.

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
            raise InputError(
                "interpolated precision has recall levels instead of `cutoffs`", fix="use depth=, or how='raw'"
            )
        template = _parse_measure("iprec_at_recall_0.5", judgments, dialect, "recall")[0].replace(rel=rel)
        series = [template.replace(recall=recall) for recall in sorted(set(recalls))]
        if not series:
            raise InputError("`recalls` must not be empty", fix="use recall levels from 0 to 1")
        scores = _evaluate_series(judgments, runs, series, seed, policies)
        points = np.array([vars(measure)["recall"] for measure in series], dtype=np.float64)
        return Curves.from_scores("interpolated", _name_with_letter(template, "recall", "c"), points, scores, interval)
    if how != "raw":
        raise InputError(f"`how` must be 'interpolated' or 'raw', got {how!r}", fix="use how='raw'")
    pair = [_parse_measure(name, judgments, dialect)[0].replace(rel=rel) for name in ("P", "R")]
    selected_cutoffs = _check_cutoffs(cutoffs, ()) or range(1, _DEFAULT_RAW_CUTOFF + 1)
    series = [measure.replace(cutoff=k) for measure in pair for k in selected_cutoffs]
    scores = _evaluate_series(judgments, runs, series, seed, policies, limit_to_lists=cutoffs is None)
    points = _cutoffs(scores.measures[: len(scores.measures) // 2])
    name = " and ".join(_name_with_letter(measure, "cutoff", "k") for measure in pair)
    return Curves.from_scores("raw", name, points, scores, interval)


def _parse_measure(
    measure: Any, qrels: Qrels | None = None, dialect: Any = None, parameter: str = "cutoff"
) -> tuple[Measure, tuple[int, ...]]:
    """Return the measure by the rules of the dialect, and the values of `parameter` in its name."""
    if isinstance(measure, str):
        entry = find_entry(measure)
    elif isinstance(measure, Measure) or (isinstance(measure, type) and issubclass(measure, Measure)):
        entry = measure.entry
    else:
        raise MeasureError(f"`measure` must be one measure or its name, got {measure!r:.80}. Fix: use 'nDCG'")
    if entry.cutoff is None or entry.cutoff_name != parameter:
        fix = (
            "use precision_recall"
            if entry.cutoff_name == "recall"
            else "use a measure such as nDCG, DCG, R, P, or Success"
        )
        raise MeasureError(f"{entry.name} takes no cutoff, so it has no curve by cutoff. Fix: {fix}")
    if isinstance(measure, type):
        return (measure @ 1 if entry.cutoff.required else measure()), ()
    rules = dialect_of(dialect)
    grades = () if qrels is None else rules.prepare_qrels(qrels).distinct_grades
    try:
        parsed = rules.measures(measure, grades)
    except MeasureError:
        if isinstance(measure, Measure) or not entry.cutoff.required or "@" in measure:
            raise
        return rules.measures(f"{measure}@1", grades)[0], ()
    if len({parsed_measure.replace(**{parameter: 1}) for parsed_measure in parsed}) > 1:
        raise MeasureError(f"{measure} names several measures. Fix: use one measure")
    values = tuple(vars(parsed_measure)[parameter] for parsed_measure in parsed)
    return parsed[0], () if None in values else values


def _name_with_letter(measure: Measure, parameter: str, letter: str) -> str:
    """Return the name of a measure with a letter in place of the value after the ``@``."""
    return str(measure.replace(**{parameter: 1})).removesuffix("1") + letter


def _check_cutoffs(cutoffs: int | Iterable[int] | None, named_cutoffs: Sequence[int]) -> list[int] | None:
    """Return the cutoffs in ascending order, or None if neither the caller nor the measure's name has any."""
    if cutoffs is None:
        if not named_cutoffs:
            return None
        cutoffs = named_cutoffs[0] if len(named_cutoffs) == 1 else named_cutoffs
    try:
        is_list = isinstance(cutoffs, Iterable)
        values = sorted({operator.index(cutoff) for cutoff in cutoffs}) if is_list else [operator.index(cutoffs)]
    except TypeError:
        problem = f"`cutoffs` must be positive integers, got {cutoffs!r:.80}"
        raise InputError(problem, fix="use 100, or [1, 5, 10]") from None
    if not values or values[0] < 1:
        raise InputError(f"`cutoffs` must be positive integers, got {cutoffs!r:.80}", fix="use 100, or [1, 5, 10]")
    if values[-1] > _MAX_CUTOFF and not is_list:
        problem = f"at most {_MAX_CUTOFF} cutoffs are possible, got {values[-1]}"
        raise InputError(problem, fix="use a list, such as [1, 10, 100]")
    return values if is_list else list(range(1, values[0] + 1))


def _evaluate_series(
    qrels: Qrels,
    runs: Any,
    series: Sequence[Measure],
    seed: int,
    policies: dict[str, Any],
    *,
    limit_to_lists: bool = False,
) -> Scores:
    """Evaluate a series of measures in one call; `limit_to_lists` drops cutoffs beyond the longest ranking."""
    if policies.get("ties") == "bounds" or policies.get("unjudged"):
        raise InputError(_NO_BOUNDS, fix=_WITHOUT_BOUNDS)
    if not limit_to_lists:
        return evaluate(qrels, runs, series, seed=seed, **policies)
    scores = evaluate(qrels, runs, [*series, REGISTRY["NumRet"].cls()], seed=seed, **policies)
    max_length = max(1.0, np.nanmax(scores.values[:, -1], initial=1.0))
    indices = [i for i, measure in enumerate(series) if vars(measure)["cutoff"] <= max_length]
    return replace(scores, measures=tuple(series[i] for i in indices), values=scores.values[:, indices])
