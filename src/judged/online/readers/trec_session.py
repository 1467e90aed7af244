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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from xml.parsers import expat

from judged.data.files import BLOCK
from judged.errors import InputError
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.files import Opener, Part, opened
from judged.online.readers.raw import RawLog, Rows, Trouble, Troubles

if TYPE_CHECKING:
    from judged.online.engine import Engine

DAY = 86_400_000
FIRST_DAY = 946_684_800_000
"""2000-01-01, in milliseconds since 1970 UTC."""

_PAGE = 10
"""The track's search system showed ten results at a time."""

_DEEPEST = 50
_ATTRIBUTES = ("topic", "product", "goal", "tasktype", "track")
_IDS = ("clueweb12id", "clueweb09id", "docno", "url")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)")
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?")


@dataclass
class _Element:
    """An element of the XML, with the line that it begins at."""

    tag: str
    given: dict[str, str]
    line: int
    texts: list[str] = field(default_factory=list[str])
    inner: list[_Element] = field(default_factory=lambda: cast("list[_Element]", []))

    def all(self, tag: str) -> Iterator[_Element]:
        """Yield the elements of a name in it, at any depth."""
        for one in self.inner:
            if one.tag == tag:
                yield one
            else:
                yield from one.all(tag)

    def says(self, *tags: str) -> str:
        """Give the text of the first of some elements right in it that says anything."""
        texts = {one.tag: "".join(one.texts).strip() for one in reversed(self.inner)}
        return next((text for tag in tags if (text := texts.get(tag))), "")


@dataclass
class _Clock:
    """The times of a session, as they are met."""

    day: int
    last: int = 0

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


def read(parts: Sequence[Part], engine: Engine, *, progress: Opener = None) -> RawLog:
    """Read such files.

    The id of a result is its ClueWeb id, or else its URL. Sessions without a user, as all of 2011 to 2013, are
    of nobody. Topic, product, goal, type of the task and year become attributes.

    Raises
    ------
    InputError
        If a file cannot be opened, is no XML, is cut short, declares entities, or is no log of the track.
    """
    made = _Made(Rows(engine, "query", RAW_QUERY, _ATTRIBUTES), Rows(engine, "event", RAW_EVENT), len(parts) > 1)
    for file, part in enumerate(parts):
        if progress:
            progress(f"reading {part.name}", file / len(parts))
        for track, element in _elements(part):
            made.add(element, track, file, part.name)
    return RawLog(
        queries=made.pages.done(),
        events=made.events.done(),
        layout="trec-session",
        files=tuple(part.name for part in parts),
        rank_base=1,
        actions={"click": "click"},
        lines=made.records,
        trouble=made.troubles.given(),
        dated=False,
    )


def _elements(part: Part) -> Iterator[tuple[str, _Element]]:  # noqa: C901 -- the handlers of a parser
    """Yield the elements right below the root, one by one, with the year that the root names."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    track, above, ready = "", list[_Element](), list[_Element]()

    def wrong(problem: str, fix: str) -> InputError:
        return InputError(problem, fix=fix, path=part.name, line=parser.CurrentLineNumber)

    def entity(*_: object) -> int:
        problem = "the XML declares entities, which can be used to harm whoever reads it"
        raise wrong(problem, "take the declarations out: no log of the track has any")

    def start(tag: str, given: dict[str, str]) -> None:
        nonlocal track
        known = re.fullmatch(r"sessiontrack(\d*)\w*", tag)
        if not above and known is None:
            problem = f"the XML is no log of the TREC Session Track: it begins with <{tag[:40]}>"
            raise wrong(problem, "give sessiontrack2012.xml or another year's, which begin with <sessiontrack...>")
        if len(above) > _DEEPEST:
            raise wrong("the XML is broken or cut short: it goes too deep", "fetch the file again")
        track = known[1] if known else track
        above.append(_Element(tag, given, parser.CurrentLineNumber))

    def text(text: str) -> None:
        above[-1].texts.append(text)

    def end(_: str) -> None:
        element = above.pop()
        if len(above) > 1:
            above[-1].inner.append(element)
        else:
            ready.append(element)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = entity
    with opened(part) as file:
        block = b"more"
        while block:
            block = file.read(BLOCK)
            try:
                parser.Parse(block, not block)
            except (expat.ExpatError, ValueError, LookupError) as error:
                if isinstance(error, InputError):
                    raise
                raise wrong(f"the XML is broken or cut short ({error})", "fetch the file again") from None
            yield from ((track, one) for one in ready)
            ready.clear()


@dataclass
class _Made:
    """The rows of all files, and what was wrong with them."""

    pages: Rows
    events: Rows
    many: bool
    troubles: Troubles = field(default_factory=Troubles)
    sessions: int = 0
    records: int = 0
    last: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def _row(self, table: str, file: int, line: int) -> int:
        """Give the line that a row begins at, or, where another began there, the next number: rows are told by it."""
        self.last[table, file] = max(line, self.last.get((table, file), 0) + 1)
        return self.last[table, file]

    def add(self, element: _Element, track: str, file: int, name: str) -> None:
        """Add a session; what stands outside of any is lost."""
        interactions = [element] if element.tag == "interaction" else list(element.all("interaction"))
        inside = {id(click) for one in interactions for click in one.all("click")}
        stray = [("no-page", "event", one) for one in element.all("click") if id(one) not in inside]
        stray += [("current-query", "query", one) for one in element.all("currentquery")]
        if element.tag != "session":
            stray += [("no-session", "query", one) for one in interactions if element.tag != "session"]
        self.records += len(stray) + len(inside) + len(interactions) * (element.tag == "session")
        for rule, table, one in stray:
            self._trouble(rule, table, f"{name}:{one.line}", lost=True)
        if element.tag != "session":
            return
        number = element.given.get("num") or str(self.sessions + 1)
        who = {
            "file": file,
            "session_id": f"{track or file}-{number}" if self.many else number,
            "user_id": element.given.get("userid") or None,
        }
        clock = _Clock(FIRST_DAY + self.sessions * DAY)
        clock.time(element.given.get("starttime"))
        self.sessions += 1
        attributes = {"track": track} if track else {}
        for topic in element.all("topic"):
            attributes |= {one: topic.given[one] for one in ("product", "goal", "tasktype") if topic.given.get(one)}
            if known := topic.given.get("num") or topic.says("title"):  # 2011: topics have no numbers
                attributes["topic"] = known
        for page in interactions:
            key = who | {"query_id": f"{who['session_id']}/{page.given.get('num') or f'line{page.line}'}"}
            shown = self._page(page, key, attributes, clock, name)
            for click in page.all("click"):
                self._click(click, key, shown, clock, f"{name}:{click.line}")

    def _trouble(self, rule: str, table: str, place: str, *, lost: bool = False) -> None:
        self.troubles.add(Trouble.of("trec-session", rule, table, place, lost=lost))

    def _page(
        self, page: _Element, key: dict[str, Any], attributes: dict[str, str], clock: _Clock, name: str
    ) -> dict[int | None, str | None]:
        """Add a page, and give the id at each rank; None for what has no id, or no rank."""
        place = f"{name}:{page.line}"
        listed = next(page.all("results"), None)
        results = list(listed.all("result")) if listed else []
        ids = [one.says(*_IDS) or None for one in results]
        texts = [one.given.get("rank", "").strip() for one in results]
        ranks = [int(text) or None if text.isdecimal() and len(text) < 9 else None for text in texts]
        if None in ids:
            self._trouble("no-id", "query", place)
        if None in ranks or len(set(ranks)) < len(ranks):
            self._trouble("odd-rank", "query", place)
        time = clock.time(page.given.get("starttime"))
        if time is None:
            self._trouble("odd-time", "query", place)
        first = min((rank for rank in ranks if rank), default=1)
        self.pages.add({
            **key,
            **attributes,
            "row": self._row("query", key["file"], page.line),
            "time_ms": time,
            "query": page.says("query") if any(one.tag == "query" for one in page.inner) else None,
            "page": (first - 1) // _PAGE + 1,
            "first_rank": first if first > 1 else None,
            "hit_ids": None if listed is None else ids,
            "ranks": None if ranks == list(range(first, first + len(ranks))) else ranks,
        })  # fmt: skip
        return dict(zip(ranks, ids, strict=True))

    def _click(
        self, click: _Element, key: dict[str, Any], shown: dict[int | None, str | None], clock: _Clock, place: str
    ) -> None:
        begin, end = clock.time(click.given.get("starttime")), clock.time(click.given.get("endtime"))
        dwell = None if begin is None or end is None or end < begin else end - begin
        text = click.says("rank")
        rank = int(text) if text.isdecimal() and len(text) < 9 else None
        clicked = shown.get(rank) if rank is not None else None
        wrong = {"odd-time": begin is None, "odd-dwell": dwell is None, "rank-not-shown": clicked is None}
        for rule in (rule for rule, there in wrong.items() if there):
            self._trouble(rule, "event", place)
        more = {"object_id": clicked or click.says("docno") or None, "position": rank, "dwell_ms": dwell}
        self.events.add(
            {**key, "row": self._row("event", key["file"], click.line), "time_ms": begin, "action": "click", **more}
        )
