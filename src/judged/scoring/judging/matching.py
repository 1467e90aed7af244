"""Match the ids of a run with those of the qrels, if they differ only in notation: case, leading zeros, a final .0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from judged.data.compute import pc
from judged.data.index import normalize_ids
from judged.data.run import Run
from judged.data.sources import FileTable

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.results.types import Strings

MAX_ROWS = 8_000_000
"""Largest number of rows of a run whose ids are matched, as they are read into memory."""


def with_ids_of(qrels: Qrels, run: Run) -> Run:
    """Replace ids of a run by the ids of the qrels with the same normalized form (`normalize_ids`).

    Ids that are in the qrels are kept, and so are ids whose form belongs to several ids of the qrels.

    Examples
    --------
    >>> from judged import Qrels
    >>> with_ids_of(Qrels.of({"q1": {"SKU-7": 1}}), Run.of({"Q1": {"sku-007": 0.9}})).table.to_pydict()
    {'query_id': ['q1'], 'doc_id': ['SKU-7'], 'score': [0.9]}
    """
    table = run.table
    for name in ("query_id", "doc_id"):
        ids = _ids_like(table[name].combine_chunks(), pc.unique(qrels.table[name]))
        table = table.set_column(table.column_names.index(name), name, ids)
    return Run(FileTable(table, run.where, *run.rows.paths[:1]), run.name)


def _ids_like(ids: Strings, known_ids: Strings) -> Strings:
    forms = normalize_ids(known_ids)
    counts = pc.value_counts(forms)
    unique_forms = counts.field("values").filter(pc.equal(counts.field("counts"), 1))
    is_unique = pc.is_in(forms, value_set=unique_forms)
    found = pc.index_in(normalize_ids(ids), value_set=forms.filter(is_unique))
    replaced = pc.take(known_ids.filter(is_unique), found)
    keeps_id = pc.or_(pc.is_in(ids, value_set=known_ids), pc.is_null(found))
    return pc.if_else(keeps_id, ids, replaced).cast(pa.string())
