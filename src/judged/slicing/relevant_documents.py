"""What the relevant documents of a topic tell of it: their sources, their ages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from judged.data.fact_files import typed_facts
from judged.errors import InputError
from judged.slicing.ages import days_by_doc, today_of
from judged.slicing.bands import AGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data import Qrels
    from judged.data.documents import Documents

_MOST_GROUPS = 50  # values of a column: with more it is a title or a text, and no group

Columns = dict[str, list[Any]]


def relevant_docs(qrels: Qrels, rel: float) -> dict[str, list[str]]:
    """Give the ids of the documents of at least this grade, by topic; topics without any have an empty list."""
    index = qrels.index
    found: dict[str, list[str]] = {query: [] for query in index.topics}
    pairs = zip(index.topic.tolist(), index.row_names, index.grade.tolist(), strict=True)
    for topic, doc, grade in pairs:
        if grade >= rel and grade >= 0:
            found[index.topics[topic]].append(doc)
    return found


def document_columns(
    query_ids: Sequence[str], qrels: Qrels, documents: Documents, *, today: Any, date: str, rel: float
) -> Columns:
    """Give the attributes that a topic has from its relevant documents; None where nothing is known of these."""
    # `freshness` and `freshness_band`: the age in days of the newest one, where the documents have dates. For each
    # column of text with at most 50 values, `relevant_` and its name: the value that most of them have, or `mixed`
    # where no value is alone the most frequent.
    table = typed_facts(documents.table, "doc_id", documents.where)
    relevant = relevant_docs(qrels, rel)
    docs = table["doc_id"].to_pylist()
    made: Columns = {}
    for name in documents.facts:
        values = table[name].to_pylist()
        if name == date:
            days = days_by_doc(docs, values, name, documents.where)
            now = today_of(today, days)
            newest = [max((days[doc] for doc in relevant.get(query, ()) if doc in days), default=None)
                      for query in query_ids]  # fmt: skip
            ages = [None if day is None else float((now - day).days) for day in newest]
            made |= {"freshness": ages, "freshness_band": AGE.all_of(ages)}
        elif str(table[name].type) == "string" and 0 < len({*values} - {None}) <= _MOST_GROUPS:
            group = dict(zip(docs, values, strict=True))
            made[f"relevant_{name}"] = [_most_frequent(relevant.get(query, ()), group) for query in query_ids]
    if (today is not None or date != "date") and "freshness" not in made:
        raise InputError(
            f"there is no column {date!r} to count ages from (there is {', '.join(documents.facts) or 'nothing'})",
            fix="name the column of dates: date=",
            path=documents.where,
        )
    return made


def _most_frequent(docs: Sequence[str], group: dict[str, str | None]) -> str | None:
    """Name the group that most documents are of; ``mixed`` for a tie, None where no group is known.

    >>> _most_frequent(["a", "b", "c"], {"a": "web", "b": "web", "c": "mail"}), _most_frequent(["x"], {})
    ('web', None)
    """
    counts = Counter(name for doc in docs if (name := group.get(doc)) is not None).most_common(2)
    if not counts:
        return None
    return "mixed" if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]
