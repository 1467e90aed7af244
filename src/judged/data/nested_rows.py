"""Convert nested JSON to rows with paths of fields, as in ``requests[].ratings[]._id``.

A path consists of names with dots. ``[]`` stands for each element of a list, and ``{}`` for each value of an object.
``#`` at the end is the position of the element, from 1, or the key of the value. Fields with different lists of the
same object are combined, so that each row of one list is repeated for each row of the other.

>>> data = {"details": {"q1": {"hits": [{"_id": "d7", "_score": 2.5}, {"_id": "d3", "_score": 1.5}]}}}
>>> paths = {"query_id": "details{}#", "doc_id": "details{}.hits[]._id", "rank": "details{}.hits[]#"}
>>> list(nested_rows(data, paths))
[{'query_id': 'q1', 'doc_id': 'd7', 'rank': 1}, {'query_id': 'q1', 'doc_id': 'd3', 'rank': 2}]
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Path = tuple[str, ...]
    Values = dict[Path, Any]  # values by path, of the current row

_STEP = re.compile(r"\[\]|\{\}|#|[^.\[\]{}#]+")
_MISSING: Any = object()


def parse_path(text: str) -> Path:
    """Split a path into steps.

    >>> parse_path("details{}.hits[]._id")
    ('details', '{}', 'hits', '[]', '_id')
    """
    return tuple(_STEP.findall(text))


def nested_rows(data: Any, paths: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the fields at `paths` for each element of the lists and objects in them; missing fields are omitted."""
    steps = {name: parse_path(path) for name, path in paths.items()}
    collections = sorted(
        {path[: i + 1] for path in steps.values() for i in range(len(path)) if path[i] in {"[]", "{}"}}
    )
    for values in _expand({(): data}, sorted(collections, key=len)):
        fields = {name: _value_at(values, path) for name, path in steps.items()}
        yield {name: value for name, value in fields.items() if value is not _MISSING}


def row_keys(data: Any, paths: Mapping[str, str]) -> set[str]:
    """Return the keys of the objects that are rows or contain them: of the elements of the collections in paths."""
    collections: set[tuple[Path, ...]] = set()
    for path in map(parse_path, paths.values()):
        prefixes = [path[: i + 1] for i, step in enumerate(path) if step in {"[]", "{}"}]
        for i, prefix in enumerate(prefixes, 1):
            # The keys of an object are ids, and no fields, unless a field follows.
            if prefix[-1] == "[]" or path[len(prefix) : len(prefix) + 1] not in {(), ("#",), ("[]",), ("{}",)}:
                collections.add(tuple(prefixes[:i]))
    elements = (values[prefixes[-1]] for prefixes in collections for values in _expand({(): data}, list(prefixes)))
    return {str(key) for element in elements if isinstance(element, dict) for key in cast("dict[Any, Any]", element)}


def _expand(values: Values, collections: list[Path]) -> Iterator[Values]:
    """Yield the values of each row: one element of each of the collections, the shortest paths first."""
    if not collections:
        yield values
        return
    path, *others = collections
    collection = _value_at(values, path[:-1])
    if path[-1] == "[]" and isinstance(collection, list):
        pairs: Any = enumerate(cast("list[Any]", collection), 1)
    elif path[-1] == "{}" and isinstance(collection, dict):
        pairs = cast("dict[Any, Any]", collection).items()
    else:
        return
    for key, element in pairs:
        yield from _expand({**values, path: element, (*path, "#"): key}, others)


def _value_at(values: Values, path: Path) -> Any:
    """Return the value at a path from the value at its longest known prefix. A name may have dots, or alternatives."""
    start = next(end for end in range(len(path), -1, -1) if path[:end] in values)
    value, names = values[path[:start]], path[start:]
    while names:
        if not isinstance(value, dict):
            return _MISSING
        fields = cast("dict[str, Any]", value)
        for end in range(len(names), 0, -1):  # the keys of flat records may have dots
            alternatives = product(*(name.split("|") for name in names[:end]))
            key = next((key for key in map(".".join, alternatives) if key in fields), None)
            if key is not None:
                value, names = fields[key], names[end:]
                break
        else:
            return _MISSING
    return value
