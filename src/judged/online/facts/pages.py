"""Facts of pages: one row a result page, numbers only. Every metric is a ratio of two sums of these columns.

A column is 0 where it does not apply, and then the column that it is divided by is 0 too. `COLUMNS` says what each one
means; those with a parameter in braces are made for the cutoffs (k), ranks (r) and thresholds (t) that are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.engine import ibis_library, kept
from judged.online.facts.actions import acted_pages
from judged.online.facts.clicked import clicked_pages, opened_at, opened_to, shown_at
from judged.online.facts.followed import last_successes
from judged.online.facts.rewriting import REFORMULATIONS
from judged.online.facts.settings import FactSettings
from judged.online.metrics.metric import written
from judged.online.tables import Relation

if TYPE_CHECKING:
    from judged.online.log import InteractionLog

COLUMNS = {
    "page": "1",
    "answered": "1 if the page was not empty",
    "shown": "results on the page",
    "shown_to_{k}": "results on the page at ranks 1 to k",
    "shown_at_{r}": "1 if there was a result at rank r",
    "opened": "results that were opened, each once",
    "opened_of_shown": "of those, at most as many as the log says were shown",
    "opened_of_shown_to_{k}": "results shown at ranks 1 to k that were opened",
    "opened_at_{r}": "1 if the result at rank r was shown and opened",
    "clicked": "1 if any result was opened",
    "clicked_to_{k}": "1 if any at ranks 1 to k was",
    "answered_to_{k}": "1 if the page was not empty and holds a rank up to k",
    "click_events": "clicks, repeated ones too",
    "first_rr": "1 / rank of the first click in time, 0 without a click",
    "max_rr": "1 / rank of the highest result opened, 0 without a click",
    "mean_rr": "mean of 1 / rank over opened results, 0 without a click",
    "lowest": "rank of the lowest result opened",
    "ranked": "1 if a result with a known rank was opened",
    "passed": "results above the lowest one opened",
    "skipped": "of those, not opened",
    "first_click_s": "seconds from the page to its first click",
    "timed": "1 if that time is known and not negative",
    "hovered": "1 if the pointer rested on a result",
    "satisfied_{t}": "results opened for t seconds or longer, or last in the session",
    "satisfied_page_{t}": "1 if there is such a result",
    "satisfied_events_{t}": "such clicks",
    "dissatisfied_events_{t}": "clicks whose visit was seen to end before t seconds",
    "observed": "clicks whose visit was seen to end",
    "abandoned": "1 if nothing on the page was opened, put into the cart or bought",
    "abandoned_bad": "1 if abandoned, and empty, reformulated (a page behind the first one too), or the end of a "
    "session in which nothing later succeeds",
    "abandoned_good": "1 if abandoned, not bad by being empty or reformulated, and something was copied from the page",
    "abandoned_unknown": "1 if abandoned and neither",
    "asked": "1 if it is the first page of a query, the last one of consecutive repeats",
    "repeated": "1 if it is the first page of a query, and consecutive repeats of it follow",
    "reformulated": "1 if the next query of the session, soon enough, is a reformulation",
    "reformulated_{kind}": "1 if it is one of that kind",
    "zero": "1 if nothing was found for an unfiltered first page",
    "zero_known": "1 if it is an unfiltered first page and the log says how much was found",
    "zero_asked": "1 if zero, unless the next unfiltered first page of the session has the same text",
    "zero_asked_known": "1 if zero_known, unless the next unfiltered first page of the session has the same text",
    "zero_filtered": "1 if nothing was found for a filtered first page",
    "zero_filtered_known": "1 if it is a filtered first page and the log says how much was found",
    "rescued": "1 if the page answers a changed query, since the typed one found nothing",
    "zero_or_rescued": "1 if the typed query found nothing",
    "cart": "1 if something was put into the cart",
    "carts": "how often",
    "purchased": "1 if something was bought",
    "purchases": "how often",
    "money": "money that came of the page, winsorised",
    "latency_s": "seconds until the engine answered",
    "latency_known": "1 if they are logged",
}
"""The columns of the facts of a page, and what they mean."""

_FLAGS = re.compile(
    "|".join(
        re.sub(r"\{\w+\}", r"[\\w.]+", name) for name, what in COLUMNS.items() if what == "1" or what[:5] == "1 if "
    )
)


def is_flag(column: str) -> bool:
    """Tell whether a column holds only 0 and 1.

    >>> is_flag("clicked_to_3"), is_flag("opened_of_shown_to_3"), is_flag("first_rr")
    (True, False, False)
    """
    return _FLAGS.fullmatch(column) is not None


@dataclass(frozen=True)
class Wanted:
    """Which columns with parameters are made."""

    cutoffs: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    satisfied: tuple[float, ...] = (30.0,)
    dissatisfied: tuple[float, ...] = ()


_OF_SERP = (
    "serp", "session", "user", "time_ms", "page", "filtered", "first_rank", "n_shown", "zero_results", "rescued",
    "latency_ms",
)  # fmt: skip
"""What is asked of a page itself; its texts are not."""

_LEFT = {"abandoned_bad", "abandoned_good", "abandoned_unknown"}
"""Facts that hang on the pages behind it too."""

_NEXT_QUERY = re.compile("asked|repeated|reformulated.*|zero_asked.*|" + "|".join(sorted(_LEFT)))


def need_the_next_query(columns: Iterable[str]) -> bool:
    """Tell whether some of `COLUMNS` hang on the kind of the next query: it costs as much as all else.

    >>> need_the_next_query(["clicked", "reformulated_spelling"]), need_the_next_query(["clicked", "abandoned"])
    (True, False)
    """
    return any(_NEXT_QUERY.fullmatch(one) for one in columns)


@dataclass(frozen=True)
class PageFacts:
    """Facts of pages, one row each: not made before they are asked for, from what is joined to the pages once and kept.

    Parameters
    ----------
    joined
        Pages beside what comes of clicks, sales and the next query.
    wanted, timed
        What is made of it.
    thresholds
        Seconds of dwell of `Wanted`, and those of a success.
    """

    joined: Relation
    wanted: Wanted
    timed: bool
    thresholds: tuple[float, ...]

    def select(self, columns: Collection[str]) -> Relation:
        """Give some of `COLUMNS`.

        Returns
        -------
        ibis.Table
            ``serp, session, user, time_ms``; ``success_ms_{t}``, when the page first came to a success (null: never);
            ``slice`` where there is one; and the columns as doubles.
        """
        page = self.joined
        if late := set(columns) & _LEFT:
            page = page.left_join(kept(last_successes(page)), "session", rname="l_{name}")
        made = {
            **_of_the_page(page, self.wanted),
            **_of_the_clicks(page, self.wanted, timed=self.timed),
            **_of_satisfaction(page, self.thresholds, self.wanted.dissatisfied),
            **_of_sales(page),
            **_of_empty_pages(page),
            **(_of_the_next_query(page) if "kind" in page.columns else {}),
            **(_of_abandonment(page) if late else {}),
        }
        also = [f"success_ms_{written(t)}" for t in self.thresholds] + sorted({"slice"} & set(page.columns))
        chosen = {name: made[name] for name in columns}
        return page.select("serp", "session", "user", "time_ms", *also, **chosen)


def page_facts(
    log: InteractionLog,
    clicks: Relation,
    wanted: Wanted,
    settings: FactSettings,
    *,
    followed: Callable[[], Relation] | None = None,
    slices: Relation | None = None,
) -> PageFacts:
    """Join to each page what came of it.

    Parameters
    ----------
    log
        The log.
    clicks
        Its `click_facts`.
    wanted
        Cutoffs, ranks and thresholds.
    settings
        What belongs together.
    followed
        Gives what `begin_followed` began; None: no fact is asked for that needs it.
    slices
        ``serp`` and ``slice``: then the facts have the column ``slice``, for the pages that are in it.
    """
    thresholds = tuple(sorted({*wanted.satisfied, settings.success}))
    opened = clicked_pages(
        clicks,
        log.serp,
        cutoffs=wanted.cutoffs,
        ranks=wanted.ranks,
        satisfied=thresholds,
        dissatisfied=wanted.dissatisfied,
        timed=log.has_time,
    )
    page = log.serp.select(*_OF_SERP).left_join(opened, "serp", rname="c_{name}")
    page = page.left_join(acted_pages(log, settings), "serp", rname="a_{name}")
    if followed is not None:
        page = page.left_join(followed(), "serp", rname="f_{name}")
    if slices is not None:
        page = page.join(slices, "serp", rname="s_{name}")
    page = page.mutate(**_successes(page, thresholds, settings.success))
    spent = {"c_serp", "a_serp", "f_serp", "s_serp", "last_sale_ms"}
    spent |= {f"satisfied_{name}_{written(t)}" for t in thresholds for name in ("ms", "last_ms")}
    return PageFacts(kept(page.drop(*(spent & set(page.columns)))), wanted, log.has_time, thresholds)


def _successes(page: Any, thresholds: Sequence[float], success: float) -> dict[str, Any]:
    """Say when a page first came to a satisfied click, a cart or a purchase, and when last."""
    names = [written(t) for t in thresholds]
    firsts = {f"success_ms_{t}": ibis_library().least(page[f"satisfied_ms_{t}"], page.sale_ms) for t in names}
    last = page[f"satisfied_last_ms_{written(success)}"]
    return {**firsts, "last_success_of_page_ms": ibis_library().greatest(last, page.last_sale_ms)}


def _of_the_page(page: Any, wanted: Wanted) -> dict[str, Any]:
    """Give what the page itself says."""
    last = page.first_rank + page.n_shown - 1
    made = {
        "page": ibis_library().literal(1.0),
        "answered": _flag(~_empty(page)),
        "shown": page.n_shown.cast("float64"),
        "latency_s": (page.latency_ms / 1000.0).fill_null(0.0),
        "latency_known": _flag(page.latency_ms.notnull()),
    }
    for k in wanted.cutoffs:
        made[f"shown_to_{k}"] = (last.clip(upper=k) - page.first_rank + 1).clip(lower=0).cast("float64")
        made[f"answered_to_{k}"] = _flag(~_empty(page) & (page.first_rank <= k))
    for r in wanted.ranks:
        made[f"shown_at_{r}"] = _flag(shown_at(page, r))
    return made


def _of_the_clicks(page: Any, wanted: Wanted, *, timed: bool) -> dict[str, Any]:
    """Give what was opened on it."""
    ranked = page.ranked.fill_null(0.0)
    passed = (page.lowest - page.first_rank).clip(lower=0).fill_null(0).cast("float64")
    waited = (page.first_ms - page.time_ms) if timed else ibis_library().null("int64")
    made = {
        "opened": page.opened.fill_null(0.0),
        "opened_of_shown": ibis_library().least(page.opened.fill_null(0.0), page.n_shown.cast("float64")),
        "clicked": _flag(page.opened.notnull()),
        "click_events": page.click_events.fill_null(0.0),
        "observed": page.observed.fill_null(0.0),
        "first_rr": (1.0 / page.first_rank_opened.cast("float64")).fill_null(0.0),
        "max_rr": (1.0 / page.highest.cast("float64")).fill_null(0.0),
        "mean_rr": (page.rr_sum / page.ranked.nullif(0.0)).fill_null(0.0),
        "lowest": page.lowest.fill_null(0).cast("float64"),
        "ranked": _flag(ranked > 0),
        "passed": passed,
        "skipped": (passed - (ranked - 1)).clip(lower=0).fill_null(0.0) * _flag(ranked > 0),
        "first_click_s": (waited >= 0).fill_null(False).ifelse(waited / 1000.0, 0.0),
        "timed": _flag((waited >= 0).fill_null(False)),
    }
    for k in wanted.cutoffs:
        made[f"opened_of_shown_to_{k}"] = opened_to(page, k)
        made[f"clicked_to_{k}"] = _flag(page.highest.fill_null(k + 1) <= k)
    for r in wanted.ranks:
        made[f"opened_at_{r}"] = opened_at(page, r)
    return made


def _of_satisfaction(page: Any, satisfied: Sequence[float], dissatisfied: Sequence[float]) -> dict[str, Any]:
    """Give how many of the opened results satisfied."""
    made: dict[str, Any] = {}
    for t in map(written, satisfied):
        made[f"satisfied_{t}"] = page[f"satisfied_{t}"].fill_null(0.0)
        made[f"satisfied_page_{t}"] = _flag(page[f"satisfied_{t}"].fill_null(0.0) > 0)
        made[f"satisfied_events_{t}"] = page[f"satisfied_events_{t}"].fill_null(0.0)
    for t in map(written, dissatisfied):
        made[f"dissatisfied_events_{t}"] = page[f"dissatisfied_events_{t}"].fill_null(0.0)
    return made


def _of_sales(page: Any) -> dict[str, Any]:
    """Give what else was done on it, and the money."""
    return {
        "hovered": _flag(page.hovers.fill_null(0.0) > 0),
        "cart": _flag(page.carts.fill_null(0.0) > 0),
        "carts": page.carts.fill_null(0.0),
        "purchased": _flag(page.purchases.fill_null(0.0) > 0),
        "purchases": page.purchases.fill_null(0.0),
        "money": page.money.fill_null(0.0),
        "abandoned": _flag(_abandoned(page)),
    }


def _of_the_next_query(page: Any) -> dict[str, Any]:
    """Give whether the next query of the session is another wording of this one."""
    first, again = page.page == 1, page.kind.fill_null("") == "same"
    asked, plain = first & ~again, first & ~page.filtered & ~page.again.fill_null(False)
    empty, known = page.zero_results.fill_null(False), page.zero_results.notnull()
    made = {
        "asked": _flag(asked),
        "repeated": _flag(first & again),
        "reformulated": _flag(asked & _reformulated(page)),
        "zero_asked": _flag(empty & plain),
        "zero_asked_known": _flag(known & plain),
    }
    return made | {f"reformulated_{kind}": _flag(asked & (page.kind.fill_null("") == kind)) for kind in REFORMULATIONS}


def _of_empty_pages(page: Any) -> dict[str, Any]:
    """Give whether nothing was found. Pages behind the first one, and filtered ones, are no failures of the engine."""
    empty, known = page.zero_results.fill_null(False), page.zero_results.notnull()
    first, filtered = page.page == 1, page.filtered
    rescued = page.rescued.fill_null(False) & first
    return {
        "zero": _flag(empty & first & ~filtered),
        "zero_known": _flag(known & first & ~filtered),
        "zero_filtered": _flag(empty & first & filtered),
        "zero_filtered_known": _flag(known & first & filtered),
        "rescued": _flag(rescued),
        "zero_or_rescued": _flag(rescued | (empty & first)),
    }


def _of_abandonment(page: Any) -> dict[str, Any]:
    """Tell pages that were left because they failed from those that may have answered by themselves."""
    abandoned = _abandoned(page)
    failed = _empty(page) | _reformulated(page)
    good = abandoned & ~failed & (page.copies.fill_null(0.0) > 0)
    in_vain = ~(page.last_success_ms > page.time_ms).fill_null(False)
    bad = abandoned & ~good & (failed | in_vain)
    return {
        "abandoned_bad": _flag(bad),
        "abandoned_good": _flag(good),
        "abandoned_unknown": _flag(abandoned & ~bad & ~good),
    }


def _abandoned(page: Any) -> Any:
    return page.opened.isnull() & page.sale_ms.isnull()


def _empty(page: Any) -> Any:
    """Say whether a page was empty: one that shows results of a changed query, or was clicked on, was not."""
    return page.zero_results.fill_null(False) & (page.n_shown == 0) & page.opened.isnull()


def _reformulated(page: Any) -> Any:
    return page.kind.fill_null("").isin(list(REFORMULATIONS))


def _flag(condition: Any) -> Any:
    """Write a condition as 1 or 0: a double, as all facts are."""
    return condition.ifelse(1.0, 0.0)
