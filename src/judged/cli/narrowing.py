"""`--where`: judgments of some topics only, for commands that know nothing of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.cli import output
from judged.cli.slicing import SliceOptions
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
    topics: str | None = None,
    baseline: str | None = None,
) -> Qrels:
    """Keep the topics that an expression over their attributes asks for."""
    if where is None:
        if attributes is not None:
            raise InputError("--attributes goes with --where", fix="say which topics: --where \"kind == 'law'\"")
        return qrels
    if topics == "run":
        raise InputError(
            "--where chooses among the topics of the qrels, and --topics run counts others", fix="leave out one of them"
        )
    cut_by = next((run for run in runs if run.name == baseline), runs[0])
    asked = SliceOptions(attributes=attributes, queries=queries, where=where)
    output.remarks(map(str, asked.notes(cut_by)))
    return asked.narrowed(qrels, cut_by)
