"""Reader of logs of the TREC Session Track, 2011 to 2014: XML with queries, result lists and clicks of participants.

An ``interaction`` is a page with its results and clicks. A click has a rank, a start and an end, so its dwell time is
known. Times are times of day without a date in 2011 and 2012, and seconds since the start of the session in later
years. The n-th session is dated to the n-th day from 2000-01-01, and times after midnight to the next day. The
``currentquery`` at the end of a session is the task of the track: it is no page, and is only counted.

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
from judged.online.readers.files import LogFile, ProgressCallback, opened
from judged.online.readers.raw import RawLog, ReadFinding, ReadFindings, TableWriter

if TYPE_CHECKING:
    from judged.online.engine import Database

DAY = 86_400_000
FIRST_DAY = 946_684_800_000  # 2000-01-01 in milliseconds since 1970 UTC
_PAGE_SIZE = 10  # results on a page of the track's search system

_MAX_DEPTH = 50  # nested elements; real logs have fewer than ten
_ATTRIBUTES = ("topic", "product", "goal", "tasktype", "track")
_IDS = ("clueweb12id", "clueweb09id", "docno", "url")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)")
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?")


@dataclass
class _Element:
    """An XML element, and the line at which it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    texts: list[str] = field(default_factory=list[str])
    children: list[_Element] = field(default_factory=lambda: cast("list[_Element]", []))

    def find_all(self, tag: str) -> Iterator[_Element]:
        """Yield the descendants with a tag, without those within another one of that tag."""
        for child in self.children:
            if child.tag == tag:
                yield child
            else:
                yield from child.find_all(tag)

    def first_text(self, *tags: str) -> str:
        """Return the text of the first tag whose child has one."""
        # If a tag occurs twice, the first child applies.
        texts = {child.tag: "".join(child.texts).strip() for child in reversed(self.children)}
        return next((text for tag in tags if (text := texts.get(tag))), "")


@dataclass
class _SessionClock:
    """Clock of a session, which converts times in the order of the log."""

    day: int
    last: int = 0

    def time(self, text: str | None) -> int | None:
        """Convert a time to milliseconds since 1970. Return None for an invalid time."""
        text = (text or "").strip()
        if match := _CLOCK.fullmatch(text):
            hours, minutes, seconds = int(match[1]), int(match[2]), float(match[3])
            # Seconds below 61 allow a leap second.
            if hours > 23 or minutes > 59 or seconds >= 61:
                return None
            time_ms = self.day + round((hours * 3600 + minutes * 60 + seconds) * 1000)
            # Times of day have no date. One that is more than 12 hours before the last time is of the next day.
            late = self.last - DAY // 2 - time_ms
            time_ms += max(0, -(-late // DAY)) * DAY
        elif _SECONDS.fullmatch(text):
            time_ms = self.day + round(float(text) * 1000)
        else:
            return None
        self.last = max(self.last, time_ms)
        return time_ms


def read(log_files: Sequence[LogFile], engine: Database, *, progress: ProgressCallback = None) -> RawLog:
    """Read files of the TREC Session Track.

    The id of a result is its ClueWeb id, or else its URL. No session of 2011 to 2013 has a user. Topic, product, goal,
    task type and year become attributes.

    Raises
    ------
    InputError
        If a file cannot be opened, is not XML, is truncated, declares entities, or is no log of the track.
    """
    pages, events = TableWriter(engine, "query", RAW_QUERY, _ATTRIBUTES), TableWriter(engine, "event", RAW_EVENT)
    rows = _SessionRows(pages, events, has_several_files=len(log_files) > 1)
    for file, log_file in enumerate(log_files):
        if progress:
            progress(f"reading {log_file.name}", file / len(log_files))
        for year, element in _elements(log_file):
            rows.add(element, year, file, log_file.name)
    return RawLog(
        pages.finish(), events.finish(), "trec-session", tuple(log_file.name for log_file in log_files),
        rank_base=1, actions={"click": "click"}, lines=rows.records, findings=rows.findings.to_tuple(), dated=False,
    )  # fmt: skip


def _elements(log_file: LogFile) -> Iterator[tuple[str, _Element]]:  # noqa: C901 -- the handlers of a parser
    """Yield the children of the root, each when it is complete, with the year in the name of the root."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    year, open_elements, complete = "", list[_Element](), list[_Element]()

    def parse_error(problem: str, fix: str) -> InputError:
        return InputError(problem, fix=fix, path=log_file.name, line=parser.CurrentLineNumber)

    def entity(*_: object) -> int:
        # Nested entities can expand to gigabytes ("billion laughs"), and external ones read local files.
        problem = "the XML declares entities, which can exhaust memory or read local files"
        raise parse_error(
            problem, "remove the entity declarations: logs of the TREC Session track have no entity declarations"
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal year
        root = re.fullmatch(r"sessiontrack(\d*)\w*", tag)
        if not open_elements and root is None:
            problem = f"not a log of the TREC Session Track: the XML begins with <{tag[:40]}>"
            raise parse_error(problem, "use a log such as sessiontrack2012.xml")
        if len(open_elements) > _MAX_DEPTH:
            raise parse_error("the XML is damaged: its elements are nested too deeply", "download the file again")
        year = root[1] if root else year
        open_elements.append(_Element(tag, attributes, parser.CurrentLineNumber))

    def text(text: str) -> None:
        open_elements[-1].texts.append(text)

    def end(_: str) -> None:
        element = open_elements.pop()
        # Elements directly below the root are complete sessions, and are not kept.
        if len(open_elements) > 1:
            open_elements[-1].children.append(element)
        else:
            complete.append(element)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = entity
    with opened(log_file) as file:
        block = b"more"
        while block:
            block = file.read(BLOCK)
            try:
                parser.Parse(block, not block)
            except (expat.ExpatError, ValueError, LookupError) as error:
                if isinstance(error, InputError):
                    raise
                raise parse_error(f"the XML is damaged or truncated ({error})", "download the file again") from None
            yield from ((year, element) for element in complete)
            complete.clear()


@dataclass
class _SessionRows:
    """Rows of all files, and findings about them."""

    pages: TableWriter
    events: TableWriter
    has_several_files: bool
    findings: ReadFindings = field(default_factory=ReadFindings)
    sessions: int = 0
    records: int = 0
    last_rows: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def _row(self, table: str, file: int, line: int) -> int:
        """Return the line at which a row begins, or the next free number, because file and row identify it."""
        self.last_rows[table, file] = max(line, self.last_rows.get((table, file), 0) + 1)
        return self.last_rows[table, file]

    def add(self, element: _Element, year: str, file: int, file_name: str) -> None:
        """Add a session. Clicks and pages outside of a session are lost."""
        is_session = element.tag == "session"
        pages = [element] if element.tag == "interaction" else list(element.find_all("interaction"))
        clicks_on_pages = {id(click) for page in pages for click in page.find_all("click")}
        lost = [("no-page", "event", click) for click in element.find_all("click") if id(click) not in clicks_on_pages]
        lost += [("current-query", "query", query) for query in element.find_all("currentquery")]
        lost += [("no-session", "query", page) for page in pages if not is_session]
        self.records += len(lost) + len(clicks_on_pages) + (len(pages) if is_session else 0)
        for rule, table, lost_element in lost:
            self._add_finding(rule, table, f"{file_name}:{lost_element.line}", lost=True)
        if not is_session:
            return
        number = element.attributes.get("num") or str(self.sessions + 1)
        keys = {
            "file": file,
            "session_id": f"{year or file}-{number}" if self.has_several_files else number,
            "user_id": element.attributes.get("userid") or None,
        }
        clock = _SessionClock(FIRST_DAY + self.sessions * DAY)
        clock.time(element.attributes.get("starttime"))
        self.sessions += 1
        attributes = {"track": year} if year else {}
        for topic in element.find_all("topic"):
            names = [name for name in ("product", "goal", "tasktype") if topic.attributes.get(name)]
            attributes |= {name: topic.attributes[name] for name in names}
            if topic_id := topic.attributes.get("num") or topic.first_text("title"):  # topics of 2011 have no numbers
                attributes["topic"] = topic_id
        for page in pages:
            page_number = page.attributes.get("num") or f"line{page.line}"
            page_keys = keys | {"query_id": f"{keys['session_id']}/{page_number}"}
            ids_by_rank = self._add_page(page, page_keys, attributes, clock, file_name)
            for click in page.find_all("click"):
                self._add_click(click, page_keys, ids_by_rank, clock, f"{file_name}:{click.line}")

    def _add_finding(self, rule: str, table: str, place: str, *, lost: bool = False) -> None:
        self.findings.add(ReadFinding.from_rule("trec-session", rule, table, place, lost=lost))

    def _add_page(
        self, page: _Element, keys: dict[str, Any], attributes: dict[str, str], clock: _SessionClock, file_name: str
    ) -> dict[int | None, str | None]:
        """Add a page. Return the result ids by rank, None for a missing id or rank."""
        place = f"{file_name}:{page.line}"
        result_list = next(page.find_all("results"), None)
        results = list(result_list.find_all("result")) if result_list else []
        ids = [result.first_text(*_IDS) or None for result in results]
        texts = [result.attributes.get("rank", "").strip() for result in results]
        ranks = [int(text) or None if text.isdecimal() and len(text) < 9 else None for text in texts]
        if None in ids:
            self._add_finding("no-id", "query", place)
        if None in ranks or len(set(ranks)) < len(ranks):
            self._add_finding("odd-rank", "query", place)
        time = clock.time(page.attributes.get("starttime"))
        if time is None:
            self._add_finding("odd-time", "query", place)
        first_rank = min((rank for rank in ranks if rank), default=1)
        self.pages.add({
            **keys,
            **attributes,
            "row": self._row("query", keys["file"], page.line),
            "time_ms": time,
            "query": page.first_text("query") if any(child.tag == "query" for child in page.children) else None,
            "page": (first_rank - 1) // _PAGE_SIZE + 1,
            "first_rank": first_rank if first_rank > 1 else None,
            "hit_ids": None if result_list is None else ids,
            "ranks": None if ranks == list(range(first_rank, first_rank + len(ranks))) else ranks,
        })  # fmt: skip
        return dict(zip(ranks, ids, strict=True))

    def _add_click(
        self, click: _Element, keys: dict[str, Any], ids_by_rank: dict[int | None, str | None],
        clock: _SessionClock, place: str,
    ) -> None:  # fmt: skip
        start, end = clock.time(click.attributes.get("starttime")), clock.time(click.attributes.get("endtime"))
        dwell = None if start is None or end is None or end < start else end - start
        text = click.first_text("rank")
        rank = int(text) if text.isdecimal() and len(text) < 9 else None
        object_id = ids_by_rank.get(rank) if rank is not None else None
        failures = {"odd-time": start is None, "odd-dwell": dwell is None, "rank-not-shown": object_id is None}
        for rule in (rule for rule, has_failed in failures.items() if has_failed):
            self._add_finding(rule, "event", place)
        self.events.add(
            {
                **keys,
                "row": self._row("event", keys["file"], click.line),
                "time_ms": start,
                "action": "click",
                "object_id": object_id or click.first_text("docno") or None,
                "position": rank,
                "dwell_ms": dwell,
            }
        )
