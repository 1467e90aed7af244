"""A performance matrix in words: what may be concluded from it, and what not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.forms import wrapped
from judged.comparison.marks import fixed
from judged.diagnosis.matrix.layout import by_run, changes_table, points_table, topics_table
from judged.diagnosis.matrix.points import APART, COVERAGE, NONE, OPEN, RANKING
from judged.diagnosis.stages.layout import SMALL
from judged.stats.pairing import topics_text
from judged.stats.results import p_text

if TYPE_CHECKING:
    from judged.diagnosis.changes import Change
    from judged.diagnosis.matrix.making import Matrix
    from judged.diagnosis.matrix.points import Axis, Point

_SHOWN = 8  # topics that are named
_FEW = 4  # runs: of more, only what was found is told
_MEANING = {
    RANKING: "what is relevant is found, and ranked badly",
    COVERAGE: "what is relevant is not found",
}


def sentences(found: Matrix) -> tuple[str, ...]:
    """Say what each run shows by slice and topic, and then what changed against the baseline."""
    said: list[str] = []
    for run in found.scores.run_names:
        said += _of_run(found, run)
    for x, y in by_run(found):
        if x.every:
            said += _of_change(found, x.system, x, y)
    return tuple(said)


def _of_run(found: Matrix, run: str) -> list[str]:
    several = len(found.scores.runs) > 1
    prefix = f"{run}, " if several else ""
    points = [point for point in found.points if point.run == run and not point.every]
    classed = [point for point in points if point.quadrant]
    told = [point for point in classed if point.quadrant != OPEN]
    said = [prefix + _of_point(found, point) for point in told]
    whole = next(point for point in found.points if point.run == run)
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
    if len(found.scores.runs) > _FEW:
        return said
    counts = ", ".join(f"{count} {name}" for name, count in found.counts(run).items())
    said.append(
        f"Of {topics_text(whole.topics)}{f' of {run}' if several else ''}, by the cuts alone: {counts}. This describes"
        " them: a single topic proves nothing."
    )
    return said


def _of_point(found: Matrix, point: Point) -> str:
    x = _of_axis(found, str(found.x), point.x, found.cuts[0])
    y = _of_axis(found, str(found.y), point.y, found.cuts[1])
    meaning = f" ({_MEANING[point.quadrant]})" if point.quadrant in _MEANING else ""
    if point.quadrant == RANKING and point.x.side == APART:  # of what is found, nothing is shown
        meaning = " (what is relevant is ranked badly; that less of it is found is not shown)"
    text = f"{point.slice}: {point.quadrant}{meaning}: {x}, {y}"
    if point.quadrant == COVERAGE and point.judged < 1:
        text += f"; {point.judged:.0%} of its first 10 are judged, so recall may be low for want of judgments"
    return f"{text}."


def _of_axis(found: Matrix, name: str, axis: Axis, cut: float) -> str:
    ci = "" if math.isnan(axis.low) else f" [{axis.low:.3f}, {axis.high:.3f}]"
    whose = "" if found.given_cuts else "the baseline's "
    where = (
        f"not told apart from {whose}{fixed(cut, 3)}" if axis.side == APART else f"{axis.side} {whose}{fixed(cut, 3)}"
    )
    return f"{name} {fixed(axis.value, 3)}{ci} {where}"


def _of_change(found: Matrix, run: str, x: Change, y: Change) -> list[str]:
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
        if not lost.count and len(found.scores.runs) > _FEW:
            continue
        which = [found.scores.query_ids[at] for at in lost.to_dict()["found"]]
        shown = f" ({', '.join(which[:_SHOWN])}{', ...' if len(which) > _SHOWN else ''})" if which else ""
        said.append(f"{run} by {axis}: {lost.sentence[0].lower()}{lost.sentence[1:].removesuffix('.')}{shown}.")
    return said


def _change(one: Change) -> str:
    ci = "" if one.found.interval is None else f" [{one.found.interval[0]:+.3f}, {one.found.interval[1]:+.3f}]"
    told = "" if one.significant else ", not told apart from 0"
    return f"{one.part} {fixed(one.found.difference, 4, '+')}{ci} (p {p_text(one.found.decisive_p)}{told})"


def caption(found: Matrix) -> str:
    """Say where the cuts come from, and how slices are classed."""
    choices = found.choices
    x, y = found.cuts
    whose = "cuts as given" if found.given_cuts else f"cuts: the means of {found.baseline} over all topics"
    parts = [f"{whose}, {found.x} {fixed(x, 4)} and {found.y} {fixed(y, 4)}, taken as they are"]
    slices = sum(point.quadrant != NONE for point in found.points if point.run == found.points[0].run)
    parts.append(f"[{choices.level:.0%} interval: Student's t]")
    if slices:
        many = "1 slice" if slices == 1 else f"{slices} slices"
        parts.append(
            f"those of slices have {choices.corrected(2 * slices):.2%} (Bonferroni: {many}, two axes) and the spread of"
            " the slice or of all topics, whichever is wider: - wholly below the cut, + wholly above it"
        )
    if any(point.small for point in found.points):
        parts.append(f"{SMALL}: too few topics to be classed")
    return "; ".join(parts)


def changes_caption(found: Matrix) -> str:
    """Say how changes were tested."""
    choices = found.choices
    return (
        f"each run minus {found.baseline}; paired randomisation test, {choices.resamples} resamples, seed"
        f" {choices.seed}; p by Holm: over runs and axes for all topics, over runs, slices and axes below;"
        f" intervals are not corrected; * p up to {1 - choices.level:.2g}"
    )


def text(found: Matrix, width: int | None, *, topics: bool) -> str:
    """Write tables, rules and sentences."""
    blocks = [points_table(found).text(width=width), wrapped(caption(found), width)]
    if found.changes:
        blocks += [changes_table(found).text(width=width), wrapped(changes_caption(found), width)]
    if topics:
        blocks.append(topics_table(found, None).text(width=width))
    return "\n\n".join([*blocks, "\n".join(wrapped(one, width) for one in sentences(found))])


def markdown(found: Matrix, *, topics: bool) -> str:
    """Write the same in Markdown."""
    blocks = [points_table(found).markdown(), caption(found) + "."]
    if found.changes:
        blocks += [changes_table(found).markdown(), changes_caption(found) + "."]
    if topics:
        blocks.append(topics_table(found, None).markdown())
    return "\n\n".join([*blocks, "\n".join(f"- {one}" for one in sentences(found))])
