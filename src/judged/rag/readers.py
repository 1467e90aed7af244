"""Answers, and what is known of them, read from files of any tool."""

from __future__ import annotations

from pathlib import Path

from judged.data.records import read_records
from judged.errors import InputError
from judged.rag.responses import TABLES, Responses, table_of_records


def read_responses(path: str | Path) -> Responses:
    """Read answers and what is known of them.

    Parameters
    ----------
    path
        A folder with a file for each table, as CSV, TSV, JSON, JSON Lines or Parquet: ``answers.jsonl``,
        ``nuggets.csv``...

    Raises
    ------
    InputError
        If it cannot be read; the message names the line.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError("there is no such folder", fix="give one with answers.jsonl in it", path=str(path))
    files = {file.name.partition(".")[0]: file for file in sorted(folder.iterdir())}
    tables = {
        name: table_of_records(name, read_records(files[name]), str(files[name])) for name in TABLES if name in files
    }
    return Responses(tables, folder.name, str(path))
