"""tantivy: a search engine library of its own, with fields and BM25 whose k1 is 1.2 and whose b is 0.75."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import MissingExtraError
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting, folder_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Configuration, Hit

_WORD = re.compile(r"\w+")
_OPERATORS = {"AND", "OR", "NOT", "IN", "TO"}
_MEMORY = 50_000_000  # bytes that a writer may hold


class Tantivy(Engine):
    """BM25 of tantivy over titles and texts; any word of the query may match."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "stemmer": Setting("english", ("none", "english"), "how words are brought to their stem (Snowball)"),
        "stop_words": Setting("none", ("none", "english"), "words that are not indexed"),
        "tokens": Setting("words", ("words", "trigrams"), "what is indexed"),
        "title_weight": Setting(1.0, (), "what a word of the title counts, beside 1 for the text", 0),
    }
    libraries = ("tantivy",)

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Index titles and texts."""
        try:
            import tantivy
        except ImportError:
            raise MissingExtraError("tantivy", "engines") from None
        grams = configuration["tokens"] == "trigrams"
        tokenizer = tantivy.Tokenizer.ngram(3, 3, False) if grams else tantivy.Tokenizer.simple()
        analyser = tantivy.TextAnalyzerBuilder(tokenizer).filter(tantivy.Filter.lowercase())
        if configuration["stop_words"] == "english":
            analyser = analyser.filter(tantivy.Filter.stopword("english"))
        if configuration["stemmer"] == "english":
            analyser = analyser.filter(tantivy.Filter.stemmer("english"))
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        for name in ("title", "text"):
            schema.add_text_field(name, tokenizer_name="judged")
        self._index: Any = tantivy.Index(schema.build(), path=str(folder))
        self._index.register_tokenizer("judged", analyser.build())
        writer = self._index.writer(_MEMORY, 1)
        for doc, (title, text) in documents.items():
            writer.add_document(tantivy.Document(id=doc, title=title, text=text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._weights = {"title": float(configuration["title_weight"]), "text": 1.0}
        self._folder = folder

    def size(self) -> int:
        """Add up the files of the index."""
        return folder_size(self._folder)

    def search(self, query: str, k: int) -> list[Hit]:
        """Ask for documents with any of the query's words."""
        words = [word.lower() if word in _OPERATORS else word for word in _WORD.findall(query)]
        if not words:
            raise QueryRefusedError("the query has no word")
        try:
            parsed = self._index.parse_query(" ".join(words), list(self._weights), field_boosts=self._weights)
        except ValueError as error:
            raise QueryRefusedError(str(error)) from None
        searcher = self._index.searcher()
        hits = searcher.search(parsed, k, count=False).hits
        return [(searcher.doc(address)["id"][0], float(score)) for score, address in hits]
