"""Engines of dense vectors: exact search with NumPy, and approximate search (HNSW) with voyager and usearch."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError, MissingExtraError
from judged.pipelines.experiments.engines.base import (
    Engine,
    QueryRefusedError,
    Setting,
    import_function,
    title_and_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import EngineSettings, Hit

Vectors: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
_BATCH = 512  # texts per call of the embedding function
_TIE = 1e-6  # difference of cosines that is rounding of 32-bit numbers
_FARTHEST = 2.0  # distance of opposite unit vectors
_VECTOR_SETTINGS: Mapping[str, Setting] = {
    "embed": Setting(
        "",
        (),
        "Python function, as module:function, that returns an array of shape (n, d) for n texts; if empty, WordLlama"
        " is used",
    ),
    "dimensions": Setting(256, (64, 128, 256), "dimensions of WordLlama vectors"),
    "document_vectors": Setting(
        "", (), "file with document vectors: .npy with rows in the order of the documents, or Parquet (doc_id, vector)"
    ),
    "query_vectors": Setting(
        "", (), "file with query vectors: .npy with rows in the order of the queries, or Parquet (query_id, vector)"
    ),
}
_GRAPH_SETTINGS: Mapping[str, Setting] = {
    "m": Setting(16, (), "links of each vector in the HNSW graph", 2, 512),
    "ef_build": Setting(200, (), "size of the candidate list when a vector is added to the graph", 1),
    "ef_query": Setting(
        64, (), "size of the candidate list of a search; at least the number of requested documents", 1
    ),
}


class NeighborQuality(NamedTuple):
    """Agreement of the nearest neighbors that an engine returned with the exact ones."""

    recall: float  # share of the exact neighbors that were returned, 0 to 1
    inverse_ratio: float  # 1 / mean ratio of distances, returned to exact; at most 1, and 1 if all distances are equal


def neighbor_quality(cosines: Vectors, returned: Sequence[int], k: int) -> NeighborQuality:
    """Compare returned nearest neighbors of a query with the exact ones.

    Parameters
    ----------
    cosines
        (D,): cosine similarity of the query to each document.
    returned
        Returned rows, best first; rows after the first k are ignored. A missing row has the largest possible distance.
    k
        Number of neighbors, at most D.

    Returns
    -------
    NeighborQuality
        ANN recall@k, where a document that is as near as the k-th exact neighbor counts, and 1 / Ratio@k. Ratio@k is
        the mean over ranks of the Euclidean distance of the returned vector, divided by that of the exact one, with
        0 / 0 = 1.

    Examples
    --------
    >>> cosines = np.array([0.875, 0.5, 0.875, -1.0], dtype=np.float32)
    >>> neighbor_quality(cosines, [2, 1], 2)  # distances 0.5 and 1 instead of 0.5 and 0.5
    NeighborQuality(recall=0.5, inverse_ratio=0.6666666666666666)
    """
    exact = np.sort(np.partition(cosines, len(cosines) - k)[-k:])[::-1].astype(np.float64)
    returned_cosines = cosines[list(returned[:k])].astype(np.float64)
    recall = float((returned_cosines >= exact[-1] - _TIE).sum()) / k
    distances = np.full(k, _FARTHEST)
    distances[: len(returned_cosines)] = _distance(returned_cosines)
    exact_distances = _distance(exact)
    ratios = np.ones(k)
    np.divide(distances, exact_distances, out=ratios, where=exact_distances > 0)
    ratios[(exact_distances == 0) & (distances > 0)] = np.inf
    return NeighborQuality(recall, min(1.0, float(1 / ratios.mean())))


def _distance(cosines: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return Euclidean distances of unit vectors; those below the rounding of 32-bit numbers are 0."""
    squares = 2 - 2 * cosines
    return np.sqrt(np.where(squares > _TIE, squares, 0.0))


class VectorEngine(Engine):
    """Base of engines that search unit vectors by cosine similarity."""

    settings: ClassVar[Mapping[str, Setting]] = _VECTOR_SETTINGS
    is_exact: ClassVar[bool] = False

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Embed titles and texts, or read the vectors of the documents, and index them."""
        self._load_library()
        self._configuration = configuration
        self._ids = list(documents)
        embed, path = configuration["embed"], configuration["document_vectors"]
        if not path or not configuration["query_vectors"]:
            if path and not embed:
                problem = "`document_vectors` requires vectors of the queries"
                raise InputError(problem, fix="set `query_vectors`, or `embed` to a function that embeds the queries")
            self._embed = import_function(embed) if embed else _wordllama(int(configuration["dimensions"]))
        if path:
            vectors = _unit(_read_vectors(path, "doc_id", self._ids))
        else:
            texts = [title_and_text(text) for text in documents.values()]
            starts = range(0, len(texts), _BATCH)
            vectors = np.concatenate([self._embed_texts(texts[start : start + _BATCH]) for start in starts])
        self._by_text: dict[str, Vectors] = {}
        self._vectors_path = folder / "vectors.npy"
        np.save(self._vectors_path, vectors)
        self._index_path = self._index(vectors, folder)

    def read_queries(self, queries: Mapping[str, str]) -> None:
        """Read the vectors of queries, which are given as texts by ID, if the configuration has a file of vectors."""
        if path := self._configuration["query_vectors"]:
            vectors = _unit(_read_vectors(path, "query_id", list(queries)))
            self._by_text = dict(zip(queries.values(), vectors, strict=True))

    def _embed_texts(self, texts: list[str]) -> Vectors:
        vectors = np.asarray(self._embed(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            problem = f"`embed` must return {len(texts)} rows of finite numbers, got an array of shape {vectors.shape}"
            raise InputError(problem, fix="return one row per text")
        return _unit(vectors)

    def query_vector(self, query: str) -> Vectors:
        """Return the unit vector of a query.

        Raises
        ------
        QueryRefusedError
            If the vector is zero.
        InputError
            If the file of query vectors has no vector for this text.
        """
        if self._by_text and query not in self._by_text:
            raise InputError(f"no vector of the query {query!r}", fix="omit `rewrite` and `synonyms`, or set `embed`")
        vector = self._by_text[query] if self._by_text else self._embed_texts([query])[0]
        if not vector.any():
            raise QueryRefusedError("the vector of the query is zero")
        return vector

    def size(self) -> int:
        """Return the size of the index in bytes."""
        return self._index_path.stat().st_size

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the nearest documents with their cosine similarity."""
        rows, cosines = self._nearest(self.query_vector(query), min(k, len(self._ids)))
        return [(self._ids[row], float(cosine)) for row, cosine in zip(rows, cosines, strict=True)]

    def compare_with_exact(self, lists: Iterable[tuple[str, list[Hit]]], k: int) -> tuple[str, list[NeighborQuality]]:
        """Compare results with exact search over the same vectors.

        Parameters
        ----------
        lists
            Query and its results, best first.
        k
            Number of neighbors.

        Returns
        -------
        fingerprint
            Hash of the vectors of documents and queries: engines with the same hash have the same exact results.
        qualities
            One per query.
        """
        vectors: Vectors = np.load(self._vectors_path, mmap_mode="r")
        digest, row_of = hashlib.sha256(vectors.tobytes()), {doc: row for row, doc in enumerate(self._ids)}
        qualities: list[NeighborQuality] = []
        for query, hits in lists:
            vector = self.query_vector(query)
            digest.update(vector.tobytes())
            rows = [row_of[doc] for doc, _ in hits[:k]]
            qualities.append(neighbor_quality(vectors @ vector, rows, min(k, len(self._ids))))
        return digest.hexdigest(), qualities

    def _load_library(self) -> None:
        """Import the library, if there is one."""

    def _index(self, vectors: Vectors, folder: Path) -> Path:
        """Index the vectors, and return the file of the index."""
        raise NotImplementedError

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[int], Sequence[float]]:
        """Return rows and cosines of the nearest vectors, best first."""
        raise NotImplementedError

    def close(self) -> None:
        """Release nothing: files are removed with the folder."""


class Dense(VectorEngine):
    """Exact nearest neighbors by cosine similarity, in NumPy."""

    libraries = ("wordllama",)
    is_exact = True

    def _index(self, vectors: Vectors, folder: Path) -> Path:
        self._vectors = vectors
        return self._vectors_path

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[int], Sequence[float]]:
        cosines = self._vectors @ query
        rows = np.argsort(-cosines, kind="stable")[:k]  # ties are in the order of indexing
        return rows.tolist(), cosines[rows].tolist()


class Voyager(VectorEngine):
    """Approximate nearest neighbors by cosine similarity: HNSW of voyager."""

    settings: ClassVar[Mapping[str, Setting]] = {
        **_VECTOR_SETTINGS,
        **_GRAPH_SETTINGS,
        "dtype": Setting("f32", ("f32", "e4m3"), "numbers in the index: 32 bits, or 8 bits (e4m3)"),
    }
    libraries = ("wordllama", "voyager")

    def _load_library(self) -> None:
        try:
            import voyager
        except ImportError:
            raise MissingExtraError("voyager", "engines") from None
        self._library: Any = voyager

    def _index(self, vectors: Vectors, folder: Path) -> Path:
        configuration, types = self._configuration, self._library.StorageDataType
        self._graph = self._library.Index(
            self._library.Space.Cosine,
            vectors.shape[1],
            M=configuration["m"],
            ef_construction=configuration["ef_build"],
            random_seed=1,
            max_elements=len(vectors),
            storage_data_type=types.Float32 if configuration["dtype"] == "f32" else types.E4M3,
        )
        self._graph.add_items(vectors, num_threads=1)
        path = folder / "index.voy"
        self._graph.save(str(path))
        return path

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[int], Sequence[float]]:
        rows, distances = self._graph.query(query, k, query_ef=max(int(self._configuration["ef_query"]), k))
        return rows.tolist(), (1 - distances).tolist()


class Usearch(VectorEngine):
    """Approximate nearest neighbors by cosine similarity: HNSW of usearch."""

    settings: ClassVar[Mapping[str, Setting]] = {
        **_VECTOR_SETTINGS,
        **_GRAPH_SETTINGS,
        "dtype": Setting("f32", ("f32", "f16", "i8"), "numbers in the index: 32 or 16 bits, or 8-bit integers"),
    }
    libraries = ("wordllama", "usearch")

    def _load_library(self) -> None:
        try:
            import usearch.index
        except ImportError:
            raise MissingExtraError("usearch", "engines") from None
        self._library: Any = usearch.index

    def _index(self, vectors: Vectors, folder: Path) -> Path:
        configuration = self._configuration
        self._graph = self._library.Index(
            ndim=vectors.shape[1],
            metric="cos",
            dtype=configuration["dtype"],
            connectivity=configuration["m"],
            expansion_add=configuration["ef_build"],
            expansion_search=configuration["ef_query"],
        )
        self._graph.add(np.arange(len(vectors)), vectors, threads=1)
        path = folder / "index.usearch"
        self._graph.save(str(path))
        return path

    def _nearest(self, query: Vectors, k: int) -> tuple[Sequence[int], Sequence[float]]:
        matches = self._graph.search(query, k, threads=1)
        return matches.keys.tolist(), (1 - matches.distances).tolist()


def _unit(vectors: Vectors) -> Vectors:
    """Return vectors of length 1; a vector without a direction is zero."""
    length = np.sqrt((vectors**2).sum(axis=1, keepdims=True, dtype=np.float32))
    return (vectors / np.where(length > 0, length, 1)).astype(np.float32)


def _read_vectors(path: str, id_column: str, ids: Sequence[str]) -> Vectors:
    """Read vectors of documents or queries, in the order of their IDs.

    Raises
    ------
    InputError
        If the file cannot be read, a vector is missing, or the vectors are not finite or have different lengths.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    noun = "document" if id_column == "doc_id" else "query"
    row_ids: list[str] | None = None
    try:
        if path.endswith(".npy"):
            vectors = np.load(path, allow_pickle=False)
        else:
            table = pq.read_table(path, columns=[id_column, "vector"])
            row_ids, vectors = list(map(str, table[id_column].to_pylist())), np.array(table["vector"].to_pylist())
        vectors = np.asarray(vectors, dtype=np.float32)
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise InputError(f"cannot read the vectors ({error})", fix="use .npy or Parquet", path=path) from None
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        problem = f"expected rows of finite numbers, got an array of shape {vectors.shape}"
        raise InputError(problem, fix="write one vector of finite numbers per row", path=path)
    if row_ids is None:
        if len(vectors) != len(ids):
            raise InputError(
                f"expected one row for each {noun} ({len(ids)}), got {len(vectors)}",
                fix=f"write the rows in the order of the {noun} file, or use Parquet with {id_column} and vector",
                path=path,
            )
        return vectors
    row_of = {row_id: row for row, row_id in enumerate(row_ids)}
    if missing := [row_id for row_id in ids if row_id not in row_of]:
        problem = f"no vector for {len(missing)} of {len(ids)} ids in {id_column}, such as {missing[0]!r}"
        raise InputError(problem, fix="add the missing rows", path=path)
    return vectors[[row_of[row_id] for row_id in ids]]


def _wordllama(dimensions: int) -> Callable[[list[str]], Any]:
    """Load static vectors whose weights are part of the package, so nothing is downloaded."""
    try:
        import wordllama
    except ImportError:
        raise MissingExtraError("wordllama", "engines") from None
    package = Path(wordllama.__file__).parent
    model: Any = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    return lambda texts: model.embed(texts)[:, :dimensions]
