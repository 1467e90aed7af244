"""Identify the content of a file: judgments, a run, topics, or what another component recognizes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.components import all_components, load
from judged.data.compute import pc
from judged.data.layout import Layout
from judged.data.qrels import Qrels
from judged.data.run import Run, split_runs
from judged.data.sniff import fits_sample, sniff
from judged.data.text_rows import map_in_order
from judged.data.topics import Topics
from judged.errors import NO_CONTENT, InputError, JudgedWarning
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(frozen=True)
class FileContent:
    """Content of a file.

    Parameters
    ----------
    path
        Path of the file.
    kind
        ``qrels``, ``run``, ``topics``, ``labels``, ``log``, ``answers``, ``traces``, or ``trajectories``.
    counts
        Numbers of rows, topics, and so on, by noun.
    commands
        Commands that use the file, the most useful first.
    notes
        How the file was read, and columns that are not used.
    details
        Other facts, such as the agreement of judges.

    Examples
    --------
    >>> content = FileContent("a.txt", "qrels", {"judgment": 12, "topic": 1}, ("judged evaluate a.txt RUN",))
    >>> content.sentence
    'a.txt: qrels with 12 judgments, 1 topic'
    """

    path: str
    kind: str
    counts: Mapping[str, int]
    commands: tuple[str, ...]
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def sentence(self) -> str:
        """What the file is, and how much it contains."""
        numbers = ", ".join(counted(count, noun) for noun, count in self.counts.items())
        noun = _NOUNS.get(self.kind, self.kind)
        return f"{self.path}: {noun} with {numbers}" if numbers else f"{self.path}: {noun}"


_NOUNS = {
    "run": "a run",
    "topics": "query texts",
    "log": "an interaction log",
    "answers": "RAG answers",
    "traces": "traces of a pipeline",
    "trajectories": "trajectories of agents",
}


def identify(path: str | Path) -> FileContent:
    """Return the content of a file of any kind that is read.

    Raises
    ------
    InputError
        If the file cannot be read, or its content is unknown.
    """
    # From the most specific kind to the most general: trajectories, traces and answers, logs, labels.
    places = [place for component in reversed([*all_components()]) for place in component.recognizers.values()]
    recognizers = [] if _has_plain_lines(Path(path)) else map(load, places)
    return _first_content(path, (*recognizers, _recognize_qrels, _recognize_run, _recognize_topics))


def is_run(path: str | Path) -> bool:
    """Whether a file is a run; if it is neither a run nor qrels, reading it as qrels reports the error."""
    try:
        return _first_content(path, (_recognize_qrels, _recognize_run)).kind == "run"
    except InputError:
        return False


def _first_content(path: str | Path, recognizers: Iterable[Callable[[str], FileContent | None]]) -> FileContent:
    first_error: InputError | None = None
    for recognize in recognizers:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", JudgedWarning)
            try:
                content = recognize(str(path))
            except InputError as error:
                if error.rule == NO_CONTENT:
                    raise
                first_error = first_error or error
                continue
        if content:
            notes = tuple(str(warning.message) for warning in caught)
            return replace(content, notes=content.notes + notes)
    raise first_error or InputError("the content of the file is unknown", fix="see docs/formats.md", path=str(path))


def _has_plain_lines(path: Path) -> bool:
    """Whether the file has lines without a header, as in TREC files, which may be long and are of no other kind."""
    try:
        layout = sniff(path, str(path), "qrels")
    except InputError as error:
        return error.rule == "looks-like-run"
    return isinstance(layout, Layout) and not layout.header and fits_sample(path, layout)


def _recognize_qrels(path: str) -> FileContent | None:
    """Return the content of judgments; None if most grades are fractions, as scores are."""
    qrels = Qrels.read(path)
    if 2 * np.count_nonzero(qrels.grades % 1) > len(qrels):  # scores
        return None
    counts = {"judgment": len(qrels), "topic": len(qrels.topics)}
    commands = (f"judged evaluate {path} RUN", f"judged check {path} RUN", f"judged advise {path} RUN")
    return FileContent(path, "qrels", counts, commands)


def _recognize_run(path: str) -> FileContent:
    run = Run.scan(path)
    n_results, topics = 0, set[str]()
    # A run may be larger than memory. Its numbers are parsed, as a file with texts in place of scores is no run.
    parts = run.rows.parts(("query_id", "score", "rank"))
    for count, ids in map_in_order(parts, lambda batch: (batch.num_rows, pc.unique(batch["query_id"]).to_pylist())):
        n_results += count
        topics.update(ids)
    counts = {"result": n_results, "topic": len(topics)}
    if (n_runs := len(split_runs(run.rows, run.name))) > 1:
        counts["run"] = n_runs
    commands = (f"judged evaluate QRELS {path}", f"judged check QRELS {path}", f"judged compare QRELS {path} OTHER_RUN")
    return FileContent(path, "run", counts, commands)


def _recognize_topics(path: str) -> FileContent:
    topics = Topics.read(path)
    commands = (
        f"judged evaluate QRELS RUN --per-topic --queries {path}",
        f"judged diff QRELS RUN OTHER_RUN --queries {path}",
        f"judged slices QRELS RUN --queries {path} --by words",
    )
    return FileContent(path, "topics", {"topic": topics.table.num_rows}, commands)
