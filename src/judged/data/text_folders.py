"""Folders of documents: one text a file, or files that hold many."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from judged.data import files
from judged.data.trec_documents import is_trec
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY = frozenset({".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather"})
_PACKED = frozenset({".gz", ".bz2", ".xz", ".zst"})


def folder_texts(folder: Path, wanted: frozenset[str] | None) -> Iterator[tuple[Path, str, str]]:
    """Give each file below a folder, with id and text of the one document that it is, or ``""`` if it holds many.

    Raises
    ------
    InputError
        If there is no file, one that is not text, or two of one id.
    """
    paths = sorted(folder.glob("corpus.jsonl*")) or [  # as BEIR has it, beside queries and qrels
        Path(below) / name
        for below, _, names in sorted(os.walk(folder))
        for name in sorted(names)
        if not any(part.startswith(".") for part in (Path(below) / name).relative_to(folder).parts)
    ]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise InputError("there is no file in this folder", fix="name a folder of documents", path=str(folder))
    known: dict[str, Path] = {}
    odd: list[str] = []
    for path in paths:
        packed = path.suffix.lower() in _PACKED
        name = path.relative_to(folder).with_suffix("") if packed else path.relative_to(folder)
        head = files.head(path)
        if name.suffix.lower() in _MANY or is_trec(head):
            yield path, "", ""
            continue
        doc = name.with_suffix("").as_posix()
        if doc in known:
            problem = f"two files have the id {doc!r}: {known[doc].name} and {path.name}"
            raise InputError(problem, fix="let their names differ in more than their endings", path=str(folder))
        known[doc] = path
        if b"\0" in head:
            odd.append(path.name)
        elif wanted is None or doc in wanted:
            with files.opened(path) as stream:
                data = stream.read().removeprefix(files.BOM)
            try:
                yield path, doc, data.decode().strip()
            except UnicodeDecodeError:
                odd.append(path.name)
    if odd:
        problem = f"{len(odd)} of {len(paths)} files are not UTF-8 text: {', '.join(odd)[:80]}"
        raise InputError(problem, fix="convert them, or put them elsewhere", path=str(folder))
