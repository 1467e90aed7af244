"""Slices by the text of the query. Words, kinds and traffic mean what they mean for topics (`judged.slicing`).

What a text tells by itself is found once for each different one, in Python; counts are made where the log lives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.errors import InputError
from judged.online.engine import ibis_library, kept
from judged.online.slicing.cut import Cut
from judged.slicing.bands import FREQUENCY, LENGTH, Bands, frequency_bands
from judged.slicing.queries import kind_of, script_of, word_count

if TYPE_CHECKING:
    import ibis.expr.types as ir

WORDS = Bands((2, 3, 5), ("1", "2", "3-4", "5+"))
"""Words of a query: finer where queries of logs are, which are shorter than topics."""

TRAFFIC = (50.0, 90.0)
"""Per cent of pages at which head and torso end."""

_TEXTS_AT_ONCE = 100_000
_SHAPES = 100_000  # that are remembered
_LETTERS, _DIGITS = re.compile("[A-Za-z]+"), re.compile("[0-9]+")


def by_words(serp: ir.Table) -> Cut:
    """Cut by the number of words, as `WORDS`; not known where a script writes no blanks, or there is no word."""
    return _by_count(serp, WORDS)


def by_length(serp: ir.Table) -> Cut:
    """Cut by the number of words, as ``length`` of topics is: 1, 2-3, 4-6, 7+."""
    return _by_count(serp, LENGTH)


def by_class(serp: ir.Table) -> Cut:
    """Cut by the kind of query, as ``kind`` of topics is: address, quoted, question, identifier, keywords."""
    return Cut(_by_text(serp, kind_of))


def by_script(serp: ir.Table) -> Cut:
    """Cut by the script of most letters, as ``script`` of topics is."""
    remembered = lru_cache(_SHAPES)(script_of)
    return Cut(_by_text(serp, lambda text: remembered(_shape(text))))


def _by_count(serp: ir.Table, bands: Bands) -> Cut:
    remembered = lru_cache(_SHAPES)(word_count)
    return Cut(_by_text(serp, lambda text: bands.of(remembered(_shape(text)) or None)), bands.names)


def _shape(text: str) -> str:
    """Write all words of ASCII alike: how many there are, and in which script, stays the same and is told once."""
    return _DIGITS.sub("1", _LETTERS.sub("a", text)) if text.isascii() else text


def _by_text(serp: ir.Table, told: Callable[[str], str | None]) -> ir.Table:
    """Give pages the slice of their text."""
    texts = serp.filter(serp.query_norm.notnull()).select("query_norm").distinct()
    pieces = [pa.table({"query_norm": pa.array([], pa.string()), "slice": pa.array([], pa.string())})]
    for batch in texts.to_pyarrow_batches(chunk_size=_TEXTS_AT_ONCE):
        named = [told(text) for text in batch["query_norm"].to_pylist()]
        columns = {"query_norm": batch["query_norm"].cast(pa.string()), "slice": pa.array(named, pa.string())}
        pieces.append(pa.table(columns))
    known = ibis_library().memtable(pa.concat_tables(pieces))
    return serp.select("serp", "query_norm").left_join(known, "query_norm").select("serp", "slice")


def by_traffic(serp: ir.Table, cuts: tuple[float, float] = TRAFFIC) -> Cut:
    """Cut into head, torso and tail: how many pages of this log have the same text.

    Shares are of pages that have a text; the rule, and that equal counts stay together, are those of
    `judged.slicing.bands.frequency_bands`. Bands rise with counts, so that two counts tell all.

    Parameters
    ----------
    serp
        Pages.
    cuts
        Per cent of pages, between 0 and 100.
    """
    ibis: Any = ibis_library()
    known = serp.filter(serp.query_norm.notnull())
    counts = kept(known.group_by("query_norm").aggregate(pages=known.count()))
    levels = counts.group_by("pages").aggregate(texts=counts.count()).to_pyarrow()
    if not levels.num_rows:
        return Cut(serp.select("serp", slice=ibis.null("string")), FREQUENCY)
    repeated = np.repeat(levels["pages"].to_numpy(), levels["texts"].to_numpy()).tolist()
    bands = frequency_bands(repeated, (cuts[0] / 100, cuts[1] / 100))
    least = {band: pages for pages, band in sorted(set(zip(repeated, bands, strict=True)), reverse=True)}
    named = counts.select(
        "query_norm",
        slice=ibis.cases(
            (counts.pages >= least["head"], "head"),
            (counts.pages >= least.get("torso", least["head"]), "torso"),
            else_="tail",
        ),
    )
    joined = serp.select("serp", "query_norm").left_join(named, "query_norm")
    return Cut(joined.select("serp", "slice"), FREQUENCY)


def traffic_cuts(text: str) -> tuple[float, float]:
    """Read where to cut traffic, such as ``50,90``.

    Raises
    ------
    InputError
        If it is no two percentages that rise.
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not 0 < low < high < 100:
        fix = "give two percentages that rise, such as traffic:50,90"
        raise InputError(f"{text!r} is not where traffic can be cut", fix=fix)
    return low, high


def by_novelty(serp: ir.Table) -> Cut:
    """Cut into pages whose text somebody had asked for before in this log (``seen``), and others (``new``).

    Somebody is another session: to turn a page, or to come back to it, makes nothing seen. What was asked before the
    log begins is not known, so that its first days look newer than they are.
    """
    known = serp.filter(serp.query_norm.notnull())
    asked = kept(known.group_by("query_norm", "session").aggregate(start=known.time_ms.min()))
    first = asked.group_by("query_norm").aggregate(first_ms=asked.start.min())
    joined = asked.inner_join(first, "query_norm")
    starters = joined.filter(joined.start == joined.first_ms)
    opened = kept(
        starters.group_by("query_norm").aggregate(opener=starters.session.min(), first_ms=starters.first_ms.min())
    )
    others = asked.inner_join(opened, "query_norm")
    others = others.filter(others.session != others.opener)
    second = others.group_by("query_norm").aggregate(second_ms=others.start.min())
    pages = known.select("serp", "session", "time_ms", "query_norm").inner_join(opened, "query_norm")
    pages = pages.left_join(second, "query_norm")
    before: Any = (pages.session == pages.opener).ifelse(pages.second_ms, pages.first_ms)
    named = pages.select("serp", slice=(before < pages.time_ms).fill_null(False).ifelse("seen", "new"))
    note = "new: not asked before in this log, whose beginning therefore looks newer"
    return Cut(serp.select("serp").left_join(named, "serp").select("serp", "slice"), ("new", "seen"), note)
