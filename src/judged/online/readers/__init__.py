"""Logs read: every layout that is known, into the same two raw tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.online.engine import Engine
    from judged.online.readers.files import Part
    from judged.online.readers.raw import RawLog


def read_raw(
    paths: Sequence[str | Path],
    engine: Engine,
    *,
    layout: str | None = None,
    mapping: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> RawLog:
    r"""Read log files, as they are written, into raw tables.

    Parameters
    ----------
    paths
        Files, packed or not, folders of them, or ``-`` for standard input. They are one log. What is no log in a
        folder is left out and counted; what is named must be one.
    engine
        Where the rows go.
    layout
        One of ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``; None: it is found from the first bytes.
    mapping
        A TOML file that says which columns of any other log mean what.
    progress
        Called now and then with what is being done and the share of it that is done, None where that is not known.

    Raises
    ------
    InputError
        If the layout is not known, or a file is missing, damaged, or not of that layout.

    Examples
    --------
    >>> import tempfile
    >>> from judged.online.engine import Engine
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "log.ndjson"
    ...     _ = log.write_text('{"query_id": "q", "user_query": "car", "timestamp": "2026-01-05T10:00:00Z"}\n')
    ...     raw = read_raw([log], Engine())
    ...     (raw.layout, raw.queries.to_arrow("query", "time_ms").to_pylist())
    ('ubi', [{'query': 'car', 'time_ms': 1767607200000}])
    """
    from judged.online.readers.files import LAYOUTS, layout_of, parts_of, without_strangers
    from judged.online.readers.mapping_file import packaged, read_mapping

    if isinstance(paths, (str, Path)):
        paths = [paths]
    if layout is not None and layout not in LAYOUTS:
        raise InputError(f"there is no layout {layout!r}", fix=f"use one of {', '.join(LAYOUTS)}")
    if mapping is not None and layout not in {None, "mapping"}:
        raise InputError(f"a mapping and the layout {layout!r}", fix="give one of them")
    if mapping is None and layout == "mapping":
        raise InputError("the layout 'mapping' needs a mapping file", fix="give one: it names the columns")
    said = "mapping" if mapping is not None else layout
    parts, beside = without_strangers(parts_of(paths), said=said is not None)
    known = said or layout_of(parts)
    if mapping is None and known not in packaged():
        raw = _by_reader(known, parts, engine, progress)
    else:
        from judged.online.readers.mapping import read

        by = read_mapping(mapping) if mapping is not None else read_mapping(known, packaged_alone=True)
        raw = read(parts, engine, mapping=by, layout=known, progress=progress)
    return replace(raw, trouble=(*raw.trouble, *beside))


def _by_reader(
    layout: str, parts: Sequence[Part], engine: Engine, progress: Callable[[str, float | None], None] | None
) -> RawLog:
    from judged.online.readers.files import first_bytes, unreadable

    for part in parts if layout != "trec-session" else ():  # XML says itself how it is encoded
        if why := unreadable(first_bytes(part)):
            raise InputError(why[0], fix=why[1], path=part.name)
    if layout == "wscd":
        from judged.online.readers.clickmodels import read_wscd as read
    elif layout == "trec-session":
        from judged.online.readers.trec_session import read
    else:
        from judged.online.readers.clickmodels import read
    return read(parts, engine, progress=progress)
