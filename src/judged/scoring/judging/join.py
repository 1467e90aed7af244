"""`judge`: rank a run and join it with the qrels, once; `judge_list`: the same of the grades of one list."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.engine_rows import EngineRows
from judged.data.files import FileHash
from judged.data.qrels import Qrels
from judged.data.rows import MappingRows, TableRows
from judged.data.run import Run
from judged.errors import InputError
from judged.scoring.judging.judged import Judged
from judged.scoring.judging.mapping import scan_mapping
from judged.scoring.judging.ranking import DuplicateDocumentError, Ranking
from judged.scoring.judging.relational import find_hits
from judged.scoring.judging.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from multiprocessing.process import BaseProcess

    from judged.data.documents import Documents
    from judged.data.index import QrelsIndex
    from judged.data.rows import Progress, Rows
    from judged.scoring.judging.ranking import Precision, RunHits, TiePolicy


Found: TypeAlias = "tuple[RunHits, FileHash]"
_ENDLESS = np.iinfo(np.int64).max


class _Meter:
    """Reports how much of a run is read and ranked, in bytes of its file."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._read = self._told = 0
        self._share = 1.0  # of the work that is done when all is read

    def __call__(self, count: int, /) -> None:
        """Count bytes that were read."""
        self._read += count
        self._tell(self._share)

    def restart(self) -> None:
        """Begin again: the file is read from its start, and all of it before anything is ranked."""
        self._read, self._share = 0, 0.5

    def ranked(self, share: float) -> None:
        """Count the share of what was read that is ranked, from 0 to 1."""
        self._tell(self._share + (1 - self._share) * share)

    def _tell(self, share: float) -> None:
        more = int(self._read * share) - self._told
        if more > 0:
            self._progress(more)
            self._told += more


def judge(
    qrels: Any,
    run: Any,
    *,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
    documents: Any = None,
    progress: Callable[[int], None] | None = None,
) -> Judged:
    """Rank a run and join it with the judgments.

    Parameters
    ----------
    qrels
        A `Qrels`, or anything that `Qrels.of` takes.
    run
        A `Run`, or anything that `Run.of` takes.
    ties
        How documents with equal scores are ordered: ``docid``, falling byte order of their ids;
        ``docid-rising``; ``stable``, as the run lists them; or ``rank``: the rank column orders all.
    depth
        How many documents of each topic count; None for all.
    precision
        What of the scores is compared: ``double``, or ``single`` as trec_eval did before version 10.
    documents
        Facts about the documents (`Documents`, or what `Documents.of` takes), for the few measures that
        ask for it: lengths, groups, costs.
    progress
        Called while a file is read and ranked, with the number of bytes done since the last call.

    Returns
    -------
    Judged
        Over all topics of the qrels.

    Raises
    ------
    InputError
        If the run cannot be read, a score is NaN, or a document is returned twice for a topic.

    Examples
    --------
    >>> judge({"q1": {"d1": 1}}, {"q1": {"d2": 0.7, "d1": 0.6}}).rank.tolist()
    [2]
    """
    qrels, run = Qrels.of(qrels), Run.of(run)
    ranking = Ranking(ties, depth, precision)
    judged = judged_of(qrels, run, ranking, found_in(qrels.index, run, ranking, progress))
    if documents is None:
        return judged
    from judged.data.documents import Documents  # few calls need it

    return replace(judged, documents=Documents.of(documents))


def in_memory(rows: Rows) -> bool:
    """Whether rows stand in memory or in a database, and are not read from a file when they are judged."""
    return isinstance(rows, (MappingRows, TableRows, EngineRows))


def found_in(index: QrelsIndex, run: Run, ranking: Ranking, progress: Progress | None = None) -> Found:
    """Find the judged documents of a run and their ranks, and hash the files that were read."""
    ranking.refuse(run)
    streamed = not in_memory(run.rows)
    file_hash = FileHash.of(run.rows.paths if streamed else ())
    meter = _Meter(progress) if progress and streamed else None
    try:
        if isinstance(run.rows, MappingRows):
            hits = scan_mapping(index, run.rows.mapping, ranking)
        elif isinstance(run.rows, EngineRows):
            hits = find_hits(index, run.rows, ranking)
        else:
            hits = scan(index, run.rows, ranking, meter)
    except DuplicateDocumentError as error:
        line = run.rows.line(error.query_id, error.doc_id, 2)
        raise DuplicateDocumentError(error.query_id, error.doc_id, run.where, line) from None
    except InputError as error:
        raise error if error.path else InputError(error.problem, fix=error.fix, path=run.where) from None
    return hits, file_hash


def judged_of(qrels: Qrels, run: Run, ranking: Ranking, found: Found) -> Judged:
    """Keep of what was found in a run the documents that have judgments."""
    hits, file_hash = found
    index = qrels.index
    returned = np.zeros(len(index.topics), dtype=np.int64)
    present = np.zeros(len(index.topics), dtype=np.bool_)
    code = np.array([index.codes.get(name, -1) for name in hits.names], dtype=np.int64)
    known = code >= 0
    returned[code[known]], present[code[known]] = hits.returned[known], True
    extra = {hits.names[at]: int(hits.returned[at]) for at in np.flatnonzero(~known).tolist()}
    names = tuple(sorted(extra))
    most = ranking.depth or _ENDLESS
    row = index.rows_of(hits.topic, hits.doc) if hits.row is None else hits.row
    hit = np.flatnonzero((row >= 0) & (hits.rank <= most))
    hit = hit[np.argsort(hits.topic[hit] * (hits.rank.max(initial=0) + 1) + hits.rank[hit])]
    rank, *tie = (column[hit] for column in (hits.rank, hits.tie_first, hits.tie_last))
    first, last = (rank if np.array_equal(rank, one) else one for one in tie)  # mostly nothing is tied
    return Judged(
        query_ids=index.topics,
        returned=np.minimum(returned, most),
        present=present,
        topic=hits.topic[hit],
        rank=rank,
        grade=index.grade[row[hit]],
        row=row[hit],
        score=hits.score[hit],
        tie_first=first,
        tie_last=last,
        label_topic=index.topic,
        label_grade=index.grade,
        label_row=index.row,
        ranked=run.has_scores or ranking.ties == "rank",
        ranking=ranking,
        extra=names,
        extra_returned=np.minimum(np.array([extra[name] for name in names], dtype=np.int64), most),
        qrels=qrels,
        run=run,
        file_hash=file_hash,
        self_first=hits.self_first,
    )


Grade: TypeAlias = float | Sequence[float]
Grades: TypeAlias = Sequence[Grade | None]


def judge_list(
    grades: Grades, *, missing: Sequence[Grade] = (), facts: Mapping[str, Sequence[Any]] | None = None
) -> Judged:
    """Make the judged list of one topic from its grades.

    Parameters
    ----------
    grades
        One grade a returned document, in rank order; None for a document without a judgment. A document that
        was judged for several subtopics has a tuple with a grade for each.
    missing
        The grades of judged documents that were not returned.
    facts
        Facts about the returned documents, such as ``{"length": [120, 80]}``: a value for each.

    Raises
    ------
    InputError
        If nothing at all is judged, or there are fewer facts than documents.

    Examples
    --------
    >>> j = judge_list([3, None, 1], missing=[2])
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist(), j.ideal.grade.tolist()
    ([1, 3], [3.0, 1.0], [3], [3.0, 2.0, 1.0])
    >>> judge_list([(1, 0), (0, 1)]).aspects
    Labels(of=array([0, 0, 1, 1]), aspect=array([0, 1, 0, 1]), grade=array([1., 0., 0., 1.]))
    """
    for name, values in (("grades", grades), ("missing", missing)):
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise InputError(f"{name} must be a list of grades, got {values!r:.60}", fix="give one, such as [3, 0]")
    named = [(f"d{at}", grade) for at, grade in enumerate(grades, 1) if grade is not None]
    named += [(f"m{at}", grade) for at, grade in enumerate(missing, 1)]
    if not named:
        raise InputError("no grade is given", fix="give at least one grade, in the list or as missing")
    run = {"list": {f"d{at}": float(len(grades) + 1 - at) for at in range(1, len(grades) + 1)}}
    if not facts:
        return judge(_qrels(named), run)
    if any(len(values) != len(grades) for values in facts.values()):
        raise InputError(f"there are {len(grades)} documents", fix="give as many values of each fact")
    known = {doc: {name: values[at] for name, values in facts.items()} for at, doc in enumerate(run["list"])}
    return judge(_qrels(named), run, documents=known)


def _qrels(named: Sequence[tuple[str, Grade]]) -> Any:
    if not any(isinstance(grade, Sequence) for _, grade in named):
        return {"list": dict(named)}
    rows = [(doc, aspect, value) for doc, grade in named for aspect, value in _by_aspect(grade)]
    docs, aspects, values = zip(*rows, strict=True)
    names = ["list"] * len(rows)
    return Qrels(pa.table({"query_id": names, "doc_id": docs, "iteration": aspects, "relevance": values}))


def _by_aspect(grade: Grade) -> Iterator[tuple[str, float]]:
    for at, value in enumerate(grade if isinstance(grade, Sequence) else (grade,), 1):
        yield str(at), float(value)


def judge_each(
    qrels: Qrels,
    runs: Iterable[Run],
    ranking: Ranking,
    documents: Documents | None,
    processes: int,
    progress: Callable[[str, int], None] | None,
) -> Generator[Judged]:
    """Judge runs in their order; those that are files in so many processes, where that is more than one."""
    if not isinstance(processes, int) or processes < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"processes is {processes!r:.60}", fix="give a whole number, 1 or more")
    runs = list(runs) if processes > 1 else runs
    of_files = [run for run in runs if not in_memory(run.rows)] if processes > 1 else []
    with closing(_side_by_side(qrels.index, of_files, ranking, processes, progress)) as others:
        for run in runs:
            if len(of_files) > 1 and not in_memory(run.rows):
                found = next(others)
            else:
                found = found_in(qrels.index, run, ranking, partial(progress, run.name) if progress else None)
            judged = judged_of(qrels, run, ranking, found)
            yield judged if documents is None else replace(judged, documents=documents)


def _side_by_side(
    index: QrelsIndex,
    runs: Sequence[Run],
    ranking: Ranking,
    processes: int,
    progress: Callable[[str, int], None] | None,
) -> Generator[Found]:
    """Give what is found in each run, in their order; an error is raised when its run's turn has come."""
    from multiprocessing import get_context  # few calls need it
    from multiprocessing.connection import wait

    context, tell = get_context("spawn"), progress or (lambda *_: None)
    waiting = iter(range(len(runs)))
    found: dict[int, Any] = {}
    busy: dict[Any, int] = {}  # what each process is judging, by the connection to it
    started: list[BaseProcess] = []

    def give(connection: Any) -> None:
        for at in islice(waiting, 1):
            busy[connection] = at
            with _lost(runs[at]):
                connection.send(runs[at])

    def take(connection: Any) -> None:
        run = runs[busy[connection]]
        with _lost(run):
            message = connection.recv()
        if isinstance(message, int):
            tell(run.name, message)
        else:
            found[busy.pop(connection)] = message
            give(connection)

    try:
        for _ in range(min(processes, len(runs))):
            ours, theirs = context.Pipe()
            started.append(context.Process(target=_work, args=(theirs, index, ranking), daemon=True))
            started[-1].start()
            theirs.close()
            give(ours)
        for turn in range(len(runs)):
            while turn not in found:
                take(wait(list(busy))[0])
            if isinstance(answer := found.pop(turn), Exception):
                raise answer
            yield answer
    finally:
        for process in started:
            process.kill()
            process.join()


@contextmanager
def _lost(run: Run) -> Generator[None]:
    """Say what a connection means that broke."""
    try:
        yield
    except (EOFError, OSError):
        raise InputError(
            "the process that judged this run was ended from outside",
            fix="take fewer processes, where memory was short; a script that asks for processes does its work"
            ' under `if __name__ == "__main__":`',
            path=run.where,
        ) from None


def _work(connection: Any, index: QrelsIndex, ranking: Ranking) -> None:
    """Judge runs as they come, until somebody ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # nobody asks any more
        while True:
            run = connection.recv()
            try:
                answer = found_in(index, run, ranking, connection.send)
            except Exception as error:  # noqa: BLE001  the parent raises it
                answer = error
            connection.send(answer)


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    if parent := parent_process():
        parent.join()
    os._exit(1)
