"""Check that values of JSON have the types that their reader expects."""

from __future__ import annotations

from math import isfinite
from typing import Any

from judged.data.ids import shown

_WORDS: dict[Any, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "an object",
    type(None): "null",
}  # fmt: skip
_LARGEST = 2**53  # of the whole numbers that any reader of JSON holds exactly


def check_shape(value: Any, shape: Any, name: str) -> None:
    """Raise a ValueError that names the first part of a value of JSON of another type than it should have.

    A shape is a type, a tuple of possible types, or a list of the shape of each element; an object is ``{str: shape}``,
    where all its values are alike, or has a shape for each key. A key with a question mark may be missing or null.

    >>> check_shape({"id": 7, "rank": "x"}, {"id": (str, int), "rank?": float}, "document")
    Traceback (most recent call last):
    ...
    ValueError: rank of document must be a number, got 'x'
    """
    if isinstance(shape, list):
        check_shape(value, list, name)
        for number, element in enumerate(value, 1):
            check_shape(element, shape[0], f"element {number} of {name}")  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(shape, dict):
        check_shape(value, dict, name)
        parts: dict[str, Any] = dict.fromkeys(value, shape[str]) if str in shape else shape
        for key, part in parts.items():
            plain = key if key in value else key.removesuffix("?")
            if plain == key or value.get(plain) is not None:
                check_shape(value.get(plain), part, f"{plain} of {name}")
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        if not any(_is(value, kind) for kind in kinds):
            words = " or ".join(_WORDS[kind] for kind in kinds)
            raise ValueError(f"{name} must be {words}, got {shown(value)}")


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind not in {int, float}:
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, int) and abs(value) <= _LARGEST
    return isinstance(value, (int, float)) and abs(value) <= 1e300 and isfinite(value)
