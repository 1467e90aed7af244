"""The records of a log that is read by a mapping, whatever their format: one table of JSON objects."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data.files import compression, opened
from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.reading.loading import Progress, Rows, Troubles, dropped_after, load_lines, new_name, run, trouble_of
from judged.online.reading.mapping_file import FORMATS, MappingFile
from judged.online.reading.raw import Trouble
from judged.online.tables import Column

if TYPE_CHECKING:
    from judged.online.engine import Engine

_RECORD = (Column("file", "int32", False, ""), Column("row", "int64", False, ""), Column("doc", "string", False, ""))
_SAMPLE = 200
_END = "\ue000\ue001\ue000"  # characters that no text has


class Loader:
    """Brings the records of all files into one table: file, row, and the record as JSON."""

    def __init__(
        self, engine: Engine, mapping: MappingFile, files: tuple[str, ...], name: str, progress: Progress
    ) -> None:
        self._engine, self._mapping, self._files, self._name, self._progress = engine, mapping, files, name, progress
        self.columns: tuple[str, ...] = ()
        self.lines = 0
        self.trouble: tuple[Trouble, ...] = ()
        self._troubles = Troubles()

    def load(self, paths: Sequence[Path | str]) -> None:
        """Load them."""
        formats = {self._mapping.format or _format(path) for path in paths}
        if len(formats) > 1:
            raise InputError(
                f"the files are of several formats: {', '.join(sorted(formats))}", fix="read one format at a time"
            )
        form = formats.pop()
        if form == "jsonl":
            self._json(paths)
        elif form == "parquet":
            self._parquet(paths)
        else:
            self._csv(paths, self._mapping.separator or ("\t" if form == "tsv" else ","))
        self.trouble += self._troubles.given()

    def _json(self, paths: Sequence[Path | str]) -> None:
        name = new_name("json")
        with dropped_after(self._engine, name):
            sql = f"CREATE TABLE {name} AS SELECT file, row, TRY_CAST(line AS JSON) AS doc FROM {{lines}}"
            self.lines, long = load_lines(paths, self._engine, sql, self._progress, self._mapping.encoding)
            bad = "doc IS NULL OR json_type(doc) <> 'OBJECT'"
            run(self._engine, f"CREATE TABLE {self._name} AS SELECT * FROM {name} WHERE NOT ({bad})")
            like = Trouble("broken-json", "file", 0, True, "the line is no JSON object", "write one object a line")
            self.trouble = (*long, *trouble_of(self._engine, self._files, name, bad, like))

    def _parquet(self, paths: Sequence[Path | str]) -> None:
        import duckdb

        parts: list[str] = []
        names: dict[str, None] = {}
        for file, path in enumerate(paths):
            source = f"read_parquet({literal(str(path))}, file_row_number = true)"
            try:
                described = run(self._engine, f"DESCRIBE SELECT * FROM {source}")
            except duckdb.Error as error:
                problem = "it is no Parquet file" if Path(path).is_file() else "there is no such file"
                raise InputError(
                    f"{problem} ({str(error).splitlines()[0][:200]})", fix="check the path", path=str(path)
                ) from None
            names.update(dict.fromkeys(one[0] for one in described if one[0] != "file_row_number"))
            parts.append(
                f"SELECT {file} AS file, file_row_number + 1 AS row, to_json(record) AS doc FROM "
                f"(SELECT file_row_number, {_packed(described)} AS record FROM {source})"
            )
        self.columns = tuple(names)
        run(self._engine, f"CREATE TABLE {self._name} AS {' UNION ALL '.join(parts)}")
        self.lines = run(self._engine, f"SELECT count(*) FROM {self._name}")[0][0]
        if self._progress is not None:
            self._progress(self.lines)

    def _csv(self, paths: Sequence[Path | str], separator: str) -> None:
        rows = Rows(self._engine, "records", _RECORD)
        encoding = "utf-8-sig" if self._mapping.encoding == "utf-8" else self._mapping.encoding
        names: dict[str, None] = {}
        for file, path in enumerate(paths):
            with opened(path) as raw, io.TextIOWrapper(raw, encoding, errors="replace", newline="") as text:
                names.update(dict.fromkeys(self._csv_file(file, str(path), text, separator, rows)))
        self.columns = tuple(names)
        rows.done()
        run(self._engine, f"CREATE TABLE {self._name} AS SELECT file, row, CAST(doc AS JSON) AS doc FROM {rows.name}")
        run(self._engine, f"DROP TABLE {rows.name}")

    def _csv_file(self, file: int, path: str, text: io.TextIOWrapper, separator: str, rows: Rows) -> Sequence[str]:
        quote = self._mapping.quote
        reader = csv.reader(
            _ended(text),
            delimiter=separator,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        )
        names: Sequence[str] = self._mapping.names
        before = 0
        try:
            for cells in _whole(reader):
                line, before = before + 1, reader.line_num
                if not any(cells):
                    continue
                if self._mapping.header and line == 1:
                    names = self._header(cells, path)
                    continue
                self._csv_row(cells, names, (file, path, line), rows)
        except csv.Error as error:
            fix = 'close the quotation mark that is open, or write quote = "" under [file]'
            raise InputError(f"the file is no CSV here ({error})", fix=fix, path=path, line=before + 1) from None
        return names

    def _csv_row(self, cells: list[str], names: Sequence[str], place: tuple[int, str, int], rows: Rows) -> None:
        file, path, line = place
        self.lines += 1
        if self._progress is not None:
            self._progress(1)
        if not names:
            fix = "write columns = [...] under [file]"
            raise InputError("the columns have no names", fix=fix, path=self._mapping.path)
        if len(cells) != len(names):
            self._troubles.add(
                "wrong-width", "file", f"the row does not have {len(names)} fields", fix="quote what holds a separator",
                place=f"{path}:{line}", lost=True,
            )  # fmt: skip
            return
        rows.add({"file": file, "row": line, "doc": json.dumps(dict(zip(names, cells, strict=True)))})

    def _header(self, cells: list[str], path: str) -> Sequence[str]:
        if self._mapping.names:
            return self._mapping.names
        if len(set(cells)) < len(cells):
            raise InputError("the header names a column twice", fix="give each its own name", path=path, line=1)
        return cells

    def paths(self) -> list[str]:
        """Give what can be named: columns, or the members of the first JSON records."""
        if self.columns:
            return list(self.columns)
        found: dict[str, None] = {}
        for (doc,) in run(self._engine, f"SELECT CAST(doc AS VARCHAR) FROM {self._name} LIMIT {_SAMPLE}"):
            with suppress(RecursionError):  # objects in one another by the thousand: others tell the names
                _members(json.loads(doc), "", found)
        return list(found)


def _ended(text: Iterable[str]) -> Iterator[str]:
    """Put a line behind the last one: a quotation mark that is never closed takes it in, and so it is seen."""
    line = ""
    for line in text:
        yield line
    if line and not line.endswith(("\n", "\r")):
        yield "\n"
    yield _END


def _whole(reader: Iterable[list[str]]) -> Iterator[list[str]]:
    for cells in reader:
        if cells == [_END]:
            return
        if cells and cells[-1].endswith(_END):
            raise csv.Error("unexpected end of data")
        yield cells


def _packed(described: Sequence[tuple[Any, ...]]) -> str:
    """Pack all columns of a table into one value."""
    names = [str(one[0]) for one in described if one[0] != "file_row_number"]
    return "{" + ", ".join(f"{literal(name)}: {identifier(name)}" for name in names) + "}"


def _members(value: Any, before: str, found: dict[str, None]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{before}.{key}" if before else str(key)
            found[path] = None
            _members(inner, path, found)


def _format(path: Path | str) -> str:
    suffixes = [one.lower().lstrip(".") for one in Path(path).suffixes]
    names = {"jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl", "csv": "csv", "tsv": "tsv", "parquet": "parquet"}
    found = next((names[one] for one in reversed(suffixes) if one in names), None)
    if found is None:
        raise InputError(
            "the name does not tell the format",
            fix=f"write format = one of {', '.join(FORMATS)} under [file]",
            path=str(path),
        )
    if found == "parquet" and Path(path).is_file() and compression(path):
        raise InputError("the Parquet file is compressed as a whole", fix="decompress it", path=str(path))
    return found
