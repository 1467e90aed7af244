"""`evaluate_embeddings`: exact search with an embedding function, and its evaluation, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError
from judged.scoring.evaluation.evaluate import evaluate
from judged.scoring.evaluation.inputs import DEFAULT_MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.results.types import Ints
    from judged.scoring.evaluation.scores import Scores

    Encode: TypeAlias = Callable[[list[str]], Any]

Similarity: TypeAlias = Literal["cosine", "dot"]
Vectors: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
_BLOCK_CELLS = 1 << 24  # similarities that are held at a time: 64 MB


def nearest(queries: Vectors, documents: Vectors, k: int) -> tuple[Ints, Vectors]:
    """Find the k documents with the highest inner product for each query, by exact search in blocks of queries.

    Parameters
    ----------
    queries, documents
        (Q, d) and (D, d).
    cutoff
        Number of documents, at most D.

    Returns
    -------
    tuple
        Rows of documents and their inner products, best first; (Q, k) each. Equal products are ordered by row.

    Examples
    --------
    >>> rows, products = nearest(np.eye(2, dtype=np.float32), np.array([[1, 0], [0, 2], [1, 1]], dtype=np.float32), 2)
    >>> rows.tolist(), products.tolist()
    ([[0, 2], [1, 2]], [[1.0, 1.0], [2.0, 1.0]])
    """
    rows = np.empty((len(queries), k), dtype=np.int64)
    products = np.empty((len(queries), k), dtype=np.float32)
    size = max(_BLOCK_CELLS // max(len(documents), 1), 1)
    for start in range(0, len(queries), size):
        block = queries[start : start + size] @ documents.T
        best = np.argpartition(block, len(documents) - k, axis=1)[:, len(documents) - k :]
        of_best = np.take_along_axis(block, best, axis=1)
        order = np.lexsort((best, -of_best))
        rows[start : start + size] = np.take_along_axis(best, order, axis=1)
        products[start : start + size] = np.take_along_axis(of_best, order, axis=1)
    return rows, products


def run_of_embeddings(
    encode: Encode,
    queries: Any,
    documents: Any,
    *,
    encode_queries: Encode | None = None,
    similarity: Similarity = "cosine",
    cutoff: int = 1000,
    texts_per_call: int = 1024,
    name: str = "embeddings",
    query_ids: Sequence[str] | None = None,
) -> Run:
    """Embed queries and documents, and return the most similar documents of each query as a run.

    Parameters
    ----------
    encode
        Function that returns an array of shape (n, d) for a list of n texts, such as ``model.encode``.
    queries, documents
        Texts by id, or any input of `judged.data.Topics` and `judged.data.texts.Texts`. Titles precede texts.
    encode_queries
        Function for queries. Default: `encode`.
    similarity
        ``cosine``, or ``dot`` for inner products.
    cutoff
        Number of documents of each query.
    texts_per_call
        Number of texts in a call of the function.
    name
        Name of the run.
    query_ids
        Queries to search. Default: all.

    Raises
    ------
    InputError
        If an input is empty, or the function does not return a finite vector for each text.

    Examples
    --------
    >>> def encode(texts):
    ...     return np.array([[text.count("a"), text.count("b")] for text in texts])
    >>> run_of_embeddings(encode, {"q": "aa"}, {"d1": "bb", "d2": "ab"}, cutoff=1).table.to_pylist()
    [{'query_id': 'q', 'doc_id': 'd2', 'score': 0.7071067690849304}]
    """
    if similarity not in get_args(Similarity) or cutoff < 1 or texts_per_call < 1:
        fix = "use cosine or dot, and cutoff and texts_per_call of at least 1"
        raise InputError(
            f"invalid search: similarity={similarity!r}, cutoff={cutoff!r}, texts_per_call={texts_per_call!r}", fix=fix
        )
    topics, texts = Topics.of(queries), Texts.of(documents).documents
    if not texts:
        raise InputError("there are no documents", fix="pass texts by id")
    searched_ids = topics.table["query_id"].to_pylist() if query_ids is None else list(query_ids)
    query_texts = [topics.text(query_id) for query_id in searched_ids]
    document_texts = [f"{text.title} {text.text}".strip() for text in texts.values()]
    query_vectors = _embedded(encode_queries or encode, query_texts, similarity, texts_per_call)
    vectors = _embedded(encode, document_texts, similarity, texts_per_call)
    if query_vectors.shape[1] != vectors.shape[1]:
        problem = f"vectors of queries have {query_vectors.shape[1]} dimensions, those of documents {vectors.shape[1]}"
        raise InputError(problem, fix="use functions with the same number of dimensions")
    rows, products = nearest(query_vectors, vectors, min(cutoff, len(vectors)))
    ids = pa.array(list(texts), pa.string())
    table = pa.table({
        "query_id": pa.array(searched_ids, pa.string()).take(np.repeat(np.arange(len(searched_ids)), rows.shape[1])),
        "doc_id": ids.take(rows.ravel()),
        "score": products.ravel().astype(np.float64),
    })  # fmt: skip
    return Run.of(table, name=name)


def _embedded(encode: Encode, texts: list[str], similarity: Similarity, texts_per_call: int) -> Vectors:
    parts = list[Vectors]()
    for start in range(0, len(texts), texts_per_call):
        chunk = texts[start : start + texts_per_call]
        vectors = np.asarray(encode(chunk), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(chunk) or not np.isfinite(vectors).all():
            problem = f"the embedding function returned shape {vectors.shape} for {len(chunk)} texts"
            fix = "return a finite array of shape (n, d)"
            raise InputError(problem if np.isfinite(vectors).all() else "a vector is not finite", fix=fix)
        parts.append(vectors)
    joined = np.concatenate(parts)
    if similarity == "cosine":
        norms = np.linalg.norm(joined, axis=1, keepdims=True)
        joined = np.divide(joined, norms, out=np.zeros_like(joined), where=norms > 0)
    return joined


def evaluate_embeddings(
    encode: Encode,
    queries: Any,
    documents: Any,
    qrels: Any,
    measures: Any = DEFAULT_MEASURES,
    *,
    encode_queries: Encode | None = None,
    similarity: Similarity = "cosine",
    cutoff: int = 1000,
    texts_per_call: int = 1024,
    name: str = "embeddings",
    **options: Any,
) -> Scores:
    """Search with an embedding function, and score the results: ``evaluate`` of an exact search.

    Two checkpoints are compared by joining their scores: ``old.join(new).compare()``.

    Parameters
    ----------
    encode
        Function that returns an array of shape (n, d) for a list of n texts, such as ``model.encode``.
    queries, documents
        Texts by id. Only queries with judgments are searched.
    qrels, measures
        As for `judged.evaluate`.
    encode_queries
        Function for queries. Default: `encode`.
    similarity
        ``cosine``, or ``dot`` for inner products.
    cutoff
        Number of documents of each query.
    texts_per_call
        Number of texts in a call of the function.
    name
        Name of the run in results.
    options
        Further options of `judged.evaluate`, such as ``unjudged`` and ``where``.

    Returns
    -------
    Scores
        Scores by topic, with intervals.

    Raises
    ------
    InputError
        If an input is invalid, no query is judged, or the function does not return a finite vector for each text.

    Examples
    --------
    >>> def encode(texts):
    ...     return np.array([[text.count("a"), text.count("b")] for text in texts])
    >>> documents = {"d1": "bb", "d2": "ab"}
    >>> evaluate_embeddings(encode, {"q": "aa"}, documents, {"q": {"d2": 1}}, "RR").aggregate()
    {'embeddings': {'RR': 1.0}}
    """
    judgments, topics = Qrels.of(qrels), Topics.of(queries)
    judged = set(judgments.topics)
    query_ids = [query_id for query_id in topics.table["query_id"].to_pylist() if query_id in judged]
    if not query_ids:
        raise InputError("no query has a judgment", fix="use the same query ids in the queries and the qrels")
    run = run_of_embeddings(
        encode,
        topics,
        documents,
        encode_queries=encode_queries,
        similarity=similarity,
        cutoff=cutoff,
        texts_per_call=texts_per_call,
        name=name,
        query_ids=query_ids,
    )
    return evaluate(judgments, run, measures, **options)
