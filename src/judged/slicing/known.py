"""All that is known of the topics of some judgments: from tables, and derived where no table has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.data.attributes import Attributes
from judged.data.topics import Topics
from judged.errors import InputError
from judged.slicing.derived import derive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.data import Qrels

OUTCOME = "first_relevant"
"""The attribute that is cut by what a run achieved."""

_TRAFFIC = "traffic"
_TEXTS = "the topics' texts (queries)"
_SOURCES = {
    **dict.fromkeys(("words", "length", "kind", "script"), _TEXTS),
    "language": f"{_TEXTS}, and install py3langid",
    **dict.fromkeys(("frequency", "traffic_share"), "how often each query was asked, as an attribute traffic"),
    **dict.fromkeys(("freshness", "freshness_band"), "documents with a date"),
    OUTCOME: "a single run, whose results it is told by",
}


def known_topics(
    qrels: Qrels,
    *,
    attributes: Any = None,
    queries: Any = None,
    needed: Iterable[str] = (),
    run: Any = None,
    documents: Any = None,
) -> Attributes:
    """Give what is known of the topics of the qrels.

    Parameters
    ----------
    qrels
        The topics, and what can be told from their judgments.
    attributes
        What `Attributes.of` takes.
    queries
        `Topics` or a path: texts, and the attributes beside them.
    needed
        The attributes that are asked for. Nothing is derived where the tables have them all.
    run
        The baseline, by which ``first_relevant`` is told: slices by an outcome are cut by one run for all.
    documents
        A table of documents, for ``freshness`` and the like.

    Raises
    ------
    InputError
        If a table cannot be read, is of other topics, or what is needed could be derived and its source is not given.

    Examples
    --------
    >>> from judged import Qrels
    >>> qrels = Qrels.of({"q1": {"d": 1, "e": 1}, "q2": {"d": 0}})
    >>> known_topics(qrels, attributes={"q1": {"kind": "law"}}, needed=["relevant"]).column("relevant").to_pylist()
    [2.0, 0.0]
    """
    topics = Topics.read(queries) if queries is not None and not isinstance(queries, Topics) else queries
    found = Attributes.of({query: {} for query in sorted(qrels.topics)})
    for part in (attributes, topics):
        found = found if part is None else found.joined(_of_these(Attributes.of(part), found))
    asked = {found.spelled(name) for name in needed} - {"query_id"}
    if asked <= set(found.names):
        return found
    made = derive(
        qrels,
        topics=topics,
        attributes=found,
        run=run if OUTCOME in asked else None,
        traffic=_TRAFFIC if _TRAFFIC in found.names else None,
        documents=documents,
        languages=None if "language" in asked else (),
    )
    for name, source in _SOURCES.items():
        if name in asked and name not in made.names:
            raise InputError(f"the attribute {name} is in no table, and cannot be derived", fix=f"give {source}")
    return made


def _of_these(known: Attributes, topics: Attributes) -> Attributes:
    """Give what is known of these topics, and refuse a table of others only: every attribute would be missing."""
    if not set(known.query_ids) & set(topics.query_ids):
        theirs = repr(known.query_ids[0]) if len(known) else "none"
        raise InputError(
            f"no topic in common with the qrels: its first one is {theirs}, that of the qrels {topics.query_ids[0]!r}",
            fix="check that both use the same query ids",
            path=known.where,
        )
    return known.over(topics.query_ids)
