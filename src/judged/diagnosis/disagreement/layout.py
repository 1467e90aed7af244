"""A disagreement in plain words, as text and as tables."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.diagnosis.disagreement.sides import SIGNS
from judged.stats.pairing import topics_text
from judged.tables import Table, markdown_prose, markdown_text

if TYPE_CHECKING:
    from judged.diagnosis.disagreement.sides import MeanSide, SliceDisagreement, TopicDisagreement, TwoSides

_PROSE = 100
_QUERY = 40


def sentences(found: TwoSides) -> tuple[str, ...]:
    """Say what the measures disagree on, what it rests on, and how often topics do."""
    one, two = found.means
    made = [_all_systems(found)] if found.orders is not None else []
    if found.chosen:
        made.append(
            f"{found.systems[0]} and {found.systems[1]} are the two systems that {one.measure} and {two.measure} pull"
            " apart most; they were picked for that, so that no test of their difference holds."
        )
    made.append(f"Over {topics_text(one.n)} {_mean(found, one)}; {_mean(found, two)}. {_verdict(found)}")
    made.append(_topics(found))
    if found.causes and not found.with_reasons:
        made.append("These are scores alone: give qrels and runs to see what the measures see on a topic.")
    return tuple(made)


def _all_systems(found: TwoSides) -> str:
    agreed = found.orders
    if agreed is None:
        return ""
    pairs = agreed.tau.concordant + agreed.tau.discordant + agreed.tau.tied
    return (
        f"{agreed.first} and {agreed.second} order {agreed.tau.n} systems with tau {_number(agreed.tau.value, 3)} and"
        f" tau_AP {_number(agreed.tau_ap.value, 3)}: {agreed.tau.discordant} of {pairs} pairs change places."
    )


def _mean(found: TwoSides, one: MeanSide) -> str:
    first, second = found.systems
    many = f" ({abs(one.in_errors):.1f} standard errors)" if not math.isnan(one.in_errors) else ""
    if one.side == 0:
        return f"{one.measure} prefers neither {first} nor {second}"
    winner, loser = (second, first) if one.side > 0 else (first, second)
    return f"{one.measure} prefers {winner} to {loser} by {decimal(abs(one.difference))}{many}"


def _verdict(found: TwoSides) -> str:
    if found.opposite:
        count = found.rests_on or 0
        which = "it" if count == 1 else "those that pull most"  # fewer, chosen otherwise, may do as well
        rests = (
            f"It rests on {topics_text(count)}{'' if count == 1 else ' or fewer'}: without {which} the means no longer"
            " disagree."
        )
        return f"The means disagree. {rests}{_luck(found)}"
    if found.identical:
        return "They have the same scores on every topic: there is nothing to disagree on."
    if not any(one.side for one in found.means):
        return "The means do not disagree: neither sees a difference."
    if 0 in {one.side for one in found.means}:
        return "The means do not disagree: one sees no difference."
    return "The means agree on the better system."


def _luck(found: TwoSides) -> str:
    """Say which differences are no more than the luck of the topics might make: measures part only if both are real."""
    weak = [one for one in found.means if math.isnan(one.error) or abs(one.difference) < 2 * one.error]
    if not weak:
        return ""
    if len(weak) == 2:
        return " Neither difference is twice its standard error: both may be luck of the topics."
    return f" The difference in {weak[0].measure} is not twice its standard error: it may be luck of the topics."


def _topics(found: TwoSides) -> str:
    table = found.agreement
    same, opposite = table[0][0] + table[2][2], table[0][2] + table[2][0]
    neither, n = table[1][1], len(found.topics)
    only = n - same - opposite - neither
    return (
        f"Of {topics_text(n)} the measures prefer the same system on {same}, different ones on {opposite}; on {only}"
        f" only one of them sees a difference, on {neither} neither does."
    )


def agreement_table(found: TwoSides) -> Table:
    """Lay out how many topics are up, same or down by both measures: up is where the second system is better."""
    one, two = found.measures
    rows = tuple(
        (f"{one} {sign}", *map(str, counts), str(sum(counts)))
        for sign, counts in zip(SIGNS, found.agreement, strict=True)
    )
    total = tuple(str(sum(column)) for column in zip(*found.agreement, strict=True))
    header = ("topics", *(f"{two} {sign}" for sign in SIGNS), "all")
    return Table(header, (*rows, ("all", *total, str(len(found.topics)))))


def causes_table(found: TwoSides) -> Table:
    """Lay out the topics that pull the means apart most: differences by both measures, and the pull."""
    queries = any(one.query for one in found.causes)
    header = ("query_id", *(("query",) if queries else ()), *found.measures, "pull")
    rows = tuple(
        (
            one.query_id,
            *((_short(one.query),) if queries else ()),
            *(decimal(gap, 4, "+") for gap in one.differences),
            decimal(one.pull, 3),
        )
        for one in found.causes
    )
    return Table(header, rows, labels=2 if queries else 1)


def slice_table(found: TwoSides) -> Table:
    """Lay out a row a slice: differences by both measures, and on how many topics they part."""
    rows = tuple(
        (one.name, str(one.n), *_slice_cells(found, one), str(one.same), str(one.opposite)) for one in found.slices
    )
    header = ("slice", "topics", *found.measures, "preferred", "same side", "opposite")
    return Table(header, rows)


def _slice_cells(found: TwoSides, one: SliceDisagreement) -> tuple[str, str, str]:
    if one.means is None:
        return "-", "-", "-"
    gaps = [decimal(side.difference, 4, "+") for side in one.means]
    if one.small:
        return gaps[0], gaps[1], "too few topics"
    named = {1: found.systems[1], -1: found.systems[0], 0: "neither"}
    first, second = (named[side.side] for side in one.means)
    return gaps[0], gaps[1], first if first == second else f"{first} / {second}"


def long_table(found: TwoSides) -> Table:
    """Lay out every topic in full precision."""
    first, second = found.systems
    header = ["query_id"]
    for name in found.measures:
        header += [f"{name} {first}", f"{name} {second}"]
    rows = tuple(
        (one.query_id, *(repr(value) for pair in one.scores for value in pair), repr(one.pull),
         "; ".join(reason.text for reason in one.reasons))
        for one in found.topics
    )  # fmt: skip
    return Table((*header, "pull", "reasons"), rows)


def text(found: TwoSides, *, width: int | None) -> str:
    """Write what was found, the table of signs, and the topics that cause it with their reasons."""
    blocks = ["\n".join(_wrapped(one, width) for one in sentences(found))]
    blocks.append(f"{_wrapped(_signs(found), width)}\n{agreement_table(found).text(width=width)}")
    if found.slices:
        blocks.append(slice_table(found).text(width=width))
    if found.causes:
        blocks.append(f"{_wrapped(_heading(found), width)}\n{causes_table(found).text(width=width)}")
        if found.with_reasons:
            blocks += ["\n".join(_wrapped(line, width) for line in _why(found, one)) for one in found.causes]
    return "\n\n".join(blocks)


def _signs(found: TwoSides) -> str:
    return f"Topics on which {found.systems[1]} is better than {found.systems[0]} (up), the same, or worse (down):"


def _heading(found: TwoSides) -> str:
    return (
        f"Topics that pull the means apart most ({found.systems[1]} minus {found.systems[0]}; pull in standard errors"
        " of the means):"
    )


def _why(found: TwoSides, one: TopicDisagreement) -> list[str]:
    head = f"{one.query_id}: {one.query}" if one.query else one.query_id
    lines = [f"- {reason.text}." for reason in one.reasons]
    if one.sides[0] == one.sides[1]:
        winner = found.systems[one.sides[0] > 0]
        more = found.measures[found.direction * one.sides[0] < 0]
        lines.insert(0, f"- Both prefer {winner}, {more} by more standard errors.")
    return [head, *(lines or ["- None of the kinds of reasons that are looked for applies."])]


def markdown(found: TwoSides) -> str:
    """Write the same as Markdown."""
    one, two = found.measures
    blocks = ["## " + markdown_text(f"{one} and {two} on {found.systems[0]} and {found.systems[1]}")]
    blocks += map(markdown_prose, sentences(found))
    blocks += [markdown_prose(_signs(found)), agreement_table(found).markdown()]
    if found.slices:
        blocks.append(slice_table(found).markdown())
    if found.causes:
        blocks += [markdown_prose(_heading(found)), causes_table(found).markdown()]
        whys = [_why(found, one) for one in found.causes] if found.with_reasons else []
        blocks += [
            "\n".join((f"**{markdown_text(head)}**", "", *(f"- {markdown_prose(line[2:])}" for line in lines)))
            for head, *lines in whys
        ]
    return "\n\n".join(blocks)


def _wrapped(sentence: str, width: int | None) -> str:
    hang = "  " if sentence.startswith("- ") else ""
    room = min(width or _PROSE, _PROSE)
    return textwrap.fill(sentence, room, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


def _number(value: float, digits: int) -> str:
    return decimal(value, digits)


def _short(query: str) -> str:
    return query if len(query) <= _QUERY else query[: _QUERY - 1] + "…"
