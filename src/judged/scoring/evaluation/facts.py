"""Metadata of scores (runs, qrels, policies, versions), and the estimates of a report."""

from __future__ import annotations

import platform
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.errors import InputError
from judged.results.blocks import lines
from judged.results.types import ReadOnly
from judged.scoring.evaluation.notes import list_notes, notes_of_runs, qrels_notes, returned_docs, unjudged_notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.data.files import FileHash
    from judged.data.qrels import Origin, Qrels
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged, Precision, TiePolicy, TopicPolicy
    from judged.scoring.measures.base import Measure
    from judged.scoring.uncertainty.ratio import Exactness
    from judged.stats.interval import IntervalMethod


TieTreatment: TypeAlias = "TiePolicy | Literal['expected', 'bounds']"
"""How ties are treated: a tie policy, `expected` (mean over all orders), or `bounds` (lowest and highest score)."""
_TIE_TEXTS = {
    "docid": "ties by descending document id",
    "docid-rising": "ties by ascending document id",
    "stable": "ties in the order of the run",
    "rank": "ordered by the rank column",
    "expected": "averaged over all orders of tied documents",
    "bounds": "ties by descending document id, with the lowest and highest score over all orders of tied documents",
}


@dataclass(frozen=True)
class RunFacts:
    """Facts about an evaluated run; a run with 0 returned judged documents has no meaningful scores."""

    name: str
    path: str
    file_hash: FileHash  # hash of the files from which it was read
    returned_topics: int  # topics of the qrels with returned documents
    missing_topics: tuple[str, ...]  # topics of the qrels without returned documents
    extra_topics: int  # number of topics that are not in the qrels
    returned_judged: int  # number of returned documents that are judged

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the files' bytes; None without files, or if a file has changed since it was read."""
        return self.file_hash.hexdigest

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes but the name as plain Python values."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "returned_topics": self.returned_topics,
            "missing_topics": list(self.missing_topics),
            "extra_topics": self.extra_topics,
            "returned_judged": self.returned_judged,
        }


@dataclass(frozen=True)
class QrelsFacts:
    """Facts about the judgments."""

    name: str
    path: str
    sha256: str | None  # of the file; None if there is none
    n: int  # topics
    judgments: int  # number of judged pairs
    grades: tuple[float, ...]
    where: str = ""  # expression that selected topics; empty: all
    origin: Origin | None = None  # sources of the labels, if known


@dataclass(frozen=True)
class Policies:
    """Choices of a call that determine which topics count and how documents are ranked.

    ``dialect`` is the name of the rules that set the defaults. ``exclude_self``: documents with the id of their topic
    are removed.
    """

    topics: TopicPolicy = "qrels"
    ties: TieTreatment = "docid"
    depth: int | None = None
    precision: Precision = "double"
    dialect: str = "judged"
    exclude_self: bool = False

    def describe(self, topics: int, over: str = "") -> str:
        """Describe the topics of the numbers (or `over`, if set) and how documents were ranked."""
        counted_topics = {
            "qrels": f"the {topics} topics of the qrels" if topics > 1 else "the only topic",
            "run": "the topics of the run",
            "both": "the topics that qrels and run have in common",
        }[self.topics]
        rules = "Over" if self.dialect == "judged" else f"{self.dialect}: over"
        rounding = "; scores compared as 32-bit numbers" if self.precision == "single" else ""
        limits = "" if self.depth is None else f"; first {self.depth} documents"
        limits += "; without documents whose id equals the topic id" if self.exclude_self else ""
        return f"{rules} {over or counted_topics}; {_TIE_TEXTS[self.ties]}{rounding}{limits}"


@dataclass(frozen=True, eq=False)
class TopicRanges(ReadOnly):
    """Ranges of all scores, for one reason."""

    reason: str  # `ties`, or `unjudged`: documents without a judgment
    # low, high: (R, M, T): for each run, measure and topic; NaN if the score is
    low: Floats
    high: Floats
    # (R, M, T): `exact`, `outer` (the ends may not be attained) or `sampled` (the true range may be wider)
    kind: np.ndarray[Any, Any]
    # (R, M): mean share of judged documents among those down to the measure's cutoff; NaN for other reasons, and for a
    # run without a ranking
    judged: Floats

    def without(self, left_out: Bools) -> Self:
        """Set the ranges of scores that do not count to NaN: (R, M, T)."""
        if not left_out.any():
            return self
        return replace(self, low=np.where(left_out, np.nan, self.low), high=np.where(left_out, np.nan, self.high))

    def select_measures(self, rows: Sequence[int]) -> Self:
        """Select measures by index, in this order."""
        low, high, kind, judged = (table[:, rows] for table in (self.low, self.high, self.kind, self.judged))
        return replace(self, low=low, high=high, kind=kind, judged=judged)


@dataclass(frozen=True)
class AggregateRange:
    """Range of an aggregate, for one reason."""

    reason: str  # as in `TopicRanges`
    # low, high: aggregate if every topic had its least, or its greatest, score
    low: float
    high: float
    kind: Exactness  # the least exact of the topics' kinds
    judged: float  # as in `TopicRanges`


@dataclass(frozen=True)
class Estimate:
    """One number of a result table: a measure of a run, aggregated over topics.

    Parameters
    ----------
    run, measure
        Names of the run and the measure.
    aggregate
        Kind of aggregate: mean, sum or count.
    value
        The aggregate; NaN if no topic counts.
    ci
        Low and high end of the confidence interval; None if there is none.
    n
        Number of topics that count.
    ranges
        Ranges of the value, if they were requested.
    """

    run: str
    measure: str
    aggregate: str
    value: float
    ci: tuple[float, float] | None
    n: int
    ranges: tuple[AggregateRange, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Metadata that scores depend on: judgments, policies, runs, versions."""

    qrels: QrelsFacts
    policies: Policies
    runs: tuple[RunFacts, ...]
    versions: Mapping[str, str]
    notes: tuple[Note, ...] = ()  # about the judgments, all runs, and each run (its subject)
    interval: IntervalMethod | None = None  # method of intervals over topics, if there are any

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of all notes."""
        return lines(self.notes)

    @property
    def where(self) -> str:
        """Expression that selected topics; empty if all count."""
        return self.qrels.where

    def to_dict(self) -> dict[str, Any]:
        """Return ``judged, versions, qrels, policies, runs`` as plain Python values: the head of a JSON document."""
        interval = {} if self.interval is None else {"ci": vars(self.interval)}
        warnings: defaultdict[str, list[str]] = defaultdict(list)
        for note in self.notes:
            warnings[note.subject].append(note.text)
        return {
            "judged": self.versions.get("judged", ""),
            "versions": dict(self.versions),
            "qrels": {**asdict(self.qrels), "grades": list(self.qrels.grades)},
            "policies": {**vars(self.policies), **interval},
            "runs": {run.name: {**run.to_dict(), "warnings": warnings[run.name]} for run in self.runs},
        }


def provenance_of_lists(
    lists: Sequence[Judged],
    measures: Sequence[Measure],
    *,
    topics: TopicPolicy = "qrels",
    dialect: str = "judged",
) -> Provenance:
    """Build the provenance of judged lists with the same ranking policy, with the notes of `evaluate`."""
    first = lists[0]
    ranking = first.ranking
    policies = Policies(topics, ranking.ties, ranking.depth, ranking.precision, dialect)
    notes = qrels_notes(first.qrels, measures, measures) + list_notes(lists, policies, measures) + unjudged_notes(lists)
    runs = tuple(map(run_facts, lists))
    return Provenance(qrels_facts(first.qrels), policies, runs, versions(), notes + notes_of_runs(lists, topics))


def run_facts(judged: Judged) -> RunFacts:
    """Return the facts about a judged run."""
    return RunFacts(
        name=judged.run.name,
        path=judged.run.where,
        file_hash=judged.file_hash,
        returned_topics=int(np.count_nonzero(judged.returned) + np.count_nonzero(judged.extra_returned)),
        missing_topics=tuple(judged.query_ids[topic] for topic in np.flatnonzero(judged.returned == 0).tolist()),
        extra_topics=len(judged.extra),
        returned_judged=len(judged.topic),
    )


def qrels_facts(qrels: Qrels) -> QrelsFacts:
    """Return the facts about judgments."""
    counts = len(qrels.topics), len(qrels), qrels.distinct_grades
    return QrelsFacts(qrels.name, qrels.where, qrels.sha256, *counts, qrels.selected_by, qrels.origin)


def check_common_topics(judged: Judged) -> None:
    """Raise InputError if run and qrels have no topic in common: every score would be 0."""
    if judged.present.any():
        return
    first_topic = f"the first topic of the run is {judged.extra[0]!r}" if judged.extra else "the run has no topics"
    raise InputError(
        f"the run has no topic in common with the qrels: {first_topic},"
        f" and the first topic of the qrels is {judged.query_ids[0]!r}",
        fix=_common_topics_fix(judged),
        path=judged.run.where,
    )


def _common_topics_fix(judged: Judged) -> str:
    """Return the option with which run and qrels have topics in common, if the columns of the run are exchanged."""
    if pc.any(pc.is_in(returned_docs(judged), value_set=pa.array(judged.query_ids, pa.string()))).as_py():
        return "exchange the columns of query ids and document ids: --columns run.query_id=doc_id,run.doc_id=query_id"
    return "check that both files use the same query ids"


def versions() -> dict[str, str]:
    """Return the versions of judged, Python and the numerical libraries."""
    import judged

    return {
        "judged": judged.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
