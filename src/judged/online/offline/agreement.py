"""`preference_agreement`: agreement of click preferences with judgments, beyond the effect of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.online.log import parse_names, validate
from judged.online.offline.concordance import (
    NO_ESTIMATE,
    IntervalEstimate,
    influence_estimate,
    ratio_estimate,
    unit_sums,
)
from judged.online.offline.page_topics import find_page_topics, register_pages, shared_fields
from judged.online.offline.preference_rules import (
    DEFAULT_RULES,
    RULES,
    AgreementRow,
    PreferenceAgreement,
    RepeatedPreferences,
    click_preferences,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.page_topics import PageSelection, PageTopics, Unit
    from judged.results.types import Bools, Floats, Ints

_RULES_WITH_ORDER = ("last-above", "earlier")


@dataclass(frozen=True, eq=False)
class _Preferences:
    """Preferences on pages with a judged topic: (P,) each."""

    rule: Any  # texts
    page: Ints
    unit: Ints
    better_rank: Ints
    worse_rank: Ints
    better: Floats  # grades; NaN if not judged
    worse: Floats
    pair: Ints  # code of the topic and the two results
    forward: Bools  # which of the two is preferred


def preference_agreement(
    log: InteractionLog,
    qrels: Any,
    *,
    rules: Sequence[str] | str = DEFAULT_RULES,
    topics: Any = None,
    by: str | None = None,
    pages: PageSelection = "first",
    depth: int = 10,
    unit: Unit = "user",
    level: float = 0.95,
) -> PreferenceAgreement:
    """Compare preferences from clicks with the order of grades.

    Parameters
    ----------
    log
        Interaction log.
    qrels
        Judgments: a `Qrels`, or input of `Qrels.of` or `Qrels.read`.
    rules
        Names in `judged.online.offline.preference_rules.RULES`.
    topics, by, pages, unit, level
        As in `against_qrels`.
    depth
        Deepest rank.

    Returns
    -------
    PreferenceAgreement

    Raises
    ------
    InputError
        If the judgments cannot be read, an option is invalid, or no page has a judged topic.

    Notes
    -----
    With ``above``, the preferred result is always at the lower rank, with ``next`` always at the higher rank. The order
    of ranks alone then has one minus the agreement, or the same agreement. The control (`expected`) is therefore the
    agreement of pairs at the same two ranks on all pages, regardless of clicks.
    """
    validate(log=log, by=by, pages=pages, unit=unit, level=level)
    judgments = Qrels.read(qrels) if isinstance(qrels, (str, Path)) else Qrels.of(qrels)
    names = tuple(parse_names(rules=rules))
    if not log.has_time and (unsupported := [name for name in names if name in _RULES_WITH_ORDER and name in RULES]):
        _check_click_order(log, unsupported[0])
    table = click_preferences(log, rules=names, depth=depth)
    page_topics = find_page_topics(log, judgments, topics, by=by, unit=unit, selection=pages)
    with log.engine.scratch():
        preferences, grades = _fetch_grades(log, table, page_topics, judgments, depth)
    all_pages = np.ones(len(grades), dtype=np.bool_)
    slices = [(None, all_pages), *((value, page_topics.slices == i) for i, value in enumerate(page_topics.values))]
    rows: list[AgreementRow] = []
    for name in names:
        for value, is_in_slice in slices:
            is_selected = (preferences.rule == name) & is_in_slice[preferences.page]
            slice_grades = np.where(is_in_slice[:, None], grades, np.nan)
            rows.append(_agreement_row((name, value), preferences, is_selected, slice_grades, page_topics, level))
    fields = shared_fields(log, judgments, page_topics, by, unit, level)
    repeated = _repeated_preferences(preferences)
    return PreferenceAgreement(**fields, rules=names, depth=depth, rows=tuple(rows), repeated=repeated)


def _check_click_order(log: InteractionLog, rule: str) -> None:
    # A log without a clock may still have times that order the clicks.
    simultaneous = f"""
        SELECT serp FROM {log.event} WHERE action = 'click' AND serp IS NOT NULL
        GROUP BY serp HAVING count(DISTINCT object_id) > 1 AND count(DISTINCT time_ms) = 1"""
    if log.engine.rows(f"SELECT count(*) AS n FROM ({simultaneous})")[0]["n"]:
        problem = f"the rule {rule} requires the order of clicks, which {log.name} does not have"
        raise InputError(problem, fix="use the rules 'above', 'previous', and 'next'")


def _fetch_grades(
    log: InteractionLog, preferences: Relation, page_topics: PageTopics, qrels: Qrels, depth: int
) -> tuple[_Preferences, Floats]:
    """Return preferences with grades, and the grade at each rank of each page, (N, depth); NaN without a grade."""
    index = qrels.index
    label_columns = {"topic": index.topic, "doc": index.docs.take(pa.array(index.doc)), "grade": index.grade}
    pages = register_pages(log, page_topics.serp, page_topics.topic)
    labels = log.engine.register(pa.table(label_columns))
    preference_rows = log.engine.arrow(f"""
        SELECT m.rule, p.page, m.better_rank, m.worse_rank, b.grade AS better, w.grade AS worse,
            dense_rank() OVER (ORDER BY p.topic, least(m.better, m.worse), greatest(m.better, m.worse)) AS pair,
            m.better < m.worse AS forward
        FROM {preferences} AS m JOIN {pages} AS p ON p.serp = m.serp
        LEFT JOIN {labels} AS b ON b.topic = p.topic AND b.doc = m.better
        LEFT JOIN {labels} AS w ON w.topic = p.topic AND w.doc = m.worse
        ORDER BY p.page, m.better_rank, m.worse_rank""")
    result_rows = log.engine.arrow(f"""
        SELECT p.page, s.rank, g.grade
        FROM (SELECT serp, object_id, min(rank) AS rank FROM {log.shown} GROUP BY serp, object_id) AS s
        JOIN {pages} AS p ON p.serp = s.serp JOIN {labels} AS g ON g.topic = p.topic AND g.doc = s.object_id
        WHERE s.rank <= {depth}""")
    columns = {name: preference_rows[name].to_numpy() for name in preference_rows.column_names}
    grades = np.full((len(page_topics.serp), depth), np.nan)
    grades[result_rows["page"].to_numpy(), result_rows["rank"].to_numpy() - 1] = result_rows["grade"].to_numpy()
    return _Preferences(unit=page_topics.unit[columns["page"]], **columns), grades


def _agreement_row(
    key: tuple[str, str | None], preferences: _Preferences, mask: Bools, grades: Floats, pages: PageTopics, level: float
) -> AgreementRow:
    better, worse = preferences.better[mask], preferences.worse[mask]
    judged = ~(np.isnan(better) | np.isnan(worse))
    decided = judged & (better != worse)
    rows = np.flatnonzero(mask)[decided]
    agreed = better[decided] > worse[decided]
    estimates = [NO_ESTIMATE] * 4
    if len(rows):
        estimates = _estimate_agreement(preferences, rows, agreed, grades, pages, level)
    return AgreementRow(
        *key, int(mask.sum()), int(judged.sum()), int((judged & ~decided).sum()), int(decided.sum()),
        int(agreed.sum()), len(np.unique(pages.unit[preferences.page[rows]])), *estimates,
    )  # fmt: skip


def _estimate_agreement(
    preferences: _Preferences, rows: Ints, agreed: Bools, grades: Floats, page_topics: PageTopics, level: float
) -> list[IntervalEstimate]:
    """Estimate the agreement, the share with the better upper result, the expected agreement, and the gain.

    A unit influences the expected agreement in two ways: its preferences change the mix of ranks, and its pages change
    the win rates at these ranks.
    """
    units, unit = np.unique(page_topics.unit[preferences.page[rows]], return_inverse=True)
    unit = unit.ravel()
    upper = preferences.better_rank[rows] < preferences.worse_rank[rows]  # the upper result is preferred
    ranks = np.sort(np.stack([preferences.better_rank[rows], preferences.worse_rank[rows]]), axis=0)
    n_ranks = grades.shape[1] + 1
    rank_pairs, rank_index = np.unique(ranks[0] * n_ranks + ranks[1], return_inverse=True)
    rank_index = rank_index.ravel()
    counts, upper_counts = np.bincount(rank_index), np.bincount(rank_index, upper)
    rank_columns, weights = np.divmod(rank_pairs, n_ranks), (2 * upper_counts - counts) / len(rows)
    win_rates, page_influence = _expected_wins(*rank_columns, weights, grades, page_topics, units)
    # Agreement of ranks alone: the win rate of the rank that the click prefers.
    rank_values = np.where(upper, win_rates[rank_index], 1 - win_rates[rank_index])
    n, agreements, expected_sum = (unit_sums(unit, column) for column in (np.ones(len(rows)), agreed, rank_values))
    expected = float(expected_sum.sum()) / len(rows)
    # Linearization: own preferences at fixed win rates, plus the effect of own pages on win rates.
    expected_influence = (expected_sum - expected * n) / len(rows) + page_influence
    agreement = ratio_estimate(agreements, n, level, share=True)
    agreement_influence = (agreements - agreement.value * n) / len(rows)
    return [
        agreement,
        ratio_estimate(unit_sums(unit, agreed == upper), n, level, share=True),
        influence_estimate(expected, expected_influence, n, level, share=True),
        influence_estimate(agreement.value - expected, agreement_influence - expected_influence, n, level),
    ]


def _expected_wins(
    upper_ranks: Ints, lower_ranks: Ints, weights: Floats, grades: Floats, page_topics: PageTopics, units: Ints
) -> tuple[Floats, Floats]:
    """Compute the share of pages with the better upper result at each pair of ranks, regardless of clicks.

    Parameters
    ----------
    upper_ranks, lower_ranks, weights
        (K,), pairs of ranks, and the derivative of the expected agreement by the share.

    Returns
    -------
    (K,), (U,)
        Share among pages with different grades, and the influence of each unit through it.
    """
    is_member = np.isin(page_topics.unit, units)
    unit, unit_grades = np.searchsorted(units, page_topics.unit[is_member]), np.asfortranarray(grades[is_member])
    win_rates, influence = np.full(len(upper_ranks), np.nan), np.zeros(len(unit_grades))
    for i, (upper, lower) in enumerate(zip((upper_ranks - 1).tolist(), (lower_ranks - 1).tolist(), strict=True)):
        difference = unit_grades[:, upper] - unit_grades[:, lower]
        wins, losses = difference > 0, difference < 0
        n_different = wins.sum() + losses.sum()
        if n_different:
            win_rates[i] = wins.sum() / n_different
            # Derivative of wins / (wins + losses) by the weight of a page.
            influence += weights[i] / n_different * ((1 - win_rates[i]) * wins - win_rates[i] * losses)
    return win_rates, unit_sums(unit, influence)


def _repeated_preferences(preferences: _Preferences) -> RepeatedPreferences:
    """Compare preferences for the same two results of a topic on different pages, over all rules."""
    n_pages = int(preferences.page.max(initial=-1)) + 1
    # One vote per page and pair, even if several rules agree.
    pair_page = preferences.pair * n_pages + preferences.page
    _, unique_rows = np.unique(2 * pair_page + preferences.forward, return_index=True)
    pair, forward = preferences.pair[unique_rows], preferences.forward[unique_rows]
    n_pairs = int(pair.max(initial=-1)) + 1
    n_forward, n_backward = (np.bincount(pair, column, minlength=n_pairs) for column in (forward, ~forward))
    # Two rules can imply opposite preferences on one page; these do not count as repeated.
    n_conflicts = len(unique_rows) - len(np.unique(pair_page))
    # Pairs of equal preferences: n (n - 1) / 2 in each direction.
    n_agreements = float((n_forward * (n_forward - 1) / 2 + n_backward * (n_backward - 1) / 2).sum())
    n_comparisons = float(((n_forward + n_backward) * (n_forward + n_backward - 1) / 2).sum()) - n_conflicts
    return RepeatedPreferences(int(((n_forward + n_backward) > 1).sum()), int(n_comparisons), int(n_agreements))
