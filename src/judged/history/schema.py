"""Tables of a history, for SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table

from judged.labels.database import StoreLayout

metadata = MetaData()
_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements only INTEGER keys

about = Table("history", metadata, Column("name", String, primary_key=True), Column("value", String, nullable=False))
LAYOUT = StoreLayout(about, 1, "evaluations", "judged history add QRELS RUN --history")
# Runs, judgments, and scores as Parquet. The key is the hash of what they contain, or of what they are computed from:
# a run that did not change since the last evaluation is stored once.
data = Table("data", metadata, Column("key", String, primary_key=True), Column("parquet", LargeBinary, nullable=False))
evaluations = Table(
    "evaluations",
    metadata,
    Column("number", _ID, primary_key=True, autoincrement=True),
    *(Column(name, String, nullable=False) for name in ("time", "system", "commit", "tag", "run", "qrels", "settings")),
    Index("evaluations_of_system", "system", "time"),
)
