"""`--where`: judgments of some topics only, for commands that know nothing of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.cli import output
from judged.cli.slicing_options import Asked
from judged.errors import InputError
from judged.tables import markdown_prose, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.data import Qrels, Run
    from judged.data.attributes import Attributes


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
    """Keep the topics that an expression over their attributes asks for, and say what should be known of that."""
    if where is None:
        if attributes is not None:
            raise InputError("--attributes goes with --where", fix="say which topics: --where \"kind == 'law'\"")
        return qrels
    if topics == "run":
        raise InputError(
            "--where chooses among the topics of the qrels, and --topics run counts others", fix="leave out one of them"
        )
    cut_by = next((run for run in runs if run.name == baseline), runs[0])
    return chosen_topics(qrels, Asked(attributes=attributes, queries=queries, where=where), cut_by)


def chosen_topics(qrels: Qrels, asked: Asked, cut_by: Run) -> Qrels:
    """Leave the topics that ``--where`` keeps, and say what should be known of the choice."""
    if asked.where is None:
        return qrels
    query_ids = sorted(qrels.topics)
    known = asked.known(qrels, run=cut_by)
    mask = asked.where_mask(known, query_ids)
    if mask is None:
        return qrels
    output.remarks([*asked.remarks(cut_by.name), *_unknown(asked.where, known.over(query_ids))])
    return qrels.over([query for query, kept in zip(query_ids, mask.tolist(), strict=True) if kept])


def traced(text: str, form: str, where: str | None) -> str:
    r"""Say beside a result which topics were chosen, in the form that it has; CSV has no place for it.

    >>> traced("| a |", "markdown", "words > 3")
    '| a |\n\nOver the topics where words > 3.'
    >>> traced('{"a": 1}', "json", None)
    '{"a": 1}'
    """
    if where is None or form in {"csv", "tsv", "jsonl"}:
        return text
    if form == "json":
        import json

        return json.dumps({**json.loads(text), "where": where}, indent=2, ensure_ascii=False)
    if form == "latex":
        return f"{text}\n% over the topics where {visible(where)}"
    said = f"Over the topics where {where}."
    return f"{text}\n\n{markdown_prose(said) if form == 'markdown' else said}"


def _unknown(where: str, known: Attributes) -> Iterator[str]:
    """Say of how many topics it is not known whether they were meant."""
    from judged.slicing.expression import Expression

    if "missing" in where:
        return
    for name in Expression(where).names:
        if lacking := known.column(name).null_count:
            yield f"{lacking} of {len(known)} topics have no {name}: they satisfy no comparison with it"
