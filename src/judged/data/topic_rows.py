"""A run in memory that gives the rows of one topic at once, for whoever looks at topics one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array
from judged.data.rows import TableRows
from judged.data.run import Run

if TYPE_CHECKING:
    from judged._types import Table


@dataclass(frozen=True, eq=False)
class TopicRows:
    """The rows of a run by topic. Query ids are kept once a topic and not once a row.

    >>> rows = TopicRows.of(Run.of({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}}, name="mine"))
    >>> rows.run("q1").table.to_pydict()
    {'query_id': ['q1', 'q1'], 'doc_id': ['d1', 'd2'], 'score': [2.0, 1.0]}
    >>> list(rows.run("q9").rows.parts(("query_id",)))
    []
    """

    name: str  # of the run
    where: str  # of the run
    # `doc_id` and, where the run has them, `score` and `rank`; the rows of a topic stand together, in the order of the
    # run
    table: Table = field(repr=False)
    bounds: dict[str, tuple[int, int]] = field(repr=False)  # where the rows of a topic begin and end

    @classmethod
    def of(cls, run: Run) -> Self:
        """Read a run into memory."""
        table = run.table
        query = table["query_id"].combine_chunks()
        query = query.dictionary_encode() if not isinstance(query, pa.DictionaryArray) else query
        codes = np.asarray(query.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        rest = table.drop_columns(["query_id"])
        if np.any(np.diff(codes) < 0):  # a topic comes back after others
            order = np.argsort(codes, kind="stable")
            codes, rest = codes[order], rest.take(int_array(order))
        names = query.dictionary.to_pylist()
        edges = np.searchsorted(codes, np.arange(len(names) + 1)).tolist()
        bounds = {str(name): (edges[at], edges[at + 1]) for at, name in enumerate(names)}
        kept = [name for name in ("doc_id", "score", "rank") if name in rest.column_names]
        return cls(run.name, run.where, rest.select(kept), bounds)

    def run(self, query_id: str) -> Run:
        """Give one topic as a run of its own; an empty one where the run has not answered it."""
        first, last = self.bounds.get(query_id, (0, 0))
        part = self.table.slice(first, last - first)
        query = pa.array([query_id] * part.num_rows, pa.string())
        return Run(TableRows(part.add_column(0, "query_id", query).combine_chunks(), self.where), self.name)
