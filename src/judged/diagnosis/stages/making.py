"""`stages`: at which stage of a system what could have been attained was lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.diagnosis.stages.parts import (
    SCORE,
    Cut,
    Parts,
    changes_of,
    kinds_of,
    lost_topics,
    parts_by_slice,
    verdict_names,
)
from judged.diagnosis.stages.tracing import Through, Trace, both_have, check_measure, one_measure, traced
from judged.errors import InputError
from judged.evaluation import runs_of
from judged.judging import judge
from judged.judging.variants import copies, cut
from judged.measures import parse
from judged.stats.pairing import topics_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools
    from judged.data import Run
    from judged.diagnosis.changes import Change
    from judged.judging import Judged, Precision, TiePolicy
    from judged.measures import Measure
    from judged.slicing.slices import Slicing
    from judged.stats.discoveries import Discoveries
    from judged.tables import Table

PARTS = ("candidates", "ranking")
"""Where two stages lose: what is not among the candidates, and what is ranked badly among them."""


@dataclass(frozen=True, eq=False, repr=False)
class Stages:
    """What a system lost, split exactly into its stages; and the same for a second one that it is held against.

    Attributes
    ----------
    measure, recall : Measure
        Of the score, and of the candidates.
    query_ids : tuple of T str
    trace : Trace
        The system: scores, what was attainable behind each stage, documents.
    against : Trace or None
        The system that it is compared with.
    names : tuple of P str
        The parts of the loss, in the order of the stages; the last is that of the final ranking.
    choices : Cut
        Depth, thresholds, level, rates, resamples, seed.
    slicing : Slicing or None
    warnings : tuple of str

    Examples
    --------
    >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    >>> run = {"q1": ["a"], "q2": ["x", "y", "a"], "q3": ["x"]}
    >>> found = stages(qrels, run, measure="RR@10", depth=2)
    >>> found.trace.parts.tolist()  # candidates and ranking, by topic
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    >>> found.verdicts
    ('healthy', 'not found', 'not found')
    """

    measure: Measure
    recall: Measure
    query_ids: tuple[str, ...]
    trace: Trace
    against: Trace | None
    names: tuple[str, ...]
    choices: Cut
    slicing: Slicing | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> tuple[Parts, ...]:
        """Means and verdicts over all topics, and then over each slice, of the system."""
        return parts_by_slice(self.trace, self.slicing, self.choices)

    @cached_property
    def parts_against(self) -> tuple[Parts, ...]:
        """The same of the system that it is compared with; nothing where there is none."""
        return () if self.against is None else parts_by_slice(self.against, self.slicing, self.choices)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """One a topic: healthy, not found, found but ranked badly, both, or nothing relevant; T of them."""
        return verdict_names(self.trace, self.choices)

    @property
    def headroom(self) -> Parts:
        """Over all topics; its last part is what the best possible order of the candidates would gain."""
        return self.parts[0]

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The tested difference of the score and of each part, over all topics and by slice; higher is better."""
        return (
            () if self.against is None else changes_of(self.trace, self.against, self.names, self.slicing, self.choices)
        )

    @cached_property
    def lost(self) -> dict[str, Discoveries]:
        """By part: the topics that lost there against the other system, with a declared rate of false findings."""
        return {} if self.against is None else lost_topics(self.trace, self.against, self.names, self.choices)

    @property
    def lost_kinds(self) -> tuple[str, ...]:
        """By which parts each topic lost that lost to the other system, at the declared rate; else empty. (T,).

        A part is named where it holds at least the chosen share of the loss.
        """
        if self.against is None:
            return ("",) * len(self.query_ids)
        return kinds_of(self.trace, self.against, self.names, self.lost[SCORE].mask, self.choices)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        from judged.diagnosis.stages.sentences import sentences

        return sentences(self)

    def table(self) -> Table:
        """Lay out one row a slice and system: score, best, parts with intervals, verdicts."""
        from judged.diagnosis.stages.layout import parts_table

        return parts_table(self)

    def changes_table(self) -> Table:
        """Lay out one row a slice: how much the score and each part changed, with intervals and corrected p-values.

        Raises
        ------
        InputError
            If there is no system to compare with.
        """
        from judged.diagnosis.stages.layout import changes_table

        if self.against is None:
            raise InputError("there is no second system", fix="give against=")
        return changes_table(self)

    def topics_table(self, limit: int | None = None) -> Table:
        """Lay out one row a topic, largest loss first."""
        from judged.diagnosis.stages.layout import topics_table

        return topics_table(self, limit)

    def documents_table(self, query_id: str | None = None) -> Table:
        """Lay out the relevant documents that are not on the page, or not returned: where each was lost.

        Raises
        ------
        InputError
            If there is no such topic.
        """
        from judged.diagnosis.stages.layout import documents_table

        if query_id is not None and query_id not in self.query_ids:
            raise InputError(f"no topic {query_id!r} here", fix=f"one of {', '.join(self.query_ids[:5])}, ...")
        return documents_table(self, query_id)

    def text(self, width: int | None = None, *, topics: bool = False) -> str:
        """Write for a terminal; with ``topics``, every topic."""
        from judged.diagnosis.stages.sentences import text

        return text(self, width, topics=topics)

    def markdown(self, *, topics: bool = False) -> str:
        """Write tables and sentences in Markdown."""
        from judged.diagnosis.stages.sentences import markdown

        return markdown(self, topics=topics)

    def csv(self) -> str:
        """Write every topic in full precision."""
        from judged.diagnosis.stages.layout import topic_rows

        return topic_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        from judged.diagnosis.stages.layout import document

        return document(self)

    def chart(self, *, by: str = "slice", width: int = 480, height: int | None = None) -> Any:
        """Draw stacked bars: score and parts of the loss, a bar a ``slice`` (and system), or a ``topic``.

        Raises
        ------
        InputError
            If ``by`` is neither.
        MissingExtraError
            If altair is not installed.
        """
        from judged.diagnosis.stages.chart import chart

        return chart(self, by, width, height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])


def stages(
    qrels: Any,
    run: Any,
    final: Any = None,
    measure: str | Measure = "nDCG@10",
    *,
    depth: int = 100,
    recall: str | Measure | None = None,
    against: Any = None,
    slicing: Slicing | None = None,
    topics: str = "qrels",
    ties: TiePolicy = "docid",
    precision: Precision = "double",
    documents: Any = None,
    least: float = 0.1,
    share: float = 0.15,
    rate: float = 0.1,
    alpha: float = 0.05,
    resamples: int = 100_000,
    seed: int = 0,
) -> Stages:
    """Split each topic's loss into what was not among the candidates and what was ranked badly.

    With U the score of the best order of the candidates: best - score = (best - U) + (U - score).

    Parameters
    ----------
    qrels
        As `evaluate` takes them.
    run
        The deep run whose first documents are the candidates.
    final
        The ranking made of the candidates, by a reranker say. None: the candidates as they stand.
    measure
        One for which a better document higher is better: nDCG, AP, RR, P, R, ERR, RBP...
    depth
        How many documents of each topic of the run are candidates.
    recall
        The measure of the candidates; R at the depth for None.
    against
        A second system that this one is compared with: a run, or a pair (candidates, final).
    slicing
        Slices of topics, by which everything is shown as well.
    topics
        ``qrels``: all topics of the qrels; ``both``: those that every run given has too.
    ties, precision, documents
        As for `evaluate`.
    least, share
        A part counts for the verdict on a topic where it is at least this share of the best score (a tenth), and of
        all that is lost on the topic (0.15).
    rate
        The false discovery rate of the topics that are said to have lost.
    alpha
        Up to here p is significant, after Holm's correction over slices and parts. Intervals have 1 - alpha.
    resamples, seed
        Of the paired randomisation tests, and the seed of the intervals.

    Returns
    -------
    Stages

    Raises
    ------
    InputError
        If something cannot be read or an option makes no sense.
    MeasureError
        If the best order of documents is not known for the measure.

    Examples
    --------
    >>> qrels = {"q1": {"a": 2, "b": 1}, "q2": {"a": 1}}
    >>> first, second = {"q1": ["x", "a", "b"], "q2": ["x", "y"]}, {"q1": ["b", "a", "x"], "q2": ["y", "x"]}
    >>> found = stages(qrels, first, second)
    >>> [stage.attainable.tolist() for stage in found.trace.stages], found.trace.found.tolist()
    ([[1.0, 0.0]], [2, 0])
    """
    choices = Cut(depth, least, share, rate, alpha, resamples, seed)
    chosen, wanted = one_measure(measure), one_measure(recall or f"R@{depth}")
    check_measure(chosen)
    judgments = Qrels.of(qrels)
    how: dict[str, Any] = {"ties": ties, "precision": precision, "documents": documents}
    systems = [_system(judgments, run, final, how)]
    if against is not None:
        first, second = against if isinstance(against, tuple) else (against, None)
        systems.append(_system(judgments, first, second, how))
    every = [judged for system in systems for judged in system if judged is not None]
    kept = _counted(every, topics)
    traces: list[Trace] = []
    warnings: list[str] = []
    for candidates, last in systems:
        whole = copies(candidates, kept)
        ranking = cut(whole, depth) if last is None else copies(last, kept)
        steps = [Through(PARTS[0], whole, depth)]
        traces.append(traced(steps, ranking, chosen, wanted, parse("Judged@10")))
        warnings += _warnings(traces[-1], [whole] if last is None else [whole, ranking], chosen, depth)
    return Stages(
        measure=chosen,
        recall=wanted,
        query_ids=tuple(every[0].query_ids[at] for at in kept.tolist()),
        trace=traces[0],
        against=traces[1] if len(traces) > 1 else None,
        names=PARTS,
        choices=choices,
        slicing=None if slicing is None else slicing.over([every[0].query_ids[at] for at in kept.tolist()]),
        warnings=tuple(warnings),
    )


def _system(qrels: Qrels, run: Any, final: Any, how: dict[str, Any]) -> tuple[Judged, Judged | None]:
    first = judge(qrels, _one(run), **how)
    return first, None if final is None else judge(qrels, _one(final), **how)


def _one(given: Any) -> Run:
    runs = runs_of(given)
    if len(runs) != 1:
        raise InputError(f"{len(runs)} runs stand where one is asked for", fix="give one run", path=runs[0].where)
    return runs[0]


def _counted(lists: Sequence[Judged], topics: str) -> Any:
    """Give the positions of the topics that count."""
    if topics not in {"qrels", "both"}:
        raise InputError(f"no topic policy {topics!r} here", fix="one of qrels, both")
    present = both_have(lists)
    for one in lists:
        if not one.present.any():
            raise InputError("the run has no topic in common with the qrels", fix="check the ids", path=one.run.where)
    kept: Bools = present if topics == "both" else np.ones(len(present), dtype=np.bool_)
    if not kept.any():
        raise InputError("the runs have no judged topic in common", fix="check that they are of one collection")
    return np.flatnonzero(kept)


def _shown_foreign(trace: Trace, measure: Measure, depth: int) -> int:
    """Count the relevant documents that the measure sees in the final ranking and that are no candidates."""
    documents, cutoff = trace.documents, getattr(measure, "cutoff", None)
    shown = (documents.final > 0) & (documents.final <= (cutoff or np.iinfo(np.int64).max))
    return int(np.count_nonzero(shown & ((documents.candidate == 0) | (documents.candidate > depth))))


def _warnings(trace: Trace, lists: Sequence[Judged], measure: Measure, depth: int) -> list[str]:
    """Say what should be known of one system, of which these are the rankings: the candidates, and the final one."""
    said: list[str] = []
    if len(lists) == 1 and not np.array_equal(measure(lists[0]), trace.score, equal_nan=True):
        said.append(
            f"{trace.name}: {measure} looks below rank {depth}: what is scored here are the first {depth} documents."
            " A greater depth takes in more"
        )
    if trace.foreign.any():
        count, topics = int(trace.foreign.sum()), int(np.count_nonzero(trace.foreign))
        said.append(
            f"{trace.name}: {count} of its documents, on {topics_text(topics)}, are not among the first {depth} of"
            f" {trace.candidates}; {_shown_foreign(trace, measure, depth)} of them are relevant and on the page. The"
            " loss by ranking may be negative there; a greater depth may be the true one"
        )
    for one in lists:
        absent = int(np.count_nonzero(one.returned == 0))
        if absent:
            said.append(f"{one.run.name}: returned nothing for {absent} of {len(one)} topics: nothing is found there")
    return said
