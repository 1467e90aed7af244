"""The sample that ships with judged: a small real test collection over Python's standard library.

With it come a log of what simulated users did with two of its runs, and what two answerers said. How all of it was
made, and its limits, are described in ``pydocs/README.md``.
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
"""Where its files are."""

LOG = FOLDER / "simulated_log.ndjson.gz"
"""What simulated users did with two of its runs: nobody did what it says. `judged.online.read_log` reads it."""

INTERLEAVED = FOLDER / "simulated_interleaved.ndjson.gz"
"""Simulated clicks on lists that `judged.online.mixed_lists` mixed of the same two runs."""

RESPONSES = FOLDER / "responses"
"""What two extractive answerers said to 25 of its topics, with nuggets, assignments and support made by hand:
`judged.pipelines.rag.Responses.of` reads it."""


def qrels() -> Qrels:
    """Read the judgments: 48 topics, grades 0 to 3.

    >>> qrels()
    Qrels('qrels': 1613 judgments, 48 topics, grades 0 to 3)
    """
    from judged.data.qrels import Qrels

    return Qrels.read(FOLDER / "qrels.txt")


def runs() -> list[Run]:
    """Name the runs of eight rankers.

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
    """Copy the sample's files to a folder that does not exist yet."""
    with copied(folder):
        pass


@contextmanager
def copied(folder: Path) -> Generator[Path]:
    """Copy the sample's files to a new folder, and give it before it has its name, so that others can be added."""
    from judged.results.files import atomic_folder

    with atomic_folder(folder, new=True) as part:
        shutil.copytree(FOLDER, part, dirs_exist_ok=True)
        yield part
