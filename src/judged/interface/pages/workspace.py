"""The workspace of the workbench: judgments, runs, other open data, and a cache of results computed from them."""

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
from inspect import signature
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
from fastapi import Depends, Request
from pydantic import BaseModel

from judged.comparison import Comparison
from judged.comparison.compare import comparison_of_runs
from judged.comparison.slicing import Expression, read_topic_attributes
from judged.comparison.slicing.derived import OUTCOME
from judged.components import serve_modules
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.run import Run, TopicRows
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.errors import InputError, JudgedError, JudgedWarning
from judged.results.blocks import Note
from judged.results.spelling import use_one_of
from judged.results.table import best_first_order
from judged.results.types import cached_property
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import Scores, measures_of, runs_of, score_lists
from judged.scoring.evaluation.facts import check_common_topics
from judged.scoring.judging import Judged, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence

    from judged.results.types import Bools


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ResultCache:
    """Cache of the most recently used results. Concurrent requests for a key compute its result once.

    >>> cache = ResultCache(max_size=2)
    >>> cache.get("a", lambda: 1), cache.get("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, max_size: int = 64) -> None:
        self._max_size = max_size
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the cached result of a key, or compute and cache it. Errors are not cached."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            while len(self._slots) > self._max_size:
                self._slots.popitem(last=False)
        # The lock of the slot, not that of the cache: other keys are not blocked while this one is computed. It is
        # reentrant, because a computation that requests its own key would deadlock otherwise.
        with slot.lock:
            if not slot.computed:
                try:
                    slot.value, slot.computed = compute(), True
                except BaseException:  # else mistyped requests would evict valid results
                    with self._lock:
                        self._slots.pop(key, None)
                    raise
        return slot.value


@dataclass(eq=False)
class _Slot:
    """One result with its own lock, so that computing it does not block other keys."""

    lock: RLock = field(default_factory=RLock)
    computed: bool = False
    value: Any = None


def cached_in_workspace(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Cache the results of a function in the workspace that is its first argument."""
    parameters = signature(function)

    @wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        workspace, *arguments = parameters.bind(*args, **kwargs).arguments.values()
        # Models are not hashable; their representation contains all parameters.
        key = (function, *(repr(argument) if isinstance(argument, BaseModel) else argument for argument in arguments))
        return workspace.cached(key, lambda: function(*args, **kwargs))

    return wrapper


@contextmanager
def set_error_field(field: str) -> Generator[None]:
    """Set the field of errors raised in the block, unless they already have one."""
    try:
        yield
    except JudgedError as error:
        error.field = error.field or field
        raise


LEVEL = 0.95
"""Confidence level of intervals and tests on pages."""
COVERS_ALL_TOPICS = (
    "the notes below on judgments and runs are about all topics, including topics that were filtered out"
)


_OPTIONS = {"responses": "rag", "trials": "experiment", "results": "experiment"}
"""Options of `judged serve` by the names of parts of a workspace, where these differ."""


_NO_ROWS = pa.table(
    {"query_id": pa.array([], "string"), "doc_id": pa.array([], "string"), "relevance": pa.array([], "float64")}
)


class _NoJudgments(Qrels):
    """Empty judgments, for a workspace with labels only."""

    def __post_init__(self) -> None:
        """Accept a table without rows."""


@dataclass(frozen=True, eq=False)
class Workspace:
    """Judgments, runs, and data about topics and documents. Immutable except for its caches."""

    title: str  # shown on pages
    qrels: Qrels
    lists: dict[str, Judged] = field(repr=False)  # in input order
    topics: Topics | None = None  # texts of the queries
    attributes: Attributes | None = None  # facts about the topics, other than their texts
    texts: Texts | None = None  # texts of returned or judged documents
    parts: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  # opened by components, by name
    control: str = ""  # default baseline run
    labels: Any = field(default=None, repr=False)  # a `LabelStore`; kept when other files are opened
    upload_folder: LockedFolder | None = field(default=None, repr=False)  # uploaded files; removed with them
    _cache: ResultCache = field(default_factory=lambda: ResultCache(256), init=False, repr=False)

    @property
    def run_names(self) -> tuple[str, ...]:
        """Names of the runs, in input order."""
        return tuple(self.lists)

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Topics of the qrels, in byte order."""
        return self.qrels.topics

    @property
    def open_data(self) -> set[str]:
        """Options of `judged serve` whose data are open."""
        parts = {_OPTIONS.get(name, name) for name in self.parts}
        return parts if self.labels is None else parts | {"labels"}

    def query(self, query_id: str) -> str:
        """Return the text of a query, or an empty string if it is unknown."""
        return "" if self.topics is None else self.topics.text(query_id)

    def judged(self, run: str) -> Judged:
        """Return the judged list of a run."""
        if run not in self.lists:
            raise InputError(f"no run {run!r} is open", fix=use_one_of(self.lists))
        return self.lists[run]

    @cached_in_workspace
    def ranked_run_names(self, measure: Any = DEFAULT_MEASURE) -> tuple[str, ...]:
        """Return the run names, best by `measure` first; in input order if the measure cannot score them."""
        measure = measures_of(measure)[0]
        try:
            values = [row.value for row in self.scores(measure).estimates(ci="none")] if self.lists else []
        except JudgedError:
            return self.run_names
        lower_is_better = measure.properties.higher_is_better is False
        return tuple(self.run_names[position] for position in best_first_order(values, lower_is_better=lower_is_better))

    def default_pair(self, measure: Any = DEFAULT_MEASURE, baseline: str = "", run: str = "") -> tuple[str, str]:
        """Return a baseline and a run; by default, the run named as baseline (or the best), and the best other run."""
        for name in filter(None, (baseline, run)):
            self.judged(name)
        if baseline and baseline == run:
            raise InputError(f"{run} cannot be compared with itself", fix="choose another run")
        ranked_run_names = self.ranked_run_names(measure)
        baselines = [name for name in ranked_run_names if name == self.control or "baseline" in name.casefold()]
        first = baseline or next((name for name in (*baselines, *ranked_run_names) if name != run), "")
        return first, run or next((name for name in ranked_run_names if name != first), "")

    def cached(self, key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return the cached result of a key, or compute and cache it."""
        return self._cache.get(key, compute)

    def scores(
        self, measures: Any, runs: Sequence[str] | None = None, where: str = "", outcome_run: str | None = None
    ) -> Scores:
        """Score runs over the topics that satisfy `where`; its outcome attributes come from `outcome_run`."""
        parsed_measures, run_names = measures_of(measures), self.run_names if runs is None else tuple(runs)
        lists, where = [self.judged(name) for name in run_names], where.strip()

        def compute() -> Scores:
            if where:
                return self.scores(parsed_measures, run_names).over_topics(self.mask(where, outcome_run))
            return _without_warnings(lambda: score_lists(lists, parsed_measures))

        return self.cached(("scores", run_names, parsed_measures, where, outcome_run if where else None), compute)

    def comparison(
        self, measures: Any, baseline: str, runs: Sequence[str] | None = None, where: str = "", **options: Any
    ) -> Comparison:
        """Compare runs with a baseline; `options` are keywords of `Scores.compare`."""
        scores = self.scores(measures, runs, where, baseline)
        key = ("comparison", scores.run_names, scores.measures, baseline, where.strip(), *sorted(options.items()))
        return self.cached(key, lambda: _without_warnings(lambda: scores.compare(baseline=baseline, **options)))

    def comparison_of(self, measures: Any, runs: Sequence[str], where: str = "") -> Comparison:
        """Return the tests of runs against the first of them, with p corrected for all open runs as on its leaderboard.

        All pages show these tests over all topics, so that a pair of runs has one p-value.
        """
        comparison = self.comparison(measures, runs[0], None, where)
        scores = self.scores(measures, runs, where, runs[0])
        return self.cached(("of runs", comparison, scores), lambda: comparison_of_runs(comparison, scores))

    def notes_over(self, topics: int, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """Return the notes; if topics are excluded, first note that these notes cover all topics."""
        has_excluded_topics = notes and topics < len(self.query_ids)
        return (Note("of-all-topics", COVERS_ALL_TOPICS), *notes) if has_excluded_topics else notes

    @cached_in_workspace
    def rows(self, run: str) -> TopicRows:
        """Return the rows of a run by topic. They are read and sorted on the first call."""
        return TopicRows.of(self.judged(run).run).memory_mapped()

    def topic_data(self, query_id: str, runs: Sequence[str] | None = None) -> tuple[Qrels, list[Run]]:
        """Return the judgments and the runs restricted to one topic."""
        if query_id not in self.qrels.index.codes:
            examples = ", ".join(self.query_ids[:5])
            raise InputError(f"the judgments have no topic {query_id!r}", fix=f"use one of {examples}, ...")
        names = self.run_names if runs is None else runs
        qrels = self.cached(("qrels", query_id), lambda: self.qrels.over([query_id]))
        return qrels, [self.rows(name).run(query_id) for name in names]

    def topic_attributes(self, needed: Iterable[str] = (), run: str | None = None) -> Attributes:
        """Return the attributes of the topics, derived ones only if `needed` names them."""
        names = tuple(dict.fromkeys(needed))
        attributes = self.cached(
            ("topic attributes",),
            lambda: read_topic_attributes(self.qrels, attributes=self.attributes, queries=self.topics),
        )
        if {attributes.spelled(name) for name in names} <= set(attributes.names):
            return attributes
        expensive = tuple(name for name in ("language", OUTCOME) if name in names)  # all others are derived in one pass
        derived = self._derived(("relevant", *expensive), run)
        return derived if set(names) <= set(derived.names) else self._derived(names, run)

    @cached_in_workspace
    def _derived(self, names: tuple[str, ...], run: str | None) -> Attributes:
        source_run = self.judged(run or self.run_names[0]).run if self.lists else None
        return read_topic_attributes(
            self.qrels, needed=names, attributes=self.attributes, queries=self.topics, run=source_run
        )

    @set_error_field("where")
    def mask(self, where: str, run: str | None = None) -> Bools:
        """Return which topics satisfy an expression over attributes, such as ``kind == 'law'``: (T,)."""
        if not where.strip():
            return np.ones(len(self.query_ids), dtype=np.bool_)
        expression = Expression(where)
        mask = expression.mask(self.topic_attributes(expression.names, run).over(self.query_ids))
        if not mask.any():
            raise InputError(f"no topic satisfies {where!r}", fix="check the attribute values in the condition")
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
    """Read judgments and runs, and judge each run once.

    Parameters
    ----------
    qrels, runs, queries, attributes, texts
        Files, or any input of `Qrels.of` and its counterparts. Only texts of documents that are judged, returned by
        a run, or listed by a part are read. Without qrels, there are no judgments.
    parts
        Objects that components opened, by name. A part may have `doc_ids` and `close`.
    control
        Default baseline run.
    labels
        The `LabelStore` for judging in the browser.
    title
        Title on pages. Default: the name of the qrels.
    progress
        Called with the name of a run and the number of bytes read.
    """
    judgments = Qrels.of(qrels) if qrels is not None else _NoJudgments(_NO_ROWS)
    lists: dict[str, Judged] = {}
    for run in runs_of(runs) if runs else []:
        report_bytes = None if progress is None else lambda count, name=run.name: progress(name, count)
        lists[run.name] = judge(judgments, run, progress=report_bytes)
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

    >>> workspace = open_sample()
    >>> workspace.title, len(workspace.query_ids), workspace.run_names[:2], workspace.texts is not None
    ('the sample: questions about functions of the Python standard library', 48, ('bm25', 'bm25_nostem'), True)
    """
    from judged.data import sample

    topics = sample.topics()
    parts: dict[str, Any] = {}
    for module in serve_modules():
        parts |= module.sample_parts()
    return open_workspace(
        sample.qrels(),
        sample.runs(),
        queries=topics,
        attributes=Attributes.of(topics),
        texts=sample.FOLDER / "docs.jsonl.gz",
        parts=parts,
        title="the sample: questions about functions of the Python standard library",
    )


def _doc_ids(qrels: Qrels, lists: dict[str, Judged], parts: Mapping[str, Any]) -> set[str]:
    """Return the documents that a page may show: judged, returned by a run, or listed by a part."""
    from judged.data.compute import pc

    doc_ids: set[str] = set(qrels.index.doc_names)
    for judged in lists.values():
        doc_ids.update(pc.unique(judged.run.table["doc_id"]).to_pylist())
    for part in parts.values():
        doc_ids.update(getattr(part, "doc_ids", ()))
    return doc_ids


def _without_warnings(compute: Callable[[], Any]) -> Any:
    """Call a function without warnings: its result carries them, and pages show them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return compute()


try:
    import fcntl
except ImportError:  # Windows: a folder is only removed by the process that created it
    fcntl = None

JUDGE = "judged.judge"
"""Key in the ASGI scope: the judge of a request that was authenticated by a judge token."""
_PREFIX = "judged-sent-"


class LockedFolder:
    """A private temporary folder, locked until it is garbage-collected or `remove` is called."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self.remove = weakref.finalize(self, _remove, self.path, _lock(self.path))


def remove_unlocked_folders() -> None:
    """Remove temporary folders of processes that have ended: their locks are free."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*") if fcntl is not None else ():
        with suppress(OSError):  # locked, owned by another user, or removed
            _remove(folder, _lock(folder))


def _remove(folder: Path, lock: int | None) -> None:
    """Remove a folder and its content, then release its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _lock(folder: Path) -> int | None:
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
class WorkspaceHolder:
    """The current workspace of the application, and the only mutable state of the workbench."""

    workspace: Workspace
    trial: LockedFolder | None = None  # trial labels

    def replace(self, workspace: Workspace, labels: Any = None) -> Workspace:
        """Open another workspace, by default with the same labels. The previous one is freed after its last request."""
        self.workspace = replace(workspace, labels=labels or self.workspace.labels)
        return self.workspace

    def close(self) -> None:
        """Close engines and labels, and remove temporary files."""
        for part in (*self.workspace.parts.values(), self.workspace.labels):
            if hasattr(part, "close"):
                part.close()
        for folder in (self.workspace.upload_folder, self.trial):
            if folder is not None:
                folder.remove()


def workspace_holder(request: Request) -> WorkspaceHolder:
    """Return the workspace holder of the application."""
    holder: WorkspaceHolder = request.app.state.holder
    return holder


def current_workspace(request: Request) -> Workspace:
    """Return the workspace of a request. It stays the same if another one is opened meanwhile."""
    workspace: Workspace = request.scope.setdefault("judged.workspace", workspace_holder(request).workspace)
    return workspace


CurrentWorkspace = Annotated[Workspace, Depends(current_workspace)]
"""Current workspace as a parameter of routes (a FastAPI dependency)."""
