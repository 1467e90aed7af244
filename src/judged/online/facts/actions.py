"""Facts of pages that come from what was done beside opening results: hovers, copies, carts, purchases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.online.engine import ibis_library, kept, last_before, rows_of
from judged.online.tables import Relation

if TYPE_CHECKING:
    from judged.online.facts.settings import FactSettings
    from judged.online.log import InteractionLog

_SALES = ("add_to_cart", "purchase")


def acted_pages(log: InteractionLog, settings: FactSettings) -> Relation:
    """Give one row a page on which something was done: counts, money, and when it first came to a cart or purchase."""
    event = log.event
    done = event.filter(event.action.isin(["hover", "copy", *_SALES]), event.serp.notnull())
    columns = ("serp", "time_ms", "action", "value")
    owned = done.select(*columns).union(_last_touched(log, settings).select(*columns))
    cart, bought = owned.action == "add_to_cart", owned.action == "purchase"
    sold = (cart | bought).ifelse(owned.time_ms, ibis_library().null("int64"))
    pages = owned.group_by("serp").agg(
        hovers=_count(owned.action == "hover"),
        copies=_count(owned.action == "copy"),
        carts=_count(cart),
        purchases=_count(bought),
        money=bought.ifelse(owned.value.fill_null(0.0), 0.0).sum(),
        sale_ms=sold.min(),
        last_sale_ms=sold.max(),
    )
    pages = kept(pages)
    return pages.mutate(money=pages.money.clip(upper=_most(pages, settings.winsorise)))


def _last_touched(log: InteractionLog, settings: FactSettings) -> Relation:
    """Give carts and purchases that name no page the last page of their session, if it is recent enough."""
    event = log.event
    loose = event.filter(event.action.isin(list(_SALES)), event.serp.isnull()).drop("serp")
    pages = log.serp.semi_join(loose, "session")
    pages = pages.group_by("session", "time_ms").agg(serp=pages.serp.max())  # of two at once, the one logged last
    touched = last_before(loose, pages, by="session", at_most="time_ms", time="time_ms", found="page_")
    recent = touched.time_ms - touched.page_time_ms <= round(settings.attribution_window * 1000)
    serp = touched.serp if "serp" in touched.columns else touched.page_serp
    return touched.filter(serp.notnull(), recent).mutate(serp=serp)


def _most(pages: Relation, share: float) -> float:
    """Find the money that a page is cut to: the smallest amount that this share of the paying pages does not exceed."""
    paying = pages.filter(pages.money > 0)
    amounts = rows_of(paying.group_by("money").agg(pages=paying.count()).order_by("money"))
    wanted = share * sum(row["pages"] for row in amounts) * (1.0 - 1e-12)  # rounding must not pass over an amount
    below = 0
    for row in amounts:
        below += row["pages"]
        if below >= wanted:
            return float(row["money"])
    return 0.0


def _count(condition: Any) -> Any:
    return condition.ifelse(1, 0).sum().cast("float64")
