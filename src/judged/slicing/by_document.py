"""`by_document`: scores by group of documents, and so which kind of document is lost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.answer import COUNT, NUMBER, TEXT, Answer, Chart, Column, Sentences, Table, columns_of
from judged.data import Qrels
from judged.data.documents import Documents
from judged.decimals import decimal, percent
from judged.errors import InputError, JudgedWarning
from judged.evaluation import Estimate, evaluate, measures_of, runs_of
from judged.notes import Note, first_few
from judged.slicing.documents import UNKNOWN, group_judgments
from judged.slicing.slices import MINIMUM
from judged.stats import IntervalMethod

if TYPE_CHECKING:
    from judged.answer import Block
    from judged.evaluation import Scores
    from judged.evaluation.provenance import Provenance
    from judged.stats import IntervalName

ALL = "all documents"
_SMALL = "few"


@dataclass(frozen=True, kw_only=True)
class GroupEstimate(Estimate):
    """One number: a measure of a run over the topics of a group, where only documents of the group are relevant."""

    group: str  # its name, or `all documents`
    n: int  # topics that have a relevant document of the group
    relevant: int  # relevant documents of the group, counted for each topic
    small: bool  # whether there are fewer topics than a mean should rest on


@dataclass(frozen=True, eq=False, repr=False)
class ScoresByDocument(Answer):
    """What `by_document` returns: scores by group of documents.

    Attributes
    ----------
    by : str
        The column of documents that names their group.
    estimates : tuple of GroupEstimate
        By group, run and measure; ``all documents`` first, ``unknown`` ones last.
    scores : dict
        From group to the `Scores` of its topics.
    method : IntervalMethod
        How intervals were made.
    minimum : int
        Topics, below which a group is small.
    provenance : Provenance
        What the scores of all documents rest on.
    notes : tuple of Note

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> found = by_document({"q": {"d1": 1, "d2": 1}}, {"q": ["d1", "x"]}, "R@2", sources, "source", ci="none")
    >>> {row.group: row.value for row in found.estimates}
    {'all documents': 0.5, 'mail': 0.0, 'web': 1.0}
    """

    kind: ClassVar[str] = "documents"
    main: ClassVar[str] = "results"

    by: str
    estimates: tuple[GroupEstimate, ...] = field(repr=False)
    scores: Mapping[str, Scores] = field(repr=False)
    method: IntervalMethod
    minimum: int
    provenance: Provenance = field(repr=False)
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is shown by which groups."""
        return f"{', '.join(self.scores[ALL].measure_names)} by {self.by} of documents"

    @property
    def groups(self) -> tuple[str, ...]:
        """``all documents``, then the groups."""
        return tuple(self.scores)

    def estimate(self, group: str = ALL, run: str | None = None, measure: str | None = None) -> GroupEstimate:
        """Give one number; the first run and measure, if none is named.

        Raises
        ------
        InputError
            If there is no such group, run or measure.
        """
        runs, measures = self.scores[ALL].run_names, self.scores[ALL].measure_names
        wanted = group, run or runs[0], measure or measures[0]
        for what, name, names in zip(("group", "run", "measure"), wanted, (self.groups, runs, measures), strict=True):
            if name not in names:
                raise InputError(f"no {what} {name!r}", fix=f"one of {', '.join(names)}")
        return next(row for row in self.estimates if (row.group, row.run, row.measure) == wanted)

    def overview(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Lay out one row a group. With one run, or one that is named: a column a measure; else a column a run.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        first, whole = self.estimate(run=run, measure=measure), self.scores[ALL]
        if len(whole.runs) == 1 or run is not None:
            pairs = {name: (first.run, name) for name in whole.measure_names}
        else:
            pairs = {f"{name} {first.measure}": (name, first.measure) for name in whole.run_names}
        parts = [[self.estimate(group, *pair) for group in self.groups] for pair in pairs.values()]
        shown = [*columns_of(parts[0], ("group", TEXT, self.by), ("relevant", COUNT), ("n", COUNT, "topics"))]
        for heading, rows in zip(pairs, parts, strict=True):
            show = COUNT if rows[0].aggregate in {"sum", "count"} else NUMBER
            how: dict[str, Any] = {"ci": [row.ci for row in rows], "mark": [_SMALL * row.small for row in rows]}
            shown.append(Column(heading, [row.value for row in rows], show, **how))
        return Table(self.by, tuple(shown), only="people")

    def blocks(self) -> tuple[Block, ...]:
        """Give tables of groups, what may be concluded, all numbers, and a chart for each measure."""
        whole, rows = self.scores[ALL], self.estimates
        names = whole.measure_names
        tables = [self.overview(name) for name in names] if len(whole.runs) > 1 else [self.overview()]
        results = Table("results", (
            *columns_of(rows, "group", "run", "measure", "aggregate"),
            Column("value", [row.value for row in rows], NUMBER, ci=[row.ci for row in rows]),
            Column("topics", [row.n for row in rows], COUNT),
            *columns_of(rows, "relevant", "small"),
        ), only="data")  # fmt: skip
        return (*tables, Sentences(self.sentences), results, *map(self._chart, names))

    def facts(self) -> dict[str, Any]:
        """Give the column of documents, how intervals were made, and the least number of topics."""
        return {"by": self.by, "minimum": self.minimum, "ci": vars(self.method)}

    def _chart(self, measure: str) -> Chart:
        rows = [row for row in self.estimates if row.measure == measure]
        points = Table("points", (
            Column("group", [f"{row.group} ({row.n})" for row in rows], TEXT, self.by),
            *columns_of(rows, ("run", TEXT)),
            Column("value", [row.value for row in rows], NUMBER, measure, ci=[row.ci for row in rows]),
            Column("small", [row.small for row in rows], only="data"),
        ))  # fmt: skip
        few = f"; hollow: fewer than {self.minimum} topics" if any(row.small for row in rows) else ""
        intervals = "" if self.method.method == "none" else f"{self.method.level:.0%} intervals over topics; "
        return Chart(
            name=measure,
            title=f"{measure} by {self.by} of documents",
            subtitle=f"{intervals}only documents of one {self.by} relevant{few}",
            table=points,
            sentence=f"One dot a group and run: its {measure}, with the interval; hollow where topics are too few.",
            y="group", colour="run", hollow="small",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the rows are, what is lost most, and what may not be concluded."""
        said = [
            f"In each row only documents of one {self.by} are relevant, and only topics that have such documents count."
        ]
        whole = self.scores[ALL]
        for run in whole.run_names:
            rows = [row for row in self.estimates if (row.run, row.measure) == (run, whole.measure_names[0])]
            rows = [row for row in rows if row.group != ALL and not row.small and not math.isnan(row.value)]
            if len(rows) > 1:
                least = min(rows, key=lambda row: row.value)
                said.append(
                    f"{run} has its lowest {least.measure} where {self.by} is {least.group}: {decimal(least.value)}"
                    f" over {least.n} topics and {least.relevant} relevant documents."
                )
        said.append(
            "Compare runs within a row. Rows have different topics, and documents of other groups count as not"
            " relevant, so that two rows of one run are no test of each other."
        )
        if any(row.small for row in self.estimates):
            said.append(f"Rows marked {_SMALL!r} have fewer than {self.minimum} topics.")
        return tuple(said)


def by_document(
    qrels: Any,
    runs: Any,
    measures: Any,
    documents: Any,
    by: str,
    *,
    rel: float = 1,
    today: Any = None,
    date: str = "date",
    minimum: int = MINIMUM,
    ci: IntervalName = "adjusted",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> ScoresByDocument:
    """Score runs by group of relevant documents, to see which kind of document is lost.

    For each group, only its documents count as relevant (`document_slices`), and the topics that have such
    documents. Compare runs within a group. Groups are not to be compared with each other: their topics differ, and
    a document of another group counts as not relevant even where it stands first for good reason. Only recall
    without a cutoff does not depend on what stands above.

    Parameters
    ----------
    qrels, runs, measures
        As for `evaluate`.
    documents, by, rel, today, date
        As for `document_slices`.
    minimum
        Topics, below which a group is shown and marked as small.
    ci, level, resamples, seed
        How the intervals over topics are made, as for `Scores.estimates`.

    Raises
    ------
    InputError
        If something cannot be read, or there is no such column.
    MeasureError
        If a measure does not exist.
    """
    method = IntervalMethod(ci, level, resamples, seed)
    facts, given, wanted = Documents.of(documents), runs_of(runs), measures_of(measures)
    grouped = group_judgments(Qrels.of(qrels), facts, by, rel=rel, today=today, date=date)
    if ALL in grouped.names:
        raise InputError(f"a group is called {ALL!r}", fix=f"rename this {by}", path=facts.where)
    whole = evaluate(grouped.qrels, given, wanted, documents=facts)
    scores = {ALL: whole}
    counts = {ALL: int(grouped.relevant.sum())}
    for at, name in enumerate(grouped.names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)  # topics that a run lacks: said of all documents
            group = evaluate(grouped.only(at), given, wanted, documents=facts)
        # over all topics, so that a run that lacks the group's topics is still one of these
        kept = set(grouped.qrels.table["query_id"].filter(grouped.rows_of_topics(at)).to_pylist())
        scores[name] = group.over_topics(np.array([query in kept for query in group.query_ids], dtype=np.bool_))
        counts[name] = int((grouped.relevant & (grouped.group == at)).sum())
    sizes = {name: len(group.query_ids) for name, group in scores.items()}
    estimates = tuple(
        GroupEstimate(**vars(one), group=name, n=sizes[name], relevant=counts[name], small=sizes[name] < minimum)
        for name, group in scores.items()
        for one in group.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
    )
    notes = list(whole.notes)
    if UNKNOWN in counts:
        some = f"{counts[UNKNOWN]} of {counts[ALL]} relevant documents ({percent(counts[UNKNOWN] / counts[ALL])})"
        notes.append(Note("unknown-group", f"the {by} of {some} is not known"))
    if small := [name for name, size in sizes.items() if size < minimum]:
        text = f"fewer than {minimum} topics, too few for a mean to say much: {first_few(small)}"
        notes.append(Note("small-groups", text))
    return ScoresByDocument(by, estimates, scores, method, minimum, whole.provenance, tuple(notes))
