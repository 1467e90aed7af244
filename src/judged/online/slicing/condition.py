"""Pages that meet a condition on what is logged of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.data.expression import Expression
from judged.errors import InputError
from judged.online.tables import SERP

if TYPE_CHECKING:
    from judged.online.engine import Relation
    from judged.online.log import InteractionLog

_KINDS = {"VARCHAR": "O", "BOOLEAN": "b", **dict.fromkeys(("BIGINT", "INTEGER", "SMALLINT", "DOUBLE"), "f")}
_KEYS = ("serp", "session", "user")


def pages_where(log: InteractionLog, where: str) -> tuple[Relation, str]:
    """Choose the pages that meet a condition; what comes of them, and what follows them, is that of the whole log.

    Parameters
    ----------
    log
        The log.
    where
        An expression (`judged.data.expression.Expression`) over columns of `serp`, attributes of the log's own too.

    Returns
    -------
    chosen : Relation
        ``serp`` of each.
    said : str
        The condition, and how many pages meet it.

    Raises
    ------
    InputError
        If it is no such expression, or no page meets it.
    """
    own = {*(column.name for column in SERP), *log.attributes}
    types = {name: kind for name, kind in log.serp.types.items() if name in own and name not in _KEYS}
    kinds = {name: _KINDS.get(kind, "O" if kind.startswith("ENUM") else "") for name, kind in types.items()}
    condition = Expression(where).sql({name: kind for name, kind in kinds.items() if kind})
    chosen = log.engine.keep(f"SELECT serp FROM {log.serp} WHERE {condition}", "chosen")
    pages = f"SELECT (SELECT count(*) FROM {chosen}) AS chosen, (SELECT count(*) FROM {log.serp}) AS pages"
    found = log.engine.rows(pages)[0]
    if not found["chosen"]:
        raise InputError(f"no page meets {where!r:.80}", fix="write another condition", path=", ".join(log.files))
    return chosen, f"{where}: {found['chosen']:,} of {found['pages']:,} pages"
