"""Pages with logged propensities, another ranker's lists, and the weights of one for the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.data import files
from judged.data.records import records_of
from judged.data.run import Run
from judged.errors import InputError
from judged.online.clicks.pairs import column_and_texts
from judged.online.engine import identifier
from judged.results import counted
from judged.scoring.judging.align import align

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.online.log import InteractionLog

_ROUNDING = 1e-3  # by which the probabilities of a rank may miss 1


@dataclass(frozen=True, eq=False)
class LoggedPages:
    """Pages whose results have propensities: an element each result, ordered by page and rank.

    ``topic``: of the other ranker, from 0. ``page``, ``unit``, ``rank``, ``doc``: codes from 0; ``unit`` is the page's.
    ``bare``: pages without propensities; ``other``: pages without a topic of the ranker. Neither is among the results.
    """

    topic: Ints
    page: Ints
    unit: Ints
    rank: Ints
    doc: Ints
    clicked: Floats
    propensity: Floats
    bare: int
    other: int


class Target(NamedTuple):
    """What the other ranker shows: codes of topic, rank and document in ascending order, and their probabilities.

    ``number``: documents of the log, and one that stands for all others. ``is_run``: one list for each topic.
    """

    name: str
    cells: Ints
    chance: Floats
    number: int
    is_run: bool


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights by page and rank, (N, K); a rank that a page lacks has the weight 1 and the reward 0.

    ``known``: ranks that pages have. ``mass``: probability that the other ranker shows anything at the rank; ``never``:
    that it shows what was never logged there. ``prefix_mass`` and ``missing``: the same for the list down to the rank.
    """

    ratio: Floats
    rewards: Floats
    known: Bools
    mass: Floats
    never: Floats
    prefix_mass: Floats
    missing: Floats

    @property
    def prefix(self) -> Floats:
        """Products of weights down to each rank."""
        return np.cumprod(self.ratio, axis=1).astype(np.float64)


def read_pages(log: InteractionLog, run: Any, topics: Any, unit: str, depth: int) -> tuple[LoggedPages, Target]:
    """Read pages with propensities, and what the other ranker shows for them.

    Raises
    ------
    InputError
        If no page, or only a part of the results of pages, has propensities, or no page has a topic of the run.
    """
    column, texts = column_and_texts(log, topics)
    rows = _rows(log, column, unit, depth)
    propensity = rows["propensity"].to_numpy(zero_copy_only=False).astype(np.float64)
    _, page = np.unique(rows["serp"].to_numpy(), return_inverse=True)
    has = ~np.isnan(propensity)
    some = np.bincount(page, has) > 0
    if not some.any():
        fix = "log with each result how likely it was shown at its rank: propensity"
        raise InputError("the log has no propensities", fix=fix, path=log.name)
    if lacking := int((some[page] & ~has).sum()):
        problem = f"{counted(lacking, 'result')} in the first {depth} ranks have no propensity, though others on their"
        fix = "log it for all results of a page (1 for what was sure to be there), or look at fewer ranks: depth"
        raise InputError(f"{problem} pages do", fix=fix, path=log.name)
    if not ((propensity[has] > 0) & (propensity[has] <= 1)).all():
        odd = propensity[has][~((propensity[has] > 0) & (propensity[has] <= 1))][0]
        problem = f"a propensity must be above 0 and at most 1, got {odd:g}"
        raise InputError(problem, fix="log the probability of what was shown", path=log.name)
    if ambiguous := int(rows["ambiguous"].to_numpy(zero_copy_only=False).sum()):
        problem = f"{counted(ambiguous, 'result')} that a page shows twice were clicked, and the click has no rank"
        raise InputError(problem, fix="log the position of each click", path=log.name)
    docs, doc = np.unique(rows["object_id"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    rank = rows["rank"].to_numpy().astype(np.int64) - 1
    if _is_policy(run):
        topic, target = np.zeros(len(rank), dtype=np.int64), _policy(run, docs, depth, int(rank[has].max()) + 1)
    else:
        names = [(texts or {}).get(name, "" if texts else name) for name in map(str, rows["topic"].to_pylist())]
        topic, target = _ranked(Run.of(run), names, docs, depth)
    kept = has & (topic >= 0)
    if not kept.any():
        raise InputError("no page has a topic of the run", fix="say how pages find topics: topics=", path=log.name)
    _, own = np.unique(page[kept], return_inverse=True)
    _, unit_of = np.unique(rows["unit"].to_numpy(zero_copy_only=False)[kept], return_inverse=True)
    units = np.zeros(own.max() + 1, dtype=np.int64)
    units[own] = unit_of
    clicked = rows["clicked"].to_numpy(zero_copy_only=False).astype(np.float64)
    pages = LoggedPages(
        topic[kept], own, units, rank[kept], doc[kept], clicked[kept], propensity[kept],
        bare=int((~some).sum()), other=int(some.sum()) - len(units),
    )  # fmt: skip
    return pages, target


def _rows(log: InteractionLog, column: str | None, unit: str, depth: int) -> Any:
    """Return a row for each result: page, unit, topic, rank, document, propensity, and whether it was clicked.

    If a page shows a document twice, the rank of the click tells which of both was clicked.
    """
    topic = "''" if column is None else f"p.{identifier(column)}"
    return log.engine.arrow(
        f"""
        WITH shown AS (SELECT serp, rank, object_id, propensity, count(*) OVER (PARTITION BY serp, object_id) AS times
            FROM {log.shown}),
        clicks AS (SELECT DISTINCT serp, object_id, rank FROM {log.event} WHERE action = 'click')
        SELECT p.serp, p.{identifier(unit)} AS unit, {topic} AS topic, s.rank, s.object_id, s.propensity,
            bool_or(c.object_id IS NOT NULL AND (s.times = 1 OR c.rank = s.rank)) IS TRUE AS clicked,
            bool_or(c.object_id IS NOT NULL AND s.times > 1 AND c.rank IS NULL) IS TRUE AS ambiguous
        FROM {log.serp} AS p JOIN shown AS s ON s.serp = p.serp
        LEFT JOIN clicks AS c ON c.serp = s.serp AND c.object_id = s.object_id
        WHERE s.rank <= {depth} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 4"""
    )


def _is_policy(run: Any) -> bool:
    """Whether a table of ranks and probabilities was given, and no run."""
    if isinstance(run, (str, Path)):
        return b"probability" in files.head(files.local(run)).split(b"\n", 1)[0]
    if isinstance(run, list):
        return bool(run) and isinstance(run[0], Mapping) and "probability" in run[0]
    names: Any = getattr(run, "column_names", getattr(run, "columns", ()))
    return "probability" in list(names)


def _policy(run: Any, docs: Any, depth: int, deepest: int) -> Target:
    """Read how likely a ranker that does not depend on the query shows each document at each rank."""
    code, number = {name: at for at, name in enumerate(docs.tolist())}, len(docs) + 1
    cells, chance = list[int](), list[float]()
    fix = "give rank, doc_id and probability"
    for line, row in records_of(run, "policy", "a policy", fix):
        try:
            rank, doc, probability = int(row["rank"]), str(row["doc_id"]), float(row["probability"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError("a row cannot be read", fix=fix, path="policy", line=line) from None
        if not 0 <= probability <= 1:
            problem = f"a probability must be between 0 and 1, got {probability:g}"
            raise InputError(problem, fix=fix, path="policy", line=line)
        if 1 <= rank <= depth:
            cells.append((rank - 1) * number + code.get(doc, len(docs)))
            chance.append(probability)
    name = str(run) if isinstance(run, str) else "policy"
    target = _target(name, np.array(cells, dtype=np.int64), np.array(chance), number, is_run=False)
    sums = np.bincount(target.cells // number, target.chance, deepest)
    for rank in np.flatnonzero(np.abs(sums[:deepest] - 1.0) > _ROUNDING)[:1].tolist():
        problem = f"the probabilities of rank {rank + 1} must add up to 1, got {sums[rank]:.4g}"
        fix = f"give all documents of the rank, or look at {counted(rank, 'rank')}: depth" if rank else fix
        raise InputError(problem, fix=fix, path="policy")
    return target


def _ranked(run: Run, names: list[str], docs: Any, depth: int) -> tuple[Ints, Target]:
    """Return the topic of each row, -1 if the run has none, and what the run shows."""
    both = align(run, run, depth=depth)
    place = {query: at for at, query in enumerate(both.query_ids)}
    topic = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    code, number = {name: at for at, name in enumerate(docs.tolist())}, len(docs) + 1
    doc = np.array([code.get(name, len(docs)) for name in both.doc.to_pylist()], dtype=np.int64)
    cells = (both.topic * depth + both.first - 1) * number + doc
    return topic, _target(run.name, cells, np.ones(len(cells)), number, is_run=True)


def _target(name: str, cells: Ints, chance: Floats, number: int, *, is_run: bool) -> Target:
    """Sort cells, and add up what is given twice."""
    unique, place = np.unique(cells, return_inverse=True)
    return Target(name, unique, np.bincount(place, chance, len(unique)).astype(np.float64), number, is_run)


def places(cells: Ints, wanted: Ints) -> Ints:
    """Return where codes are among one or more others in ascending order; -1 if they are not.

    >>> places(np.array([2, 5]), np.array([5, 3])).tolist()
    [1, -1]
    """
    at = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    return np.where(cells[at] == wanted, at, -1)


def weigh(pages: LoggedPages, target: Target, depth: int) -> Weights:
    """Compute weights, and what the log never shows of the other ranker."""
    shape = (len(pages.unit), depth)
    ratio, rewards, known = np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    slot = pages.topic * depth + pages.rank
    at = places(target.cells, slot * target.number + pages.doc)
    where = (pages.page, pages.rank)
    ratio[where] = np.where(at >= 0, target.chance[at], 0.0) / pages.propensity
    rewards[where], known[where] = pages.clicked, True
    topics = max(int(pages.topic.max()), int(target.cells[-1] // target.number // depth)) + 1
    sums = [
        np.bincount(target.cells // target.number, chance, topics * depth).reshape(topics, depth)
        for chance in (target.chance, target.chance * never_logged(pages, target, depth))
    ]
    topic = np.zeros(len(pages.unit), dtype=np.int64)
    topic[pages.page] = pages.topic
    mass, never = np.where(known, sums[0][topic], 1.0), np.where(known, sums[1][topic], 0.0)
    prefix_mass = np.cumprod(mass, axis=1).astype(np.float64)
    if target.is_run:
        # A run shows one list: the log shows its beginning, or it does not.
        fits = np.cumprod(np.where(known, ratio > 0, True), axis=1).astype(np.bool_)
        shown = np.zeros((topics, depth), dtype=np.bool_)
        np.logical_or.at(shown, topic, fits & known)
        missing = np.where(known & ~shown[topic], prefix_mass, 0.0)
        for k in range(1, depth):
            missing[:, k] = np.where(known[:, k], missing[:, k], missing[:, k - 1])
    else:
        missing = prefix_mass - np.cumprod(mass - never, axis=1).astype(np.float64)
    return Weights(ratio, rewards, known, mass, never, prefix_mass, missing)


def never_logged(pages: LoggedPages, target: Target, depth: int) -> Bools:
    """Mark cells of the other ranker that the log never shows."""
    logged = np.unique((pages.topic * depth + pages.rank) * target.number + pages.doc)
    return places(logged, target.cells) < 0
