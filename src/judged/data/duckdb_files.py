"""Tables in a database file of DuckDB: ``runs.duckdb/TABLE``, opened for reading only."""

from __future__ import annotations

import tempfile
from pathlib import Path

from judged.data import files
from judged.data.engine_rows import DuckdbTable, quoted
from judged.errors import InputError, MissingExtraError

_MAGIC = b"DUCK"  # at the ninth byte
_MEMORY = "600MB"  # beyond it DuckDB writes files


class TableInFile(DuckdbTable):
    """A table or view of a database file.

    Parameters
    ----------
    path
        The file.
    name
        The table, with its schema where that is not ``main``: ``bm25``, ``search.runs``.

    Raises
    ------
    InputError
        If the file cannot be opened, or has no such table.
    MissingExtraError
        If DuckDB is not installed.
    """

    def __init__(self, path: Path, name: str) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "logs") from None
        self.where = f"{path}/{name}"
        try:
            self.connection = duckdb.connect(path, read_only=True)
            known = self.connection.sql("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
        except duckdb.Error as error:
            first = str(error).split("\n", 1)[0]
            fix = "close it where it is open for writing, or look at the file"
            raise InputError(f"DuckDB says: {first}", fix=fix, path=str(path)) from None
        schema, _, table = name.rpartition(".")
        chosen = (schema or "main", table)
        if chosen not in known:
            names = [f"{path}/{found if where == 'main' else f'{where}.{found}'}" for where, found in known]
            fix = f"name a table: {', '.join(sorted(names)[:20])}" if names else "make a table in it"
            problem = f"the database has no table {name!r}" if name else "this is a database of DuckDB"
            raise InputError(problem, fix=fix, path=str(path))
        spills_to = tempfile.gettempdir().replace("'", "''")  # and not beside the database, which may be read-only
        for setting in (
            f"memory_limit = '{_MEMORY}'",
            f"temp_directory = '{spills_to}'",
            "enable_progress_bar = false",
        ):
            self.connection.execute(f"SET {setting}")
        super().__init__(self.connection.table(".".join(map(quoted, chosen))))


def table_in_file(path: str | Path) -> tuple[Path, str] | None:
    """Give database and table where a path names them; None where it is any other."""
    path = Path(path)
    for file, name in ((path, ""), (path.parent, path.name)):
        if files.exists(file) and file.is_file() and _is_database(file):
            return file, name
    return None


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == _MAGIC
