"""A diagnosis by stages in words: what may be concluded from it, and what not."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from judged.decimals import decimal, percent
from judged.diagnosis.stages.layout import SMALL
from judged.diagnosis.stages.parts import NOTHING, SCORE, verdict_names
from judged.stats.pairing import topics_text
from judged.stats.results import p_text
from judged.stats.skewness import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.changes import Change
    from judged.diagnosis.stages.parts import Mean, Parts
    from judged.diagnosis.stages.split import SplitLoss
    from judged.stats.discoveries import Discoveries

_SHOWN = 8  # topics that are named
_FOREIGN = 0.1  # of the final ranking's documents: with more, it was not made of the candidates
_SLICES = 6  # slices that get a sentence


def sentences(found: SplitLoss) -> tuple[str, ...]:
    """Say what each system lost where, and then what changed between the two."""
    said = [] if found.against is None else _of_change(found)
    return (*said, *_of_system(found, found.trace.name, found.parts[0]))


def _of_system(found: SplitLoss, name: str, whole: Parts) -> list[str]:
    measure, depth = found.measure, found.choices.depth
    if not whole.topics:
        return [f"{measure} leaves out every topic: there is nothing to say of {name}."]
    if whole.verdicts.get(NOTHING) == sum(whole.verdicts.values()):
        return ["No topic has a relevant document: nothing can be lost."]
    candidates, ranking = whole.losses[0], whole.losses[-1]
    foreign = found.trace.foreign_share
    said: list[str] = []
    if foreign >= _FOREIGN:
        said.append(
            f"{name} is no ranking of these candidates: {percent(foreign)} of its documents are not among the"
            f" first {depth} of {found.trace.candidates}. What is said of candidates and of ranking"
            " is no split of its loss."
        )
    said += [
        (
            f"{name} scores {decimal(whole.score.value)} in {measure}, where {decimal(whole.best.value)} could be"
            f" attained: {_mean(candidates)} is lost because relevant documents are not among its first {depth}"
            f" candidates, {_mean(ranking)} because the candidates are not in their best order."
        )
    ]
    if ranking.value > 0 and foreign < _FOREIGN:
        reached = decimal(whole.score.value + ranking.value)
        said.append(
            f"The best order of these candidates would score {reached}: no reranker of the first {depth} of"
            f" {found.trace.candidates} can gain more than {decimal(ranking.value)}."
        )
    counts = [f"{verdict} {count}" for verdict, count in whole.verdicts.items() if count]
    said.append(
        f"Topics of {name}: {', '.join(counts)} (a part counts from"
        f" {found.choices.least:.0%} of the topic's best score and {found.choices.share:.0%} of its loss on)."
    )
    return said


def topic_sentences(found: SplitLoss, query_id: str) -> list[str]:
    """Say of one topic what each system scored, and what it lost by which part."""
    at = found.query_ids.index(query_id)
    said: list[str] = []
    for name, trace, _ in found.systems:
        verdict = verdict_names(trace, found.choices)[at]
        parts = " and ".join(
            f"{decimal(float(part[at]))} by {what}" for what, part in zip(found.names, trace.parts, strict=True)
        )
        said.append(
            f"{name}: {verdict}: {found.measure} {decimal(float(trace.score[at]))} of"
            f" {decimal(float(trace.best[at]))}, lost {parts}; relevant documents among the first"
            f" {found.choices.depth}: {trace.found[at]} of {trace.relevant[at]}."
        )
    return said


def _mean(one: Mean) -> str:
    ci = "" if math.isnan(one.low) else f" [{decimal(one.low, 3)}, {decimal(one.high, 3)}]"
    return f"{decimal(one.value)}{ci}"


def _of_change(found: SplitLoss) -> list[str]:
    names = [name for name, _, _ in found.systems]
    whole = [one for one in found.changes if one.every]
    said = [_whole_change(whole, names, found)]
    told = any(one.significant for one in whole[1:])
    if told and whole[1].found.difference * whole[-1].found.difference < 0:
        said.append(
            "The parts move against each other: where less is found, less is left to be ranked badly, so such a gain"
            " by ranking need not be a better ranker (nor such a loss a worse one)."
        )
    tested = [one for one in found.changes if not one.every and not math.isnan(one.found.p)]
    parts = [one for one in tested if one.part != SCORE]
    seen = [one for one in parts if one.significant]
    said += [
        f"{one.slice}: {_word(one)} by {one.part}, {_change(one)} over {one.found.n} topics ({_p(one)})."
        for one in sorted(seen, key=lambda one: one.found.difference)[:_SLICES]
    ]
    if len(seen) > _SLICES:
        said.append(f"{len(seen) - _SLICES} more such changes stand in the table.")
    if tested and not seen:
        said.append(f"In no slice did a part change by more than luck might (Holm over {len(parts)} tests).")
    elif seen:
        said[-1] += f" Holm over {len(parts)} tests; nothing is claimed of other slices."
    small = {one.slice for one in found.changes if one.small}
    if small:
        said.append(f"Too few topics to be tested: {', '.join(sorted(small))}.")
    return said + _of_topics(found)


def _of_topics(found: SplitLoss) -> list[str]:
    """Say which topics lost, by which part; and which lost in one part, whatever the other made of it."""
    lost = found.lost[SCORE]
    counts = Counter(kind for kind in found.lost_kinds if kind)
    kinds = ", ".join(f"{count} by {kind}" for kind, count in counts.most_common())
    said = (
        [f"{lost.sentence} {_named(found, lost)}" + (f"; {kinds}." if kinds else "")] if lost.count else [lost.sentence]
    )
    for name in found.names:
        part = found.lost[name]
        if part.count:
            text = part.sentence[0].lower() + part.sentence[1:]
            said.append(f"By {name} alone, whatever the other parts did: {text} {_named(found, part)}.")
    if quiet := [name for name in found.names if not found.lost[name].count]:
        said.append(f"No single topic can be said to have lost by {' or by '.join(quiet)}.")
    return said


def _named(found: SplitLoss, lost: Discoveries) -> str:
    which = [found.query_ids[at] for at in np.flatnonzero(lost.mask).tolist()]
    return "These are " + ", ".join(which[:_SHOWN]) + (", ..." if len(which) > _SHOWN else "")


def _whole_change(whole: Sequence[Change], names: Sequence[str], found: SplitLoss) -> str:
    score, *parts = whole
    if score.found.n < 2:
        return "There are too few topics to test what changed."
    if not any(one.found.difference for one in whole):
        return f"{names[0]} and {names[1]} score the same in {found.measure}, and lose it in the same parts."
    size = decimal(abs(score.found.difference))
    way = "lower" if score.found.difference < 0 else "higher"
    head = f"{names[0]} scores {size} {way} than {names[1]} in {found.measure} ({_p(score)})"
    told = [
        f"{_change(one)} by {one.part} ({_p(one)}{'' if one.significant else ': not told apart from 0'})"
        for one in parts
    ]
    return f"{head}: {' and '.join(told)}."


def _change(one: Change) -> str:
    ci = one.found.interval
    return decimal(one.found.difference, 4, "+") + (
        "" if ci is None else f" [{decimal(ci[0], 3, '+')}, {decimal(ci[1], 3, '+')}]"
    )


def _word(one: Change) -> str:
    return "lost" if one.found.difference < 0 else "gained"


def _p(one: Change) -> str:
    return f"p {p_text(one.found.decisive_p, 1 - one.found.level)}"


def caption(found: SplitLoss) -> str:
    """Say by which rules the numbers were made."""
    choices = found.choices
    parts = [
        f"over {topics_text(len(found.query_ids))}",
        f"candidates: first {choices.depth}",
        f"[{choices.interval.words}]",
    ]
    if any(one.small for one in found.parts):
        parts.append(f"{SMALL}: too few topics to be judged by")
    return "; ".join(parts)


def changes_caption(found: SplitLoss) -> str:
    """Say how changes were tested."""
    first, second = (name for name, _, _ in found.systems)
    choices = found.choices
    return (
        f"{first} minus {second}, parts add up to the change of {found.measure}; paired randomisation test,"
        f" {choices.resamples} resamples, seed {choices.seed}{SECOND if found.slicing else ''}; p by Holm: over the"
        " parts for all topics, over slices and parts below; intervals are as wide as the correction asks; * p up to"
        f" {choices.alpha:g}"
    )
