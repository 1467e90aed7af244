"""Credit of clicks on interleaved lists, by the rule of the interleaving method, and validity checks of the lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.online.engine import Relation, identifier, literal
from judged.online.mixed_lists import METHODS, TAU
from judged.results import counted
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats, Ints

BROKEN_P = 0.001
"""Significance level, over all ranks, of the test for fair coin flips."""
BROKEN_ROUNDS = 0.01
"""Largest share of team-draft rounds in which one ranker picked twice."""
_BATCH = 50_000  # lists per batch, to bound the memory


@dataclass(frozen=True)
class MixedLists:
    """First result pages with an interleaved list.

    Parameters
    ----------
    rankers
        The baseline, and the other ranker.
    method, longer
        Interleaving method; whether the remainder of the longer ranking was appended.
    lists, users
        Number of lists, and of users (or sessions) who saw them.
    positions
        ``serp``, ``unit``, ``rank``, ``object_id``, ``team``, and ``share``: credit of a click for the other ranker,
        the complement being the baseline's; null: for neither.
    """

    rankers: tuple[str, str]
    method: str
    longer: bool
    lists: int
    users: int
    positions: Relation


class RankShare(NamedTuple):
    """Share of lists whose result at a rank is the other ranker's, and the p-value of the expected share, 0.5."""

    rank: int
    lists: int
    share: float
    p: float


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of the clicked lists, one element per list.

    Parameters
    ----------
    unit, slice_code
        Codes, from 0, of its user and of its slice.
    win, loss
        Probability that the other ranker, or the baseline, has more of the clicks. It is 0 or 1, except for
        probabilistic interleaving, which sums over all assignments of results to rankers.
    credit
        Expected clicks of the other ranker minus those of the baseline.
    slices
        Names of the slices.
    """

    unit: Ints
    slice_code: Ints
    win: Floats
    loss: Floats
    credit: Floats
    slices: tuple[str, ...]


def read_mixed_lists(
    log: InteractionLog, baseline: str | None, unit: str, matching_pages: Relation | None, *, count_shared: bool
) -> MixedLists:
    """Read the interleaved lists of a log, and the credit of a click on each of their results.

    Raises
    ------
    InputError
        If there are none, several tests or rankers, or attributes that credit needs are missing.
    """
    # Columns that the log does not have are NULL.
    columns = {name: identifier(name) if name in log.serp.columns else "NULL" for name in _COLUMNS}
    where = "" if matching_pages is None else f"AND serp IN (SELECT serp FROM {matching_pages})"
    pages = log.engine.keep(
        f"""
        SELECT serp, {identifier(unit)} AS unit, CAST({columns["interleaving_method"]} AS VARCHAR) AS method,
               CAST({columns["interleaving_first"]} AS VARCHAR) AS first,
               coalesce(CAST({columns["interleaving_length"]} AS VARCHAR) = 'longer', false) AS longer,
               TRY_CAST({columns["interleaving_cut"]} AS INTEGER) AS cut,
               string_split(CAST({columns["interleaving_ranks"]} AS VARCHAR), ' ') AS ranks
        FROM {log.serp} WHERE page = 1 {where} AND ({columns["interleaving_method"]} IS NOT NULL
            OR serp IN (SELECT serp FROM {log.shown} WHERE team IS NOT NULL))""",
        "mixed",
    )
    tests = log.engine.rows(
        f"SELECT coalesce(method, 'team-draft') AS method, min(first) AS first, count(DISTINCT first) AS firsts,"
        f" bool_or(longer) AS longer, bool_or(cut IS NULL) AS uncut, bool_or(ranks IS NULL) AS bare, count(*) AS lists,"
        f" count(DISTINCT unit) AS users FROM {pages} GROUP BY ALL ORDER BY method"
    )
    teams = log.engine.rows(
        f"SELECT DISTINCT team FROM {log.shown} WHERE team IS NOT NULL AND serp IN (SELECT serp FROM {pages})"
        " ORDER BY team"
    )
    rankers, methods = [row["team"] for row in teams], [row["method"] for row in tests]
    if len(rankers) != 2 or len(tests) != 1 or tests[0]["firsts"] > 1:
        observed = f"{counted(len(rankers), 'ranker')} and {counted(len(methods), 'interleaving method')}"
        fix = "log the attributes from judged.online.mixed_lists for every list, and select one test with where="
        raise InputError(
            f"an interleaving test must have two rankers and one method, got {observed}", fix=fix, path=log.name
        )
    test = tests[0]
    if test["method"] not in METHODS:
        problem = f"the interleaving method {test['method']!r} is not supported"
        raise InputError(problem, fix=use_one_of(METHODS), path=log.name)
    # Without these columns, a click below the shorter ranking, or on a rank, would look like a preference.
    if (test["longer"] and test["uncut"]) or (test["method"] == "probabilistic" and (test["uncut"] or test["bare"])):
        missing_column = "interleaving_cut" if test["uncut"] else "interleaving_ranks"
        problem = f"the column {missing_column} is required for the interleaving method {test['method']}"
        fix = "for every list, log the attributes from judged.online.mixed_lists"
        raise InputError(problem, fix=fix, path=log.name)
    baseline = str(baseline or test["first"] or rankers[0])
    if baseline not in rankers:
        raise InputError(f"there is no ranker {baseline!r}", fix=use_one_of(rankers), path=log.name)
    other = rankers[rankers[0] == baseline]
    # Team draft (Radlinski, Kurup and Joachims, CIKM 2008) and balanced interleaving (see `mixed_lists`): a click
    # counts for the ranker of the result, or for neither.
    share = f"CASE team WHEN {literal(other)} THEN 1.0 WHEN {literal(baseline)} THEN 0.0 END"
    # Probabilistic interleaving (Hofmann, Whiteson and de Rijke, CIKM 2011): a click counts by the posterior
    # probability that the result was drawn from the other ranker, given the results above.
    if test["method"] == "probabilistic":
        share = "chance_2 / (chance_1 + chance_2)" if test["first"] == baseline else "chance_1 / (chance_1 + chance_2)"
    counts = "true" if count_shared or test["method"] != "team-draft" else "NOT is_shared"
    positions = log.engine.keep(
        f"""
        WITH ranked AS (
            SELECT s.serp, s.rank, s.object_id, s.team, p.unit, p.cut,
                   TRY_CAST(split_part(p.ranks[s.rank], '/', 1) AS INTEGER) AS rank_1,
                   TRY_CAST(split_part(p.ranks[s.rank], '/', 2) AS INTEGER) AS rank_2
            FROM {log.shown} AS s JOIN {pages} AS p ON s.serp = p.serp
            WHERE p.cut IS NULL OR s.rank <= p.cut OR NOT p.longer),
        weighed AS (
            SELECT *, {_weight("rank_1")} AS weight_1, {_weight("rank_2")} AS weight_2,
                   bool_and(coalesce(rank_1 = rank AND rank_2 = rank, false)) OVER up_to_rank AS is_shared
            FROM ranked WINDOW up_to_rank AS (PARTITION BY serp ORDER BY rank)),
        chances AS (
            SELECT w.*, weight_1 / (total - coalesce(sum(weight_1) OVER above, 0)) AS chance_1,
                   weight_2 / (total - coalesce(sum(weight_2) OVER above, 0)) AS chance_2
            FROM weighed AS w LEFT JOIN {_totals(log, pages)} AS t ON w.cut = t.cut
            WINDOW above AS (PARTITION BY serp ORDER BY rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        SELECT serp, unit, rank, object_id, team, CASE WHEN {counts} THEN {share} END AS share FROM chances""",
        "positions",
    )
    lists, users = int(test["lists"]), int(test["users"])
    return MixedLists((baseline, other), test["method"], test["longer"], lists, users, positions)


_COLUMNS = ("interleaving_method", "interleaving_first", "interleaving_length", "interleaving_cut",
            "interleaving_ranks")  # fmt: skip


def _weight(rank: str) -> str:
    # Softmax over ranks of Hofmann et al.: P(d) = r(d)**-tau / sum r(d')**-tau, over the documents d' that are left.
    return f"CASE WHEN {rank} <= cut THEN power({rank}, -{TAU}) ELSE 0.0 END"


def _totals(log: InteractionLog, pages: Relation) -> str:
    """Return SQL for the sum of all weights of a ranking, by its length."""
    cuts = [row["cut"] for row in log.engine.rows(f"SELECT DISTINCT cut FROM {pages} WHERE cut IS NOT NULL")]
    totals = [(cut, math.fsum(rank**-TAU for rank in range(1, cut + 1))) for cut in cuts]
    rows = ", ".join(f"({cut}, {total!r}::DOUBLE)" for cut, total in totals) or "(NULL::INTEGER, 1.0::DOUBLE)"
    return f"(SELECT * FROM (VALUES {rows}) AS v(cut, total))"


def rank_shares(mixed: MixedLists) -> list[RankShare]:
    """Return the share of the other ranker at each rank; with fair coin flips, it is 0.5 for every method."""
    is_other = f"(team = {literal(mixed.rankers[1])})::INTEGER"
    rows = mixed.positions.engine.rows(
        f"""
        SELECT rank, sum(n) AS n, sum(d) AS d, sum(n * n) AS nn, sum(d * d) AS dd, sum(n * d) AS nd
        FROM (SELECT rank, unit, sum({is_other}) AS n, count(*) AS d FROM {mixed.positions}
              WHERE team IS NOT NULL GROUP BY rank, unit) GROUP BY rank ORDER BY rank"""
    )
    shares: list[RankShare] = []
    for row in rows:
        n, d, nn, dd, nd = (float(row[name]) for name in ("n", "d", "nn", "dd", "nd"))
        # Standard error under the null hypothesis of 0.5: the observed one is 0 if one ranker has every list.
        error = math.sqrt(max(nn - nd + dd / 4.0, 0.0)) / d
        p = 2.0 * NormalDist().cdf(-abs(n / d - 0.5) / error) if error else 1.0
        shares.append(RankShare(int(row["rank"]), int(d), n / d, p))
    return shares


def invalid_reasons(mixed: MixedLists, ranks: list[RankShare]) -> tuple[str, ...]:
    """Return why these lists are invalid; empty if they are valid."""
    reasons: list[str] = []
    least_fair = min(ranks, key=lambda rank_share: rank_share.p, default=None)
    if least_fair is not None and least_fair.p * len(ranks) < BROKEN_P:
        rank, lists, share, p = least_fair
        observed = f"{mixed.rankers[1]} filled rank {rank} in {share:.1%} of {lists:,} lists"
        reasons.append(f"{observed}, but the expected share is 50% (p = {p:.1g})")
    # Each round of two ranks has one pick of each ranker.
    if mixed.method == "team-draft":
        rounds = mixed.positions.engine.rows(
            f"""
            SELECT count(*) AS rounds, count(*) FILTER (teams = 1) AS twice
            FROM (SELECT count(DISTINCT team) AS teams FROM {mixed.positions}
                  GROUP BY serp, (rank + 1) // 2 HAVING count(team) = 2)"""
        )[0]
        if rounds["twice"] > BROKEN_ROUNDS * rounds["rounds"]:
            share = rounds["twice"] / rounds["rounds"]
            reasons.append(
                f"one ranker picked both results in {share:.1%} of the rounds, which team draft does not allow"
            )
    return tuple(reasons)


def read_outcomes(
    log: InteractionLog, mixed: MixedLists, sliced: Relation | None = None, *, count_repeated: bool
) -> Outcomes:
    """Read the outcome of every clicked list."""
    join, column = ("", "''") if sliced is None else (f"LEFT JOIN {sliced} AS s ON s.serp = p.serp", "s.slice")
    # With DISTINCT, several clicks on one result count once; NULL for `share`: the click counts for neither.
    rows = log.engine.arrow(
        f"""
        SELECT serp, dense_rank() OVER (ORDER BY unit) - 1 AS unit, slice, share FROM (
            SELECT {"" if count_repeated else "DISTINCT"} p.serp, p.unit, coalesce({column}, '') AS slice,
                   p.rank, p.share
            FROM {log.event} AS e JOIN {mixed.positions} AS p
                ON e.serp = p.serp AND coalesce(e.object_id = p.object_id, e.rank = p.rank)
            {join} WHERE e.action = 'click') ORDER BY serp"""
    )
    serp, unit = (rows[name].to_numpy() for name in ("serp", "unit"))
    share = rows["share"].to_numpy().astype(np.float64)  # NaN: it counts for neither
    _, starts, clicks = np.unique(serp, return_index=True, return_counts=True)
    names, slice_code = np.unique(np.array(rows["slice"].to_pylist(), dtype=object)[starts], return_inverse=True)
    win, loss = win_probabilities(share, clicks)
    credit = np.add.reduceat(np.nan_to_num(2.0 * share - 1.0), starts)
    return Outcomes(unit[starts], slice_code, win, loss, credit, tuple(map(str, names)))


def win_probabilities(share: Floats, clicks: Ints) -> tuple[Floats, Floats]:
    """Compute, for each list, the probabilities that the other ranker has more of its clicks, and that it has fewer.

    A dynamic program updates the distribution of the difference click by click. Its time is quadratic in the clicks of
    a list; enumerating all assignments would be exponential.

    Parameters
    ----------
    share
        (clicks,) probability that a click is the other ranker's, list after list; NaN: it counts for neither.
    clicks
        (lists,) number of clicks of each list.

    Examples
    --------
    >>> win_probabilities(np.array([0.9, 0.5]), np.array([2]))
    (array([0.45]), array([0.05]))
    """
    win, loss = np.zeros(len(clicks)), np.zeros(len(clicks))
    first_click = np.cumsum(clicks) - clicks
    # A batch bounds the memory; the width of its table is that of its list with most clicks.
    for start in range(0, len(clicks), _BATCH):
        batch = slice(start, start + _BATCH)
        max_clicks = int(clicks[batch].max(initial=0))
        chances = np.zeros((len(clicks[batch]), 2 * max_clicks + 1))
        chances[:, max_clicks] = 1.0
        for click in range(max_clicks):
            rows = np.flatnonzero(clicks[batch] > click)
            p = share[first_click[batch][rows] + click]
            rows, p = rows[~np.isnan(p)], p[~np.isnan(p)][:, None]
            # Column `max_clicks + k`: probability that the other ranker leads by k clicks.
            before = chances[rows]
            after = np.zeros_like(before)
            after[:, 1:] += p * before[:, :-1]
            after[:, :-1] += (1.0 - p) * before[:, 1:]
            chances[rows] = after
        win[batch], loss[batch] = chances[:, max_clicks + 1 :].sum(axis=1), chances[:, :max_clicks].sum(axis=1)
    return win, loss
