"""Pairs of query and document as a log has them, and the topics that judgments and runs call them by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.compute import pc
from judged.data.topics import Topics
from judged.errors import InputError
from judged.online.offline.joined import topics_at, topics_by_text

if TYPE_CHECKING:
    from judged._types import Table
    from judged.online.log import InteractionLog


def column_and_texts(log: InteractionLog, topics: Any) -> tuple[str | None, dict[str, str] | None]:
    """Tell the column that tells queries apart, as `cells_of` takes it, and the topic of each text where texts do."""
    if topics is None or (isinstance(topics, str) and topics in log.serp.columns):
        return topics, None
    known = topics if isinstance(topics, Topics) else topics_at(topics, log.serp.columns)
    return "query_norm", {text: topic for text, topic in topics_by_text(known).items() if topic is not None}


def with_topics(pairs: Table, texts: dict[str, str] | None) -> Table:
    """Call the queries of pairs by their topics; those without one keep an empty name.

    Raises
    ------
    InputError
        If no query has a topic.
    """
    if texts is None:
        return pairs
    at = pc.index_in(pairs["query"], value_set=pa.array(list(texts), pa.string()))
    if not len(at.drop_null()):
        raise InputError("no query of the log is the text of a topic", fix="name a column of the log that has topics")
    names = pc.fill_null(pa.array(list(texts.values()), pa.string()).take(at.combine_chunks()), "")
    return pairs.set_column(pairs.column_names.index("query"), "query", names)
