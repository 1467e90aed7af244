"""A first mapping of a log that nobody has described: written from its data, to be looked through by a person."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from judged.errors import InputError
from judged.online.log import CONVENTIONS
from judged.online.readers.files import Part, first_bytes, form_of, known_layout, opened, parts_of, plain_path
from judged.online.readers.guesses import NOTHING, Facts, facts_of, roles_of

_BULK = {"index", "create"}
SAMPLE = 2_000
"""So many records are looked at."""

_ACTIONS = {
    "click": "(.*_)?(click|tap|open|visit|clickthrough)(ed|s)?|(select|view)_item|select(ed)?",
    "impression": "(.*_)?(impression|shown?|seen|exposure)s?|view(ed)?|view_item_list",
    "add_to_cart": "(.*_)?(add_?to_?)?(cart|basket)|add",
    "purchase": "(.*_)?(purchase|buy|bought|order|transaction|checkout|conversion|sale)",
    "search": "(.*_)?(search|query|serp|search_?result_?page|page)(es|s)?",
}
"""What logs call our actions."""

_OBJECTS = re.compile(r"(.*[_.])?click\w*\[\]", re.IGNORECASE)
_WHO = ("query_id", "session_id", "user_id", "time")
_PAGE = (*_WHO, "query", "language", "device", "latency", "n_total", "variant", "bot", "user_agent")
_EVENT = (*_WHO, "object_id", "position", "dwell", "value", "propensity")
_CLICK = 'action = { value = "click" }'
_ATTRIBUTES = 12
"""So many columns with few values are proposed as attributes."""


def draft_mapping(path: str | Path) -> str:
    r"""Write a first mapping of a log from its data: TOML that ``mapping=`` reads, to be looked through by a person.

    Columns are told by their names and their values: ids, times and their unit, ranks, texts of queries, flags of
    clicks, lists. Each line shows examples; what the data do not tell stands in comments that begin with ``DOUBT``.

    Parameters
    ----------
    path
        A file of JSON lines, CSV, TSV or Parquet; its first 2,000 records are looked at.

    Returns
    -------
    str
        The mapping. Where nothing looks like a result, a click or a query it has no sections, and says so.

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
    # Drafted from 1 record of shop.csv. Look through it: DOUBT says what the data do not tell.
    note = "shop.csv"
    <BLANKLINE>
    [file]
    format = "csv"
    separator = ","
    <BLANKLINE>
    [queries.columns]
    query_id = "#row"  # each row is a page
    session_id = "sid"  # 7
    time = "ts"  # 2026-01-05T10:00:00Z
    query = "search_term"  # red shoes
    hit_ids = { path = "urls", separator = "|" }  # d7|d9
    <BLANKLINE>
    # DOUBT: nothing tells of clicks
    <BLANKLINE>
    """
    (part, *_) = parts_of([path])
    file, records = _records(part)
    if not records:
        raise InputError("no record to draft a mapping from", fix="give a file with records", path=part.name)
    name = Path(part.name).name
    facts = facts_of(records)
    roles, doubts = roles_of(one for one in facts if not _OBJECTS.match(one.path))
    words = {one for record in records for one in record.values() if isinstance(one, str) and one in NOTHING}
    file |= {"null": ["", *sorted(words)]} if words else {}
    with suppress(InputError):
        doubts[:0] = [
            f"judged reads this without a mapping, as {layout}" for layout in [known_layout(part)] if layout != "ubi"
        ]
    draft = _Draft(facts, roles)
    draft.lines += [f"# DOUBT: {one}" for one in doubts]
    draft.sections()
    count = f"{len(records):,} record{'s' if len(records) > 1 else ''}"
    lines = [
        f"# Drafted from {count} of {name}. Look through it: DOUBT says what the data do not tell.",
        f"note = {_toml(name)}",
        *draft.base(),
        *draft.convention(),
        "",
        "[file]",
        *(f"{key} = {_toml(value)}" for key, value in file.items()),
        *([""] if doubts else []),
        *draft.lines,
        "",
    ]
    return "\n".join(lines)


class _Draft:
    """The sections of a mapping, as lines."""

    def __init__(self, facts: Sequence[Facts], roles: dict[str, Facts]) -> None:
        self.facts, self.roles = facts, roles
        self.lines: list[str] = []
        self.words = _words(roles["action"]) if "action" in roles else {}
        self.inside = {one.path: one for one in facts if _OBJECTS.match(one.path)}
        self.ranks: Facts | None = roles.get("ranks") or roles.get("position")
        self.by_index = False

    def base(self) -> list[str]:
        """Say what the first rank is called."""
        if self.by_index:
            return ["rank_base = 0  # positions are those in the lists"]
        least = min(self.ranks.numbers) if self.ranks and self.ranks.numbers else None
        doubt = [f"# DOUBT: no {self.ranks.path} is 0 or 1"] if self.ranks and (least or 0) > 1 else []
        return [] if least is None else [*doubt, f"rank_base = {int(least > 0)}"]

    def convention(self) -> list[str]:
        """Leave room for what propensities are probabilities of."""
        if "propensity" not in self.roles:
            return []
        possible = " or ".join(map(_toml, CONVENTIONS))
        return [f"# DOUBT: propensities may be {possible}; see docs/off-policy.md", "# propensity_convention = ..."]

    def sections(self) -> None:
        """Choose what the rows are, and write it."""
        has, action = self.roles.keys(), self.roles.get("action")
        if "time" not in has:
            self.doubt("no column is a time that can be read: the rows are taken to be in order")
        if "hit_ids" in has:
            where = {"where": {action.path: self.words["search"]}} if action and "search" in self.words else {}
            if action and not where and set(action.by_row) - set(self.roles["hit_ids"].by_row):
                apart = not set(action.by_row) & set(self.roles["hit_ids"].by_row)
                told = action if apart else self.roles["hit_ids"]
                where = {"where": {told.path: {"filled": not apart}}}
            first = self._queries(where, ("hit_ids", "ranks"), rows=not action or "query_id" not in has)
            self._clicks(first, action)
        elif {"click", "object_id"} <= has:
            if "position" not in has:
                self.doubt("no column gives the ranks: only the clicks are read")
            rows = {"rows": "results" if "position" in has else "clicks"}
            first = self._queries(
                rows, ("object_id", "position", "propensity") if "position" in has else (), rows=False
            )
            click = self.roles["click"]
            yes = sorted({one for one in click.texts if one.lower() in {"1", "true", "yes", "1.0"}}) or ["1"]
            self._section("events", {"where": {click.path: yes}}, _EVENT, first, _CLICK)
        elif action and "search" in self.words:
            first = self._queries({"where": {action.path: self.words["search"]}}, (), rows="query_id" not in has)
            self.doubt("no list of results: which results were shown is not known")
            self._actions(action, first)
        elif "object_id" in has and (action or "query" in has):
            self.doubt("no row says what was shown: pages without a click are not in the log, if all rows are clicks")
            where = {"where": {action.path: self.words["click"]}} if action and "click" in self.words else {}
            first = self._queries({"rows": "clicks", **where}, (), rows=False)
            self._actions(action, first) if action else self._section("events", {}, _EVENT, first, _CLICK)
        else:
            self.doubt("nothing looks like results, clicks or actions: this is no mapping yet. Columns:")
            self.lines += [f"# {one.path}: {one.shown}" for one in self.facts]

    def doubt(self, text: str) -> None:
        """Say what the data do not tell."""
        self.lines.append(f"# DOUBT: {text}")

    def _section(self, head: str, keys: Mapping[str, Any], columns: Sequence[str], *first: str) -> None:
        self.lines += ["", f"[{head}]", *(f"{key} = {_toml(value)}" for key, value in keys.items())] if keys else []
        self.lines += ["", f"[{head}.columns]", *filter(None, first)]
        given = {line.split(" = ")[0] for line in first}
        for role in columns:
            if role in self.roles and role not in given:
                self._column(role, self.roles[role])

    def _column(self, role: str, facts: Facts, path: str = "") -> None:
        value = {"path": path or facts.path} | ({"separator": facts.separator} if facts.separator else {})
        if role == "time" and facts.times != ("auto",):
            value["format"] = facts.times[0]
            if len(facts.times) > 1:
                self.doubt(f"the time could also be {' or '.join(facts.times[1:])}")
        if role in {"dwell", "latency"}:
            value["unit"] = "milliseconds" if re.search(r"ms$|milli", facts.names[0]) else "seconds"
            if not re.search(r"(ms|_s|sec\w*)$", facts.names[0]):
                self.doubt(f"the unit of {facts.path}")
        self.lines.append(f"{role} = {_toml(value if len(value) > 1 else value['path'])}  # {facts.shown}")

    def _queries(self, keys: Mapping[str, Any], columns: Sequence[str], *, rows: bool) -> str:
        """Write the section of pages, and give the line that ties events to them."""
        first = self._page(rows=rows)
        self._section("queries", keys, (*_PAGE, *columns), first)
        used = [one.path for one in self.roles.values()]
        single = [one for one in self.facts if one.path not in used and "[]" not in one.path and not one.is_list]
        few = [one for one in single if 1 < one.distinct <= min(30, len(one.texts) / 2)]
        few = sorted(few, key=lambda one: bool(one.numbers))[:_ATTRIBUTES]
        self.lines += ["", "[queries.attributes]"] if few else []
        self.lines += [
            f"own_{re.sub(r'[^A-Za-z0-9]', '_', one.path)} = {_toml(one.path)}  # {one.shown}" for one in few
        ]
        return first

    def _page(self, *, rows: bool) -> str:
        """Say what ties a page together; where rows are pages, their own name may do."""
        named = self.roles.get("query_id")
        if named and (not rows or named.distinct == len(named.texts)):
            return ""
        if named:
            self.doubt(f"{named.path} stands in several rows, so that it names no page")
        if rows or not {"session_id", "user_id", "query"} & self.roles.keys():
            if not rows:
                self.doubt("no column tells which rows are one page: each is a page of its own")
            return 'query_id = "#row"  # each row is a page'
        self.doubt("no column names the page: rows are put together by what they have in common")
        both = {"session_id", "query"} <= self.roles.keys()
        wanted = ("session_id", "query") if both else ("session_id", "user_id", "query", "time")
        join = [self.roles[role].path for role in wanted if role in self.roles]
        return f"query_id = {_toml({'join': join})}"

    def _clicks(self, first: str, action: Facts | None) -> None:
        """Write the clicks on pages that list their results."""
        shown, clicks = self.roles["hit_ids"], self.roles.get("clicks")
        if self.inside:
            members = [Facts(path.split("[].", 1)[1], dict(enumerate(one.texts))) for path, one in self.inside.items()]
            roles, _ = roles_of(
                members, ("object_id", "position", "dwell", *(["time"] if "time" in self.roles else []))
            )
            common = [role for role in _WHO if role not in roles]
            self._section("events", {"each": next(iter(self.inside)).split("[]")[0]}, common, first, _CLICK)
            for role, one in roles.items():
                self._column(role, one, f"@.{one.path}")
            self.ranks = roles.get("position", self.ranks)
        elif clicks:
            each: Any = {"path": clicks.path, "separator": clicks.separator} if clicks.separator else clicks.path
            same = all(len(value) == len(shown.by_row.get(row, [])) for row, value in clicks.by_row.items())
            self.by_index = clicks.flag and same
            item = "@index" if self.by_index else "@"
            if self.by_index or (clicks.whole and max(clicks.numbers) <= max(map(len, shown.by_row.values()))):
                listed = (
                    {"path": shown.path} | ({"separator": shown.separator} if shown.separator else {}) | {"at": item}
                )
                place = [f'position = "{item}"', f"object_id = {_toml(listed)}"]
                self.ranks = clicks
            else:
                place = ['object_id = "@"']
            keys = {"each": each} | ({"where": {"@": [1, True]}} if self.by_index else {})
            self._section("events", keys, _WHO, first, _CLICK, *place)
        elif action:
            self._actions(action, first)
        else:
            self.lines.append("")
            self.doubt("nothing tells of clicks")

    def _actions(self, action: Facts, first: str) -> None:
        """Write rows that are events, told apart by their action."""
        known = {word: ours for ours, words in self.words.items() for word in words}
        meant = [f"{_toml(word)} = {_toml(ours)}" for word, ours in known.items() if ours not in {word, "search"}]
        meant += [f"# DOUBT: what {word!r} means" for word in sorted(set(action.texts) - known.keys())[:20]]
        self.lines += ["", "[actions]", *meant] if meant else []
        searches = self.words.get("search")
        where = {action.path: {"not": searches} if searches else {"filled": True}}
        self._section("events", {"where": where}, ["action", *_EVENT, "query"], first)


def _words(action: Facts) -> dict[str, list[str]]:
    """Find the words for our actions among those of the log."""
    found: dict[str, list[str]] = {}
    for word in dict.fromkeys(action.texts):
        plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", word).lower()
        if ours := next((name for name, pattern in _ACTIONS.items() if re.fullmatch(pattern, plain)), None):
            found.setdefault(ours, []).append(word)
    return found


def _records(part: Part) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the first records of a file, and say how it is written."""
    form = form_of(part, ())
    if form == "parquet":
        from judged.data.arrow_files import parquet_batches
        from judged.online.engine import Engine

        engine = Engine()  # in whose folder the file lies where it was packed
        batch = next(parquet_batches(plain_path(part, engine), part.name, list), None)
        return {"format": "parquet"}, [] if batch is None else batch.slice(0, SAMPLE).to_pylist()
    if form == "lines":
        with opened(part) as file:
            records: list[dict[str, Any]] = []
            for line in islice(file, SAMPLE):
                with suppress(ValueError, RecursionError):
                    record = json.loads(line[max(line.find(b"{"), 0) :])
                    if isinstance(record, dict) and not record.keys() <= _BULK:
                        records.append(record.get("_source", record))
        return {"format": "jsonl"}, records
    text = first_bytes(part).decode("utf-8", errors="replace")
    first = text.split("\n", 1)[0]
    sign = max(",;\t", key=first.count)
    rows = [row for row in islice(csv.reader(text.splitlines(), delimiter=sign), SAMPLE + 1) if any(row)]
    rows = rows[:-1] if len(text) >= 1 << 18 else rows  # the last is cut
    known: dict[str, Any] = {"format": "tsv" if sign == "\t" else "csv", "separator": sign}
    names = [cell.strip() for cell in rows[0]] if rows else []
    # names of columns may be in any script; none begins with a digit
    if not all(re.fullmatch(r"[^\W\d][\w .\[\]-]*|", name) for name in names) or len(set(names)) < len(names):
        names = [f"column_{number}" for number in range(1, len(names) + 1)]
        known |= {"header": False, "columns": names}
    else:
        rows = rows[1:]
    return known, [dict(zip(names, row, strict=False)) for row in rows if len(row) == len(names)]


def _toml(value: Any) -> str:
    """Write a value of TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
