"""What a user asked next: each first page, the first page after it in the same session, and the kind of the change.

Only first pages of result lists take part: turning to the second page asks nothing new, and cuts no chain, so that of
*a*, *a* (its second page), *b* the first is followed by *b*. A page with the same text (a reload, the way back, another
filter) is ``same``, neither reformulation nor new topic: of *a*, *a*, *b* the second *a* is the one that was given up,
and is counted once. The rules of kinds are those of `judged.online.facts.rewriting`.
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
    """Give each first page the first page of the same session that is strictly later.

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
        One row a first page, run and kept: ``serp``; ``next_serp``, null where there is none; ``gap_ms``, from page to
        page, 1 or more; ``kind``, one of `judged.online.facts.rewriting.KINDS`, null where there is no next page, one
        of the two has no text, or it came too late.

    Examples
    --------
    >>> import ibis
    >>> import pyarrow as pa
    >>> from judged.online.engine import rows_of
    >>> pages = {"serp": [1, 2, 3], "session": [7, 7, 7], "time_ms": [0, 5_000, 9_000], "page": [1, 2, 1]}
    >>> pages["query_norm"] = ["shoes", "shoes", "red shoes"]
    >>> serp = ibis.duckdb.connect().create_table("serp", pa.table(pages))
    >>> rows_of(rewrites(serp).order_by("serp"))
    [{'serp': 1, 'next_serp': 3, 'gap_ms': 9000, 'kind': 'specialise'},
     {'serp': 3, 'next_serp': None, 'gap_ms': None, 'kind': None}]
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
    pairs = kept(_followed(serp, texts))
    soon = ibis_library().literal(value=True) if within_ms is None else pairs.gap_ms <= within_ms
    told = pairs.filter(pairs.before.notnull(), pairs.after.notnull(), pairs.before != pairs.after, soon)
    wanted = told.select("before", "after").distinct()
    for side in ("before", "after"):
        named = texts.select(**{side: "text", f"{side}_text": "query_norm"})
        wanted = wanted.join(named, side, rname="n_{name}")
    worker = ThreadPoolExecutor(1)
    kinds = worker.submit(_kinds, wanted.select("before", "after", "before_text", "after_text").to_pyarrow())
    worker.shutdown(wait=False)
    return lambda: _named(pairs, told, kinds.result())


def _named(pairs: Relation, told: Relation, kinds: Any) -> Relation:
    """Put the kinds of texts beside the pages."""
    named = told.left_join(ibis_library().memtable(kinds), ["before", "after"])
    known = kept(named.select("serp", kind=named.kind.fill_null(_COMMONEST)))
    both = pairs.left_join(known, "serp", rname="k_{name}")
    kind = (both.before == both.after).fill_null(False).ifelse("same", both.kind)
    return kept(both.select("serp", "next_serp", "gap_ms", kind=kind))


def _numbered(serp: Relation) -> Relation:
    """Number the texts of first pages, each by a page that has it: numbers are compared and sorted far faster."""
    first = serp.filter(serp.page == 1, serp.query_norm.notnull())
    return first.group_by("query_norm").aggregate(text=first.serp.min())


def _followed(serp: Relation, texts: Relation) -> Relation:
    """Give first pages with the next one and the numbers of both texts, ``before`` and ``after``."""
    page: Any = serp.filter(serp.page == 1).left_join(texts, "query_norm", rname="t_{name}")
    first = kept(page.select("serp", "session", "time_ms", before="text"))
    later = first.group_by("session", "time_ms").aggregate(serp=first.serp.min())
    behind = first.select(next_serp="serp", after="before")
    found: Any = next_after(
        first.mutate(since=first.time_ms + 1), later, by="session", at_least="since", time="time_ms", found="next_"
    )
    found = found.select("serp", "next_serp", "before", gap_ms=found.next_time_ms - found.time_ms)
    return found.left_join(behind, "next_serp").select("serp", "next_serp", "gap_ms", "before", "after")


def _kinds(texts: Any) -> Any:
    """Give the kind of each pair of texts by their numbers, as a table of Arrow; without those of the commonest one."""
    wanted = pa.schema([("before", pa.int64()), ("after", pa.int64()), ("kind", pa.string())])
    pieces: list[Any] = [wanted.empty_table()]
    for batch in texts.to_batches(max_chunksize=PAIRS_AT_ONCE):
        kinds = kinds_of(batch["before_text"], batch["after_text"])
        found = pa.table({"before": batch["before"], "after": batch["after"], "kind": kinds}).cast(wanted)
        pieces.append(found.filter(pc.not_equal(found["kind"], _COMMONEST)))
    return pa.concat_tables(pieces)
