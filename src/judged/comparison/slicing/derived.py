"""Attributes of topics: `derive` makes them of judgments, texts, traffic and documents, `known_topics` gives all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from judged.comparison.slicing.by_document import document_columns
from judged.comparison.slicing.topic_slices import DERIVED, FIRST_RELEVANT, LENGTH, RELEVANT, frequency_bands
from judged.data.attributes import Attributes
from judged.data.documents import Documents
from judged.data.index import id_text
from judged.data.qrels import Qrels
from judged.data.query_text import can_guess, kind_of, languages_of, normalised, script_of, word_count
from judged.data.topics import Topics
from judged.errors import InputError
from judged.scoring.judging import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.by_document import Columns

OUTCOME = "first_relevant"
"""The attribute that is cut by what a run achieved."""

_JUDGMENTS, _TEXTS, _SEARCHES, _RUN = (
    "the judgments",
    "the texts of the queries",
    "the attribute traffic",
    "the first run",
)
SOURCES = (_JUDGMENTS, _TEXTS, _SEARCHES, _RUN)
MEANINGS = {
    "relevant": (_JUDGMENTS, "number", "how many relevant documents the topic has"),
    "relevant_band": (_JUDGMENTS, "text", f"the same in bands: {', '.join(RELEVANT.names)}"),
    "judged": (_JUDGMENTS, "number", "how many documents were judged for the topic"),
    "words": (_TEXTS, "number", "how many words the query has"),
    "length": (_TEXTS, "text", f"the same in bands: {', '.join(LENGTH.names)}"),
    "kind": (_TEXTS, "text", "the form of the query: address, quoted, question, identifier, keywords"),
    "script": (_TEXTS, "text", "the writing system of the query"),
    "language": (_TEXTS, "text", "the language of the query, as far as its few words tell"),
    "traffic_share": (_SEARCHES, "number", "the topic's share of all traffic"),
    "frequency": (_SEARCHES, "text", "head, torso or tail by traffic"),
    OUTCOME: (_RUN, "text", "where that run has its first relevant document: an outcome, not a property"),
}
"""What an attribute is derived from, of which kind its values are, and what they say."""

_TRAFFIC = "traffic"
_NUMBERS = frozenset({"relevant", "judged", "words", "traffic_share", "freshness"})


def derive(
    qrels: Any = None,
    *,
    queries: Any = None,
    attributes: Any = None,
    run: Any = None,
    traffic: Any = None,
    seen: Any = None,
    documents: Any = None,
    today: Any = None,
    date: str = "date",
    rel: float = 1,
    languages: Sequence[str] | str | None = None,
    cuts: tuple[float, float] = (0.5, 0.9),
) -> Attributes:
    """Make attributes of topics out of the data itself. Each is made where its source is given.

    ===================================  ============================================================================
    from                                 attributes
    ===================================  ============================================================================
    `qrels`                              ``relevant``, ``relevant_band`` (none, 1, 2-5, 6-20, 21+), ``judged``: the
                                         numbers of relevant and of judged documents
    `queries`                             ``words``; ``length`` (1, 2-3, 4-6, 7+ words); ``kind`` (address, quoted,
                                         question, identifier, keywords); ``script``; ``language``
    `traffic`                            ``traffic_share``; ``frequency`` (head, torso, tail)
    `seen`                               ``novelty`` (seen, new)
    `run`, `qrels`                       ``first_relevant`` (1, 2-3, 4-10, 11-100, 101+, none)
    `documents`, `qrels`                 ``freshness`` in days, ``freshness_band`` (0-1, 2-7, 8-30, 31-365, 366+,
                                         after today); ``relevant_source`` and so on, one for each column of text
    ===================================  ============================================================================

    The rules of ``words`` and ``kind`` are those of `judged.data.query_text`, those of head and tail
    `judged.slicing.bands.frequency_bands`.

    Parameters
    ----------
    qrels, queries, documents
        What `Qrels.of`, `Topics.of` and `Documents.of` take, or a path.
    attributes
        What is known already (`Attributes.of`); it is part of the result and goes before what is derived.
    run
        The *baseline*, for ``first_relevant``. This attribute cuts topics by an outcome. Topics on which a run did
        badly were partly unlucky, and any other run does better on them for that reason alone (regression to the
        mean). Never cut by the run whose gain is then reported; and cut by the baseline, expect the others to look
        better in its worst band and worse in its best. None for topics without a relevant document.
    traffic
        How often each query was asked: ``{query_id: count}``, `Attributes` with one column of numbers or one called
        ``traffic``, or the name of one of `attributes`. Shares are of all that is given, over other topics too.
    seen
        Queries that are known, such as those of the training set: texts and ids, `Topics`, ``{id: text}``, or a path.
        A topic is ``seen`` if its normalised text (NFKC, case folded, single spaces) is among them. By id it is found
        if the known ones are a plain list, or its own text is not known; ids of two sets of topics may coincide.
    today
        The day from which ages are counted, such as ``"2024-05-31"``; None for the newest date of the documents.
    date
        The column of documents that holds their dates.
    rel
        The least grade that is relevant.
    languages
        Codes of the languages that can occur, such as ``("en", "de")``; ``"any"`` for all. None: all, if the library
        py3langid is installed, else there is no attribute ``language``. It is unsure on short texts, and None where
        its probability is below one half; see `judged.data.query_text.languages_of`.
    cuts
        The shares of traffic at which head and torso end.

    Returns
    -------
    found : Attributes
        Of all topics of `qrels`, `queries` and `attributes`; in byte order of their ids.

    Raises
    ------
    InputError
        If something cannot be read, or a source that another one needs is missing.
    MissingExtraError
        If `languages` are given and py3langid is not installed.

    Examples
    --------
    >>> queries = {"q1": "who is it", "q2": "income tax"}
    >>> known = derive({"q1": {"d1": 1}, "q2": {"d2": 0}}, queries=queries, languages=())
    >>> known.names
    ('relevant', 'relevant_band', 'judged', 'words', 'length', 'kind', 'script')
    >>> known.column("kind").to_pylist(), known.column("relevant_band").to_pylist()
    (['question', 'keywords'], ['1', 'none'])
    """
    judgments = None if qrels is None else Qrels.of(qrels)
    texts = None if queries is None else Topics.of(queries)
    known = None if attributes is None else Attributes.of(attributes)
    if judgments is None and (run is not None or documents is not None):
        raise InputError("run= and documents= tell nothing of topics without judgments", fix="give qrels too")
    if isinstance(traffic, Mapping):
        counts_of = cast("Mapping[Any, Any]", traffic).items()
        traffic = Attributes.of({id_text(query, "query id"): {_TRAFFIC: count} for query, count in counts_of})
    query_ids = _all_topics(judgments, texts, known, traffic)
    made = {} if judgments is None else _judgment_columns(query_ids, judgments, rel)
    if texts is not None or languages:
        made |= _text_columns(query_ids, texts, languages)
    if traffic is not None:
        counts = _counts(traffic, known)
        bands = dict(zip(counts, frequency_bands(list(counts.values()), cuts), strict=True))
        total = math.fsum(counts.values())  # of all that is given, of topics that are not among these too
        made["traffic_share"] = [counts[query] / total if query in counts else None for query in query_ids]
        made["frequency"] = [bands.get(query) for query in query_ids]
    if seen is not None:
        made["novelty"] = _novelty(query_ids, texts, seen)
    if judgments is not None and run is not None:
        made["first_relevant"] = _first_relevant(query_ids, judgments, run, rel)
    if judgments is not None and documents is not None:
        more = document_columns(query_ids, judgments, Documents.of(documents), today=today, date=date, rel=rel)
        if clash := [name for name in more if name in made]:
            name = clash[0].removeprefix("relevant_")
            raise InputError(f"two attributes would be called {clash[0]}", fix=f"rename {name} of the documents")
        made |= more
    columns: dict[str, Any] = {"query_id": pa.array(query_ids, pa.string())}
    for name, values in made.items():
        columns[name] = pa.array(values, pa.float64() if name in _NUMBERS else pa.string())
    derived = Attributes(pa.table(columns), "<derived>")
    return derived if known is None else known.over(query_ids).joined(derived)


def _all_topics(qrels: Qrels | None, topics: Topics | None, known: Attributes | None, traffic: Any) -> tuple[str, ...]:
    given = (() if qrels is None else qrels.topics, () if topics is None else topics.table["query_id"].to_pylist())
    found = {query for ids in (*given, () if known is None else known.query_ids) for query in ids}
    found = found or set(traffic.query_ids if isinstance(traffic, Attributes) else ())
    if not found:
        raise InputError("nothing is given that topics could be found in", fix="give qrels, topics or attributes")
    return tuple(sorted(found))


def _judgment_columns(query_ids: Sequence[str], qrels: Qrels, rel: float) -> Columns:
    index = qrels.index
    marks = (index.grade >= rel) & (index.grade >= 0), np.ones(len(index.topic), dtype=np.bool_)
    counts = [np.bincount(index.topic[mask], minlength=len(index.topics)).astype(np.float64).tolist() for mask in marks]
    relevant, judged = (dict(zip(index.topics, count, strict=True)) for count in counts)
    wanted = [relevant.get(query) for query in query_ids]
    return {
        "relevant": wanted,
        "relevant_band": RELEVANT.all_of(wanted),
        "judged": [judged.get(query) for query in query_ids],
    }


def _text_columns(query_ids: Sequence[str], topics: Topics | None, languages: Sequence[str] | str | None) -> Columns:
    if topics is None:
        raise InputError("languages= are guessed from texts", fix="give topics too")
    texts = [topics.text(query) for query in query_ids]
    words = [float(count) if (count := word_count(text)) else None for text in texts]
    made: Columns = {
        "words": words,
        "length": LENGTH.all_of(words),
        "kind": [kind_of(text) for text in texts],
        "script": [script_of(text) for text in texts],
    }
    if isinstance(languages, str) and languages != "any":
        raise InputError(f"languages={languages!r} is not a list", fix=f'give ("{languages}", "en"), say, or "any"')
    if languages or (languages is None and can_guess()):
        made["language"] = languages_of(texts, None if languages is None or languages == "any" else languages)
    return made


def _novelty(query_ids: Sequence[str], topics: Topics | None, seen: Any) -> list[str]:
    """Say of each topic whether it is among known queries."""
    plain = False
    if isinstance(seen, (str, Path, Mapping, Topics)) or hasattr(seen, "__arrow_c_stream__"):
        known = Topics.of(seen)
        ids, texts = known.table["query_id"].to_pylist(), known.table["text"].to_pylist()
    elif isinstance(seen, Iterable):
        ids = texts = [id_text(query, "known query") for query in cast("Iterable[Any]", seen)]
        plain = True
    else:
        raise InputError(f"a {type(seen).__name__} holds no known queries", fix="give texts or ids, or topics")
    ids, texts = set(ids), set(map(normalised, texts))
    own = ["" if topics is None else normalised(topics.text(query)) for query in query_ids]
    return [
        "seen" if (text and text in texts) or ((plain or not text) and query in ids) else "new"
        for query, text in zip(query_ids, own, strict=True)
    ]


def _first_relevant(query_ids: Sequence[str], qrels: Qrels, run: Any, rel: float) -> list[str | None]:
    judged = judge(qrels, run)
    if not judged.ranked or not judged.present.any():
        problem = "has no scores" if judged.present.any() else "has no topic in common with the qrels"
        fix = "give the baseline's ranking of the judged topics"
        raise InputError(f"the run {problem}, so that no document is its first relevant one", fix=fix)
    ranks = judged.first_rank(judged.relevant(rel)).astype(np.float64).tolist()
    first = {
        query: rank
        for query, rank, relevant in zip(judged.query_ids, ranks, judged.num_relevant(rel).tolist(), strict=True)
        if relevant > 0
    }
    return FIRST_RELEVANT.all_of(first.get(query) for query in query_ids)


def _counts(traffic: Any, known: Attributes | None) -> dict[str, float]:
    """Give the counts by query id: of a named attribute, or of the only numbers of a table."""
    if isinstance(traffic, str):
        if known is None:
            raise InputError(f"no attributes that {traffic!r} could be one of", fix="give attributes= too")
        return known.numbers(traffic)
    if not isinstance(traffic, Attributes):
        raise InputError(
            f"a {type(traffic).__name__} cannot be read as traffic", fix="give {query_id: count}, or an attribute"
        )
    names = [name for name in traffic.names if str(traffic.column(name).type) == "double"]
    if _TRAFFIC not in traffic.names and len(names) != 1:
        problem = f"which of {', '.join(traffic.names) or 'no columns'} is the traffic?"
        raise InputError(problem, fix="name the column of counts 'traffic'")
    return traffic.numbers(_TRAFFIC if _TRAFFIC in traffic.names else names[0])


def known_topics(
    qrels: Qrels,
    *,
    attributes: Any = None,
    queries: Any = None,
    needed: Iterable[str] = (),
    run: Any = None,
    documents: Any = None,
) -> Attributes:
    """Give the attributes of the topics of the qrels.

    Parameters
    ----------
    qrels
        The topics, and what follows from their judgments.
    attributes
        What `Attributes.of` takes.
    queries
        `Topics` or a path: texts, and the attributes beside them.
    needed
        The attributes that are asked for. Nothing is derived where the tables have them all.
    run
        The baseline, from which ``first_relevant`` is taken: slices by an outcome are cut by one run for all.
    documents
        A table of documents, for ``freshness`` and the like.

    Raises
    ------
    InputError
        If a table cannot be read, is of other topics, or what is needed could be derived and its source is not given.

    Examples
    --------
    >>> from judged import Qrels
    >>> qrels = Qrels.of({"q1": {"d": 1, "e": 1}, "q2": {"d": 0}})
    >>> known_topics(qrels, attributes={"q1": {"kind": "law"}}, needed=["relevant"]).column("relevant").to_pylist()
    [2.0, 0.0]
    """
    topics = None if queries is None else Topics.of(queries)
    found = Attributes.of({query: {} for query in sorted(qrels.topics)})
    for given in (attributes, topics):
        if given is not None:
            known = Attributes.of(given)
            if not set(known.query_ids) & set(found.query_ids):
                theirs = repr(known.query_ids[0]) if len(known) else "none"
                problem = f"its first one is {theirs}, that of the qrels {found.query_ids[0]!r}"
                raise InputError(
                    f"no topic in common with the qrels: {problem}",
                    fix="check that both use the same query ids",
                    path=known.where,
                )
            found = found.joined(known.over(found.query_ids))
    asked = {found.spelled(name) for name in needed} - {"query_id"}
    if asked <= set(found.names):
        return found
    made = derive(
        qrels,
        queries=topics,
        attributes=found,
        run=run if OUTCOME in asked else None,
        traffic=_TRAFFIC if _TRAFFIC in found.names else None,
        documents=documents,
        languages=None if "language" in asked else (),
    )
    for name, source in DERIVED.items():
        if name in asked and name not in made.names:
            raise InputError(f"the attribute {name} is in no table, and cannot be derived", fix=f"give {source}")
    return made
