"""A search engine that returns documents with all words of the query, shortest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from judged.pipelines.experiments.engines.base import Engine, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import EngineSettings, Hit


class Shortest(Engine):
    """Documents with all words of the query, by number of words."""

    settings: ClassVar[Mapping[str, Setting]] = {"lower": Setting(default=True, meaning="ignore case")}

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Store the words of each document."""
        del folder
        self._lower = configuration["lower"]
        self._words = {doc_id: self._split(f"{text.title} {text.text}") for doc_id, text in documents.items()}

    def _split(self, text: str) -> list[str]:
        return (text.lower() if self._lower else text).split()

    def size(self) -> None:
        """Return None, because the engine has no index on disk."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the first k documents with their scores."""
        query_words = set(self._split(query))
        hits = [(doc_id, -float(len(words))) for doc_id, words in self._words.items() if query_words <= set(words)]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]
