"""`against_qrels`: whether judgments predict what users do."""

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
from judged.online.log import names_of, need
from judged.online.metrics import written
from judged.online.offline.answer import OfflineOnline
from judged.online.offline.concordance import Compared, calibration, relation, topic_relation
from judged.online.offline.joined import joined_pages, keyed, list_codes, lists_of, rests_on
from judged.scoring.default_measures import CLICKED_MEASURES
from judged.scoring.evaluation.evaluate import score_lists
from judged.scoring.evaluation.inputs import measures_of
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.joined import Joined, Unit, Which
    from judged.results.types import Floats, Ints, Strings
    from judged.scoring.measures.base import Measure


@dataclass(frozen=True)
class Outcome:
    """An outcome of a page.

    Parameters
    ----------
    name, title
        Its name, and what it is.
    column
        Of the facts of a page (`judged.online.facts.columns.COLUMNS`); ``{t}`` stands for seconds of dwell.
    better
        1: more is better, -1: less is.
    clock
        It needs a log with a clock.
    share
        It lies between 0 and 1 on every page.
    """

    name: str
    title: str
    column: str
    better: Literal[-1, 1]
    clock: bool = False
    share: bool = True


_ALL = (
    Outcome("satisfied", "a result was opened for {t} s or longer, or last in its session",
            "satisfied_page_{t}", 1, clock=True),
    Outcome("clicked", "a result was opened", "clicked", 1),
    Outcome("first click RR", "1 / rank of the first click, 0 without one", "first_rr", 1),
    Outcome("best click RR", "1 / rank of the highest result opened, 0 without one", "topmost_rr", 1),
    Outcome("opened", "how many results were opened", "opened", 1, share=False),
    Outcome("abandoned", "nothing was opened", "abandoned", -1),
    Outcome("reformulated", "the next query of the session says it otherwise", "reformulated", -1, clock=True),
)  # fmt: skip

OUTCOMES = {one.name: one for one in _ALL}
"""The outcomes by name."""

DEFAULT_OUTCOMES = ("satisfied", "clicked", "first click RR")
"""Where nothing is said; those that the log can tell."""


def outcomes_of(names: Sequence[str] | str | None, log: InteractionLog) -> tuple[Outcome, ...]:
    """Give outcomes by name.

    Raises
    ------
    InputError
        If there is no such outcome, or the log cannot tell it.
    """
    if names is None:
        return tuple(OUTCOMES[name] for name in DEFAULT_OUTCOMES if log.has_time or not OUTCOMES[name].clock)
    found: list[Outcome] = []
    for name in names_of(outcomes=names):
        if name not in OUTCOMES:
            raise InputError(f"no outcome {name!r}", fix=f"one of {', '.join(OUTCOMES)}")
        if OUTCOMES[name].clock and not log.has_time:
            raise InputError(f"{log.name} has no clock, and {name} needs one", fix="take clicked or first click RR")
        found.append(OUTCOMES[name])
    if not found:
        raise InputError("no outcome is given", fix=f"some of {', '.join(OUTCOMES)}")
    return tuple(found)


def page_outcomes(log: InteractionLog, outcomes: Sequence[Outcome], seconds: float) -> Relation:
    """Give one row a page: ``serp``, and an outcome a column, ``outcome_0`` and so on."""
    columns = [one.column.format(t=written(seconds)) for one in outcomes]
    pages = page_facts(log, columns, FactSettings())
    made = [
        f"CAST({pages.columns[column]} AS DOUBLE) / {SCALES.get(column, 1)} AS outcome_{at}"
        for at, column in enumerate(columns)
    ]
    return log.engine.query(f"SELECT serp, {', '.join(made)} FROM {pages.joined}")


_JUDGED = 2_000_000  # judged pairs that are copied at a time


def page_scores(log: InteractionLog, joined: Joined, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    """Score what pages show.

    A measure scores one ranking a topic, and many pages have the same topic: every different list becomes a topic of
    its own, with all the judgments of its topic, so that ideals and numbers of relevant documents are the topic's and
    not the page's. Only one page of each different list is fetched.

    Parameters
    ----------
    log
        Where pages show what they show; a page begins at rank 1 of its ranking, wherever it stands in the result list.
    joined
        N pages, and their topics.
    qrels
        The judgments.
    measures
        M measures.

    Returns
    -------
    (M, N) float64
        NaN where a measure is undefined.
    """
    _, first, same = np.unique(list_codes(log, joined), return_index=True, return_inverse=True)
    topic = joined.topic[first]
    starts, doc = lists_of(log, joined.serp[first], topic)
    values = np.full((len(measures), len(first)), np.nan)
    for part in _parts(np.diff(qrels.index.starts)[topic]):
        values[:, part] = _scored(starts[part.start : part.stop + 1], doc, topic[part], qrels, measures)
    return values[:, same.ravel()]


def _parts(sizes: Ints) -> Iterator[slice]:
    """Cut lists into parts with a bounded number of judged pairs."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _JUDGED, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


def _scored(starts: Ints, doc: Strings, topic: Ints, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    """Score some pages by the public way: judgments, run, measures."""
    sizes = np.diff(starts)
    names = pa.array([f"{at:09}" for at in range(len(sizes))], pa.string())
    rows = np.arange(starts[0], starts[-1])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    shown = {"query_id": names.take(pa.array(owner)), "doc_id": doc.take(pa.array(rows)), "score": -rows.astype(float)}
    judgments = _copied(qrels, topic, names)
    judged = judge(judgments, Run.of(pa.table(shown), name="pages"))
    return score_lists([judged], measures).values[0]


def _copied(qrels: Qrels, topics: Ints, names: Strings) -> Qrels:
    """Give each list its topic's judgments, under the list's own name."""
    of_row = pc.index_in(qrels.table["query_id"], value_set=qrels.index.topic_ids).to_numpy()
    order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[order], np.arange(len(qrels.index.topics) + 1))
    rows, owner = _ranges(bounds[topics], bounds[topics + 1])
    table = qrels.table.take(pa.array(order[rows]))
    at = table.column_names.index("query_id")
    return Qrels(
        table.set_column(at, "query_id", names.take(pa.array(owner))), qrels.name, qrels.where, origin=qrels.origin
    )


def _ranges(begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Write out ranges of numbers, and which range each comes from."""
    lengths = ends - begins
    owner = np.repeat(np.arange(len(begins)), lengths)
    return np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + begins[owner], owner


JUDGED_AT = 10
"""So deep a page is looked at for how much of it is judged."""


def against_qrels(
    log: InteractionLog,
    qrels: Any,
    *,
    measures: Any = CLICKED_MEASURES,
    outcomes: Sequence[str] | str | None = None,
    topics: Any = None,
    by: str | None = None,
    pages: Which = "first",
    dwell: float = 30.0,
    least_judged: float = 0.8,
    bins: int = 5,
    least_pages: int = 3,
    unit: Unit = "user",
    level: float = 0.95,
) -> OfflineOnline:
    """Score the lists that users saw by judgments, and see whether better scores go with better outcomes.

    Parameters
    ----------
    log
        What users did.
    qrels
        Judgments: a `Qrels`, or anything that `Qrels.of` and `Qrels.read` take.
    measures
        Measures or names, one or several.
    outcomes
        Of ``satisfied``, ``clicked``, ``first click RR``, ``best click RR``, ``opened``, ``abandoned``,
        ``reformulated``. None: the first three, as far as the log can tell them.
    topics
        How a page finds its topic: the name of a column of the log; or the texts of topics (`Topics`, a path, ``{id:
        text}``), which are compared with what was typed. None: the column ``topic``, or else ``query_id``.
    by
        A column of `log.serp` to slice by.
    pages
        ``first``: of each result list only its first page. ``all``: later pages too, each as a ranking of its own.
    dwell
        Seconds that make an opened result satisfying.
    least_judged
        A page counts if at least this share of its first 10 results is judged; the others are reported.
    bins
        Of the calibration.
    least_pages
        A topic counts among topics if it has so many pages.
    unit
        Whose pages are not independent: ``user`` or ``session``.
    level
        Of the intervals.

    Returns
    -------
    OfflineOnline

    Raises
    ------
    InputError
        If the judgments cannot be read, an option makes no sense, or no page has a judged topic.
    MeasureError
        If a measure does not exist, or is neither better high nor low.

    Notes
    -----
    Clicks stop at what was shown, and lean towards the top whatever stands there: a measure that predicts clicks need
    not predict satisfaction. What was shown was made by some ranker: where all pages are alike, nothing can correlate.

    Intervals are made of what each unit adds to an error (`judged.online.offline.concordance`), and so allow for other
    users or sessions with pages on these topics: topics are not drawn anew, and others may tell something else. Only
    the interval of Spearman's rho takes the topics for a sample.
    """
    need(log=log, by=by, pages=pages, unit=unit, level=level, dwell=dwell)
    need(measures=measures, least_judged=least_judged, bins=bins, least_pages=least_pages)
    judgments = Qrels.read(qrels) if isinstance(qrels, (str, Path)) else Qrels.of(qrels)
    wanted, looked_at = measures_of(measures), outcomes_of(outcomes, log)
    if neither := [one for one in wanted if one.properties.higher_is_better is None]:
        raise MeasureError(f"{neither[0]} is neither better high nor low. Fix: take another, such as nDCG@10")
    joined = joined_pages(log, judgments, topics, by=by, unit=unit, which=pages)
    share = parse(f"Judged@{JUDGED_AT}")
    scores = page_scores(log, joined, judgments, [share, *wanted])
    enough = scores[0] >= least_judged - 1e-12
    if not enough.any():
        problem = f"no page has {least_judged:.0%} of its first {JUDGED_AT} results judged"
        raise InputError(problem, fix="judge more of what is shown, or lower least_judged")
    joined = joined.of(enough, f"under {least_judged:.0%} of the first {JUDGED_AT} results judged")
    scores = scores[:, enough]
    values = _outcomes(log, joined, looked_at, dwell)
    index = judgments.index
    relevant = np.bincount(index.topic[index.grade > 0], minlength=len(index.topics))
    compared = [
        Compared(str(measure), outcome.name, scores[at + 1], values[to],
                 (1 if measure.properties.higher_is_better else -1, outcome.better), joined.unit, joined.topic,
                 joined.slices, outcome.share)
        for at, measure in enumerate(wanted) for to, outcome in enumerate(looked_at)
    ]  # fmt: skip
    compared = [one.over(~np.isnan(one.score)) for one in compared]
    relations = [relation(one, None, level) for one in compared]
    for at, name in enumerate(joined.values):
        relations += [relation(one.over(one.slice == at), name, level) for one in compared]
    by_topic = [topic_relation(one, least_pages, level) for one in compared]
    return OfflineOnline(
        **rests_on(log, judgments, joined, by, unit, level),
        judged=float(scores[0].mean()),
        judged_at=JUDGED_AT,
        least_judged=least_judged,
        hopeless=int((relevant[joined.topic] == 0).sum()),
        measures=tuple(str(one) for one in wanted),
        outcomes=tuple(one.name for one in looked_at),
        meanings=tuple(one.title.format(t=f"{dwell:g}") for one in looked_at),
        worse=tuple(one.name for one in looked_at if one.better < 0),
        least_pages=least_pages,
        relations=tuple(relations),
        calibration=tuple(one for pair in compared for one in calibration(pair, bins, level)),
        topics=tuple(one for one in by_topic if one is not None),
    )


def _outcomes(log: InteractionLog, joined: Joined, outcomes: Sequence[Outcome], dwell: float) -> Floats:
    """Fetch the outcomes of these pages: (O, N)."""
    with log.engine.scratch():
        made, pages = page_outcomes(log, outcomes, dwell), keyed(log, joined.serp, joined.topic)
        table = log.engine.arrow(f"SELECT o.* FROM {made} AS o JOIN {pages} AS p ON p.serp = o.serp ORDER BY p.page")
    return np.stack([table[f"outcome_{at}"].to_numpy() for at in range(len(outcomes))]).astype(np.float64)
