"""What a table of scores says beside its numbers, and one number as it is reported."""

from __future__ import annotations

import platform
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.results.blocks import lines
from judged.results.types import ReadOnly
from judged.scoring.evaluation.notes import list_notes, notes_of_runs, qrels_notes, unjudged_notes

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
"""How ties are broken, or that they are not: the mean over all orders, or the least and greatest score."""
_TIES = {
    "docid": "ties by document id",
    "docid-rising": "ties by document id, rising",
    "stable": "ties as the run lists them",
    "rank": "ordered by the rank column",
    "expected": "the mean over all orders of tied documents",
    "bounds": "ties by document id, and bounds over all orders",
}


@dataclass(frozen=True)
class RunFacts:
    """What is worth knowing of one evaluated run; where it returned 0 judged documents, nothing of it was measured."""

    name: str
    path: str
    file_hash: FileHash  # of the files that it was read from
    returned_topics: int
    missing_topics: tuple[str, ...]
    extra_topics: int
    returned_judged: int

    @property
    def sha256(self) -> str | None:
        """SHA-256 of the files' bytes; None without files, and where a file has changed since it was read."""
        return self.file_hash.hexdigest

    def to_dict(self) -> dict[str, Any]:
        """Return all but the name as plain Python values."""
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
    """What is worth knowing of the judgments."""

    name: str
    path: str
    sha256: str | None
    n: int  # topics
    judgments: int
    grades: tuple[float, ...]
    where: str = ""  # the expression by which topics were chosen; empty: all
    origin: Origin | None = None  # of whose labels they were made, and how, where that is known


@dataclass(frozen=True)
class Policies:
    """The choices of a call that change which topics count and how documents are ranked.

    ``dialect`` names the rules that they come from; a choice that was made for the call goes before its own.
    ``exclude_self``: documents with the id of their topic are left out.
    """

    topics: TopicPolicy = "qrels"
    ties: TieTreatment = "docid"
    depth: int | None = None
    precision: Precision = "double"
    dialect: str = "judged"
    exclude_self: bool = False

    def words(self, topics: int, over: str = "") -> str:
        """Say over how many topics numbers are, or over what, and how documents were ranked."""
        counted = {
            "qrels": f"the {topics} topics of the qrels" if topics > 1 else "the one topic",
            "run": "the topics of the run",
            "both": "the topics that qrels and run have in common",
        }[self.topics]
        rules = "Over" if self.dialect == "judged" else f"{self.dialect}: over"
        bits = "; scores compared as 32-bit numbers" if self.precision == "single" else ""
        cut = "" if self.depth is None else f"; first {self.depth} documents"
        cut += "; without documents that have the id of their topic" if self.exclude_self else ""
        return f"{rules} {over or counted}; {_TIES[self.ties]}{bits}{cut}"


@dataclass(frozen=True, eq=False)
class TopicRanges(ReadOnly):
    """How far every score could move, for one reason."""

    reason: str  # `ties`, or `unjudged`: documents without a judgment
    # low, high: (R, M, T): for each run, measure and topic; NaN where the score is
    low: Floats
    high: Floats
    # (R, M, T): `exact`, `outer` (the ends may not be reached) or `sampled` (the truth may be wider)
    kind: np.ndarray[Any, Any]
    # (R, M): the mean share of judged documents among those that the measure looks at, down to its cutoff; NaN where
    # the reason is another one, and for a run without a ranking
    judged: Floats

    def without(self, left_out: Bools) -> Self:
        """Remove the ranges of scores that do not count: (R, M, T)."""
        if not left_out.any():
            return self
        return replace(self, low=np.where(left_out, np.nan, self.low), high=np.where(left_out, np.nan, self.high))

    def of_measures(self, rows: Sequence[int]) -> Self:
        """Take the measures of these places, in this order."""
        low, high, kind, judged = (table[:, rows] for table in (self.low, self.high, self.kind, self.judged))
        return replace(self, low=low, high=high, kind=kind, judged=judged)


@dataclass(frozen=True)
class Reach:
    """How far an aggregate could move, for one reason."""

    reason: str  # as in `TopicRanges`
    # low, high: the aggregate if every topic had its least, or its greatest, score
    low: float
    high: float
    kind: Exactness  # the weakest of the topics' kinds
    judged: float  # as in `TopicRanges`


@dataclass(frozen=True)
class Estimate:
    """One number of a result table: a measure of a run over the topics.

    Parameters
    ----------
    run, measure
        Of what.
    aggregate
        How the topics became one number: mean, sum or count.
    value
        The number; NaN where no topic counts.
    ci
        Low and high of the interval; None where there is none.
    n
        How many topics the value rests on.
    reaches
        How far the value could move, where that was asked for.
    """

    run: str
    measure: str
    aggregate: str
    value: float
    ci: tuple[float, float] | None
    n: int
    reaches: tuple[Reach, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """What numbers rest on."""

    qrels: QrelsFacts
    policies: Policies
    runs: tuple[RunFacts, ...]
    versions: Mapping[str, str]
    notes: tuple[Note, ...] = ()  # about the judgments, about the runs together, and about each run, its subject
    interval: IntervalMethod | None = None  # how intervals over topics were made, where there are any

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that should be known before the numbers are used."""
        return lines(self.notes)

    @property
    def where(self) -> str:
        """The expression by which topics were chosen; empty where all count."""
        return self.qrels.where

    def to_dict(self) -> dict[str, Any]:
        """Give ``judged, versions, qrels, policies, runs`` as plain Python values: the head of a document."""
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
    """Tell what judged lists of one ranking policy rest on, with the notes that `evaluate` has for them."""
    first = lists[0]
    ranking = first.ranking
    chosen = Policies(topics, ranking.ties, ranking.depth, ranking.precision, dialect)
    notes = qrels_notes(first.qrels, measures, measures) + list_notes(lists, chosen, measures) + unjudged_notes(lists)
    runs = tuple(map(run_facts, lists))
    return Provenance(qrels_facts(first.qrels), chosen, runs, versions(), notes + notes_of_runs(lists, topics))


def run_facts(judged: Judged) -> RunFacts:
    """Tell what is worth knowing of a run that was judged."""
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
    """Tell what is worth knowing of judgments."""
    counts = len(qrels.topics), len(qrels), qrels.distinct_grades
    return QrelsFacts(qrels.name, qrels.where, qrels.sha256, *counts, qrels.chosen_by, qrels.origin)


def refuse_foreign(judged: Judged) -> None:
    """Refuse a run that has no topic in common with the qrels: every number would be 0."""
    if judged.present.any():
        return
    theirs = f"its first topic is {judged.extra[0]!r}" if judged.extra else "it has no topics"
    raise InputError(
        f"the run has no topic in common with the qrels: {theirs}, that of the qrels {judged.query_ids[0]!r}",
        fix="check that both files use the same query ids",
        path=judged.run.where,
    )


def versions() -> dict[str, str]:
    """Give the versions of judged, Python and the libraries that compute."""
    import pyarrow as pa

    import judged

    return {
        "judged": judged.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
