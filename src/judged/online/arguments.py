"""What arguments may be: one rule for each name, whichever function it is given to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, cast

from judged.errors import InputError
from judged.online.log import InteractionLog


class _Rule(NamedTuple):
    """What a value must be, and what to give instead."""

    holds: Callable[[Any], bool]
    fix: str


def _number(least: float, most: float, fix: str, *, ends: tuple[bool, bool] = (False, False)) -> _Rule:
    """Take a number between two, which may be taken themselves."""

    def holds(value: Any) -> bool:
        number = float(value) if isinstance(value, Real) else math.nan
        return least <= number <= most and (ends[0] or number > least) and (ends[1] or number < most)

    return _Rule(holds, fix)


def _whole(least: float, fix: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, Integral) and int(value) >= least, f"give a whole number{fix}")


def _one_of(*names: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, str) and value in names, f"take {' or '.join(names)}")


_TEXT = _Rule(lambda value: isinstance(value, str | None), "give a text")
_MANY = _Rule(lambda value: isinstance(value, str | Iterable | None), "give a name, or a list of names")
_SHARE = _number(0, 1, "give a number between 0 and 1, such as 0.95")
_SECONDS = _number(0, 1e9, "give a number of seconds, from 0 to 1e9", ends=(True, True))
_RULES = {
    **dict.fromkeys(("by", "where", "baseline", "since", "layout", "name", "memory", "tables"), _TEXT),
    **dict.fromkeys(("metrics", "measures", "lists", "rules", "outcomes"), _MANY),
    **dict.fromkeys(("level", "alpha", "fdr", "power"), _SHARE),
    **dict.fromkeys(("reformulation_gap", "attribution_window", "success", "dwell"), _SECONDS),
    **dict.fromkeys(("session_gap", "bot_minutes"), _number(0, math.inf, "give a number above 0")),
    **dict.fromkeys(("bins", "least_pages", "min_users", "bot_pages", "threads", "expected"), _whole(1, ", 1 or more")),
    **dict.fromkeys(("seed", "warm_up", "now_ms"), _whole(-math.inf, "")),
    "winsorise": _number(0, 1, "give a number above 0 and at most 1, such as 0.999", ends=(False, True)),
    "least_judged": _number(0, 1, "give a number from 0 to 1, such as 0.8", ends=(True, True)),
    "window_days": _number(0, 1e5, "give a number of days above 0, such as 7"),
    "before_days": _number(0, 1e5, "give a number of days from 0, such as 14", ends=(True, False)),
    "margin_relative": _number(0, 1, "give a share from 0, such as 0.02 for 2%", ends=(True, False)),
    **dict.fromkeys(("resamples", "splits"), _whole(100, ", 100 or more")),
    "depth": _whole(2, ", 2 or more"),
    "rank_base": _Rule(lambda value: isinstance(value, Integral) and value in {0, 1}, "give a whole number, 0 or 1"),
    "actions": _Rule(lambda value: isinstance(value, Mapping), "give {the log's name: one of ACTIONS}"),
    "mapping": _Rule(lambda value: isinstance(value, str | Path), "give a text: a path, or the name of a mapping"),
    "unit": _one_of("user", "session"),
    "interval": _one_of("delta", "bootstrap"),
    "row": _one_of("page", "session"),
    "every": _one_of("hour", "day", "week"),
    "pages": _one_of("first", "all"),
    "bots": _one_of("exclude", "keep"),
}
_OPTIONAL = frozenset({"warm_up", "now_ms", "threads", "rank_base", "actions", "mapping", "window_days"})


def need(**given: object) -> None:
    """Refuse what is not as the rule of its name says.

    >>> need(level=2)
    Traceback (most recent call last):
    judged.errors.InputError: level is 2. Fix: give a number between 0 and 1, such as 0.95.
    """
    for name, value in given.items():
        if name == "log":
            if not isinstance(value, InteractionLog):
                path = f'"{value}"' if isinstance(value, str) and len(value) < 80 else "path"
                raise InputError(f"a {type(value).__name__} is no log", fix=f"read it first: read_log({path})")
        elif name in _OPTIONAL and value is None:
            continue
        elif (isinstance(value, bool) and _RULES[name] not in {_TEXT, _MANY}) or not _RULES[name].holds(value):
            raise InputError(f"{name} is {value!r:.60}", fix=_RULES[name].fix)


def need_column(log: InteractionLog, name: str) -> None:
    """Refuse what is no column of a log's pages."""
    if name not in log.serp.columns:
        fix = f"take one of {', '.join(log.serp.columns)}"
        raise InputError(f"the log has no column {name!r}", fix=fix, path=log.name)


def names_of(**values: object) -> list[str]:
    """Give names, one or several, each once; anything else is refused.

    >>> names_of(rules="above"), names_of(rules=["above", "next", "above"])
    (['above'], ['above', 'next'])
    """
    need(**values)
    found: list[str] = []
    for name, value in values.items():
        for one in [value] if isinstance(value, str) else list(cast("Iterable[object]", value or ())):
            if not isinstance(one, str):
                raise InputError(f"{name} is {one!r:.60}", fix="give a name, or a list of names")
            found.append(one)
    return list(dict.fromkeys(found))
