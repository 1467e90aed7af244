"""TOML that people write: configurations of a gate, slices."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data.toml_places import Places
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST = 5000  # characters of a line: Python's reader takes time by the square of the parts of a key
_MOST_VALUES, _MOST_CHARACTERS, _LARGEST = 10_000, 100_000, 1e15  # of a list, of a text, and as a number
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


def read_toml(path: str | Path, fix: str = "check the path") -> str:
    """Give the text of a file of TOML; `fix` is what to do where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("this is not text in UTF-8", fix="save it as UTF-8", path=str(path)) from None
    except (OSError, ValueError) as error:  # the second: a path with a zero byte
        why = getattr(error, "strerror", None) or error
        raise InputError(f"it cannot be read ({why})", fix=fix, path=str(path)) from None


def parse_toml(text: str, path: str = "", tables: str = "[name] or [[name]]") -> dict[str, Any]:
    """Read TOML; `path` is what messages call it, and `tables` how they say that its tables are written.

    Numbers must be finite and at most 1e15 in size, lists have at most 10,000 values, and texts 100,000 characters;
    fields may have narrower ranges (`judged.data.toml_parts.Range`).

    >>> parse_toml("alpha = 0.05")
    {'alpha': 0.05}
    """
    long = next((at for at, line in enumerate(text.split("\n"), 1) if len(line) > _LONGEST), None)
    if long is not None:
        problem = f"a line of more than {_LONGEST:,} characters"
        raise InputError(problem, fix="break it up, or leave it out", path=path, line=long)
    try:
        made = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = None if at is None else int(at[1] or len(text.splitlines()) or 1)
        raise InputError(
            f"this is not TOML ({_AT.sub('', str(error))})",
            fix=f'write tables as {tables} and values as name = "text" or name = 0.01',
            path=path,
            line=line,
        ) from None
    except RecursionError:
        raise InputError("its brackets are nested too deeply", fix="close them", path=path) from None
    except ValueError as error:  # Python reads no number of more than 4,300 digits, and no 30th of February
        raise InputError(f"a value in it cannot be read ({error})", fix="correct it", path=path) from None
    for key, value in _values(made):
        if wrong := _exceeded(value):
            line = next((at for (_, _, name), at in Places.of(text).lines.items() if name == key), None)
            raise InputError(f"{key} {wrong[0]}", fix=f"give {wrong[1]}", path=path, line=line)
    return made


def _values(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give every value at any depth, with the nearest key above it."""
    waiting: list[tuple[str, Any]] = [*given.items()]
    while waiting:
        key, value = waiting.pop()
        yield key, value
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(key, each) for each in value[:_MOST_VALUES]]


def _exceeded(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with the size of a value, and its limit; None if it is within."""
    if isinstance(value, list | dict) and len(value) > _MOST_VALUES:
        return f"has {len(value):,} values", f"at most {_MOST_VALUES:,}"
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"has {len(value):,} characters", f"at most {_MOST_CHARACTERS:,}"
    if isinstance(value, int | float) and not abs(value) <= _LARGEST:  # NaN is in no range
        return f"is {value!r:.40}", f"a number from -{_LARGEST:g} to {_LARGEST:g}"
    return None
