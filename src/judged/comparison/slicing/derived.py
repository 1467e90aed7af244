"""Topic attributes: `derive` computes them from judgments, texts, traffic, and documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.by_document import FRESHNESS, document_columns
from judged.comparison.slicing.topic_slices import DERIVED, FIRST_RELEVANT, LENGTH, RELEVANT, frequency_bands
from judged.data.attributes import Attributes
from judged.data.documents import Documents
from judged.data.freshness import DatedDocuments, dated_documents, find_date_column
from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.data.query_text import (
    detect_languages,
    has_language_detector,
    normalize_query,
    query_kind,
    query_script,
    word_count,
)
from judged.data.topics import Topics
from judged.errors import InputError
from judged.scoring.judging import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.by_document import Columns
    from judged.results.blocks import Note

OUTCOME = "first_relevant"
"""Attribute that depends on the results of a run."""

_JUDGMENTS, _TEXTS = "the judgments", "the texts of the queries"
_SEARCHES, _RUN = "the attribute traffic", "the first run"
SOURCES = (_JUDGMENTS, _TEXTS, _SEARCHES, _RUN)
MEANINGS = {
    "relevant": (_JUDGMENTS, "number", "number of relevant documents of the topic"),
    "relevant_band": (_JUDGMENTS, "text", f"number of relevant documents in bands: {', '.join(RELEVANT.names)}"),
    "judged": (_JUDGMENTS, "number", "number of judged documents of the topic"),
    "words": (_TEXTS, "number", "number of words of the query"),
    "length": (_TEXTS, "text", f"number of words in bands: {', '.join(LENGTH.names)}"),
    "kind": (_TEXTS, "text", "form of the query: address, quoted, question, identifier, keywords"),
    "script": (_TEXTS, "text", "writing system of the query"),
    "language": (_TEXTS, "text", "language of the query, detected from its words"),
    "traffic_share": (_SEARCHES, "number", "share of all traffic that belongs to the topic"),
    "frequency": (_SEARCHES, "text", "traffic class of the topic: head, torso, or tail"),
    OUTCOME: (
        _RUN,
        "text",
        "rank of the first relevant document, in bands: an outcome of the run, not a property of the topic",
    ),
}
"""Source, type, and meaning of each derived attribute."""

_TRAFFIC = "traffic"
_AGE = "freshness_days"
_NUMBERS = frozenset({"relevant", "judged", "words", "traffic_share", _AGE})


def derive(
    qrels: Any = None,
    *,
    queries: Any = None,
    attributes: Any = None,
    run: Any = None,
    traffic: Any = None,
    seen: Any = None,
    documents: Any = None,
    rel: float = 1,
    languages: Sequence[str] | str | None = None,
    cuts: tuple[float, float] = (0.5, 0.9),
) -> Attributes:
    """Compute attributes of topics from the available sources.

    ===================================  ============================================================================
    source                               attributes
    ===================================  ============================================================================
    `qrels`                              ``relevant``, ``relevant_band`` (none, 1, 2-5, 6-20, 21+), ``judged``: the
                                         numbers of relevant and of judged documents
    `queries`                             ``words``; ``length`` (1, 2-3, 4-6, 7+ words); ``kind`` (address, quoted,
                                         question, identifier, keywords); ``script``; ``language``
    `traffic`                            ``traffic_share``; ``frequency`` (head, torso, tail)
    `seen`                               ``novelty`` (seen, new)
    `run`, `qrels`                       ``first_relevant`` (1, 2-3, 4-10, 11-100, 101+, none)
    `documents`, `qrels`                 ``freshness_days``, ``freshness`` (its band, or ``no date``), if there is a
                                         date; ``relevant_source`` etc., one for each column of text
    ===================================  ============================================================================

    See `judged.data.query_text` for ``words`` and ``kind``, and
    `judged.comparison.slicing.topic_slices.frequency_bands` for head and tail.

    Parameters
    ----------
    qrels, queries, documents
        Inputs of `Qrels.of`, `Topics.of`, and `Documents.of`, or paths. Freshness is the age of the newest relevant
        document; `judged.data.dated_documents` sets its reference day and bands.
    attributes
        Existing attributes (`Attributes.of`). They are part of the result and take precedence over derived ones.
    run
        The *baseline*, for ``first_relevant``. This attribute selects topics by an outcome: topics with poor results
        of one run are partly bad luck, so other runs score better on them (regression to the mean). Never slice by the
        run whose gain you report. If you slice by the baseline, expect other runs to look better in its worst band
        and worse in its best. None for topics without a relevant document.
    traffic
        Number of requests of each query: ``{query_id: count}``, `Attributes` with a single numeric column or one named
        ``traffic``, or the name of one of `attributes`. Shares are relative to all counts, including other topics.
    seen
        Known queries, such as those of the training set: texts and ids, `Topics`, ``{id: text}``, or a path. A topic
        is ``seen`` if its normalized text (NFKC, case-folded, single spaces) is among them. Ids are compared only if
        `seen` is a plain list or the topic has no text, because ids of two topic sets may coincide.
    rel
        Lowest relevant grade.
    languages
        Codes of possible languages, such as ``("en", "de")``; ``"any"`` for all. None: all if the library py3langid
        is installed, else no attribute ``language``. Detection is unreliable for short texts; values with a
        probability below one half are None (see `judged.data.query_text.detect_languages`).
    cuts
        Cumulative shares of traffic at which head and torso end.

    Returns
    -------
    attributes : Attributes
        Attributes of all topics of `qrels`, `queries`, and `attributes`, in byte order of their ids.

    Raises
    ------
    InputError
        If input is invalid, or a required source is missing.
    MissingExtraError
        If `languages` is set and py3langid is not installed.

    Examples
    --------
    >>> queries = {"q1": "who is it", "q2": "income tax"}
    >>> attributes = derive({"q1": {"d1": 1}, "q2": {"d2": 0}}, queries=queries, languages=())
    >>> attributes.names
    ('relevant', 'relevant_band', 'judged', 'words', 'length', 'kind', 'script')
    >>> attributes.column("kind").to_pylist(), attributes.column("relevant_band").to_pylist()
    (['question', 'keywords'], ['1', 'none'])
    """
    judgments = None if qrels is None else Qrels.of(qrels)
    texts = None if queries is None else Topics.of(queries)
    existing = None if attributes is None else Attributes.of(attributes)
    if judgments is None and (run is not None or documents is not None):
        raise InputError("run= and documents= require qrels", fix="pass qrels")
    if isinstance(traffic, Mapping):
        traffic_items = cast("Mapping[Any, Any]", traffic).items()
        traffic = Attributes.of({id_text(query, "query id"): {_TRAFFIC: count} for query, count in traffic_items})
    query_ids = _query_ids(judgments, texts, existing, traffic)
    derived = {} if judgments is None else _judgment_columns(query_ids, judgments, rel)
    notes: dict[str, Note] = {}
    if texts is not None or languages:
        derived |= _text_columns(query_ids, texts, languages)
    if traffic is not None:
        counts = _traffic_counts(traffic, existing)
        bands = dict(zip(counts, frequency_bands(list(counts.values()), cuts), strict=True))
        total = math.fsum(counts.values())  # includes the traffic of other topics
        derived["traffic_share"] = [counts[query] / total if query in counts else None for query in query_ids]
        derived["frequency"] = [bands.get(query) for query in query_ids]
    if seen is not None:
        derived["novelty"] = _novelty(query_ids, texts, seen)
    if judgments is not None and run is not None:
        derived["first_relevant"] = _first_relevant(query_ids, judgments, run, rel)
    if judgments is not None and documents is not None:
        table = Documents.of(documents)
        table = dated_documents(table) if find_date_column(table) else table
        document_values = document_columns(query_ids, judgments, table, rel=rel)
        if duplicates := [name for name in document_values if name in derived]:
            fix = f"rename the column {duplicates[0].removeprefix('relevant_')} of the documents"
            raise InputError(f"attribute names must be unique, got {duplicates[0]} twice", fix=fix)
        derived |= document_values
        notes = dict.fromkeys((FRESHNESS, _AGE), table.note()) if isinstance(table, DatedDocuments) else {}
    columns: dict[str, Any] = {"query_id": pa.array(query_ids, pa.string())}
    for name, values in derived.items():
        columns[name] = pa.array(values, pa.float64() if name in _NUMBERS else pa.string())
    result = Attributes(pa.table(columns), "<derived>", notes)
    return result if existing is None else existing.over(query_ids).joined(result)


def _query_ids(qrels: Qrels | None, topics: Topics | None, table: Attributes | None, traffic: Any) -> tuple[str, ...]:
    id_lists = (() if qrels is None else qrels.topics, () if topics is None else topics.table["query_id"].to_pylist())
    query_ids = {query for ids in (*id_lists, () if table is None else table.query_ids) for query in ids}
    query_ids = query_ids or set(traffic.query_ids if isinstance(traffic, Attributes) else ())
    if not query_ids:
        raise InputError("at least one source of topics is required", fix="pass qrels, queries, or attributes")
    return tuple(sorted(query_ids))


def _judgment_columns(query_ids: Sequence[str], qrels: Qrels, rel: float) -> Columns:
    index = qrels.index
    masks = (index.grade >= rel) & (index.grade >= 0), np.ones(len(index.topic), dtype=np.bool_)
    counts = [np.bincount(index.topic[mask], minlength=len(index.topics)).astype(np.float64).tolist() for mask in masks]
    relevant, judged = (dict(zip(index.topics, count, strict=True)) for count in counts)
    relevant_counts = [relevant.get(query) for query in query_ids]
    return {
        "relevant": relevant_counts,
        "relevant_band": RELEVANT.labels(relevant_counts),
        "judged": [judged.get(query) for query in query_ids],
    }


def _text_columns(query_ids: Sequence[str], topics: Topics | None, languages: Sequence[str] | str | None) -> Columns:
    if topics is None:
        raise InputError("languages= requires query texts", fix="pass queries")
    texts = [topics.text(query) for query in query_ids]
    words = [float(count) if (count := word_count(text)) else None for text in texts]
    columns: Columns = {
        "words": words,
        "length": LENGTH.labels(words),
        "kind": [query_kind(text) for text in texts],
        "script": [query_script(text) for text in texts],
    }
    if isinstance(languages, str) and languages != "any":
        raise InputError(f"languages must be a list, got {languages!r}", fix=f'use ("{languages}", "en") or "any"')
    if languages or (languages is None and has_language_detector()):
        columns["language"] = detect_languages(texts, None if languages is None or languages == "any" else languages)
    return columns


def _novelty(query_ids: Sequence[str], topics: Topics | None, seen: Any) -> list[str]:
    is_plain_list = False
    if isinstance(seen, (str, Path, Mapping, Topics)) or hasattr(seen, "__arrow_c_stream__"):
        topic_table = Topics.of(seen)
        ids, texts = topic_table.table["query_id"].to_pylist(), topic_table.table["text"].to_pylist()
    elif isinstance(seen, Iterable):
        ids = texts = [id_text(query, "known query") for query in cast("Iterable[Any]", seen)]
        is_plain_list = True
    else:
        raise InputError(f"seen= must be texts, ids, or topics, got {type(seen).__name__}", fix="pass a list of texts")
    ids, texts = set(ids), set(map(normalize_query, texts))
    topic_texts = ["" if topics is None else normalize_query(topics.text(query)) for query in query_ids]
    return [
        "seen" if (text and text in texts) or ((is_plain_list or not text) and query in ids) else "new"
        for query, text in zip(query_ids, topic_texts, strict=True)
    ]


def _first_relevant(query_ids: Sequence[str], qrels: Qrels, run: Any, rel: float) -> list[str | None]:
    judged = judge(qrels, run)
    if not judged.ranked or not judged.present.any():
        problem = "has no scores" if judged.present.any() else "has no topic in common with the qrels"
        fix = "pass the ranking of the baseline for the judged topics"
        raise InputError(f"first_relevant requires a ranking, but the run {problem}", fix=fix)
    ranks = judged.first_rank(judged.relevant(rel)).astype(np.float64).tolist()
    # topics without relevant documents have no first rank, which differs from rank 0: none returned
    first = {
        query: rank
        for query, rank, relevant in zip(judged.query_ids, ranks, judged.num_relevant(rel).tolist(), strict=True)
        if relevant > 0
    }
    return FIRST_RELEVANT.labels(first.get(query) for query in query_ids)


def _traffic_counts(traffic: Any, attributes: Attributes | None) -> dict[str, float]:
    if isinstance(traffic, str):
        if attributes is None:
            raise InputError(f"traffic={traffic!r} requires attributes", fix="pass attributes=")
        return attributes.numbers(traffic)
    if not isinstance(traffic, Attributes):
        problem = f"traffic must be counts or an attribute, got {type(traffic).__name__}"
        raise InputError(problem, fix="pass {query_id: count}")
    names = [name for name in traffic.names if str(traffic.column(name).type) == "double"]
    if _TRAFFIC not in traffic.names and len(names) != 1:
        problem = f"it is unclear which column contains the traffic: {', '.join(traffic.names) or 'no columns'}"
        raise InputError(problem, fix="name the column of counts 'traffic'")
    return traffic.numbers(_TRAFFIC if _TRAFFIC in traffic.names else names[0])


def read_topic_attributes(
    qrels: Qrels,
    *,
    attributes: Any = None,
    queries: Any = None,
    needed: Iterable[str] = (),
    run: Any = None,
    documents: Any = None,
) -> Attributes:
    """Return the attributes of the topics of the qrels, from tables or derived.

    Parameters
    ----------
    qrels
        Topics and judgments.
    attributes
        Input of `Attributes.of`.
    queries
        `Topics` or a path: texts and additional attributes.
    needed
        Required attributes. No attribute is derived if the tables contain all of them.
    run
        Baseline for ``first_relevant``. All systems are sliced by the same run.
    documents
        Table of documents, for ``freshness`` etc.

    Raises
    ------
    InputError
        If a table is invalid or has other topics, or the source of a required attribute is missing.

    Examples
    --------
    >>> from judged import Qrels
    >>> qrels = Qrels.of({"q1": {"d": 1, "e": 1}, "q2": {"d": 0}})
    >>> attributes = read_topic_attributes(qrels, attributes={"q1": {"kind": "law"}}, needed=["relevant"])
    >>> attributes.column("relevant").to_pylist()
    [2.0, 0.0]
    """
    topics = None if queries is None else Topics.of(queries)
    result = Attributes(pa.table({"query_id": pa.array(sorted(qrels.topics), "string")}))
    for extra in (attributes, topics):
        if extra is not None:
            table = Attributes.of(extra)
            if not set(table.query_ids) & set(result.query_ids):
                example = repr(table.query_ids[0]) if len(table) else "none"
                problem = (
                    f"no topic in common with the qrels: the first topic is {example}, and the first topic of the"
                    f" qrels is {result.query_ids[0]!r}"
                )
                raise InputError(problem, fix="use the same query ids", path=table.where)
            result = result.joined(table.over(result.query_ids))
    needed_names = {result.spelled(name) for name in needed} - {"query_id"}
    if needed_names <= set(result.names):
        return result
    derived = derive(
        qrels,
        queries=topics,
        attributes=result,
        run=run if OUTCOME in needed_names else None,
        traffic=_TRAFFIC if _TRAFFIC in result.names else None,
        documents=documents,
        languages=None if "language" in needed_names else (),
    )
    for name, source in DERIVED.items():
        if name in needed_names and name not in derived.names:
            if name in (FRESHNESS, _AGE) and documents is not None:
                dated_documents(documents)  # an error with the columns of the table
            raise InputError(f"the attribute {name} is in no table and cannot be derived", fix=f"pass {source}")
    return derived
