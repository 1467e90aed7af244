"""Slices by the text of the query. Words, kinds and traffic mean what they mean for topics (`judged.slicing`).

What a text tells by itself is found once for each different one, in Python; counts are made where the log lives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.bands import FREQUENCY, LENGTH, Bands, frequency_bands
from judged.comparison.slicing.queries import kind_of, script_of, word_count
from judged.errors import InputError
from judged.online.engine import Relation
from judged.online.slicing.columns import Cut

WORDS = Bands((2, 3, 5), ("1", "2", "3-4", "5+"))
"""Words of a query: finer where queries of logs are, which are shorter than topics."""

TRAFFIC = (50.0, 90.0)
"""Per cent of pages at which head and torso end."""

_TEXTS_AT_ONCE = 100_000
_SHAPES = 100_000  # that are remembered
_LETTERS, _DIGITS = re.compile("[A-Za-z]+"), re.compile("[0-9]+")


def by_words(serp: Relation) -> Cut:
    """Cut by the number of words, as `WORDS`; not known where a script writes no blanks, or there is no word."""
    return _by_count(serp, WORDS)


def by_length(serp: Relation) -> Cut:
    """Cut by the number of words, as ``length`` of topics is: 1, 2-3, 4-6, 7+."""
    return _by_count(serp, LENGTH)


def by_class(serp: Relation) -> Cut:
    """Cut by the kind of query, as ``kind`` of topics is: address, quoted, question, identifier, keywords."""
    return Cut(_by_text(serp, kind_of))


def by_script(serp: Relation) -> Cut:
    """Cut by the script of most letters, as ``script`` of topics is."""
    remembered = lru_cache(_SHAPES)(script_of)
    return Cut(_by_text(serp, lambda text: remembered(_shape(text))))


def _by_count(serp: Relation, bands: Bands) -> Cut:
    remembered = lru_cache(_SHAPES)(word_count)
    return Cut(_by_text(serp, lambda text: bands.of(remembered(_shape(text)) or None)), bands.names)


def _shape(text: str) -> str:
    """Write all words of ASCII alike: how many there are, and in which script, stays the same and is told once."""
    return _DIGITS.sub("1", _LETTERS.sub("a", text)) if text.isascii() else text


def _by_text(serp: Relation, told: Callable[[str], str | None]) -> str:
    """Write the SQL of the slice of each page's text."""
    pieces = [pa.table({"query_norm": pa.array([], pa.string()), "slice": pa.array([], pa.string())})]
    texts = serp.engine.arrow(f"SELECT DISTINCT query_norm FROM {serp} WHERE query_norm IS NOT NULL")
    for batch in texts.to_batches(max_chunksize=_TEXTS_AT_ONCE):
        named = [told(text) for text in batch["query_norm"].to_pylist()]
        columns = {"query_norm": batch["query_norm"].cast(pa.string()), "slice": pa.array(named, pa.string())}
        pieces.append(pa.table(columns))
    known = serp.engine.register(pa.concat_tables(pieces))
    return f"SELECT p.serp, k.slice FROM {serp} AS p LEFT JOIN {known} AS k ON k.query_norm = p.query_norm"


def by_traffic(serp: Relation, cuts: tuple[float, float] = TRAFFIC) -> Cut:
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
    counts = serp.engine.keep(
        f"SELECT query_norm, count(*) AS pages FROM {serp} WHERE query_norm IS NOT NULL GROUP BY query_norm", "texts"
    )
    levels = serp.engine.arrow(f"SELECT pages, count(*) AS texts FROM {counts} GROUP BY pages")
    if not levels.num_rows:
        return Cut(f"SELECT serp, NULL AS slice FROM {serp}", FREQUENCY)
    repeated = np.repeat(levels["pages"].to_numpy(), levels["texts"].to_numpy()).tolist()
    bands = frequency_bands(repeated, (cuts[0] / 100, cuts[1] / 100))
    least = {band: pages for pages, band in sorted(set(zip(repeated, bands, strict=True)), reverse=True)}
    named = f"""CASE WHEN k.pages >= {least["head"]} THEN 'head'
        WHEN k.pages >= {least.get("torso", least["head"])} THEN 'torso' WHEN k.pages IS NOT NULL THEN 'tail' END"""
    return Cut(
        f"SELECT p.serp, {named} AS slice FROM {serp} AS p LEFT JOIN {counts} AS k ON k.query_norm = p.query_norm",
        FREQUENCY,
    )


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


def by_novelty(serp: Relation) -> Cut:
    """Cut into pages whose text somebody had asked for before in this log (``seen``), and others (``new``).

    Somebody is another session: to turn a page, or to come back to it, makes nothing seen. What was asked before the
    log begins is not known, so that its first days look newer than they are.
    """
    sql = f"""
        WITH asked AS (
            SELECT query_norm, session, min(time_ms) AS start FROM {serp} WHERE query_norm IS NOT NULL
            GROUP BY query_norm, session),
        first AS (SELECT query_norm, min(start) AS first_ms FROM asked GROUP BY query_norm),
        opened AS (
            SELECT a.query_norm, min(a.session) AS opener, min(f.first_ms) AS first_ms
            FROM asked AS a JOIN first AS f ON f.query_norm = a.query_norm AND f.first_ms = a.start
            GROUP BY a.query_norm),
        second AS (
            SELECT a.query_norm, min(a.start) AS second_ms
            FROM asked AS a JOIN opened AS o ON o.query_norm = a.query_norm AND o.opener <> a.session
            GROUP BY a.query_norm)
        SELECT p.serp, CASE WHEN o.opener IS NULL THEN NULL
            WHEN CASE WHEN p.session = o.opener THEN s.second_ms ELSE o.first_ms END < p.time_ms THEN 'seen'
            ELSE 'new' END AS slice
        FROM {serp} AS p LEFT JOIN opened AS o ON o.query_norm = p.query_norm
        LEFT JOIN second AS s ON s.query_norm = p.query_norm"""
    note = "new: not asked before in this log, whose beginning therefore looks newer"
    return Cut(sql, ("new", "seen"), note)
