"""The first section: what was evaluated, which run is best, what could be seen, and where it fails."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.answer import Section, Sentences
from judged.decimals import counted, decimal
from judged.reporting.material import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison import MeasureComparison, Pair
    from judged.evaluation import Estimate
    from judged.reporting.material import Material

_LEAST = 2  # topics that a test needs


def summary(material: Material, where: Sequence[str]) -> Section:
    """Write the answer in sentences."""
    said = [_evaluated(material), _best(material), _told_apart(material), _detectable(material), _largest(material)]
    return Section("summary", "In short", (Sentences(tuple(text for text in (*said, *where) if text)),))


def _evaluated(material: Material) -> str:
    scores = material.scores
    names = listed(scores.measure_names, 6)
    return (
        f"{counted(len(scores.runs), 'run was', 'runs were')} evaluated on {counted(len(scores.query_ids), 'topic')}"
        f" with {counted(scores.qrels.judgments, 'judgment')} ({scores.qrels.name}), by {names}."
    )


def _best(material: Material) -> str:
    best = material.order[0]
    one = material.estimates[best]
    if math.isnan(one.value) or material.lead.properties.higher_is_better is None:
        return ""
    if len(material.order) == 1:
        return f"{one.run} has {_value(one)}."
    others = material.ranked[1:]
    if all(material.alike(one.run, name) for name in others):
        return f"{listed(material.ranked)} have the same {one.measure} on every topic: {_value(one, named=False)}."
    equal = [material.scores.run_names[at] for at in material.order[1:] if material.estimates[at].value == one.value]
    also = f", as {listed(equal)} {'has' if len(equal) == 1 else 'have'}" if equal else ""
    return f"{one.run} has the best {one.measure}, {_value(one, named=False)}{also}."


def _value(one: Estimate, *, named: bool = True) -> str:
    shown = f"{one.value:.0f}" if one.aggregate in {"sum", "count"} else decimal(one.value)
    interval = "" if one.ci is None else f" (95% interval {decimal(one.ci[0], 3)} to {decimal(one.ci[1], 3)})"
    return f"{one.measure} {shown}{interval}" if named else f"{shown}{interval}"


def _told_apart(material: Material) -> str:
    """Say which runs the best one is told apart from, or how all stand against the baseline."""
    found = material.tested
    if material.comparison is None:
        return ""
    if found is None:
        reason = material.comparison.measures[0].untested
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""
    if all(pair.found.n < _LEAST for pair in found.pairs):
        return "With fewer than two topics to compare on, nothing was tested: what holds on others is not known."
    baseline = material.comparison.choices.baseline
    return _all_pairs(material, found) if baseline is None else _against(material, found, baseline)


def _all_pairs(material: Material, found: MeasureComparison) -> str:
    """Say which runs the best one is better than, and of which no difference is shown, or none is there."""
    best, others = material.ranked[0], material.ranked[1:]
    beaten = found.better_than.get(best, set())
    same = [name for name in others if material.alike(best, name)]
    rest = [name for name in others if name not in beaten and name not in same]
    if len(same) == len(others):
        return ""
    equal = f" It scores the same as {listed(same)} on every topic." if same else ""
    if not rest:
        everyone = _all(len(beaten), "other run") if not same else counted(len(beaten), "run")
        return f"It is significantly better than {everyone}.{equal}"
    if not beaten:
        named = _named_or_all(rest, len(others))
        return f"It is not told apart from {named}: the differences may be luck.{equal}"
    some = counted(len(beaten), "run")
    return f"It is significantly better than {some}, and not told apart from {listed(rest)}.{equal}"


def _all(count: int, what: str) -> str:
    return f"the {what}" if count == 1 else f"all {count} {what}s"


def _named_or_all(names: Sequence[str], others: int) -> str:
    return listed(names) if len(names) <= 5 or len(names) < others else f"any of the {others} others"


def _against(material: Material, found: MeasureComparison, baseline: str) -> str:
    """Say how the runs stand against the baseline: better, worse, not told apart, or the same."""
    others = [name for name in material.ranked if name != baseline]
    better = [name for name in others if baseline in found.better_than.get(name, set())]
    worse = [name for name in others if name in found.better_than.get(baseline, set())]
    alike = [name for name in others if material.alike(baseline, name)]
    if len(alike) == len(others):
        return ""
    equal = f" {listed(alike)} {_scores(alike)} the same as the baseline on every topic." if alike else ""
    same = len(others) - len(better) - len(worse) - len(alike)
    parts = [
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} significantly {word}"
        for names, word in ((better, "better"), (worse, "worse"))
        if names
    ]
    if not parts:
        one = "the other run is" if not alike else "one other run is"
        word = one if same == 1 else f"none of the {same} other runs is"
        negation = "not " if same == 1 else ""
        return f"Against the baseline {baseline}, {word} {negation}told apart: the differences may be luck.{equal}"
    rest = f"; {same} {'is' if same == 1 else 'are'} not told apart from it" if same else ""
    return f"Against the baseline {baseline}, {', and '.join(parts)}{rest}.{equal}"


def _scores(names: Sequence[str]) -> str:
    return "scores" if len(names) == 1 else "score"


def _detectable(material: Material) -> str:
    """Say what these topics can show at all."""
    pair, found = material.pair, material.tested
    if pair is None or found is None or math.isnan(pair.detectable):
        return ""
    of = f", with {found.family} comparisons allowed for" if found.family > 1 else ""
    return (
        f"What {counted(pair.found.n, 'topic')} can show: a true difference in {pair.measure} of"
        f" {decimal(pair.detectable, 3)} between {_two(pair)} would be found four times out of five{of};"
        " a smaller one would often be missed."
    )


def _two(pair: Pair) -> str:
    return f"{pair.second} and {pair.first}"


def _largest(material: Material) -> str:
    """Name the topics on which the candidate loses most, or scores nothing."""
    gains, own = material.gains(), material.of(material.candidate)
    parts: list[str] = []
    if material.reference is not None and (gains < 0).any():
        places = [at for at in np.argsort(gains, kind="stable").tolist() if gains[at] < 0]
        named = [f"{material.scores.query_ids[at]} ({decimal(float(gains[at]), 3, '+')})" for at in places[:3]]
        known = int(np.isfinite(gains).sum())
        won = int((gains > 0).sum())
        parts.append(
            f"Against {material.reference}, {material.candidate} is better on {won:,}, worse on {len(places):,} and"
            f" equal on {known - won - len(places):,} of {counted(known, 'topic')}; it loses most on {listed(named)}"
        )
    if material.better > 0 and (own == 0).any():
        zeros = [material.scores.query_ids[at] for at in np.flatnonzero(own == 0).tolist()]
        on = f"{counted(len(zeros), 'topic')} ({listed(zeros, 3)})"
        who = "it" if parts else material.candidate
        parts.append(f"{who} scores 0 in {material.lead} on {on}")
    return f"{'; '.join(parts)}." if parts else ""
