"""What the sections of a report are written from: scores, tests, files, and who is compared with whom."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from judged.comparison.slicing.derived import read_topic_attributes
from judged.comparison.slicing.topic_slices import slice_topics
from judged.diagnosis.stages import stages
from judged.errors import InputError
from judged.results import Chart, Table
from judged.results.decimals import counted
from judged.results.table import best_first_order
from judged.results.types import cached_property
from judged.scoring.evaluation import dialect_of
from judged.scoring.evaluation.dialects import without_self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.comparison import Comparison, MeasureComparison, Pair
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.data.topics import Topics
    from judged.diagnosis.stages import Stages
    from judged.results import Block, Section
    from judged.results.types import Floats
    from judged.scoring.evaluation import Estimate, Scores
    from judged.scoring.measures.base import Measure

DEPTH = 100
"""Of the candidates that are looked at in stages."""
_UNLIKE = 0.25  # of the topics: two runs that differ on fewer are variants of one
_LENGTH = "length"  # of queries: what there is to slice by where nothing else is known
_MOST_VALUES = 12  # of an attribute that is sliced by without being asked for
_MOST_ATTRIBUTES = 3

Quoted = TypeVar("Quoted", Chart, Table)


@dataclass(frozen=True, eq=False)
class Material:
    """What was given, and what follows of it before any section is written."""

    qrels: Qrels
    runs: Mapping[str, Run]  # in the order in which they were given
    scores: Scores
    comparison: Comparison | None  # None for one run
    topics: Topics | None  # the texts of the queries
    attributes: Attributes | None  # the attributes of the topics
    texts: Any = field(repr=False)  # the texts of documents, in whatever form they were given
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

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Of the first measure, in the order of the runs."""
        if self.comparison:
            return self.comparison.measures[0].estimates
        return tuple(one for one in self.scores.estimates(seed=self.seed) if one.measure == str(self.lead))

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """The names of the runs from best to worst by the first measure."""
        order = best_first_order([one.value for one in self.estimates], lower_is_better=self.better < 0)
        return tuple(self.scores.run_names[at] for at in order)

    @property
    def given_baseline(self) -> str | None:
        """The run that all others are compared with, where there is one."""
        return self.comparison.choices.baseline if self.comparison else None

    @cached_property
    def candidate(self) -> str:
        """The run that is looked at closely: the best one, or the best that is not a copy of the given baseline."""
        others = [name for name in self.ranked if name != self.given_baseline or len(self.ranked) == 1]
        unlike = (name for name in others if self.given_baseline is None or not self.alike(name, self.given_baseline))
        return next(unlike, others[0])

    @cached_property
    def baseline(self) -> str | None:
        """The run it is compared with: the one given, or the next best that is no variant; None for one run."""
        if self.given_baseline is not None or len(self.ranked) == 1:
            return self.given_baseline
        best, *others = self.ranked
        unlike = (name for name in others if np.mean(self.of(name) != self.of(best)) >= _UNLIKE)
        return next(unlike, others[0])

    @property
    def caution(self) -> str:
        """What the choice of the candidate does to its numbers; nothing, where there was none to choose."""
        if len(self.ranked) < 3:
            return ""
        return (
            f"{self.candidate} is looked at closely because it did best on these very topics. Tests by slice and stage"
            " do not allow for that choice, so its differences lean in its favor."
        )

    @property
    def two(self) -> tuple[str, ...]:
        """The names of the two runs that are looked at, the baseline first; of the only run, where there is one."""
        return (self.candidate,) if self.baseline is None else (self.baseline, self.candidate)

    @property
    def tested(self) -> MeasureComparison | None:
        """What was found by the first measure; None where nothing was tested."""
        lead = self.comparison.measures[0] if self.comparison else None
        return lead if lead and lead.pairs else None

    def pair(self, compared: MeasureComparison) -> Pair | None:
        """Give the candidate against the baseline by a measure; None where they were not tested."""
        return compared.by_runs.get(self.two[:2]) or compared.by_runs.get(self.two[::-1])  # type: ignore[arg-type]

    def of(self, run: str) -> Floats:
        """Give the scores of a run by the first measure: (T,), NaN where a topic does not count."""
        return self.scores.values[self.scores.run_names.index(run), 0]

    @cached_property
    def gains(self) -> Floats:
        """By how much the candidate is better than the baseline on each topic: (T,); NaN where unknown."""
        if self.baseline is None:
            return np.full(len(self.scores.query_ids), np.nan)
        return self.better * (self.of(self.candidate) - self.of(self.baseline))

    def alike(self, run: str, other: str) -> bool:
        """Whether two runs have the same score by the first measure on every topic that counts for either."""
        return bool(np.array_equal(self.of(run), self.of(other), equal_nan=True))

    def worst_topics(self, most: int) -> list[int]:
        """Give the positions of the topics with the worst scores of the candidate."""
        own = self.better * self.of(self.candidate)
        return [at for at in np.argsort(own, kind="stable").tolist() if np.isfinite(own[at])][:most]

    def query(self, query_id: str, most: int = 60) -> str:
        """Give the text of a query, shortened; nothing where it is not known."""
        return shortened(self.topics.text(query_id), most) if self.topics is not None else ""

    def rankings(self, *names: str) -> tuple[Qrels, list[Run], dict[str, Any]]:
        """Give qrels and runs as the dialect ranks them, and the policies; refuse where there are no rankings."""
        policies = self.scores.policies
        if policies.ties in {"expected", "bounds"}:
            raise InputError(f"ties={policies.ties!r} has no single order of documents")
        if policies.topics == "run":
            raise InputError("with topics='run' the runs need not have the same topics")
        if policies.depth is not None:
            raise InputError(f"depth={policies.depth} cuts the rankings")
        rules = dialect_of(self.policies.get("dialect"))
        runs = [self.runs[name] for name in names]
        runs = list(map(without_self, runs)) if policies.exclude_self else runs
        return rules.prepare_qrels(self.qrels), runs, {"ties": policies.ties, "precision": policies.precision}

    @cached_property
    def slicing(self) -> Slicing | None:
        """The slices that were asked for, or those by the attributes of the topics; None if there are none."""
        given: dict[str, Any] = {"attributes": self.attributes, "queries": self.topics}
        more = {"run": self.runs[self.two[0]], "documents": self.policies.get("documents")}
        known = read_topic_attributes(self.qrels, needed=self.by, **more, **given)
        names = self.by or _usable(known)
        if not names and self.topics is not None:
            known, names = read_topic_attributes(self.qrels, needed=(_LENGTH,), **given), (_LENGTH,)
        return slice_topics(known, names, query_ids=self.scores.query_ids) if names else None

    @cached_property
    def stages(self) -> Stages:
        """The loss of both runs, split into what was not found and what was ranked badly."""
        qrels, (run, *against), policies = self.rankings(*self.two[::-1])
        return stages(
            qrels,
            run,
            measure=self.lead,
            cutoff=DEPTH,
            baseline=against[0] if against else None,
            slicing=self.slicing,
            topics=self.scores.policies.topics,
            documents=self.policies.get("documents"),
            seed=self.seed,
            resamples=self.resamples,
            **policies,
        )


def _usable(known: Attributes) -> tuple[str, ...]:
    """Name the attributes of few values, of which each has some topics: the first ones of those."""
    names: list[str] = []
    for name in known.names:
        values = [value for value in known.column(name).to_pylist() if value is not None]
        distinct = len(set(values))
        text = not (values and isinstance(values[0], float))
        if text and 2 <= distinct <= _MOST_VALUES and distinct * 4 <= max(len(values), 8):
            names.append(name)
    return tuple(names[:_MOST_ATTRIBUTES])


@dataclass(frozen=True)
class ReportPart:
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


def quoted_by(section: str, blocks: Iterable[Block]) -> list[Chart | Table]:
    """Return the tables and charts of another answer, under names that no other section has."""
    return [
        quoted(block, f"{section}{block.name.title()}")
        if isinstance(block, Chart)
        else quoted(block, f"{section}_{block.name}", title=block.title)
        for block in blocks
        if isinstance(block, (Chart, Table))
    ]


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
