"""Logs opened: from files as they are written to the typed log, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from judged.errors import InputError
from judged.online.arguments import need
from judged.online.engine import Engine
from judged.online.storage import is_stored, open_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.online.log import InteractionLog


def read_log(
    paths: str | Path | Sequence[str | Path],
    *,
    layout: str | None = None,
    mapping: str | Path | None = None,
    session_gap: float = 30.0,
    bots: Literal["exclude", "keep"] = "exclude",
    bot_pages: int = 100,
    bot_minutes: float = 60.0,
    rank_base: Literal[0, 1] | None = None,
    now_ms: int | None = None,
    actions: Mapping[str, str] | None = None,
    name: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    tables: str | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> InteractionLog:
    r"""Read what users did on result pages, whatever wrote it.

    No row is dropped without a name: `InteractionLog.accounts` says where each went, and `InteractionLog.findings` what
    was wrong with it.

    Parameters
    ----------
    paths
        Files of one log, packed or not, folders of them, or ``-`` for standard input; or a folder that ``judged logs
        convert`` wrote, for which nothing else needs saying. What is no log in a folder is left out and counted.
    layout
        One of ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``; None: it is found from the first bytes.
    mapping
        A TOML file that says which columns of any other log mean what.
    session_gap
        Minutes of inactivity that end a session, where the log names none.
    bots
        ``exclude``: leave out users who are programs; ``keep``: count them, and say how many.
    bot_pages, bot_minutes
        A user with more than so many pages in so many minutes, or in one session of the log, is a program.
    rank_base
        0 or 1: what the first position is called. None: as the layout says, or found for each application.
    now_ms
        Milliseconds since 1970: what is more than a day later cannot be. None: now.
    actions
        What the log's names of actions mean: one of `judged.online.tables.ACTIONS` by name.
    name
        What to call it. None: the name of its first file.
    memory, threads
        The most that the process may take, such as ``1GB``, and how many threads: see `judged.online.engine.Engine`.
    tables
        Where on Spark the tables of a converted log are, ``sc://HOST:PORT/SCHEMA``: see `judged.online.spark`.
    progress
        Called with what is being done and the share of it that is done, None where that is not known.

    Raises
    ------
    InputError
        If the layout is not known, a file cannot be read, or a choice makes no sense.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> import json, tempfile
    >>> records = [
    ...     {"query_id": "1", "client_id": "ann", "user_query": "lamp", "timestamp": "2026-01-05T10:00:00Z",
    ...      "query_response_hit_ids": ["a", "b"]},
    ...     {"query_id": "1", "client_id": "ann", "action_name": "click", "timestamp": "2026-01-05T10:00:09Z",
    ...      "event_attributes": {"object": {"object_id": "b"}, "position": {"ordinal": 2}}},
    ...     {"query_id": "9", "client_id": "ann", "action_name": "click", "timestamp": "2026-01-05T10:00:30Z"},
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.ndjson"
    ...     _ = path.write_text("\n".join(map(json.dumps, records)))
    ...     log = read_log(path)
    ...     print([(one.table, one.read, one.kept) for one in log.accounts])
    ...     print([(one.rule, one.rows) for one in log.findings])
    ...     print(log.event.where("serp IS NOT NULL").to_arrow("action", "object_id", "rank").to_pylist()[0])
    [('query', 1, 1), ('event', 2, 2)]
    [('unknown-query-id', 1)]
    {'action': 'click', 'object_id': 'b', 'rank': 2}
    """
    given = _named(paths)
    made: dict[str, Any] = {
        "session_gap": session_gap, "bots": bots, "bot_pages": bot_pages, "bot_minutes": bot_minutes,
        "rank_base": rank_base, "actions": actions, "now_ms": now_ms, "name": name,
    }  # fmt: skip
    need(layout=layout, mapping=mapping, memory=memory, threads=threads, tables=tables, **made)
    if tables is not None or (len(given) == 1 and is_stored(given[0])):
        asked = (layout, mapping, session_gap, bots, bot_pages, bot_minutes, rank_base, actions)
        if asked != (None, None, 30.0, "exclude", 100, 60.0, None, None):
            problem = "a converted log was made already: how sessions, bots, ranks and actions are read cannot change"
            raise InputError(problem, fix="convert the log anew with these options", path=str(given[0]))
        if tables is not None:
            from judged.data.spark import connected
            from judged.online.spark import open_on_spark

            return open_on_spark(given[0], *connected(tables))
        return open_stored(given[0], Engine(memory=memory, threads=threads))
    from judged.online.engine import whole_files
    from judged.online.preparation.make import make_log
    from judged.online.readers import read_raw

    engine = Engine(memory=memory, threads=threads)
    with whole_files(given):
        raw = read_raw(given, engine, layout=layout, mapping=mapping, progress=progress)
        return make_log(raw, engine, **made, progress=progress and (lambda step: progress(step, None)))


def _named(paths: Any) -> list[str | Path]:
    """Give the paths of a log, one or several."""
    several = isinstance(paths, Iterable) and not isinstance(paths, (str, bytes))
    given: list[Any] = list(cast("Iterable[Any]", paths)) if several else [paths]
    for one in given:
        if not isinstance(one, (str, Path)):
            raise InputError(f"a {type(one).__name__} names no log", fix="give the path of a file or a folder")
    if not given:
        raise InputError("no log was named", fix="give one file or more")
    return given
