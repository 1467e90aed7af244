"""What a user asked next: each page, the first page after it in the same session, and the kind of the change.

Only first pages of result lists ask: turning to the second page asks nothing new, and cuts no chain, so that of *a*,
*a* (its second page), *b* both pages of *a* are followed by *b*. A page with the same text (a reload, the way back,
another filter) is ``same``, neither reformulation nor new topic: of *a*, *a*, *b* the second *a* is the one that was
given up, and is counted once. The rules of kinds are those of `judged.online.facts.reformulation`.

What was asked without a filter is counted apart (`ZeroResultQueries`), and there a filter cuts no chain either: such a
page is asked again if the next first page *without a filter* has the same text, whatever was filtered in between. Of
*a*, *a* (filtered) the first page is the last that asked so, and counts; of *a*, *a* (filtered), *a* the third does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.online.engine import Relation
from judged.online.facts.reformulation import kinds_of

if TYPE_CHECKING:
    from judged._types import Table

PAIRS_AT_ONCE = 50_000
"""So many pairs of texts are Python objects at a time."""


def begin_next_queries(serp: Relation, *, within_ms: int) -> Callable[[], Relation]:
    """Begin to tell how the next query of a session differs from each page's.

    Texts are told apart in a thread, while the database can do other things.

    Parameters
    ----------
    serp
        Pages: the typed table.
    within_ms
        Only what comes so soon is told apart by its text. Repeats are known however late they come.

    Returns
    -------
    finish : callable
        Waits for it, and gives one row a page that a first page follows, strictly later in its session: ``serp``;
        ``next_serp``, of several at that millisecond the one with the smallest key; ``gap_ms``, from page to page;
        ``kind``, one of `judged.online.facts.reformulation.KINDS`, null where one of the two has no text or the next
        came too late; ``again``, true for an unfiltered first page whose text the next one of these has too.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from judged.online.engine import Engine
    >>> pages = {"serp": [1, 2, 3], "session": [7, 7, 7], "time_ms": [0, 5_000, 9_000], "page": [1, 2, 1]}
    >>> pages |= {"filtered": [False] * 3, "query_norm": ["shoes", "shoes", "red shoes"]}
    >>> found = begin_next_queries(Engine().register(pa.table(pages)), within_ms=300_000)()
    >>> found.engine.rows(f"FROM {found} ORDER BY serp")
    [{'serp': 1, 'next_serp': 3, 'gap_ms': 9000, 'kind': 'specialise', 'again': False},
     {'serp': 2, 'next_serp': 3, 'gap_ms': 4000, 'kind': 'specialise', 'again': False}]
    """
    engine = serp.engine
    pairs = engine.keep(
        f"""
        WITH asked AS (
            SELECT session, time_ms, min(CASE WHEN page = 1 THEN serp END) AS opening,
                min(CASE WHEN page = 1 AND NOT filtered THEN serp END) AS plain
            FROM {serp} GROUP BY session, time_ms),
        ahead AS (
            SELECT session, time_ms, first_value(opening IGNORE NULLS) OVER later AS next_serp,
                first_value(plain IGNORE NULLS) OVER later AS next_plain
            FROM asked
            WINDOW later AS (
                PARTITION BY session ORDER BY time_ms ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
        SELECT p.serp, a.next_serp, n.time_ms - p.time_ms AS gap_ms, p.query_norm AS was, n.query_norm AS became,
            p.page = 1 AND NOT p.filtered AND coalesce(p.query_norm = u.query_norm, false) AS again
        FROM {serp} AS p
        JOIN ahead AS a ON a.session = p.session AND a.time_ms = p.time_ms
        JOIN {serp} AS n ON n.serp = a.next_serp
        LEFT JOIN {serp} AS u ON u.serp = a.next_plain""",
        "next_query",
    )
    texts = engine.arrow(f"SELECT DISTINCT was, became FROM {pairs} WHERE was <> became AND gap_ms <= {within_ms}")
    worker = ThreadPoolExecutor(1)
    kinds = worker.submit(_kinds, texts)
    worker.shutdown(wait=False)
    return lambda: engine.query(f"""
        SELECT p.serp, p.next_serp, p.gap_ms,
            CASE WHEN p.was = p.became THEN 'same' WHEN p.gap_ms <= {within_ms} THEN k.kind END AS kind, p.again
        FROM {pairs} AS p
        LEFT JOIN {engine.register(kinds.result())} AS k ON k.was = p.was AND k.became = p.became""")


def _kinds(texts: Any) -> Table:
    """Give the kind of each pair of texts."""
    pieces = [
        pa.table({**{name: batch[name] for name in ("was", "became")}, "kind": kinds_of(batch["was"], batch["became"])})
        for batch in texts.to_batches(max_chunksize=PAIRS_AT_ONCE)
    ]
    return pa.concat_tables(pieces) if pieces else texts.append_column("kind", pa.array([], pa.string()))
