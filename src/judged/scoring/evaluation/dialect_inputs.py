"""Changes to judgments and runs before documents are ranked, as some tools make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.rows import MappingRows, TableRows
from judged.data.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Batch, Table
    from judged.data.rows import Digest, Part, Rows

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
    def has_scores(self) -> bool:
        return self.rows.has_scores

    @property
    def has_ranks(self) -> bool:
        return self.rows.has_ranks

    def parts(self, columns: tuple[str, ...], digest: Digest | None = None) -> Iterator[Part]:
        both = tuple(dict.fromkeys((*columns, "query_id", "doc_id")))
        for part in self.rows.parts(both, digest):
            yield lambda part=part: self._batch(part, columns)

    def _batch(self, part: Part, columns: tuple[str, ...]) -> Batch:
        batch = _kept(part())
        return batch.select([name for name in columns if name in batch.schema.names])

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        return self.rows.line(query_id, doc_id, nth)
