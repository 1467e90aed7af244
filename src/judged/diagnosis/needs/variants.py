"""Which topics word the same need, and judgments of needs made into judgments of their wordings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from judged.data import Qrels, id_text
from judged.data.attributes import Attributes
from judged.data.compute import int_array
from judged.data.topics import Topics
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS = ("need", "need_id", "topic_id", "topic")


def needs_of(mapping: Any, column: str | None = None) -> dict[str, str]:
    """Give the need of each query id.

    >>> needs_of({"q1": {"topic_id": 7, "words": 3}, "q2": {"topic_id": 7}, "q3": {"words": 2}})
    {'q1': '7', 'q2': '7'}
    """
    # `mapping`: `{query_id: need}`, `Attributes`, `Topics`, a file of attributes (CSV, TSV, JSONL, Parquet) or a data
    # frame. `column`: the attribute that names the need; None for `need`, `need_id`, `topic_id` or `topic`, whichever
    # there is, or the only one there is.
    if isinstance(mapping, Mapping):
        given = cast("Mapping[Any, Any]", mapping)
        if not any(isinstance(one, Mapping) for one in given.values()):
            return {id_text(query, "query id"): id_text(need, "need") for query, need in given.items()}
    if isinstance(mapping, Topics):
        name = _column(mapping.attributes, column, mapping.where)
        ids, values = mapping.table["query_id"].to_pylist(), mapping.table[name].to_pylist()
    else:
        known = Attributes.of(mapping)
        where = str(mapping) if isinstance(mapping, (str, Path)) else known.where
        name = _column(known.names, column, where)
        ids, values = known.query_ids, [_text(value) for value in known.column(name).to_pylist()]
    return {query: need for query, need in zip(ids, values, strict=True) if need}


def _column(names: Sequence[str], wanted: str | None, where: str) -> str:
    if wanted is None:
        wanted = next((name for name in _COLUMNS if name in names), names[0] if len(names) == 1 else None)
    if wanted not in names:
        some = ", ".join(names) or "none"
        asked = f"no attribute {wanted!r} names" if wanted else "no attribute names"
        raise InputError(f"{asked} the need of a topic", fix=f"name one with column= (--column): {some}", path=where)
    return cast("str", wanted)


def _text(value: Any) -> str | None:
    """Write a need as its id: attributes hold whole numbers as floats."""
    if value is None or isinstance(value, str):
        return value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def expand_qrels(qrels: Any, mapping: Any, *, column: str | None = None) -> Qrels:
    """Make judgments of needs into judgments of query ids: each wording has the judgments of its need.

    Parameters
    ----------
    qrels
        Judgments whose query ids are needs, as `Qrels.of` takes them. A need without a wording is left out.
    mapping, column
        As for `needs_of`.

    Returns
    -------
    Qrels

    Raises
    ------
    InputError
        If no need of the mapping is judged.

    Examples
    --------
    >>> expand_qrels({"7": {"a": 1, "b": 0}, "8": {"c": 1}}, {"7-1": "7", "7-2": "7"}).table.to_pydict()["query_id"]
    ['7-1', '7-1', '7-2', '7-2']
    """
    import pyarrow as pa

    judged = Qrels.of(qrels)
    rows_of: dict[str, list[int]] = {}
    for row, need in enumerate(judged.table["query_id"].to_pylist()):
        rows_of.setdefault(need, []).append(row)
    variants = [(query, rows_of[need]) for query, need in needs_of(mapping, column).items() if need in rows_of]
    if not variants:
        problem = f"no need of the mapping is judged: the first topic of the qrels is {judged.topics[0]!r}"
        raise InputError(problem, fix="check that the needs are the query ids of the qrels", path=judged.where)
    rows = np.concatenate([np.array(part, dtype=np.int64) for _, part in variants])
    names = [query for query, part in variants for _ in part]
    table = judged.table.take(int_array(rows))
    table = table.set_column(table.column_names.index("query_id"), "query_id", pa.array(names, pa.string()))
    return Qrels(table, judged.name, judged.where, judged.sha256)


def by_variant(qrels: Qrels, needs: Mapping[str, str]) -> tuple[Qrels, str]:
    """Expand judgments where they are of needs, and say so."""
    topics = set(qrels.topics)
    judged_needs = topics & set(needs.values())
    unjudged = [query for query in needs if query not in topics]
    if not unjudged or not judged_needs:
        return qrels, ""
    clash = sorted(query for query in judged_needs if needs.get(query, query) != query)
    if clash:
        problem = f"{clash[0]!r} is a query id and also the name of a need: the qrels could be of either"
        raise InputError(problem, fix="make qrels by query id with judged.expand_qrels", path=qrels.where)
    made = expand_qrels(qrels, needs)
    return made, f"the judgments are of needs: each of {len(made.topics)} query variants has those of its need"
