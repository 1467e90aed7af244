"""Answers, and what is known of them, as files that `judged.rag.readers.read_responses` gives back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from judged.atomic import replaced, unwritten
from judged.errors import InputError
from judged.rag.responses import KEYS, TABLES

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged.rag.responses import Responses


_ORDER = {
    "context": ("query_id", "run_id", "rank", "doc_id"),
    "citations": ("query_id", "run_id", "sentence", "place", "doc_id"),
}


def write_responses(responses: Responses, folder: str | Path, names: Collection[str] = tuple(TABLES)) -> None:
    """Write each table that is there as JSON Lines, ``answers.jsonl`` and so on, its rows in the order of their keys.

    Equal tables give equal bytes. Cells that are empty are left out; tables that are not named stay as they are.

    Raises
    ------
    JudgedError
        If nothing can be written there.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            if name in responses.tables and name in names:
                if others := [file.name for file in place.glob(f"{name}.*") if file.name != f"{name}.jsonl"]:
                    fix = f"move {others[0]} away, or name another folder"
                    raise InputError(f"the folder has a table {name} already", fix=fix, path=str(place / others[0]))
                with replaced(place / f"{name}.jsonl") as part, part.open("w", encoding="utf-8") as file:
                    order = _ORDER.get(name, KEYS[name])
                    table = responses[name].sort_by([(column, "ascending") for column in order])
                    for row in table.to_pylist():
                        known = {column: value for column, value in row.items() if value is not None}
                        file.write(json.dumps(known, ensure_ascii=False) + "\n")
    except OSError as error:
        unwritten(place, error)
