"""Settings of a pipeline, from traces or from a TOML or JSON file, and their differences."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from judged.data import json_rows, toml_files
from judged.errors import InputError
from judged.results import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.pipelines.traces.traces import Span

_SECRET = re.compile(r"passw|secret|credential|api_?key|(^|_)token$", re.IGNORECASE)


class ChangedSetting(NamedTuple):
    """Setting with different values before and after a change; None if it is missing."""

    setting: str  # path with dots, such as `bm25.k1`
    before: str | None
    after: str | None


def changed_settings(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ChangedSetting, ...]:
    """Return the settings whose values differ.

    >>> [tuple(row) for row in changed_settings({"bm25.k1": "1.2", "depth": "50"}, {"depth": "50", "bm25.b": "0.4"})]
    [('bm25.k1', '1.2', None), ('bm25.b', None, '0.4')]
    """
    rows = (ChangedSetting(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after)))
    return tuple(row for row in rows if row.before != row.after)


def flatten_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested settings as text, by their path with dots. Values of passwords and keys are hidden.

    >>> flatten_settings({"bm25": {"k1": 1.2, "fields": ["title", "text"]}, "api_key": "x"})
    {'bm25.k1': '1.2', 'bm25.fields': '["title", "text"]', 'api_key': '(hidden)'}
    """
    texts: dict[str, str] = {}
    for key, value in settings.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            texts |= flatten_settings(cast("Mapping[str, Any]", value), f"{path}.")
        elif _SECRET.search(str(key)):
            texts[path] = "(hidden)"
        else:
            texts[path] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return texts


def recorded_settings(spans: Iterable[Span]) -> dict[str, str]:
    """Return the settings of all stages as text, with the kind, input, model, and number of results of each stage.

    If queries have different values of a setting, the text has each value with its number of queries.

    >>> from judged.pipelines.traces import Span
    >>> spans = [Span(q, q, "bm25", "candidates", settings={"k1": 1.2, "depth": n}) for q, n in (("a", 5), ("b", 9))]
    >>> recorded_settings(spans)
    {'bm25.kind': 'candidates', 'bm25.k1': '1.2', 'bm25.depth': '5 (1 query); 9 (1 query)'}
    """
    counts: dict[str, Counter[str]] = {}
    for span in spans:
        fields = {"kind": span.kind, "input": list(span.parents), "model": span.model, "top_k": span.facts.get("top_k")}
        fields = {name: value for name, value in fields.items() if value not in (None, [])}
        for name, value in flatten_settings({**fields, **span.settings}, f"{span.stage}.").items():
            counts.setdefault(name, Counter())[value] += 1
    return {
        name: "; ".join(f"{value} ({counted(n, 'query', 'queries')})" for value, n in values.most_common())
        if len(values) > 1
        else next(iter(values))
        for name, values in counts.items()
    }


def read_settings(source: Any) -> dict[str, str]:
    """Return the settings in a mapping, or in a TOML or JSON file, as text by their path with dots.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a table or an object.
    """
    if isinstance(source, Mapping):
        return flatten_settings(cast("Mapping[str, Any]", source))
    text, path = toml_files.read_toml(source), str(source)
    is_json = path.endswith(".json") or text.lstrip().startswith("{")
    settings = json_rows.parse_json(text.encode(), path) if is_json else toml_files.parse_toml(text, path)
    if not isinstance(settings, Mapping):
        raise InputError("settings must be a JSON object", fix='write {"name": value}', path=path)
    return flatten_settings(cast("Mapping[str, Any]", settings))
