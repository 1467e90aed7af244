"""The typed tables of a log, and what its names of actions mean."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Type: TypeAlias = Literal[
    "int64", "int32", "float64", "string", "boolean", "array<string>", "array<int32>", "array<float64>"
]


@dataclass(frozen=True)
class Column:
    """A column of a typed table: its name, its type, whether it may be null, and what it means."""

    name: str
    type: Type
    null: bool
    meaning: str


def arrow_type(type: Type) -> Any:
    """Give one of our types in Arrow's words."""
    import pyarrow as pa

    inner = pa.type_for_alias(type.removeprefix("array<").removesuffix(">"))
    return pa.list_(inner) if type.startswith("array<") else inner


_FILE = tomllib.loads((resources.files("judged.online") / "tables.toml").read_text(encoding="utf-8"))


def _columns(table: dict[str, tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(
        Column(name, cast("Type", kind.removesuffix("?")), kind.endswith("?"), meaning)
        for name, (kind, meaning) in table.items()
    )


SERP, SHOWN, EVENT, SESSION = (_columns(_FILE[name]) for name in ("serp", "shown", "event", "session"))
"""One row a page of results; a result on a page; an event; a session."""

RAW_QUERY, RAW_EVENT = (_columns(_FILE["raw"][name]) for name in ("query", "event"))
"""One row a logged query, or page of its results; one row a logged event."""

ACTIONS: tuple[str, ...] = tuple(_FILE["actions"])
"""The actions that metrics know. Readers map the log's own names onto them."""

CONVENTIONS = ("marginal", "conditional", "independent")
"""What a logged propensity is the probability of: the document at its rank over all pages that the policy may show
(marginal), or given the documents at higher ranks (conditional). If each rank is filled on its own (independent), both
are the same."""

AFTER_THE_CLICK = ("heartbeat", "add_to_cart", "purchase")
"""What a user does on an opened result: none of it ends the visit."""

RETURNS = ("click", "impression", "hover", "copy", "search")
"""What shows that a user is back from an opened result; so does a ``page_exit`` that names what was opened."""

ATTRIBUTE_LIMIT = 50
"""So many columns of a log's own are kept for slicing."""


NAMES: dict[str, str] = {action: names for action, (_, names) in _FILE["actions"].items() if names}
"""The names by which logs call each action."""

_KNOWN = {name: action for action, names in NAMES.items() for name in names.split()}


def action_of(name: str, actions: Mapping[str, str] | None = None) -> str | None:
    """Tell what a log's name of an action means.

    Parameters
    ----------
    name
        As the log has it. Case does not matter, and blanks and hyphens are as good as underscores.
    actions
        What this log says itself, which goes first.

    Returns
    -------
    str or None
        One of ACTIONS; None: nobody knows.

    Examples
    --------
    >>> action_of("Item-Click"), action_of("view"), action_of("view", {"view": "click"})
    ('click', None, 'click')
    """
    given = actions or {}
    if name in given:
        return given[name]
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    return plain if plain in ACTIONS else _KNOWN.get(plain)


def checked(actions: Mapping[str, str]) -> dict[str, str]:
    """Check that names mean actions that there are.

    Raises
    ------
    InputError
        If one does not.
    """
    for name, action in actions.items():
        if action not in ACTIONS:
            raise InputError(
                f"{name!r} is said to mean {action!r}, which is no action", fix=f"one of {', '.join(ACTIONS)}"
            )
    return dict(actions)
