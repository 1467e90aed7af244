"""What lies beside a log in its folder and is none: left out, and counted by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from judged.online.readers.files import ABOUT, Part, UnknownLayoutError, first_bytes, known_layout
from judged.online.readers.raw import PLACES, Trouble


def without_strangers(parts: Sequence[Part], *, said: bool) -> tuple[list[Part], tuple[Trouble, ...]]:
    """Leave out what was found in a folder or an archive and is clearly no log.

    Parameters
    ----------
    parts
        What `parts_of` gives. What was named stays, whatever it is.
    said
        The user says which layout it is: then only names and zero bytes tell that a file is no log.

    Returns
    -------
    tuple
        The log's files, and what was left out.

    Raises
    ------
    UnknownLayoutError
        If nothing would be left.
    """
    kept: list[Part] = []
    hidden: list[str] = []
    strange: dict[str, UnknownLayoutError] = {}
    for part in parts:
        if part.hidden:
            hidden.append(part.name)
        elif part.found and (why := _stranger(part, said=said)):
            strange[part.name] = why
        else:
            kept.append(part)
    if strange and not kept:
        raise next(iter(strange.values()))
    beside: list[Trouble] = []
    if hidden:
        beside.append(Trouble.of("mapping", "hidden-file", "folder", *hidden[:PLACES], rows=len(hidden)))
    if strange:
        told = [f"{PurePath(name).name}: {error.problem}" for name, error in list(strange.items())[:PLACES]]
        more = "; ".join([*told, *(["..."] if len(strange) > PLACES else [])])
        named = list(strange)[:PLACES]
        beside.append(Trouble.of("mapping", "skipped-file", "folder", *named, rows=len(strange), more=more))
    return kept, tuple(beside)


def _stranger(part: Part, *, said: bool) -> UnknownLayoutError | None:
    """Say why a file is no log; nothing where it may be one."""
    name = PurePath(part.member or part.path).name
    if ABOUT.fullmatch(name):
        return UnknownLayoutError("its name is that of a file about data", fix="name a log", path=part.name)
    if said:
        binary = b"\0" in (head := first_bytes(part)) and not head.startswith(b"PAR1")
        return UnknownLayoutError("it holds zero bytes", fix="name a log", path=part.name) if binary else None
    try:
        known_layout(part)
    except UnknownLayoutError as error:
        return error
    return None
