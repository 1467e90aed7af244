"""What a configuration runs: an engine, several that are fused, or one whose list is put in another order."""

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
from judged.pipelines.experiments.engines import ENGINES, engine_named
from judged.pipelines.experiments.engines.base import QueryRefusedError, Setting, called
from judged.pipelines.rag.generation import passages_of, time_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Engine, Hit
    from judged.pipelines.rag.generation import TimedAnswer
    from judged.pipelines.traces.traces import Kind

FUSION: Mapping[str, Setting] = {
    "algorithm": Setting("rrf", tuple(ALGORITHMS), "how lists are fused"),
    "weights": Setting((), (), "what each list counts; empty: all the same"),
    "rrf_k": Setting(60.0, (), "what rrf adds to ranks", 0),
    "normalize": Setting("min-max", tuple(NORMALIZATIONS), "what is done to scores"),
    "missing": Setting("", ("", "skip", "last", "share"), "what a list gives a document that it lacks"),
    "depth": Setting(0, (), "how many documents of each list count; 0: as many as are asked for", 0),
}
RERANK: Mapping[str, Setting] = {
    "function": Setting("", (), "module:function that gives a score for each candidate"),
    "cutoff": Setting(100, (), "how many documents are put in another order; the rest stays behind them", 1),
}
GENERATE: Mapping[str, Setting] = {
    "generator": Setting("", (), "module:function that answers a query from passages, or an endpoint's .toml file"),
    "passages": Setting(5, (), "how many of the first documents it is given", 1),
}
COMMON: Mapping[str, Setting] = {
    "synonyms": Setting("", (), "file with a group of words a line, separated by commas, by which queries are widened"),
    "rewrite": Setting("", (), "module:function that makes a query of a query"),
}
"""Settings that every engine has, because they are about the query."""
OPERATORS = {"fusion": FUSION, "rerank": RERANK, "generate": GENERATE}


def settings_of(engine: str) -> Mapping[str, Setting]:
    """Give all settings of an engine, of ``fusion``, ``rerank`` or ``generate``.

    >>> sorted(settings_of("sqlite"))
    ['rewrite', 'stemmer', 'synonyms', 'title_weight', 'tokens']

    Raises
    ------
    InputError
        If there is no such engine.
    """
    if engine in OPERATORS:
        return OPERATORS[engine]
    if engine not in ENGINES:
        raise InputError(f"no engine {engine!r}", fix=f"use one of {', '.join((*ENGINES, *OPERATORS))}")
    return {**engine_named(engine).settings, **COMMON}


@dataclass(frozen=True)
class Part:
    """An engine, or what is made of some, with every setting given, and what it is given the lists of."""

    name: str
    engine: str
    settings: Mapping[str, Any]
    of: tuple[Part, ...] = ()

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Part:
        """Take what `dataclasses.asdict` made of one."""
        return cls(given["name"], given["engine"], given["settings"], tuple(map(cls.read, given["of"])))

    def all(self) -> tuple[Part, ...]:
        """Give it, and all parts below it."""
        return (self, *(part for below in self.of for part in below.all()))


class Candidate(NamedTuple):
    """A document that a reranker is asked about."""

    doc_id: str
    score: float  # that it came with
    title: str
    text: str


class Asked(NamedTuple):
    """What a part was asked and gave."""

    name: str
    kind: Kind
    parents: tuple[str, ...]
    query: str
    hits: list[Hit]
    milliseconds: float
    refused: str = ""  # why; empty where it was not


class System(Protocol):
    """An engine or a pipeline that can be asked."""

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        """Make what it needs in an empty folder."""

    def engines(self) -> list[Engine]:
        """Give the engines that it asks, each once; they are built."""
        ...

    def search(self, query: str, k: int, told: list[Asked] | None = None) -> list[Hit]:
        """Give the first k documents; with `told`, write down what every part gave."""
        ...


def system_of(part: Part, made: dict[str, System] | None = None) -> System:
    """Make what can be asked of a part and those below it; parts of one name are one."""
    made = {} if made is None else made
    if part.name not in made:
        below = [system_of(one, made) for one in part.of]
        kind = {"fusion": _Fusion, "rerank": _Rerank, "generate": Generating}.get(part.engine)
        made[part.name] = _Searched(part) if kind is None else kind(part, below)
    return made[part.name]


class _Searched:
    """One engine, asked with the query as it was rewritten and widened."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._engine: Engine | None = None

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        if self._engine is not None:  # by another pipeline that it is a part of
            return
        settings = self._part.settings
        self._rewrite = called(settings["rewrite"]) if settings["rewrite"] else str
        self._synonyms = read_synonyms(settings["synonyms"]) if settings["synonyms"] else ()
        self._engine = engine_named(self._part.engine)()
        own = {name: value for name, value in settings.items() if name in self._engine.settings}
        self._engine.build(documents, own, folder)

    def engines(self) -> list[Engine]:
        return [] if self._engine is None else [self._engine]

    def search(self, query: str, k: int, told: list[Asked] | None = None) -> list[Hit]:
        begun = time.perf_counter()
        query = widened(self._rewrite(query), self._synonyms)
        refused = ""
        try:
            hits = _ranked(self.engines()[0].search(query, k))
        except QueryRefusedError as error:
            hits, refused = [], str(error)
        _tell(told, self._part, "candidates", query, hits, begun, refused)
        return hits


class _Pipeline:
    """What is common to those that are given lists."""

    def __init__(self, part: Part, below: Sequence[System]) -> None:
        self._part, self._below = part, below

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        for at, system in enumerate(self._below):
            place = folder / str(at)
            place.mkdir()
            system.build(documents, place)

    def engines(self) -> list[Engine]:
        return list(dict.fromkeys(engine for system in self._below for engine in system.engines()))


class _Fusion(_Pipeline):
    """One list of several, as `judged.fuse` makes it."""

    def search(self, query: str, k: int, told: list[Asked] | None = None) -> list[Hit]:
        options = dict(self._part.settings)
        depth = options.pop("depth") or k
        lists = [system.search(query, depth, told) for system in self._below]
        begun = time.perf_counter()
        runs = {part.name: {"q": dict(hits)} for part, hits in zip(self._part.of, lists, strict=True)}
        weights, missing = options.pop("weights") or None, options.pop("missing") or None
        hits: list[Hit] = []
        if any(lists):
            table = fuse(runs, weights=weights, missing=missing, depth=depth, cutoff=k, **options).table
            hits = list(zip(table["doc_id"].to_pylist(), table["score"].to_pylist(), strict=True))
        _tell(told, self._part, "fuse", query, hits, begun)
        return hits


class _Rerank(_Pipeline):
    """The first documents of a list in the order of a function's scores; what is behind them stays there."""

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        self._function: Callable[..., Any] = called(self._part.settings["function"])
        self._documents = documents
        super().build(documents, folder)

    def search(self, query: str, k: int, told: list[Asked] | None = None) -> list[Hit]:
        cutoff = int(self._part.settings["cutoff"])
        given = self._below[0].search(query, max(k, cutoff), told)
        begun = time.perf_counter()
        head = given[:cutoff]
        asked = [Candidate(doc, score, *self._documents.get(doc, ("", ""))) for doc, score in head]
        scores = [float(score) for score in self._function(query, asked)] if asked else []
        if len(scores) != len(head) or not all(map(math.isfinite, scores)):
            problem = f"{self._part.settings['function']} gave {len(scores)} scores, or one that is no number"
            raise InputError(f"{problem}, for {len(head)} candidates", fix="give one finite score a candidate")
        order = sorted(range(len(head)), key=lambda at: -scores[at])
        hits = _ranked([(head[at][0], scores[at]) for at in order])
        hits += [(doc, hits[-1][1] - 1 - at) for at, (doc, _) in enumerate(given[cutoff:])]
        _tell(told, self._part, "rerank", query, hits[:k], begun)
        return hits[:k]


class Generating(_Pipeline):
    """The list as it is, and an answer from its first documents."""

    def build(self, documents: Mapping[str, Text], folder: Path) -> None:
        """Import the generator, and build what is below."""
        from judged.pipelines.rag.generation import Model

        given = self._part.settings["generator"]
        self._generate = Model(given) if is_endpoint(given) else called(given)
        self._documents = documents
        super().build(documents, folder)

    def search(self, query: str, k: int, told: list[Asked] | None = None) -> list[Hit]:
        """Give the list of what is below."""
        return self._below[0].search(query, k, told)

    def answer(self, query: str, hits: list[Hit], clock: Callable[[], float]) -> TimedAnswer:
        """Ask the generator."""
        first = [doc for doc, _ in hits[: self._part.settings["passages"]]]
        return time_answer(self._generate, query, passages_of(first, self._documents), self._part.name, clock)


def _ranked(hits: list[Hit]) -> list[Hit]:
    """Put documents of one score in the order that they have in runs; a score that rises stays, to be refused."""
    return [hit for _, tied in groupby(hits, key=itemgetter(1)) for hit in sorted(tied, reverse=True)]


def _tell(
    told: list[Asked] | None, part: Part, kind: Kind, query: str, hits: list[Hit], begun: float, refused: str = ""
) -> None:
    if told is not None and all(other.name != part.name for other in told):
        taken = 1000 * (time.perf_counter() - begun)
        told.append(Asked(part.name, kind, tuple(one.name for one in part.of), query, hits, taken, refused))


def is_endpoint(given: Any) -> bool:
    """Say whether a generator is the model of an endpoint's file, and not ``module:function``."""
    return str(given).endswith(".toml")


def read_synonyms(path: str) -> tuple[tuple[str, ...], ...]:
    """Read groups of words that mean the same, one a line, separated by commas; what follows ``#`` is a remark."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"synonyms cannot be read ({error})", fix="check the path", path=path) from None
    groups: list[tuple[str, ...]] = []
    for number, line in enumerate(lines, 1):
        words = tuple(word.strip() for word in line.partition("#")[0].split(",") if word.strip())
        if len(words) == 1:
            problem = f"{words[0]!r} stands alone"
            raise InputError(
                problem, fix="give words that mean the same a line: car, automobile", path=path, line=number
            )
        groups += [words] if words else []
    return tuple(groups)


def widened(query: str, groups: Sequence[Sequence[str]]) -> str:
    """Add to a query what means the same as a word, or several, in it.

    >>> widened("A used car", [("car", "automobile"), ("used", "second hand"), ("ship", "boat")])
    'A used car automobile second hand'
    """

    def there(word: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", query, re.IGNORECASE) is not None

    added = [word for group in groups if any(map(there, group)) for word in group if not there(word)]
    return " ".join([query, *dict.fromkeys(added)])
