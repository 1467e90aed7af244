"""Any Python callable as an engine: one that searches an index of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from judged.errors import InputError
from judged.pipelines.experiments.engines.base import Engine, Setting, called

if TYPE_CHECKING:
    from pathlib import Path

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
