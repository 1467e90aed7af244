"""`preference_agreement`: whether preferences that clicks express agree with judgments, and say more than the rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.online.arguments import names_of, need_log
from judged.online.offline.agreement_answer import AgreementRow, PreferenceAgreement, Repeated
from judged.online.offline.clusters import UNKNOWN, Estimate, by_unit, influenced, ratio_estimate, refuse_level
from judged.online.offline.joined import joined_pages, lists_of, of_pages, places
from judged.online.offline.pages import rests_on
from judged.online.offline.preferences import DEFAULT_RULES, RULES, click_preferences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools, Floats, Ints
    from judged.online.log import InteractionLog
    from judged.online.offline.joined import Joined, PageLists, Unit, Which

_ORDERED = ("last-above", "earlier")


@dataclass(frozen=True, eq=False)
class _Preferences:
    """Preferences of pages with a judged topic, one entry each: (P,)."""

    rule: Ints
    page: Ints
    unit: Ints
    better_rank: Ints
    worse_rank: Ints
    better: Floats  # the grades; NaN where not judged
    worse: Floats
    pair: Ints  # the same for the same two results of one topic
    forward: Bools  # which of the two is the better one


def preference_agreement(
    log: InteractionLog,
    qrels: Any,
    *,
    rules: Sequence[str] | str = DEFAULT_RULES,
    topics: Any = None,
    by: str | None = None,
    pages: Which = "first",
    depth: int = 10,
    unit: Unit = "user",
    level: float = 0.95,
) -> PreferenceAgreement:
    """Compare the preferences that clicks express with the order that judgments give.

    Parameters
    ----------
    log
        What users did.
    qrels
        Judgments: a `Qrels`, or anything that `Qrels.of` and `Qrels.read` take.
    rules
        Of `judged.online.offline.preferences.RULES`.
    topics, by, pages, unit, level
        As for `against_qrels`.
    depth
        Ranks below this are not looked at.

    Returns
    -------
    PreferenceAgreement

    Raises
    ------
    InputError
        If the judgments cannot be read, an option makes no sense, or no page has a judged topic.

    Notes
    -----
    Under ``above`` the preferred result always stands lower, under ``next`` always higher: of the same pairs the order
    on the page alone is right in one minus the agreement, or in just as many. Whether clicks say more than the rank is
    therefore told by pairs at the same two ranks on all pages, whatever was clicked: that is `expected`.
    """
    need_log(log)
    refuse_level(level)
    judgments = Qrels.read(qrels) if isinstance(qrels, (str, Path)) else Qrels.of(qrels)
    names = tuple(names_of(rules=rules))
    if not log.has_time and (unknown := [name for name in names if name in _ORDERED and name in RULES]):
        _refuse_order(log, unknown[0])
    table = click_preferences(log, rules=names, depth=depth)
    joined = joined_pages(log, judgments, topics, by=by, unit=unit, which=pages)
    with log.engine.scratch():
        found = _fetched(of_pages(table, joined.serp).to_arrow(), joined, judgments, names)
    lists = lists_of(log, joined.serp)
    grades = _grades(lists, joined, judgments, depth)
    everywhere = np.ones(len(grades), dtype=np.bool_)
    parts = [(None, everywhere), *((value, joined.slices == at) for at, value in enumerate(joined.values))]
    rows = [
        _row((name, value), found, (found.rule == code) & own[found.page], _of_pages(grades, own), joined, level)
        for code, name in enumerate(names)
        for value, own in parts
    ]
    return PreferenceAgreement(
        **rests_on(log, judgments, joined, by, unit, level),
        rules=names,
        depth=depth,
        rows=tuple(rows),
        repeated=_repeated(found),
    )


def _refuse_order(log: InteractionLog, rule: str) -> None:
    """Times of a log without a clock still order what happened, where the reader knew the order."""
    at_once = f"""
        SELECT serp FROM {log.event} WHERE action = 'click' AND serp IS NOT NULL
        GROUP BY serp HAVING count(DISTINCT object_id) > 1 AND count(DISTINCT time_ms) = 1"""
    if log.engine.rows(f"SELECT count(*) AS n FROM ({at_once})")[0]["n"]:
        raise InputError(f"{log.name} does not say in which order results were clicked, and {rule} needs that",
                         fix="take the rules above, previous and next")  # fmt: skip


def _fetched(table: Any, joined: Joined, qrels: Qrels, rules: Sequence[str]) -> _Preferences:
    """Fetch preferences, sorted, and look up both grades."""
    page = places(joined.serp, _ints(table["serp"]))
    rule = _ints(pc.index_in(table["rule"], value_set=pa.array(rules, pa.string())))
    order = np.lexsort((_ints(table["worse_rank"]), _ints(table["better_rank"]), rule, page))
    page, rule, table = page[order], rule[order], table.take(pa.array(order))
    topic = joined.topic[page]
    sides = {name: table[name].combine_chunks().cast(pa.string()) for name in ("better", "worse")}
    docs = pa.concat_arrays([_whole(one) for one in sides.values()]).dictionary_encode()
    codes = docs.indices.to_numpy(zero_copy_only=False).astype(np.int64).reshape(2, -1)
    low, high = codes.min(axis=0), codes.max(axis=0)
    _, two = np.unique(low * (len(docs.dictionary) + 1) + high, return_inverse=True)
    _, pair = np.unique(topic * (len(two) + 1) + two.ravel(), return_inverse=True)
    better, worse = (_looked_up(topic, _whole(one), qrels) for one in sides.values())
    return _Preferences(
        rule, page, joined.unit[page], _ints(table["better_rank"]), _ints(table["worse_rank"]), better, worse,
        pair.ravel(), codes[0] == low,
    )  # fmt: skip


def _looked_up(topic: Ints, docs: Any, qrels: Qrels) -> Floats:
    at = qrels.index.rows_of(topic, docs)
    return np.where(at >= 0, qrels.index.grade[np.maximum(at, 0)], np.nan)


def _grades(lists: PageLists, joined: Joined, qrels: Qrels, depth: int) -> Floats:
    """Give the grade at each rank of each page, (N, depth); NaN where nothing, or nothing judged, stands."""
    page = lists.page
    grades = _looked_up(joined.topic[page], lists.doc, qrels)
    kept = lists.rank <= depth
    made = np.full((len(joined.serp), depth), np.nan)
    made[page[kept], lists.rank[kept] - 1] = grades[kept]
    return made


def _of_pages(grades: Floats, own: Bools) -> Floats:
    return np.where(own[:, None], grades, np.nan)


def _row(
    named: tuple[str, str | None], found: _Preferences, kept: Bools, grades: Floats, joined: Joined, level: float
) -> AgreementRow:
    """Count what one rule says on some pages."""
    better, worse = found.better[kept], found.worse[kept]
    judged = ~(np.isnan(better) | np.isnan(worse))
    decided = judged & (better != worse)
    rows = np.flatnonzero(kept)[decided]
    agreed = better[decided] > worse[decided]
    estimates = _shares(found, rows, agreed, grades, joined, level) if len(rows) else [UNKNOWN] * 4
    return AgreementRow(
        *named, int(kept.sum()), int(judged.sum()), int((judged & ~decided).sum()), int(decided.sum()),
        int(agreed.sum()), len(np.unique(joined.unit[found.page[rows]])), *estimates,
    )  # fmt: skip


def _shares(
    found: _Preferences, rows: Ints, agreed: Bools, grades: Floats, joined: Joined, level: float
) -> list[Estimate]:
    """Estimate the agreement, the share where the upper is better, what ranks let expect, and the gain.

    The influence of a unit on what is expected has two parts: its preferences, which change the mix of ranks, and its
    pages, which change what is known of pairs at the same ranks.
    """
    units, unit = np.unique(joined.unit[found.page[rows]], return_inverse=True)
    unit = unit.ravel()
    upper = found.better_rank[rows] < found.worse_rank[rows]
    high, low = (made(found.better_rank[rows], found.worse_rank[rows]) for made in (np.minimum, np.maximum))
    size = grades.shape[1] + 1
    ranks, cell = np.unique(high * size + low, return_inverse=True)
    cell = cell.ravel()
    count, up = np.bincount(cell), np.bincount(cell, upper)
    wins, pages_part = _control(ranks // size, ranks % size, (2 * up - count) / len(rows), grades, joined, units)
    alone = np.where(upper, wins[cell], 1 - wins[cell])
    each, right, expected_sum = by_unit(unit, np.ones(len(rows))), by_unit(unit, agreed), by_unit(unit, alone)
    expected = float(expected_sum.sum()) / len(rows)
    of_expected = (expected_sum - expected * each) / len(rows) + pages_part
    agreement = ratio_estimate(right, each, level, share=True)
    of_agreement = (right - agreement.value * each) / len(rows)
    return [
        agreement,
        ratio_estimate(by_unit(unit, agreed == upper), each, level, share=True),
        influenced(expected, of_expected, each, level, share=True),
        influenced(agreement.value - expected, of_agreement - of_expected, each, level),
    ]


def _control(
    high: Ints, low: Ints, weight: Floats, grades: Floats, joined: Joined, units: Ints
) -> tuple[Floats, Floats]:
    """Look at pairs at the same ranks on all pages of these units, whatever was clicked.

    Parameters
    ----------
    high, low, weight
        (K,): pairs of ranks, and how much what is expected rises with the share of wins there.

    Returns
    -------
    (K,), (U,)
        The share where the upper result is better, of those that differ; and the influence of each unit through it.
    """
    member = np.isin(joined.unit, units)
    unit, own = np.searchsorted(units, joined.unit[member]), np.asfortranarray(grades[member])
    wins, pull = np.full(len(high), np.nan), np.zeros(len(own))
    for at, (upper, lower) in enumerate(zip((high - 1).tolist(), (low - 1).tolist(), strict=True)):
        won, lost = own[:, upper] > own[:, lower], own[:, upper] < own[:, lower]
        differ = won.sum() + lost.sum()
        if differ:
            wins[at] = won.sum() / differ
            pull += weight[at] / differ * ((1 - wins[at]) * won - wins[at] * lost)
    return wins, by_unit(unit, pull)


def _repeated(found: _Preferences) -> Repeated:
    """Compare preferences for the same two results of one topic on different pages, all rules together."""
    pages = int(found.page.max(initial=-1)) + 1
    own = found.pair * pages + found.page
    _, at = np.unique(2 * own + found.forward, return_index=True)
    pair, forward = found.pair[at], found.forward[at]
    size = int(pair.max(initial=-1)) + 1
    one, other = (np.bincount(pair, column, minlength=size) for column in (forward, ~forward))
    # a page may say both, by two rules: such two are no repetition
    conflicts = len(at) - len(np.unique(own))
    agree = float((one * (one - 1) / 2 + other * (other - 1) / 2).sum())
    every = float(((one + other) * (one + other - 1) / 2).sum()) - conflicts
    return Repeated(int(((one + other) > 1).sum()), int(every), int(agree))


def _ints(column: Any) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _whole(column: Any) -> Any:
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
