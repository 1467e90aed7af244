"""SQLite's full-text index FTS5: part of Python, so that an experiment needs nothing installed."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, ClassVar

from judged.errors import InputError
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Configuration, Hit

_TOKENISERS = {"none": "unicode61", "english": "porter unicode61", "trigram": "trigram"}
_WORD = re.compile(r"\w+")
_ASK = "select id, -bm25(docs, 0, ?, 1.0) from docs where docs match ? order by 2 desc, id limit ?"


class SqliteFts5(Engine):
    """BM25 of FTS5, whose k1 is 1.2 and whose b is 0.75; any word of the query may match."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "stemmer": Setting("english", ("none", "english"), "how words are brought to their stem (Porter)"),
        "tokens": Setting("words", ("words", "trigrams"), "what is indexed"),
        "title_weight": Setting(1.0, (), "what a word of the title counts, beside 1 for the text", 0),
    }
    cannot = (({"tokens": "trigrams", "stemmer": "english"}, "trigrams have no stem"),)

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Index titles and texts."""
        trigrams = configuration["tokens"] == "trigrams"
        if trigrams and configuration["stemmer"] != "none":
            raise InputError("trigrams have no stem", fix="set stemmer = 'none'")
        self._weight = float(configuration["title_weight"])
        self._word = re.compile(r"\w{3,}") if trigrams else _WORD
        self._index = sqlite3.connect(folder / "index.sqlite", check_same_thread=False)
        tokeniser = _TOKENISERS["trigram" if trigrams else configuration["stemmer"]]
        self._index.execute(f"create virtual table docs using fts5(id unindexed, title, text, tokenize='{tokeniser}')")
        with self._index:
            rows = ((doc, title, text) for doc, (title, text) in documents.items())
            self._index.executemany("insert into docs values (?, ?, ?)", rows)
            self._index.execute("insert into docs(docs) values ('optimize')")
        self._file = folder / "index.sqlite"

    def size(self) -> int:
        """Give the size of the database."""
        return self._file.stat().st_size

    def search(self, query: str, k: int) -> list[Hit]:
        """Ask for documents with any of the query's words."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(self._word.findall(query)))
        if not words:
            raise QueryRefusedError("the query has no word")
        return self._index.execute(_ASK, (self._weight, words, k)).fetchall()

    def close(self) -> None:
        """Close the database."""
        self._index.close()
