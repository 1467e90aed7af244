"""What is open in the workbench: judgments and runs, what else is known, and what was computed of them so far."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from collections import OrderedDict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import numpy as np
from fastapi import Depends, Request
from pydantic import BaseModel

from judged.comparison import Comparison
from judged.comparison.compare import comparison_of_runs
from judged.comparison.slicing import Expression, read_topic_attributes
from judged.comparison.slicing.derived import OUTCOME
from judged.components import all_components
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.run import Run, TopicRows
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError, JudgedError, JudgedWarning
from judged.results.blocks import Note
from judged.results.table import order_of
from judged.results.types import cached_property
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import Scores, measures_of, runs_of, score_lists
from judged.scoring.evaluation.facts import check_common_topics
from judged.scoring.judging import Judged, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence

    from judged.results.types import Bools


Given = ParamSpec("Given")
Made = TypeVar("Made")


class Kept:
    """The results of the last calls, each made once, however many requests ask for it at the same time.

    >>> kept = Kept(most=2)
    >>> kept.get("a", lambda: 1), kept.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Give what is kept under a key, or make it; an error is raised anew each time, and not kept."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._most:
                self._slots.popitem(last=False)
        with slot.lock:
            if not slot.made:
                try:
                    slot.value, slot.made = make(), True
                except BaseException:  # else what is mistyped would push out what was made
                    with self._lock:
                        self._slots.pop(key, None)
                    raise
        return slot.value


@dataclass(eq=False)
class _Slot:
    """One result, made under its own lock, so that others do not wait for it."""

    lock: RLock = field(default_factory=RLock)
    made: bool = False
    value: Any = None


def remembered(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let a function of a workspace, and of what is asked, be called once for the same: it costs some milliseconds."""
    called = signature(make)

    @wraps(make)
    def known(*given: Given.args, **named: Given.kwargs) -> Made:
        workspace, *asked = called.bind(*given, **named).arguments.values()
        key = (make, *(repr(one) if isinstance(one, BaseModel) else one for one in asked))
        return workspace.remember(key, lambda: make(*given, **named))

    return known


@contextmanager
def concerning(field: str) -> Generator[None]:
    """Say of what is refused inside which field is to blame, unless that is known."""
    try:
        yield
    except JudgedError as error:
        error.field = error.field or field
        raise


LEVEL = 0.95
"""Of intervals and tests. A page must be there at once, so tests draw less often than `compare` does by itself."""
OF_ALL_TOPICS = "what is said below of judgments and runs is said of all topics, not of those that are left"


@dataclass(frozen=True, eq=False)
class Workspace:
    """Judgments, runs and facts about topics and documents. Immutable but for its caches."""

    title: str  # what pages call it
    qrels: Qrels
    lists: dict[str, Judged] = field(repr=False)  # in the order in which the runs were given
    topics: Topics | None = None  # the texts of the queries
    attributes: Attributes | None = None  # facts about the topics, beside their texts
    texts: Texts | None = None  # the texts of the documents that were returned or judged
    parts: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  # what components opened, by name
    control: str = ""  # the run that others are compared with by default
    labels: Any = field(default=None, repr=False)  # a store of labels: it stays when other files are opened
    sent: Folder | None = field(default=None, repr=False)  # where its files are that were uploaded; it goes with them
    _kept: Kept = field(default_factory=lambda: Kept(256), init=False, repr=False)  # of this one alone

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of the runs, in the order in which they were given."""
        return tuple(self.lists)

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """The topics of the qrels, in byte order."""
        return self.qrels.topics

    def query(self, query_id: str) -> str:
        """Give the text of a query; nothing where it is not known."""
        return "" if self.topics is None else self.topics.text(query_id)

    def judged(self, run: str) -> Judged:
        """Give the judged list of a run."""
        if run not in self.lists:
            raise InputError(f"no run {run!r} is open", fix=f"use one of {', '.join(self.lists)}")
        return self.lists[run]

    @remembered
    def ranked(self, measure: Any = DEFAULT_MEASURE) -> tuple[str, ...]:
        """Name the runs, best by a measure first; as they were given, where it cannot score them."""
        measure = measures_of(measure)[0]
        try:
            values = [row.value for row in self.scores(measure).estimates(ci="none")] if self.lists else []
        except JudgedError:
            return self.run_names
        less = measure.properties.higher_is_better is False
        return tuple(self.run_names[at] for at in order_of(values, lower_is_better=less))

    def usual_pair(self, measure: Any = DEFAULT_MEASURE, baseline: str = "", run: str = "") -> tuple[str, str]:
        """Choose what is not given of two runs: the one called baseline, or the best; and the best beside it."""
        for name in filter(None, (baseline, run)):
            self.judged(name)
        if baseline and baseline == run:
            raise InputError(f"{run} is compared with itself: there is no difference", fix="choose another run")
        ranked = self.ranked(measure)
        named = [name for name in ranked if name == self.control or "baseline" in name.casefold()]
        first = baseline or next((name for name in (*named, *ranked) if name != run), "")
        return first, run or next((name for name in ranked if name != first), "")

    def remember(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Give what was made under a key before, or make it: for results that cost more than a few milliseconds."""
        return self._kept.get(key, make)

    def scores(
        self, measures: Any, runs: Sequence[str] | None = None, where: str = "", of: str | None = None
    ) -> Scores:
        """Score the runs, all or some, over topics that satisfy an expression; of `of` are their outcomes."""
        wanted, names = measures_of(measures), self.run_names if runs is None else tuple(runs)
        lists, where = [self.judged(name) for name in names], where.strip()

        def make() -> Scores:
            if where:
                return self.scores(wanted, names).over_topics(self.mask(where, of))
            return _quietly(lambda: score_lists(lists, wanted))

        return self.remember(("scores", names, wanted, where, of if where else None), make)

    def comparison(
        self, measures: Any, baseline: str, runs: Sequence[str] | None = None, where: str = "", **how: Any
    ) -> Comparison:
        """Test the runs against one of them, by `compare`; keywords are its own."""
        scores = self.scores(measures, runs, where, baseline)
        key = ("comparison", scores.run_names, scores.measures, baseline, where.strip(), *sorted(how.items()))
        return self.remember(key, lambda: _quietly(lambda: scores.compare(baseline=baseline, **how)))

    def pair_comparison(self, measures: Any, first: str, second: str, where: str = "") -> Comparison:
        """Return the tests of two runs, with p corrected for all open runs as on the leaderboard of `first`."""
        comparison = self.comparison(measures, first, None, where)
        scores = self.scores(measures, (first, second), where, first)
        return self.remember(("pair", comparison, scores), lambda: comparison_of_runs(comparison, scores))

    def notes_over(self, topics: int, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """Say before notes of whole runs that they are of all topics, where some are left out."""
        some = notes and topics < len(self.query_ids)
        return (Note("of-all-topics", OF_ALL_TOPICS), *notes) if some else notes

    @remembered
    def rows(self, run: str) -> TopicRows:
        """Give the rows of a run by topic; they are read, and put down in that order, when they are asked for first."""
        return TopicRows.of(self.judged(run).run).mapped()

    def one_topic(self, query_id: str, runs: Sequence[str] | None = None) -> tuple[Qrels, list[Run]]:
        """Give the judgments and the runs of one topic alone, for functions that look at whole rankings."""
        if query_id not in self.qrels.index.codes:
            some = ", ".join(self.query_ids[:5])
            raise InputError(f"no topic {query_id!r} is in the judgments", fix=f"use one of {some}, and so on")
        names = self.run_names if runs is None else runs
        qrels = self.remember(("qrels", query_id), lambda: self.qrels.over([query_id]))
        return qrels, [self.rows(name).run(query_id) for name in names]

    def known(self, needed: Iterable[str] = (), run: str | None = None) -> Attributes:
        """Give the attributes of the topics: as given, or else derived."""
        names = tuple(dict.fromkeys(needed))
        given = self.remember(
            ("known",), lambda: read_topic_attributes(self.qrels, attributes=self.attributes, queries=self.topics)
        )
        if {given.spelled(name) for name in names} <= set(given.names):
            return given
        dear = tuple(one for one in ("language", OUTCOME) if one in names)  # the others are derived in one go
        derived = self._derived(("relevant", *dear), run)
        return derived if set(names) <= set(derived.names) else self._derived(names, run)

    @remembered
    def _derived(self, names: tuple[str, ...], run: str | None) -> Attributes:
        which = self.judged(run or self.run_names[0]).run if self.lists else None
        return read_topic_attributes(
            self.qrels, needed=names, attributes=self.attributes, queries=self.topics, run=which
        )

    @concerning("where")
    def mask(self, where: str, run: str | None = None) -> Bools:
        """Mark the topics that satisfy an expression over attributes, such as ``kind == 'law'``: (T,)."""
        if not where.strip():
            return np.ones(len(self.query_ids), dtype=np.bool_)
        expression = Expression(where)
        mask = expression.mask(self.known(expression.names, run).over(self.query_ids))
        if not mask.any():
            raise InputError(f"no topic satisfies {where!r}", fix="check the values of its attributes")
        return mask


def open_workspace(
    qrels: Any,
    runs: Any,
    *,
    queries: Any = None,
    attributes: Any = None,
    texts: Any = None,
    parts: Mapping[str, Any] | None = None,
    control: str = "",
    labels: Any = None,
    title: str | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Workspace:
    """Read judgments and runs, judge each run once, and keep what pages need.

    Parameters
    ----------
    qrels, runs, queries, attributes, texts
        As files, or as what `Qrels.of` and others take. Texts are kept of documents that are judged, returned by a
        run, or named by a part.
    parts
        What components opened, by name. A part may have `doc_ids`, and `close`.
    control
        The run that others are compared with by default.
    labels
        A store of labels to be judged in the browser.
    title
        What pages call it; the name of the qrels for None.
    progress
        Called with the name of a run and the bytes read.
    """
    judgments = Qrels.of(qrels)
    lists: dict[str, Judged] = {}
    for run in runs_of(runs) if runs else []:
        tell = None if progress is None else lambda count, name=run.name: progress(name, count)
        lists[run.name] = judge(judgments, run, progress=tell)
        check_common_topics(lists[run.name])
    parts = parts or {}
    return Workspace(
        title=title or judgments.name,
        qrels=judgments,
        lists=lists,
        topics=None if queries is None else Topics.of(queries),
        attributes=None if attributes is None else Attributes.of(attributes),
        texts=None if texts is None else Texts.of(texts, _doc_ids(judgments, lists, parts)),
        parts=parts,
        control=control,
        labels=labels,
    )


def open_sample() -> Workspace:
    """Open the sample that ships with judged.

    >>> opened = open_sample()
    >>> opened.title, len(opened.query_ids), opened.run_names[:2], opened.texts is not None
    ('the sample: find the standard-library function', 48, ('bm25', 'bm25_nostem'), True)
    """
    from judged.data import sample

    topics = sample.topics()
    parts: dict[str, Any] = {}
    for component in all_components():
        if component.serve:
            parts |= import_module(component.serve).sample_parts()
    return open_workspace(
        sample.qrels(),
        sample.runs(),
        queries=topics,
        attributes=Attributes.of(topics),
        texts=sample.FOLDER / "docs.jsonl.gz",
        parts=parts,
        title="the sample: find the standard-library function",
    )


def _doc_ids(qrels: Qrels, lists: dict[str, Judged], parts: Mapping[str, Any]) -> set[str]:
    """Return the documents that a page may show: judged, returned by a run, or named by a part."""
    from judged.data.compute import pc

    found: set[str] = set(qrels.index.doc_names)
    for judged in lists.values():
        found.update(pc.unique(judged.run.table["doc_id"]).to_pylist())
    for part in parts.values():
        found.update(getattr(part, "doc_ids", ()))
    return found


def _quietly(make: Callable[[], Any]) -> Any:
    """Make something without warnings: its result carries them, and pages show them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return make()


try:
    import fcntl
except ImportError:  # Windows, where a folder is only removed by the process that made it
    fcntl = None

JUDGE = "judged.judge"
"""Where a request says which judge made it, who was let in by nothing but a token of their own."""
_PREFIX = "judged-sent-"


class Folder:
    """A folder that nobody else may look into; it is locked until it goes: with this, or by `remove`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self.remove = weakref.finalize(self, _removed, self.path, _locked(self.path))


def remove_left() -> None:
    """Remove the folders that nobody locks any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if fcntl is not None else ():
        with suppress(OSError):  # it is locked, another user's, or gone
            _removed(folder, _locked(folder))


def _removed(folder: Path, lock: int | None) -> None:
    """Remove a folder with all that is in it, then give up its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a folder as long as this process lives."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@dataclass(eq=False)
class Desk:
    """The one thing that changes while the workbench runs: which workspace is open."""

    workspace: Workspace
    trial: Folder | None = None  # where labels to try judging with are

    def replace(self, workspace: Workspace) -> Workspace:
        """Open another workspace beside the same labels; the files of the one before go when nobody looks at it."""
        self.workspace = replace(workspace, labels=self.workspace.labels)
        return self.workspace

    def close(self) -> None:
        """Close engines and labels, and remove all files that are kept."""
        for part in (*self.workspace.parts.values(), self.workspace.labels):
            if hasattr(part, "close"):
                part.close()
        for folder in (self.workspace.sent, self.trial):
            if folder is not None:
                folder.remove()


def desk_of(request: Request) -> Desk:
    """Give the desk of the application that a request goes to."""
    desk: Desk = request.app.state.desk
    return desk


def opened(request: Request) -> Workspace:
    """Give the workspace that is open: one and the same for all of a request, whatever is opened meanwhile."""
    workspace: Workspace = request.scope.setdefault("judged.workspace", desk_of(request).workspace)
    return workspace


Opened = Annotated[Workspace, Depends(opened)]
"""The workspace that is open: what routes take as an argument."""
