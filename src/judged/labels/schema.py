"""Tables of a label store, for SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, UniqueConstraint

from judged.labels.database import StoreLayout

metadata = MetaData()
_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements only INTEGER keys


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, String, nullable=False) for name in names]


about = Table("about", metadata, Column("name", String, primary_key=True), Column("value", String, nullable=False))
LAYOUT = StoreLayout(about, 1, "labels", "judged labels new")
scale = Table("scale", metadata, Column("grade", Float, primary_key=True), *_texts("word", "definition"))
topics = Table(
    "topics",
    metadata,
    Column("query_id", String, primary_key=True),
    Column("text", String, nullable=False),
    Column("description", String, nullable=False, default=""),
    Column("narrative", String, nullable=False, default=""),
    Column("synthetic", Boolean, nullable=False, default=False),  # generated from documents
)
documents = Table(
    "documents",
    metadata,
    Column("doc_id", String, primary_key=True),
    Column("title", String, nullable=False, default=""),
    Column("text", String, nullable=False, default=""),
)
judges = Table(
    "judges",
    metadata,
    Column("judge", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("token", String, nullable=False, default=""),  # SHA-256 of the login token
)
tasks = Table(
    "tasks",
    metadata,
    Column("task", _ID, primary_key=True, autoincrement=True),
    *_texts("query_id", "doc_id"),
    Column("judge", String, nullable=False),  # empty: any judge
    Column("repeat", Integer, nullable=False),  # above 0: the judge has judged the pair before
    Column("gold", Float),  # known correct grade, to measure the accuracy of judges
    Column("priority", Integer, nullable=False),  # lower numbers first; ties in random order
    UniqueConstraint("query_id", "doc_id", "judge", "repeat"),
)
labels = Table(
    "labels",
    metadata,
    Column("label", _ID, primary_key=True, autoincrement=True),
    *_texts("query_id", "doc_id", "judge", "kind"),
    Column("repeat", Integer, nullable=False),
    Column("grade", Float),
    Column("valid", Boolean, nullable=False),
    Column("note", String, nullable=False),
    Column("seconds", Float),
    *_texts("time", "prompt", "model"),
    Column("seed", BigInteger),
    Column("logprobs", String, nullable=False),
    Index("labels_of_judge", "judge", "query_id", "doc_id", "repeat"),
)
replies = Table(
    "replies",
    metadata,
    Column("request", String, primary_key=True),  # SHA-256 of the request to a model
    Column("reply", String, nullable=False),  # JSON
    Column("time", String, nullable=False),
)
