"""Facts of pages that come from what followed in the session: the next query, and whether anything succeeded later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.online.facts.rewrites import rewrites
from judged.online.tables import Relation

if TYPE_CHECKING:
    from judged.online.facts.settings import FactSettings
    from judged.online.log import InteractionLog


def followed_pages(log: InteractionLog, settings: FactSettings) -> Relation:
    """Give one row a first page of a query: how the next query of the session differs from it, if it came soon enough.

    ``kind`` is null where none came, and where it came after the gap; ``same`` is known however late it came.
    """
    return rewrites(log.serp, within_ms=round(settings.reformulation_gap * 1000)).select("serp", "kind")


def last_successes(pages: Relation) -> Relation:
    """Give each session the time of its last page that came to a success.

    Parameters
    ----------
    pages
        One row a page, with ``session``, ``time_ms`` and ``success_ms`` (null: it came to none).
    """
    successful = pages.filter(pages.success_ms.notnull())
    return successful.group_by("session").agg(last_success_ms=successful.time_ms.max())
