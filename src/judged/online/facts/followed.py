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
    """Begin to tell how the next query of a session differs from each page's, if it comes soon enough.

    Returns
    -------
    finish : callable
        Gives one row a page that a query followed: ``serp``, ``kind``, ``again`` (see `rewrites`). What came after the
        gap has no kind, unless it is ``same``, which is known however late it came, as ``again`` is. The database is
        free until it is called.
    """
    finish = begin_rewrites(log.serp, within_ms=round(settings.reformulation_gap * 1000))

    def finished() -> Relation:
        found = finish()
        return found.filter(found.kind.notnull() | found.again).select("serp", "kind", "again")

    return finished


def last_successes(pages: Relation) -> Relation:
    """Give each session the time of its last success, on whatever page.

    Parameters
    ----------
    pages
        One row a page, with ``session`` and ``last_success_of_page_ms`` (null: it came to none).
    """
    successful = pages.filter(pages.last_success_of_page_ms.notnull())
    return successful.group_by("session").agg(last_success_ms=successful.last_success_of_page_ms.max())
