"""What the systems of a study return: frozen runs, or what an engine answers while the study goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from judged.data.run import Run
from judged.data.texts import Text, Texts
from judged.pipelines.experiments.engines import engine_named
from judged.pipelines.experiments.engines.base import QueryRefusedError
from judged.scoring.judging.dense import all_scored
from judged.scoring.judging.ranking import Ranking

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.studies.design import Design

DEPTH = 100
"""So many documents of a list are shown at most."""
Hits = tuple[tuple[str, float], ...]
"""Documents and their scores, the best first."""


class SystemLists(NamedTuple):
    """What one system returns, and the texts of that."""

    hits: Callable[[str, str], Hits]  # of a topic and a query
    texts: Texts
    free: bool  # whether people write queries of their own

    def text(self, doc_id: str) -> Text:
        """Give title and text of a document; empty ones where none are known."""
        return self.texts.documents.get(doc_id, Text("", ""))


@dataclass(frozen=True, eq=False)
class StudyLists:
    """The lists of every system. Files are read once."""

    systems: Mapping[str, SystemLists] = field(repr=False)

    @classmethod
    def of(cls, design: Design) -> Self:
        """Read the runs and texts that a design names.

        Raises
        ------
        InputError
            If one cannot be read.
        """
        topics = tuple(dict.fromkeys(task.topic for task in (*design.practice, *design.tasks, *design.preference)))
        made: dict[str, SystemLists] = {}
        for system in design.systems:
            texts = str(design.file(system.texts))
            if system.endpoint:
                made[system.name] = SystemLists(_asked(str(design.file(system.endpoint))), Texts.of(texts), free=True)
                continue
            frozen = _frozen(Run.read(design.file(system.run)), topics)
            wanted = {doc_id for hits in frozen.values() for doc_id, _ in hits}
            made[system.name] = SystemLists(lambda topic, _, of=frozen: of[topic], Texts.of(texts, wanted), free=False)
        return cls(made)


def _frozen(run: Run, topics: tuple[str, ...]) -> dict[str, Hits]:
    returned, scores = all_scored(run, topics, Ranking(depth=DEPTH))
    docs, ends = returned.doc.to_pylist(), np.searchsorted(returned.topic, np.arange(len(topics) + 1))
    return {
        topic: tuple(zip(docs[first:last], scores[first:last].tolist(), strict=True))
        for topic, first, last in zip(topics, ends[:-1], ends[1:], strict=True)
    }


def _asked(path: str) -> Callable[[str, str], Hits]:
    """Ask an engine over HTTP; who looks at the same page again sees the same."""
    engine = engine_named("http")()
    engine.build({}, {"file": path}, Path())

    @lru_cache(10_000)
    def search(query: str) -> Hits:
        try:
            return tuple(engine.search(query, DEPTH))
        except QueryRefusedError:
            return ()

    return lambda _, query: search(query)
