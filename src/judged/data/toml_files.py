"""TOML that people write: configurations of a gate, slices."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from judged.errors import InputError

_LONGEST = 5000  # characters of a line: Python's reader takes time by the square of the parts of a key
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

    >>> parse_toml("alpha = 0.05")
    {'alpha': 0.05}
    """
    long = next((at for at, line in enumerate(text.split("\n"), 1) if len(line) > _LONGEST), None)
    if long is not None:
        problem = f"a line of more than {_LONGEST:,} characters"
        raise InputError(problem, fix="break it up, or leave it out", path=path, line=long)
    try:
        return tomllib.loads(text)
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
