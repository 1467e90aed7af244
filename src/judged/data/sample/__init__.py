"""Sample data: a small real test collection about the standard library of Python.

It includes a log of simulated users of two runs, and responses of two RAG systems. ``pydocs/README.md`` describes how
the data were created, and their limits.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.data.topics import Topics

FOLDER = Path(str(files(__name__))) / "pydocs"
"""Folder of the files."""

LOG = FOLDER / "simulated_log.ndjson.gz"
"""Simulated clicks on two of the runs, not of real users. `judged.online.read_log` reads it."""

INTERLEAVED = FOLDER / "simulated_interleaved.ndjson.gz"
"""Simulated clicks on lists that `judged.online.mixed_lists` interleaved from the same two runs."""

RESPONSES = FOLDER / "responses"
"""Responses of two extractive RAG systems to 25 of the topics, with manual nuggets, assignments and support.
`judged.pipelines.rag.Responses.of` reads it."""


def qrels() -> Qrels:
    """Read the judgments of 48 topics with grades 0 to 3.

    >>> qrels()
    Qrels('qrels': 1613 judgments, 48 topics, grades 0 to 3)
    """
    from judged.data.qrels import Qrels

    return Qrels.read(FOLDER / "qrels.txt")


def runs() -> list[Run]:
    """Open the runs of eight rankers.

    >>> [run.name for run in runs()]
    ['bm25', 'bm25_nostem', 'bm25_prf', 'bm25_title', 'lm_dirichlet', 'rrf', 'tfidf', 'tfidf_char']
    """
    from judged.data.run import Run

    return [Run.scan(path) for path in sorted((FOLDER / "runs").glob("*.run.gz"))]


def topics() -> Topics:
    """Read the topics: their text, class and length.

    >>> topics().text("t01")
    'most common elements of a list'
    """
    from judged.data.topics import Topics

    return Topics.read(FOLDER / "queries.jsonl")


def copy(folder: Path) -> None:
    """Copy the sample to a new folder."""
    with copied(folder):
        pass


@contextmanager
def copied(folder: Path) -> Generator[Path]:
    """Copy the sample to a new folder; yield its temporary path, so that the caller can add files."""
    from judged.results.files import atomic_folder

    with atomic_folder(folder, new=True) as temporary:
        shutil.copytree(FOLDER, temporary, dirs_exist_ok=True)
        yield temporary
