"""Search systems of a configuration: an engine, a fusion of several, a reranker, or a generator."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from judged.comparison.fusion import ALGORITHMS, NORMALIZATIONS, fuse
from judged.errors import InputError
from judged.pipelines.experiments.engines import ENGINES, find_engine
from judged.pipelines.experiments.engines.base import QueryRefusedError, Setting, import_function
from judged.pipelines.rag.generation import passages_of, time_answer
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Engine, Hit
    from judged.pipelines.rag.generation import TimedAnswer
    from judged.pipelines.traces.traces import Kind

FUSION: Mapping[str, Setting] = {
    "algorithm": Setting("rrf", tuple(ALGORITHMS), "fusion algorithm"),
    "weights": Setting((), (), "weight of each list; if empty, all lists have equal weights"),
    "rrf_k": Setting(60.0, (), "constant that reciprocal rank fusion (rrf) adds to each rank", 0),
    "normalize": Setting("min-max", tuple(NORMALIZATIONS), "normalization of scores"),
    "missing": Setting(
        "", ("", "skip", "last", "share"), "how a document is scored in a list that does not contain it"
    ),
    "depth": Setting(
        0, (), "number of top documents to use from each list; if 0, the number of requested documents", 0
    ),
}
RERANK: Mapping[str, Setting] = {
    "function": Setting(
        "", (), "Python function, as module:function, that returns a score for each candidate document"
    ),
    "cutoff": Setting(
        100, (), "number of top documents to rerank; all other documents follow in their original order", 1
    ),
}
GENERATE: Mapping[str, Setting] = {
    "generator": Setting(
        "",
        (),
        "Python function, as module:function, that answers a query from passages, or a .toml file with the"
        " endpoint of a model",
    ),
    "passages": Setting(5, (), "number of top passages that the generator receives", 1),
}
COMMON: Mapping[str, Setting] = {
    "synonyms": Setting(
        "", (), "file of synonyms to expand queries: each line is a group of words, separated by commas"
    ),
    "rewrite": Setting("", (), "Python function, as module:function, that rewrites a query"),
}
"""Query settings that every engine has."""
OPERATORS = {"fusion": FUSION, "rerank": RERANK, "generate": GENERATE}


def settings_of(engine: str) -> Mapping[str, Setting]:
    """Return all settings of an engine, or of ``fusion``, ``rerank``, or ``generate``.

    >>> sorted(settings_of("sqlite"))
    ['rewrite', 'stemmer', 'synonyms', 'title_weight', 'tokens']

    Raises
    ------
    InputError
        If no engine has this name.
    """
    if engine in OPERATORS:
        return OPERATORS[engine]
    if engine not in ENGINES:
        raise InputError(f"no engine {engine!r}", fix=use_one_of((*ENGINES, *OPERATORS)))
    return {**find_engine(engine).settings, **COMMON}


@dataclass(frozen=True)
class Node:
    """An engine or operator with all its settings, and the nodes whose results it reads."""

    name: str
    engine: str
    settings: Mapping[str, Any]
    of: tuple[Node, ...] = ()

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Node:
        """Convert the dictionary that `dataclasses.asdict` returns."""
        return cls(fields["name"], fields["engine"], fields["settings"], tuple(map(cls.read, fields["of"])))

    def all(self) -> tuple[Node, ...]:
        """Return this node and all nodes below it."""
        return (self, *(node for child in self.of for node in child.all()))


class Candidate(NamedTuple):
    """A document to rerank."""

    doc_id: str
    score: float  # of the list to rerank
    title: str
    text: str


class SearchRecord(NamedTuple):
    """One search: the query of a node and its results."""

    name: str
    kind: Kind
    parents: tuple[str, ...]
    query: str
    hits: list[Hit]
    milliseconds: float
    refused: str = ""  # reason of a rejection; empty if the query was accepted


class SearchSystem(Protocol):
    """An engine or pipeline that can be searched."""

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        """Build all indexes in an empty folder."""

    def engines(self) -> list[Engine]:
        """Return the engines that it searches, each once; they are built."""
        ...

    def search(self, query: str, k: int, records: list[SearchRecord] | None = None) -> list[Hit]:
        """Return the first k documents; append a record of each node to `records`."""
        ...


def create_system(node: Node, systems: dict[str, SearchSystem] | None = None) -> SearchSystem:
    """Create the search system of a node; nodes with the same name share one system."""
    systems = {} if systems is None else systems
    if node.name not in systems:
        child_systems = [create_system(child, systems) for child in node.of]
        operator = {"fusion": _Fusion, "rerank": _Rerank, "generate": Generating}.get(node.engine)
        systems[node.name] = _EngineSystem(node) if operator is None else operator(node, child_systems)
    return systems[node.name]


class _EngineSystem:
    """One engine; queries are rewritten and expanded before the search."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._engine: Engine | None = None

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        if self._engine is not None:  # built by another pipeline that shares this node
            return
        settings = self._node.settings
        self._rewrite = import_function(settings["rewrite"]) if settings["rewrite"] else str
        self._synonyms = read_synonyms(settings["synonyms"]) if settings["synonyms"] else ()
        self._engine = find_engine(self._node.engine)()
        engine_settings = {name: value for name, value in settings.items() if name in self._engine.settings}
        self._engine.build(documents, engine_settings, folder)

    def engines(self) -> list[Engine]:
        return [] if self._engine is None else [self._engine]

    def search(self, query: str, k: int, records: list[SearchRecord] | None = None) -> list[Hit]:
        start = time.perf_counter()
        query = expand_query(self._rewrite(query), self._synonyms)
        refused = ""
        try:
            hits = _sort_ties(self.engines()[0].search(query, k))
        except QueryRefusedError as error:
            hits, refused = [], str(error)
        _append_record(records, self._node, "candidates", query, hits, start, refused)
        return hits


class _PipelineSystem:
    """Common methods of operators on lists."""

    def __init__(self, node: Node, child_systems: Sequence[SearchSystem]) -> None:
        self._node, self._child_systems = node, child_systems

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        for i, system in enumerate(self._child_systems):
            subfolder = folder / str(i)
            subfolder.mkdir()
            system.build(documents, subfolder)

    def engines(self) -> list[Engine]:
        return list(dict.fromkeys(engine for system in self._child_systems for engine in system.engines()))


class _Fusion(_PipelineSystem):
    """Fusion of several lists by `judged.fuse`."""

    def search(self, query: str, k: int, records: list[SearchRecord] | None = None) -> list[Hit]:
        options = dict(self._node.settings)
        depth = options.pop("depth") or k
        lists = [system.search(query, depth, records) for system in self._child_systems]
        start = time.perf_counter()
        runs = {child.name: {"q": dict(hits)} for child, hits in zip(self._node.of, lists, strict=True)}
        weights, missing = options.pop("weights") or None, options.pop("missing") or None
        hits: list[Hit] = []
        if any(lists):
            table = fuse(runs, weights=weights, missing=missing, depth=depth, cutoff=k, **options).table
            hits = list(zip(table["doc_id"].to_pylist(), table["score"].to_pylist(), strict=True))
        _append_record(records, self._node, "fuse", query, hits, start)
        return hits


class _Rerank(_PipelineSystem):
    """The first documents of a list, sorted by the scores of a function. The others keep their order behind them."""

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        self._function: Callable[..., Any] = import_function(self._node.settings["function"])
        self._documents = documents
        super().build(documents, folder)

    def search(self, query: str, k: int, records: list[SearchRecord] | None = None) -> list[Hit]:
        cutoff = int(self._node.settings["cutoff"])
        retrieved = self._child_systems[0].search(query, max(k, cutoff), records)
        start = time.perf_counter()
        top_hits = retrieved[:cutoff]
        candidates = [Candidate(doc, score, *self._documents.get(doc, ("", ""))) for doc, score in top_hits]
        scores = [float(score) for score in self._function(query, candidates)] if candidates else []
        if len(scores) != len(top_hits) or not all(map(math.isfinite, scores)):
            function = self._node.settings["function"]
            raise InputError(
                f"{function} must return {len(top_hits)} finite scores, got {scores!r:.60}",
                fix="return one number per candidate",
            )
        order = sorted(range(len(top_hits)), key=lambda position: -scores[position])
        hits = _sort_ties([(top_hits[position][0], scores[position]) for position in order])
        hits += [(doc, hits[-1][1] - 1 - position) for position, (doc, _) in enumerate(retrieved[cutoff:])]
        _append_record(records, self._node, "rerank", query, hits[:k], start)
        return hits[:k]


class Generating(_PipelineSystem):
    """A search system that also generates an answer from its first documents. Its list is unchanged."""

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        """Load the generator, and build the search system."""
        from judged.pipelines.rag.generation import Model

        generator = self._node.settings["generator"]
        self._generate = Model(generator) if is_endpoint(generator) else import_function(generator)
        self._documents = documents
        super().build(documents, folder)

    def search(self, query: str, k: int, records: list[SearchRecord] | None = None) -> list[Hit]:
        """Return the list of the search system."""
        return self._child_systems[0].search(query, k, records)

    def answer(self, query: str, hits: list[Hit], clock: Callable[[], float]) -> TimedAnswer:
        """Generate an answer from the first documents."""
        context_docs = [doc for doc, _ in hits[: self._node.settings["passages"]]]
        return time_answer(self._generate, query, passages_of(context_docs, self._documents), self._node.name, clock)


def _sort_ties(hits: list[Hit]) -> list[Hit]:
    """Order documents with equal scores as in runs. A rising score is not moved, so that `check_hits` rejects it."""
    return [hit for _, tied in groupby(hits, key=itemgetter(1)) for hit in sorted(tied, reverse=True)]


def _append_record(
    records: list[SearchRecord] | None,
    node: Node,
    kind: Kind,
    query: str,
    hits: list[Hit],
    start: float,
    refused: str = "",
) -> None:
    if records is not None and all(record.name != node.name for record in records):
        milliseconds = 1000 * (time.perf_counter() - start)
        records.append(
            SearchRecord(node.name, kind, tuple(child.name for child in node.of), query, hits, milliseconds, refused)
        )


def is_endpoint(generator: Any) -> bool:
    """Return whether a generator is an endpoint file, and not ``module:function``."""
    return str(generator).endswith(".toml")


def read_synonyms(path: str) -> tuple[tuple[str, ...], ...]:
    """Read groups of synonyms, one per line, separated by commas; ``#`` starts a comment."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the synonyms file ({error})", fix="check the path", path=path) from None
    groups: list[tuple[str, ...]] = []
    for number, line in enumerate(lines, 1):
        words = tuple(word.strip() for word in line.partition("#")[0].split(",") if word.strip())
        if len(words) == 1:
            problem = f"a synonym group must have at least two words, got {words[0]!r}"
            raise InputError(problem, fix="write synonyms on one line: car, automobile", path=path, line=number)
        groups += [words] if words else []
    return tuple(groups)


def expand_query(query: str, groups: Sequence[Sequence[str]]) -> str:
    """Add the synonyms of the words in a query.

    >>> expand_query("A used car", [("car", "automobile"), ("used", "second hand"), ("ship", "boat")])
    'A used car automobile second hand'
    """

    def is_in_query(word: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", query, re.IGNORECASE) is not None

    new_words = [word for group in groups if any(map(is_in_query, group)) for word in group if not is_in_query(word)]
    return " ".join([query, *dict.fromkeys(new_words)])
