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
from judged.online.reading.guessing import NOTHING, Facts, facts_of, roles_of
from judged.online.reading.opening import Part, first_bytes, form_of, known_layout, opened, parts_of, plain_path

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
_PER_PAGE = "each row is a page"


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
        self.ranks: Facts | None = roles.get("position")
        self.by_index = False

    def base(self) -> list[str]:
        """Say what the first rank is called."""
        if self.by_index:
            return ["rank_base = 0  # positions are those in the lists"]
        ranks = self.ranks
        if ranks is None or not ranks.numbers:
            return []
        least = min(ranks.numbers)
        doubt = [] if least in {0, 1} else [f"# DOUBT: no {ranks.path} is 0 or 1"]
        return [*doubt, f"rank_base = {int(least > 0)}"]

    def sections(self) -> None:
        """Choose what the rows are, and write it."""
        roles, has = self.roles, self.roles.keys()
        if "time" not in has:
            self.doubt("no column is a time that can be read: the rows are taken to be in order")
        actions = self._actions() if "action" in has else {}
        if "hit_ids" in has:
            self._lists(actions)
        elif {"click", "object_id"} <= has and ("position" in has or roles["click"].distinct > 1):
            self._results()
        elif actions:
            self._events(actions)
        elif {"object_id", "query"} <= has:
            self._clicks({})
        else:
            self.doubt("nothing looks like results, clicks or actions: this is no mapping yet. Columns:")
            self.lines += [f"# {one.path}: {one.shown}" for one in self.facts]

    def doubt(self, text: str) -> None:
        """Say what the data do not tell."""
        self.lines.append(f"# DOUBT: {text}")

    def _section(self, head: str, keys: Mapping[str, Any], columns: Sequence[str], *first: str) -> None:
        if keys:
            self.lines += ["", f"[{head}]", *(f"{key} = {_toml(value)}" for key, value in keys.items())]
        self.lines += ["", f"[{head}.columns]", *first]
        given = {line.split(" = ")[0] for line in first}
        for role in columns:
            if role in self.roles and role not in given:
                self._column(role, self.roles[role])

    def _column(self, role: str, facts: Facts, path: str = "") -> None:
        value: dict[str, Any] = {"path": path or facts.path}
        if facts.separator:
            value["separator"] = facts.separator
        if role == "time" and facts.times != ("auto",):
            value["format"] = facts.times[0]
            if len(facts.times) > 1:
                self.doubt(f"the time could also be {' or '.join(facts.times[1:])}")
        if role in {"dwell", "latency"}:
            value["unit"] = "milliseconds" if re.search(r"ms$|milli", facts.names[0]) else "seconds"
            if not re.search(r"(ms|_s|sec\w*)$", facts.names[0]):
                self.doubt(f"the unit of {facts.path}")
        self.lines.append(f"{role} = {_toml(value if len(value) > 1 else value['path'])}  # {facts.shown}")

    def _page(self, *, rows: bool) -> str:
        """Say what ties a page together; where rows are pages, their own name may do."""
        named = self.roles.get("query_id")
        if named and (not rows or named.distinct == len(named.texts)):
            return ""
        if rows:
            if named:
                self.doubt(f"{named.path} stands in several rows, so that it names no page")
            return f'query_id = "#row"  # {_PER_PAGE}'
        parts = [self.roles[role].path for role in ("session_id", "user_id", "query", "time") if role in self.roles]
        if "session_id" in self.roles and "query" in self.roles:
            parts = [self.roles["session_id"].path, self.roles["query"].path]
        if not {"session_id", "user_id", "query"} & self.roles.keys():
            self.doubt("no column tells which rows are one page: each is a page of its own")
            return 'query_id = "#row"'
        self.doubt("no column names the page: rows are put together by what they have in common")
        return f"query_id = {_toml({'join': parts})}"

    def _attributes(self) -> None:
        """Write columns with few values as attributes."""
        used = [one.path for one in self.roles.values()]
        single = [one for one in self.facts if one.path not in used and "[]" not in one.path and not one.is_list]
        few = [one for one in single if 1 < one.distinct <= min(30, len(one.texts) / 2)]
        names = {re.sub(r"\W", "_", one.path): one for one in sorted(few, key=lambda one: bool(one.numbers))[:12]}
        if names:
            self.lines += ["", "[queries.attributes]"]
            self.lines += [f"own_{name} = {_toml(one.path)}  # {one.shown}" for name, one in names.items()]

    def _lists(self, actions: Mapping[str, list[str]]) -> None:
        """Write pages that list their results, and the clicks beside them or in a list of their own."""
        shown, clicks = self.roles["hit_ids"], self.roles.get("clicks")
        inside = {one.path: one for one in self.facts if _OBJECTS.match(one.path)}
        where = {self.roles["action"].path: actions["search"]} if "search" in actions else {}
        first = self._page(rows="search" not in actions or "query_id" not in self.roles)
        self._section(
            "queries", {"where": where} if where else {}, [*_PAGE, "hit_ids", "ranks"], *([first] if first else [])
        )
        self._attributes()
        if "ranks" in self.roles:
            self.ranks = self.roles["ranks"]
        firsts = [first] if first else []
        if inside:
            self._each(inside, firsts)
        elif clicks is not None:
            self._listed_clicks(shown, clicks, firsts)
        elif set(actions) - {"search"}:
            self._events({name: words for name, words in actions.items() if name != "search"}, pages=False)
        else:
            self.lines.append("")
            self.doubt("nothing tells of clicks")

    def _each(self, inside: Mapping[str, Facts], firsts: Sequence[str]) -> None:
        """Write clicks that are objects in a list."""
        container = next(iter(inside)).split("[]")[0]
        members = {path.split("[].", 1)[1]: one for path, one in inside.items()}
        single = [Facts(name, dict(enumerate(one.texts))) for name, one in members.items()]
        roles, _ = roles_of(single, ("object_id", "position", "time", "dwell"))
        if "time" in roles and "time" not in self.roles:
            del roles["time"]
        common = [role for role in _WHO if role not in roles]
        self._section("events", {"each": container}, common, *firsts, 'action = { value = "click" }')
        for role, one in roles.items():
            self._column(role, one, f"@.{one.path}")
        self.ranks = roles.get("position", self.ranks)

    def _listed_clicks(self, shown: Facts, clicks: Facts, firsts: Sequence[str]) -> None:
        """Write clicks that are flags beside the results, ranks, or ids."""
        each: dict[str, Any] = {"path": clicks.path, "separator": clicks.separator} if clicks.separator else {}
        keys: dict[str, Any] = {"each": each or clicks.path}
        common = [role for role in _WHO if role in self.roles]
        same = all(len(value) == len(shown.by_row.get(row, [])) for row, value in clicks.by_row.items())
        place, item = ['position = "@"  # ranks'], {"at": "@"}
        if clicks.flag and same:
            keys["where"] = {"@": [1, True]}
            place, item = ['position = "@index"  # flags beside the results'], {"at": "@index"}
            self.by_index = True
        elif clicks.whole and max(clicks.numbers) <= max(map(len, shown.by_row.values()), default=0):
            self.ranks = clicks
        else:
            place, item = ['object_id = "@"  # ids'], {}
        if item:
            listed = {"path": shown.path, **({"separator": shown.separator} if shown.separator else {}), **item}
            place.append(f"object_id = {_toml(listed)}")
        self._section("events", keys, common, *firsts, 'action = { value = "click" }', *place)

    def _results(self) -> None:
        """Write rows that are results, with a flag that says whether they were clicked."""
        first = self._page(rows=False)
        firsts = [first] if first else []
        columns = ["object_id", "position", "propensity", *_PAGE]
        if "position" in self.roles:
            self._section("queries", {"rows": "results"}, columns, *firsts)
        else:
            self.doubt("no column gives the ranks: only the clicks are read")
            self._section("queries", {"rows": "clicks"}, _PAGE, *firsts)
        self._attributes()
        click = self.roles["click"]
        yes = sorted({one for one in click.texts if one.lower() in {"1", "true", "yes", "1.0"}}) or ["1"]
        self._section("events", {"where": {click.path: yes}}, _EVENT, *firsts, 'action = { value = "click" }')

    def _events(self, actions: Mapping[str, list[str]], *, pages: bool = True) -> None:
        """Write rows that are events, told apart by their action."""
        action = self.roles["action"].path
        if pages and "search" in actions:
            first = self._page(rows="query_id" not in self.roles)
            self._section("queries", {"where": {action: actions["search"]}}, _PAGE, *([first] if first else []))
            self._attributes()
            self.doubt("no list of results: which results were shown is not known")
        elif pages:
            self._clicks({"where": {action: actions.get("click", [])}})
            return
        self._named(actions)
        keys = {"where": {action: {"not": actions["search"]}}} if "search" in actions else {}
        self._section("events", keys, ["action", *_EVENT, "query"])

    def _clicks(self, keys: dict[str, Any]) -> None:
        """Write rows that are clicks, and a log that holds nothing else."""
        self.doubt("no row says what was shown: pages without a click are not in the log, if all rows are clicks")
        first = self._page(rows=False)
        firsts = [first] if first else []
        self._section("queries", {"rows": "clicks", **keys}, _PAGE, *firsts)
        self._attributes()
        if keys:
            self._named(self._actions())
            self._section("events", {}, ["action", *_EVENT], *firsts)
        else:
            self._section("events", {}, _EVENT, *firsts, 'action = { value = "click" }')

    def _actions(self) -> dict[str, list[str]]:
        """Find the words for our actions among those of the log."""
        words = dict.fromkeys(self.roles["action"].texts)
        found: dict[str, list[str]] = {}
        for word in words:
            plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", word).lower()
            ours = next((name for name, pattern in _ACTIONS.items() if re.fullmatch(pattern, plain)), None)
            if ours:
                found.setdefault(ours, []).append(word)
        return found

    def _named(self, actions: Mapping[str, list[str]]) -> None:
        known = {word: name for name, words in actions.items() for word in words if word != name}
        others = set(self.roles["action"].texts) - {word for words in self._actions().values() for word in words}
        if known or others:
            lines = ["", "[actions]", *(f"{_toml(word)} = {_toml(name)}" for word, name in known.items())]
            lines += [f"# DOUBT: what {word!r} means" for word in sorted(others)[:20]]
            self.lines += lines


def _records(part: Part) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the first records of a file, and say how it is written."""
    form = form_of(part, ())
    if form == "parquet":
        import pyarrow.parquet as pq

        from judged.online.engine import Engine

        with suppress(StopIteration):
            batch = next(pq.ParquetFile(plain_path(part, Engine())).iter_batches(SAMPLE))
            return {"format": "parquet"}, batch.to_pylist()
        return {"format": "parquet"}, []
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
    if not all(re.fullmatch(r"[A-Za-z_][\w .\[\]-]*|", name) for name in names) or len(set(names)) < len(names):
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
