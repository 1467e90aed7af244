"""Checks that documents, queries, and judgments belong together: missing and duplicate documents, missing queries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data import files
from judged.data.index import normalize_ids
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
    """Yield notes on judged documents and topics that are missing, and on duplicate documents.

    Raises
    ------
    InputError
        If the documents cannot be read, or all are empty.
    """
    counts = Counter[str]()
    has_text = False
    for doc, text in document_rows(documents):
        counts[doc] += 1
        has_text = has_text or bool(text.title.strip() or text.text.strip())
    if not counts:
        raise InputError("the file has no documents", fix="use a file with documents", path=documents)
    if not has_text:
        problem = f"no document has a title or a text{_describe_fields(documents)}"
        raise InputError(
            problem,
            fix="rename the fields with the title and the text of documents to `title` and `text`",
            path=documents,
        )
    judged = Counter(cast("list[str]", qrels.table["doc_id"].to_pylist()))
    if missing := [doc for doc in judged if doc not in counts]:
        rows = f"{sum(judged[doc] for doc in missing):,} of {sum(judged.values()):,} judgments"
        which = f"{rows} refer to {counted(len(missing), 'document')} not in the documents file: {first_few(missing)}"
        yield Note(MISSING, which + _describe_similar_ids(missing, [doc for doc in counts if doc not in judged]))
    if duplicates := [doc for doc, n in counts.items() if n > 1]:
        ids = counted(len(duplicates), "document id occurs", "document ids occur")
        text = f"{ids} more than once; only the first document with the same id is used"
        yield Note(TWICE, f"{text}: {first_few(duplicates)}")
    yield from missing_query_notes(queries, qrels)


def missing_query_notes(queries: Topics, qrels: Qrels) -> Iterator[Note]:
    """Yield a note on judged topics without a query; its weight is their number."""
    query_ids = set(queries.table["query_id"].to_pylist())
    if missing := [topic for topic in qrels.topics if topic not in query_ids]:
        which = "topic" if len(missing) == 1 else f"{len(missing):,} of {len(qrels.topics):,} judged topics"
        which = f"judged topic {missing[0]}" if len(missing) == 1 else f"{which}: {first_few(missing)}"
        yield Note(NO_QUERY, f"no query for {which}; these topics have no results and score 0", weight=len(missing))


def _describe_similar_ids(missing: list[str], others: list[str]) -> str:
    """Describe missing IDs that differ from other IDs only in their form."""
    ids_by_form = dict(zip(normalize_ids(pa.array(others, pa.string())).to_pylist(), others, strict=True))
    similar = [
        (doc, ids_by_form[form])
        for doc, form in zip(missing, normalize_ids(pa.array(missing, pa.string())).to_pylist(), strict=True)
        if form in ids_by_form
    ]
    if not similar:
        return ""
    example = f"the qrels have {similar[0][0]!r}, the documents have {similar[0][1]!r}"
    return (
        f"; {len(similar):,} of these document ids differ from an id in the documents file only in leading zeros,"
        f" case, or Unicode form: {example}"
    )


def _describe_fields(documents: str) -> str:
    """Describe the fields of the first record, if the file is readable JSON."""
    file = files.local(documents)
    if file.is_dir():
        return ""
    beginning = files.head(file).decode(errors="replace")
    try:
        record: Any = json.JSONDecoder().raw_decode(beginning, beginning.index("{"))[0]
    except ValueError:
        return ""
    return (
        f"; fields of the first record: {', '.join(cast('Mapping[str, Any]', record))[:80]}"
        if isinstance(record, Mapping)
        else ""
    )
