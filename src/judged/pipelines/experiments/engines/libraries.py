"""Engines of Python libraries: bm25s, tantivy, and dense vectors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError, MissingExtraError
from judged.pipelines.experiments.engines.base import (
    Engine,
    QueryRefusedError,
    Setting,
    folder_size,
    import_function,
    title_and_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import EngineSettings, Hit


_METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
_BM25S_WORD = re.compile(r"\w\w")  # bm25s drops words of one letter


class Bm25s(Engine):
    """BM25 over titles and texts as one field. A document matches if it has any word of the query."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "stemmer": Setting("english", ("none", "english"), "stemmer (Snowball)"),
        "stop_words": Setting("english", ("none", "english"), "stop words"),
        "method": Setting("lucene", _METHODS, "variant of BM25"),
        "k1": Setting(1.5, (), "BM25 parameter k1: saturation of term frequency", 0),
        "b": Setting(0.75, (), "BM25 parameter b: strength of length normalization", 0, 1),
    }
    libraries = ("bm25s", "PyStemmer")

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Index titles and texts."""
        try:
            import bm25s
            import Stemmer
        except ImportError:
            raise MissingExtraError("bm25s", "engines") from None
        self._library: Any = bm25s
        self._stemmer = Stemmer.Stemmer("english") if configuration["stemmer"] == "english" else None
        self._stop_words = "en" if configuration["stop_words"] == "english" else []
        self._ids = list(documents)
        self._index = bm25s.BM25(
            k1=float(configuration["k1"]), b=float(configuration["b"]), method=configuration["method"]
        )
        self._index.index(self._tokens([title_and_text(text) for text in documents.values()]), show_progress=False)
        self._index.save(str(folder / "index"))
        self._folder = folder

    def _tokens(self, texts: list[str]) -> Any:
        return self._library.tokenize(texts, stopwords=self._stop_words, stemmer=self._stemmer, show_progress=False)

    def size(self) -> int:
        """Return the size of the saved index in bytes."""
        return folder_size(self._folder)

    def search(self, query: str, k: int) -> list[Hit]:
        """Return documents with any word of the query."""
        if not _BM25S_WORD.search(query):
            raise QueryRefusedError("the query has no word of at least two letters")
        # By default, bm25s uses JAX if it is installed, which orders documents with equal scores differently.
        options: dict[str, Any] = {"show_progress": False, "n_threads": 0, "backend_selection": "numpy"}
        rows, scores = self._index.retrieve(self._tokens([query]), k=min(k, len(self._ids)), **options)
        hits = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._ids[row], score) for row, score in hits if score > 0]


_TANTIVY_WORD = re.compile(r"\w+")
_OPERATORS = {"AND", "OR", "NOT", "IN", "TO"}
_MEMORY = 50_000_000  # bytes that a writer may hold


class Tantivy(Engine):
    """BM25 of tantivy over titles and texts. A document matches if it has any word of the query."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "stemmer": Setting("english", ("none", "english"), "stemmer (Snowball)"),
        "stop_words": Setting("none", ("none", "english"), "stop words"),
        "tokens": Setting("words", ("words", "trigrams"), "index terms: words or character trigrams"),
        "title_weight": Setting(1.0, (), "weight of title words; text words have weight 1", 0),
    }
    libraries = ("tantivy",)

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Index titles and texts."""
        try:
            import tantivy
        except ImportError:
            raise MissingExtraError("tantivy", "engines") from None
        grams = configuration["tokens"] == "trigrams"
        tokenizer = tantivy.Tokenizer.ngram(3, 3, False) if grams else tantivy.Tokenizer.simple()
        analyzer = tantivy.TextAnalyzerBuilder(tokenizer).filter(tantivy.Filter.lowercase())
        if configuration["stop_words"] == "english":
            analyzer = analyzer.filter(tantivy.Filter.stopword("english"))
        if configuration["stemmer"] == "english":
            analyzer = analyzer.filter(tantivy.Filter.stemmer("english"))
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        for name in ("title", "text"):
            schema.add_text_field(name, tokenizer_name="judged")
        self._index: Any = tantivy.Index(schema.build(), path=str(folder))
        self._index.register_tokenizer("judged", analyzer.build())
        writer = self._index.writer(_MEMORY, 1)
        for doc, (title, text) in documents.items():
            writer.add_document(tantivy.Document(id=doc, title=title, text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._weights = {"title": float(configuration["title_weight"]), "text": 1.0}
        self._folder = folder

    def size(self) -> int:
        """Return the size of the index in bytes."""
        return folder_size(self._folder)

    def search(self, query: str, k: int) -> list[Hit]:
        """Return documents with any word of the query."""
        words = [word.lower() if word in _OPERATORS else word for word in _TANTIVY_WORD.findall(query)]
        if not words:
            raise QueryRefusedError("the query has no word")
        try:
            parsed = self._index.parse_query(" ".join(words), list(self._weights), field_boosts=self._weights)
        except ValueError as error:
            raise QueryRefusedError(str(error)) from None
        searcher = self._index.searcher()
        hits = searcher.search(parsed, k, count=False).hits
        return [(searcher.doc(address)["id"][0], float(score)) for score, address in hits]


_BATCH = 512  # texts per call of the embedding function


class Dense(Engine):
    """Exact nearest neighbors by cosine similarity, in NumPy."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "embed": Setting(
            "",
            (),
            "Python function, as module:function, that returns an array of shape (n, d) for n"
            " texts; if empty, WordLlama is used",
        ),
        "dimensions": Setting(256, (64, 128, 256), "dimensions of WordLlama vectors"),
    }
    libraries = ("wordllama",)

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Embed titles and texts."""
        embed = configuration["embed"]
        self._embed = import_function(embed) if embed else _wordllama(int(configuration["dimensions"]))
        self._ids = list(documents)
        texts = [title_and_text(text) for text in documents.values()]
        parts = [self._unit_vectors(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        self._vectors = np.concatenate(parts)
        np.save(folder / "vectors.npy", self._vectors)
        self._folder = folder

    def _unit_vectors(self, texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return vectors of length 1; a text without a direction has the zero vector."""
        vectors = np.asarray(self._embed(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            problem = f"`embed` must return {len(texts)} rows of finite numbers, got an array of shape {vectors.shape}"
            raise InputError(problem, fix="return one row per text")
        length = np.sqrt((vectors**2).sum(axis=1, keepdims=True, dtype=np.float32))
        return (vectors / np.where(length > 0, length, 1)).astype(np.float32)

    def size(self) -> int:
        """Return the size of the vectors in bytes."""
        return folder_size(self._folder)

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the nearest documents; ties are in the order of indexing."""
        query_vector = self._unit_vectors([query])[0]
        if not query_vector.any():
            raise QueryRefusedError("the vector of the query is zero")
        cosine = self._vectors @ query_vector
        return [(self._ids[row], float(cosine[row])) for row in np.argsort(-cosine, kind="stable")[:k].tolist()]


def _wordllama(dimensions: int) -> Callable[[list[str]], Any]:
    """Load static vectors whose weights are part of the package, so nothing is downloaded."""
    try:
        import wordllama
    except ImportError:
        raise MissingExtraError("wordllama", "engines") from None
    package = Path(wordllama.__file__).parent
    model: Any = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    return lambda texts: model.embed(texts)[:, :dimensions]
