"""Engines outside judged: a Python function, and a search service over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting, import_function

if TYPE_CHECKING:
    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import EngineSettings, Hit


class Function(Engine):
    """A function ``search(query, k)`` over documents of its own. Returns IDs, (ID, score) pairs, or ``{id: score}``."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "search": Setting("", (), "Python function, as module:function, that returns the top k documents for a query")
    }
    runs_externally = True

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Import the function."""
        if not configuration["search"]:
            raise InputError("`search` must name a function, got nothing", fix='set search = "module:function"')
        self._search = import_function(configuration["search"])

    def size(self) -> None:
        """Return None: the size is unknown."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Call the function."""
        return parse_hits(self._search(query, k))[:k]


def parse_hits(result: Any) -> list[Hit]:
    """Convert IDs in rank order, (ID, score) pairs, or ``{id: score}``. IDs without scores get n, n - 1, ..., 1.

    >>> parse_hits({"a": 1.0, "b": 2.0}), parse_hits(["x", "y"])
    ([('b', 2.0), ('a', 1.0)], [('x', 2.0), ('y', 1.0)])
    """
    if isinstance(result, Mapping):
        scores = cast("Mapping[Any, Any]", result).items()
        return sorted(((str(doc), float(score)) for doc, score in scores), key=lambda hit: -hit[1])
    listed = list(result)
    if all(isinstance(item, str) for item in listed):
        return [(doc, float(len(listed) - position)) for position, doc in enumerate(listed)]
    return [(str(doc), float(score)) for doc, score in listed]


_KEYS = {"url", "method", "headers", "body", "hits", "id", "score", "seconds"}
_NEEDED = ("url", "hits", "id")
_MOST = 1 << 26  # bytes of a response


# No handler follows redirects: headers, which may hold a key, must not be sent to another address.
_OPENER = OpenerDirector()
for _handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
    _OPENER.add_handler(_handler())


class Http(Engine):
    """A search service that already holds its documents. Requests go only to the address in the file.

    The file is TOML: ``url`` and, optionally, ``method``, ``headers``, and ``body`` (a table, sent as JSON).
    ``{query}`` and ``{k}`` are replaced in them. ``hits`` is the path to the list of hits in the response. ``id`` and
    ``score`` are paths in a hit, such as ``fields.id``.
    """

    settings: ClassVar[Mapping[str, Setting]] = {
        "file": Setting("", (), "TOML file that describes the HTTP request and its response")
    }
    runs_externally = True

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Read the file."""
        if not configuration["file"]:
            raise InputError(
                "`file` must name a TOML file that describes the request, got nothing",
                fix='set file = "opensearch.toml"',
            )
        path = str(configuration["file"])
        spec = parse_toml(read_toml(path), path)
        unknown, missing = sorted(set(spec) - _KEYS), [name for name in _NEEDED if name not in spec]
        if unknown or missing:
            problems = [
                f"{word} {'key' if len(names) == 1 else 'keys'}: {', '.join(names)}"
                for word, names in (("unknown", unknown), ("missing required", missing))
                if names
            ]
            raise InputError(
                "; ".join(problems),
                fix=f"use the required keys {', '.join(sorted(_NEEDED))} and, optionally,"
                f" {', '.join(sorted(set(_KEYS) - set(_NEEDED)))}",
                path=path,
            )
        if urlsplit(str(spec["url"])).scheme not in ("http", "https"):
            raise InputError(
                f"`url` must be an HTTP URL, got {spec['url']!r}", fix="write url = 'https://...'", path=path
            )
        self._spec, self._path = spec, path

    def size(self) -> None:
        """Return None: the size is unknown."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Send the request, and read the hits from the response."""
        spec = self._spec
        url = str(spec["url"]).replace("{query}", quote(query, safe="")).replace("{k}", str(k))
        body = _fill_template(spec["body"], query, k) if "body" in spec else None
        encoded_body = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **spec.get("headers", {})}
        method = str(spec.get("method", "GET" if encoded_body is None else "POST"))
        try:
            request = Request(url, encoded_body, headers, method=method)  # noqa: S310 - `build` checked the scheme
            with _OPENER.open(request, timeout=float(spec.get("seconds", 30))) as stream:
                response = json.loads(stream.read(_MOST))
        except HTTPError as error:
            error.close()  # the error is the open response, too
            if 400 <= error.code < 500:
                raise QueryRefusedError(f"{error.code} {error.reason}") from None
            if 300 <= error.code < 400:
                other = urlsplit(error.headers.get("Location", "")).hostname or "another address"
                problem = (
                    f"{urlsplit(url).hostname} redirects ({error.code}) to {other}, and redirects are not followed"
                )
                raise InputError(problem, fix="set `url` to the final address", path=self._path) from None
            raise InputError(
                f"{urlsplit(url).netloc} returned status {error.code}", fix="see the log of the server", path=self._path
            ) from None
        except (URLError, HTTPException, TimeoutError, ConnectionError, ValueError) as error:
            fix = "check that the server runs and returns JSON"
            raise InputError(
                f"no valid response from {urlsplit(url).netloc}: {error}", fix=fix, path=self._path
            ) from None
        hits = _value_at_path(response, str(spec["hits"]))
        if not isinstance(hits, list):
            problem = f"the response has no list at {spec['hits']!r}"
            raise InputError(problem, fix="set `hits` to the path of the list in the response", path=self._path)
        return [self._hit(hit, len(hits) - row) for row, hit in enumerate(hits[:k])]

    def _hit(self, hit: Any, default_score: int) -> Hit:
        doc = _value_at_path(hit, str(self._spec["id"]))
        if doc is None:
            raise InputError(
                f"a hit has no id at {self._spec['id']!r}",
                fix="set `id` to the path of the document ID in a hit",
                path=self._path,
            )
        score = _value_at_path(hit, str(self._spec["score"])) if "score" in self._spec else None
        return str(doc), float(default_score if score is None else score)


def _fill_template(template: Any, query: str, k: int) -> Any:
    """Replace ``{query}`` and ``{k}`` in all strings; ``"{k}"`` alone becomes a number."""
    if isinstance(template, dict):
        return {name: _fill_template(value, query, k) for name, value in template.items()}
    if isinstance(template, list):
        return [_fill_template(value, query, k) for value in template]
    if isinstance(template, str):
        return k if template == "{k}" else template.replace("{k}", str(k)).replace("{query}", query)
    return template


def _value_at_path(value: Any, path: str) -> Any:
    """Return the value at a path such as ``hits.hits`` or ``0.docs``; None if there is none.

    >>> _value_at_path({"response": {"docs": [{"id": 7}]}}, "response.docs.0.id")
    7
    """
    for name in filter(None, path.split(".")):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
