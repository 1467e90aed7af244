"""Sections of a drafted mapping: pages, clicks, and other actions, from the roles of the columns of a log."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from judged.online.log import PROPENSITY_CONVENTIONS
from judged.online.readers.column_roles import ACTIONS, ColumnProfile, assign_roles, guess_role

CLICK_OBJECT = re.compile(r"(.*[_.])?click\w*\[\]", re.IGNORECASE)
_KEYS = ("query_id", "session_id", "user_id", "time")
_PAGE_ROLES = (*_KEYS, "query", "language", "device", "latency", "n_total", "variant", "bot", "user_agent")
_RESULT_EVENT_ROLES = ("query_id", "time", "object_id", "position", "dwell", "propensity")
_EVENT_ROLES = (*_KEYS, "object_id", "position", "dwell", "value", "propensity")
_CLICK_ACTION = 'action = { value = "click" }'
_ACTIONS_BY_ROLE = {"cart": "add_to_cart", "purchase": "purchase"}
_MAX_ATTRIBUTES = 12  # columns with few values that become attributes
_REVENUE = re.compile(r"(.*_)?(revenue|umsatz|sales|amount|order_value)")


class DraftSections:
    """Lines of the sections of a mapping."""

    def __init__(self, profiles: Sequence[ColumnProfile], roles: dict[str, ColumnProfile], record_count: int) -> None:
        self.profiles, self.roles, self.record_count = profiles, roles, record_count
        self.lines: list[str] = []
        self.doubts: list[str] = []
        self.uses: dict[str, str] = {}
        self.actions: dict[str, str] = {}
        self.has_events = False
        self.names_by_action = _names_by_action(roles["action"]) if "action" in roles else {}
        self.click_members = {profile.path: profile for profile in profiles if CLICK_OBJECT.match(profile.path)}
        self.ranks: ColumnProfile | None = roles.get("ranks") or roles.get("position")
        self.clicks_by_index = False

    @property
    def missing_roles(self) -> tuple[str, ...]:
        """Roles that a log needs, and no column has."""
        has_query = bool({"query", "query_id"} & self.roles.keys())
        present = {"time": "time" in self.roles, "query": has_query, "clicks": self.has_events}
        return tuple(role for role, is_present in present.items() if not is_present)

    @property
    def all_uses(self) -> dict[str, str]:
        """Use of each column: its role, or a guess."""
        return {profile.path: self.uses.get(profile.path) or _describe_unused(profile) for profile in self.profiles}

    def unused_lines(self, limit: int) -> list[str]:
        """Return comments about unused columns; columns beyond the limit share one line."""
        unused = [profile for profile in self.profiles if profile.path not in self.uses]
        listed = len(unused) if len(unused) <= limit else max(0, limit - 1)
        first, others = unused[:listed], unused[listed:]
        lines = [f"# {profile.path}: {_describe_unused(profile)} ({profile.examples})" for profile in first]
        return [*lines, *([f"# not used: {', '.join(profile.path for profile in others)}"] if others else [])]

    def rank_base(self) -> list[str]:
        """Return the lines about the position of the first result."""
        if self.clicks_by_index:
            return ["rank_base = 0  # positions in the lists begin with 0"]
        minimum = min(self.ranks.numbers) if self.ranks and self.ranks.numbers else None
        doubt = [f"# CHECK: no value of {self.ranks.path} is 0 or 1"] if self.ranks and (minimum or 0) > 1 else []
        return [] if minimum is None else [*doubt, f"rank_base = {int(minimum > 0)}"]

    def convention(self) -> list[str]:
        """Return the lines about the convention of propensities."""
        if "propensity" not in self.roles:
            return []
        possible = " or ".join(map(toml_value, PROPENSITY_CONVENTIONS))
        return [f"# CHECK: propensities may be {possible}; see docs/off-policy.md", "# propensity_convention = ..."]

    def sections(self) -> None:
        """Add all sections."""
        roles, action = self.roles.keys(), self.roles.get("action")
        if "time" not in roles:
            self.doubt("no column has valid times: rows keep the order of the file")
        if "hit_ids" in roles:
            condition = self._action_condition("search")
            results = self.roles["hit_ids"]
            if action and not condition and set(action.values_by_row) - set(results.values_by_row):
                # Some rows are events. Rows with an action are events if no results are in the same row.
                are_separate = not set(action.values_by_row) & set(results.values_by_row)
                marker = action if are_separate else results
                condition = {"where": {marker.path: {"filled": not are_separate}}}
            has_row_per_click = not action and self._has_row_per_click()
            if has_row_per_click:
                condition = {"rows": "clicks", **condition}
                self.doubt("several rows have the same page and results: a row may be one click")
            is_page_per_row = not has_row_per_click and (not action or "query_id" not in roles)
            page_id_line = self._queries(condition, ("hit_ids", "ranks"), is_page_per_row=is_page_per_row)
            self._clicks(page_id_line, action)
        elif {"click", "object_id"} <= roles:
            if "position" not in roles:
                self.doubt("no column has ranks, so only clicked results are read")
            row_kind = {"rows": "results" if "position" in roles else "clicks"}
            result_roles = ("object_id", "position", "propensity") if "position" in roles else ()
            page_id_line = self._queries(row_kind, result_roles, is_page_per_row=False)
            self._flagged_events("click", _RESULT_EVENT_ROLES, page_id_line)
            self._outcomes(page_id_line, _RESULT_EVENT_ROLES)
        elif "query" in roles and not action and ("click" in roles or self._has_clicked_position()):
            page_id_line = self._queries({}, (), is_page_per_row=True)
            self._flagged_events("click" if "click" in roles else "position", _RESULT_EVENT_ROLES, page_id_line)
            self._outcomes(page_id_line)
        elif action and "search" in self.names_by_action:
            page_id_line = self._queries(self._action_condition("search"), (), is_page_per_row="query_id" not in roles)
            self._actions(action, page_id_line)
        elif "object_id" in roles and (action or "query" in roles):
            self.doubt("no shown results: if all rows are clicks, pages without a click are missing")
            keys = {"rows": "clicks", **self._action_condition("click")}
            page_id_line = self._queries(keys, (), is_page_per_row=False)
            self._actions(action, page_id_line)
        else:
            self.doubt("no column has results, clicks, or actions: the mapping is incomplete")

    def _has_clicked_position(self) -> bool:
        return "position" in self.roles and "lick" in self.roles["position"].names[0] and "object_id" not in self.roles

    def _flagged_events(self, role: str, roles: Sequence[str], page_id_line: str) -> None:
        """Add a section of the rows in which a column is true, or has a position."""
        if role not in self.roles:
            return
        flag = self.roles[role]
        true_values = sorted({text for text in flag.texts if text.lower() in {"1", "true", "yes", "1.0"}}) or ["1"]
        condition = {"filled": True} if role == "position" else true_values
        self.uses.setdefault(flag.path, role if role != "click" else "clicks")
        self._event_rows(_ACTIONS_BY_ROLE.get(role, "click"), {flag.path: condition}, roles, page_id_line)

    def _outcomes(self, page_id_line: str, roles: Sequence[str] = ("query_id", "time")) -> None:
        """Add sections for carts and purchases of the page or result in each row."""
        self._flagged_events("cart", roles, page_id_line)
        self._flagged_events("purchase", (*roles, "value"), page_id_line)
        value = self.roles.get("value")
        if value and "purchase" not in self.roles and _REVENUE.fullmatch(value.names[0]):
            self._event_rows("purchase", {value.path: {"above": 0}}, (*roles, "value"), page_id_line)

    def _event_rows(self, action: str, condition: Mapping[str, Any], roles: Sequence[str], page_id_line: str) -> None:
        """Add a short section of events in the rows of pages or results."""
        columns = [page_id_line.partition("  #")[0], f'action = {{ value = "{action}" }}']
        used = [role for role in roles if role in self.roles and not (role == "query_id" and page_id_line)]
        columns += [f"{role} = {toml_value(self._source(role, self.roles[role]))}" for role in used]
        self._start("events", {"where": condition})
        self.lines.append(f"columns = {{ {', '.join(filter(None, columns))} }}")

    def _has_row_per_click(self) -> bool:
        """Whether rows repeat a page: they have the same page ID, or user, query, and time; and the same results."""
        keys = {"query_id"} & self.roles.keys() or {"session_id", "user_id", "query", "time"} & self.roles.keys()
        if not (keys == {"query_id"} or (len(keys) > 2 and {"query", "time"} <= keys)):
            return False
        results, pages = self.roles["hit_ids"].values_by_row, defaultdict[tuple[str, ...], list[Any]](list)
        for row in results:
            pages[tuple(str(self.roles[key].values_by_row.get(row)) for key in keys)].append(results[row])
        return len(pages) < len(results) and all(lists.count(lists[0]) == len(lists) for lists in pages.values())

    def _action_condition(self, action: str) -> dict[str, Any]:
        names = self.names_by_action.get(action)
        return {"where": {self.roles["action"].path: names}} if names else {}

    def doubt(self, text: str) -> None:
        """Add a doubt."""
        self.doubts.append(text)
        self.lines.append(f"# CHECK: {text}")

    def _start(self, name: str, keys: Mapping[str, Any]) -> None:
        if name == "events":
            if self.has_events:  # sections of the same name form an array
                self.lines = ["[[events]]" if line == "[events]" else line for line in self.lines]
                name = "[events]"
            self.has_events = True
        if keys:
            self.lines += ["", f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in keys.items())]

    def _section(self, name: str, keys: Mapping[str, Any], columns: Sequence[str], *lines: str) -> None:
        self._start(name, keys)
        self.lines += [*([] if keys else [""]), f"[{name}.columns]", *filter(None, lines)]
        written_roles = {line.split(" = ")[0] for line in lines}
        for role in columns:
            if role in self.roles and role not in written_roles:
                self._column(role, self.roles[role])

    def _column(self, role: str, profile: ColumnProfile, path: str = "") -> None:
        self.lines.append(f"{role} = {toml_value(self._source(role, profile, path))}  # {profile.examples}")

    def _source(self, role: str, profile: ColumnProfile, path: str = "") -> Any:
        """Return the source of a column: its path, or a table with options."""
        self.uses.setdefault(profile.path, role)
        source: dict[str, Any] = {"path": path or profile.path}
        source |= {"separator": profile.separator} if profile.separator else {}
        if role == "time" and profile.times != ("auto",):
            source["format"] = profile.times[0]
            if len(profile.times) > 1:
                self.doubt(f"the time format could also be {' or '.join(profile.times[1:])}")
        if role in {"dwell", "latency"}:
            source["unit"] = _unit(profile, role)
            source |= {"at": "@index"} if profile.is_list else {}
            self.uses[profile.path] = f"{role} in {source['unit']}"
        if role == "hit_ids" and profile.separator and len(profile.values_by_row) < self.record_count:
            source["empty"] = True
        return source if len(source) > 1 else source["path"]

    def _queries(self, keys: Mapping[str, Any], roles: Sequence[str], *, is_page_per_row: bool) -> str:
        """Add the section of queries. Return the line with the id of a page, which events share."""
        page_id_line = self._page_id_line(is_page_per_row=is_page_per_row)
        names = {re.sub(r"[^A-Za-z0-9]", "_", profile.path): profile.path for profile in self._attributes()}
        self.uses |= {path: f"attribute {name}" for name, path in names.items()}
        attributes = {f"attribute_{name}": path for name, path in names.items()}
        keys = {**keys, **({"attributes": attributes} if attributes else {})}
        self._section("queries", keys, (*_PAGE_ROLES, *roles), page_id_line)
        return page_id_line

    def _attributes(self) -> list[ColumnProfile]:
        used_paths = [profile.path for profile in self.roles.values()]
        unused = [profile for profile in self.profiles if profile.path not in used_paths and "[]" not in profile.path]
        scalars = [profile for profile in unused if not profile.is_list]
        attributes = [profile for profile in scalars if 1 < profile.distinct <= min(30, len(profile.texts) / 2)]
        return sorted(attributes, key=lambda profile: bool(profile.numbers))[:_MAX_ATTRIBUTES]

    def _page_id_line(self, *, is_page_per_row: bool) -> str:
        query_id = self.roles.get("query_id")
        if query_id and (not is_page_per_row or query_id.distinct == len(query_id.texts)):
            return ""
        if query_id:
            self.doubt(f"{query_id.path} is not unique, so it does not identify a page")
        if is_page_per_row or not {"session_id", "user_id", "query"} & self.roles.keys():
            if not is_page_per_row:
                self.doubt("no column shows which rows belong to one page: each row becomes a page")
            return 'query_id = "#row"  # each row is a page'
        self.doubt("no column identifies the page: rows with the same values of these columns become one page")
        # A query text in a session is nearly as good as an id of a page. Without one of them all keys are needed.
        has_both = {"session_id", "query"} <= self.roles.keys() and "hit_ids" not in self.roles
        keys = ("session_id", "query") if has_both else ("session_id", "user_id", "query", "time")
        return f"query_id = {toml_value({'join': [self.roles[role].path for role in keys if role in self.roles]})}"

    def _event_page_line(self, page_id_line: str, event_rows: set[int]) -> str:
        """Return the line with the page of an event in a row of its own."""
        if "#row" not in page_id_line:
            return page_id_line
        keys = [role for role in ("session_id", "user_id") if role in self.roles][:1]
        if not keys or "time" not in self.roles:
            self.doubt("no column shows the page of an event")
            return page_id_line
        if "query" in self.roles and event_rows <= set(self.roles["query"].values_by_row):
            keys.append("query")
        paths = [self.roles[role].path for role in keys]
        return f"query_id = {toml_value({'last': paths})}  # the last page before the event"

    def _clicks(self, page_id_line: str, action: ColumnProfile | None) -> None:
        """Add the section of clicks on pages with a list of results."""
        results, clicks = self.roles["hit_ids"], self.roles.get("clicks")
        if self.click_members:
            texts = {path.split("[].", 1)[1]: profile.texts for path, profile in self.click_members.items()}
            members = [ColumnProfile(path, dict(enumerate(member_texts))) for path, member_texts in texts.items()]
            member_roles = ("object_id", "position", "dwell", *(["time"] if "time" in self.roles else []))
            roles, _ = assign_roles(members, member_roles)
            page_roles = [role for role in _KEYS if role not in roles]
            list_path = next(iter(self.click_members)).split("[]")[0]
            self._section("events", {"each": list_path}, page_roles, page_id_line, _CLICK_ACTION)
            for role, profile in roles.items():
                self._column(role, profile, f"@.{profile.path}")
                self.uses[f"{list_path}[].{profile.path}"] = f"{role} of clicks"
            self.ranks = roles.get("position", self.ranks)
            self._outcomes(page_id_line)
        elif clicks:
            each: Any = {"path": clicks.path, "separator": clicks.separator} if clicks.separator else clicks.path
            lengths = {row: len(value) for row, value in results.values_by_row.items()}
            has_same_lengths = all(len(value) == lengths.get(row, 0) for row, value in clicks.values_by_row.items())
            # Clicks are flags of the results, or positions of results, or ids of results.
            self.clicks_by_index = clicks.is_flag and has_same_lengths
            position = "@index" if self.clicks_by_index else "@"
            if self.clicks_by_index or (clicks.is_whole and max(clicks.numbers) <= max(lengths.values())):
                separator = {"separator": results.separator} if results.separator else {}
                object_id = {"path": results.path} | separator | {"at": position}
                columns = [f'position = "{position}"', f"object_id = {toml_value(object_id)}"]
                self.ranks = clicks
            else:
                columns = ['object_id = "@"']
            keys = {"each": each} | ({"where": {"@": [1, True]}} if self.clicks_by_index else {})
            self.uses[clicks.path] = "clicks"
            self._section("events", keys, ("query_id", "time", "dwell"), page_id_line, _CLICK_ACTION, *columns)
            dwell = self.roles.get("dwell")
            if dwell and not dwell.is_list and any(len(value) > 1 for value in clicks.values_by_row.values()):
                self.doubt(
                    f"rows with several clicks have only one value of {dwell.path}: this value is used for each click"
                )
            self._outcomes(page_id_line)
        elif action:
            self._actions(action, page_id_line)
        else:
            self.lines.append("")
            self.doubt("no column has clicks")

    def _actions(self, column: ColumnProfile | None, page_id_line: str) -> None:
        if column is None:
            return self._section("events", {}, _EVENT_ROLES, page_id_line, _CLICK_ACTION)
        actions = {name: action for action, names in self.names_by_action.items() for name in names}
        self.actions = {name: action for name, action in actions.items() if action not in {name, "search"}}
        unknown = sorted(set(column.texts) - actions.keys())[:20]
        self.lines += [f"# CHECK: the action {name!r} is unknown" for name in unknown]
        searches = self.names_by_action.get("search")
        condition = {column.path: {"not": searches} if searches else {"filled": True}}
        event_rows = {row for row, name in column.values_by_row.items() if str(name) not in (searches or ())}
        page_id_line = self._event_page_line(page_id_line, event_rows)
        return self._section("events", {"where": condition}, ["action", *_EVENT_ROLES], page_id_line)


def _describe_unused(profile: ColumnProfile) -> str:
    role = guess_role(profile)
    return f"not used, could be {role}" if role else "not used"


def _unit(profile: ColumnProfile, role: str) -> str:
    """Return the unit of durations, from the end of the name, or else from the values."""
    if re.search(r"ms$|milli", profile.names[1]):
        return "milliseconds"
    if re.search(r"(_s|se[ck]\w*)$", profile.names[1]):
        return "seconds"
    smallest_ms = 1000 if role == "dwell" else 10  # nobody reads for 1000 s on average, or waits for 10 s
    return "milliseconds" if median(profile.numbers) >= smallest_ms else "seconds"


def _names_by_action(column: ColumnProfile) -> dict[str, list[str]]:
    names_by_action: dict[str, list[str]] = {}
    for name in dict.fromkeys(column.texts):
        snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", name).lower()
        if action := next((action for action, pattern in ACTIONS.items() if pattern.fullmatch(snake_case)), None):
            names_by_action.setdefault(action, []).append(name)
    return names_by_action


def toml_value(value: Any) -> str:
    """Format a value as TOML in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(member)}" for key, member in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
