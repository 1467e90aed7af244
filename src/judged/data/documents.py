"""What is known of documents besides their ids: lengths, costs, groups. A few measures ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa

from judged.data import files
from judged.data.columns import ONCE, canonical, clash
from judged.data.compute import pc
from judged.data.fact_files import read_facts, under_id
from judged.data.ids import id_column, id_text
from judged.data.objects import dict_table
from judged.data.rows import table_of
from judged.errors import InputError

if TYPE_CHECKING:
    from judged._types import Strings, Table

_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Documents:
    """Facts about documents, by id. Immutable.

    Parameters
    ----------
    table
        Arrow table with the column ``doc_id`` and one for each fact: ``length``, ``cost``, ``group``, whatever
        a measure asks for.
    where
        The path it came from.

    Raises
    ------
    InputError
        If it has no column ``doc_id``, or a document stands in it twice.

    Examples
    --------
    >>> Documents.of({"d1": {"length": 120, "group": "a"}, "d2": {"length": 80, "group": "b"}})
    Documents(2 documents: length, group)
    """

    table: Table = field(repr=False)
    where: str = "<table>"

    def __post_init__(self) -> None:
        if "doc_id" not in self.table.column_names:
            found = ", ".join(self.table.column_names)
            raise InputError(f"no doc_id among its columns {found}", fix="name a column doc_id", path=self.where)
        if len(pc.unique(self.table["doc_id"])) < self.table.num_rows:
            counts = pc.value_counts(self.table["doc_id"]).to_pylist()
            twice = next(entry["values"] for entry in counts if entry["counts"] > 1)
            raise InputError(f"document {twice} stands in it twice", fix="keep one row a document", path=self.where)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read facts from a file with named columns: CSV, TSV, JSON, JSONL, Parquet or Arrow, compressed or not.

        Raises
        ------
        InputError
            If the file cannot be read so.
        """
        where = files.STDIN if str(path) == "-" else str(path)
        return cls(read_facts(path, "doc_id"), where)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Take ``{doc_id: {"length": 120}}``, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object cannot be read so.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.read(data)
        if isinstance(data, Mapping):
            facts = cast("Mapping[Any, Any]", data)
            rows = [
                under_id("doc_id", id_text(doc, "document id"), _known(doc, known), "<dict>")
                for doc, known in facts.items()
            ]
            return cls(_named(_table_of(rows)), "<dict>")
        if hasattr(data, "__arrow_c_stream__") or isinstance(data, (pa.Table, pa.RecordBatch)):
            return cls(_named(table_of(data)))
        if isinstance(data, Iterable):
            return cls(_named(_table_of([_known(None, known) for known in cast("Iterable[Any]", data)])), "<records>")
        raise InputError(f"a {type(data).__name__} tells nothing of documents", fix='give {"d1": {"length": 120}}')

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of what is known."""
        return tuple(name for name in self.table.column_names if name != "doc_id")

    def column(self, name: str, docs: Strings) -> Any:
        """Look one fact up for many documents.

        Raises
        ------
        InputError
            If there is no such column, or a document has no value in it.
        """
        if name not in self.facts:
            known = ", ".join(self.facts) or "nothing"
            raise InputError(f"no column {name!r} (there is {known})", fix=f"add a column {name}", path=self.where)
        found = self.table[name].take(pc.index_in(docs, value_set=self.table["doc_id"].combine_chunks()))
        if found.null_count:
            lacking = docs.filter(pc.is_null(found).combine_chunks())
            some = ", ".join(lacking.slice(0, _SHOWN).to_pylist())
            problem = f"{len(lacking)} returned documents have no {name}: {some}"
            raise InputError(problem, fix="add them to the table of documents", path=self.where)
        return found.combine_chunks()

    def __repr__(self) -> str:
        return f"Documents({self.table.num_rows} documents: {', '.join(self.facts) or 'nothing known'})"


def _known(doc: Any, known: Any) -> Mapping[str, Any]:
    if not isinstance(known, Mapping):
        of = "" if doc is None else f" for document {doc}"
        raise InputError(f"{known!r:.40} tells nothing{of}", fix='give {"d1": {"length": 120}}', path="<documents>")
    return cast("Mapping[str, Any]", known)


def _table_of(rows: list[Any]) -> Table:
    try:
        return dict_table(rows)
    except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
        raise InputError(
            f"facts about documents cannot be read ({error})", fix="give one kind of value a column", path="<documents>"
        ) from None


def _named(table: Table) -> Table:
    ours = canonical(table.column_names, "qrels")
    if problem := clash([name if name == "doc_id" else "" for name in ours], table.column_names, "qrels"):
        raise InputError(problem, fix=ONCE, path="<documents>")
    names = ["doc_id" if to == "doc_id" else name for name, to in zip(table.column_names, ours, strict=True)]
    table = table.rename_columns(names)
    if "doc_id" not in names:
        return table
    return table.set_column(names.index("doc_id"), "doc_id", id_column(table["doc_id"], "doc_id"))
