"""What the clicks on mixed lists count for, by the rule of the method that mixed them, and whether lists are sound."""

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

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Floats, Ints

BROKEN_P = 0.001
"""Teams that are rarer than this by chance break a log, over all its ranks."""
BROKEN_ROUNDS = 0.01
"""More than this share of rounds in which one ranker picked twice is no team draft."""
_LOT = 50_000  # lists whose outcomes are worked out together


@dataclass(frozen=True)
class MixedLists:
    """First pages with a mixed list.

    Parameters
    ----------
    rankers
        The baseline, and the other.
    method, longer
        How lists were mixed; whether what is left of the longer one followed.
    lists, users
        How many lists, and how many users (or sessions) saw them.
    positions
        ``serp``, ``unit``, ``rank``, ``object_id``, ``team``, and ``share``: how much a click counts for the other
        ranker, the rest of 1 being the baseline's; null: for neither.
    """

    rankers: tuple[str, str]
    method: str
    longer: bool
    lists: int
    users: int
    positions: Relation


class AtRank(NamedTuple):
    """How often a rank counted for the other ranker, which should be half of the time, and the p-value of that."""

    rank: int
    lists: int
    share: float
    p: float


@dataclass(frozen=True)
class Outcomes:
    """What clicked lists say, an element each.

    Parameters
    ----------
    unit, part
        Whose it is, and in which slice; numbered from 0.
    win, loss
        Probability that the other ranker, and that the baseline has more of the clicks: 0 or 1 but for probabilistic
        lists, of which every assignment of results to rankers counts by its probability.
    credit
        Clicks of the other ranker less those of the baseline, or what is expected of them.
    parts
        Names of the slices.
    """

    unit: Ints
    part: Ints
    win: Floats
    loss: Floats
    credit: Floats
    parts: tuple[str, ...]


def mixed_lists(
    log: InteractionLog, baseline: str | None, unit: str, chosen: Relation | None, *, count_shared: bool
) -> MixedLists:
    """Find the mixed lists of a log, and whom each of their results counts for.

    Raises
    ------
    InputError
        If there are none, of several kinds or rankers, or longer lists cannot be told from preferred ones.
    """
    own = {name: identifier(name) if name in log.serp.columns else "NULL" for name in _COLUMNS}
    where = "" if chosen is None else f"AND serp IN (SELECT serp FROM {chosen})"
    pages = log.engine.keep(
        f"""
        SELECT serp, {identifier(unit)} AS unit, CAST({own["interleaving_method"]} AS VARCHAR) AS method,
               CAST({own["interleaving_first"]} AS VARCHAR) AS first,
               coalesce(CAST({own["interleaving_length"]} AS VARCHAR) = 'longer', false) AS longer,
               TRY_CAST({own["interleaving_cut"]} AS INTEGER) AS cut,
               string_split(CAST({own["interleaving_ranks"]} AS VARCHAR), ' ') AS ranks
        FROM {log.serp} WHERE page = 1 {where} AND ({own["interleaving_method"]} IS NOT NULL
            OR serp IN (SELECT serp FROM {log.shown} WHERE team IS NOT NULL))""",
        "mixed",
    )
    kinds = log.engine.rows(
        f"SELECT coalesce(method, 'team-draft') AS method, min(first) AS first, count(DISTINCT first) AS firsts,"
        f" bool_or(longer) AS longer, bool_or(cut IS NULL) AS uncut, bool_or(ranks IS NULL) AS bare, count(*) AS lists,"
        f" count(DISTINCT unit) AS users FROM {pages} GROUP BY ALL ORDER BY method"
    )
    teams = log.engine.rows(
        f"SELECT DISTINCT team FROM {log.shown} WHERE team IS NOT NULL AND serp IN (SELECT serp FROM {pages})"
        " ORDER BY team"
    )
    rankers, methods = [row["team"] for row in teams], [row["method"] for row in kinds]
    if len(rankers) != 2 or len(kinds) != 1 or kinds[0]["firsts"] > 1:
        said = f"{counted(len(rankers), 'ranker')} and {counted(len(methods), 'way')} of mixing lists"
        fix = "log what judged.online.mixed_lists gives with every list, and choose one test of several by where="
        raise InputError(f"the log has {said}: a test has two rankers and one way", fix=fix, path=log.name)
    kind = kinds[0]
    if kind["method"] not in METHODS:
        raise InputError(f"lists were mixed by {kind['method']!r}", fix=f"one of {', '.join(METHODS)}", path=log.name)
    if (kind["longer"] and kind["uncut"]) or (kind["method"] == "probabilistic" and (kind["uncut"] or kind["bare"])):
        lacks = "interleaving_cut" if kind["uncut"] else "interleaving_ranks"
        problem = f"{lacks} is not logged: a longer list, or a rank, cannot be told from a preferred one"
        raise InputError(problem, fix="log what judged.online.mixed_lists gives with every list", path=log.name)
    baseline = str(baseline or kind["first"] or rankers[0])
    if baseline not in rankers:
        raise InputError(f"there is no ranker {baseline!r}", fix=f"take one of {', '.join(rankers)}", path=log.name)
    other = rankers[rankers[0] == baseline]
    share = f"CASE team WHEN {literal(other)} THEN 1.0 WHEN {literal(baseline)} THEN 0.0 END"
    if kind["method"] == "probabilistic":
        share = "chance_2 / (chance_1 + chance_2)" if kind["first"] == baseline else "chance_1 / (chance_1 + chance_2)"
    unshared = "true" if count_shared or kind["method"] != "team-draft" else "NOT alike"
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
                   bool_and(coalesce(rank_1 = rank AND rank_2 = rank, false)) OVER above_and_here AS alike
            FROM ranked WINDOW above_and_here AS (PARTITION BY serp ORDER BY rank)),
        chances AS (
            SELECT w.*, weight_1 / (total - coalesce(sum(weight_1) OVER above, 0)) AS chance_1,
                   weight_2 / (total - coalesce(sum(weight_2) OVER above, 0)) AS chance_2
            FROM weighed AS w LEFT JOIN {_totals(log, pages)} AS t ON w.cut = t.cut
            WINDOW above AS (PARTITION BY serp ORDER BY rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        SELECT serp, unit, rank, object_id, team, CASE WHEN {unshared} THEN {share} END AS share FROM chances""",
        "positions",
    )
    return MixedLists(
        (baseline, other), kind["method"], kind["longer"], int(kind["lists"]), int(kind["users"]), positions
    )


_COLUMNS = ("interleaving_method", "interleaving_first", "interleaving_length", "interleaving_cut",
            "interleaving_ranks")  # fmt: skip


def _weight(rank: str) -> str:
    return f"CASE WHEN {rank} <= cut THEN power({rank}, -{TAU}) ELSE 0.0 END"


def _totals(log: InteractionLog, pages: Relation) -> str:
    """Give the sum of all weights of a list, by where it was cut."""
    cuts = [row["cut"] for row in log.engine.rows(f"SELECT DISTINCT cut FROM {pages} WHERE cut IS NOT NULL")]
    sums = [(cut, math.fsum(rank**-TAU for rank in range(1, cut + 1))) for cut in cuts]
    rows = ", ".join(f"({cut}, {total!r}::DOUBLE)" for cut, total in sums) or "(NULL::INTEGER, 1.0::DOUBLE)"
    return f"(SELECT * FROM (VALUES {rows}) AS v(cut, total))"


def by_rank(mixed: MixedLists) -> list[AtRank]:
    """Tell at each rank how often it was the other ranker's: a fair coin says so, at every rank of every method."""
    other = f"(team = {literal(mixed.rankers[1])})::INTEGER"
    rows = mixed.positions.engine.rows(
        f"""
        SELECT rank, sum(n) AS n, sum(d) AS d, sum(n * n) AS nn, sum(d * d) AS dd, sum(n * d) AS nd
        FROM (SELECT rank, unit, sum({other}) AS n, count(*) AS d FROM {mixed.positions}
              WHERE team IS NOT NULL GROUP BY rank, unit) GROUP BY rank ORDER BY rank"""
    )
    made: list[AtRank] = []
    for row in rows:
        n, d, nn, dd, nd = (float(row[name]) for name in ("n", "d", "nn", "dd", "nd"))
        # the error is that of half: where every rank is one ranker's, the observed one would be 0
        error = math.sqrt(max(nn - nd + dd / 4.0, 0.0)) / d
        p = 2.0 * NormalDist().cdf(-abs(n / d - 0.5) / error) if error else 1.0
        made.append(AtRank(int(row["rank"]), int(d), n / d, p))
    return made


def unsound(mixed: MixedLists, ranks: list[AtRank]) -> tuple[str, ...]:
    """Say why nothing follows from these lists; nothing where they are sound."""
    why: list[str] = []
    worst = min(ranks, key=lambda one: one.p, default=None)
    if worst is not None and worst.p * len(ranks) < BROKEN_P:
        said = f"rank {worst.rank} was {mixed.rankers[1]}'s in {worst.share:.1%} of {worst.lists:,} lists"
        why.append(f"{said}, and a fair coin gives it half of them (p = {worst.p:.1g})")
    if mixed.method == "team-draft":
        rounds = mixed.positions.engine.rows(
            f"""
            SELECT count(*) AS rounds, count(*) FILTER (teams = 1) AS twice
            FROM (SELECT count(DISTINCT team) AS teams FROM {mixed.positions}
                  GROUP BY serp, (rank + 1) // 2 HAVING count(team) = 2)"""
        )[0]
        if rounds["twice"] > BROKEN_ROUNDS * rounds["rounds"]:
            share = rounds["twice"] / rounds["rounds"]
            why.append(f"one ranker picked twice in {share:.1%} of the rounds, so the lists are no team drafts")
    return tuple(why)


def outcomes_of(
    log: InteractionLog, mixed: MixedLists, sliced: Relation | None = None, *, count_repeated: bool
) -> Outcomes:
    """Give what every list with a click says."""
    part, join = ("s.slice", f"LEFT JOIN {sliced} AS s ON s.serp = p.serp") if sliced is not None else ("''", "")
    rows = log.engine.arrow(
        f"""
        SELECT serp, dense_rank() OVER (ORDER BY unit) - 1 AS unit, part, share FROM (
            SELECT {"" if count_repeated else "DISTINCT"} p.serp, p.unit, coalesce({part}, '') AS part, p.rank, p.share
            FROM {log.event} AS e JOIN {mixed.positions} AS p
                ON e.serp = p.serp AND coalesce(e.object_id = p.object_id, e.rank = p.rank)
            {join} WHERE e.action = 'click') ORDER BY serp"""
    )
    serp, unit = (rows[name].to_numpy() for name in ("serp", "unit"))
    share = rows["share"].to_numpy().astype(np.float64)  # NaN: it counts for neither
    _, begin, many = np.unique(serp, return_index=True, return_counts=True)
    names, part_of = np.unique(np.array(rows["part"].to_pylist(), dtype=object)[begin], return_inverse=True)
    win, loss = more_clicks(share, many)
    signed = np.nan_to_num(2.0 * share - 1.0)
    credit = np.add.reduceat(signed, begin)
    return Outcomes(unit[begin], part_of, win, loss, credit, tuple(map(str, names)))


def more_clicks(share: Floats, many: Ints) -> tuple[Floats, Floats]:
    """Give by list the probability that more of its clicks are the other ranker's than not, and that fewer are.

    Click after click, the distribution of the difference is moved up and down: work grows with the square of the
    clicks, where going through all assignments would double with each.

    Parameters
    ----------
    share
        Of each click, list after list: the probability that it is the other ranker's; NaN: it is nobody's.
    many
        Clicks of each list.

    Examples
    --------
    >>> more_clicks(np.array([0.9, 0.5]), np.array([2]))
    (array([0.45]), array([0.05]))
    """
    win, loss = np.zeros(len(many)), np.zeros(len(many))
    first = np.cumsum(many) - many
    for begin in range(0, len(many), _LOT):
        lot = slice(begin, begin + _LOT)
        most = int(many[lot].max(initial=0))
        chances = np.zeros((len(many[lot]), 2 * most + 1))
        chances[:, most] = 1.0
        for nth in range(most):
            rows = np.flatnonzero(many[lot] > nth)
            p = share[first[lot][rows] + nth]
            rows, p = rows[~np.isnan(p)], p[~np.isnan(p)][:, None]
            before = chances[rows]
            after = np.zeros_like(before)
            after[:, 1:] += p * before[:, :-1]
            after[:, :-1] += (1.0 - p) * before[:, 1:]
            chances[rows] = after
        win[lot], loss[lot] = chances[:, most + 1 :].sum(axis=1), chances[:, :most].sum(axis=1)
    return win, loss
