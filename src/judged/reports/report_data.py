"""Input of the sections of a report: scores, tests, files, and the two runs that are compared in detail."""

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
"""Depth of the candidates in the section about stages."""
_MIN_DIFFERENT_SHARE = 0.25  # of the topics: two runs that differ on fewer are variants of one system
_LENGTH_ATTRIBUTE = "length"  # of queries: the slicing attribute without any other attribute
_MAX_VALUES = 12  # of an attribute that is used for slicing without a request
_MAX_ATTRIBUTES = 3

EmbeddedBlock = TypeVar("EmbeddedBlock", Chart, Table)


@dataclass(frozen=True, eq=False)
class ReportData:
    """Input of a report, and properties that several sections share."""

    qrels: Qrels
    runs: Mapping[str, Run]  # in the order of the input
    scores: Scores
    comparison: Comparison | None  # None for one run
    topics: Topics | None  # texts of the queries
    attributes: Attributes | None
    texts: Any = field(repr=False)  # texts of documents, in any form that `diff` accepts
    by: tuple[str, ...]  # attributes to slice by
    seed: int  # of the tests
    resamples: int  # of the tests
    policies: Mapping[str, Any]  # of `evaluate`
    class_measures: Any = None  # measures of single slices, as for `Slicing.with_measures`

    @property
    def main_measure(self) -> Measure:
        """First measure, by which runs are ranked and topics are selected."""
        return self.scores.measures[0]

    @property
    def direction(self) -> int:
        """1 if a higher score of the first measure is better, -1 if a lower score is."""
        return -1 if self.main_measure.properties.higher_is_better is False else 1

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Estimates of the first measure, in the order of the runs."""
        if self.comparison:
            return self.comparison.measures[0].estimates
        measure = str(self.main_measure)
        return tuple(row for row in self.scores.estimates(seed=self.seed) if row.measure == measure)

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """Names of the runs from best to worst by the first measure."""
        order = best_first_order([row.value for row in self.estimates], lower_is_better=self.direction < 0)
        return tuple(self.scores.run_names[i] for i in order)

    @property
    def requested_baseline(self) -> str | None:
        """Baseline of the comparison; None without one."""
        return self.comparison.choices.baseline if self.comparison else None

    @cached_property
    def candidate(self) -> str:
        """Run that is analyzed in detail: the best whose scores differ from those of the requested baseline."""
        baseline = self.requested_baseline
        # A copy of the baseline would have no differences to analyze.
        others = [name for name in self.ranked if name != baseline or len(self.ranked) == 1]
        different = (name for name in others if baseline is None or not self.has_equal_scores(name, baseline))
        return next(different, others[0])

    @cached_property
    def baseline(self) -> str | None:
        """Run that the candidate is compared with: the requested one, or the next best that is not a variant."""
        if self.requested_baseline is not None or len(self.ranked) == 1:
            return self.requested_baseline
        best, *others = self.ranked
        shares = {name: np.mean(self.run_scores(name) != self.run_scores(best)) for name in others}
        return next((name for name, share in shares.items() if share >= _MIN_DIFFERENT_SHARE), others[0])

    @property
    def caution(self) -> str:
        """Note on the bias from selecting the candidate on these topics; empty for one or two runs."""
        if len(self.ranked) < 3:
            return ""
        return (
            f"{self.candidate} was selected because {self.candidate} has the best score on these topics. Tests by"
            " slice and by stage do not correct for this selection, so the differences are biased in favor of"
            f" {self.candidate}."
        )

    @property
    def compared_names(self) -> tuple[str, ...]:
        """Names of the baseline and the candidate; of the candidate only if there is one run."""
        return (self.candidate,) if self.baseline is None else (self.baseline, self.candidate)

    @property
    def tested_measure(self) -> MeasureComparison | None:
        """Tests of the first measure; None without tests."""
        main_measure = self.comparison.measures[0] if self.comparison else None
        return main_measure if main_measure and main_measure.pairs else None

    def find_pair(self, comparison: MeasureComparison) -> Pair | None:
        """Return the test of the candidate against the baseline by a measure; None if they were not tested."""
        names = self.compared_names
        return comparison.by_runs.get(names[:2]) or comparison.by_runs.get(names[::-1])  # type: ignore[arg-type]

    def run_scores(self, run: str) -> Floats:
        """Return the scores of a run by the first measure: (T,), NaN if a topic has no score."""
        return self.scores.values[self.scores.run_names.index(run), 0]

    @cached_property
    def gains(self) -> Floats:
        """Improvement of the candidate over the baseline on each topic: (T,); NaN if unknown."""
        if self.baseline is None:
            return np.full(len(self.scores.query_ids), np.nan)
        return self.direction * (self.run_scores(self.candidate) - self.run_scores(self.baseline))

    def has_equal_scores(self, run: str, other: str) -> bool:
        """Whether two runs have the same score by the first measure on each topic."""
        return bool(np.array_equal(self.run_scores(run), self.run_scores(other), equal_nan=True))

    def worst_topics(self, limit: int) -> list[int]:
        """Return the indices of the topics with the worst scores of the candidate."""
        # A stable sort keeps the order of topics for equal scores, so reports are reproducible.
        scores = self.direction * self.run_scores(self.candidate)
        return [i for i in np.argsort(scores, kind="stable").tolist() if np.isfinite(scores[i])][:limit]

    def query_text(self, query_id: str, max_length: int = 60) -> str:
        """Return the shortened text of a query; empty if it is unknown."""
        return shorten_line(self.topics.text(query_id), max_length) if self.topics is not None else ""

    def rankings(self, *names: str) -> tuple[Qrels, list[Run], dict[str, Any]]:
        """Return qrels and runs under the rules of the dialect, and the policies for further analyses.

        Raises
        ------
        InputError
            If the policies do not define one complete ranking of each topic.
        """
        policies = self.scores.policies
        if policies.ties in {"expected", "bounds"}:
            raise InputError(f"ties={policies.ties!r} does not define one order of documents for each topic")
        if policies.topics == "run":
            raise InputError("topics='run' scores each run on its own topics, so the topics of the runs can differ")
        if policies.depth is not None:
            raise InputError(f"depth={policies.depth} truncates the rankings")
        rules = dialect_of(self.policies.get("dialect"))
        runs = [self.runs[name] for name in names]
        runs = list(map(without_self, runs)) if policies.exclude_self else runs
        return rules.prepare_qrels(self.qrels), runs, {"ties": policies.ties, "precision": policies.precision}

    @cached_property
    def slicing(self) -> Slicing | None:
        """Slices by the requested attributes, or by those of the topics; None without attributes."""
        files: dict[str, Any] = {"attributes": self.attributes, "queries": self.topics}
        run, documents = self.runs[self.compared_names[0]], self.policies.get("documents")
        attributes = read_topic_attributes(self.qrels, needed=self.by, run=run, documents=documents, **files)
        names = self.by or _sliceable_attributes(attributes)
        if not names and self.topics is not None:
            names = (_LENGTH_ATTRIBUTE,)
            attributes = read_topic_attributes(self.qrels, needed=names, **files)
        return slice_topics(attributes, names, query_ids=self.scores.query_ids) if names else None

    @cached_property
    def classes(self) -> Slicing | None:
        """The same slices with their own measures, else the first measure; None if no slice has its own."""
        if self.class_measures is None:
            return None
        if self.slicing is None:
            raise InputError("the measures of classes require a slicing attribute", fix="set `by` (--by NAME)")
        return self.slicing.with_measures(self.class_measures, str(self.main_measure))

    @cached_property
    def stages(self) -> Stages:
        """Losses of both runs by missing candidates and by ranking."""
        qrels, (run, *baselines), policies = self.rankings(*self.compared_names[::-1])
        return stages(
            qrels,
            run,
            measure=self.main_measure,
            cutoff=DEPTH,
            baseline=baselines[0] if baselines else None,
            slicing=self.slicing,
            topics=self.scores.policies.topics,
            documents=self.policies.get("documents"),
            seed=self.seed,
            resamples=self.resamples,
            **policies,
        )


def _sliceable_attributes(attributes: Attributes) -> tuple[str, ...]:
    """Return the first text attributes with few values, and with several topics per value."""
    names: list[str] = []
    for name in attributes.names:
        values = [value for value in attributes.column(name).to_pylist() if value is not None]
        distinct = len(set(values))
        is_text = not (values and isinstance(values[0], float))
        # On average at least four topics per value; very small collections may have two values.
        if is_text and 2 <= distinct <= _MAX_VALUES and distinct * 4 <= max(len(values), 8):
            names.append(name)
    return tuple(names[:_MAX_ATTRIBUTES])


@dataclass(frozen=True)
class ReportPart:
    """Section of a report with the results and sentences that it contributes."""

    section: Section
    results: dict[str, Any] = field(default_factory=dict)  # results by name, each with a `to_dict`
    headline: str = ""  # sentence for the summary; may be empty
    warnings: tuple[str, ...] = ()


def embed_block(block: EmbeddedBlock, name: str, **changes: Any) -> EmbeddedBlock:
    """Copy a table or chart of another answer into a report, under a new name; in JSON it is only in that answer."""
    if isinstance(block, Chart):
        return replace(block, name=name, table=embed_block(block.table, name), folded=False, **changes)
    return replace(block, name=name, **{"only": "people", "folded": False, "title": "", **changes})


def embed_blocks(section: str, blocks: Iterable[Block]) -> list[Chart | Table]:
    """Copy the tables and charts of another answer into a section, under unique names."""
    return [
        embed_block(block, f"{section}{block.name.title()}")
        if isinstance(block, Chart)
        else embed_block(block, f"{section}_{block.name}", title=block.title)
        for block in blocks
        if isinstance(block, (Chart, Table))
    ]


def shorten_line(text: str, max_length: int) -> str:
    """Shorten a text to at most `max_length` characters on one line.

    >>> shorten_line("one  two three", 9)
    'one two…'
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= max_length else flat[: max_length - 1].rstrip() + "…"


def join_names(names: Sequence[str], limit: int = 5) -> str:
    """Join up to `limit` names, with the number of others.

    >>> join_names(["a"]), join_names(["a", "b"]), join_names(["a", "b", "c", "d"], 2)
    ('a', 'a and b', 'a, b and 2 others')
    """
    if len(names) > limit:
        others = len(names) - limit
        return f"{', '.join(names[:limit])} and {counted(others, 'other')}"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
