"""Database tables of a running study, for SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, MetaData, String, Table

from judged.labels.database import StoreLayout

metadata = MetaData()
_TRIAL = ("participant", "position")
_TYPES: dict[str, type] = {
    **dict.fromkeys(("position", "number", "page", "rank"), Integer),
    **dict.fromkeys(("practice", "personal"), Boolean),
    "time": BigInteger,
    **dict.fromkeys(("value", "weight"), Float),
}


def _table(table: str, *names: str, keys: int = 0, optional: tuple[str, ...] = (), **types: type) -> Table:
    """Create a table whose first `keys` columns are the primary key; only `optional` columns may be null."""
    kinds = _TYPES | types
    columns = (
        Column(name, kinds.get(name, String), primary_key=i < keys, nullable=name in optional, autoincrement=False)
        for i, name in enumerate(names)
    )
    return Table(table, metadata, *columns)


about = _table("study", "name", "value", keys=1, value=String)
LAYOUT = StoreLayout(about, 1, "answers of a study", "judged study links DESIGN --store")
# number: index of a participant in the group, from 0, in the order of enrollment
participants = _table("participants", "participant", "group", "number", keys=1)
assignments = _table("assignments", *_TRIAL, "query_id", "system", "variant", "practice", keys=2)
steps = _table("steps", "participant", "step", "time", keys=2)  # pages that a participant completed
answers = _table(
    "answers", *_TRIAL, "system", "questionnaire", "item", "value", "text", "personal", keys=5, optional=("value",)
)
preferences = _table("preferences", "participant", "query_id", "left", "right", "preferred", "reason", keys=4)
_OPTIONAL = ("query", "doc_id", "rank", "value", "shown")  # shown: JSON, a list of ids
# number: index of an action, from 1. As part of the key, it lets only one of two processes add the next action.
actions = _table("actions", *_TRIAL, "number", "time", "action", "page", *_OPTIONAL, keys=3, optional=_OPTIONAL)
weights = _table("weights", *_TRIAL, "page", "term", "weight", keys=4)  # of terms, by result page
notes = _table("notes", *_TRIAL, "time", "text")
notes.append_column(Column("note", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True))
