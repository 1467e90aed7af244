"""Selection of fusion weights on some topics, and their scores on other topics."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from judged.comparison import compare
from judged.comparison.fusion.fuse import ListPoints
from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, MeasureError
from judged.results import COUNT, NUMBER, TEXT, Answer, Chart, Column, Sentences, Table, number
from judged.scoring.evaluation.inputs import measures_of, runs_of
from judged.scoring.judging import judge
from judged.stats.selection import select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.comparison import Comparison
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats
    from judged.scoring.measures.base import Measure
    from judged.stats.selection import Selection

SELECTED_RUN, EQUAL_RUN = "selected weights", "equal weights"
_MAX_COMBINATIONS = 1001
_TOP_DOCUMENTS = 10  # rank in the fused list down to which relevant documents are counted


@dataclass(frozen=True, eq=False, repr=False)
class FusionWeights(Answer):
    """Fusion weights selected by a measure, and the cross-validated score of the selection.

    Attributes
    ----------
    lists : ListPoints
        Fused lists.
    measure : Measure
    grid : (C, L) float64
        Tested weights; each row sums to 1.
    scores : (C, T) float64
        Scores of the tested weights by topic.
    selection : Selection
        Selection by all topics, and without the topics of each fold.
    comparison : Comparison
        Comparison of each list and of equal weights with the cross-validated weights.
    """

    kind: ClassVar[str] = "fusion-weights"

    lists: ListPoints
    measure: Measure
    grid: Floats
    scores: Floats
    selection: Selection
    comparison: Comparison
    holders: Mapping[tuple[str, ...], int]  # number of relevant documents by the lists that contain them
    notes: tuple[Note, ...] = ()

    @property
    def weights(self) -> dict[str, float]:
        """Weights selected on all topics, by list."""
        return dict(zip(self.lists.names, self.grid[self.selection.best].tolist(), strict=True))

    def run(self, *, cutoff: int | None = None, name: str = "") -> Run:
        """Fuse with the weights selected on all topics."""
        return self.lists.run(list(self.weights.values()), cutoff=cutoff, name=name)

    @property
    def title(self) -> str:
        """Algorithm and names of the lists."""
        return f"Weights for {self.lists.algorithm} of {', '.join(self.lists.names)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Selected weights, their score, and its optimism."""
        selection = self.selection
        weights = ", ".join(f"{name} {weight:g}" for name, weight in self.weights.items())
        n, naive = selection.values.size, f"{selection.naive:.4f}"
        cross_validated = f"In cross-validation, the selected weights score {selection.honest:.4f} on held-out topics"
        return (
            f"The best weights over all {n} topics are {weights}, with {self.measure} {naive} on these topics.",
            f"{cross_validated}, so {naive} is optimistic by {selection.optimism:.4f}.",
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the measure, the algorithm, and the scores."""
        numbers = {"naive": self.selection.naive, "honest": self.selection.honest, "optimism": self.selection.optimism}
        return {"measure": self.measure, "algorithm": self.lists.algorithm, **numbers}

    def blocks(self) -> tuple[Block, ...]:
        """Return tables of the weights, the comparison, the holders of relevant documents, and the grid."""
        names, fold_weights = self.lists.names, self.grid[self.selection.picked]
        weights = Table(
            "weights",
            (
                Column("run", names, TEXT, "list"),
                Column("weight", list(self.weights.values()), number(2), "weight"),
                Column("low", fold_weights.min(axis=0).tolist(), number(2), "minimum over folds"),
                Column("high", fold_weights.max(axis=0).tolist(), number(2), "maximum over folds"),
            ),
            "Weights",
            note=f"{len(fold_weights)} folds of topics; the weights of a fold are selected on the other folds",
        )
        means = self.scores.mean(axis=1)
        columns = [
            Column(f"weight_{n}", self.grid[:, n - 1].tolist(), number(2), name) for n, name in enumerate(names, 1)
        ]
        grid_table = Table(
            "grid",
            (*columns, Column("score", means.tolist(), NUMBER, str(self.measure))),
            "Grid of weights",
            labels=len(names),
            folded=True,
        )
        holders_table = Table(
            "retrieved_by",
            (
                Column("lists", [", ".join(names) for names in self.holders], TEXT, "retrieved by"),
                Column("n", list(self.holders.values()), COUNT, "documents"),
            ),
            f"Relevant documents in the top {_TOP_DOCUMENTS} of the fused list",
        )
        title = f"{self.measure} by the weight of {names[0]}"
        charts = [Chart("by-weight", title, grid_table, self.sentences[0], kind="lines", x="weight_1", y="score")]
        tables = (*self.comparison.blocks(), holders_table, grid_table)
        return (Sentences(self.sentences), weights, *tables, *charts[: len(names) == 2])


def choose_weights(
    qrels: Any,
    runs: Any,
    measure: str | Measure = "nDCG@10",
    algorithm: str = "rrf",
    *,
    steps: int = 10,
    folds: int = 10,
    seed: int = 0,
    level: float = 0.95,
    **fusing: Any,
) -> FusionWeights:
    """Select fusion weights by a measure, and cross-validate the selection.

    The grid has all weights that are positive multiples of 1 / steps and sum to 1. Of weights with equal scores, those
    nearest to equal weights are selected.

    Parameters
    ----------
    qrels, runs, measure
        As in `evaluate`. The mean of the measure over topics is maximized.
    algorithm, **fusing
        As in `fuse`: rrf_k, normalize, missing, depth, ties.
    steps
        Resolution of the grid.
    folds, seed
        Of the cross-validation, as in `judged.stats.select`.
    level
        Confidence level of intervals.

    Raises
    ------
    InputError
        If input is invalid, there are too many combinations of weights, or fewer than two topics.
    MeasureError
        If the measure does not exist, or higher values are not better.

    Examples
    --------
    >>> qrels = {f"q{n}": {"a": 1} for n in range(20)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["a", "b", "c"], ["b", "c", "a"]))
    >>> result = choose_weights(qrels, {"good": good, "bad": bad}, "RR", "borda")
    >>> result.weights["good"] > 0.5, result.selection.optimism
    (True, 0.0)
    """
    (target,) = measures_of(measure)
    if target.properties.higher_is_better is not True:
        problem = f"higher values of the measure must be better, got {target}"
        raise MeasureError(f"{problem}. Fix: use another measure")
    judgments, inputs = Qrels.of(qrels), runs_of(runs)
    lists = ListPoints.of(inputs, algorithm, **fusing)
    grid = _weight_grid(len(inputs), steps)
    scores = np.stack([target.score(judge(judgments, lists.run(weights.tolist()))) for weights in grid])
    selection = select(scores, folds=folds, seed=seed)
    systems = {run.name: run for run in inputs} | {
        EQUAL_RUN: lists.run(),
        SELECTED_RUN: _cross_validated_run(judgments, lists, grid, selection),
    }
    comparison = compare(judgments, systems, target, baseline=SELECTED_RUN, alpha=1 - level, seed=seed)
    fused = lists.run(grid[selection.best].tolist())
    holders = _count_holders(judgments, lists, fused)
    return FusionWeights(lists, target, grid, scores, selection, comparison, holders, comparison.notes)


def _weight_grid(list_count: int, steps: int) -> Floats:
    """Return all weight combinations, ordered by distance from equal weights: (C, L)."""
    count = math.comb(steps - 1, list_count - 1) if steps >= list_count else 0
    if not 0 < count <= _MAX_COMBINATIONS:
        problem = f"steps={steps} must give 1 to {_MAX_COMBINATIONS} combinations of {list_count} weights, got {count}"
        fix = "use fewer steps" if count else f"set steps to at least {list_count}, the number of lists"
        raise InputError(problem, fix=fix)
    # stars and bars: the positions of the cuts divide `steps` units among the lists
    cuts = np.array(list(combinations(range(1, steps), list_count - 1)), dtype=np.float64).reshape(
        count, list_count - 1
    )
    limits = np.hstack([np.zeros((count, 1)), cuts, np.full((count, 1), steps)])
    grid = np.diff(limits, axis=1) / steps
    # rounding makes symmetric weights equally distant, so that the stable sort decides
    distance = np.round(((grid - 1 / list_count) ** 2).sum(axis=1), 12)
    return grid[np.argsort(distance, kind="stable")]


def _cross_validated_run(qrels: Qrels, lists: ListPoints, grid: Floats, selection: Selection) -> Run:
    """Return the run in which each topic is fused with the weights selected without its fold."""
    # the weights of a topic never depend on its own judgments: otherwise its score would be optimistic
    topics = np.array(judge(qrels, lists.run()).query_ids, dtype=object)
    tables: list[Any] = []
    for fold, row in enumerate(selection.picked.tolist()):
        table = lists.run(grid[row].tolist()).table
        fold_topics = pa.array(topics[selection.fold == fold].tolist(), pa.string())
        tables.append(table.filter(pc.is_in(table["query_id"], value_set=fold_topics)))
    return Run.of(pa.concat_tables(tables), name=SELECTED_RUN)


def _count_holders(qrels: Qrels, lists: ListPoints, fused: Run) -> dict[tuple[str, ...], int]:
    """Count the relevant top documents of the fused run by the lists that contain them."""
    judged = judge(qrels, fused)
    holders = {
        (lists.query_ids[topic], doc): tuple(compress(lists.names, mask))
        for topic, doc, mask in zip(lists.topic.tolist(), lists.docs.to_pylist(), lists.contains.tolist(), strict=True)
    }
    relevant = (judged.rank <= _TOP_DOCUMENTS) & (judged.grade > 0)
    rows = zip(judged.topic.tolist(), judged.doc, relevant.tolist(), strict=True)
    counts = Counter(holders[judged.query_ids[topic], doc] for topic, doc, is_relevant in rows if is_relevant)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
