"""Which pages of a log are about which topics of the judgments, and what is shown on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.topics import Topics
from judged.errors import InputError
from judged.online.engine import Relation, identifier, listed
from judged.online.layout import ALL, percent
from judged.online.log import LogAnswer, about, need_column
from judged.results import TEXT, Column, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.online.offline.concordance import Estimate
    from judged.results.types import Bools, Ints, Strings, Table


Which: TypeAlias = Literal["first", "all"]
"""Pages: the first one of each result list, or those behind it too."""

Unit: TypeAlias = Literal["user", "session"]

BELOW = (1 << 50) - 27  # hashes are cut to this, so that their sum over a long list still is a number of 64 bits

NO_SLICE = "(not known)"
"""Pages whose value of the slice is null."""


@dataclass(frozen=True, eq=False)
class Joined:
    """Pages whose topic is judged, in the order of their names.

    Keys are given when a log is made, and may be others at the next time: neither the order of pages nor that of units
    goes by them, so that sums come out the same to the last digit.

    Parameters
    ----------
    serp, unit, topic
        (N,): key of the page; code of its user or session, from 0; place of its topic in ``qrels.index.topics``.
    units
        How many units there are.
    slices
        (N,): the place of its value in `values`.
    values
        Values of the slice, in order; none where nothing is sliced.
    how
        How topics were found, in words.
    pages
        How many pages the log has.
    left_out
        Why pages are not among these, and how many; a page counts under the first reason.
    """

    serp: Ints
    unit: Ints
    topic: Ints
    units: int
    slices: Ints
    values: tuple[str, ...]
    how: str
    pages: int
    left_out: tuple[tuple[str, int], ...]

    def of(self, kept: Bools, reason: str) -> Joined:
        """Leave some of the pages, and count the others under a reason."""
        units, unit = np.unique(self.unit[kept], return_inverse=True)
        columns = {name: getattr(self, name)[kept] for name in ("serp", "topic", "slices")}
        gone = int((~kept).sum())
        left_out = (*self.left_out, (reason, gone)) if gone else self.left_out
        return replace(self, unit=unit.ravel(), units=len(units), left_out=left_out, **columns)


def joined_pages(log: InteractionLog, qrels: Qrels, topics: Any, *, by: str | None, unit: Unit, which: Which) -> Joined:
    """Find the topic of each page.

    Parameters
    ----------
    topics
        The name of a column of `log.serp` that holds the topic; or the texts of topics (a `Topics`, a path, ``{id:
        text}``), by which a page has the topic whose text its query is, in lower case and with blanks made one. None:
        the column ``topic`` where the log has it, or else ``query_id`` where the judgments go by it.

    Raises
    ------
    InputError
        If there is no such column, nothing says what the topics are, or no page has a judged one.
    """
    column, texts, how = _key(log, qrels, topics)
    if by is not None:
        need_column(log, by)
    sliced = "" if by is None else f", CAST({identifier(by)} AS VARCHAR) AS slice"
    table = log.engine.arrow(f"""
        SELECT serp, query_id AS name, {identifier(unit)} AS unit, CAST({identifier(column)} AS VARCHAR) AS key, page,
            n_shown AS shown{sliced}
        FROM {log.serp}""").sort_by("name")
    codes = _codes(table["key"], texts, qrels)
    reasons = {
        "not the first page of a result list": _numbers(table["page"]) > 1 if which == "first" else None,
        "nothing shown": _numbers(table["shown"]) == 0,
        "no topic": codes == -1,
        "topic not judged": codes == -2,
    }
    kept, left_out = np.ones(len(table), dtype=np.bool_), list[tuple[str, int]]()
    for reason, gone in reasons.items():
        if gone is not None and (count := int((kept & gone).sum())):
            left_out.append((reason, count))
            kept &= ~gone
    if not kept.any():
        told = "; ".join(f"{count} {reason}" for reason, count in left_out) or "it has none"
        raise InputError(
            f"no page of {log.name} has a judged topic ({told})",
            fix="say how pages and topics go together: topics= the name of a column, or the texts of the topics",
        )
    values, slices = _slices(table["slice"] if by is not None else None, kept)
    units = table["unit"].filter(pa.array(kept)).combine_chunks().dictionary_encode()  # numbered as they come
    serp, places, count = _numbers(table["serp"])[kept], _numbers(units.indices), len(units.dictionary)
    return Joined(serp, places, codes[kept], count, slices, values, how, len(table), tuple(left_out))


def _key(log: InteractionLog, qrels: Qrels, topics: Any) -> tuple[str, dict[str, str | None] | None, str]:
    """Tell the column that topics are found by, the texts it is looked up in, and this in words."""
    columns = log.serp.columns
    if isinstance(topics, str) and topics in columns:
        return topics, None, f"by the column {topics}"
    if topics is not None:
        known = topics if isinstance(topics, Topics) else topics_at(topics, columns)
        return "query_norm", topics_by_text(known), f"by the text of the query, as in {known.name}"
    if "topic" in columns:
        return "topic", None, "by the column topic"
    names = pa.array(qrels.index.topics, pa.string()).to_pylist()[:1000]
    if log.engine.rows(f"SELECT count(*) AS n FROM {log.serp} WHERE query_id IN {listed(names)}")[0]["n"]:
        return "query_id", None, "by the name of the page (query_id)"
    raise InputError(
        f"nothing in {log.name} says which topic a page is about",
        fix="give topics: the name of a column of the log, or the texts of the topics",
    )


def topics_at(topics: Any, columns: Any) -> Topics:
    """Read the texts of topics; `columns` are those of the log, which were meant if it is none."""
    if isinstance(topics, Path):
        return Topics.read(topics)
    if isinstance(topics, Mapping) or hasattr(topics, "columns"):
        return Topics.of(topics)
    if not isinstance(topics, str):
        raise InputError(f"topics is {topics!r:.60}", fix="give the name of a column, a path, or {id: text}")
    try:
        return Topics.read(topics)
    except (OSError, InputError) as error:
        own = [name for name in columns if name in {"topic", "query_id", "query_norm"}]
        raise InputError(
            f"{topics!r} is no column of the log, and no file of topics: {getattr(error, 'problem', error)}",
            fix=f"name a column, such as {', '.join(own)}, or a file",
        ) from None


def topics_by_text(topics: Topics) -> dict[str, str | None]:
    """Look topics up by text; None for a text that several share."""
    found: dict[str, str | None] = {}
    names, texts = topics.table["query_id"].to_pylist(), topics.table["text"].to_pylist()
    for name, text in zip(names, texts, strict=True):
        plain = " ".join((text or "").lower().split())
        found[plain] = None if plain in found else name
    found.pop("", None)
    return found


def _codes(keys: Any, texts: dict[str, str | None] | None, qrels: Qrels) -> Ints:
    """Give the code of each page's topic: -1 where it has none, -2 where its topic is not judged."""
    if texts is not None:
        known = {text: name for text, name in texts.items() if name is not None}
        at = pc.index_in(keys, value_set=pa.array(list(known), pa.string()))
        keys = pa.array(list(known.values()), pa.string()).take(at.combine_chunks())
    found = pc.index_in(keys, value_set=pa.array(qrels.index.topics, pa.string()))
    found = pc.if_else(pc.is_null(keys), -1, pc.fill_null(found, -2))
    return np.asarray(found, dtype=np.int64)


def _slices(column: Any, kept: Bools) -> tuple[tuple[str, ...], Ints]:
    if column is None:
        return (), np.zeros(int(kept.sum()), dtype=np.int64)
    names = np.array(pc.fill_null(column, NO_SLICE).to_pylist(), dtype=object)[kept]
    values, slices = np.unique(names, return_inverse=True)
    return tuple(str(one) for one in values.tolist()), slices.ravel()


def _numbers(column: Any) -> Ints:
    return np.asarray(pc.fill_null(column, 0).to_numpy(), dtype=np.int64)


def keyed(log: InteractionLog, serp: Ints, topic: Ints) -> Relation:
    """Give the database some pages: their key, place and topic, as ``serp, page, topic``."""
    return log.engine.register(pa.table({"serp": serp, "page": np.arange(len(serp)), "topic": topic}))


def lists_of(log: InteractionLog, serp: Ints, topic: Ints) -> tuple[Ints, Strings]:
    """Fetch what these pages show, by page and rank: where each page begins, (N + 1,), and ids, (D,).

    A result that stands on a page twice counts once, at the first rank.
    """
    with log.engine.scratch():
        table: Table = log.engine.arrow(f"""
            SELECT p.page, s.object_id FROM {log.shown} AS s
            JOIN {keyed(log, serp, topic)} AS p ON p.serp = s.serp
            GROUP BY p.page, s.object_id ORDER BY p.page, min(s.rank), s.object_id""")
    return np.searchsorted(_numbers(table["page"]), np.arange(len(serp) + 1)), _one(table["object_id"])


def list_codes(log: InteractionLog, joined: Joined) -> Ints:
    """Give pages of one topic that show the same at the same ranks one code: (N,), from 0.

    The database makes two numbers of 50 bits of each list, sums over its rows; no list is fetched.
    """
    hashes = [f"CAST(sum(hash({pair}) % {BELOW}) AS BIGINT)" for pair in ("rank, object_id", "object_id, rank")]
    with log.engine.scratch():
        pages = keyed(log, joined.serp, joined.topic)
        table: Table = log.engine.arrow(f"""
            SELECT dense_rank() OVER (ORDER BY p.topic, s.one, s.other) - 1 AS code FROM {pages} AS p
            LEFT JOIN (SELECT serp, {hashes[0]} AS one, {hashes[1]} AS other FROM {log.shown}
                WHERE serp IN (SELECT serp FROM {pages}) GROUP BY serp) AS s ON s.serp = p.serp
            ORDER BY p.page""")
    return _numbers(table["code"])


def _one(column: Any) -> Any:
    made = column.combine_chunks().cast(pa.string())
    return made if isinstance(made, pa.Array) else pa.concat_arrays(made.chunks)


SHARE, _CHANGE = (number(3, sign)._replace(limit=f"{{:{sign}.3f}}".format) for sign in ("", "+"))
_NOBODY = "the log names no users: each session, or page where it names none, counts as one"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgedPages(LogAnswer):
    """An answer about the pages of a log whose topics are judged.

    Attributes
    ----------
    log, qrels : str
        Their names.
    how : str
        How topics of pages were found.
    pages, joined : int
        Pages of the log, and those that count: all but those in `left_out`.
    left_out : tuple of (str, int)
        Why pages were left out, and how many.
    by, slices : str or None, tuple of (str, int)
        The column that was sliced by, and pages of each value.
    unit, units, level : str, int, float
        What intervals are made over, ``session`` where no page names a user, how many of these, and the confidence.
    """

    asked: ClassVar[tuple[str, ...]] = ("qrels", "how", "pages", "joined", "by", "units")

    qrels: str
    how: str
    pages: int
    joined: int
    left_out: tuple[tuple[str, int], ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    units: int

    def facts(self) -> dict[str, Any]:
        """Give which pages count and why others do not."""
        return {
            **super().facts(),
            "left_out": [{"reason": reason, "pages": count} for reason, count in self.left_out],
            "slices": [{"slice": name, "pages": count} for name, count in self.slices],
        }

    @property
    def counted(self) -> str:
        """Which pages count, in words."""
        gone = "; ".join(f"{count} {reason}" for reason, count in self.left_out)
        some = f"{self.joined} of {self.pages} pages of {self.log} have a topic judged in {self.qrels}"
        return f"{some}, found {self.how}{f'; left out: {gone}' if gone else ''}."

    @property
    def intervals(self) -> str:
        """What intervals are made over, in words."""
        return f"{percent(self.level)} intervals take whole {self.unit}s for what varies, and are about these topics"

    def slice_columns(self, rows: Sequence[Any]) -> tuple[Column, ...]:
        """Make the columns of slices: for data, and for people where there are some."""
        slices = [row.slice for row in rows]
        shown = [ALL if name is None else name for name in slices]
        named = (Column("sliced", shown, TEXT, self.by, only="people"),) if self.by else ()
        return (Column("slice", slices, TEXT, only="data"), *named)


def rests_on(
    log: InteractionLog, qrels: Qrels, joined: Joined, by: str | None, unit: str, level: float
) -> dict[str, Any]:
    """Give the attributes of `JudgedPages`."""
    slices = tuple((name, int((joined.slices == at).sum())) for at, name in enumerate(joined.values))
    known = {name: getattr(joined, name) for name in ("how", "pages", "left_out", "units")}
    known |= {"qrels": qrels.name, "joined": len(joined.serp), "by": by, "slices": slices}
    shared = about(log, unit, level, {})
    if unit != shared["unit"]:
        shared["notes"] += (Note("no-users", _NOBODY),)
    return known | shared


def estimates(found: Sequence[Estimate], name: str, title: str | None = None, *, signed: bool = False) -> Column:
    """Make a column of estimates with their intervals; with signs where they may be below 0."""
    limits = [(one.low, one.high) if one.known else None for one in found]
    return Column(name, [one.value for one in found], _CHANGE if signed else SHARE, title, limits)
