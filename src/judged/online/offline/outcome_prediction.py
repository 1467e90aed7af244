"""`against_qrels`: prediction of user behavior by judgments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, MeasureError
from judged.online.facts.columns import SCALES
from judged.online.facts.pages import FactSettings, page_facts
from judged.online.log import parse_names, validate
from judged.online.metrics import format_parameter
from judged.online.offline.concordance import ScoredPages, calibration_bins, outcome_relation, topic_relation
from judged.online.offline.outcome_results import OfflineOnline
from judged.online.offline.page_topics import find_page_topics, list_codes, lists_of, register_pages, shared_fields
from judged.results.spelling import use_one_of
from judged.scoring.default_measures import CLICKED_MEASURES
from judged.scoring.evaluation.evaluate import score_lists
from judged.scoring.evaluation.inputs import measures_of
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.page_topics import PageSelection, PageTopics, Unit
    from judged.results.types import Floats, Ints, Strings
    from judged.scoring.measures.base import Measure


@dataclass(frozen=True)
class PageOutcome:
    """User behavior on a page.

    Parameters
    ----------
    name, title
        Name and description.
    column
        Page fact (`judged.online.facts.columns.COLUMNS`), with ``{t}`` for the dwell time in seconds.
    direction
        1 if higher is better, -1 if lower is better.
    needs_clock
        Whether it needs a log with times.
    is_share
        Whether each value is between 0 and 1.
    """

    name: str
    title: str
    column: str
    direction: Literal[-1, 1]
    needs_clock: bool = False
    is_share: bool = True


_OUTCOMES = (
    PageOutcome("satisfied", "a click whose visit lasts {t} s or longer, or is the last visit of the session",
                "satisfied_page_{t}", 1, needs_clock=True),
    PageOutcome("clicked", "a click", "clicked", 1),
    PageOutcome("first click RR", "reciprocal rank of the first click in time, or 0 without a click", "first_rr", 1),
    PageOutcome("best click RR", "reciprocal rank of the topmost clicked result, or 0 without a"
    " click", "topmost_rr", 1),
    PageOutcome("opened", "number of clicked results", "opened", 1, is_share=False),
    PageOutcome("abandoned", "no click", "abandoned", -1),
    PageOutcome("reformulated", "the next query of the session is a reformulation", "reformulated", -1,
                needs_clock=True),
)  # fmt: skip

OUTCOMES = {outcome.name: outcome for outcome in _OUTCOMES}
"""Outcomes by name."""

DEFAULT_OUTCOMES = ("satisfied", "clicked", "first click RR")
"""Outcomes by default, if the log has the data."""


def outcomes_of(names: Sequence[str] | str | None, log: InteractionLog) -> tuple[PageOutcome, ...]:
    """Return outcomes by name.

    Raises
    ------
    InputError
        If an outcome is unknown, or the log lacks its data.
    """
    if names is None:
        return tuple(OUTCOMES[name] for name in DEFAULT_OUTCOMES if log.has_time or not OUTCOMES[name].needs_clock)
    outcomes: list[PageOutcome] = []
    for name in parse_names(outcomes=names):
        if name not in OUTCOMES:
            raise InputError(f"unknown outcome {name!r}", fix=use_one_of(OUTCOMES))
        if OUTCOMES[name].needs_clock and not log.has_time:
            raise InputError(
                f"the outcome {name} requires timestamps, but {log.name} has none",
                fix="use the outcome 'clicked' or 'first click RR'",
            )
        outcomes.append(OUTCOMES[name])
    if not outcomes:
        raise InputError("`outcomes` is empty", fix=f"use some of {', '.join(OUTCOMES)}")
    return tuple(outcomes)


def page_outcomes(log: InteractionLog, outcomes: Sequence[PageOutcome], seconds: float) -> Relation:
    """Return a table of pages with ``serp``, and a column for each outcome: ``outcome_0`` and so on."""
    columns = [outcome.column.format(t=format_parameter(seconds)) for outcome in outcomes]
    pages = page_facts(log, columns, FactSettings())
    values = [f"CAST({pages.columns[column]} AS DOUBLE) / {SCALES.get(column, 1)}" for column in columns]
    expressions = [f"{value} AS outcome_{i}" for i, value in enumerate(values)]
    return log.engine.query(f"SELECT serp, {', '.join(expressions)} FROM {pages.joined}")


_MAX_JUDGED_PAIRS = 2_000_000  # copied judgments per batch, which limits memory


def page_scores(log: InteractionLog, page_topics: PageTopics, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    """Score the lists that pages show.

    Measures score one ranking per topic, but many pages have the same topic. Each distinct list therefore becomes a
    topic with a copy of all judgments of its topic. Only one page per distinct list is fetched.

    Parameters
    ----------
    log
        Interaction log. Each page starts at rank 1, even a later page of a result list.
    page_topics
        N pages with their topics.
    qrels
        Judgments.
    measures
        M measures.

    Returns
    -------
    (M, N) float64
        NaN where a measure is undefined.
    """
    # Score each distinct list once.
    _, first_pages, list_index = np.unique(list_codes(log, page_topics), return_index=True, return_inverse=True)
    topic = page_topics.topic[first_pages]
    starts, doc = lists_of(log, page_topics.serp[first_pages], topic)
    values = np.full((len(measures), len(first_pages)), np.nan)
    for batch in _batches(np.diff(qrels.index.starts)[topic]):
        values[:, batch] = _score_batch(starts[batch.start : batch.stop + 1], doc, topic[batch], qrels, measures)
    return values[:, list_index.ravel()]


def _batches(sizes: Ints) -> Iterator[slice]:
    """Yield slices of lists with a bounded number of judged pairs."""
    cumulative = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        pairs_before = int(cumulative[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(cumulative, pairs_before + _MAX_JUDGED_PAIRS, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


def _score_batch(starts: Ints, doc: Strings, topic: Ints, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    sizes = np.diff(starts)
    list_names = pa.array([f"{i:09}" for i in range(len(sizes))], pa.string())
    rows = np.arange(starts[0], starts[-1])
    list_index = np.repeat(np.arange(len(sizes)), sizes)
    query_ids, doc_ids = list_names.take(pa.array(list_index)), doc.take(pa.array(rows))
    run_columns = {"query_id": query_ids, "doc_id": doc_ids, "score": -rows.astype(float)}
    # Lists become topics, so that the public scoring functions apply unchanged.
    judgments = _copy_judgments(qrels, topic, list_names)
    judged_lists = judge(judgments, Run.of(pa.table(run_columns), name="pages"))
    return score_lists([judged_lists], measures).values[0]


def _copy_judgments(qrels: Qrels, topics: Ints, list_names: Strings) -> Qrels:
    """Copy the judgments of each list's topic under the name of the list."""
    row_topics = pc.index_in(qrels.table["query_id"], value_set=qrels.index.topic_ids).to_numpy()
    order = np.argsort(row_topics, kind="stable")
    topic_starts = np.searchsorted(row_topics[order], np.arange(len(qrels.index.topics) + 1))
    rows, list_index = _expand_ranges(topic_starts[topics], topic_starts[topics + 1])
    table = qrels.table.take(pa.array(order[rows]))
    column = table.column_names.index("query_id")
    table = table.set_column(column, "query_id", list_names.take(pa.array(list_index)))
    return Qrels(table, qrels.name, qrels.where, origin=qrels.origin)


def _expand_ranges(begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the concatenated ranges, and the range of each number."""
    lengths = ends - begins
    range_index = np.repeat(np.arange(len(begins)), lengths)
    offsets = begins - (np.cumsum(lengths) - lengths)  # from the position in the output to the number
    return np.arange(len(range_index)) + offsets[range_index], range_index


JUDGED_DEPTH = 10
"""Depth of the share of judged results of a page."""


def against_qrels(
    log: InteractionLog,
    qrels: Any,
    *,
    measures: Any = CLICKED_MEASURES,
    outcomes: Sequence[str] | str | None = None,
    topics: Any = None,
    by: str | None = None,
    pages: PageSelection = "first",
    dwell: float = 30.0,
    min_judged: float = 0.8,
    bins: int = 5,
    min_pages: int = 3,
    unit: Unit = "user",
    level: float = 0.95,
) -> OfflineOnline:
    """Score the lists that users saw, and estimate the concordance of scores with outcomes.

    Parameters
    ----------
    log
        Interaction log.
    qrels
        Judgments: a `Qrels`, or input of `Qrels.of` or `Qrels.read`.
    measures
        Measures or their names.
    outcomes
        Some of ``satisfied``, ``clicked``, ``first click RR``, ``best click RR``, ``opened``, ``abandoned``,
        ``reformulated``. None: the first three, if the log has their data.
    topics
        Mapping of pages to topics: the name of a column of the log; or texts of topics (`Topics`, a path, ``{id:
        text}``) that are compared with queries. None: the column ``topic``, or ``query_id``.
    by
        Column of `log.serp` for slices.
    pages
        ``first``: the first page of each result list. ``all``: later pages, too, each as a separate ranking.
    dwell
        Minimum seconds of a satisfied click.
    min_judged
        Minimum share of judged results among the first 10 of a page; other pages are excluded.
    bins
        Number of calibration bins.
    min_pages
        Minimum number of pages of a topic for the rank correlation over topics.
    unit
        Cluster of dependent pages: ``user`` or ``session``.
    level
        Confidence level of the intervals.

    Returns
    -------
    OfflineOnline

    Raises
    ------
    InputError
        If the judgments cannot be read, an option is invalid, or no page has a judged topic.
    MeasureError
        If a measure does not exist, or has no direction.

    Notes
    -----
    Clicks have selection bias and position bias: a measure that predicts clicks need not predict satisfaction. Without
    variation between the shown lists, no correlation is possible.

    Intervals are clustered by unit (`judged.online.offline.concordance`). They generalize to other users or sessions
    with these topics, but not to other topics. Only the interval of Spearman's rho treats topics as a sample.
    """
    validate(log=log, by=by, pages=pages, unit=unit, level=level, dwell=dwell)
    validate(measures=measures, min_judged=min_judged, bins=bins, min_pages=min_pages)
    judgments = Qrels.read(qrels) if isinstance(qrels, (str, Path)) else Qrels.of(qrels)
    selected_measures, selected_outcomes = measures_of(measures), outcomes_of(outcomes, log)
    if undirected := [measure for measure in selected_measures if measure.properties.higher_is_better is None]:
        raise MeasureError(
            f"{undirected[0]} has no direction (higher or lower is better). Fix: use another measure, such as nDCG@10"
        )
    page_topics = find_page_topics(log, judgments, topics, by=by, unit=unit, selection=pages)
    judged_share = parse(f"Judged@{JUDGED_DEPTH}")
    scores = page_scores(log, page_topics, judgments, [judged_share, *selected_measures])
    # Tolerance for rounding of shares such as 8 / 10.
    is_judged_enough = scores[0] >= min_judged - 1e-12
    if not is_judged_enough.any():
        problem = f"no page has judgments of at least {min_judged:.0%} of the top {JUDGED_DEPTH} results"
        raise InputError(problem, fix="judge more of the shown results, or use a lower min_judged (--min-judged)")
    reason = f"where less than {min_judged:.0%} of the top {JUDGED_DEPTH} results are judged"
    page_topics = page_topics.select(is_judged_enough, reason)
    scores = scores[:, is_judged_enough]
    values = _read_outcomes(log, page_topics, selected_outcomes, dwell)
    index = judgments.index
    relevant = np.bincount(index.topic[index.grade > 0], minlength=len(index.topics))
    groups = page_topics.unit, page_topics.topic, page_topics.slices
    scored: list[ScoredPages] = []
    for measure, score in zip(selected_measures, scores[1:], strict=True):
        sign, is_defined = 1 if measure.properties.higher_is_better else -1, ~np.isnan(score)
        for outcome, value in zip(selected_outcomes, values, strict=True):
            signs = sign, outcome.direction
            scored_pages = ScoredPages(str(measure), outcome.name, score, value, signs, *groups, outcome.is_share)
            scored.append(scored_pages.select(is_defined))
    relations = [outcome_relation(scored_pages, None, level) for scored_pages in scored]
    for i, name in enumerate(page_topics.values):
        sliced = [scored_pages.select(scored_pages.slice == i) for scored_pages in scored]
        relations += [outcome_relation(scored_pages, name, level) for scored_pages in sliced]
    topic_relations = [topic_relation(scored_pages, min_pages, level) for scored_pages in scored]
    return OfflineOnline(
        **shared_fields(log, judgments, page_topics, by, unit, level),
        judged=float(scores[0].mean()), judged_depth=JUDGED_DEPTH, min_judged=min_judged, min_pages=min_pages,
        pages_without_relevant=int((relevant[page_topics.topic] == 0).sum()), relations=tuple(relations),
        measures=tuple(str(measure) for measure in selected_measures),
        outcomes=tuple(outcome.name for outcome in selected_outcomes),
        descriptions=tuple(outcome.title.format(t=f"{dwell:g}") for outcome in selected_outcomes),
        lower_is_better=tuple(outcome.name for outcome in selected_outcomes if outcome.direction < 0),
        calibration=tuple(row for scored_pages in scored for row in calibration_bins(scored_pages, bins, level)),
        topics=tuple(row for row in topic_relations if row is not None),
    )  # fmt: skip


def _read_outcomes(
    log: InteractionLog, page_topics: PageTopics, outcomes: Sequence[PageOutcome], dwell: float
) -> Floats:
    """Return the outcomes of pages, (O, N)."""
    with log.engine.scratch():
        values, pages = page_outcomes(log, outcomes, dwell), register_pages(log, page_topics.serp, page_topics.topic)
        table = log.engine.arrow(f"SELECT o.* FROM {values} AS o JOIN {pages} AS p ON p.serp = o.serp ORDER BY p.page")
    return np.stack([table[f"outcome_{i}"].to_numpy() for i in range(len(outcomes))]).astype(np.float64)
