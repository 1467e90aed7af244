"""`preference_agreement`: whether preferences that clicks express agree with judgments, and say more than the rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.online.log import names_of, need
from judged.online.offline.agreement_answer import (
    DEFAULT_RULES,
    RULES,
    AgreementRow,
    PreferenceAgreement,
    Repeated,
    click_preferences,
)
from judged.online.offline.concordance import UNKNOWN, Estimate, by_unit, influenced, ratio_estimate
from judged.online.offline.joined import joined_pages, keyed, rests_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.joined import Joined, Unit, Which
    from judged.results.types import Bools, Floats, Ints

_ORDERED = ("last-above", "earlier")


@dataclass(frozen=True, eq=False)
class _Preferences:
    """Preferences of pages with a judged topic, one entry each: (P,)."""

    rule: Any  # texts
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
        Of `judged.online.offline.agreement_answer.RULES`.
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
    need(log=log, by=by, pages=pages, unit=unit, level=level)
    judgments = Qrels.read(qrels) if isinstance(qrels, (str, Path)) else Qrels.of(qrels)
    names = tuple(names_of(rules=rules))
    if not log.has_time and (unknown := [name for name in names if name in _ORDERED and name in RULES]):
        _refuse_order(log, unknown[0])
    table = click_preferences(log, rules=names, depth=depth)
    joined = joined_pages(log, judgments, topics, by=by, unit=unit, which=pages)
    with log.engine.scratch():
        found, grades = _fetched(log, table, joined, judgments, depth)
    everywhere = np.ones(len(grades), dtype=np.bool_)
    parts = [(None, everywhere), *((value, joined.slices == at) for at, value in enumerate(joined.values))]
    rows: list[AgreementRow] = []
    for name in names:
        for value, own in parts:
            kept, of_part = (found.rule == name) & own[found.page], np.where(own[:, None], grades, np.nan)
            rows.append(_row((name, value), found, kept, of_part, joined, level))
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


def _fetched(
    log: InteractionLog, preferences: Relation, joined: Joined, qrels: Qrels, depth: int
) -> tuple[_Preferences, Floats]:
    """Fetch preferences with both grades, and the grade at each rank of each page, (N, depth): NaN where none is."""
    index = qrels.index
    labels = {"topic": index.topic, "doc": index.docs.take(pa.array(index.doc)), "grade": index.grade}
    page, label = keyed(log, joined.serp, joined.topic), log.engine.register(pa.table(labels))
    found = log.engine.arrow(f"""
        SELECT m.rule, p.page, m.better_rank, m.worse_rank, b.grade AS better, w.grade AS worse,
            dense_rank() OVER (ORDER BY p.topic, least(m.better, m.worse), greatest(m.better, m.worse)) AS pair,
            m.better < m.worse AS forward
        FROM {preferences} AS m JOIN {page} AS p ON p.serp = m.serp
        LEFT JOIN {label} AS b ON b.topic = p.topic AND b.doc = m.better
        LEFT JOIN {label} AS w ON w.topic = p.topic AND w.doc = m.worse
        ORDER BY p.page, m.better_rank, m.worse_rank""")
    stood = log.engine.arrow(f"""
        SELECT p.page, s.rank, g.grade
        FROM (SELECT serp, object_id, min(rank) AS rank FROM {log.shown} GROUP BY serp, object_id) AS s
        JOIN {page} AS p ON p.serp = s.serp JOIN {label} AS g ON g.topic = p.topic AND g.doc = s.object_id
        WHERE s.rank <= {depth}""")
    columns = {name: found[name].to_numpy() for name in found.column_names}
    grades = np.full((len(joined.serp), depth), np.nan)
    grades[stood["page"].to_numpy(), stood["rank"].to_numpy() - 1] = stood["grade"].to_numpy()
    return _Preferences(unit=joined.unit[columns["page"]], **columns), grades


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
