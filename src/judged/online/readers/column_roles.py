"""Columns of an unknown log: profiles of their values, and the role that each column probably has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import filterfalse
from typing import Any, cast
from unicodedata import normalize

from judged.data.files import packaged_toml
from judged.results.types import cached_property

_TABLES = packaged_toml("online/readers/column_roles.toml")
_ISO = re.compile(r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d(:\d\d([.,]\d+)?)? ?(Z|UTC|[+-]\d\d(:?\d\d)?)?)?", re.IGNORECASE)
_UNITS = {"seconds": 1e8, "milliseconds": 1e11, "microseconds": 1e14, "nanoseconds": 1e17}
_FLAGS = frozenset({"0", "1", "true", "false", "yes", "no", "0.0", "1.0"})


MISSING_WORDS = ("NULL", "null", "\\N", "NA", "None")


@dataclass(frozen=True)
class ColumnProfile:
    """Path of a column, its values by record number (lists stay lists), and the separator if it holds lists as text."""

    path: str
    values_by_row: Mapping[int, Any]
    separator: str = ""

    @cached_property
    def texts(self) -> list[str]:
        """Values as text, of lists their items."""
        values = self.values_by_row.values()
        elements = [element for value in values for element in (value if isinstance(value, list) else [value])]
        return [
            str(element).lower() if isinstance(element, bool) else str(element)
            for element in cast("list[Any]", elements)
            if element is not None
        ]

    @property
    def is_list(self) -> bool:
        """Whether some values are lists."""
        return any(isinstance(value, list) for value in self.values_by_row.values())

    @property
    def names(self) -> tuple[str, str]:
        """Last part of the path, and the last two parts, in snake case."""
        parts = filter(None, re.split(r"[.\[\]@ ()/-]+", self.path))
        # Without accents, as "requête" is the same name as "requete".
        names = [re.sub(r"[\u0300-\u036f]", "", normalize("NFKD", part)) for part in parts]
        names = [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in names]
        return names[-1], "_".join(names[-2:])

    @property
    def examples(self) -> str:
        """Up to three different values."""
        separator, values = self.separator or ", ", self.values_by_row.values()
        texts = (separator.join(map(str, value[:3])) if isinstance(value, list) else str(value) for value in values)
        return "; ".join(list(dict.fromkeys(" ".join(text.split())[:40] for text in texts if text))[:3])

    @cached_property
    def numbers(self) -> list[float]:
        """Values as numbers; empty if some are not numeric."""
        try:
            return [float(text) for text in self.texts]
        except ValueError:
            return []

    @property
    def is_whole(self) -> bool:
        """Whether all values are non-negative integers."""
        return bool(self.numbers) and all(number >= 0 and number.is_integer() for number in self.numbers)

    @property
    def is_flag(self) -> bool:
        """Whether all values are Boolean."""
        return bool(self.texts) and {text.lower() for text in self.texts} <= _FLAGS

    @property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len(set(self.texts))

    @cached_property
    def times(self) -> tuple[str, ...]:
        """Time formats that fit all values."""
        if self.is_list or not self.texts:
            return ()
        if all(map(_ISO.fullmatch, self.texts)):
            return ("auto",)
        if (
            self.numbers
            and min(self.numbers) >= _UNITS["seconds"]
            and not all(len(text) == 14 and text[:2] in {"19", "20"} for text in self.texts)
        ):
            # Minima are times of 1973. Values of the next smaller unit would be 1000 times larger.
            smallest, largest = (
                [unit for unit, minimum in _UNITS.items() if number >= minimum * 5][-1:]
                for number in (min(self.numbers), max(self.numbers))
            )
            return tuple(smallest) if smallest == largest else ("auto",)
        return tuple(
            pattern for pattern in _TABLES["time_formats"] if all(_is_time(text, pattern) for text in self.texts)
        )

    @property
    def has_phrases(self) -> bool:
        """Whether at least a tenth of the values are several words."""
        phrases = sum(" " in text.strip() and bool(re.search(r"[^\W\d]", text)) for text in self.texts)
        return not self.is_list and not self.times and phrases >= max(1, len(self.texts) // 10)


def _is_time(text: str, pattern: str) -> bool:
    try:
        return bool(datetime.strptime(text, pattern))  # noqa: DTZ007 -- only the format matters here
    except ValueError:
        return False


def _compile(pattern: str) -> re.Pattern[str]:
    for word, words in _TABLES["words"].items():
        pattern = pattern.replace(word, words)
    return re.compile(pattern)


ROLES: dict[str, list[re.Pattern[str]]] = {
    role: list(map(_compile, patterns)) for role, patterns in _TABLES["roles"].items()
}
"""Usual names of the columns with each role. Roles are assigned in this order."""

SYNONYMS: dict[str, str] = _TABLES["synonyms"]
"""Other names of roles in ``--columns``."""

ACTIONS = {action: _compile(pattern) for action, pattern in _TABLES["actions"].items()}
"""Usual names of actions in logs."""


def _matches(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def _fits(role: str, profile: ColumnProfile) -> bool:
    if not any(_matches(ROLES[role], name) for name in profile.names):
        return False
    if profile.is_list or role in {"clicks", "ranks", "hit_ids"}:
        is_numeric = profile.is_whole if role == "ranks" else role == "dwell" and bool(profile.numbers)
        return profile.is_list and (is_numeric or role in {"clicks", "hit_ids"})
    if role in {"click", "cart", "purchase", "bot"}:
        return profile.is_flag
    # Larger numbers are ids or times. A result count can be a million times larger than a rank.
    if role in {"position", "n_total"}:
        return profile.is_whole and max(profile.numbers) < 10_000 * (1 if role == "position" else 1e6)
    if role in {"dwell", "latency", "value", "propensity"}:
        is_probability = bool(profile.numbers) and 0 <= min(profile.numbers) <= max(profile.numbers) <= 1
        return is_probability if role == "propensity" else bool(profile.numbers)
    if role in {"action", "variant"}:
        # Columns with more values are ids or texts.
        return profile.distinct <= 50 and not (role == "action" and profile.numbers)
    if role == "query":
        return not profile.times and not (profile.numbers and profile.distinct > 1)
    return role != "time" or bool(profile.times)


def guess_role(profile: ColumnProfile) -> str:
    """Return a role that a column without a role could have; empty if there is none.

    >>> guess_role(ColumnProfile("page_title", {0: "Red shoes"})), guess_role(ColumnProfile("shop", {0: "A"}))
    ('query', '')
    """
    named = (role for role, patterns in ROLES.items() for name in profile.names if _matches(patterns, name))
    by_values = {"time": profile.times, "hit_ids": profile.is_list, "query": profile.has_phrases}
    return next(named, "") or next((role for role, fits in by_values.items() if fits), "")


def assign_roles(
    profiles: Iterable[ColumnProfile], roles: Iterable[str] = ROLES, columns: Mapping[str, ColumnProfile] | None = None
) -> tuple[dict[str, ColumnProfile], list[str]]:
    """Return the column of each role, and doubts about them. `columns` are roles that the user assigned.

    >>> assign_roles([ColumnProfile("searchTerm", {0: "red"}), ColumnProfile("sid", {0: "7"})])[0]["query"].path
    'searchTerm'
    """
    assigned, doubts = dict(columns or {}), list[str]()
    profiles = [profile for profile in profiles if profile.values_by_row]

    def unassigned() -> list[ColumnProfile]:
        used_paths = {profile.path for profile in assigned.values()}
        return [profile for profile in profiles if profile.path not in used_paths]

    def assign_by_values(role: str, candidates: Sequence[ColumnProfile]) -> None:
        if role in roles and role not in assigned and candidates:
            assigned[role] = candidates[0]
            doubts.append(f"{role} is recognized from the values of {candidates[0].path}, not from its name")

    for role in filterfalse(assigned.__contains__, roles):
        candidates = [profile for profile in unassigned() if _fits(role, profile)]
        if candidates:
            assigned[role] = candidates[0]
        if candidates[1:]:
            doubts.append(f"{role} could also be {', '.join(profile.path for profile in candidates[1:4])}")
    lists = [profile for profile in unassigned() if profile.is_list and profile.distinct > 1 and not profile.is_flag]
    assign_by_values("hit_ids", sorted(lists, key=lambda profile: -len(profile.texts)))
    assigned = _assign_clicks(assigned, unassigned(), roles)
    # Only columns without a known name are left: times and queries can be recognized by their values.
    assign_by_values("time", [profile for profile in unassigned() if profile.times])
    assign_by_values("query", [profile for profile in unassigned() if profile.has_phrases])
    return assigned, doubts


_SEPARATORS = "|;, "  # of lists in a text, by priority


def as_list(profile: ColumnProfile, separator: str = "") -> ColumnProfile:
    """Return a column with lists: texts are split at the separator, by default the first that occurs."""
    if profile.is_list:
        return profile
    separator = separator or next((mark for mark in _SEPARATORS if any(mark in text for text in profile.texts)), "")
    values = {row: str(value).split(separator or None) for row, value in profile.values_by_row.items()}
    return ColumnProfile(profile.path, values, separator)


def _assign_clicks(
    assigned: dict[str, ColumnProfile], unassigned: list[ColumnProfile], roles: Iterable[str]
) -> dict[str, ColumnProfile]:
    """Assign lists of clicks and of their times. As most pages have at most one click, few texts have a separator."""
    if "clicks" in roles and "clicks" not in assigned and (results := assigned.get("hit_ids")):
        # In a row with results and without an action, the id of a result is a click.
        objects = [assigned["object_id"]] if "object_id" in assigned and "action" not in assigned else []
        if clicks := _find_lists((*objects, *unassigned), results.separator, lambda lists: _are_clicks(lists, results)):
            assigned = {role: column for role, column in assigned.items() if column.path != clicks.path}
            assigned["clicks"] = clicks
    clicks = assigned.get("clicks")
    if clicks and "dwell" in roles and "dwell" not in assigned:
        dwell = _find_lists(unassigned, clicks.separator, lambda lists: _fits("dwell", lists))
        assigned |= {"dwell": dwell} if dwell else {}
    return assigned


def _find_lists(
    profiles: Iterable[ColumnProfile], separator: str, is_match: Callable[[ColumnProfile], bool]
) -> ColumnProfile | None:
    """Split columns at one separator after the other, until the lists match."""
    lists = (as_list(profile, mark) for profile in profiles for mark in (separator, *_SEPARATORS))
    return next(filter(is_match, lists), None)


def _are_clicks(clicks: ColumnProfile, results: ColumnProfile) -> bool:
    """Whether lists have only results of their row, or are named as clicks and have only their ranks."""
    clicked_lists = {row: value for row, value in clicks.values_by_row.items() if isinstance(value, list)}
    lists = [(value, results.values_by_row.get(row, [])) for row, value in clicked_lists.items()]
    if lists and all(set(map(str, clicked)) <= set(map(str, result_ids)) for clicked, result_ids in lists):
        return True
    has_name = any(_matches(ROLES["clicks"], name) for name in clicks.names)
    return has_name and bool(lists) and clicks.is_whole and max(clicks.numbers) <= max(len(ids) for _, ids in lists)


def profile_columns(records: Sequence[Mapping[str, Any]]) -> list[ColumnProfile]:
    """Return the profiles of all columns of records."""
    columns: dict[str, dict[int, Any]] = {}
    for row, record in enumerate(records):
        for path, value in _flatten(record, ""):
            is_null_list = isinstance(value, list) and all(element is None for element in cast("list[Any]", value))
            if value not in (None, "", *MISSING_WORDS) and not is_null_list:
                columns.setdefault(path, {})[row] = value
    return [_split_lists(ColumnProfile(path, values)) for path, values in columns.items()]


def _flatten(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield paths and values: members of objects, and of objects in a list."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict):
        for key, member in cast("dict[Any, Any]", value).items():
            name = re.sub(r"([.\[\]])", r"\\\1", str(key))
            # A path cannot contain a quotation mark or backslash, see `paths.parse_path`.
            if '"' not in name and "\\\\" not in name and name:
                yield from _flatten(member, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list) and any(isinstance(element, dict) for element in cast("list[Any]", value)):
        elements = cast("list[Any]", value)
        objects = [cast("dict[str, Any]", element) for element in elements if isinstance(element, dict)]
        for key in dict.fromkeys(key for member in objects for key in member):
            members = [member.get(key) for member in objects]
            if not any(isinstance(member, (dict, list)) for member in members):
                yield f"{prefix}[].{key}", members
    else:
        yield prefix, value


def _split_lists(profile: ColumnProfile) -> ColumnProfile:
    if profile.is_list or profile.times or profile.numbers:
        return profile
    # A list as text is assumed if most values have the separator, and no element is empty at the end or has a space.
    # Words are not ids: elements between spaces must have a digit.
    for separator in ("|", ";", ", ", ",", " "):
        values = {row: str(text).split(separator) for row, text in profile.values_by_row.items()}
        lists = [elements for elements in values.values() if len(elements) > 1]
        element = re.compile(r"\S*\d\S*" if " " in separator else r"\S*")
        has_elements = all(elements[-1] and all(map(element.fullmatch, elements)) for elements in lists)
        if len(lists) * 2 >= len(values) and has_elements:
            return ColumnProfile(profile.path, values, separator)
    return profile
