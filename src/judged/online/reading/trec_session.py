"""Logs of the TREC Session Track, 2011 to 2014: XML with the queries, result lists and clicks of recruited searchers.

An ``interaction`` is a page, with its results and the clicks on them. A click names a rank, when it began and when it
ended: that is its dwell time. Times are wall clock without a date in 2011 and 2012, and seconds since the session
began later on; the n-th session is put on the n-th day from 2000-01-01, and what passes midnight goes on into the next
day. The ``currentquery`` that ends a session is what participants had to answer: it is no page, and is counted.

Sources: Kanoulas, Hall, Clough, Carterette and Sanderson, TREC 2011 and 2012; Carterette, Bah, Kanoulas, Hall and
Clough, TREC 2013 and 2014: overviews of the Session Track.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from judged.data.files import BLOCK, opened
from judged.errors import InputError
from judged.online.reading.loading import Progress, Rows, Troubles, existing
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY, RawLog

if TYPE_CHECKING:
    from judged.online.engine import Engine

DAY = 86_400_000
FIRST_DAY = 946_684_800_000
"""2000-01-01, in milliseconds since 1970 UTC."""

_PAGE = 10
"""The track's search system showed ten results at a time."""

_ATTRIBUTES = ("topic", "product", "goal", "tasktype", "track")
_IDS = ("clueweb12id", "clueweb09id", "docno", "url")
_TEXTS = frozenset({"query", "rank", "title", *_IDS})
_CLOCK = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)")
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?")


@dataclass
class _Session:
    """What is known of the element ``session`` while it is read."""

    id: str
    user: str | None
    day: int
    last: int = 0
    attributes: dict[str, str] = field(default_factory=dict[str, str])

    def time(self, text: str | None) -> int | None:
        """Turn a time of this session into milliseconds; None where it cannot be read."""
        text = (text or "").strip()
        if clock := _CLOCK.fullmatch(text):
            hours, minutes, seconds = int(clock[1]), int(clock[2]), float(clock[3])
            if hours > 23 or minutes > 59 or seconds >= 61:
                return None
            found = self.day + round((hours * 3600 + minutes * 60 + seconds) * 1000)
            late = self.last - DAY // 2 - found
            found += max(0, -(-late // DAY)) * DAY  # past midnight
        elif _SECONDS.fullmatch(text):
            found = self.day + round(float(text) * 1000)
        else:
            return None
        self.last = max(self.last, found)
        return found


@dataclass
class _Interaction:
    """What is known of the element ``interaction`` while it is read."""

    line: int
    number: str
    start: str | None
    query: str | None = None
    results: list[tuple[str, str | None]] | None = None
    clicks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def read(paths: Sequence[Path | str], engine: Engine, *, progress: Progress = None) -> RawLog:
    """Read such files.

    The id of a result is its ClueWeb id, or else its URL. Sessions without a user, as all of 2011 and 2012, are
    of nobody. Topic, product, goal, type of the task and year become attributes.

    Raises
    ------
    InputError
        If a file cannot be opened, is no XML, is cut short, declares entities, or is no log of the track.
    """
    files = existing(paths)
    sink = _Sink(Rows(engine, "query", RAW_QUERY, _ATTRIBUTES), Rows(engine, "event", RAW_EVENT), progress)
    for file, path in enumerate(paths):
        _Reader(sink, file, str(path), many=len(files) > 1).run()
    return RawLog(
        queries=sink.pages.done(),
        events=sink.events.done(),
        layout="trec-session",
        files=files,
        rank_base=1,
        actions={"click": "click"},
        lines=sink.records,
        trouble=sink.troubles.given(),
        dated=False,
    )


@dataclass
class _Sink:
    """Where the rows of all files go."""

    pages: Rows
    events: Rows
    progress: Progress
    troubles: Troubles = field(default_factory=Troubles)
    sessions: int = 0
    records: int = 0

    def counted(self) -> None:
        self.records += 1
        if self.progress is not None:
            self.progress(1)


class _Reader:
    """One file, read as it streams by: no more than one interaction is held."""

    def __init__(self, sink: _Sink, file: int, path: str, *, many: bool) -> None:
        self._sink, self._file, self._path, self._many = sink, file, path, many
        self._open: list[str] = []
        self._text: list[str] | None = None
        self._track = ""
        self._session: _Session | None = None
        self._page: _Interaction | None = None
        self._result: dict[str, str] | None = None
        self._click: dict[str, Any] | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity
        self._parser.ExternalEntityRefHandler = self._entity

    def run(self) -> None:
        """Read the file.

        Raises
        ------
        InputError
            See `read`.
        """
        try:
            with opened(self._path) as file:
                while block := file.read(BLOCK):
                    self._parser.Parse(block, False)
                self._parser.Parse(b"", True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"the XML is broken or cut short ({error})",
                fix="fetch the file again",
                path=self._path,
                line=self._line(),
            ) from None

    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _entity(self, *_: object) -> int:
        raise InputError(
            "the XML declares entities, which can be used to harm whoever reads it",
            fix="take the declarations out: no log of the track has any",
            path=self._path,
            line=self._line(),
        )

    def _trouble(self, rule: str, table: str, problem: str, fix: str, *, line: int = 0, lost: bool = False) -> None:
        place = f"{self._path}:{line or self._line()}"
        self._sink.troubles.add(rule, table, problem, fix=fix, place=place, lost=lost)

    def _start(self, tag: str, given: dict[str, str]) -> None:
        inside = self._open[-1] if self._open else ""
        self._open.append(tag)
        if not inside:
            self._root(tag)
        elif tag == "session":
            self._begin_session(given)
        elif tag == "topic" and self._session is not None:
            self._session.attributes |= {one: given[one] for one in ("product", "goal", "tasktype") if given.get(one)}
            if given.get("num"):
                self._session.attributes["topic"] = given["num"]
        elif tag == "interaction":
            self._page = _Interaction(self._line(), given.get("num", ""), given.get("starttime"))
        elif tag == "results" and self._page is not None:
            self._page.results = []
        elif tag == "result":
            self._result = {"at": given.get("rank", "")}
        elif tag == "click":
            self._click = {**given, "line": self._line()}
        self._text = [] if tag in _TEXTS else None

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        text = "".join(self._text or ()).strip()
        self._text = None
        self._open.pop()
        inside = self._open[-1] if self._open else ""
        if tag in _TEXTS:
            self._leaf(tag, inside, text)
        elif tag == "result" and self._result is not None:
            if self._page is not None and self._page.results is not None:
                named = next((self._result[one] for one in _IDS if self._result.get(one)), None)
                self._page.results.append((self._result["at"].strip(), named))
            self._result = None
        elif tag == "click" and self._click is not None:
            self._end_click(self._click)
        elif tag == "interaction" and self._page is not None:
            self._end_page(self._page)
        elif tag == "currentquery":
            self._current()
        elif tag == "session":
            self._session = None

    def _root(self, tag: str) -> None:
        match = re.fullmatch(r"sessiontrack(\d*)\w*", tag)
        if match is None:
            raise InputError(
                f"the XML is no log of the TREC Session Track: it begins with <{tag[:40]}>",
                fix="give sessiontrack2012.xml or another year's, which begin with <sessiontrack...>",
                path=self._path,
                line=self._line(),
            )
        self._track = match[1]

    def _begin_session(self, given: dict[str, str]) -> None:
        number = given.get("num") or str(self._sink.sessions + 1)
        name = f"{self._track or self._file}-{number}" if self._many else number
        attributes = {"track": self._track} if self._track else {}
        day = FIRST_DAY + self._sink.sessions * DAY
        self._session = _Session(name, given.get("userid") or None, day, attributes=attributes)
        self._session.time(given.get("starttime"))
        self._sink.sessions += 1

    def _leaf(self, tag: str, inside: str, text: str) -> None:
        if tag == "title" and inside == "topic" and self._session is not None:
            self._session.attributes.setdefault("topic", text)  # 2011: topics have no numbers
        elif self._result is not None:
            if text:
                self._result[tag] = text
        elif self._click is not None:
            self._click[tag] = text
        elif tag == "query" and inside == "interaction" and self._page is not None:
            self._page.query = text

    def _end_click(self, click: dict[str, Any]) -> None:
        self._click = None
        self._sink.counted()
        if self._page is None or self._session is None:
            self._trouble("no-page", "event", "the click is in no interaction", "fetch the file again", lost=True)
        else:
            self._page.clicks.append(click)

    def _current(self) -> None:
        self._sink.counted()
        self._trouble(
            "current-query",
            "query",
            "the query that ends a session was never answered: it is no page",
            "nothing to do",
            lost=True,
        )

    def _end_page(self, page: _Interaction) -> None:
        self._page = None
        self._sink.counted()
        session = self._session
        if session is None:
            self._trouble("no-session", "query", "the interaction is in no session", "fetch the file again", lost=True)
            return
        ids, ranks = self._ranked(page)
        first = min((rank for rank in ranks if rank), default=1)
        number = page.number or f"line{page.line}"
        key = {
            "file": self._file,
            "query_id": f"{session.id}/{number}",
            "session_id": session.id,
            "user_id": session.user,
        }
        row = {
            **key,
            **session.attributes,
            "row": page.line,
            "time_ms": self._timed(page.start, session, "query", page.line),
            "query": page.query,
            "page": (first - 1) // _PAGE + 1,
            "first_rank": first if first > 1 else None,
            "hit_ids": ids,
            "ranks": None if ranks == list(range(first, first + len(ranks))) else ranks,
        }
        self._sink.pages.add(row)
        for click in page.clicks:
            self._add_click(click, session, key, dict(zip(ranks, ids or (), strict=True)))

    def _timed(self, text: str | None, session: _Session, table: str, line: int) -> int | None:
        time = session.time(text)
        if time is None:
            self._trouble(
                "odd-time", table, "the time cannot be read", "write 09:54:08.725624 or 12.5 seconds", line=line
            )
        return time

    def _ranked(self, page: _Interaction) -> tuple[list[str | None] | None, list[int | None]]:
        """Give the ids of the results, None for what has none, and their ranks, None for what is no rank."""
        if page.results is None:
            return None, []
        if not all(name for _, name in page.results):
            self._trouble(
                "no-id", "query", "a result has neither an id nor a URL", "fetch the file again", line=page.line
            )
        numbers = [int(rank) if rank.isdecimal() and len(rank) < 9 else 0 for rank, _ in page.results]
        if 0 in numbers or len(set(numbers)) < len(numbers):
            problem = "the rank of a result is no number from 1, or another result has it"
            self._trouble("odd-rank", "query", problem, "fetch the file again", line=page.line)
        return [name or None for _, name in page.results], [rank or None for rank in numbers]

    def _add_click(
        self, click: dict[str, Any], session: _Session, key: dict[str, Any], shown: dict[int | None, str | None]
    ) -> None:
        line = click["line"]
        begin = self._timed(click.get("starttime"), session, "event", line)
        end = session.time(click.get("endtime"))
        dwell = None if begin is None or end is None or end < begin else end - begin
        if dwell is None:
            self._trouble("odd-dwell", "event", "the click has no end after its start", "log both times", line=line)
        text = click.get("rank", "")
        rank = int(text) if text.isdecimal() and len(text) < 9 else None
        clicked = shown.get(rank) if rank is not None else None
        if clicked is None:
            self._trouble(
                "rank-not-shown",
                "event",
                "the click's rank is none of the page's",
                "log the rank of the result",
                line=line,
            )
        self._sink.events.add(
            {
                **key,
                "row": line,
                "time_ms": begin,
                "action": "click",
                "object_id": clicked or click.get("docno") or None,
                "position": rank,
                "dwell_ms": dwell,
            }
        )
