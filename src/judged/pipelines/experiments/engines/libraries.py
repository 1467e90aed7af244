"""Engines of Python libraries: bm25s and tantivy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import MissingExtraError
from judged.pipelines.experiments.engines.base import (
    Engine,
    QueryRefusedError,
    Setting,
    folder_size,
    title_and_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
