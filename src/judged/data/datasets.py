"""Qrels, results, topics, and documents of ir_datasets, from a dataset object or an address ``irds:DATASET``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data.objects import canonical_table, dict_table
from judged.data.rows import TableRows
from judged.errors import NO_CONTENT, InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from judged.data.column_names import Kind

_ADDRESS = "irds:"


def is_dataset(data: Any) -> bool:
    """Return whether this is an address ``irds:DATASET``, or a dataset object of ir_datasets.

    >>> is_dataset("irds:cranfield"), is_dataset("cranfield.txt")
    (True, False)
    """
    return str(data).startswith(_ADDRESS) if isinstance(data, (str, Path)) else hasattr(data, "has_qrels")


def dataset_name(data: Any) -> str:
    """Return the id of a dataset, such as ``beir/scifact/test``; ``dataset`` for an object without an id."""
    if isinstance(data, (str, Path)):
        return str(data).removeprefix(_ADDRESS)
    return data.dataset_id() if hasattr(data, "dataset_id") else "dataset"


def dataset_rows(data: Any, kind: Kind) -> TableRows:
    """Return the qrels of a dataset, or for a run its results (``scoreddocs``), such as those of a first stage."""
    records = _records(data, "scoreddocs" if kind == "run" else "qrels")
    where = f"{_ADDRESS}{dataset_name(data)}"
    return TableRows(canonical_table(dict_table([record._asdict() for record in records]), kind, where), where)


def dataset_topics(data: Any) -> list[dict[str, Any]]:
    """Return the fields of the queries of a dataset, with their default text as ``text``."""
    return [{**query._asdict(), "text": query.default_text()} for query in _records(data, "queries")]


def dataset_documents(data: Any, doc_ids: Collection[str] | None) -> Iterator[tuple[str, str, str]]:
    """Yield id, title, and default text without the title, of all documents or only those of `doc_ids`."""
    for document in _records(data, "docs", doc_ids):
        title = getattr(document, "title", "") or ""
        yield document.doc_id, title, document.default_text().removeprefix(title).strip()


def _records(data: Any, part: str, doc_ids: Collection[str] | None = None) -> Iterator[Any]:
    dataset, where = _dataset(data), f"{_ADDRESS}{dataset_name(data)}"
    if not getattr(dataset, f"has_{part}")():
        raise InputError(f"this dataset has no {part}", fix="use another dataset", path=where, rule=NO_CONTENT)
    try:
        records = getattr(dataset, f"{part}_iter")
        yield from records() if doc_ids is None else dataset.docs_store().get_many_iter(doc_ids)
    except (OSError, RuntimeError) as error:  # a download that failed
        problem = f"the {part} cannot be read ({type(error).__name__}: {error!s:.200})"
        raise InputError(
            problem, fix="check the network connection and the free disk space", path=where, rule=NO_CONTENT
        ) from None


def _dataset(data: Any) -> Any:
    if not isinstance(data, (str, Path)):
        return data
    try:
        ir_datasets: Any = import_module("ir_datasets")
    except ModuleNotFoundError:
        raise MissingExtraError("ir_datasets") from None
    name = dataset_name(data)
    try:
        return ir_datasets.load(name)
    except KeyError:
        from judged.data.toml_files import suggest_name  # rarely needed, and every command imports this module

        fix = suggest_name(name, list(ir_datasets.registry))
        raise InputError(f"ir_datasets has no dataset {name!r}", fix=fix, rule=NO_CONTENT) from None
