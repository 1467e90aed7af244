"""Usual names of the columns of judgments, runs, and answers, in several languages, and names that the user sets.

Names are compared without case, accents, blanks, and punctuation: ``Doc ID``, ``docId``, and ``doc_id`` are equal.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from judged.data.files import packaged_toml
from judged.errors import InputError, JudgedWarning
from judged.results.blocks import first_few
from judged.results.decimals import is_number

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

Kind = Literal["qrels", "run", "answers", "labels"]

_VALUE_NAMES = frozenset({"text", "value", "content", "string"})
_SUFFIXES = {"score": ("score",), "relevance": ("relevance", "label", "rating", "grade"), "rank": ("rank", "position")}
_TYPE = re.compile(r":(token|float)(_seq)?$")  # of a column of RecBole
_DISTANCES = frozenset({"distance", "dist", "cosinedistance", "l2distance"})
_USED_COLUMNS = {
    "qrels": {"query_id", "doc_id", "relevance", "iteration"},
    "run": {"query_id", "doc_id", "score", "rank", "run_id"},
}
# Columns that `judged clicks judge` writes beside the grades.
_CLICK_COLUMNS = frozenset([
    "sd", "weight", "value", "low", "high", "ci_low", "ci_high", "se", "shown", "clicks", "rank", "judge", "kind",
])  # fmt: skip
_MIN_LIKENESS = 0.85  # of a misspelled name, from 0 to 1
_WEAKEST = 1000  # strength of a name that is recognized by its end


@dataclass(frozen=True)
class ReadingOptions:
    """How tables are read: names of columns, and whether accidental differences between ids are removed."""

    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    normalize_ids: bool = False
    # Columns of `columns` that a table has, and "" for any table. It is only changed if there are `columns`.
    present: set[str] = field(default_factory=set[str], compare=False)


_options: ContextVar[ReadingOptions | None] = ContextVar("options", default=None)


def reading_options() -> ReadingOptions:
    """Return the options with which tables are read now."""
    return _options.get() or ReadingOptions()


def options_as_words() -> list[str]:
    """Return the current options as words of a command line."""
    options = reading_options()
    columns = ",".join(f"{name}={column}" for name, column in options.columns.items())
    return [*(["--columns", columns] if columns else []), *["--normalize-ids"] * options.normalize_ids]


@contextmanager
def use_options(options: ReadingOptions) -> Generator[None]:
    """Read all tables with these options."""
    # A context variable, since these are options of every command and function that reads a table.
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


@contextmanager
def use_columns(columns: Mapping[str, str] | None = None, *, normalize_ids: bool = False) -> Generator[None]:
    """Read all tables with these names of columns: ``{"doc_id": "sku"}`` reads ``doc_id`` from the column ``sku``.

    A name may begin with the kind of table: ``run.doc_id``, ``qrels.doc_id``. With `normalize_ids`, ids are read as
    `judged.data.index.normalize_ids` returns them.
    """
    options = ReadingOptions(columns or {}, normalize_ids)
    with use_options(options):
        yield
    if options.present and (missing := sorted(set(options.columns.values()) - options.present)):
        names = "column" if len(missing) == 1 else "columns"
        warnings.warn(f"no table has the {names} {', '.join(missing)} of `columns`", JudgedWarning, stacklevel=3)


def parse_columns(text: str) -> dict[str, str]:
    """Parse the value of ``--columns``.

    >>> parse_columns("doc_id=sku, query_id=search term")
    {'doc_id': 'sku', 'query_id': 'search term'}

    Raises
    ------
    InputError
        If the text is not a list of NAME=COLUMN.
    """
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not pairs or not all(name.strip() and column.strip() for name, _, column in pairs):
        raise InputError(f"--columns must be a list of NAME=COLUMN, got {text!r}", fix="use --columns doc_id=sku")
    return {name.strip(): column.strip() for name, _, column in pairs}


def name_key(name: str) -> str:
    """Return the form of a name in which names are compared.

    >>> name_key("Doc-ID"), name_key("Posición")
    ('docid', 'posicion')
    """
    name = _TYPE.sub("", name.casefold())
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", name)))


@cache
def _roles(kind: Kind) -> dict[str, tuple[str, int]]:
    """Return the column and the strength of each known name; 0 is strongest."""
    roles: dict[str, tuple[str, int]] = {}
    for table in {"labels": ("labels", "tables"), "answers": ("answers",)}.get(kind, ("tables",)):
        for column, text in packaged_toml("data/column_names.toml")[table].items():
            strong, _, weak = text.partition("|")
            for strength, name in [*((0, name) for name in (column, *strong.split())), *enumerate(weak.split(), 1)]:
                roles.setdefault(name_key(name), (column, strength))
    return roles | {"docid": ("doc_id", 1)}  # equal to `doc_id`, which is stronger


def known_names(table: str) -> dict[str, tuple[str, ...]]:
    """Return the known names of each column in other tables: attributes, topics, and documents; best first."""
    columns: dict[str, str] = packaged_toml("data/column_names.toml")[table]
    return {column: tuple(text.split()) for column, text in columns.items()}


def _used_columns(kind: Kind) -> set[str]:
    labels: dict[str, str] = packaged_toml("data/column_names.toml")["labels"]
    return _USED_COLUMNS.get(kind) or {"query_id", "doc_id", "relevance", *labels}


def canonical_names(names: Iterable[str], kind: Kind) -> tuple[str, ...]:
    """Return the role of each column of a table: a canonical name, or ``""`` if the column is not used.

    >>> canonical_names(["query-id", "corpus-id", "score"], "qrels")
    ('query_id', 'doc_id', 'relevance')
    >>> canonical_names(["qid", "Docno", "sim", "comment"], "run")
    ('query_id', 'doc_id', 'score', '')

    If there are other columns of ids, ``query`` is the query text, and ``docid`` an internal number: PyTerrier writes
    both.

    >>> canonical_names(["qid", "docid", "docno", "rank", "score", "query"], "run")
    ('query_id', '', 'doc_id', 'rank', 'score', '')
    >>> with use_columns({"doc_id": "sku"}):
    ...     canonical_names(["qid", "sku", "url", "grade"], "qrels")
    ('query_id', 'doc_id', '', 'relevance')
    """
    names = list(names)
    options = reading_options()
    columns = {
        _role(name.rpartition(".")[2], kind)[0] or name.rpartition(".")[2]: column
        for name, column in options.columns.items()
        if name.rpartition(".")[0] in {"", kind}
    }
    if columns and not set(columns.values()) <= set(names):  # a role in place of a column, as in doc_id=query_id
        by_role = dict(zip(_assign_roles(names, kind, {}), names, strict=True))
        options.present.update(set(columns.values()) & set(by_role))
        columns = {name: by_role.get(column, column) for name, column in columns.items()}
    if options.columns:
        options.present.update({"", *columns.values()} & {"", *names})
    return _assign_roles(names, kind, {column: name for name, column in columns.items()})


def _assign_roles(names: list[str], kind: Kind, assigned: Mapping[str, str]) -> tuple[str, ...]:
    """Return the role of each column; `assigned` are the roles of some columns."""
    roles = [(assigned[name], -1) if name in assigned else _role(name, kind) for name in names]
    if kind != "run" and "relevance" not in {role for role, _ in roles}:
        # In the qrels of BEIR the relevance is named `score`; in German and French, a `note` is a grade.
        roles = [("relevance", n) if role == "score" or (role, n) == ("note", 0) else (role, n) for role, n in roles]
    if "score" in {role for role, _ in roles}:
        roles = [("", 0) if role == "distance" else (role, strength) for role, strength in roles]
    strongest = {role: min(strength for other, strength in roles if other == role) for role, _ in roles}
    return tuple(role if strength == strongest[role] else "" for role, strength in roles)


def _role(name: str, kind: Kind) -> tuple[str, int]:
    key, roles = name_key(name), _roles(kind)
    if name.strip().lower() == "doc_id":
        return "doc_id", 0
    if key in roles:
        return roles[key]
    if kind == "answers":  # an object in a record, as in `outputs.answer`, `reference.answer`, and `inputs.context`
        first, _, last = name.partition(".")
        (outer, strength), inner = roles.get(name_key(first), ("", 0)), roles.get(name_key(last), ("", 0))
        is_value = last in _VALUE_NAMES or inner[0] in {"question", "answer", "reference"}
        return inner if "context" in inner[0] else (outer if is_value else "", strength)
    if kind == "run" and key in _DISTANCES:
        return "distance", 0
    suffixes = {role: ends for role, ends in _SUFFIXES.items() if role in _used_columns(kind)}
    return next(((role, _WEAKEST) for role, ends in suffixes.items() if key.endswith(ends)), ("", 0))


def is_query_text(column: str) -> bool:
    """Whether a column with queries contains their texts, not their ids.

    >>> is_query_text("Search term"), is_query_text("query_id"), is_query_text("customer_id")
    (True, False, False)
    """
    role, strength = _role(column, "labels")
    return role == "query_id" and strength > 0 and not name_key(column).endswith("id")


def check_name_clash(
    names: Iterable[str], columns: Iterable[str], kind: Kind, where: str, line: int | None = None
) -> None:
    """Raise InputError if two columns have the same role."""
    first: dict[str, str] = {}
    for name, column in zip(names, columns, strict=True):
        if name in first:
            problem = f"the columns {first[name]!r} and {column!r} both contain the {name}"
            problem = f"two columns are called {column!r}" if first[name] == column else problem
            fix = "remove or rename one of these columns, or use --columns"
            raise InputError(problem, fix=fix, path=where, line=line, rule="same-columns")
        if name in _used_columns(kind):
            first[name] = column


def missing_columns(names: Iterable[str], kind: Kind) -> set[str]:
    """Return the required columns of this kind that are not among `names`."""
    return {"query_id", "doc_id", *["relevance"] * (kind != "run")} - set(names)


def unused_columns(names: Iterable[str], columns: Iterable[str], kind: Kind) -> list[str]:
    """Return the columns that are not read as part of qrels or of a run."""
    columns = [*columns]
    known = _CLICK_COLUMNS if {"value", "se"} <= set(columns) else ()
    used = _used_columns(kind) | {"distance", "time"}
    pairs = [(name, column) for name, column in zip(names, columns, strict=True) if column not in known]
    return [column for name, column in pairs if name not in used and column.strip() and not column.startswith("__")]


def warn_unused(columns: Iterable[str], where: str) -> None:
    """Warn of columns that are not read."""
    if columns := list(columns):
        warnings.warn(f"{where}: columns that are not used: {first_few(columns)}", JudgedWarning, stacklevel=2)


def check_unique_names(names: Sequence[str], where: str, line: int | None = None) -> None:
    """Raise InputError if two columns have the same name, as records would keep only the last."""
    if len(set(names)) < len(names):
        duplicate = next(name for name, count in Counter(names).items() if count > 1)
        fix = "use a different name for each column"
        raise InputError(f"two columns are called {duplicate!r}", fix=fix, path=where, line=line)


def missing_columns_error(
    columns: Sequence[str], kind: Kind, where: str, rows: Sequence[Sequence[str]] = (), line: int | None = None
) -> InputError:
    """Return the error for a table without a required column, with the columns that are the most probable guess.

    >>> print(missing_columns_error(["qid", "part", "releveance"], "qrels", "a.csv", [["7", "A-1", "2"]]))
    a.csv: no column was recognized as doc_id or relevance: the columns are qid, part, releveance.
    Fix: use --columns doc_id=part,relevance=releveance.
    """
    names = canonical_names(columns, kind)
    missing = sorted(missing_columns(names, kind))
    free = [position for position, name in enumerate(names) if not name and columns[position].strip()]
    numeric = {position for position in free if _is_numeric(rows, position)}
    guesses: dict[str, str] = {}
    for name in sorted(missing, key=lambda name: name != "relevance"):
        candidates = [position for position in free if (position in numeric) == (name == "relevance") or not rows]
        if candidates:
            best = max(candidates, key=lambda position: _likeness(columns[position], name))
            guesses[name] = columns[best]
            free.remove(best)
    rest = [name for name in missing if name not in guesses]
    if len(rest) == len(free) == 1:  # whatever the values of the only other column are
        guesses[rest[0]] = columns[free[0]]
    options = [f"{name}={guesses.get(name, 'COLUMN')}" for name in missing]
    is_wide = missing == ["relevance"] and len(numeric) > 1
    commands = [f"judged convert {where} --columns relevance={name} -o {name}.txt" for name in guesses.values()]
    others = f"; if each judge has a column, use {commands[0]} for each, and 'judged agree'" if is_wide else ""
    quote = '"' if any(" " in option for option in options) else ""
    return InputError(
        f"no column was recognized as {' or '.join(missing)}: the columns are {', '.join(columns)}",
        fix=f"use --columns {quote}{','.join(options)}{quote}{others}",
        path=where,
        line=line,
        rule="unknown-header",
    )


def misspelled_column(columns: Sequence[str], kind: Kind, rows: Sequence[Sequence[str]]) -> str:
    """Return the column of grades if only that column is missing and a column of numbers has nearly its name.

    >>> misspelled_column(["qid", "docno", "releveance"], "qrels", [["7", "A-1", "2"]])
    'releveance'
    """
    names = canonical_names(columns, kind)
    if missing_columns(names, kind) != {"relevance"}:
        return ""
    free = [p for p, name in enumerate(names) if not name and _is_numeric(rows, p)]
    near = [columns[p] for p in free if _likeness(columns[p], "relevance") >= _MIN_LIKENESS]
    return near[0] if len(near) == 1 else ""


def check_no_numbers(columns: Sequence[str], rows: Sequence[Sequence[str]], used: set[int], where: str) -> None:
    """Raise InputError if a run without scores has an unused column of numbers, which may be the scores."""
    unused = (position for position in range(len(columns)) if position not in used and columns[position])
    number = next((position for position in unused if _is_numeric(rows, position)), None)
    if number is not None:
        raise InputError(
            f"no column was recognized as score or rank: the columns are {', '.join(columns)}",
            fix=f'use --columns "score={columns[number]}"',
            path=where,
            line=1,
            rule="unknown-header",
        )


def _is_numeric(rows: Sequence[Sequence[str]], position: int) -> bool:
    """Whether all cells of a column that are not empty are numbers."""
    cells = [row[position] for row in rows if position < len(row) and row[position]]
    return bool(cells) and all(map(is_number, cells))


def _likeness(column: str, name: str) -> float:
    """Return the similarity of a column to the most similar known name, from 0 to 1."""
    from difflib import SequenceMatcher  # slow to import, and only needed for errors

    known = [key for key, (role, _) in _roles("qrels").items() if role == name]
    return max(SequenceMatcher(None, name_key(column), key).ratio() for key in known)
