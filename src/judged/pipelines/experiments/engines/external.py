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
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting, called

if TYPE_CHECKING:
    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Configuration, Hit


class Function(Engine):
    """``search(query, k)``, which gives ids, pairs of id and score, or ``{id: score}``; it knows its documents."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "search": Setting("", (), "module:function that gives the first k documents of a query"),
    }
    elsewhere = True

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Import the function."""
        if not configuration["search"]:
            raise InputError("there is no function to ask", fix='name it: search = "module:function"')
        self._search = called(configuration["search"])

    def size(self) -> None:
        """Nobody can tell."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Ask the function."""
        return hits_of(self._search(query, k))[:k]


def hits_of(given: Any) -> list[Hit]:
    """Take ids in order, pairs of id and score, or ``{id: score}``; ids without scores count from the last one up.

    >>> hits_of({"a": 1.0, "b": 2.0}), hits_of(["x", "y"])
    ([('b', 2.0), ('a', 1.0)], [('x', 2.0), ('y', 1.0)])
    """
    if isinstance(given, Mapping):
        scored = cast("Mapping[Any, Any]", given).items()
        return sorted(((str(doc), float(score)) for doc, score in scored), key=lambda hit: -hit[1])
    listed = list(given)
    if all(isinstance(one, str) for one in listed):
        return [(doc, float(len(listed) - at)) for at, doc in enumerate(listed)]
    return [(str(doc), float(score)) for doc, score in listed]


_KEYS = {"url", "method", "headers", "body", "hits", "id", "score", "seconds"}
_NEEDED = ("url", "hits", "id")
_MOST = 1 << 26  # bytes of an answer


_OPENER = OpenerDirector()  # without what follows redirects: headers, which may hold a key, go to no other address
for _handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
    _OPENER.add_handler(_handler())


class Http(Engine):
    """An engine that runs and holds its documents already; only the address in the file is ever asked.

    The file is TOML: ``url``, and where needed ``method``, ``headers`` and ``body`` (a table, sent as JSON), in which
    ``{query}`` and ``{k}`` are replaced; ``hits`` is the path to the list in the answer, ``id`` and ``score`` are paths
    in a hit, such as ``fields.id``.
    """

    settings: ClassVar[Mapping[str, Setting]] = {
        "file": Setting("", (), "the file that describes request and answer"),
    }
    elsewhere = True

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Read the file."""
        if not configuration["file"]:
            raise InputError("nothing says how the engine is asked", fix='name a file: file = "opensearch.toml"')
        path = str(configuration["file"])
        known = parse_toml(read_toml(path), path)
        if odd := [*(set(known) - _KEYS), *(name for name in _NEEDED if name not in known)]:
            raise InputError(f"odd or missing: {', '.join(odd)}", fix=f"use {', '.join(sorted(_KEYS))}", path=path)
        if urlsplit(str(known["url"])).scheme not in ("http", "https"):
            raise InputError(f"{known['url']!r} is no address", fix="give one with http:// or https://", path=path)
        self._known, self._path = known, path

    def size(self) -> None:
        """Nobody can tell."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Send the request, and take the hits out of the answer."""
        known = self._known
        url = str(known["url"]).replace("{query}", quote(query, safe="")).replace("{k}", str(k))
        body = _filled(known["body"], query, k) if "body" in known else None
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **known.get("headers", {})}
        method = str(known.get("method", "GET" if data is None else "POST"))
        try:
            request = Request(url, data, headers, method=method)  # noqa: S310  the scheme was looked at
            with _OPENER.open(request, timeout=float(known.get("seconds", 30))) as answer:
                found = json.loads(answer.read(_MOST))
        except HTTPError as error:
            error.close()  # it is the answer, too
            if 400 <= error.code < 500:
                raise QueryRefusedError(f"{error.code} {error.reason}") from None
            if 300 <= error.code < 400:
                other = urlsplit(error.headers.get("Location", "")).hostname or "another address"
                problem = f"{urlsplit(url).hostname} redirects ({error.code}) to {other}, and no redirect is followed"
                raise InputError(problem, fix="write the address that answers as url", path=self._path) from None
            raise InputError(
                f"{urlsplit(url).netloc} answers {error.code}", fix="see its log", path=self._path
            ) from None
        except (URLError, HTTPException, TimeoutError, ConnectionError, ValueError) as error:
            fix = "check that it runs, and that its answer is JSON"
            raise InputError(f"{urlsplit(url).netloc} gives no answer: {error}", fix=fix, path=self._path) from None
        hits = _at(found, str(known["hits"]))
        if not isinstance(hits, list):
            problem = f"there is no list at {known['hits']!r} in the answer"
            raise InputError(problem, fix="name the path of the hits", path=self._path)
        return [self._hit(hit, len(hits) - at) for at, hit in enumerate(hits[:k])]

    def _hit(self, hit: Any, otherwise: int) -> Hit:
        doc = _at(hit, str(self._known["id"]))
        if doc is None:
            raise InputError(f"a hit has no id at {self._known['id']!r}", fix="name its path", path=self._path)
        score = _at(hit, str(self._known["score"])) if "score" in self._known else None
        return str(doc), float(otherwise if score is None else score)


def _filled(given: Any, query: str, k: int) -> Any:
    """Put the query and the number of hits where their names stand; ``"{k}"`` alone becomes a number."""
    if isinstance(given, dict):
        return {name: _filled(value, query, k) for name, value in given.items()}
    if isinstance(given, list):
        return [_filled(value, query, k) for value in given]
    if isinstance(given, str):
        return k if given == "{k}" else given.replace("{k}", str(k)).replace("{query}", query)
    return given


def _at(given: Any, path: str) -> Any:
    """Look up ``hits.hits`` or ``0.docs``; None where nothing stands there.

    >>> _at({"response": {"docs": [{"id": 7}]}}, "response.docs.0.id")
    7
    """
    for name in filter(None, path.split(".")):
        if isinstance(given, dict):
            given = given.get(name)
        elif isinstance(given, list) and name.isdigit() and int(name) < len(given):
            given = given[int(name)]
        else:
            return None
    return given
