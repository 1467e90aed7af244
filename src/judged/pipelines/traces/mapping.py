"""Which document each chunk is of: files of two columns, or a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from judged.data import files
from judged.errors import InputError
from judged.pipelines.traces.attributes import parsed


def read_mapping(path: str | Path) -> dict[str, str]:
    """Read documents by chunk: a JSON object, or lines of a chunk and its document, by tab, comma or blanks.

    Raises
    ------
    InputError
        If a line has not two fields, or names another document for a chunk than one before it.
    """
    text = files.text(files.local(path), str(path))
    whole = parsed(text) if text.lstrip().startswith("{") else None
    if isinstance(whole, Mapping):
        return {str(chunk): str(document) for chunk, document in cast("Mapping[str, object]", whole).items()}
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t" if "\t" in line else "," if "," in line else None)
        if not line.strip():
            continue
        if len(fields) != 2:
            problem = f"{len(fields)} fields, not a chunk and its document"
            raise InputError(
                problem, fix="write two fields a line, with a tab between them", path=str(path), line=number
            )
        chunk, document = (field.strip() for field in fields)
        if found.setdefault(chunk, document) != document:
            problem = f"{chunk!r} is of {found[chunk]!r} and of {document!r}"
            raise InputError(problem, fix="name one document for each chunk", path=str(path), line=number)
    return found
