"""Recorder of trajectories for agents that are loops in Python."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.pipelines.traces.recorder import append_data, json_value
from judged.pipelines.trajectories.trajectories import STEP_KINDS
from judged.results.files import raise_write_error
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from judged.pipelines.trajectories.trajectories import StepKind


class TrajectoryRecorder:
    """Recorder of trials, as JSON Lines for `read_trajectories`.

    A trial is appended to the file when its block ends, so several threads and processes can share a file on a local
    file system.

    Parameters
    ----------
    path
        Output file; new trials are appended.
    run_id
        Name of the system.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> recorder = TrajectoryRecorder(Path(mkdtemp()) / "runs.jsonl", run_id="agent")
    >>> with recorder.trial("q1", "Who was first?") as trial:
    ...     trial.search("first person", ["d1", "d2"])
    ...     trial.open("d2")
    ...     trial.answer("Ada", citations=["d2"], confidence=0.8)
    >>> from judged.pipelines.trajectories import read_trajectories
    >>> read_trajectories(recorder.path)["steps"]["documents"].to_pylist()
    [['d1', 'd2'], ['d2'], None]
    """

    def __init__(self, path: str | Path, run_id: str = "agent") -> None:
        self.path = Path(path)
        self.run_id = run_id

    @contextmanager
    def trial(
        self, query_id: str, question: str | None = None, *, trial: int | None = None
    ) -> Generator[RecordedTrial]:
        """Record one trial; an exception in the block gives the status "failed", and is raised again.

        Parameters
        ----------
        query_id, question
            Id and text of the question.
        trial
            Number of the trial. Default: the next one of the question in the file.

        Raises
        ------
        JudgedError
            If the file cannot be written.
        """
        start, recorded = time.perf_counter(), RecordedTrial()
        row = {"query_id": query_id, "run_id": self.run_id, "trial": trial, "question": question, "status": "failed"}
        try:
            yield recorded
            row["status"] = "completed"
        finally:
            row |= {"latency_ms": round(1000 * (time.perf_counter() - start), 3), **recorded.fields}
            line = json.dumps(row | {"steps": recorded.steps}, ensure_ascii=False, default=json_value)
            try:
                append_data(self.path, f"{line}\n".encode("utf-8", "replace"))
            except OSError as error:
                raise_write_error(self.path, error)


class RecordedTrial:
    """Trial that is recorded, created by `TrajectoryRecorder.trial`.

    Steps accept the effort ``tokens``, ``cost`` (dollars), and ``latency_ms``, and ``failed=True`` if the tool failed.
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.fields: dict[str, Any] = {}

    def search(self, query: str, documents: Iterable[Any] | None, *, tool: str = "search", **facts: Any) -> None:
        """Record a search with its documents, by rank: ids, pairs of id and score, or ``{id: score}``."""
        self.step("search", tool=tool, query=query, documents=documents, **facts)

    def open(self, documents: Any, *, tool: str = "open", **facts: Any) -> None:
        """Record the documents, or the document, whose text the agent got."""
        self.step("open", tool=tool, documents=[documents] if isinstance(documents, (str, int)) else documents, **facts)

    def step(self, kind: StepKind, *, documents: Iterable[Any] | None = None, **facts: Any) -> None:
        """Record a step of any kind, with columns of the table ``steps``.

        Raises
        ------
        InputError
            If the kind is unknown.
        """
        if kind not in STEP_KINDS:
            raise InputError(f"unknown kind of step {kind!r}", fix=use_one_of(STEP_KINDS))
        ids = [] if documents is None else [str(row[0] if isinstance(row, tuple) else row) for row in documents]
        self.steps.append({"kind": kind, **facts, "documents": None if documents is None else ids})

    def answer(
        self,
        text: str | None,
        *,
        citations: Iterable[Any] = (),
        confidence: float | None = None,
        abstained: bool | None = None,
        **facts: Any,
    ) -> None:
        """Record the answer.

        Parameters
        ----------
        text
            Answer; None if there is none.
        citations
            Ids of documents that it cites.
        confidence
            Stated probability that it is right, from 0 to 1.
        abstained
            Whether the agent refused to answer. Default: not known.
        **facts
            Effort of the step.
        """
        self.step("answer", **facts)
        cited = [str(document) for document in citations]
        self.fields = {"answer": text, "citations": cited, "confidence": confidence, "abstained": abstained}
