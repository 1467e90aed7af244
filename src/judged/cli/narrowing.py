"""`--where`: judgments of some topics only, for commands that know nothing of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.cli.slicing_options import Asked
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.data import Qrels, Run


def narrowed(
    qrels: Qrels,
    runs: list[Run],
    *,
    attributes: str | None,
    queries: str | None,
    where: str | None,
    topics: str | None,
) -> Qrels:
    """Leave the topics that an expression over their attributes asks for.

    Raises
    ------
    InputError
        If the expression makes no sense, no topic satisfies it, or topics outside of the qrels would count.
    """
    if where is None:
        if attributes is not None:
            raise InputError("--attributes goes with --where", fix="say which topics: --where \"kind == 'law'\"")
        return qrels
    if topics == "run":
        raise InputError(
            "--where chooses among the topics of the qrels, and --topics run counts others", fix="leave out one of them"
        )
    asked = Asked(attributes=attributes, queries=queries, where=where)
    query_ids = sorted(qrels.topics)
    mask = asked.where_mask(asked.known(qrels, run=runs[0] if len(runs) == 1 else None), query_ids)
    if mask is None:
        return qrels
    return qrels.over([query for query, kept in zip(query_ids, mask.tolist(), strict=True) if kept])
