"""`by_document`: scores by group of documents, and so which kind of document is lost."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.data.documents import Documents
from judged.decimals import percent
from judged.errors import InputError, JudgedWarning
from judged.evaluation import evaluate, measures_of, runs_of
from judged.notes import first_few
from judged.slicing import by_documents_forms as forms
from judged.slicing.by_documents_chart import group_chart
from judged.slicing.document_groups import UNKNOWN, group_judgments
from judged.slicing.document_scores import ALL, DocumentScores, GroupEstimate
from judged.slicing.slices import MINIMUM
from judged.stats import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.evaluation import Scores
    from judged.slicing.document_groups import Grouped
    from judged.stats import IntervalName
    from judged.tables import Table

__all__ = ["ALL", "GroupEstimate", "ScoresByDocument", "by_document"]


@dataclass(frozen=True, eq=False, repr=False)
class ScoresByDocument(DocumentScores):
    """Scores by group of documents: its attributes, and its ways to numbers, are those of `DocumentScores`.

    Examples
    --------
    >>> sources = {"d1": {"source": "web"}, "d2": {"source": "mail"}}
    >>> found = by_document({"q": {"d1": 1, "d2": 1}}, {"q": ["d1", "x"]}, "R@2", sources, "source", ci="none")
    >>> {one.group: one.estimate.value for one in found.estimates}
    {'all documents': 0.5, 'mail': 0.0, 'web': 1.0}
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return forms.sentences(self)

    def table(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Lay out one row a group. With one run, or one that is named: a column a measure; else a column a run.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        return forms.table(self, measure, run)

    def text(self, width: int | None = None) -> str:
        """Write for a terminal."""
        return forms.text(self, width)

    def markdown(self) -> str:
        """Write tables and sentences in Markdown."""
        return forms.markdown(self)

    def csv(self) -> str:
        """Write every number in full precision."""
        return forms.rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return forms.document(self)

    def chart(self, measure: str | None = None, *, width: int = 420, height: int | None = None) -> Any:
        """Draw the runs' numbers with intervals by group, for one measure; a chart of altair.

        Raises
        ------
        InputError
            If there is no such measure.
        MissingExtraError
            If altair is not installed.
        """
        return group_chart(self, self.estimate(measure=measure).estimate.measure, width=width, height=height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.table().html(notes=(*self.sentences, *self.warnings))


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
    made = {ALL: evaluate(grouped.qrels, given, wanted, documents=facts)}
    counts = {ALL: int(grouped.relevant.sum())}
    for at, name in enumerate(grouped.names):
        made[name] = _scores_of(grouped, at, given, wanted, facts)
        counts[name] = int((grouped.relevant & (grouped.group == at)).sum())
    estimates = tuple(
        GroupEstimate(name, one, len(scores.query_ids), counts[name], len(scores.query_ids) < minimum)
        for name, scores in made.items()
        for one in scores.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
    )
    notes = made[ALL].warnings + _notes(counts, made, by, minimum)
    return ScoresByDocument(by, estimates, made, method, minimum, notes)


def _scores_of(grouped: Grouped, at: int, runs: Any, measures: Any, facts: Documents) -> Scores:
    """Score one group: over all topics, so that a run that lacks the group's topics is still one of these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # of topics that are missing from a run: said of all documents
        scores = evaluate(grouped.only(at), runs, measures, documents=facts)
    kept = set(grouped.qrels.table["query_id"].filter(grouped.rows_of_topics(at)).to_pylist())
    return scores.over_topics(np.array([query in kept for query in scores.query_ids], dtype=np.bool_))


def _notes(counts: Mapping[str, int], made: Mapping[str, Scores], by: str, minimum: int) -> tuple[str, ...]:
    notes: list[str] = []
    if UNKNOWN in counts:
        share = counts[UNKNOWN] / counts[ALL]
        notes.append(
            f"the {by} of {counts[UNKNOWN]} of {counts[ALL]} relevant documents ({percent(share)}) is not known"
        )
    small = [name for name, scores in made.items() if len(scores.query_ids) < minimum]
    if small:
        notes.append(f"fewer than {minimum} topics, too few for a mean to say much: {first_few(small)}")
    return tuple(notes)
