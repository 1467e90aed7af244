"""Whether documents, queries and judgments belong together: what is judged and not there, and what is there twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data import files
from judged.data.check_tables import normalize_ids
from judged.data.texts import document_rows
from judged.errors import InputError
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.data.qrels import Qrels
    from judged.data.topics import Topics

MISSING, TWICE, NO_QUERY = "documents-missing", "documents-twice", "topics-without-query"


def collection_notes(documents: str, queries: Topics, qrels: Qrels) -> Iterator[Note]:
    """Say what is judged and has no document or no query, and which documents stand in the file twice.

    Raises
    ------
    InputError
        If the documents cannot be read, or none of them says anything.
    """
    times = Counter[str]()
    said = False
    for doc, text in document_rows(documents):
        times[doc] += 1
        said = said or bool(text.title.strip() or text.text.strip())
    if not times:
        raise InputError("there are no documents to index", fix="give a file that has some", path=documents)
    if not said:
        problem = f"no document has a title or text{_fields(documents)}"
        raise InputError(problem, fix="call their fields title and text", path=documents)
    judged = Counter(cast("list[str]", qrels.table["doc_id"].to_pylist()))
    if missing := [doc for doc in judged if doc not in times]:
        rows = f"{sum(judged[doc] for doc in missing):,} of {sum(judged.values()):,} judgments"
        which = f"{rows} are of {counted(len(missing), 'document')} that the documents lack: {first_few(missing)}"
        yield Note(MISSING, which + _near(missing, [doc for doc in times if doc not in judged]))
    if twice := [doc for doc, n in times.items() if n > 1]:
        text = f"{counted(len(twice), 'document')} more than once, of which the first is taken: {first_few(twice)}"
        yield Note(TWICE, text)
    yield from no_query(queries, qrels)


def no_query(queries: Topics, qrels: Qrels) -> Iterator[Note]:
    """Name the judged topics that nobody can ask for; the weight of the note is their number."""
    asked = set(queries.table["query_id"].to_pylist())
    if lacking := [topic for topic in qrels.topics if topic not in asked]:
        which = "topic" if len(lacking) == 1 else f"{len(lacking):,} of {len(qrels.topics):,} judged topics"
        which = f"judged topic {lacking[0]}" if len(lacking) == 1 else f"{which}: {first_few(lacking)}"
        yield Note(NO_QUERY, f"no query for {which}; nothing can be returned, which scores 0", weight=len(lacking))


def _near(missing: list[str], others: list[str]) -> str:
    """Say which of the other ids are perhaps meant."""
    forms = dict(zip(normalize_ids(pa.array(others, pa.string())).to_pylist(), others, strict=True))
    alike = [
        (doc, forms[form])
        for doc, form in zip(missing, normalize_ids(pa.array(missing, pa.string())).to_pylist(), strict=True)
        if form in forms
    ]
    if not alike:
        return ""
    example = f"{alike[0][0]!r} is judged, {alike[0][1]!r} is there"
    return f"; {len(alike):,} differ only in leading zeros, case or Unicode form: {example}"


def _fields(documents: str) -> str:
    """Name the fields of the first record, where it is JSON that can be seen."""
    file = files.local(documents)
    if file.is_dir():
        return ""
    head = files.head(file).decode(errors="replace")
    try:
        first: Any = json.JSONDecoder().raw_decode(head, head.index("{"))[0]
    except ValueError:
        return ""
    return f"; fields seen: {', '.join(cast('Mapping[str, Any]', first))[:80]}" if isinstance(first, Mapping) else ""
