"""Where judgments came from, if labels of several judges were made into one grade: kept with them and beside files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from judged.data import files
from judged.errors import InputError
from judged.results.atomic import replaced

_SCHEMA = "judged.origin/1"


@dataclass(frozen=True)
class Origin:
    """How judgments were made of labels; it is of all of them, also where some topics were chosen afterwards."""

    how: str  # `majority`, `mean`, `dawid-skene`..., or `judge`, and which of several labels of a pair that takes
    # human, model, click: how many labels of each kind count
    human: int = 0
    model: int = 0
    click: int = 0
    judges: tuple[str, ...] = ()  # who gave them
    synthetic: int = 0  # topics that were made from documents, and asked by nobody
    tied: int = 0  # pairs with no grade that most judges gave
    converged: bool = True  # whether the estimate had settled
    last: str = ""  # when the last label was given, ISO 8601 in UTC; empty where nobody knows
    sha256: str = ""  # of the labels

    @classmethod
    def of(cls, known: dict[str, Any]) -> Self:
        """Read it from plain values; what is not known here is left out.

        Raises
        ------
        TypeError
            If it lacks something.
        """
        values = {field.name: known[field.name] for field in fields(cls) if field.name in known}
        return replace(cls(**values), judges=tuple(known.get("judges", ())))


def origin_of_file(path: str, sha256: str | None) -> Origin | None:
    """Read what stands beside a file of judgments with this hash; None where nothing does, or it is of another file."""
    beside = Path(f"{path}.origin.json")
    if sha256 is None or not files.exists(beside):
        return None
    try:
        known = json.loads(beside.read_bytes())
        return Origin.of(known["origin"]) if known["file_sha256"] == sha256 else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        problem = f"it does not say where judgments came from ({type(error).__name__}: {error})"
        raise InputError(problem, fix="make the judgments again, or delete it", path=str(beside)) from None


def write_origin(origin: Origin | None, path: str | Path) -> None:
    """Write beside a file of judgments where they came from, with the file's hash; what stood there before goes."""
    beside = Path(f"{path}.origin.json")
    if origin is None and files.exists(beside):
        beside.unlink()
    if origin is None or not Path(path).is_file():  # a pipe or a device has nothing beside it
        return
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    document = {"schema": _SCHEMA, "file_sha256": digest, "origin": asdict(origin)}
    with replaced(beside) as part:
        part.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
