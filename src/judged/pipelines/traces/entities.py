"""Entities that queries and documents are about, by name and alias, with parents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from judged.data.query_text import normalize_query
from judged.data.records import records_of
from judged.errors import InputError
from judged.results.types import ReadOnly, cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"\w+")
_FIX = "use the column `entity` and, optionally, `alias` and `parent`"
_ID_NAMES = ("doc_id", "docid", "docno", "document_id", "passage_id", "item_id", "product_id", "sku", "_id", "id")
_TITLE_NAMES = ("title", "headline", "name")
_ID_SEPARATOR = re.compile(r"[\s,;]+")  # in a cell of the column `doc_ids`

Words = tuple[str, ...]


class Mentions(NamedTuple):
    """Entities in a text."""

    entities: tuple[str, ...]
    ambiguous: tuple[str, ...]  # names of several entities, of which none is counted


@dataclass(frozen=True, eq=False)
class Entities(ReadOnly):
    """Entities by name and alias, with their parents. Immutable.

    Parameters
    ----------
    names
        Entities.
    parents
        Parents by entity: none, one, or several.
    aliases
        Entities by the words of a name.

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
        """Build from a table with columns ``entity``, ``alias``, and ``parent``: a file, a data frame, or dicts.

        An entity has a row for each alias or parent; cells can contain lists. Its own name is an alias.

        Raises
        ------
        InputError
            If a row has no entity, or an entity is its own ancestor.
        """
        if isinstance(data, cls):
            return data
        where = str(data) if isinstance(data, (str, Path)) else "<entities>"
        parents, aliases = dict[str, dict[str, None]](), dict[Words, dict[str, None]]()
        for line, row in records_of(data, where, "entities", _FIX):
            cells = {str(name).strip().lower(): value for name, value in row.items()}
            entity = str(cells.get("entity") or "").strip()
            if not entity:
                raise InputError("a row must have an entity", fix=_FIX, path=where, line=line)
            entity_parents = parents.setdefault(entity, {})
            for parent in _several(cells.get("parent")):
                parents.setdefault(parent, {})
                entity_parents[parent] = None
                if entity in _ancestors(parents, parent):
                    problem = f"{entity!r} is its own ancestor, through {parent!r}"
                    raise InputError(problem, fix="remove one of the parents", path=where, line=line)
            for alias in (entity, *_several(cells.get("alias"))):
                if words := words_of(alias):
                    aliases.setdefault(words, {})[entity] = None
        for name in parents:  # a parent can lack a row of its own
            if name not in {entity for entities in aliases.values() for entity in entities} and (
                words := words_of(name)
            ):
                aliases.setdefault(words, {})[name] = None
        return cls(
            tuple(parents),
            {entity: tuple(values) for entity, values in parents.items()},
            {words: tuple(values) for words, values in aliases.items()},
        )

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.aliases), default=0)

    def mentioned(self, text: str) -> Mentions:
        """Find entities in a text: from left to right, the longest name at each word."""
        words = words_of(text)
        entities, ambiguous, start = dict[str, None](), dict[str, None](), 0
        while start < len(words):
            for length in range(min(self._longest, len(words) - start), 0, -1):
                matches = self.aliases.get(words[start : start + length], ())
                if matches:
                    if len(matches) == 1:
                        entities[matches[0]] = None
                    else:
                        ambiguous[" ".join(words[start : start + length])] = None
                    start += length - 1
                    break
            start += 1
        return Mentions(tuple(entities), tuple(ambiguous))

    def resolved(self, name: str) -> str:
        """Return the entity with this name or alias; the name itself if there is none, or several."""
        matches = () if name in self.parents else self.aliases.get(words_of(name), ())
        return matches[0] if len(matches) == 1 else name

    def above(self, entity: str) -> tuple[str, ...]:
        """Return an entity and all its ancestors."""
        return tuple(_ancestors(self.parents, entity))

    def rolled_up(self, entities: Iterable[str]) -> tuple[str, ...]:
        """Return entities and all their ancestors, without repetition."""
        return tuple(dict.fromkeys(name for entity in entities for name in self.above(entity)))


def entities_of_documents(
    documents: Any, column: str = "entity", catalog: Entities | None = None, corpus: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Read the entities of each document, with their ancestors.

    Parameters
    ----------
    documents
        ``{doc_id: [entity]}``, or a table: a file, a data frame, or dicts. A row has an id, or a list of ids, and a
        value in `column`. Several rows can have the same id. Without `column`, the title is searched for names of
        `catalog`.
    column
        Column with an entity or a list of entities.
    catalog
        Names and parents of the entities.
    corpus
        Ids of all documents: other documents are ignored.

    Raises
    ------
    InputError
        If a row has no id, or neither the column nor a title that can be searched.

    Examples
    --------
    >>> catalog = Entities.of([{"entity": "zip file", "alias": "zip", "parent": "archive"}])
    >>> entities_of_documents([{"id": "a", "title": "Read a zip"}, {"id": "b", "title": "Tar"}], catalog=catalog)
    {'a': ('zip file', 'archive'), 'b': ()}
    >>> entities_of_documents([{"entity": "zip", "doc_ids": "a, b"}, {"entity": "tar", "doc_ids": ["b"]}])
    {'a': ('zip',), 'b': ('zip', 'tar')}
    """
    if isinstance(documents, Mapping):
        documents = [{"doc_id": doc, column: names} for doc, names in cast("Mapping[str, Any]", documents).items()]
    where = str(documents) if isinstance(documents, (str, Path)) else "<documents>"
    fix = f"add the columns doc_id and {column}, or doc_id and title with a table of entities"
    entities: dict[str, dict[str, None]] = {}
    for line, row in records_of(documents, where, "documents", fix):
        cells = {str(name).strip().lower(): value for name, value in row.items()}
        ids = next((cells[name] for name in _ID_NAMES if cells.get(name) not in (None, "")), None)
        if "doc_ids" in cells:  # can be empty: the entity has no document
            ids = _ID_SEPARATOR.split(cells["doc_ids"]) if isinstance(cells["doc_ids"], str) else cells["doc_ids"] or ()
        title = next((cells[name] for name in _TITLE_NAMES if cells.get(name) is not None), None)
        if column.lower() in cells:
            names = [catalog.resolved(name) if catalog else name for name in _several(cells[column.lower()])]
        elif catalog is not None and title is not None:
            names = catalog.mentioned(str(title)).entities
        else:
            ids, names = None, []
        if ids is None:
            raise InputError(f"a row must have doc_id and {column}", fix=fix, path=where, line=line)
        for doc in filter(lambda doc: corpus is None or doc in corpus, _several(ids)):
            entities.setdefault(doc, {}).update(dict.fromkeys(catalog.rolled_up(names) if catalog else names))
    return {doc: tuple(names) for doc, names in entities.items()}


def words_of(text: str) -> Words:
    """Return the words of a text, case folded and in NFKC, without punctuation.

    >>> words_of("Straße  &c. (C++17)")
    ('strasse', 'c', 'c', '17')
    """
    return tuple(_WORD.findall(normalize_query(text)))


def _several(cell: Any) -> Iterator[str]:
    for part in cell if isinstance(cell, (list, tuple)) else [cell]:
        if part is not None and str(part).strip():
            yield str(part).strip()


def _ancestors(parents: Mapping[str, Iterable[str]], entity: str) -> dict[str, None]:
    ancestors, queue = dict[str, None](), [entity]
    while queue:
        name = queue.pop(0)
        if name not in ancestors:
            ancestors[name] = None
            queue += parents.get(name, ())
    return ancestors
