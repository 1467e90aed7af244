"""Facts about documents besides their ids: lengths, costs, groups. A few measures need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pyarrow as pa

from judged.data import files
from judged.data.compute import pc
from judged.data.fact_files import OF, read_facts, typed_facts, under_id
from judged.data.index import id_text
from judged.data.rows import table_of
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.results.types import Strings, Table


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts by id: texts, numbers, or true and false; null where one is not known."""

    id_name: ClassVar[str]

    table: Table
    where: str = "<table>"

    def __post_init__(self) -> None:
        if self.id_name not in self.table.column_names:
            named = f"no {self.id_name} among its columns {', '.join(self.table.column_names)}"
            raise InputError(named, fix=f"name a column {self.id_name}", path=self.where)
        refuse_twice(self.table, self.id_name, self.where)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file with named columns: CSV, TSV, JSON, JSONL, Parquet or Arrow, compressed or not.

        Raises
        ------
        InputError
            If the file cannot be read so.
        """
        return cls(read_facts(path, cls.id_name), files.STDIN if str(path) == "-" else str(path))

    @classmethod
    def of(cls, data: Any) -> Self:
        """Take ``{id: {"name": value}}``, a data frame, a list of dicts, or a path.

        Raises
        ------
        InputError
            If the object cannot be read so.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, Path)):
            return cls.read(data)
        if hasattr(data, "__arrow_c_stream__") or isinstance(data, (pa.Table, pa.RecordBatch)):
            return cls(typed_facts(table_of(data), cls.id_name, "<table>"))
        if isinstance(data, Mapping):
            known = cast("Mapping[Any, Any]", data).items()
            rows = [under_id(cls.id_name, id_text(key, cls.id_name), cls._record(one), "<dict>") for key, one in known]
        elif isinstance(data, Iterable):
            rows = [dict(cls._record(one)) for one in cast("Iterable[Any]", data)]
        else:
            problem = f"a {type(data).__name__} tells nothing of {OF[cls.id_name]}s"
            raise InputError(problem, fix='give {"id": {"name": "value"}}')
        where = "<dict>" if isinstance(data, Mapping) else "<records>"
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {str(name): _array([row.get(name) for row in rows], where) for name in names}
        return cls(typed_facts(pa.table(columns), cls.id_name, where), where)

    @classmethod
    def _record(cls, known: Any) -> Mapping[str, Any]:
        if isinstance(known, Mapping):
            return cast("Mapping[str, Any]", known)
        raise InputError(f"{known!r:.40} tells nothing of a {OF[cls.id_name]}", fix='give {"id": {"name": "value"}}')

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what is known."""
        return tuple(name for name in self.table.column_names if name != self.id_name)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The topics or documents, in the order of the rows."""
        return tuple(self.table[self.id_name].to_pylist())

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        known = ", ".join(self.names) or "nothing known"
        return f"{type(self).__name__}({len(self)} {OF[self.id_name]}s: {known})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the table to any library that reads Arrow."""
        return pa.table(self.table).__arrow_c_stream__(requested_schema)


def refuse_twice(table: Table, id_name: str, where: str) -> None:
    """Refuse a table in which an id stands twice."""
    if len(pc.unique(table[id_name])) < table.num_rows:
        counts = pc.value_counts(table[id_name]).to_pylist()
        twice = next(entry["values"] for entry in counts if entry["counts"] > 1)
        of = OF[id_name]
        raise InputError(f"{of} {twice} appears in it twice", fix=f"keep one row per {of}", path=where)


def _array(values: list[Any], where: str) -> Any:
    """Make a column of values that a record may lack; those of several types become text."""
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    except UnicodeEncodeError:
        raise InputError("a text in it holds half a character", fix="correct it", path=where) from None


_SHOWN = 3


class Documents(Facts):
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
        If it has no column ``doc_id``, or a document appears in it twice.

    Examples
    --------
    >>> Documents.of({"d1": {"length": 120, "group": "a"}, "d2": {"length": 80, "group": "b"}})
    Documents(2 documents: length, group)
    """

    id_name: ClassVar[str] = "doc_id"

    def column(self, name: str, docs: Strings) -> Any:
        """Look one fact up for many documents.

        Raises
        ------
        InputError
            If there is no such column, or a document has no value in it.
        """
        if name not in self.names:
            known = ", ".join(self.names) or "nothing"
            raise InputError(f"no column {name!r} (there is {known})", fix=f"add a column {name}", path=self.where)
        found = self.table[name].take(pc.index_in(docs, value_set=self.table["doc_id"].combine_chunks()))
        if found.null_count:
            lacking = docs.filter(pc.is_null(found).combine_chunks())
            some = ", ".join(lacking.slice(0, _SHOWN).to_pylist())
            problem = f"{len(lacking)} returned documents have no {name}: {some}"
            raise InputError(problem, fix="add them to the table of documents", path=self.where)
        return found.combine_chunks()
