"""Qrels, runs and topics: read from what people have, held as Arrow columns."""

from judged.data.bulk import in_order
from judged.data.columns import Kind
from judged.data.ids import hash_ids, id_text
from judged.data.index import Aspects, QrelsIndex
from judged.data.objects import is_ids, rows_of_object
from judged.data.qrels import Qrels
from judged.data.rows import Digest, MappingRows, Part, Rows, TableRows
from judged.data.run import Run, split_runs

__all__ = [
    "Aspects",
    "Digest",
    "Kind",
    "MappingRows",
    "Part",
    "Qrels",
    "QrelsIndex",
    "Rows",
    "Run",
    "TableRows",
    "hash_ids",
    "id_text",
    "in_order",
    "is_ids",
    "rows_of_object",
    "split_runs",
]
