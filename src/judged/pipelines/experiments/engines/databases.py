"""Full-text search of databases: SQLite FTS5, which is part of Python, and PostgreSQL."""

from __future__ import annotations

import re
import sqlite3
import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError, MissingExtraError
from judged.pipelines.experiments.engines.base import Engine, QueryRefusedError, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import EngineSettings, Hit


_TOKENIZERS = {"none": "unicode61", "english": "porter unicode61", "trigram": "trigram"}
_WORD = re.compile(r"\w+")
_SEARCH = "select id, -bm25(docs, 0, ?, 1.0) from docs where docs match ? order by 2 desc, id limit ?"


class SqliteFts5(Engine):
    """BM25 of FTS5 with k1 = 1.2 and b = 0.75. A document matches if it has any word of the query."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "stemmer": Setting("english", ("none", "english"), "stemmer (Porter)"),
        "tokens": Setting("words", ("words", "trigrams"), "index terms: words or character trigrams"),
        "title_weight": Setting(1.0, (), "weight of title words; text words have weight 1", 0),
    }
    incompatible = (({"tokens": "trigrams", "stemmer": "english"}, "trigrams cannot be stemmed"),)

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Index titles and texts."""
        trigrams = configuration["tokens"] == "trigrams"
        if trigrams and configuration["stemmer"] != "none":
            raise InputError("trigrams cannot be stemmed", fix="set stemmer = 'none'")
        self._weight = float(configuration["title_weight"])
        self._word = re.compile(r"\w{3,}") if trigrams else _WORD
        self._index = sqlite3.connect(folder / "index.sqlite", check_same_thread=False)
        tokenizer = _TOKENIZERS["trigram" if trigrams else configuration["stemmer"]]
        self._index.execute(f"create virtual table docs using fts5(id unindexed, title, text, tokenize='{tokenizer}')")
        with self._index:
            rows = ((doc, title, text) for doc, (title, text) in documents.items())
            self._index.executemany("insert into docs values (?, ?, ?)", rows)
            self._index.execute("insert into docs(docs) values ('optimize')")
        self._file = folder / "index.sqlite"

    def size(self) -> int:
        """Return the size of the database in bytes."""
        return self._file.stat().st_size

    def terms(self, query: str) -> list[str]:
        """Return the different words of a query in their order."""
        return list(dict.fromkeys(self._word.findall(query)))

    def search(self, query: str, k: int) -> list[Hit]:
        """Return documents with any word of the query."""
        words = " OR ".join(f'"{word}"' for word in self.terms(query))
        if not words:
            raise QueryRefusedError("the query has no word")
        return self._index.execute(_SEARCH, (self._weight, words, k)).fetchall()

    def search_weighted(self, weights: Mapping[str, float], k: int) -> list[Hit]:
        """Return documents with any term whose weight is above 0. Scores are weighted sums of the terms' BM25 scores.

        Weights of 1 for all `terms` of a query return the same documents and scores as `search`.
        """
        scores = dict[str, float]()
        for term, weight in weights.items():
            # BM25 is a sum over terms, so each term can be searched separately. A limit of -1 returns all documents.
            rows = self._index.execute(_SEARCH, (self._weight, f'"{term}"', -1)) if weight > 0 else ()
            for doc, score in rows:
                scores[doc] = scores.get(doc, 0.0) + weight * score
        return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:k]

    def close(self) -> None:
        """Close the database."""
        self._index.close()


_CONFIGURATIONS = {"none": "simple", "english": "english"}
_RANKS = {"frequency": "ts_rank", "cover": "ts_rank_cd"}


class PostgreSql(Engine):
    """``ts_rank`` over titles (weight A or D) and texts (D), not BM25. Any word of the query may match."""

    settings: ClassVar[Mapping[str, Setting]] = {
        "dsn": Setting(
            "",
            (),
            "connection string of PostgreSQL; if empty, the environment variables of libpq are used, such as PGHOST",
        ),
        "stemmer": Setting(
            "english",
            ("none", "english"),
            "text search configuration of PostgreSQL: none selects `simple`, english selects `english`",
        ),
        "rank": Setting(
            "frequency",
            tuple(_RANKS),
            "ranking function of PostgreSQL: frequency selects ts_rank; cover selects"
            " ts_rank_cd, which also uses the proximity of words",
        ),
        "normalization": Setting(
            2,
            (),
            "bit mask of PostgreSQL for normalization by document length; 0: no"
            " normalization; 2: division by the length",
            0,
            63,
        ),
        "title_weight": Setting(
            "D", ("A", "D"), "weight class of title words; text words have class D, and A counts ten times as much as D"
        ),
    }
    libraries = ("psycopg",)
    runs_externally = True

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Create and fill a table, which `close` drops."""
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("psycopg", "engines") from None
        try:
            self._server: Any = psycopg.connect(configuration["dsn"], autocommit=True)
        except psycopg.OperationalError as error:
            raise InputError(
                f"cannot connect to PostgreSQL: {error}".strip(), fix="start the server, and set `dsn`"
            ) from None
        self._refused = psycopg.Error
        self._words = _CONFIGURATIONS[configuration["stemmer"]]
        self._rank, self._normalization = _RANKS[configuration["rank"]], int(configuration["normalization"])
        self._table = f"judged_{uuid.uuid4().hex}"
        self._execute(f"CREATE UNLOGGED TABLE {self._table} (id text, words tsvector)")
        weight = configuration["title_weight"]
        vector_expression = (
            f"setweight(to_tsvector('{self._words}', %s), '{weight}') || to_tsvector('{self._words}', %s)"
        )
        rows = [(doc, *(part.replace("\0", " ") for part in text)) for doc, text in documents.items()]
        with self._server.cursor() as cursor, self._server.transaction():
            cursor.executemany(f"INSERT INTO {self._table} VALUES (%s, {vector_expression})", rows)
        self._execute(f"CREATE INDEX ON {self._table} USING gin (words)")
        self._execute(f"ANALYZE {self._table}")
        self._search_statement = (
            f"SELECT id, {self._rank}(words, query, {self._normalization}) AS score"
            f" FROM {self._table}, to_tsquery('{self._words}', %s) query WHERE words @@ query"
            " ORDER BY score DESC, id LIMIT %s"
        )

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        return self._server.execute(statement, values)

    def size(self) -> int:
        """Return the size of the table and its index in bytes."""
        return self._execute("SELECT pg_total_relation_size(%s)", (self._table,)).fetchone()[0]

    def search(self, query: str, k: int) -> list[Hit]:
        """Return documents with any word of the query."""
        words = list(dict.fromkeys(_WORD.findall(query)))
        if not words:
            raise QueryRefusedError("the query has no word")
        try:
            rows = self._execute(self._search_statement, (" | ".join(f"'{word}'" for word in words), k)).fetchall()
        except self._refused as error:
            raise QueryRefusedError(str(error)) from None
        return [(doc, float(score)) for doc, score in rows]

    def close(self) -> None:
        """Drop the table and close the connection."""
        self._execute(f"DROP TABLE {self._table}")
        self._server.close()
