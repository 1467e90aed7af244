"""Tables in a database file of DuckDB: ``runs.duckdb/TABLE``, opened for reading only."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from judged.data import files
from judged.data.engine_rows import DuckdbTable, quoted
from judged.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from judged._types import Table

_MAGIC = b"DUCK"  # at the ninth byte
_MEMORY = "600MB"  # beyond it DuckDB writes files
_OPTIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


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
            self.connection = duckdb.connect(path, read_only=True, config=_OPTIONS)
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
        self._restrict()
        try:
            relation = self.connection.table(".".join(map(quoted, chosen)))
        except duckdb.Error as error:
            first = str(error).split("\n", 1)[0]
            raise InputError(
                f"DuckDB says: {first}", fix="name a table, or a view of tables", path=self.where
            ) from None
        super().__init__(relation)

    def ask(self, sql: str, **given: Table) -> Table:
        """Run a query; given tables are registered, as DuckDB looks for no names of Python without external access."""
        for name, table in given.items():
            self.connection.register(name, table)
        return super().ask(sql, **given)

    def _restrict(self) -> None:
        """Limit memory, and let no view read another file; connections of a process to one file share settings."""
        ((open_to_files,),) = self.connection.sql("SELECT current_setting('enable_external_access')").fetchall()
        if not open_to_files:
            return
        # Not beside the database, which may be read-only; DuckDB makes it and removes it, and it stays open to views.
        spills_to = str(Path(tempfile.gettempdir(), f"judged-{uuid4().hex}")).replace("'", "''")
        for setting in (
            f"memory_limit = '{_MEMORY}'",
            f"temp_directory = '{spills_to}'",
            "enable_progress_bar = false",
            "enable_external_access = false",
        ):
            self.connection.execute(f"SET {setting}")


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
