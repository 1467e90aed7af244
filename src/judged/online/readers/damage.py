"""Parquet that turns out to be damaged when the database reads it: no column is read before it is asked for."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from judged.errors import InputError

_FILE = re.compile(r'file "([^"]+)"')
_SIGNS = ("Failed to read file", "Parquet file", "Could not read enough bytes")


@contextmanager
def whole_files(paths: Sequence[str | Path]) -> Generator[None]:
    """Say which file is damaged where the database stumbles over it.

    Parameters
    ----------
    paths
        What is read: the database does not always say in which file it was.

    Raises
    ------
    InputError
        In the place of the database's own error.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        first = str(error).split("\n", 1)[0]
        # What its readers of packed data throw has no class of its own; whatever is wrong with SQL has one.
        if type(error) is not duckdb.Error and not any(sign in first for sign in _SIGNS):
            raise
        named = _FILE.search(first)
        where = named[1] if named else ""
        if not where or Path(where).name.startswith(("unpacked-", "named-")):  # a copy of ours
            where = ", ".join(map(str, paths))
        problem = f"the data of a Parquet file is damaged ({first.replace(named[1], where) if named else first})"
        raise InputError(problem, fix="make or fetch the file again", path=where) from None
