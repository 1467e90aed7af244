"""The names that columns go by: ours are those of ir_datasets, others are understood on input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["qrels", "run"]

_ALIASES: dict[str, tuple[str, ...]] = {
    "query_id": ("qid", "query", "q_id", "topic", "topic_id", "query_number", "query_no"),
    "doc_id": ("docid", "docno", "doc", "did", "pid", "corpus_id", "document_id", "passage_id", "item_id",
               "doc_number"),
    "relevance": ("rel", "label", "grade", "judgment", "judgement", "relevance_grade"),
    "score": ("sim", "similarity", "rsv", "retrieval_score"),
    "rank": ("position", "rank_of_doc"),
    "run_id": ("run", "system", "system_id", "system_number", "run_name", "tag"),
    "iteration": ("iter", "subtopic", "subtopic_id", "assessor", "q0"),
}  # fmt: skip

_CANONICAL = {alias: name for name, aliases in _ALIASES.items() for alias in (name, *aliases)}
_NEEDED = {"qrels": {"query_id", "doc_id", "relevance"}, "run": {"query_id", "doc_id"}}


def canonical(names: Iterable[str], kind: Kind) -> tuple[str, ...]:
    """Translate a table's column names; a name that means nothing here becomes ``""``.

    In qrels a column called ``score`` is the relevance (BEIR writes it so).

    >>> canonical(["query-id", "corpus-id", "score"], "qrels")
    ('query_id', 'doc_id', 'relevance')
    >>> canonical(["qid", "Docno", "sim", "comment"], "run")
    ('query_id', 'doc_id', 'score', '')
    """
    found = tuple(_CANONICAL.get(name.strip().lower().replace("-", "_").replace(" ", "_"), "") for name in names)
    if kind == "qrels" and "relevance" not in found:
        found = tuple("relevance" if name == "score" else name for name in found)
    return tuple(name if name not in found[:at] else "" for at, name in enumerate(found))


def missing(found: Iterable[str], kind: Kind) -> set[str]:
    """Which columns a table of this kind still lacks."""
    return _NEEDED[kind] - set(found)
