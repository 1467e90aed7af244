"""Logs of an unknown layout, read with a drafted mapping or with the columns that the user names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from judged.data.column_names import reading_options
from judged.errors import InputError, JudgedWarning
from judged.online.readers.draft import LogDraft, draft_log
from judged.online.readers.files import LogFile, UnknownLayoutError
from judged.online.readers.mapping_file import MappingFile, parse_mapping

_MIN_ROLES = 3  # a file with fewer known columns is probably no log
_SEARCH_CONSOLE = {"clicks", "impressions", "ctr", "position"}
_SUMS_FIX = "no command of judged reads sums; export a row per search or click, with query, user, variant, and time"


def log_columns() -> dict[str, str]:
    """Return the columns of logs that the user names with ``--columns``, by role."""
    pairs = [(name.rpartition("."), column) for name, column in reading_options().columns.items()]
    return {name: column for (kind, _, name), column in pairs if kind in {"", "log"}}


def draft_for_reading(
    log_files: Sequence[LogFile], columns: Mapping[str, str], error: UnknownLayoutError | None
) -> MappingFile:
    """Draft a mapping to read a log with, and warn about it.

    Parameters
    ----------
    columns
        Columns by role, which the user names. If there are some, doubts are no error.
    error
        The error about the unknown layout, which is raised if the file is probably no log.

    Raises
    ------
    InputError
        If the draft is incomplete or has doubts, or the files have different columns.
    """
    log_file, *other_files = log_files
    try:
        draft = draft_log(log_file, columns)
    except InputError as draft_error:
        raise error or draft_error from None
    _check_no_sums(draft, log_file.name)
    if error and len(draft.roles) < _MIN_ROLES:
        raise error
    problems = [*(f"no column is recognized as {role}" for role in draft.missing), *draft.doubts]
    if not draft.is_complete or (problems and not columns):
        names = [f"{role}={column}" for role, column in (draft.roles | dict.fromkeys(draft.missing, "COLUMN")).items()]
        option = f'--columns "{",".join(names)}"'
        fix = f"add {option}, or correct a mapping: judged logs draft {log_file.name} -o mapping.toml"
        raise InputError(f"the columns are not clear: {'; '.join(problems)}", fix=fix, path=log_file.name)
    for other in other_files:
        if draft_log(other, columns).roles != draft.roles:
            fix = "read the files with a mapping that has a section for each file (files = ..., see docs/logs.md)"
            raise InputError(f"the columns differ from the columns of {log_file.name}", fix=fix, path=other.name)
    text = "; ".join([draft.describe(), *problems])
    warnings.warn(f"{log_file.name}: read with these columns: {text}", JudgedWarning, stacklevel=2)
    return parse_mapping(draft.text, log_file.name)


def _check_no_sums(draft: LogDraft, name: str) -> None:
    """Raise InputError if a file has sums in place of events."""
    if {column.lower() for column in draft.uses} >= _SEARCH_CONSOLE:
        problem = "this is a report of Google Search Console: it has sums per query, and no searches or clicks of users"
        raise InputError(problem, fix=_SUMS_FIX, path=name)
    if "variant" in draft.roles and "time" not in draft.roles and not draft.is_complete:
        sums = ", ".join(column for column in draft.uses if column not in draft.roles.values())
        unit = "user and variant" if "user_id" in draft.roles else "variant"
        problem = f"this is a table of sums per {unit} ({sums}), not a log of searches and clicks"
        raise InputError(problem, fix=_SUMS_FIX, path=name)
