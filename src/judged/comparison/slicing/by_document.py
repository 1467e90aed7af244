"""`by_document`: scores by group of documents, and so which kind of document is lost."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.slicing.documents import UNKNOWN, group_judgments
from judged.comparison.slicing.parts import FEW, PartEstimate, ScoresOfParts
from judged.comparison.slicing.topic_slices import MINIMUM
from judged.data.documents import Documents
from judged.data.qrels import Qrels
from judged.errors import InputError, JudgedWarning
from judged.results import COUNT, Column, columns_of
from judged.results.decimals import decimal, percent
from judged.results.notes import Note, first_few
from judged.scoring.evaluation import evaluate, measures_of, runs_of
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.stats.interval import IntervalName

ALL = "all documents"


@dataclass(frozen=True, kw_only=True)
class GroupEstimate(PartEstimate):
    """One number: a measure of a run over the topics of a group, where only documents of the group are relevant."""

    relevant: int  # relevant documents of the group, counted for each topic


@dataclass(frozen=True, eq=False, repr=False)
class ScoresByDocument(ScoresOfParts[GroupEstimate]):
    """What `by_document` returns: scores by group of documents.

    Attributes
    ----------
    scores : Scores
        Of all documents.
    estimates : tuple of GroupEstimate
        By group, run and measure; ``all documents`` first, ``unknown`` ones last.
    method : IntervalMethod
        How intervals were made.
    column : str
        The column of documents that names their group.
    min_topics : int
        Topics, below which a group is small.
    notes : tuple of Note

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> found = by_document({"q": {"d1": 1, "d2": 1}}, {"q": ["d1", "x"]}, "R@2", sources, "source", ci="none")
    >>> {row.part: row.value for row in found.estimates}
    {'all documents': 0.5, 'mail': 0.0, 'web': 1.0}
    """

    kind: ClassVar[str] = "documents"
    part: ClassVar[str] = "group"
    known: ClassVar[tuple[str, ...]] = ("relevant",)

    column: str
    min_topics: int
    notes: tuple[Note, ...] = ()

    @property
    def by(self) -> str:
        """By what documents are grouped."""
        return f"by {self.column} of documents"

    @property
    def rule(self) -> str:
        """How the dots of a chart were made."""
        return f"{super().rule}; only documents of one {self.column} relevant"

    def about(self, rows: Sequence[GroupEstimate]) -> tuple[Column, ...]:
        """Give how many topics groups have, and how many relevant documents."""
        return columns_of(rows, ("size", COUNT, "topics"), ("relevant", COUNT))

    def facts(self) -> dict[str, Any]:
        """Give the column of documents, how intervals were made, and the least number of topics."""
        return {"by": self.column, "min_topics": self.min_topics, "ci": vars(self.method)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the rows are, what is lost most, and what may not be concluded."""
        said = [f"In each row only documents of one {self.column} are relevant; topics without any do not count."]
        for run in self.scores.run_names:
            rows = self.estimates_of(run, self.scores.measure_names[0])
            rows = [row for row in rows if row.part != ALL and not row.small and not math.isnan(row.value)]
            if len(rows) > 1:
                least = min(rows, key=lambda row: row.value)
                said.append(
                    f"{run} has its lowest {least.measure} where {self.column} is {least.part}: {decimal(least.value)}"
                    f" over {least.size} topics and {least.relevant} relevant documents."
                )
        said.append(
            "Compare runs within a row. Rows have different topics, and documents of other groups count as not"
            " relevant, so that comparing two rows of one run is not a test."
        )
        if any(row.small for row in self.estimates):
            said.append(f"Rows marked {FEW} have fewer than {self.min_topics} topics.")
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
    min_topics: int = MINIMUM,
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
    min_topics
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
    scores, counts = {ALL: whole}, {ALL: int(grouped.relevant.sum())}
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
        GroupEstimate(**vars(row), part=name, size=sizes[name], relevant=counts[name], small=sizes[name] < min_topics)
        for name, group in scores.items()
        for row in group.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
    )
    notes = list(whole.notes)
    if UNKNOWN in counts:
        some = f"{counts[UNKNOWN]} of {counts[ALL]} relevant documents ({percent(counts[UNKNOWN] / counts[ALL])})"
        notes.append(Note("unknown-group", f"the {by} of {some} is not known"))
    if small := [name for name, size in sizes.items() if size < min_topics]:
        text = f"fewer than {min_topics} topics, too few for a mean to say much: {first_few(small)}"
        notes.append(Note("small-groups", text))
    return ScoresByDocument(whole, estimates, method, by, min_topics, tuple(notes))
