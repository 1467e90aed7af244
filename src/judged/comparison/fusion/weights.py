"""Which weights lists deserve: chosen by topics, and scored on topics that did not choose."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from judged.comparison import compare
from judged.comparison.fusion.fuse import Lists
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

CHOSEN, EQUAL = "chosen weights", "equal weights"
_MOST = 1001  # combinations of weights
_HELD = 10  # first documents of the fused list that are looked for in the others


@dataclass(frozen=True, eq=False, repr=False)
class FusionWeights(Answer):
    """Weights of lists for one measure, and what the procedure that chose them scores.

    Attributes
    ----------
    lists : Lists
        What was fused.
    measure : Measure
    grid : (C, L) float64
        The weights that were tried; those of a row add up to 1.
    scores : (C, T) float64
        Their scores by topic.
    selection : Selection
        The choice by all topics, and by those outside each fold.
    comparison : Comparison
        Of each list, of equal weights, and of the weights that other topics chose, against these.
    """

    kind: ClassVar[str] = "fusion-weights"

    lists: Lists
    measure: Measure
    grid: Floats
    scores: Floats
    selection: Selection
    comparison: Comparison
    holders: Mapping[tuple[str, ...], int]
    notes: tuple[Note, ...] = ()

    @property
    def weights(self) -> dict[str, float]:
        """The weights that all topics choose, by list."""
        return dict(zip(self.lists.names, self.grid[self.selection.best].tolist(), strict=True))

    def run(self, *, cutoff: int | None = None, name: str = "") -> Run:
        """Fuse with the weights that all topics choose."""
        return self.lists.run(list(self.weights.values()), cutoff=cutoff, name=name)

    @property
    def title(self) -> str:
        """What was weighed."""
        return f"Weights for {self.lists.algorithm} of {', '.join(self.lists.names)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was chosen, what it scores, and by how much the naive number is too high."""
        chosen = self.selection
        weights = ", ".join(f"{name} {weight:g}" for name, weight in self.weights.items())
        n, naive = chosen.values.size, f"{chosen.naive:.4f}"
        honest = f"Cross-validated, choosing weights in this way scores {chosen.honest:.4f}"
        return (
            f"The best weights over all {n} topics are {weights}, with {self.measure} {naive} on these topics.",
            f"{honest}: the first number has an optimism of {chosen.optimism:.4f}.",
        )

    def facts(self) -> Mapping[str, Any]:
        """Give what was chosen by what."""
        numbers = {"naive": self.selection.naive, "honest": self.selection.honest, "optimism": self.selection.optimism}
        return {"measure": self.measure, "algorithm": self.lists.algorithm, **numbers}

    def blocks(self) -> tuple[Block, ...]:
        """Give the weights, the comparison, the scores of all weights, and which lists hold what is relevant."""
        names, folds = self.lists.names, self.grid[self.selection.picked]
        weights = Table(
            "weights",
            (
                Column("run", names, TEXT, "list"),
                Column("weight", list(self.weights.values()), number(2), "weight"),
                Column("low", folds.min(axis=0).tolist(), number(2), "lowest of a fold"),
                Column("high", folds.max(axis=0).tolist(), number(2), "highest of a fold"),
            ),
            "Weights",
            note=f"{len(folds)} folds of topics; each chose without its own",
        )
        means = self.scores.mean(axis=1)
        columns = [
            Column(f"weight_{n}", self.grid[:, n - 1].tolist(), number(2), name) for n, name in enumerate(names, 1)
        ]
        tried = Table(
            "grid",
            (*columns, Column("score", means.tolist(), NUMBER, str(self.measure))),
            "Weights that were tried",
            labels=len(names),
            folded=True,
        )
        held = Table(
            "holders",
            (
                Column("lists", [", ".join(held) for held in self.holders], TEXT, "held by"),
                Column("n", list(self.holders.values()), COUNT, "documents"),
            ),
            f"Relevant documents among the first {_HELD} of the fused list",
        )
        title = f"{self.measure} by the weight of {names[0]}"
        drawn = [Chart("by-weight", title, tried, self.sentences[0], kind="lines", x="weight_1", y="score")]
        return (Sentences(self.sentences), weights, *self.comparison.blocks(), held, tried, *drawn[: len(names) == 2])


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
    """Choose the weights of a fusion by a measure, with cross-validation that shows what the choice is worth.

    All weights that are multiples of 1/steps and add up to 1 are tried, every list with one at least; of weights that
    score the same those nearest to equal ones count.

    Parameters
    ----------
    qrels, runs, measure
        As for `evaluate`; the measure's mean over topics decides.
    algorithm, **fusing
        As for `fuse`: rrf_k, normalise, missing, depth, ties.
    steps
        Parts into which the weight of 1 is cut.
    folds, seed
        Of the cross-validation, as for `judged.stats.select`.
    level
        Of the intervals.

    Raises
    ------
    InputError
        If something cannot be read or fused, there are too many combinations of weights, or fewer than two topics.
    MeasureError
        If there is no such measure, or it is better where it is lower.

    Examples
    --------
    >>> qrels = {f"q{n}": {"a": 1} for n in range(20)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["a", "b", "c"], ["b", "c", "a"]))
    >>> found = choose_weights(qrels, {"good": good, "bad": bad}, "RR", "borda")
    >>> found.weights["good"] > 0.5, found.selection.optimism
    (True, 0.0)
    """
    (chosen,) = measures_of(measure)
    if chosen.properties.higher_is_better is not True:
        raise MeasureError(f"{chosen} is not better where it is higher: choose by another measure")
    judgments, given = Qrels.of(qrels), runs_of(runs)
    lists = Lists.of(given, algorithm, **fusing)
    grid = _grid(len(given), steps)
    scores = np.stack([chosen.score(judge(judgments, lists.run(weights.tolist()))) for weights in grid])
    selection = select(scores, folds=folds, seed=seed)
    systems = {run.name: run for run in given} | {
        EQUAL: lists.run(),
        CHOSEN: _elsewhere(judgments, lists, grid, selection),
    }
    compared = compare(judgments, systems, chosen, baseline=CHOSEN, alpha=1 - level, seed=seed)
    final = lists.run(grid[selection.best].tolist())
    return FusionWeights(
        lists, chosen, grid, scores, selection, compared, _holders(judgments, lists, final), compared.notes
    )


def _grid(lists: int, steps: int) -> Floats:
    """Give all weights from nearest to equal ones on, (C, L): the parts of a whole between bars."""
    count = math.comb(steps - 1, lists - 1) if steps >= lists else 0
    if not 0 < count <= _MOST:
        problem = f"{steps} steps give {count} combinations of {lists} weights"
        raise InputError(problem, fix=f"give at least as many steps as lists, and {_MOST} combinations at most")
    bars = np.array(list(combinations(range(1, steps), lists - 1)), dtype=np.float64).reshape(count, lists - 1)
    ends = np.hstack([np.zeros((count, 1)), bars, np.full((count, 1), steps)])
    grid = np.diff(ends, axis=1) / steps
    distance = np.round(((grid - 1 / lists) ** 2).sum(axis=1), 12)
    return grid[np.argsort(distance, kind="stable")]


def _elsewhere(qrels: Qrels, lists: Lists, grid: Floats, selection: Selection) -> Run:
    """Give the run in which each topic is fused with the weights that the topics of other folds choose."""
    topics = np.array(judge(qrels, lists.run()).query_ids, dtype=object)
    parts: list[Any] = []
    for fold, which in enumerate(selection.picked.tolist()):
        table = lists.run(grid[which].tolist()).table
        inside = pa.array(topics[selection.fold == fold].tolist(), pa.string())
        parts.append(table.filter(pc.is_in(table["query_id"], value_set=inside)))
    return Run.of(pa.concat_tables(parts), name=CHOSEN)


def _holders(qrels: Qrels, lists: Lists, fused: Run) -> dict[tuple[str, ...], int]:
    """Count the relevant documents among the first of the fused list by the lists that hold them."""
    judged = judge(qrels, fused)
    held = {
        (lists.query_ids[topic], doc): tuple(name for name, has in zip(lists.names, row, strict=True) if has)
        for topic, doc, row in zip(lists.topic.tolist(), lists.docs.to_pylist(), lists.held.tolist(), strict=True)
    }
    first = (judged.rank <= _HELD) & (judged.grade > 0)
    rows = zip(judged.topic.tolist(), judged.doc, first.tolist(), strict=True)
    counts = Counter(held[judged.query_ids[topic], doc] for topic, doc, seen in rows if seen)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
