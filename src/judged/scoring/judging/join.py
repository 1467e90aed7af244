"""Rank runs and join them with qrels: `judge`, and `judge_list` for the grades of one list."""

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
from judged.data.grade_words import read_grades
from judged.data.qrels import Qrels
from judged.data.rows import MappingRows, TableRows
from judged.data.run import Run
from judged.errors import InputError
from judged.scoring.judging.judged import Judged
from judged.scoring.judging.mapping import scan_mapping
from judged.scoring.judging.matching import MAX_ROWS, with_ids_of
from judged.scoring.judging.ranking import DuplicateDocumentError, RankingRules
from judged.scoring.judging.relational import find_hits
from judged.scoring.judging.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from multiprocessing.process import BaseProcess

    from judged.data.documents import Documents
    from judged.data.index import QrelsIndex
    from judged.data.rows import Progress, Rows
    from judged.scoring.judging.ranking import Precision, RunHits, TiePolicy


HitsAndHash: TypeAlias = "tuple[RunHits, FileHash]"
_NO_LIMIT = np.iinfo(np.int64).max


class _Meter:
    """Progress of reading and ranking a run, in bytes of its file."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._read = self._reported = 0
        self._read_share = 1.0  # share of the work that is done when all bytes are read

    def __call__(self, count: int, /) -> None:
        """Add bytes that were read."""
        self._read += count
        self._report(self._read_share)

    def restart(self) -> None:
        """Start again: the whole file is read a second time before anything is ranked."""
        self._read, self._read_share = 0, 0.5

    def ranked(self, share: float) -> None:
        """Set the share of the read rows that is ranked, from 0 to 1."""
        self._report(self._read_share + (1 - self._read_share) * share)

    def _report(self, share: float) -> None:
        new = int(self._read * share) - self._reported
        if new > 0:  # a restart does not reduce the reported progress
            self._progress(new)
            self._reported += new


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
        A `Qrels`, or any input of `Qrels.of`.
    run
        A `Run`, or any input of `Run.of`.
    ties
        Order of documents with equal scores: ``docid``, descending byte order of their ids (default);
        ``docid-rising``, ascending; ``stable``, the order of the run; or ``rank``: order all by the rank column.
    depth
        Number of documents per topic that count; None for all.
    precision
        Precision in which scores are compared: ``double``, or ``single`` as trec_eval did before version 10.
    documents
        Attributes of the documents (`Documents`, or any input of `Documents.of`), for the few measures that
        need them: lengths, groups, costs.
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
    ranking = RankingRules(ties, depth, precision)
    judged = _with_matched_ids(judged_of(qrels, run, ranking, find_judged(qrels.index, run, ranking, progress)))
    if documents is None:
        return judged
    from judged.data.documents import Documents  # few calls need it

    return replace(judged, documents=Documents.of(documents))


def is_in_memory(rows: Rows) -> bool:
    """Whether rows are in memory or in a database, not in a file that is read during judging."""
    return isinstance(rows, (MappingRows, TableRows, EngineRows))


def find_judged(index: QrelsIndex, run: Run, ranking: RankingRules, progress: Progress | None = None) -> HitsAndHash:
    """Find the judged documents of a run and their ranks, and hash the files of the run."""
    ranking.check_run(run)
    is_file = not is_in_memory(run.rows)
    file_hash = FileHash.of(run.rows.paths if is_file else ())
    meter = _Meter(progress) if progress and is_file else None
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


def judged_of(qrels: Qrels, run: Run, ranking: RankingRules, hits_and_hash: HitsAndHash) -> Judged:
    """Build the judged list of a run from its hits: select those with a judgment, sorted by topic and rank."""
    hits, file_hash = hits_and_hash
    index = qrels.index
    returned = np.zeros(len(index.topics), dtype=np.int64)
    present = np.zeros(len(index.topics), dtype=np.bool_)
    code = np.array([index.codes.get(name, -1) for name in hits.names], dtype=np.int64)
    in_qrels = code >= 0
    returned[code[in_qrels]], present[code[in_qrels]] = hits.returned[in_qrels], True
    extra = {hits.names[i]: int(hits.returned[i]) for i in np.flatnonzero(~in_qrels).tolist()}
    names = tuple(sorted(extra))
    depth = ranking.depth or _NO_LIMIT
    row = index.rows_of(hits.topic, hits.doc) if hits.row is None else hits.row
    hit = np.flatnonzero((row >= 0) & (hits.rank <= depth))
    hit = hit[np.argsort(hits.topic[hit] * (hits.rank.max(initial=0) + 1) + hits.rank[hit])]
    rank, *tie_bounds = (column[hit] for column in (hits.rank, hits.tie_first, hits.tie_last))
    # Most runs have no ties: the three columns then share one array.
    first, last = (rank if np.array_equal(rank, bound) else bound for bound in tie_bounds)
    return Judged(
        query_ids=index.topics,
        returned=np.minimum(returned, depth),
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
        extra_returned=np.minimum(np.array([extra[name] for name in names], dtype=np.int64), depth),
        qrels=qrels,
        run=run,
        file_hash=file_hash,
        n_self_top=hits.n_self_top,
    )


def _with_matched_ids(judged: Judged) -> Judged:
    """Judge a file again with ids matched by their normalized forms, if none of its documents is judged otherwise."""
    n_rows = int(judged.returned.sum() + judged.extra_returned.sum())
    if len(judged.topic) or not judged.run.rows.paths or not 0 < n_rows <= MAX_ROWS:
        return judged
    run = with_ids_of(judged.qrels, judged.run)
    try:
        hits, _ = find_judged(judged.qrels.index, run, judged.ranking)
    except DuplicateDocumentError:  # several ids of the run have the same form
        return judged
    matched = judged_of(judged.qrels, run, judged.ranking, (hits, judged.file_hash))
    return replace(matched, ids_matched=True) if len(matched.topic) else judged


Grade: TypeAlias = float | Sequence[float]
Grades: TypeAlias = Sequence[Grade | None]


def judge_list(
    grades: Grades | str, *, missing: Sequence[Grade] | str = (), facts: Mapping[str, Sequence[Any]] | None = None
) -> Judged:
    """Build the judged list of one topic from its grades.

    Parameters
    ----------
    grades
        One grade per returned document, in rank order; None for a document without a judgment. A document that
        was judged for several subtopics has a tuple with one grade per subtopic. Grades may be words, and the list a
        text: ``"R N R"``, ``"3 0 - 1"``, ``"relevant, not relevant"``.
    missing
        Grades of judged documents that were not returned.
    facts
        Attributes of the returned documents, such as ``{"length": [120, 80]}``: one value per document.

    Raises
    ------
    InputError
        If no document is judged, or an attribute has another number of values than there are documents.

    Examples
    --------
    >>> j = judge_list([3, None, 1], missing=[2])
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist(), j.ideal.grade.tolist()
    ([1, 3], [3.0, 1.0], [3], [3.0, 2.0, 1.0])
    >>> judge_list([(1, 0), (0, 1)]).aspects
    AspectLabels(owner=array([0, 0, 1, 1]), aspect=array([0, 1, 0, 1]), grade=array([1., 0., 0., 1.]))
    """
    grades = read_grades(grades)
    missing = [grade for grade in read_grades(missing, "missing") if grade is not None]
    grade_of = [(f"d{rank}", grade) for rank, grade in enumerate(grades, 1) if grade is not None]
    grade_of += [(f"m{number}", grade) for number, grade in enumerate(missing, 1)]
    if not grade_of:
        raise InputError("at least one grade is required", fix="add a grade to the list, or to missing=")
    run = {"list": {f"d{rank}": float(len(grades) + 1 - rank) for rank in range(1, len(grades) + 1)}}
    if not facts:
        return judge(_qrels(grade_of), run)
    if any(len(values) != len(grades) for values in facts.values()):
        raise InputError(f"each attribute must have {len(grades)} values", fix="use one value per document")
    documents = {doc: {name: values[i] for name, values in facts.items()} for i, doc in enumerate(run["list"])}
    return judge(_qrels(grade_of), run, documents=documents)


def _qrels(grade_of: Sequence[tuple[str, Grade]]) -> Any:
    if not any(isinstance(grade, Sequence) for _, grade in grade_of):
        return {"list": dict(grade_of)}
    rows = [(doc, aspect, value) for doc, grade in grade_of for aspect, value in _by_aspect(grade)]
    docs, aspects, values = zip(*rows, strict=True)
    names = ["list"] * len(rows)
    return Qrels(pa.table({"query_id": names, "doc_id": docs, "iteration": aspects, "relevance": values}))


def _by_aspect(grade: Grade) -> Iterator[tuple[str, float]]:
    for aspect, value in enumerate(grade if isinstance(grade, Sequence) else (grade,), 1):
        yield str(aspect), float(value)


def judge_each(
    qrels: Qrels,
    runs: Iterable[Run],
    ranking: RankingRules,
    documents: Documents | None,
    processes: int,
    progress: Callable[[str, int], None] | None,
) -> Generator[Judged]:
    """Judge runs in order. If `processes` is more than 1, worker processes judge the runs that are files."""
    if not isinstance(processes, int) or processes < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"`processes` must be a positive integer, got {processes!r:.60}", fix="use processes=1 or more"
        )
    runs = list(runs) if processes > 1 else runs
    file_runs = [run for run in runs if not is_in_memory(run.rows)] if processes > 1 else []
    with closing(_find_in_processes(qrels.index, file_runs, ranking, processes, progress)) as parallel_results:
        for run in runs:
            if len(file_runs) > 1 and not is_in_memory(run.rows):
                hits_and_hash = next(parallel_results)
            else:
                run_progress = partial(progress, run.name) if progress else None
                hits_and_hash = find_judged(qrels.index, run, ranking, run_progress)
            judged = _with_matched_ids(judged_of(qrels, run, ranking, hits_and_hash))
            yield judged if documents is None else replace(judged, documents=documents)


def _find_in_processes(
    index: QrelsIndex,
    runs: Sequence[Run],
    ranking: RankingRules,
    processes: int,
    progress: Callable[[str, int], None] | None,
) -> Generator[HitsAndHash]:
    """Yield the hits of each run, in order. An error of a worker is raised at the turn of its run."""
    from multiprocessing import get_context  # few calls need it
    from multiprocessing.connection import wait

    context, report = get_context("spawn"), progress or (lambda *_: None)
    queue = iter(range(len(runs)))
    results: dict[int, Any] = {}  # by index of the run: hits, or the exception to raise
    busy: dict[Any, int] = {}  # index of the run that each process judges, by the connection to the process
    started: list[BaseProcess] = []

    def send_next_run(connection: Any) -> None:
        for run_index in islice(queue, 1):
            busy[connection] = run_index
            with _convert_connection_errors(runs[run_index]):
                connection.send(runs[run_index])

    def receive(connection: Any) -> None:
        run = runs[busy[connection]]
        with _convert_connection_errors(run):
            message = connection.recv()
        if isinstance(message, int):
            report(run.name, message)
        else:
            results[busy.pop(connection)] = message
            send_next_run(connection)

    try:
        for _ in range(min(processes, len(runs))):
            connection, worker_connection = context.Pipe()
            started.append(context.Process(target=_work, args=(worker_connection, index, ranking), daemon=True))
            started[-1].start()
            worker_connection.close()
            send_next_run(connection)
        for run_index in range(len(runs)):
            while run_index not in results:
                receive(wait(list(busy))[0])
            if isinstance(result := results.pop(run_index), Exception):
                raise result
            yield result
    finally:
        for process in started:
            process.kill()
            process.join()


@contextmanager
def _convert_connection_errors(run: Run) -> Generator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise InputError(
            "the process that judged this run was terminated from outside",
            fix="use fewer processes if memory is short; call judged under"
            ' `if __name__ == "__main__":` in a script that uses processes',
            path=run.where,
        ) from None


def _work(connection: Any, index: QrelsIndex, ranking: RankingRules) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C, and then kills this process
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent closed the connection
        while True:
            run = connection.recv()
            try:
                result = find_judged(index, run, ranking, connection.send)
            except Exception as error:  # noqa: BLE001  the parent raises it
                result = error
            connection.send(result)


def _exit_with_parent() -> None:
    from multiprocessing import parent_process

    if parent := parent_process():
        parent.join()
    os._exit(1)
