"""Several runs judged side by side, each in a process; what comes back is the same whatever their number.

Processes are spawned and not forked, since Arrow's threads do not survive a fork. Only hits come back, so that little
crosses; all sums happen in the caller. A process ends with its parent, however that ends.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.scoring.judging.join import found_in, in_memory, judged_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from multiprocessing.process import BaseProcess

    from judged.data.documents import Documents
    from judged.data.index import QrelsIndex
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.scoring.judging.join import Found
    from judged.scoring.judging.judged import Judged
    from judged.scoring.judging.ranking import Ranking


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
