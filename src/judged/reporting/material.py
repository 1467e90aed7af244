"""What the sections of a report are written from: scores, tests, files, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.answer import Chart, Table
from judged.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged._types import Floats
    from judged.answer import Section
    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.data import Qrels, Run
    from judged.data.attributes import Attributes
    from judged.data.topics import Topics
    from judged.evaluation import Estimate, Scores
    from judged.measures import Measure

Quoted = TypeVar("Quoted", Chart, Table)


@dataclass(frozen=True, eq=False)
class Material:
    """What was given, and what was computed of it before any section is written."""

    qrels: Qrels
    runs: Mapping[str, Run]  # in the order in which they were given
    scores: Scores
    comparison: Comparison | None  # None for one run
    estimates: tuple[Estimate, ...]  # of the first measure, in the order of the runs
    order: tuple[int, ...]  # the runs from best to worst by the first measure
    # the run that is looked at closely: the best one, or where that is the baseline the best of the others
    candidate: str
    # the run that it is compared with: the baseline, or the next best that is more than a variant of the best
    reference: str | None
    topics: Topics | None  # the texts of the queries
    attributes: Attributes | None  # what is known of the topics
    docs: Any = field(repr=False)  # the texts of documents, in whatever form they were given
    by: tuple[str, ...]  # the attributes to slice by
    # seed, resamples: of the tests
    seed: int
    resamples: int
    policies: Mapping[str, Any]  # of `evaluate`

    @property
    def lead(self) -> Measure:
        """The first measure: that by which runs are ordered and topics are looked at."""
        return self.scores.measures[0]

    @property
    def better(self) -> int:
        """1 where a higher score of the first measure is better, -1 where a lower one is."""
        return -1 if self.lead.properties.higher_is_better is False else 1

    @property
    def caution(self) -> str:
        """What the choice of the candidate does to its numbers; nothing, where there was none to choose."""
        if len(self.order) < 3:
            return ""
        return (
            f"{self.candidate} is looked at closely because it did best on these very topics. Tests by slice and stage"
            " do not allow for that choice, so its differences lean in its favour."
        )

    @property
    def two(self) -> tuple[str, ...]:
        """The names of the two runs that are looked at, the reference first; of the only run, where there is one."""
        return (self.candidate,) if self.reference is None else (self.reference, self.candidate)

    @property
    def ranked(self) -> tuple[str, ...]:
        """The names of the runs from best to worst."""
        return tuple(self.scores.run_names[at] for at in self.order)

    @property
    def tested(self) -> MeasureComparison | None:
        """What was found by the first measure; None where nothing was tested."""
        one = self.comparison.measures[0] if self.comparison else None
        return one if one and one.pairs else None

    @property
    def pair(self) -> Pair | None:
        """The candidate against the reference; None where they were not tested."""
        if self.tested is None or self.reference is None:
            return None
        known = self.tested.by_runs
        return known.get((self.reference, self.candidate)) or known.get((self.candidate, self.reference))

    def of(self, run: str) -> Floats:
        """Give the scores of a run by the first measure: (T,), NaN where a topic does not count."""
        return self.scores.values[self.scores.run_names.index(run), 0]

    def gains(self) -> Floats:
        """Give by how much the candidate is better than the reference on each topic: (T,); NaN where unknown."""
        if self.reference is None:
            return np.full(len(self.scores.query_ids), np.nan)
        return self.better * (self.of(self.candidate) - self.of(self.reference))

    def alike(self, run: str, other: str) -> bool:
        """Whether two runs have the same score by the first measure on every topic that counts for either."""
        return bool(np.array_equal(self.of(run), self.of(other), equal_nan=True))

    def query(self, query_id: str, most: int = 60) -> str:
        """Give the text of a query, shortened; nothing where it is not known."""
        return shortened(known_text(self.topics, query_id), most)

    def some_runs(self, names: Sequence[str]) -> list[Run]:
        """Give runs by their names."""
        return [self.runs[name] for name in names]


@dataclass(frozen=True)
class Found:
    """What one of these sections found."""

    section: Section
    results: dict[str, Any] = field(default_factory=dict)  # results by name, each with a `to_dict`
    headline: str = ""  # one sentence for the summary; empty where there is nothing to say
    warnings: tuple[str, ...] = ()


def quoted(block: Quoted, name: str, **changes: Any) -> Quoted:
    """Give a table or chart of another answer under a name of its own; data have it there."""
    if isinstance(block, Chart):
        return replace(block, name=name, table=quoted(block.table, name), folded=False, **changes)
    return replace(block, name=name, **{"only": "people", "folded": False, "title": "", **changes})


def worst_topics(material: Material, most: int) -> list[int]:
    """Give the positions of the topics with the worst scores of the candidate."""
    own = material.better * material.of(material.candidate)
    return [at for at in np.argsort(own, kind="stable").tolist() if np.isfinite(own[at])][:most]


def known_text(topics: Topics | None, query_id: str) -> str:
    """Look up the text of a query; nothing where it is not known.

    >>> from judged.data.topics import Topics
    >>> known_text(Topics.of({"q1": "tax"}), "q1"), known_text(Topics.of({"q1": "tax"}), "q2"), known_text(None, "q1")
    ('tax', '', '')
    """
    return "" if topics is None else topics.text(query_id)


def shortened(text: str, most: int) -> str:
    """Cut a text to so many characters, on one line.

    >>> shortened("one  two three", 9)
    'one two…'
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Write some names as a list, and how many there are beyond those.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c", "d"], 2)
    ('a', 'a and b', 'a, b and 2 others')
    """
    if len(names) > most:
        rest = len(names) - most
        return f"{', '.join(names[:most])} and {counted(rest, 'other')}"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
