"""Facts of pages that come from what followed in the session: the next query, and whether anything succeeded later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from judged.online.facts.rewrites import begin_rewrites
from judged.online.tables import Relation

if TYPE_CHECKING:
    from judged.online.facts.settings import FactSettings
    from judged.online.log import InteractionLog


def begin_followed(log: InteractionLog, settings: FactSettings) -> Callable[[], Relation]:
    """Begin to tell how the next query of a session differs from each first page's, if it comes soon enough.

    Returns
    -------
    finish : callable
        Gives one row a first page that a query followed: ``serp`` and ``kind``. What came after the gap has no row,
        unless it is ``same``, which is known however late it came. The database is free until it is called.
    """
    finish = begin_rewrites(log.serp, within_ms=round(settings.reformulation_gap * 1000))

    def finished() -> Relation:
        found = finish()
        return found.filter(found.kind.notnull()).select("serp", "kind")

    return finished


def last_successes(pages: Relation) -> Relation:
    """Give each session the time of its last page that came to a success.

    Parameters
    ----------
    pages
        One row a page, with ``session``, ``time_ms`` and ``success_ms`` (null: it came to none).
    """
    successful = pages.filter(pages.success_ms.notnull())
    return successful.group_by("session").agg(last_success_ms=successful.time_ms.max())
