"""What a user asked next: each page, the first page after it in the same session, and the kind of the change.

Only first pages of result lists ask: turning to the second page asks nothing new, and cuts no chain, so that of *a*,
*a* (its second page), *b* both pages of *a* are followed by *b*. A page with the same text (a reload, the way back,
another filter) is ``same``, neither reformulation nor new topic: of *a*, *a*, *b* the second *a* is the one that was
given up, and is counted once. The rules of kinds are those of `judged.online.facts.rewriting`.

What was asked without a filter is counted apart (`ZeroResultQueries`), and there a filter cuts no chain either: such a
page is asked again if the next first page *without a filter* has the same text, whatever was filtered in between. Of
*a*, *a* (filtered) the first page is the last that asked so, and counts; of *a*, *a* (filtered), *a* the third does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from judged.data.compute import pc
from judged.online.engine import ibis_library, kept, next_after
from judged.online.facts.rewriting import kinds_of
from judged.online.tables import Relation

PAIRS_AT_ONCE = 50_000
"""So many pairs of texts are Python objects at a time."""

_COMMONEST = "new-topic"  # what a pair is that is not sent back: texts of a session often have nothing in common


def rewrites(serp: Relation, *, within_ms: int | None = None) -> Relation:
    """Give each page the first page of a result list that is strictly later in the same session.

    Of several at that same millisecond it is the one with the smallest key.

    Parameters
    ----------
    serp
        Pages: the typed table, of any backend.
    within_ms
        Only what comes so soon is told apart by its text. Repeats are known however late they come.

    Returns
    -------
    found : Relation
        One row a page, run and kept: ``serp``; ``next_serp``, null where there is none; ``gap_ms``, from page to page,
        1 or more; ``kind``, one of `judged.online.facts.rewriting.KINDS`, null where there is no next page, one of the
        two has no text, or it came too late; ``again``, true for an unfiltered first page whose text the next one of
        these has too.

    Examples
    --------
    >>> import ibis
    >>> import pyarrow as pa
    >>> from judged.online.engine import rows_of
    >>> pages = {"serp": [1, 2, 3], "session": [7, 7, 7], "time_ms": [0, 5_000, 9_000], "page": [1, 2, 1]}
    >>> pages |= {"filtered": [False] * 3, "query_norm": ["shoes", "shoes", "red shoes"]}
    >>> serp = ibis.duckdb.connect().create_table("serp", pa.table(pages))
    >>> rows_of(rewrites(serp).order_by("serp"))
    [{'serp': 1, 'next_serp': 3, 'gap_ms': 9000, 'kind': 'specialise', 'again': False},
     {'serp': 2, 'next_serp': 3, 'gap_ms': 4000, 'kind': 'specialise', 'again': False},
     {'serp': 3, 'next_serp': None, 'gap_ms': None, 'kind': None, 'again': False}]
    """
    return begin_rewrites(serp, within_ms=within_ms)()


def begin_rewrites(serp: Relation, *, within_ms: int | None = None) -> Callable[[], Relation]:
    """Begin `rewrites`: texts are told apart in a thread, while the database can do other things.

    Returns
    -------
    finish : callable
        Waits for it, and gives what `rewrites` gives.
    """
    texts = kept(_numbered(serp))
    pages = kept(_with_numbers(serp, texts))
    pairs = kept(_followed(pages))
    again = _asked_again(pages, pairs)
    soon = ibis_library().literal(value=True) if within_ms is None else pairs.gap_ms <= within_ms
    told = pairs.filter(pairs.before.notnull(), pairs.after.notnull(), pairs.before != pairs.after, soon)
    wanted = told.select("before", "after").distinct()
    for side in ("before", "after"):
        named = texts.select(**{side: "text", f"{side}_text": "query_norm"})
        wanted = wanted.join(named, side, rname="n_{name}")
    worker = ThreadPoolExecutor(1)
    kinds = worker.submit(_kinds, wanted.select("before", "after", "before_text", "after_text").to_pyarrow())
    worker.shutdown(wait=False)
    return lambda: _named(pairs, told, again, kinds.result())


def _named(pairs: Relation, told: Relation, again: Relation, kinds: Any) -> Relation:
    """Put the kinds of texts beside the pages."""
    named = told.left_join(ibis_library().memtable(kinds), ["before", "after"])
    known = kept(named.select("serp", kind=named.kind.fill_null(_COMMONEST)))
    both = pairs.left_join(known, "serp", rname="k_{name}").left_join(again, "serp", rname="a_{name}")
    same = (both.before == both.after).fill_null(False)
    plain = same & (both.page == 1) & ~both.filtered & ~both.next_filtered.fill_null(False)
    kind, once_more = same.ifelse("same", both.kind), both.again.fill_null(False) | plain
    return kept(both.select("serp", "next_serp", "gap_ms", kind=kind, again=once_more))


def _numbered(serp: Relation) -> Relation:
    """Number the texts, each by a page that has it: numbers are compared and sorted far faster."""
    known = serp.filter(serp.query_norm.notnull())
    return known.group_by("query_norm").aggregate(text=known.serp.min())


def _with_numbers(serp: Relation, texts: Relation) -> Relation:
    """Give pages with the number of their text, ``before``, in its place."""
    page: Any = serp.left_join(texts, "query_norm", rname="t_{name}")
    return page.select("serp", "session", "time_ms", "page", "filtered", before="text")


def _followed(pages: Relation) -> Relation:
    """Give pages with the next first page and the numbers of both texts, ``before`` and ``after``."""
    found = _next_of(pages, pages.filter(pages.page == 1))
    behind = pages.select(next_serp="serp", next_filtered="filtered", after="before")
    return found.left_join(behind, "next_serp", rname="b_{name}").drop("b_next_serp")


def _asked_again(pages: Relation, pairs: Relation) -> Relation:
    """Give unfiltered first pages that a filtered one follows, if the next unfiltered one has their text: ``serp``.

    For all others the next first page tells it. Where filters are rare, so is what is looked at here.
    """
    open_ended = pairs.filter(pairs.page == 1, ~pairs.filtered, pairs.next_filtered)
    left = pages.semi_join(open_ended, "serp")
    plain = pages.filter(pages.page == 1, ~pages.filtered).semi_join(left, "session")
    found = _next_of(left, plain)
    both = found.join(pages.select(next_serp="serp", after="before"), "next_serp", rname="b_{name}")
    repeated = both.filter(both.before == both.after)
    return kept(repeated.select("serp", again=ibis_library().literal(value=True)))


def _next_of(pages: Relation, first: Relation) -> Relation:
    """Give pages the next of some first pages, ``next_serp``, and the time up to it, ``gap_ms``."""
    later = first.group_by("session", "time_ms").aggregate(serp=first.serp.min())
    found: Any = next_after(
        pages.mutate(since=pages.time_ms + 1), later, by="session", at_least="since", time="time_ms", found="next_"
    )
    gap = found.next_time_ms - found.time_ms
    return found.select("serp", "page", "filtered", "next_serp", "before", gap_ms=gap)


def _kinds(texts: Any) -> Any:
    """Give the kind of each pair of texts by their numbers, as a table of Arrow; without those of the commonest one."""
    wanted = pa.schema([("before", pa.int64()), ("after", pa.int64()), ("kind", pa.string())])
    pieces: list[Any] = [wanted.empty_table()]
    for batch in texts.to_batches(max_chunksize=PAIRS_AT_ONCE):
        kinds = kinds_of(batch["before_text"], batch["after_text"])
        found = pa.table({"before": batch["before"], "after": batch["after"], "kind": kinds}).cast(wanted)
        pieces.append(found.filter(pc.not_equal(found["kind"], _COMMONEST)))
    return pa.concat_tables(pieces)
