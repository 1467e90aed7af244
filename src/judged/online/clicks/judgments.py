"""Judgments made of clicks: each with its value, how sure it is, and how much of it is the pair's own evidence."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Origin, Qrels
from judged.data.write import write_trec
from judged.errors import InputError
from judged.labels.labels import Labels
from judged.online.clicks.cells import cells_of, column_and_texts, with_topics
from judged.online.clicks.expected import coec_of, counted_as, looks_of
from judged.online.log import FieldAnswer, need
from judged.results import COUNT, SHARE, TEXT, Column, Sentences, Table, counted, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats
    from judged.results.types import Table as ArrowTable

Grading: TypeAlias = Literal["value", "lower", "people"]
"""How values become grades: as they are; by the lower end of their interval; as people would grade them."""

_COUNTING = {"coec": "clicks", "sat": "satisfied", "purchase": "purchases"}
_THREE = number(3)
_FOLDS, _LEAST_SHARED = 5, 20
_QUANTILES = (0.5, 0.75, 0.9)  # of lower ends, between grades 0, 1, 2 and 3


class Values(NamedTuple):
    """What a source says of pairs: (P,) each."""

    value: Floats  # from the clicks of the pair alone, without bias
    se: Floats  # its standard error, never 0
    low: Floats  # and an interval of the true value; NaN: too little is known
    high: Floats
    drawn: Floats  # the value drawn towards what pairs are in general
    sd: Floats  # of the true value around it
    weight: Floats  # between 0 and 1: how much of `drawn` is `value`
    shown: Floats
    clicks: Floats
    rank: Floats  # at which it was shown, in the mean


@dataclass(frozen=True, eq=False, repr=False)
class ClickJudgments(FieldAnswer):
    """What `judge_clicks` returns. As CSV it is read as judgments, and as labels of the kind ``click``."""

    kind: ClassVar[str] = "click-judgments"
    answers: ClassVar[str] = "{log}: judgments made of clicks ({by})"
    asked: ClassVar[tuple[str, ...]] = (
        "log", "by", "grading", "level", "min_shown", "cuts", "left_out", "nameless", "shared",
    )  # fmt: skip

    log: str
    by: str
    grading: Grading
    level: float
    min_shown: int
    cuts: tuple[float, ...]  # of lower ends, between grades
    left_out: int  # pairs with less evidence
    nameless: int  # pairs whose query has no topic
    shared: int  # pairs that people graded too, by which values became grades
    pairs: ArrowTable  # query_id, doc_id
    grade: Floats
    sd: Floats | None  # of the true grade; None where grades allow for it already
    values: Values
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many there are, of what, and how sure."""
        topics = len(pc.unique(self.pairs["query_id"]))
        made = {
            "value": "grades are values, drawn towards what pairs are in general",
            "lower": f"a grade says between which limits ({', '.join(f'{cut:.3g}' for cut in self.cuts)}) the lower end"
            f" of the {self.level:.0%} interval lies",
            "people": f"grades are what people are expected to give, by {counted(self.shared, 'pair')} of theirs",
        }[self.grading]
        sure = "" if self.sd is None else f", with a standard deviation of {float(np.mean(self.sd)):.2f} in the mean"
        few = counted(self.left_out, "pair was", "pairs were")
        own = f"{float(np.mean(self.values.weight)):.0%} of what they say, in the mean, is evidence on the pair itself"
        return (
            f"{counted(len(self.grade), 'judgment')} of {counted(topics, 'topic')}: {made}{sure}.",
            f"{own}; the rest is what pairs are worth in general.",
            f"{few} shown less than {self.min_shown} times, and left out.",
        )

    @property
    def qrels(self) -> Qrels:
        """The judgments, with ``weight``, ``value`` and ``se`` beside each, and ``sd`` where grades have one.

        Grades of people have no ``value`` and ``se``: the error of a prediction is not that of a measurement.
        """
        named = {"relevance": self.grade, "sd": self.sd, "weight": self.values.weight}
        named |= {} if self.grading == "people" else {"value": self.values.value, "se": self.values.se}
        columns = {name: pa.array(column, pa.float64()) for name, column in named.items() if column is not None}
        table = self.pairs
        for name, column in columns.items():
            table = table.append_column(name, column)
        digest = sha256(repr(table.to_pylist()).encode()).hexdigest()
        origin = Origin(f"clicks: {self.by}", click=len(self.grade), judges=(self.by,), sha256=digest)
        return Qrels(table, f"{self.log} {self.by}", origin=origin)

    @property
    def labels(self) -> Labels:
        """The judgments as labels of the kind ``click``, whose judge is the source."""
        return Labels.of(self.to_arrow(), kind="click")

    def trec(self) -> str:
        """Write grades as qrels of TREC, which have no place for how sure they are."""
        lines = io.StringIO()
        write_trec(self.qrels.table, "qrels", lines, self.log)
        return lines.getvalue()

    def blocks(self) -> tuple[Block, ...]:
        """Give every pair, best first within its topic."""
        count, values = len(self.grade), self.values
        limits = [
            None if self.grading == "people" or math.isnan(low) else (low, high)
            for low, high in zip(values.low.tolist(), values.high.tolist(), strict=True)
        ]
        order = np.lexsort((-self.grade, np.unique(self.pairs["query_id"].to_pylist(), return_inverse=True)[1]))
        measured = "data" if self.grading == "people" else ""
        columns = (
            Column("query_id", self.pairs["query_id"].to_pylist(), TEXT, "topic"),
            Column("doc_id", self.pairs["doc_id"].to_pylist(), TEXT, "document"),
            Column("grade", self.grade.tolist(), number(0 if self.sd is None else 2)),
            Column("sd", [None] * count if self.sd is None else self.sd.tolist(), number(2)),
            Column("weight", values.weight.tolist(), SHARE),
            Column("value", values.value.tolist(), _THREE, ci=limits, only=measured),
            Column("se", [None] * count if measured else values.se.tolist(), _THREE, only=measured),
            Column("shown", values.shown.tolist(), COUNT),
            Column("clicks", values.clicks.tolist(), COUNT),
            Column("rank", values.rank.tolist(), number(1), "mean rank"),
            Column("judge", [self.by] * count, TEXT, only="data"),
            Column("kind", ["click"] * count, TEXT, only="data"),
        )
        table = Table("judgments", columns, labels=2, title="Judgments", folded=count > 1000)
        return Sentences(self.sentences), table.take(order.tolist())


def judge_clicks(
    log: InteractionLog,
    *,
    by: str = "coec",
    grading: Grading | None = None,
    gold: Any = None,
    propensities: Any = None,
    min_shown: int = 10,
    cuts: tuple[float, ...] | None = None,
    topics: Any = None,
    where: str | None = None,
    depth: int = 10,
    dwell: float = 30.0,
    level: float = 0.95,
) -> ClickJudgments:
    """Make judgments of clicks.

    Parameters
    ----------
    log
        What users did.
    by
        ``coec``: clicks over expected clicks; ``sat``: the same of satisfied clicks; ``purchase``: of purchases; or a
        click model, such as ``PBM`` (`judged.online.clicks.fit_model`): how attractive a document is.
    grading
        ``value``: the grade is the value. ``lower``: a whole grade, by the lower end of the interval. ``people``: the
        grade that people are expected to give such a value, by isotonic regression on `gold`. None: ``people`` where
        there is gold, or else ``value``.
    gold
        Judgments by people of some of the pairs, as `Qrels.of` takes them.
    propensities
        As `read_propensities` takes them: by them expected clicks are made, in place of the rates of ranks, which hold
        what stands there as well. For ``coec``, ``sat`` and ``purchase``.
    min_shown
        Pairs shown less often are left out: they stay unjudged.
    cuts
        For ``lower``: limits between grades 0, 1, 2 and so on; None: the quantiles 0.5, 0.75 and 0.9 of lower ends.
    topics
        How a page finds its topic, as for `judged.online.against_qrels`; without it texts of queries are topics.
    where, depth
        As for `cells_of`.
    dwell
        Seconds that satisfy, for ``sat``.
    level
        Of the intervals.

    Raises
    ------
    InputError
        If nothing is left, there is no such source, or too few pairs of `gold` were shown.

    Notes
    -----
    Every pair has a ``value`` from its own clicks with its standard error ``se``, from which `evaluate_uncertain`
    works, and a grade that is drawn towards what pairs are in general, the more the less is known of the pair
    (``weight``); a true grade lies around it with a standard deviation of ``sd``. For ``people`` that is the one of
    people's grades around what is expected, on topics that were left out one fifth at a time; negative grades count
    as 0. Errors take clicks for independent: a user who clicks on one result again and again counts each time.

    Examples
    --------
    >>> from judged.online import read_log
    >>> from judged.data.sample import LOG
    >>> made = judge_clicks(read_log(LOG), min_shown=30)
    >>> made.qrels.table.column_names
    ['query_id', 'doc_id', 'relevance', 'sd', 'weight', 'value', 'se']
    """
    need(log=log, level=level, dwell=dwell)
    chosen: Grading = grading or ("value" if gold is None else "people")
    if chosen not in {"value", "lower", "people"}:
        raise InputError(f"grading is {chosen!r}", fix="take value, lower or people")
    if (chosen == "people") != (gold is not None):
        raise InputError("grades as people give them need judgments by people", fix="give gold with grading people")
    column, texts = column_and_texts(log, topics)
    pairs, values, notes = _values(log, by, propensities, dwell, level, by=column, where=where, depth=depth)
    named = with_topics(pairs, texts)
    nameless = np.asarray(pc.equal(named["query"], ""))
    kept = (values.shown >= min_shown) & ~nameless
    if not kept.any():
        raise InputError(f"no pair was shown {min_shown} times", fix="ask for less evidence (min_shown)", path=log.name)
    named = named.filter(pa.array(kept)).rename_columns(["query_id", "doc_id"])
    values = Values(*(column[kept] for column in values))
    grade, sd, shared, limits = values.drawn, values.sd, 0, tuple[float, ...]()
    if chosen == "lower":
        low = np.nan_to_num(values.low)  # of a pair of which too little is known for an interval
        limits = tuple(cuts or np.unique(np.quantile(low, _QUANTILES)).tolist())
        grade, sd = np.searchsorted(limits, low, side="left").astype(np.float64), None
    elif chosen == "people":
        grade, sd, shared = _as_people(named, values, Qrels.of(gold))
    return ClickJudgments(
        log.name, by, chosen, level, min_shown, limits, int((~kept & ~nameless).sum()), int(nameless.sum()), shared,
        named, grade, sd, values, notes,
    )  # fmt: skip


def _values(
    log: InteractionLog, source: str, propensities: Any, dwell: float, level: float, **choice: Any
) -> tuple[ArrowTable, Values, tuple[Note, ...]]:
    """Ask the source what pairs are worth."""
    cells = cells_of(log, **choice)
    size = cells.pairs.num_rows
    shown = np.bincount(cells.pair, cells.shown, size).astype(np.float64)
    rank = np.bincount(cells.pair, cells.shown * cells.rank, size) / shown
    if source in _COUNTING:
        counting = _COUNTING[source]
        if counting != "clicks":
            cells = cells_of(counted_as(log, counting, dwell), **choice)
        curve, replicates = looks_of(log, propensities, choice.get("where"))
        made = coec_of(cells, log.name, counting, level, propensities=curve, replicates=replicates)
        prior = made.shrunk.prior
        weight = made.expected / (made.expected + prior) if np.isfinite(prior) else np.zeros(size)
        values = Values(*made.ratios, *made.shrunk[:2], weight, shown, made.clicks, rank)
        return cells.pairs, values, made.notes
    if propensities is not None:
        raise InputError(f"{source} estimates how ranks are looked at itself", fix="leave the propensities out")
    from judged.online.clicks import fit_model

    fitted, alone = (fit_model(log, source.upper(), level=level, shrink=how, **choice) for how in ("empirical", "none"))
    if "attractiveness" not in fitted.values:
        raise InputError(f"{source} says nothing of documents", fix="take another model, such as PBM")
    drawn, own = (made.values["attractiveness"] for made in (fitted, alone))
    sd, se = (_known(made.errors["attractiveness"], drawn, shown) for made in (fitted, alone))
    low, high = np.array([ends or (np.nan, np.nan) for ends in alone.limits("attractiveness")]).T
    spread = max(float(np.var(drawn)), 1e-300)
    weight = spread / (spread + sd**2)
    values = Values(own, se, low, high, drawn, sd, weight, shown, fitted.clicked, rank)
    return fitted.pairs, values, fitted.notes


def _known(error: Floats, value: Floats, shown: Floats) -> Floats:
    """Give errors, and that of a share where a model has none: at 0 and at 1."""
    return np.where(np.isfinite(error), error, np.sqrt(value * (1 - value) / shown))


def _as_people(pairs: ArrowTable, values: Values, gold: Qrels) -> tuple[Floats, Floats, int]:
    """Give the grade that people are expected to give each value, and the spread of theirs around it."""
    index = Qrels(pairs.append_column("relevance", pa.array(np.arange(len(pairs)), pa.float64()))).index
    row, known = index.grade.astype(np.int64), human_grades(pairs, gold)
    topic = np.empty(len(pairs), dtype=np.int64)
    topic[row] = index.topic
    both = ~np.isnan(known)
    if both.sum() < _LEAST_SHARED:
        problem = f"people graded {counted(int(both.sum()), 'pair')} of those that were shown often enough"
        raise InputError(problem, fix=f"grade {_LEAST_SHARED} or more, or take grading lower", path=gold.where)
    x, y = values.drawn[both], np.maximum(known[both], 0)
    grade = _isotonic(x, y, values.drawn)
    fold = np.unique(topic[both], return_inverse=True)[1] % _FOLDS
    beyond = np.empty(len(y))
    for at in np.unique(fold).tolist():
        out = fold == at
        beyond[out] = y[out] - (_isotonic(x[~out], y[~out], x[out]) if not out.all() else y.mean())
    return grade, np.full(len(grade), float(np.sqrt(np.mean(beyond**2)))), int(both.sum())


def human_grades(pairs: ArrowTable, gold: Qrels) -> Floats:
    """Look up the grades that people gave: (P,), NaN where none."""
    index, size = gold.index, len(gold.index.docs)
    topic = pc.index_in(pairs["query_id"], value_set=pa.array(index.topics, pa.string()))
    doc = pc.index_in(pairs["doc_id"], value_set=index.docs)
    there = np.asarray(pc.and_(pc.is_valid(topic), pc.is_valid(doc)))
    key = np.asarray(pc.fill_null(topic, 0), dtype=np.int64) * size + np.asarray(pc.fill_null(doc, 0), dtype=np.int64)
    known = index.topic * size + index.doc
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known[order], key), len(order) - 1)
    return np.where(there & (known[order][place] == key), index.grade[order][place], np.nan)


def _isotonic(x: Floats, y: Floats, asked: Floats) -> Floats:
    """Fit a curve that never falls, and read it at other places: between places by lines."""
    from scipy.optimize import isotonic_regression

    places, which, count = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(which.ravel(), y) / count
    return np.interp(asked, places, isotonic_regression(means, weights=count).x)
