"""bm25s: BM25 and its relatives, with scores computed before anybody asks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import MissingExtraError
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting, folder_size, whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Configuration, Hit

_METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
_WORD = re.compile(r"\w\w")  # bm25s leaves out words of one letter


class Bm25s(Engine):
    """BM25 over titles and texts as one field; documents without any word of the query are not returned."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "stemmer": Setting("english", ("none", "english"), "how words are brought to their stem (Snowball)"),
        "stop_words": Setting("english", ("none", "english"), "words that are not indexed"),
        "method": Setting("lucene", _METHODS, "the variant of BM25"),
        "k1": Setting(1.5, (), "how fast repeated words stop to count", 0),
        "b": Setting(0.75, (), "how much long documents are held back", 0, 1),
    }
    libraries = ("bm25s", "PyStemmer")

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Index titles and texts."""
        try:
            import bm25s
            import Stemmer
        except ImportError:
            raise MissingExtraError("bm25s", "engines") from None
        self._library: Any = bm25s
        self._stemmer = Stemmer.Stemmer("english") if configuration["stemmer"] == "english" else None
        self._stop = "en" if configuration["stop_words"] == "english" else []
        self._ids = list(documents)
        self._index = bm25s.BM25(
            k1=float(configuration["k1"]), b=float(configuration["b"]), method=configuration["method"]
        )
        self._index.index(self._tokens([whole(text) for text in documents.values()]), show_progress=False)
        self._index.save(str(folder / "index"))
        self._folder = folder

    def _tokens(self, texts: list[str]) -> Any:
        return self._library.tokenize(texts, stopwords=self._stop, stemmer=self._stemmer, show_progress=False)

    def size(self) -> int:
        """Add up the files of the saved index."""
        return folder_size(self._folder)

    def search(self, query: str, k: int) -> list[Hit]:
        """Ask for documents with any of the query's words."""
        if not _WORD.search(query):
            raise QueryRefusedError("the query has no word of two letters")
        # it would choose by JAX where that is installed, and give documents of equal scores in another order
        how: dict[str, Any] = {"show_progress": False, "n_threads": 0, "backend_selection": "numpy"}
        places, scores = self._index.retrieve(self._tokens([query]), k=min(k, len(self._ids)), **how)
        found = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._ids[place], score) for place, score in found if score > 0]
