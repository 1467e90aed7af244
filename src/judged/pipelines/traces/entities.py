"""What queries are about: entities by their names and aliases, with parents that they roll up to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from judged.data.query_text import normalize_query
from judged.data.records import records_of
from judged.errors import InputError
from judged.results.types import ReadOnly, cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"\w+")
_FIX = "give columns entity and, where there are any, alias and parent"

Words = tuple[str, ...]


class Mentions(NamedTuple):
    """What a text is about."""

    entities: tuple[str, ...]
    ambiguous: tuple[str, ...]  # names in it that stand for several entities, of which none is taken


@dataclass(frozen=True, eq=False)
class Entities(ReadOnly):
    """Entities by name and alias, and what each is part of. Immutable.

    Parameters
    ----------
    names
        The entities.
    parents
        By entity what it is part of: one entity, several, or none.
    aliases
        By the words of a name the entities that are called so.

    Examples
    --------
    >>> rows = [{"entity": "zlib", "parent": "compression"}, {"entity": "gzip", "parent": "compression"}]
    >>> entities = Entities.of([*rows, {"entity": "compression", "alias": "shrink data"}])
    >>> entities.mentioned("how to shrink data with zlib").entities, entities.above("zlib")
    (('compression', 'zlib'), ('zlib', 'compression'))
    """

    names: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]] = field(repr=False)
    aliases: Mapping[Words, tuple[str, ...]] = field(repr=False)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Take a table with the columns ``entity``, ``alias`` and ``parent``: a file, a data frame, a list of dicts.

        An entity has as many rows as it has aliases or parents; a cell may hold a list. Its own name is an alias.

        Raises
        ------
        InputError
            If a row has no entity, or an entity is part of itself.
        """
        if isinstance(data, cls):
            return data
        where = str(data) if isinstance(data, (str, Path)) else "<entities>"
        parents, aliases = dict[str, dict[str, None]](), dict[Words, dict[str, None]]()
        for line, row in records_of(data, where, "entities", _FIX):
            cells = {str(name).strip().lower(): value for name, value in row.items()}
            entity = str(cells.get("entity") or "").strip()
            if not entity:
                raise InputError("a row without an entity", fix=_FIX, path=where, line=line)
            known = parents.setdefault(entity, {})
            for parent in _several(cells.get("parent")):
                parents.setdefault(parent, {})
                known[parent] = None
                if entity in _reached(parents, parent):
                    problem = f"{entity!r} is part of itself, by {parent!r}"
                    raise InputError(problem, fix="leave one of the parents out", path=where, line=line)
            for alias in (entity, *_several(cells.get("alias"))):
                if words := words_of(alias):
                    aliases.setdefault(words, {})[entity] = None
        for name in parents:  # a parent may have no row of its own
            if name not in {entity for some in aliases.values() for entity in some} and (words := words_of(name)):
                aliases.setdefault(words, {})[name] = None
        return cls(
            tuple(parents),
            {entity: tuple(some) for entity, some in parents.items()},
            {words: tuple(some) for words, some in aliases.items()},
        )

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.aliases), default=0)

    def mentioned(self, text: str) -> Mentions:
        """Find entities in a text: from left to right the longest name that begins at a word."""
        words = words_of(text)
        found, ambiguous, place = dict[str, None](), dict[str, None](), 0
        while place < len(words):
            for length in range(min(self._longest, len(words) - place), 0, -1):
                called = self.aliases.get(words[place : place + length], ())
                if called:
                    if len(called) == 1:
                        found[called[0]] = None
                    else:
                        ambiguous[" ".join(words[place : place + length])] = None
                    place += length - 1
                    break
            place += 1
        return Mentions(tuple(found), tuple(ambiguous))

    def above(self, entity: str) -> tuple[str, ...]:
        """Give an entity and all that it is part of, each once."""
        return tuple(_reached(self.parents, entity))

    def rolled_up(self, entities: Iterable[str]) -> tuple[str, ...]:
        """Give entities and all that they are part of, each once."""
        return tuple(dict.fromkeys(name for entity in entities for name in self.above(entity)))


def words_of(text: str) -> Words:
    """Give the words of a text as names are compared: case folded, NFKC, letters and digits.

    >>> words_of("Straße  &c. (C++17)")
    ('strasse', 'c', 'c', '17')
    """
    return tuple(_WORD.findall(normalize_query(text)))


def _several(cell: Any) -> Iterator[str]:
    for part in cell if isinstance(cell, (list, tuple)) else [cell]:
        if part is not None and str(part).strip():
            yield str(part).strip()


def _reached(parents: Mapping[str, Iterable[str]], entity: str) -> dict[str, None]:
    reached, waiting = dict[str, None](), [entity]
    while waiting:
        name = waiting.pop(0)
        if name not in reached:
            reached[name] = None
            waiting += parents.get(name, ())
    return reached
