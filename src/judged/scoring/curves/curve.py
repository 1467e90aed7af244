"""`curve` and `precision_recall`: from qrels and runs to curves, by `evaluate`; or from scores that are there."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.results import TEXT, Column, Table
from judged.results.charts import Scale, by_cutoff, even, round_of
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


_LETTERS = ascii_lowercase + ascii_uppercase
_SEVERAL = "*"
_DOTS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))
"""The bits of a braille character, from the lowest row of dots up, left and right."""
_COLOURS = (36, 33, 35, 32, 34, 31)  # of terminals, those that show on black and on white
_APART = 14  # columns between two letters on one line
_LEAST_WIDTH, _LEAST_HEIGHT = 24, 6


@dataclass(frozen=True)
class _Frame:
    """The axes, and how large the area between them is, in characters."""

    across: Scale
    up: Scale
    columns: int
    rows: int

    def place(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Give columns and rows, as fractions: (K,) and (K,) without the points that are missing."""
        known = ~(np.isnan(x) | np.isnan(y))
        return self.across.share(x[known]) * (self.columns - 1), self.up.share(y[known]) * (self.rows - 1)


class _Canvas:
    """A grid of characters; each keeps which run it belongs to."""

    def __init__(self, columns: int, rows: int) -> None:
        self.dots = np.zeros((rows, columns), dtype=np.int64)
        self.letters = np.full((rows, columns), "", dtype=object)
        self.owner = np.full((rows, columns), -1, dtype=np.int64)

    def draw(self, column: Floats, row: Floats, run: int) -> None:
        """Draw a line through points in dots; later runs go over earlier ones."""
        x, y = (column + 0.5) * 2, (row + 0.5) * 4
        for across, up in _steps(x, y):
            cell = int(up) // 4, int(across) // 2
            self.dots[cell] |= _DOTS[int(up) % 4][int(across) % 2]
            self.owner[cell] = run

    def trace(self, column: Floats, row: Floats, letter: str, run: int) -> None:
        """Draw a line through points in letters; the first run that was there stays."""
        for across, up in _steps(column + 0.5, row + 0.5):
            if not self.letters[int(up), int(across)]:
                self.letters[int(up), int(across)], self.owner[int(up), int(across)] = letter, run

    def mark(self, column: Floats, row: Floats, letter: str, run: int) -> None:
        """Put a letter on points; an asterisk where there is another letter already."""
        for cell in dict.fromkeys(
            zip((row + 0.5).astype(int).tolist(), (column + 0.5).astype(int).tolist(), strict=True)
        ):
            taken = self.letters[cell] not in {"", ".", letter}
            self.letters[cell], self.owner[cell] = (_SEVERAL, -1) if taken else (letter, run)

    def lines(self, *, colour: bool) -> list[str]:
        """Give the rows from the top down."""
        return [
            "".join(self._cell(row, at, colour=colour) for at in range(self.dots.shape[1])).rstrip()
            for row in reversed(range(len(self.dots)))
        ]

    def _cell(self, row: int, column: int, *, colour: bool) -> str:
        letter, dots, owner = self.letters[row, column], int(self.dots[row, column]), int(self.owner[row, column])
        text = letter or (chr(0x2800 + dots) if dots else " ")
        return _coloured(text, owner, bold=bool(letter)) if colour and owner >= 0 else text


def plot(curves: Curves, width: int, height: int, *, ascii_only: bool, colour: bool) -> str:
    """Draw curves with axes, and below them which letter is which run, with some of the numbers."""
    frame, left = _frame(curves, max(width, _LEAST_WIDTH), max(height, _LEAST_HEIGHT))
    canvas = _Canvas(frame.columns, frame.rows)
    places = [frame.place(x, mean) for x, mean in zip(curves.x, curves.mean, strict=True)]
    for run, place in enumerate(places):
        sparse = len(place[0]) <= frame.columns // 6
        if ascii_only:
            canvas.trace(*place, "." if sparse else _letter(run), run)
        else:
            canvas.draw(*place, run)
    for run, place in enumerate(places):
        canvas.mark(*_marked(place, run, len(places), frame.columns), _letter(run), run)
    drawn = _with_axes(frame, canvas.lines(colour=colour), left, curves.labels, ascii_only=ascii_only)
    several = [f"{_SEVERAL}  several runs"] if (canvas.letters == _SEVERAL).any() else []
    return "\n".join([*drawn, "", *_legend(curves, width, colour=colour), *several])


def _frame(curves: Curves, width: int, height: int) -> tuple[_Frame, int]:
    """Choose the axes so that each number on the left one has a row of its own; and the width of these numbers."""
    up = even(curves.mean, max(1, (height - 3) // 3))
    if curves.how == "cutoff":
        across = by_cutoff(curves.points)
    else:
        across = even(np.array([0.0, 1.0]) if curves.how == "interpolated" else np.append(curves.x, 0.0), 5)
    steps = len(up.ticks) - 1
    left = max(map(len, _numbers(up)))
    columns = width - left - 3 - len(curves.labels[0]) - 1
    return _Frame(across, up, columns, steps * max(1, (height - 4) // steps) + 1), left


def _marked(place: tuple[Floats, Floats], run: int, runs: int, columns: int) -> tuple[Floats, Floats]:
    """Choose where the letter of a run stands: at its points, or where there are many, now and then on the line."""
    column, row = place
    if len(column) <= columns // 6:
        return place
    apart = max(_APART, 2 * runs)
    at = np.arange(apart * (2 * run + 1) // (2 * runs), columns, apart, dtype=np.float64)
    at = at[(at >= column[0]) & (at <= column[-1])]
    return (at, np.interp(at, column, row)) if len(at) else (column[-1:], row[-1:])


def _with_axes(frame: _Frame, lines: list[str], left: int, labels: tuple[str, str], *, ascii_only: bool) -> list[str]:
    side, tick, corner, level, notch = "|++-+" if ascii_only else "│┤└─┬"
    rows = np.rint(frame.up.share(np.array(frame.up.ticks)) * (frame.rows - 1)).astype(int).tolist()
    named = {frame.rows - 1 - row: text for row, text in zip(rows, _numbers(frame.up), strict=True)}
    drawn = [labels[1]] + [
        f"{named.get(at, ''):>{left}} {tick if at in named else side} {line}".rstrip() for at, line in enumerate(lines)
    ]
    places = np.rint(frame.across.share(np.array(frame.across.ticks)) * (frame.columns - 1)).astype(int).tolist()
    axis, below, free = [level] * frame.columns, [" "] * (left + 3 + frame.columns + left), 0
    for at, text in sorted(zip(places, _numbers(frame.across), strict=True)):
        start = left + 3 + at - (len(text) - 1) // 2
        if start >= free:
            axis[at] = notch
            below[start : start + len(text)] = text
            free = start + len(text) + 1
    return [*drawn, f"{'':>{left}} {corner}{level}{''.join(axis)} {labels[0]}", "".join(below).rstrip()]


def _legend(curves: Curves, width: int, *, colour: bool) -> list[str]:
    """Say which letter is which run, and give as many numbers as fit."""
    known = np.flatnonzero(~np.isnan(curves.mean).any(axis=0))
    some = known[round_of(curves.points[known], 3)].tolist() if len(known) else []
    wishes = (some[:1] + some[len(some) // 2 :][:1] + some[-1:], some[:1] + some[-1:], some[-1:])
    tables = (_legend_of(curves, list(dict.fromkeys(wish))) for wish in wishes if wish)
    fitting = (lines for lines in tables if max(map(len, lines)) <= width)
    lines = next(fitting, None) or _legend_of(curves, [])[1:]
    if colour:
        at = len(lines) - len(curves.run_names)
        lines[at:] = [_coloured(line[0], run, bold=True) + line[1:] for run, line in enumerate(lines[at:])]
    return lines


def _legend_of(curves: Curves, shown: list[int]) -> list[str]:
    """Write a table of runs with the numbers at some points."""
    head = {"cutoff": "k", "interpolated": "recall", "raw": "precision, k"}[curves.how]
    runs = range(len(curves.run_names))
    columns = [Column("letter", [_letter(run) for run in runs], TEXT, ""), Column("run", curves.run_names, TEXT)]
    columns += [curves.values("value", (slice(None), at), f"{head}={curves.points[at]:.12g}") for at in shown]
    return Table("legend", tuple(columns), labels=2).text().splitlines()


def _numbers(scale: Scale) -> list[str]:
    """Write the numbers of an axis, all with the same decimals."""
    return [f"{tick:.{scale.decimals}f}" for tick in scale.ticks]


def _steps(x: Floats, y: Floats) -> Iterable[tuple[float, float]]:
    """Walk along a line through points in steps of at most one."""
    yield from zip(x[:1].tolist(), y[:1].tolist(), strict=True)
    for at in range(1, len(x)):
        count = max(1, int(np.ceil(max(abs(x[at] - x[at - 1]), abs(y[at] - y[at - 1])))))
        part = np.arange(1, count + 1) / count
        yield from zip(
            (x[at - 1] + part * (x[at] - x[at - 1])).tolist(),
            (y[at - 1] + part * (y[at] - y[at - 1])).tolist(),
            strict=True,
        )


def _letter(run: int) -> str:
    return _LETTERS[run % len(_LETTERS)]


def _coloured(text: str, run: int, *, bold: bool) -> str:
    return f"\x1b[{'1;' * bold}{_COLOURS[run % len(_COLOURS)]}m{text}\x1b[0m"


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
        if one.entry.cutoff_name != "cutoff" or vars(one).get("cutoff") is None:
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
        entry = find_entry(measure)
    elif isinstance(measure, Measure) or (isinstance(measure, type) and issubclass(measure, Measure)):
        entry = measure.entry
    else:
        raise MeasureError(f"{measure!r:.80} is not one measure. Fix: give one name, such as 'nDCG', or a measure")
    if entry.cutoff is None or entry.cutoff_name != at:
        fix = (
            "draw precision by recall" if entry.cutoff_name == "recall" else "take nDCG, DCG, R, P, Success or another"
        )
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
