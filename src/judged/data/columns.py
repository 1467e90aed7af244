"""The names that columns go by: ours are those of ir_datasets, others are understood on input."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Literal

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind = Literal["qrels", "run"]

_ALIASES: dict[str, tuple[str, ...]] = {
    "query_id": ("qid", "query", "q_id", "topic", "topic_id", "query_number", "query_no"),
    "doc_id": (
        "docid",
        "docno",
        "doc",
        "did",
        "pid",
        "corpus_id",
        "document_id",
        "passage_id",
        "item_id",
        "doc_number",
    ),
    "relevance": ("rel", "label", "grade", "judgment", "judgement", "relevance_grade"),
    "score": ("sim", "similarity", "rsv", "retrieval_score"),
    "rank": ("position", "rank_of_doc"),
    "run_id": ("run", "system", "system_id", "system_number", "run_name", "tag"),
    "iteration": ("iter", "subtopic", "subtopic_id", "assessor", "q0"),
}

_CANONICAL = {alias: name for name, aliases in _ALIASES.items() for alias in (name, *aliases)}
_USED = {
    "qrels": {"query_id", "doc_id", "relevance", "iteration"},
    "run": {"query_id", "doc_id", "score", "rank", "run_id"},
}
ONCE = "leave one of them out, or give it another name"
_GIVES_WAY = frozenset({"query", "docid"})
_NEEDED = {"qrels": {"query_id", "doc_id", "relevance"}, "run": {"query_id", "doc_id"}}


def canonical(names: Iterable[str], kind: Kind) -> tuple[str, ...]:
    """Translate a table's column names; a name that means nothing here becomes ``""``.

    >>> canonical(["query-id", "corpus-id", "score"], "qrels")
    ('query_id', 'doc_id', 'relevance')
    >>> canonical(["qid", "Docno", "sim", "comment"], "run")
    ('query_id', 'doc_id', 'score', '')

    ``query`` is its text beside another column of ids, and ``docid`` a number inside of an index beside ``docno``:
    PyTerrier writes both.

    >>> canonical(["qid", "docid", "docno", "rank", "score", "query"], "run")
    ('query_id', '', 'doc_id', 'rank', 'score', '')
    """
    # In qrels a column called `score` is the relevance (BEIR writes it so).
    plain = [name.strip().lower().replace("-", "_").replace(" ", "_") for name in names]
    found = [_CANONICAL.get(name, "") for name in plain]
    if kind == "qrels" and "relevance" not in found:
        found = ["relevance" if name == "score" else name for name in found]
    same = defaultdict[str, set[str]](set)
    for given, name in zip(plain, found, strict=True):
        same[name].add(given)
    for at, name in enumerate(found):
        if name and plain[at] in _GIVES_WAY and len(same[name]) > 1:
            found[at] = ""
    return tuple(found)


def clash(names: Iterable[str], given: Iterable[str], kind: Kind) -> str:
    """Say which two columns mean the same, as neither may be dropped in silence; ``""`` where none do.

    >>> clash(["doc_id", "relevance", "relevance"], ["doc_id", "relevance", "label"], "qrels")
    "the columns 'relevance' and 'label' both mean the relevance"
    """
    first: dict[str, str] = {}
    for name, column in zip(names, given, strict=True):
        if name in first:
            same = first[name] == column
            return (
                f"two columns are called {column!r}"
                if same
                else (f"the columns {first[name]!r} and {column!r} both mean the {name}")
            )
        if name in _USED[kind]:
            first[name] = column
    return ""


def missing(found: Iterable[str], kind: Kind) -> set[str]:
    """Which columns a table of this kind still lacks."""
    return _NEEDED[kind] - set(found)


def refuse_same_names(names: Sequence[str], where: str, line: int | None = None) -> None:
    """Refuse columns of which two have one name: records would keep the last."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"two columns are called {twice!r}", fix="name each once", path=where, line=line)
