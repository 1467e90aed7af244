"""Columns of a log that nobody has described: what they hold, and what they probably are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from judged.results.types import cached_property

_PATTERNS = (
    "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y/%m/%d %H:%M:%S", "%Y%m%d%H%M%S", "%Y%m%d %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S %z", "%b %d, %Y %H:%M:%S",
)  # fmt: skip
_ISO = re.compile(r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d(:\d\d([.,]\d+)?)? ?(Z|UTC|[+-]\d\d(:?\d\d)?)?)?", re.IGNORECASE)
_UNITS = {"seconds": 1e8, "milliseconds": 1e11, "microseconds": 1e14, "nanoseconds": 1e17}
_FLAGS = frozenset({"0", "1", "true", "false", "yes", "no", "0.0", "1.0"})


NOTHING = ("NULL", "null", "\\N", "NA", "None")
"""Words for nothing."""


@dataclass(frozen=True)
class Facts:
    """A column: the path to it, and its values by the number of their record; a list is a list."""

    path: str
    by_row: Mapping[int, Any]
    separator: str = ""

    @cached_property
    def texts(self) -> list[str]:
        """The values, or the items of the lists, as text."""
        items = [item for value in self.by_row.values() for item in (value if isinstance(value, list) else [value])]
        return [
            str(one).lower() if isinstance(one, bool) else str(one)
            for one in cast("list[Any]", items)
            if one is not None
        ]

    @property
    def is_list(self) -> bool:
        """Some value is a list."""
        return any(isinstance(one, list) for one in self.by_row.values())

    @property
    def names(self) -> tuple[str, str]:
        """What it is called: the last part of its path, and the last two."""
        parts = [
            re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", one).lower() for one in re.split(r"[.\[\]@ -]+", self.path) if one
        ]
        return parts[-1], "_".join(parts[-2:])

    @property
    def shown(self) -> str:
        """Some examples."""
        glue = self.separator or ", "
        given = (glue.join(map(str, one[:3])) if isinstance(one, list) else str(one) for one in self.by_row.values())
        examples = dict.fromkeys(" ".join(one.split())[:40] for one in given if one)
        return "; ".join(list(examples)[:3])

    @cached_property
    def numbers(self) -> list[float]:
        """The values as numbers; nothing where one is none."""
        try:
            return [float(one) for one in self.texts]
        except ValueError:
            return []

    @property
    def whole(self) -> bool:
        """All values are whole numbers from 0."""
        return bool(self.numbers) and all(one >= 0 and one.is_integer() for one in self.numbers)

    @property
    def flag(self) -> bool:
        """All values say yes or no."""
        return bool(self.texts) and {one.lower() for one in self.texts} <= _FLAGS

    @property
    def distinct(self) -> int:
        """How many different values there are."""
        return len(set(self.texts))

    @cached_property
    def times(self) -> tuple[str, ...]:
        """The formats in which all values are times."""
        if self.is_list or not self.texts:
            return ()
        if all(map(_ISO.fullmatch, self.texts)):
            return ("auto",)
        if (
            self.numbers
            and min(self.numbers) >= _UNITS["seconds"]
            and not all(len(one) == 14 and one[:2] in {"19", "20"} for one in self.texts)
        ):
            unit = [name for name, least in _UNITS.items() if min(self.numbers) >= least * 5][-1:]
            return tuple(unit)
        return tuple(one for one in _PATTERNS if all(_is_time(text, one) for text in self.texts))

    @property
    def says_words(self) -> bool:
        """Some values are several words."""
        spaced = sum(" " in one.strip() and bool(re.search(r"[^\W\d]", one)) for one in self.texts)
        return not self.is_list and not self.times and spaced >= max(1, len(self.texts) // 10)


def _is_time(text: str, pattern: str) -> bool:
    try:
        return bool(datetime.strptime(text, pattern))  # noqa: DTZ007 -- only whether it can be read
    except ValueError:
        return False


_THING = "(doc|document|item|product|object|result|url|article|content|listing|prop|property|sku|asin|video|movie|book)"
_NAMES = rf"""
session_id  (.*_)?(session|sess|visit)(_?ID)?|sid
user_id     (.*_)?(user|client|visitor|customer|member|cookie|person|account|shopper|anon)(_?ID)?|uid
query_id    (.*_)?(query|search|serp|page|request|req|impression|srch|qry|page_?view)_?ID|qid|serp|page
time        (.*_)?(time|timestamp|ts|tstamp|date|datetime|at|when|start|day)|t|time_?(ms|stamp)
clicks      (.*_)?(clicks?|clicked|selected|opened)(_?(ids|urls|docs|items|ranks|positions|list|results|flags))?
ranks       (.*_)?(ranks|positions)|(results?|hits?|items|docs)_(rank|position|pos)
hit_ids     (.*_)?(results?|hits|urls|docs|documents|items|products|shown|serp|impressions|ids|ranking|displayed|list)
hit_ids     (({_THING}|shown)_?)+(ids?|urls?|list|no)|docno
click       (is_?|was_?|has_?)?click(ed|s)?(_?(flag|bool))?
position    (({_THING}|click|clicked|list)_)?(pos|position|rank|ranking|ordinal|slot|index|place)
action      (.*_)?(action|event|interaction|activity)(_?(name|type|kind))?|type|kind
query       (.*_)?(query|keywords?|phrase|search|terms?)(_?(text|string|term|terms|raw|words))?|q|qry|words|text
object_id   ((clicked|click|selected|opened|target)_?)?({_THING}|target)(_?(ID|url|uri))?|docno|pid|iid
propensity  (.*_)?(propensity|pscore|prob|probability)(_score)?
dwell       (.*_)?dwell(_?(time|s|ms|sec|seconds))*|time_on_(page|doc|result)
latency     (.*_)?(latency|took|response_?time|elapsed)(_?(s|ms|sec|seconds))?
n_total     (n_?|num_?|total_?)(results|hits|found|total)|total|(result|hit)s?_?(count|total|found|returned)
value       (.*_)?(price|revenue|amount|value|sales)
variant     (.*_)?(variant|arm|bucket|treatment|test_?group|ab_?(group|test|variant))
language    lang|language|locale|market
device      device(_?(type|category|class))?|platform
user_agent  user_?agent|ua
bot         (is_?)?(bot|robot|crawler)
""".replace("ID", "(id|key|uuid|token|hash|no|num)")
"""What columns are called, in the order in which they are given away."""

ROLES: dict[str, list[re.Pattern[str]]] = {}
for _role, _pattern in map(str.split, _NAMES.strip().splitlines()):
    ROLES.setdefault(_role, []).append(re.compile(_pattern))


def _fits(role: str, facts: Facts) -> bool:
    """Say whether a column may have a role: by its name, and what must hold of its values."""
    if not any(pattern.fullmatch(name) for pattern in ROLES[role] for name in facts.names):
        return False
    if facts.is_list or role in {"clicks", "ranks", "hit_ids"}:
        return facts.is_list and (facts.whole if role == "ranks" else role in {"clicks", "hit_ids"})
    if role in {"click", "bot"}:
        return facts.flag
    if role in {"position", "n_total"}:
        return facts.whole and max(facts.numbers) < 10_000 * (1 if role == "position" else 1e6)
    if role in {"dwell", "latency", "value", "propensity"}:
        return bool(facts.numbers) and (role != "propensity" or 0 <= min(facts.numbers) <= max(facts.numbers) <= 1)
    if role in {"action", "variant"}:
        return facts.distinct <= 50 and not (role == "action" and facts.numbers)
    if role == "query":
        return not facts.times and not (facts.numbers and facts.distinct > 1)
    return role != "time" or bool(facts.times)


def roles_of(facts: Iterable[Facts], wanted: Iterable[str] = ROLES) -> tuple[dict[str, Facts], list[str]]:
    """Give the column of each role, and what is in doubt about them.

    >>> roles_of([Facts("searchTerm", {0: "red"}), Facts("sid", {0: "7"})])[0]["query"].path
    'searchTerm'
    """
    left, found, doubts = [one for one in facts if one.by_row], dict[str, Facts](), list[str]()
    for role in wanted:
        fitting = [one for one in left if _fits(role, one)]
        if fitting:
            found[role] = fitting[0]
            left.remove(fitting[0])
            if fitting[1:]:
                doubts.append(f"{role} could also be {', '.join(one.path for one in fitting[1:4])}")
    lists = [one for one in left if one.is_list and one.distinct > 1 and not one.flag]
    if "hit_ids" in wanted and "hit_ids" not in found and lists:
        found["hit_ids"] = max(lists, key=lambda one: len(one.texts))
        left.remove(found["hit_ids"])
        doubts.append(f"hit_ids is taken from the values of {found['hit_ids'].path}: its name does not tell")
    if shown := found.get("hit_ids"):
        told = found.get("clicks") or next(
            (one for one in (_split(one, shown) for one in left) if _is_of(one, shown)), None
        )
        if told and "clicks" in wanted:
            found["clicks"] = told
            left = [one for one in left if one.path != told.path]
    for role, fitting in (
        ("time", [one for one in left if one.times]),
        ("query", [one for one in left if one.says_words]),
    ):
        if role in wanted and role not in found and (one := next(iter(fitting), None)):
            found[role] = one
            left.remove(one)
            doubts.append(f"{role} is taken from the values of {one.path}: its name does not tell")
    return found, doubts


def _split(facts: Facts, shown: Facts) -> Facts:
    """Take a text apart by the separator of the results: most may hold a single click."""
    if facts.is_list or not shown.separator:
        return facts
    return Facts(
        facts.path, {row: str(one).split(shown.separator) for row, one in facts.by_row.items()}, shown.separator
    )


def _is_of(clicks: Facts, shown: Facts) -> bool:
    """Say whether lists hold nothing but results of their row, or are called clicks and hold ranks in them."""
    lists = [(value, shown.by_row.get(row, [])) for row, value in clicks.by_row.items() if isinstance(value, list)]
    if lists and all(set(map(str, value)) <= set(map(str, results)) for value, results in lists):
        return True
    named = any(pattern.fullmatch(name) for pattern in ROLES["clicks"] for name in clicks.names)
    return named and bool(lists) and clicks.whole and max(clicks.numbers) <= max(len(results) for _, results in lists)


def facts_of(records: Sequence[Mapping[str, Any]]) -> list[Facts]:
    """Give the columns of records; a text may be a list, by its separator."""
    found: dict[str, dict[int, Any]] = {}
    for row, record in enumerate(records):
        for path, value in _flat(record, ""):
            if value not in (None, "", *NOTHING) and not (
                isinstance(value, list) and all(one is None for one in cast("list[Any]", value))
            ):
                found.setdefault(path, {})[row] = value
    return [_cut(Facts(path, values)) for path, values in found.items()]


def _flat(value: Any, before: str) -> Iterator[tuple[str, Any]]:
    """Yield paths and values: members of objects, and of the objects in a list."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict):
        for key, inner in cast("dict[Any, Any]", value).items():
            name = re.sub(r"([.\[\]])", r"\\\1", str(key))
            if '"' not in name and "\\\\" not in name and name:
                yield from _flat(inner, f"{before}.{name}" if before else name)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in cast("list[Any]", value)):
        objects = [cast("dict[str, Any]", one) for one in cast("list[Any]", value) if isinstance(one, dict)]
        for key in dict.fromkeys(key for one in objects for key in one):
            inner = [one.get(key) for one in objects]
            if not any(isinstance(one, (dict, list)) for one in inner):
                yield f"{before}[].{key}", inner
    else:
        yield before, value


def _cut(facts: Facts) -> Facts:
    """Take texts apart that are lists: most hold the same sign, and no blank around it."""
    if facts.is_list or facts.times or facts.numbers:
        return facts
    for sign in ("|", ";", ","):
        holding = [text for text in facts.texts if sign in text]
        if len(holding) * 2 >= len(facts.texts) and not any(
            re.search(rf"\s|{re.escape(sign)}$", one) for one in holding
        ):
            values = {row: str(text).split(sign) for row, text in facts.by_row.items()}
            return Facts(facts.path, values, sign)
    return facts
