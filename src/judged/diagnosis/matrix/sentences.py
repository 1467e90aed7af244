"""A performance matrix in words: what may be concluded from it, and what not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.diagnosis.changes import SMALL
from judged.diagnosis.matrix.layout import by_run, share_text
from judged.diagnosis.matrix.points import APART, COVERAGE, NONE, OPEN, RANKING
from judged.diagnosis.matrix.two_measures import FEW_RUNS
from judged.stats.pairing import topics_text
from judged.stats.results import p_text
from judged.stats.skewness import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.diagnosis.changes import Change
    from judged.diagnosis.matrix.points import Axis, Point
    from judged.diagnosis.matrix.two_measures import TwoMeasures

_SHOWN = 8  # topics that are named
_JUDGED = 0.95  # of the first 10 documents: with more, low recall has other reasons
_MEANING = {
    RANKING: "what is relevant is found, and ranked badly",
    COVERAGE: "what is relevant is not found",
}


def sentences(found: TwoMeasures, *, full: bool) -> tuple[str, ...]:
    """Say what each run shows by slice and topic, and then what changed against the baseline; or that in short."""
    if found.barren.all():
        return ("No topic has a relevant document: nothing can be missed, and nothing ranked badly.",)
    if not full:
        return tuple(_in_short(found))
    said: list[str] = []
    for run in found.scores.run_names:
        said += _of_run(found, run)
    for x, y in by_run(found):
        if x.every:
            said += _of_change(found, x.system, x, y)
    return tuple(said)


def _in_short(found: TwoMeasures) -> Iterator[str]:
    """Say of many runs how many differ, and on how many slices."""
    runs = len(found.scores.runs)
    wholes = [pair for pair in by_run(found) if pair[0].every]
    for at, axis in enumerate((found.x, found.y)):
        seen = [pair[at] for pair in wholes if pair[at].significant]
        down = sum(one.found.difference < 0 for one in seen)
        yield (
            f"{axis}: {down} of the other {runs - 1} runs are lower than {found.baseline}, and {len(seen) - down}"
            f" higher, beyond luck (Holm over {2 * len(wholes)} tests)."
        )
    slices = [point for point in found.points if not point.every and point.quadrant not in {NONE, OPEN}]
    if found.slicing is not None:
        which = len({point.run for point in slices})
        yield f"On {which} of {runs} runs some slice is told apart from the cuts: the last columns count such slices."
        small = dict.fromkeys(point.slice for point in found.points if point.small)
        if small:
            yield f"Too few topics to be classed: {', '.join(small)}."


def _of_run(found: TwoMeasures, run: str) -> list[str]:
    several = len(found.scores.runs) > 1
    prefix = f"{run}, " if several else ""
    points = [point for point in found.points if point.run == run and not point.every]
    classed = [point for point in points if point.quadrant]
    told = [point for point in classed if point.quadrant != OPEN]
    whole = next(point for point in found.points if point.run == run)
    said = [prefix + _of_point(found, point) for point in (whole, *told) if point.quadrant not in {NONE, OPEN}]
    undecided = [point.slice for point in classed if point.quadrant == OPEN]
    if undecided and told:
        said.append(f"{prefix}not told apart from the cuts: {', '.join(undecided)}.")
    elif undecided:
        said.append(
            f"{prefix}no slice is shown to be low or high: {', '.join(undecided)} cannot be told apart from the cuts."
        )
    small = [point.slice for point in points if point.small]
    if small:
        said.append(f"{prefix}too few topics to be classed: {', '.join(small)}.")
    if len(found.scores.runs) > FEW_RUNS:
        return said
    counts = ", ".join(f"{count} {name}" for name, count in found.counts(run).items())
    said.append(
        f"Of {topics_text(whole.topics)}{f' of {run}' if several else ''}, by the cuts alone: {counts}. This describes"
        " them: a single topic proves nothing."
    )
    return said


def _of_point(found: TwoMeasures, point: Point) -> str:
    x = _of_axis(found, str(found.x), point.x, found.cuts[0])
    y = _of_axis(found, str(found.y), point.y, found.cuts[1])
    meaning = f" ({_MEANING[point.quadrant]})" if point.quadrant in _MEANING else ""
    if point.quadrant == RANKING and point.x.side == APART:  # of what is found, nothing is shown
        meaning = " (what is relevant is ranked badly; that less of it is found is not shown)"
    text = f"{point.slice}: {point.quadrant}{meaning}: {x}, {y}"
    if point.quadrant == COVERAGE and point.judged < _JUDGED:
        text += f"; {share_text(point.judged)} of its first 10 are judged, so recall may be low for want of judgments"
    return f"{text}."


def _of_axis(found: TwoMeasures, name: str, axis: Axis, cut: float) -> str:
    ci = "" if math.isnan(axis.low) else f" [{decimal(axis.low, 3)}, {decimal(axis.high, 3)}]"
    whose = "" if found.given_cuts else "the baseline's "
    where = (
        f"not told apart from {whose}{decimal(cut, 3)}"
        if axis.side == APART
        else f"{axis.side} {whose}{decimal(cut, 3)}"
    )
    return f"{name} {decimal(axis.value, 3)}{ci} {where}"


def _of_change(found: TwoMeasures, run: str, x: Change, y: Change) -> list[str]:
    if x.found.n < 2:
        return [f"{run}: too few topics to test what changed against {found.baseline}."]
    said = [f"{run} against {found.baseline}: {_change(x)}, {_change(y)}."]
    tested = [one for one in found.changes if not one.every and not math.isnan(one.found.p)]
    mine, family = [one for one in tested if one.system == run], len(tested)
    seen = [one for one in mine if one.significant]
    if seen:
        listed = "; ".join(f"{one.slice} {_change(one)}" for one in seen)
        said.append(f"{run} by slice: {listed} (Holm over {family} tests; nothing is claimed of other slices).")
    elif mine:
        said.append(f"{run}: in no slice did either measure change by more than luck might (Holm over {family} tests).")
    for axis, lost in found.lost[run].items():
        if not lost.count and len(found.scores.runs) > FEW_RUNS:
            continue
        which = [found.scores.query_ids[at] for at in lost.to_dict()["found"]]
        shown = f" ({', '.join(which[:_SHOWN])}{', ...' if len(which) > _SHOWN else ''})" if which else ""
        said.append(f"{run} by {axis}: {lost.sentence[0].lower()}{lost.sentence[1:].removesuffix('.')}{shown}.")
    return said


def _change(one: Change) -> str:
    ci = (
        ""
        if one.found.interval is None
        else f" [{decimal(one.found.interval[0], 3, '+')}, {decimal(one.found.interval[1], 3, '+')}]"
    )
    told = "" if one.significant else ", not told apart from 0"
    p = p_text(one.found.decisive_p, 1 - one.found.level)
    return f"{one.part} {decimal(one.found.difference, 4, '+')}{ci} (p {p}{told})"


def caption(found: TwoMeasures) -> str:
    """Say where the cuts come from, and how slices are classed."""
    choices = found.choices
    x, y = found.cuts
    whose = "cuts as given" if found.given_cuts else f"cuts: the means of {found.baseline} over all topics"
    parts = [f"{whose}, {found.x} {decimal(x)} and {found.y} {decimal(y)}, taken as they are"]
    runs = sum(point.every and point.quadrant != NONE for point in found.points)
    first = found.points[0].run
    slices = sum(point.quadrant != NONE for point in found.points if point.run == first and not point.every)
    parts.append(f"[{choices.level:.0%} interval: Student's t]")
    if runs:
        many = "1 run" if runs == 1 else f"{runs} runs"
        whose = many if found.given_cuts else f"{many} beside the baseline"
        level = f"{choices.corrected(2 * runs):.2%}"
        parts.append(f"that of all topics has {level} where it is classed (Bonferroni: {whose}, two axes)")
    if slices:
        many = "1 slice" if slices == 1 else f"{slices} slices"
        parts.append(
            f"those of slices have {choices.corrected(2 * slices):.2%} (Bonferroni: {many}, two axes) and the spread of"
            " the slice or of all topics, whichever is wider"
        )
    if slices or runs:
        parts.append("- wholly below the cut, + wholly above it, ? not told apart from it")
    if any(point.small for point in found.points):
        parts.append(f"{SMALL}: too few topics to be classed")
    return "; ".join(parts)


def summary_caption(found: TwoMeasures) -> str:
    """Say what the summary of many runs leaves out, and how it was tested."""
    x, y = found.cuts
    whose = "cuts as given" if found.given_cuts else f"cuts: the means of {found.baseline} over all topics"
    parts = [
        f"{len(found.scores.runs)} runs in short, without intervals (in full: --per-run, or per_run=True)",
        f"{whose}, {found.x} {decimal(x)} and {found.y} {decimal(y)}",
        "- wholly below the cut, + wholly above it, ? not told apart from it",
        f"changes: {changes_caption(found)}",
    ]
    if found.slicing is not None:
        parts.append("the last columns count the slices that are told apart from the cuts")
    return "; ".join(parts)


def changes_caption(found: TwoMeasures) -> str:
    """Say how changes were tested."""
    choices = found.choices
    return (
        f"each run minus {found.baseline}; paired randomisation test, {choices.resamples} resamples, seed"
        f" {choices.seed}{SECOND if found.slicing else ''}; p by Holm: over runs and axes for all"
        f" topics, over runs, slices and axes below;"
        f" intervals are as wide as the correction asks; * p up to {1 - choices.level:.2g}"
    )
