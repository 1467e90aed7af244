"""The tables of a study that runs, in the words that SQLite and PostgreSQL share."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, MetaData, String, Table

from judged.labels.database import Layout

metadata = MetaData()


def _column(name: str, kind: type = String, *, key: bool = False) -> Column[str]:
    return Column(name, kind, primary_key=key, nullable=False, autoincrement=False)


about = Table("study", metadata, _column("name", key=True), _column("value"))
LAYOUT = Layout(about, 1, "answers of a study", "judged study links DESIGN --store")
participants = Table(
    "participants",
    metadata,
    _column("participant", key=True),
    _column("group"),
    _column("number", Integer),  # in the group, from 0, in the order in which they came
)
assignments = Table(
    "assignments",
    metadata,
    _column("participant", key=True),
    _column("position", Integer, key=True),
    _column("query_id"),
    _column("system"),
    _column("variant"),
    _column("practice", Boolean),
)
steps = Table(  # the pages that a participant has passed
    "steps", metadata, _column("participant", key=True), _column("step", key=True), _column("at", BigInteger)
)
answers = Table(
    "answers",
    metadata,
    _column("participant", key=True),
    _column("position", Integer, key=True),
    _column("system", key=True),
    _column("questionnaire", key=True),
    _column("item", key=True),
    Column("value", Float),
    _column("text"),
    _column("personal", Boolean),
)
preferences = Table(
    "preferences",
    metadata,
    _column("participant", key=True),
    _column("query_id", key=True),
    _column("left", key=True),
    _column("right", key=True),
    _column("preferred"),
    _column("why"),
)
actions = Table(
    "actions",
    metadata,
    _column("participant", key=True),
    _column("position", Integer, key=True),
    _column("number", Integer, key=True),  # from 1: of two processes only one can add the next
    _column("at", BigInteger),
    _column("action"),
    _column("page", Integer),
    Column("query", String),
    Column("doc_id", String),
    Column("rank", Integer),
    Column("value", Float),
    Column("shown", String),  # JSON: a list of ids
)
notes = Table(
    "notes",
    metadata,
    Column("note", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    _column("participant"),
    _column("position", Integer),
    _column("at", BigInteger),
    _column("text"),
)
