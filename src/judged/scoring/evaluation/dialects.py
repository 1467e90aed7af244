"""Dialects: the rules of one tool under one name, so that its numbers come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.rows import MappingRows, TableRows
from judged.data.run import Run
from judged.errors import InputError
from judged.scoring.evaluation.facts import Policies
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import list_measures, parse_many, split_condition
from judged.scoring.peers import names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from judged.data.rows import Part, Progress, Rows
    from judged.results.types import Batch, Table
    from judged.scoring.evaluation.facts import TieTreatment
    from judged.scoring.judging import Precision, TiePolicy, TopicPolicy
    from judged.scoring.peers.names import Reader

    Block = TypeVar("Block", Table, Batch)


def as_given(qrels: Qrels) -> Qrels:
    """Change nothing."""
    return qrels


def all_relevant(qrels: Qrels) -> Qrels:
    """Let every judged document be relevant, whatever its grade: MS MARCO's script does not read the grade."""
    return qrels.regraded(np.ones(len(qrels)))


def no_negative(qrels: Qrels) -> Qrels:
    """Let negative grades be 0: a judged document that is not relevant."""
    return qrels.regraded(np.maximum(qrels.grades, 0.0)) if qrels.grades.min() < 0 else qrels


def without_self(run: Run) -> Run:
    """Leave out each document whose id is that of the topic: in some collections the queries are documents.

    >>> run = without_self(Run.of({"a": {"a": 3.0, "b": 2.0}, "c": {"d": 1.0}}))
    >>> run.table.to_pydict()["doc_id"]
    ['b', 'd']
    """
    rows = run.rows
    if isinstance(rows, MappingRows):
        mapping = {
            topic: {doc: score for doc, score in docs.items() if doc != topic} if topic in docs else docs
            for topic, docs in rows.mapping.items()
        }
        return Run(MappingRows(mapping, rows.where, rows.has_scores, rows.has_ranks), run.name)
    if isinstance(rows, TableRows):
        return Run(TableRows(_kept(rows.table), rows.where), run.name)
    return Run(_WithoutSelf(rows), run.name)


def _kept(rows: Block) -> Block:
    return rows.filter(pc.not_equal(rows["query_id"], rows["doc_id"]))


@dataclass(frozen=True)
class _WithoutSelf:
    """Rows of a file without those that return the query itself; read in blocks, as the file is."""

    rows: Rows

    @property
    def where(self) -> str:
        return self.rows.where

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.rows.paths

    @property
    def has_scores(self) -> bool:
        return self.rows.has_scores

    @property
    def has_ranks(self) -> bool:
        return self.rows.has_ranks

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        both = tuple(dict.fromkeys((*columns, "query_id", "doc_id")))
        for part in self.rows.parts(both, progress):
            yield lambda part=part: self._batch(part, columns)

    def _batch(self, part: Part, columns: tuple[str, ...]) -> Batch:
        batch = _kept(part())
        return batch.select([name for name in columns if name in batch.schema.names])

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        return self.rows.line(query_id, doc_id, nth)


@dataclass(frozen=True)
class Dialect:
    """What one tool does, as far as it does the same every time."""

    name: str  # how it is asked for
    about: str  # the tool, and what is special about its numbers, in a sentence or two
    # topics, ties, precision, depth: the policies of a call; one that is given to `evaluate` goes before the dialect's
    topics: TopicPolicy = "qrels"
    ties: TiePolicy = "docid"
    precision: Precision = "double"
    depth: int | None = None
    digits: int | None = None  # how many decimals the tool prints; None for all
    defaults: tuple[str, ...] = ()  # what the tool computes when no measure is named, in its own words; empty for ours
    read: Reader | None = field(default=None, repr=False)  # reads a name as the tool means it
    regrades: str = ""  # what the tool does to grades, for a warning where that changes some
    exclude_self: bool = False  # whether documents with the id of their topic are left out
    # names of measures that the tool averages over the topics that the run has too; the others count all topics
    present_only: frozenset[str] = frozenset()
    # what the tool does to judgments before it ranks
    prepare_qrels: Callable[[Qrels], Qrels] = field(default=as_given, repr=False)

    def measures(self, names: Any, grades: Sequence[float] = ()) -> tuple[Measure, ...]:
        """Read one name or several as the tool means them; what it has no name for is read as ours.

        >>> DIALECTS["gdeval"].measures("ndcg@20"), DIALECTS["msmarco"].measures("MRR @10")
        ((nDCG(gain=exp2,undefined=skip)@20,), (RR@10,))
        """
        found: list[Measure] = []
        for one in list_measures(names):
            name, where = split_condition(one) if isinstance(one, str) else (one, "")
            known = self.read(name, grades) if self.read and isinstance(name, str) else None
            read = parse_many(name) if known is None else known
            found.extend(measure.replace(where=where) if where else measure for measure in read)
        return tuple(dict.fromkeys(found))

    def policies(
        self,
        topics: TopicPolicy | None = None,
        ties: TieTreatment | None = None,
        depth: int | None = None,
        precision: Precision | None = None,
        exclude_self: bool | None = None,
    ) -> Policies:
        """Give the policies of a call: what was chosen, and the dialect's where nothing was."""
        return Policies(
            topics=self.topics if topics is None else topics,
            ties=self.ties if ties is None else ties,
            depth=self.depth if depth is None else depth,
            precision=self.precision if precision is None else precision,
            dialect=self.name,
            exclude_self=self.exclude_self if exclude_self is None else exclude_self,
        )

    def topics_of(self, measure: Measure) -> TopicPolicy:
        """Return which topics count for a measure where the call chooses none.

        >>> [DIALECTS["beir"].topics_of(measure) for measure in parse_many("nDCG@10") + parse_many("RR@10")]
        ['both', 'qrels']
        """
        return "both" if measure.entry.name in self.present_only else self.topics

    def shown(self, value: float) -> str:
        """Write a number as the tool prints it.

        >>> DIALECTS["gdeval"].shown(1 / 3), DIALECTS["msmarco"].shown(0.1)
        ('0.33333', '0.1')
        """
        return repr(value) if self.digits is None else f"{value:.{self.digits}f}"


_CUTS = "1,3,5,10,100,1000"

_ALL = (
    Dialect("judged", "Our own rules: every topic of the qrels counts, and equal scores are ordered by document id."),
    Dialect(
        "trec_eval-10",
        "trec_eval 10.0 with -c. Without -c it ends with an error where a topic is missing from the run.",
        digits=4,
        defaults=("official",),
        read=names.trec_eval("trec_eval-10"),
    ),
    Dialect(
        "trec_eval-9",
        "trec_eval 9.0.8, and pytrec_eval: topics that the run lacks do not count, scores are compared as 32-bit"
        " numbers, and recall levels are rounded up to whole documents.",
        topics="both",
        precision="single",
        digits=4,
        defaults=("official",),
        read=names.trec_eval("trec_eval-9"),
    ),
    Dialect(
        "gdeval",
        "gdeval.pl of the TREC Web tracks: exponential gain, ERR on a scale up to 4, and only topics count that have a"
        " positive grade and are in the run.",
        topics="both",
        digits=5,
        defaults=("ndcg@20", "err@20"),
        read=names.listed(names.GDEVAL),
    ),
    Dialect(
        "ndeval",
        "ndeval of the TREC Web tracks: documents stand in the order of the rank column, and topics that the run lacks"
        " do not count. For ndeval -traditional add ties=docid.",
        topics="both",
        ties="rank",
        digits=6,
        defaults=names.NDEVAL,
    ),
    Dialect(
        "msmarco",
        "The MS MARCO passage script: documents stand in the order of the rank column, every judged one is relevant,"
        " and all topics of the qrels count.",
        ties="rank",
        defaults=("MRR@10",),
        read=names.listed(names.MSMARCO),
        regrades="every judged document counts as relevant, whatever its grade",
        prepare_qrels=all_relevant,
    ),
    Dialect(
        "beir",
        "BEIR 2.2.0: documents with the id of the topic are left out, scores are compared as 32-bit numbers, and a"
        " topic that the run lacks does not count for NDCG, MAP, Recall, and P, and counts as 0 for MRR, R_cap, Hole,"
        " and Accuracy.",
        present_only=frozenset({"nDCG", "AP", "R", "P"}),
        precision="single",
        digits=5,
        defaults=tuple(f"{name}@{_CUTS}" for name in ("NDCG", "MAP", "Recall", "P")),
        read=names.listed(names.BEIR),
        exclude_self=True,
    ),
    Dialect(
        "ranx",
        "ranx with make_comparable: a level (-l2) takes the gain of lower grades away too, and a negative grade is a"
        " judged document that is not relevant.",
        read=names.ranx,
        regrades="negative grades count as 0",
        prepare_qrels=no_negative,
    ),
)

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ALL}
"""Every dialect by its name."""


def dialect_of(given: str | Dialect | None) -> Dialect:
    """Find a dialect by its name; None is our own."""
    if isinstance(given, Dialect):
        return given
    if (dialect := DIALECTS.get(given or "judged")) is None:
        raise InputError(f"no dialect {given!r}", fix=f"use one of {', '.join(DIALECTS)}")
    return dialect
