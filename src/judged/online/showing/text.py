"""Metrics of a log as text, Markdown and CSV."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from judged.online.showing import trouble, words
from judged.online.showing.layout import (
    csv_table,
    findings_table,
    metrics_table,
    ranks_table,
    refused_table,
    slices_table,
)
from judged.online.showing.numbers import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.online.estimates import ScoresTable
    from judged.tables import Table

_WIDTH = 100
_REASONS = 6  # lines of why numbers are missing


def text(scores: ScoresTable, *, width: int | None = None, colour: bool = False) -> str:
    """Write for a terminal: what the log is, metrics by family, CTR by rank beside clicks, what is missing and why.

    Parameters
    ----------
    scores
        The result.
    width
        Of the terminal; tables that are wider come in blocks. None: as wide as they are.
    colour
        Whether headings are set in bold by escape codes.
    """
    wide = min(width or _WIDTH, _WIDTH)
    blocks = [
        lines([words.about(scores), *words.rules(scores)], wide),
        _table(scores).text(width=width, colour=colour),
    ]
    if words.is_biased(scores):
        blocks.append(lines([words.bias(scores)], wide))
        if scores.ranks:
            blocks.append(ranks_table(scores, bars=True).text(width=width, colour=colour))
    blocks.append(lines(below(scores), wide))
    return "\n\n".join(block for block in blocks if block)


def markdown(scores: ScoresTable) -> str:
    """Write as Markdown."""
    blocks = [words.about(scores), _listed(words.rules(scores)), _table(scores).markdown()]
    if words.is_biased(scores):
        blocks.append(words.bias(scores).replace("*", r"\*"))
        if scores.ranks:
            blocks.append(ranks_table(scores).markdown())
    if scores.refused:
        blocks.append(refused_table(scores).markdown())
    blocks.append(_listed([*_missing(scores), _made(scores)]))
    if scores.findings:
        blocks.append(findings_table(scores.findings).markdown())
        blocks.append(_listed(map(trouble.finding, scores.findings)))
    return "\n\n".join(block for block in blocks if block)


def ranks_text(scores: ScoresTable, *, width: int | None = None, colour: bool = False) -> str:
    """Write CTR by rank alone for a terminal."""
    wide = min(width or _WIDTH, _WIDTH)
    blocks = [
        lines([words.about(scores), *words.rules(scores)], wide),
        ranks_table(scores, bars=True).text(width=width, colour=colour),
        lines([words.steepness(scores.ranks), words.WHAT_FALLS], wide),
        lines(below(scores), wide),
    ]
    return "\n\n".join(block for block in blocks if block)


def ranks_markdown(scores: ScoresTable) -> str:
    """Write CTR by rank alone as Markdown."""
    said = (words.steepness(scores.ranks), words.WHAT_FALLS, *below(scores))
    blocks = [words.about(scores), ranks_table(scores).markdown(), _listed(one for one in said if one)]
    return "\n\n".join(blocks)


def ranks_csv(scores: ScoresTable) -> str:
    """Write CTR by rank alone, one rank a row in full precision."""
    return csv_table(scores, ranks=True).csv()


def csv(scores: ScoresTable) -> str:
    """Write one estimate a row in full precision; a number that does not exist is left empty."""
    return csv_table(scores).csv()


def notes(scores: ScoresTable) -> tuple[str, ...]:
    """Give what a table alone does not say: for standard error, where the result is CSV or a picture."""
    biased = (words.BIAS.replace(" marked *", ""),) if words.is_biased(scores) else ()
    return biased + words.refusals(scores)


def _table(scores: ScoresTable) -> Table:
    return metrics_table(scores) if scores.by is None else slices_table(scores)


def _missing(scores: ScoresTable) -> list[str]:
    return words.first(words.reasons(scores), _REASONS)


def _made(scores: ScoresTable) -> str:
    return "; ".join([words.intervals(scores), *words.policies(scores)])


def below(scores: ScoresTable) -> list[str]:
    """Say what stands below every table: missing numbers with their reasons, intervals, and what was chosen."""
    sums = "the two sums behind each number are in CSV and JSON"
    by = [f"by {shown(scores.by)}; {sums}"] if scores.by is not None else []
    return [*_missing(scores), *words.refusals(scores), *by, _made(scores)]


def lines(texts: Iterable[str], width: int) -> str:
    """Wrap texts, each on lines of its own."""
    wrap = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    wrapped = (wrap.fill(one) for one in texts if one)
    return "\n".join(wrapped)


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {one}" for one in texts)
