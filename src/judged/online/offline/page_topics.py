"""Topics of the pages of a log, and the lists shown on them."""

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
from judged.online.engine import Relation, identifier, sql_list
from judged.online.layout import ALL, percent
from judged.online.log import LogAnswer, answer_fields, check_column
from judged.results import TEXT, Column, number
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.online.offline.concordance import IntervalEstimate
    from judged.results.types import Bools, Ints, Strings, Table


PageSelection: TypeAlias = Literal["first", "all"]
"""Pages of a result list: the first, or all."""

Unit: TypeAlias = Literal["user", "session"]

HASH_RANGE = (1 << 50) - 27  # of hashes, so that their sum over a long list fits into 64 bits

NO_SLICE = "(not known)"
"""Label of pages with a null value of the slicing column."""


@dataclass(frozen=True, eq=False)
class PageTopics:
    """Pages with a judged topic, ordered by page name.

    Keys of pages and units differ between loads of the same log. Their order does not depend on keys, so that sums are
    reproducible to the last digit.

    Parameters
    ----------
    serp, unit, topic
        (N,), key of the page, code of its user or session, and index of its topic in ``qrels.index.topics``.
    n_units
        Number of users or sessions.
    slices
        (N,), index in `values`.
    values
        Sorted values of the slicing column; empty without slicing.
    topic_source
        Description of the mapping from pages to topics.
    pages
        Number of pages of the log.
    excluded_pages
        Reasons for excluded pages, with counts. A page counts for the first reason only.
    """

    serp: Ints
    unit: Ints
    topic: Ints
    n_units: int
    slices: Ints
    values: tuple[str, ...]
    topic_source: str
    pages: int
    excluded_pages: tuple[tuple[str, int], ...]

    def select(self, is_selected: Bools, reason: str) -> PageTopics:
        """Return the selected pages, with the others counted as excluded for a reason."""
        unit_keys, unit = np.unique(self.unit[is_selected], return_inverse=True)
        columns = {name: getattr(self, name)[is_selected] for name in ("serp", "topic", "slices")}
        n_excluded = int((~is_selected).sum())
        excluded_pages = (*self.excluded_pages, (reason, n_excluded)) if n_excluded else self.excluded_pages
        return replace(self, unit=unit.ravel(), n_units=len(unit_keys), excluded_pages=excluded_pages, **columns)


def find_page_topics(
    log: InteractionLog, qrels: Qrels, topics: Any, *, by: str | None, unit: Unit, selection: PageSelection
) -> PageTopics:
    """Find the topic of each page.

    Parameters
    ----------
    topics
        Column of `log.serp` with topic ids; or texts of topics (a `Topics`, a path, or ``{id: text}``), compared with
        the query in lower case with single spaces. None: the column ``topic`` if the log has it, otherwise ``query_id``
        if the judgments use it.

    Raises
    ------
    InputError
        If the column does not exist, the mapping to topics is unknown, or no page has a judged topic.
    """
    key_column, topic_by_text, method = _topic_key(log, qrels, topics)
    if by is not None:
        check_column(log, by)
    slice_column = "" if by is None else f", CAST({identifier(by)} AS VARCHAR) AS slice"
    table = log.engine.arrow(f"""
        SELECT serp, query_id AS name, {identifier(unit)} AS unit, CAST({identifier(key_column)} AS VARCHAR) AS key,
            page, n_shown AS shown{slice_column}
        FROM {log.serp}""").sort_by("name")
    topic_codes = _topic_codes(table["key"], topic_by_text, qrels)
    # The order of reasons matters: a page counts for the first one.
    reasons = {
        "that are later pages of a result list": _integers(table["page"]) > 1 if selection == "first" else None,
        "without results": _integers(table["shown"]) == 0,
        "without a topic": topic_codes == -1,
        "without judgments of the topic": topic_codes == -2,
    }
    is_selected, excluded_pages = np.ones(len(table), dtype=np.bool_), list[tuple[str, int]]()
    for reason, is_excluded in reasons.items():
        if is_excluded is not None and (n_excluded := int((is_selected & is_excluded).sum())):
            excluded_pages.append((reason, n_excluded))
            is_selected &= ~is_excluded
    if not is_selected.any():
        counts = (
            ", ".join(f"{n_excluded} {reason}" for reason, n_excluded in excluded_pages)
            or "none, because the log has no pages"
        )
        raise InputError(
            f"no page of {log.name} has a judged topic (excluded pages: {counts})",
            fix="map pages to topics: use topics= with the name of a column of the log, or with the texts of the"
            " topics",
        )
    values, slices = _slice_codes(table["slice"] if by is not None else None, is_selected)
    units = table["unit"].filter(pa.array(is_selected)).combine_chunks().dictionary_encode()  # codes in page order
    serp, unit_codes, topic = _integers(table["serp"])[is_selected], _integers(units.indices), topic_codes[is_selected]
    n_units, n_pages = len(units.dictionary), len(table)
    return PageTopics(serp, unit_codes, topic, n_units, slices, values, method, n_pages, tuple(excluded_pages))


def _topic_key(log: InteractionLog, qrels: Qrels, topics: Any) -> tuple[str, dict[str, str | None] | None, str]:
    """Return the column that identifies topics, topic ids by text, and a description."""
    columns = log.serp.columns
    if isinstance(topics, str) and topics in columns:
        return topics, None, f"by the column {topics}"
    if topics is not None:
        topic_texts = topics if isinstance(topics, Topics) else read_topics(topics, columns)
        return (
            "query_norm",
            topic_ids_by_text(topic_texts),
            f"by the query text and the topic texts in {topic_texts.name}",
        )
    if "topic" in columns:
        return "topic", None, "by the column topic"
    topic_ids = pa.array(qrels.index.topics, pa.string()).to_pylist()[:1000]
    # Without a topic column, judgments may use the names of pages (as in TREC Session logs).
    if log.engine.rows(f"SELECT count(*) AS n FROM {log.serp} WHERE query_id IN {sql_list(topic_ids)}")[0]["n"]:
        return "query_id", None, "by the name of the page (query_id)"
    raise InputError(
        f"the topics of pages are unknown: {log.name} has no column topic",
        fix="use topics= with the name of a column of the log, or with the texts of the topics",
    )


def read_topics(topics: Any, columns: Any) -> Topics:
    """Read the texts of topics. `columns` of the log are suggested if it is not a file."""
    if isinstance(topics, Path):
        return Topics.read(topics)
    if isinstance(topics, Mapping) or hasattr(topics, "columns"):
        return Topics.of(topics)
    if not isinstance(topics, str):
        problem = f"`topics` must be a column, a path, or a mapping of topic IDs to texts, got {topics!r:.60}"
        raise InputError(problem, fix="use the name of a column, a path, or {topic_id: text}")
    try:
        return Topics.read(topics)
    except (OSError, InputError) as error:
        candidates = [name for name in columns if name in {"topic", "query_id", "query_norm"}]
        raise InputError(
            f"{topics!r} is neither a column of the log nor a file of topics: {getattr(error, 'problem', error)}",
            fix=f"use a column, such as {', '.join(candidates)}, or a file",
        ) from None


def topic_ids_by_text(topics: Topics) -> dict[str, str | None]:
    """Return topic ids by normalized text; None for a text of several topics."""
    topic_by_text: dict[str, str | None] = {}
    topic_ids, texts = topics.table["query_id"].to_pylist(), topics.table["text"].to_pylist()
    for topic_id, text in zip(topic_ids, texts, strict=True):
        normalized = " ".join((text or "").lower().split())
        topic_by_text[normalized] = None if normalized in topic_by_text else topic_id
    topic_by_text.pop("", None)
    return topic_by_text


def _topic_codes(keys: Any, topic_by_text: dict[str, str | None] | None, qrels: Qrels) -> Ints:
    """Return topic codes of pages: -1 without a topic, -2 for an unjudged topic."""
    if topic_by_text is not None:
        unique_topics = {text: topic_id for text, topic_id in topic_by_text.items() if topic_id is not None}
        text_index = pc.index_in(keys, value_set=pa.array(list(unique_topics), pa.string()))
        keys = pa.array(list(unique_topics.values()), pa.string()).take(text_index.combine_chunks())
    codes = pc.index_in(keys, value_set=pa.array(qrels.index.topics, pa.string()))
    codes = pc.if_else(pc.is_null(keys), -1, pc.fill_null(codes, -2))
    return np.asarray(codes, dtype=np.int64)


def _slice_codes(column: Any, is_selected: Bools) -> tuple[tuple[str, ...], Ints]:
    if column is None:
        return (), np.zeros(int(is_selected.sum()), dtype=np.int64)
    names = np.array(pc.fill_null(column, NO_SLICE).to_pylist(), dtype=object)[is_selected]
    values, slices = np.unique(names, return_inverse=True)
    return tuple(str(value) for value in values.tolist()), slices.ravel()


def _integers(column: Any) -> Ints:
    return np.asarray(pc.fill_null(column, 0).to_numpy(), dtype=np.int64)


def register_pages(log: InteractionLog, serp: Ints, topic: Ints) -> Relation:
    """Register pages in the database as a table ``serp, page, topic``."""
    return log.engine.register(pa.table({"serp": serp, "page": np.arange(len(serp)), "topic": topic}))


def lists_of(log: InteractionLog, serp: Ints, topic: Ints) -> tuple[Ints, Strings]:
    """Return document ids by page and rank, (D,), with the start of each page, (N + 1,).

    A document that a page shows twice counts once, at its first rank.
    """
    with log.engine.scratch():
        table: Table = log.engine.arrow(f"""
            SELECT p.page, s.object_id FROM {log.shown} AS s
            JOIN {register_pages(log, serp, topic)} AS p ON p.serp = s.serp
            GROUP BY p.page, s.object_id ORDER BY p.page, min(s.rank), s.object_id""")
    # Rows are sorted by page: starts of pages are positions of page numbers.
    return np.searchsorted(_integers(table["page"]), np.arange(len(serp) + 1)), _string_array(table["object_id"])


def list_codes(log: InteractionLog, page_topics: PageTopics) -> Ints:
    """Return codes of pages, (N,): equal for pages of a topic with the same list.

    The database hashes each list to two 50-bit numbers, so that no list is fetched.
    """
    # Two hashes with different argument orders: a collision of both is negligible.
    orders = "rank, object_id", "object_id, rank"
    hashes = [f"CAST(sum(hash({columns}) % {HASH_RANGE}) AS BIGINT)" for columns in orders]
    with log.engine.scratch():
        pages = register_pages(log, page_topics.serp, page_topics.topic)
        table: Table = log.engine.arrow(f"""
            SELECT dense_rank() OVER (ORDER BY p.topic, s.one, s.other) - 1 AS code FROM {pages} AS p
            LEFT JOIN (SELECT serp, {hashes[0]} AS one, {hashes[1]} AS other FROM {log.shown}
                WHERE serp IN (SELECT serp FROM {pages}) GROUP BY serp) AS s ON s.serp = p.serp
            ORDER BY p.page""")
    return _integers(table["code"])


def _string_array(column: Any) -> Any:
    strings = column.combine_chunks().cast(pa.string())
    return strings if isinstance(strings, pa.Array) else pa.concat_arrays(strings.chunks)


SHARE, _SIGNED = (number(3, sign)._replace(limit=f"{{:{sign}.3f}}".format) for sign in ("", "+"))
_NO_USERS = "the log has no user IDs: each session counts as a user, and so does each page without a session"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgedPages(LogAnswer):
    """Result over the pages of a log with judged topics.

    Attributes
    ----------
    log, qrels : str
        Names.
    topic_source : str
        Description of the mapping from pages to topics.
    pages, pages_used : int
        Numbers of pages of the log, and of used pages.
    excluded_pages : tuple of (str, int)
        Reasons for excluded pages, with counts.
    by, slices : str or None, tuple of (str, int)
        Slicing column, and pages of each value.
    unit, units, level : str, int, float
        Unit of intervals (``session`` for a log without users), number of units, and confidence level.
    """

    fact_fields: ClassVar[tuple[str, ...]] = ("qrels", "topic_source", "pages", "pages_used", "by", "units")

    qrels: str
    topic_source: str
    pages: int
    pages_used: int
    excluded_pages: tuple[tuple[str, int], ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    units: int

    def facts(self) -> dict[str, Any]:
        """Return the facts of the result, with excluded pages and slices."""
        return {
            **super().facts(),
            "excluded_pages": [{"reason": reason, "pages": n_pages} for reason, n_pages in self.excluded_pages],
            "slices": [{"slice": value, "pages": n_pages} for value, n_pages in self.slices],
        }

    @property
    def counted(self) -> str:
        """Sentence about used and excluded pages."""
        exclusions = ", ".join(f"{n_pages} {reason}" for reason, n_pages in self.excluded_pages)
        coverage = (
            f"The result uses {self.pages_used} of {self.pages} pages of {self.log}, mapped to topics of {self.qrels}"
        )
        return f"{coverage} {self.topic_source}{f' (excluded pages: {exclusions})' if exclusions else ''}."

    @property
    def intervals(self) -> str:
        """Clause about the population of the intervals."""
        return f"{percent(self.level)} CIs generalize to other {self.unit}s with these topics, not to other topics"

    def slice_columns(self, rows: Sequence[Any]) -> tuple[Column, ...]:
        """Return the slice column for data, and another for text output if there are slices."""
        slices = [row.slice for row in rows]
        labels = [ALL if value is None else value for value in slices]
        label_column = (Column("sliced", labels, TEXT, self.by, only="people"),) if self.by else ()
        return (Column("slice", slices, TEXT, only="data"), *label_column)


def shared_fields(
    log: InteractionLog, qrels: Qrels, page_topics: PageTopics, by: str | None, unit: str, level: float
) -> dict[str, Any]:
    """Return the attributes of `JudgedPages`."""
    slices = tuple((value, int((page_topics.slices == i).sum())) for i, value in enumerate(page_topics.values))
    shared = {name: getattr(page_topics, name) for name in ("topic_source", "pages", "excluded_pages")}
    shared |= {"units": page_topics.n_units, "qrels": qrels.name, "pages_used": len(page_topics.serp)}
    fields = answer_fields(log, unit, level, {})
    if unit != fields["unit"]:
        fields["notes"] += (Note("no-users", _NO_USERS),)
    return {"by": by, "slices": slices} | shared | fields


def estimate_column(
    estimates: Sequence[IntervalEstimate], name: str, title: str | None = None, *, signed: bool = False
) -> Column:
    """Return a column of estimates with intervals, with plus signs if `signed`."""
    intervals = [estimate.interval for estimate in estimates]
    return Column(name, [estimate.value for estimate in estimates], _SIGNED if signed else SHARE, title, intervals)
