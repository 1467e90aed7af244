"""What is no argument at all, refused in words: else Python or the database would complain, far from the mistake."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import cast

from judged.errors import InputError
from judged.online.log import InteractionLog


def need_log(value: object) -> None:
    """Refuse what is no log.

    Raises
    ------
    InputError
        If it is none.

    Examples
    --------
    >>> need_log("log.ndjson")
    Traceback (most recent call last):
    judged.errors.InputError: a str is no log. Fix: read it first: read_log("log.ndjson").
    """
    if not isinstance(value, InteractionLog):
        path = f'"{value}"' if isinstance(value, str) and len(value) < 80 else "path"
        raise InputError(f"a {type(value).__name__} is no log", fix=f"read it first: read_log({path})")


def need_numbers(*, whole: bool = False, **values: object) -> None:
    """Refuse what is no number, or no whole one; which numbers make sense is told elsewhere.

    Raises
    ------
    InputError
        If one is none.

    Examples
    --------
    >>> need_numbers(level="95 %")
    Traceback (most recent call last):
    judged.errors.InputError: level is '95 %'. Fix: give a number.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
            raise InputError(f"{name} is {value!r:.60}", fix=f"give a {'whole number' if whole else 'number'}")


def need_texts(**values: object) -> None:
    """Refuse what is neither a text nor None.

    Raises
    ------
    InputError
        If one is neither.

    Examples
    --------
    >>> need_texts(by=3)
    Traceback (most recent call last):
    judged.errors.InputError: by is 3. Fix: give a text.
    """
    for name, value in values.items():
        if not isinstance(value, str | None):
            raise InputError(f"{name} is {value!r:.60}", fix="give a text")


def need_several(**values: object) -> None:
    """Refuse what is neither a text nor several things nor None.

    Raises
    ------
    InputError
        If one is nothing of the sort.

    Examples
    --------
    >>> need_several(outcomes=3)
    Traceback (most recent call last):
    judged.errors.InputError: outcomes is 3. Fix: give a name, or a list of names.
    """
    for name, value in values.items():
        if not isinstance(value, str | Iterable | None):
            raise InputError(f"{name} is {value!r:.60}", fix="give a name, or a list of names")


def names_of(**values: object) -> list[str]:
    """Give one name, or several, as a list in which each stands once.

    Parameters
    ----------
    **values
        What was given, under the name of the argument.

    Raises
    ------
    InputError
        If it holds anything else.

    Examples
    --------
    >>> names_of(rules="above"), names_of(rules=("above", "next", "above"))
    (['above'], ['above', 'next'])
    >>> names_of(rules=[3])
    Traceback (most recent call last):
    judged.errors.InputError: rules is 3. Fix: give a name, or a list of names.
    """
    need_several(**values)
    found: list[str] = []
    for name, value in values.items():
        for one in [value] if isinstance(value, str) else list(cast("Iterable[object]", value or ())):
            if not isinstance(one, str):
                raise InputError(f"{name} is {one!r:.60}", fix="give a name, or a list of names")
            found.append(one)
    return list(dict.fromkeys(found))
