"""The database below a store of labels: how it is opened, what it can hold, and what of its address may be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def engine_of(where: str) -> Engine:
    """Connect to a file of SQLite, or to PostgreSQL."""
    from sqlalchemy import create_engine, event

    if where.startswith(("postgresql://", "postgres://")):
        return create_engine("postgresql+psycopg://" + where.partition("://")[2], hide_parameters=True)
    address = where if where.startswith("sqlite:") else f"sqlite:///{where}"
    engine = create_engine(address, hide_parameters=True)  # errors do not quote texts, answers, and tokens

    @event.listens_for(engine, "connect")
    def careful(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        for said in ("synchronous=FULL", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {said}")

    return engine


def storable(name: str, value: Any) -> Any:
    """Replace what no database can hold in a text: NUL and halves of characters; refuse it in ids."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    held = value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if held != value and name in {"query_id", "doc_id"}:
        raise InputError(f"the {name} {value!r:.60} has a character that no text can hold", fix="give it another id")
    return held


def without_password(where: str | Path) -> str:
    """Write an address without the password, wherever it stands.

    >>> without_password("postgresql://ann:a:b@c@host/labels?password=d"), without_password("labels.db")
    ('postgresql://ann@host/labels', 'labels.db')
    """
    scheme, separator, rest = str(where).partition("://")
    user, at, place = rest.partition("?")[0].rpartition("@")
    return f"{scheme}{separator}{user.partition(':')[0]}{at}{place}"
