"""Dialects: the rules of other tools, each under one name, to reproduce their numbers."""

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
from judged.results.spelling import use_one_of
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
    from judged.scoring.peers.names import NameParser

    Block = TypeVar("Block", Table, Batch)


def unchanged(qrels: Qrels) -> Qrels:
    """Return the qrels unchanged."""
    return qrels


def all_relevant(qrels: Qrels) -> Qrels:
    """Set all grades to 1: the script of MS MARCO does not read the grade."""
    return qrels.regraded(np.ones(len(qrels)))


def no_negative(qrels: Qrels) -> Qrels:
    """Replace negative grades by 0: a judged document that is not relevant."""
    return qrels.regraded(np.maximum(qrels.grades, 0.0)) if qrels.grades.min() < 0 else qrels


def without_self(run: Run) -> Run:
    """Remove documents with the id of their topic: in some collections, the queries are documents.

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
        return Run(TableRows(_remove_self(rows.table), rows.where), run.name)
    return Run(_WithoutSelf(rows), run.name)


def _remove_self(rows: Block) -> Block:
    return rows.filter(pc.not_equal(rows["query_id"], rows["doc_id"]))


@dataclass(frozen=True)
class _WithoutSelf:
    """Rows of a file without those that return the query; read in blocks, as the file is."""

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
        needed = tuple(dict.fromkeys((*columns, "query_id", "doc_id")))
        for part in self.rows.parts(needed, progress):
            yield lambda part=part: self._batch(part, columns)

    def _batch(self, part: Part, columns: tuple[str, ...]) -> Batch:
        batch = _remove_self(part())
        return batch.select([name for name in columns if name in batch.schema.names])

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        return self.rows.line(query_id, doc_id, nth)


@dataclass(frozen=True)
class Dialect:
    """Rules of one tool."""

    name: str
    about: str  # the tool and the peculiarities of its numbers, in a sentence or two
    # topics, ties, precision, depth: policies of a call; those passed to `evaluate` have precedence
    topics: TopicPolicy = "qrels"
    ties: TiePolicy = "docid"
    precision: Precision = "double"
    depth: int | None = None
    digits: int | None = None  # number of decimals that the tool prints; None for all
    defaults: tuple[str, ...] = ()  # default measures, by their names in the tool; empty for our defaults
    read: NameParser | None = field(default=None, repr=False)  # parser of the tool's names of measures
    regrades: str = ""  # description of how the tool changes grades, for a note if it changes some
    exclude_self: bool = False  # whether documents with the id of their topic are removed
    # names of measures that the tool averages over the topics of the run; for the others all topics count
    present_only: frozenset[str] = frozenset()
    # preprocessing of judgments
    prepare_qrels: Callable[[Qrels], Qrels] = field(default=unchanged, repr=False)

    def measures(self, names: Any, grades: Sequence[float] = ()) -> tuple[Measure, ...]:
        """Parse one or several names by the rules of the tool; names unknown to the tool are parsed as ours.

        >>> DIALECTS["gdeval"].measures("ndcg@20"), DIALECTS["msmarco"].measures("MRR @10")
        ((nDCG(gain=exp2,undefined=skip)@20,), (RR@10,))
        """
        parsed: list[Measure] = []
        for measure_or_name in list_measures(names):
            is_text = isinstance(measure_or_name, str)
            name, where = split_condition(measure_or_name) if is_text else (measure_or_name, "")
            by_tool = self.read(name, grades) if self.read and isinstance(name, str) else None
            measures = parse_many(name) if by_tool is None else by_tool
            parsed.extend(measure.replace(where=where) if where else measure for measure in measures)
        return tuple(dict.fromkeys(parsed))

    def policies(
        self,
        topics: TopicPolicy | None = None,
        ties: TieTreatment | None = None,
        depth: int | None = None,
        precision: Precision | None = None,
        exclude_self: bool | None = None,
    ) -> Policies:
        """Return the policies of a call; those that are None are the dialect's."""
        return Policies(
            topics=self.topics if topics is None else topics,
            ties=self.ties if ties is None else ties,
            depth=self.depth if depth is None else depth,
            precision=self.precision if precision is None else precision,
            dialect=self.name,
            exclude_self=self.exclude_self if exclude_self is None else exclude_self,
        )

    def topics_of(self, measure: Measure) -> TopicPolicy:
        """Return which topics count for a measure by default.

        >>> [DIALECTS["beir"].topics_of(measure) for measure in parse_many("nDCG@10") + parse_many("RR@10")]
        ['both', 'qrels']
        """
        return "both" if measure.entry.name in self.present_only else self.topics

    def format_value(self, value: float) -> str:
        """Format a number as the tool prints it.

        >>> DIALECTS["gdeval"].format_value(1 / 3), DIALECTS["msmarco"].format_value(0.1)
        ('0.33333', '0.1')
        """
        return repr(value) if self.digits is None else f"{value:.{self.digits}f}"


_CUTOFFS = "1,3,5,10,100,1000"

_ALL = (
    Dialect("judged", "Default rules: every topic of the qrels counts, and equal scores are ordered by document id."),
    Dialect(
        "trec_eval-10",
        "trec_eval 10.0 with -c. Without -c, trec_eval stops with an error if a topic is missing from the run.",
        digits=4,
        defaults=("official",),
        read=names.trec_eval_parser("trec_eval-10"),
    ),
    Dialect(
        "trec_eval-9",
        "trec_eval 9.0.8, and pytrec_eval: topics missing from the run do not count, scores are compared as 32-bit"
        " numbers, and recall levels are rounded up to integer numbers of documents.",
        topics="both",
        precision="single",
        digits=4,
        defaults=("official",),
        read=names.trec_eval_parser("trec_eval-9"),
    ),
    Dialect(
        "gdeval",
        "gdeval.pl of the TREC Web tracks: exponential gain, and 4 as the highest grade of ERR. Topics"
        " without a positive grade and topics missing from the run do not count.",
        topics="both",
        digits=5,
        defaults=("ndcg@20", "err@20"),
        read=names.table_parser(names.GDEVAL),
    ),
    Dialect(
        "ndeval",
        "ndeval of the TREC Web tracks: documents are ordered by the rank column, and topics missing from the run"
        " do not count. For ndeval -traditional, add ties=docid.",
        topics="both",
        ties="rank",
        digits=6,
        defaults=names.NDEVAL,
    ),
    Dialect(
        "msmarco",
        "The MS MARCO passage script: documents are ordered by the rank column, every judged document is relevant,"
        " and all topics of the qrels count.",
        ties="rank",
        defaults=("MRR@10",),
        read=names.table_parser(names.MSMARCO),
        regrades="every judged document counts as relevant, regardless of its grade",
        prepare_qrels=all_relevant,
    ),
    Dialect(
        "beir",
        "BEIR 2.2.0: documents whose id equals the topic id are removed, and scores are compared as 32-bit numbers. A"
        " topic missing from the run does not count for NDCG, MAP, Recall, and P, and counts as 0 for MRR, R_cap, Hole,"
        " and Accuracy.",
        present_only=frozenset({"nDCG", "AP", "R", "P"}),
        precision="single",
        digits=5,
        defaults=tuple(f"{name}@{_CUTOFFS}" for name in ("NDCG", "MAP", "Recall", "P")),
        read=names.table_parser(names.BEIR),
        exclude_self=True,
    ),
    Dialect(
        "ranx",
        "ranx with make_comparable: the lowest relevant grade (such as -l2) also sets the gain of lower grades to 0,"
        " and a"
        " document with a negative grade counts as judged not relevant.",
        read=names.parse_ranx_name,
        regrades="negative grades count as 0",
        prepare_qrels=no_negative,
    ),
)

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ALL}
"""All dialects by name."""


def dialect_of(dialect: str | Dialect | None) -> Dialect:
    """Return a dialect by its name; None for our own.

    Parameters
    ----------
    dialect
        Name, `Dialect`, or None.

    Raises
    ------
    InputError
        If there is no such dialect.

    Examples
    --------
    >>> dialect_of("trec_eval-9").name
    'trec_eval-9'
    """
    if isinstance(dialect, Dialect):
        return dialect
    if (rules := DIALECTS.get(dialect or "judged")) is None:
        raise InputError(f"unknown dialect {dialect!r}", fix=use_one_of(DIALECTS))
    return rules
