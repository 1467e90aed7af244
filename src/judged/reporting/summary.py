"""The first sentences: what was evaluated, which run is best, and what could be seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.decimals import counted, decimal
from judged.reporting.material import listed

if TYPE_CHECKING:
    from judged.evaluation import Estimate
    from judged.reporting.material import Material

_LEAST = 2  # topics that a test needs


def summary(material: Material) -> tuple[str, ...]:
    """Write the answer in sentences; those about which nothing can be said are empty."""
    return _evaluated(material), _best(material), _told_apart(material), _detectable(material)


def _evaluated(material: Material) -> str:
    scores = material.scores
    runs, topics = counted(len(scores.runs), "run was", "runs were"), counted(len(scores.query_ids), "topic")
    judgments, names = counted(scores.qrels.judgments, "judgment"), listed(scores.measure_names, 6)
    return f"{runs} evaluated on {topics} with {judgments} ({scores.qrels.name}), by {names}."


def _best(material: Material) -> str:
    known = {one.run: one for one in material.estimates}
    best, *others = (known[name] for name in material.ranked)
    if math.isnan(best.value) or material.lead.properties.higher_is_better is None:
        return ""
    if not others:
        return f"{best.run} has {best.measure} {_value(best)}."
    if all(material.alike(best.run, other.run) for other in others):
        return f"{listed(material.ranked)} have the same {best.measure} on every topic: {_value(best)}."
    equal = [other.run for other in others if other.value == best.value]
    also = f", as {listed(equal)} {'has' if len(equal) == 1 else 'have'}" if equal else ""
    return f"{best.run} has the best {best.measure}, {_value(best)}{also}."


def _value(one: Estimate) -> str:
    shown = f"{one.value:.0f}" if one.aggregate in {"sum", "count"} else decimal(one.value)
    return shown if one.ci is None else f"{shown} (95% interval {decimal(one.ci[0], 3)} to {decimal(one.ci[1], 3)})"


def _told_apart(material: Material) -> str:
    """Say which runs the baseline, or the best run, is told apart from."""
    tested = material.tested
    if material.comparison is None:
        return ""
    if tested is None:
        reason = material.comparison.measures[0].untested
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""
    if all(pair.found.n < _LEAST for pair in tested.pairs):
        return "With fewer than two topics to compare on, nothing was tested: what holds on others is not known."
    against = material.baseline or material.ranked[0]
    others = [name for name in material.ranked if name != against]
    better = [name for name in others if against in tested.better_than.get(name, ())]
    worse = [name for name in others if name in tested.better_than.get(against, ())]
    same = [name for name in others if material.alike(against, name)]
    if len(same) == len(others):
        return ""
    groups = {
        "significantly better": better,
        "significantly worse": worse,
        "the same on every topic": same,
        "not told apart, as the differences may be luck": [
            name for name in others if name not in {*better, *worse, *same}
        ],
    }
    parts = [f"{what}: {listed(names)}" for what, names in groups.items() if names]
    return f"Against {'the baseline ' if material.baseline else ''}{against}, {'; '.join(parts)}."


def _detectable(material: Material) -> str:
    """Say what these topics can show at all."""
    tested = material.tested
    pair = tested and material.pair(tested)
    if not tested or not pair or math.isnan(pair.detectable):
        return ""
    of = f", with {tested.family} comparisons allowed for" if tested.family > 1 else ""
    return (
        f"What {counted(pair.found.n, 'topic')} can show: a true difference in {pair.measure} of"
        f" {decimal(pair.detectable, 3)} between {pair.second} and {pair.first} would be found four times out of"
        f" five{of}; a smaller one would often be missed."
    )
