"""Drafts of mapping files: a first mapping, derived from the data of an unknown log."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from judged.errors import InputError
from judged.online.readers import files
from judged.online.readers.column_roles import (
    MISSING_WORDS,
    ROLES,
    SYNONYMS,
    ColumnProfile,
    as_list,
    assign_roles,
    profile_columns,
)
from judged.online.readers.draft_sections import CLICK_OBJECT, DraftSections, toml_value
from judged.online.readers.mapping_file import suggest_name

_BULK = {"index", "create"}
SAMPLE = 2_000  # records that a draft is based on
_MAX_LINES = 30  # lines up to which each unused column has a line of its own


@dataclass(frozen=True)
class LogDraft:
    """A drafted mapping, the use of each column of the log, doubts, and roles that no column has."""

    text: str
    uses: Mapping[str, str]
    roles: dict[str, str]
    doubts: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the draft has pages."""
        return "\n[queries" in self.text

    def describe(self) -> str:
        """Describe the use of each column."""
        return "; ".join(f"{column}: {use}" for column, use in self.uses.items())


def draft_mapping(path: str | Path) -> str:
    r"""Draft a mapping of a log from its data, as TOML for ``mapping=``. Check it before use.

    Columns are recognized by their names and values: ids, times and their units, ranks, queries, click flags, lists.
    Each line ends with examples of values. Comments that begin with ``CHECK`` mark what the data do not show.

    Parameters
    ----------
    path
        File of JSON lines, CSV, TSV or Parquet. The first 2,000 records are read.

    Returns
    -------
    str
        The mapping. If the data have no results, clicks or queries, it has no sections, and a comment explains it.

    Raises
    ------
    InputError
        If the file cannot be read, or holds no record.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "shop.csv"
    ...     _ = log.write_text("sid,ts,search_term,urls\n7,2026-01-05T10:00:00Z,red shoes,d7|d9\n")
    ...     print(draft_mapping(log))
    # Drafted from 1 record of shop.csv. Review it: CHECK marks guesses.
    note = "shop.csv"
    file = { format = "csv", separator = "," }
    <BLANKLINE>
    [queries.columns]
    query_id = "#row"  # each row is a page
    session_id = "sid"  # 7
    time = "ts"  # 2026-01-05T10:00:00Z
    query = "search_term"  # red shoes
    hit_ids = { path = "urls", separator = "|" }  # d7|d9
    <BLANKLINE>
    # CHECK: no column has clicks
    <BLANKLINE>
    """
    return draft_log(files.find_log_files([path])[0]).text


def draft_log(log_file: files.LogFile, columns: Mapping[str, str] | None = None) -> LogDraft:
    """Draft a mapping of a log. `columns` are columns by role, which the user names.

    Raises
    ------
    InputError
        If the file cannot be read, holds no record, or lacks a column.
    """
    file, records = _read_sample(log_file)
    if not records:
        raise InputError("no records to draft a mapping from", fix="name a file with records", path=log_file.name)
    name = Path(log_file.name).name
    profiles = profile_columns(records)
    named = _named_columns(columns or {}, profiles, log_file.name)
    free_profiles = [profile for profile in profiles if not CLICK_OBJECT.match(profile.path)]
    roles, doubts = assign_roles(free_profiles, columns=named)
    # Only words that occur are listed, so that the draft stays short.
    texts = {value for record in records for value in record.values() if isinstance(value, str)}
    missing_words = texts & set(MISSING_WORDS)
    file |= {"null": ["", *sorted(missing_words)]} if missing_words else {}
    with suppress(InputError):
        if (layout := files.detect_file_layout(log_file)) != "ubi":
            doubts.insert(0, f"this file can be read without a mapping, with the layout {layout}")
    draft = DraftSections(profiles, roles, len(records))
    for doubt in doubts:
        draft.doubt(doubt)
    draft.sections()
    count = f"{len(records):,} record{'s' if len(records) > 1 else ''}"
    lines = [
        f"# Drafted from {count} of {name}. Review it: CHECK marks guesses.",
        f"note = {toml_value(name)}",
        *draft.rank_base(),
        *draft.convention(),
        f"file = {toml_value(file)}",
        *([f"actions = {toml_value(draft.actions)}"] if draft.actions else []),
        *([""] if doubts else []),
        *draft.lines,
    ]
    text = "\n".join([*lines, *draft.unused_lines(_MAX_LINES - len(lines)), ""])
    paths = {role: profile.path for role, profile in roles.items()}
    return LogDraft(text, draft.all_uses, paths, tuple(draft.doubts), draft.missing_roles)


def _named_columns(
    columns: Mapping[str, str], profiles: Sequence[ColumnProfile], log_name: str
) -> dict[str, ColumnProfile]:
    """Return the columns that the user names, by role."""
    by_path = {profile.path: profile for profile in profiles}
    named = dict[str, ColumnProfile]()
    for name, path in columns.items():
        role = SYNONYMS.get(name, name)
        if role not in ROLES:
            raise InputError(f"--columns has an unknown name {name!r}", fix=suggest_name(name, ROLES))
        if path not in by_path:
            raise InputError(f"the log has no column {path!r}", fix=suggest_name(path, by_path), path=log_name)
        profile = by_path[path]
        if role in {"click", "clicks"}:
            role = "click" if profile.is_flag and not profile.is_list else "clicks"
        is_list = role in {"hit_ids", "clicks", "ranks"} or (role == "dwell" and not profile.numbers)
        named[role] = as_list(profile) if is_list else profile
    return named


def _read_sample(log_file: files.LogFile) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the first records of a file. Return its ``[file]`` options and the records."""
    from judged.online.engine import Database

    # The engine's folder has the decompressed file. It exists as long as the engine.
    engine = Database()
    log_file = files.split_json(log_file, engine)
    file_format = files.detect_format(log_file, ())
    if file_format == "parquet":
        from judged.data.arrow_files import parquet_batches

        batch = next(parquet_batches(files.unpacked_path(log_file, engine), log_file.name, list), None)
        return {"format": "parquet"}, [] if batch is None else batch.slice(0, SAMPLE).to_pylist()
    if file_format == "lines":
        # Lines with only a bulk action belong to the record in the next line.
        records = [record for record in files.json_objects(log_file, SAMPLE) if not record.keys() <= _BULK]
        return {"format": "jsonl"}, records
    text = files.read_head(log_file).decode("utf-8", errors="replace")
    header = text.split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    rows = [row for row in islice(csv.reader(text.splitlines(), delimiter=separator), SAMPLE + 1) if any(row)]
    rows = rows[:-1] if len(text) >= 1 << 18 else rows  # the last row is probably incomplete
    options: dict[str, Any] = {"format": "tsv" if separator == "\t" else "csv", "separator": separator}
    names = [cell.strip() for cell in rows[0]] if rows else []
    # Column names can be in any script, but do not begin with a digit. Other first rows are data.
    if not all(re.fullmatch(r"[^\W\d][\w .()/%\[\]-]*|", name) for name in names) or len(set(names)) < len(names):
        names = [f"column_{number}" for number in range(1, len(names) + 1)]
        options |= {"header": False, "columns": names}
    else:
        rows = rows[1:]
    return options, [dict(zip(names, row, strict=False)) for row in rows if len(row) == len(names)]
