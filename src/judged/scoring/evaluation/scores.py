"""Scores: what `evaluate` returns, a table of topics, runs and measures with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from judged.data.run import run_named
from judged.errors import InputError
from judged.results import Answer, Column
from judged.results import Table as AnswerTable
from judged.results.types import ReadOnly
from judged.scoring.evaluation.dialects import DIALECTS
from judged.scoring.evaluation.facts import Estimate, Policies, Provenance, QrelsFacts, Reach, RunFacts, TopicRanges
from judged.scoring.evaluation.inputs import place_of
from judged.scoring.evaluation.summary import Summary
from judged.scoring.measures.aggregates import aggregate, logarithms
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import parse
from judged.stats.interval import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Bools, Floats, Table
    from judged.stats.interval import IntervalName


# Users write `scores.compare()`, and packages above import `Scores`: a method in plain code would import upwards, which
# import-linter forbids, and repeat a signature and a docstring. So the class holds the place of each such function,
# which is imported when the method is looked up, and `help(Scores.compare)` shows the function itself.
class FromAbove:
    """A method that is a function of scores in a layer above: found by its name, so that nothing here imports it."""

    def __init__(self, module: str, function: str) -> None:
        self._home = module, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._called = f"{owner.__name__}.{name}"

    def __get__(self, scores: Scores | None, owner: type) -> Callable[..., Any]:
        module, name = self._home
        function = getattr(import_module(module), name)
        function.__qualname__ = self._called  # what help and errors call it
        return function if scores is None else MethodType(function, scores)


class _WhenRead:
    """A field that may be given as a function, which is called when someone reads it; empty where it is not given."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, scores: Scores | None, owner: type) -> Any:
        if scores is None:
            return ()
        if callable(value := vars(scores)[self._name]):
            value = vars(scores)[self._name] = value()
        return value

    def __set__(self, scores: Scores, value: Any) -> None:
        vars(scores)[self._name] = value


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Answer, ReadOnly):
    """What `evaluate` returns: a score for every topic, run and measure, with what the numbers rest on.

    Its forms are those of `summary`, whose options they leave as they are; its main table, and that of data frames,
    holds every score.

    Examples
    --------
    >>> from judged import evaluate
    >>> scores = evaluate({"q1": {"d1": 1}, "q2": {"d2": 1}},
    ...                   {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}}, ["AP", "P@1"])
    >>> scores.aggregate()
    {'run': {'AP': 0.75, 'P@1': 0.5}}
    >>> scores.per_topic()["run"]["AP"]
    {'q1': 1.0, 'q2': 0.5}
    """

    kind: ClassVar[str] = "scores"
    main: ClassVar[str] = "topics"

    compare = FromAbove("judged.comparison.compare", "comparison_of_scores")
    orders = FromAbove("judged.comparison.orders", "orders")
    power = FromAbove("judged.comparison.plans", "power_of_scores")
    curve = FromAbove("judged.scoring.curves.curve", "curve_of_scores")
    by_slice = FromAbove("judged.comparison.slicing.by_slice", "by_slice")
    compare_slices = FromAbove("judged.comparison.slicing.compare_slices", "compare_slices")
    matrix = FromAbove("judged.diagnosis.matrix.matrix", "matrix_of_scores")
    disagree = FromAbove("judged.diagnosis.disagreement.disagree", "disagreement_of_scores")
    needs = FromAbove("judged.diagnosis.needs.needs", "needs_of_scores")
    tradeoff = FromAbove("judged.diagnosis.tradeoff.tradeoff", "tradeoff_of_scores")
    gate = FromAbove("judged.diagnosis.gates.gate", "gate_of_scores")

    runs: tuple[RunFacts, ...]  # R
    measures: tuple[Measure, ...]  # M
    query_ids: tuple[str, ...]  # T: all topics that count for some run, in byte order
    # (R, M, T): NaN where a topic does not count for a run, or a measure leaves it out
    values: Floats
    counted: Bools  # (R, T): whether a topic counts for a run
    policies: Policies  # what the numbers rest on
    qrels: QrelsFacts  # what the numbers rest on
    notes: tuple[Note, ...] = _WhenRead()  # type: ignore[assignment]
    versions: dict[str, str] = field(default_factory=dict)  # what the numbers rest on
    ranges: tuple[TopicRanges, ...] = ()  # how far the scores could move, where that was asked for
    queries: Mapping[str, str] | None = None  # the texts of topics, written beside their scores

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "notes": self.notes}

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of the runs."""
        return tuple(run.name for run in self.runs)

    @property
    def measure_names(self) -> tuple[str, ...]:
        """The canonical names of the measures."""
        return tuple(map(str, self.measures))

    @property
    def provenance(self) -> Provenance:
        """What the numbers rest on."""
        return Provenance(self.qrels, self.policies, self.runs, self.versions, self.notes)

    def rules(self, over: str = "") -> str:
        """Say over how many topics the numbers are, or over what, and by which rules."""
        if any(measure.properties.reads_answers for measure in self.measures):
            return f"Over {over or f'the {len(self.query_ids)} topics of the answers'}"
        return self.policies.words(len(self.query_ids), over)

    def blocks(self) -> tuple[Block, ...]:
        """Give the blocks of `summary`."""
        return self.summary().blocks()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON; every score only by ``summary(per_topic=True)``."""
        return self.summary().to_dict()

    def summary(
        self,
        *,
        ci: IntervalName = "adjusted",
        level: float = 0.95,
        resamples: int = 2000,
        seed: int = 0,
        per_topic: bool = False,
    ) -> Summary:
        """Choose how the numbers are reported.

        Parameters
        ----------
        ci, level, resamples, seed
            How intervals over topics are made, as for `estimates`.
        per_topic
            Whether every topic is shown, and JSON has all scores.

        Raises
        ------
        InputError
            If the interval's options make no sense.
        """
        method = IntervalMethod(ci, level, resamples, seed)
        estimates = self.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
        rests = replace(self.provenance, interval=method)
        return Summary(self, estimates, rests, self.notes, per_topic)

    def over_topics(self, mask: Bools) -> Self:
        """Give the same scores over some topics: (T,) of true and false.

        Raises
        ------
        InputError
            If no topic is left, or the mask is of another length.
        """
        chosen = np.asarray(mask, dtype=np.bool_)
        if chosen.shape != (len(self.query_ids),):
            raise InputError(
                f"a mask of shape {chosen.shape} for {len(self.query_ids)} topics", fix="one value per topic"
            )
        if not chosen.any():
            raise InputError("no topic is left", fix="choose some that are in the qrels")
        return replace(
            self,
            query_ids=tuple(name for name, kept in zip(self.query_ids, chosen.tolist(), strict=True) if kept),
            values=self.values[:, :, chosen],
            counted=self.counted[:, chosen],
            ranges=tuple(
                replace(span, low=span.low[:, :, chosen], high=span.high[:, :, chosen], kind=span.kind[:, :, chosen])
                for span in self.ranges
            ),
        )

    def join(self, *others: Self) -> Self:
        """Put the runs of other scores beside those of these, as if one call had scored them all.

        Parameters
        ----------
        others
            Scores by the same judgments, policies and measures.

        Raises
        ------
        InputError
            If judgments, policies, measures or topics differ, or two runs have one name; it says which.

        Examples
        --------
        >>> from judged import evaluate
        >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
        >>> old = evaluate(qrels, {"old": {"q1": ["d1"], "q2": ["x", "d2"]}}, "RR")
        >>> new = evaluate(qrels, {"new": {"q1": ["d1"], "q2": ["d2"]}}, "RR")
        >>> old.join(new).aggregate()
        {'old': {'RR': 0.75}, 'new': {'RR': 1.0}}
        """
        from judged.scoring.evaluation.storage import joined

        return joined(self, *others)

    def aggregate(self) -> dict[str, dict[str, float]]:
        """Give one number per run and measure, each by the measure's own aggregate."""
        table: dict[str, dict[str, float]] = {}
        for estimate in self.estimates(ci="none"):
            table.setdefault(estimate.run, {})[estimate.measure] = estimate.value
        return table

    def estimates(
        self, *, ci: IntervalName = "adjusted", level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> tuple[Estimate, ...]:
        """Give every number with its interval over topics, run by run.

        Intervals are made for means, arithmetic and geometric, as `IntervalMethod` says; ``adjusted`` knows the bounds
        that a measure declares.

        Raises
        ------
        InputError
            If the interval's options make no sense.
        """
        method = IntervalMethod(ci, level, resamples, seed)
        flat = self.values.reshape(-1, len(self.query_ids))
        limits = self._limits(flat, method)
        rows = [(run, m) for run in self.run_names for m in self.measures]
        made = (
            _estimate(run, m, scores[~np.isnan(scores)], bounds)
            for (run, m), scores, bounds in zip(rows, flat, limits, strict=True)
        )
        return (
            tuple(replace(estimate, reaches=self._reaches(at)) for at, estimate in enumerate(made))
            if self.ranges
            else tuple(made)
        )

    def _reaches(self, at: int) -> tuple[Reach, ...]:
        """Aggregate the ranges of one run and measure, counted through, over its topics."""
        from judged.scoring.evaluation.summary import reach

        run, row = divmod(at, len(self.measures))
        kind = self.measures[row].entry.aggregate
        scores = self.values[run, row]
        return tuple(
            reach(span, (run, row), scores, kind) for span in self.ranges if not np.isnan(span.low[run, row]).all()
        )

    def _limits(self, flat: Floats, method: IntervalMethod) -> Floats:
        """Give the interval of each row; that of a geometric mean is made of the scores' logarithms."""
        kinds = np.array([m.entry.aggregate for _ in self.runs for m in self.measures])
        bounds = np.array([m.properties.bounds for _ in self.runs for m in self.measures])
        limits = np.full((len(flat), 2), np.nan)
        mean = kinds == "mean"
        limits[mean] = mean_intervals(flat[mean], method, bounds[mean])
        if len(geometric := np.flatnonzero(kinds == "geometric mean")):
            logs, ends = (np.stack([logarithms(row) for row in table[geometric]]) for table in (flat, bounds))
            limits[geometric] = np.exp(mean_intervals(logs, method, ends))
        return limits

    def interval_words(self, method: IntervalMethod) -> str:
        """Say what the intervals beside the numbers are: for captions; empty where there are none."""
        free = [str(m) for m in self.measures if m.entry.aggregate == "mean" and np.isnan(m.properties.bounds).any()]
        if method.name != "adjusted" or not free:
            return method.words
        return f"{method.words} ({', '.join(free)}: for skewness alone, as there are no bounds)"

    def value(self, measure: str | Measure, run: str | None = None) -> float:
        """Give the aggregate of one measure; the run may be left out where there is only one.

        A name is read as it was for `evaluate`: under a dialect, as the tool means it.

        Raises
        ------
        InputError
            If there is no such run or measure in the table.
        """
        at = self._position(run)
        rules = DIALECTS.get(self.policies.dialect, DIALECTS["judged"])  # one of the caller's own is not known here
        read = rules.measures(measure, self.qrels.grades)
        known = len(read) == 1 and read[0] in self.measures
        row = place_of(read[0] if known else parse(measure), self.measures)
        scores = self.values[at, row]
        return _estimate("", self.measures[row], scores[~np.isnan(scores)], np.full(2, np.nan)).value

    def per_topic(self) -> dict[str, dict[str, dict[str, float]]]:
        """Give every score as ``{run: {measure: {query_id: value}}}``."""
        return {
            run: {
                measure: {
                    query: value
                    for query, value, counts in zip(
                        self.query_ids, self.values[r, m].tolist(), self.counted[r].tolist(), strict=True
                    )
                    if counts
                }
                for m, measure in enumerate(self.measure_names)
            }
            for r, run in enumerate(self.run_names)
        }

    def table(self, name: str | None = None) -> AnswerTable:
        """Give a table by its name: ``results``, or every score for None.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        if name not in {None, "topics"}:
            return super().table(name)
        columns = self.to_arrow().to_pydict().items()
        return AnswerTable("topics", tuple(Column(name, values) for name, values in columns), labels=3, only="data")

    def to_arrow(self, table: str | None = None) -> Table:
        """Give every score as a long table: ``run, measure, query_id, value``; or the table of this name.

        Where it was asked how far scores could move, ``ties_low, ties_high, ties_kind`` and the same for
        ``unjudged`` follow; then ``query``, the text of each topic, where texts are known.
        """
        if table not in {None, "topics"}:
            return super().to_arrow(table)
        keep = np.repeat(self.counted[:, None, :], len(self.measures), axis=1).ravel()
        run, measure, topic = (index.ravel()[keep] for index in np.indices(self.values.shape))
        columns: dict[str, Any] = {
            "run": pa.array(self.run_names, pa.string()).take(pa.array(run)),
            "measure": pa.array(self.measure_names, pa.string()).take(pa.array(measure)),
            "query_id": pa.array(self.query_ids, pa.string()).take(pa.array(topic)),
            "value": self.values.ravel()[keep],
        }
        for span in self.ranges:
            parts = {"low": span.low, "high": span.high, "kind": span.kind}
            columns |= {f"{span.reason}_{name}": pa.array(part.ravel()[keep]) for name, part in parts.items()}
        if self.queries is not None:
            texts = [self.queries.get(query_id, "") for query_id in self.query_ids]
            columns["query"] = pa.array(texts, pa.string()).take(pa.array(topic))
        return pa.table(columns)

    def written(self, form: str, **options: Any) -> str | bytes:
        """Write in one of the forms, as every answer; Parquet holds all that `load` needs."""
        if form != "parquet":
            return super().written(form, **options)
        from judged.scoring.evaluation.storage import parquet_of  # most calls save nothing

        return parquet_of(self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote as Parquet.

        Raises
        ------
        InputError
            If the file is not one of ours.
        """
        from judged.scoring.evaluation.storage import load

        return load(cls, path)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the long table to any library that reads Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _position(self, run: str | None) -> int:
        if run is None and len(self.runs) == 1:
            return 0
        if run is None:
            raise InputError("there are several runs", fix=f"name one of {', '.join(self.run_names)}")
        return self.run_names.index(run_named(run, self.run_names))


def _estimate(run: str, measure: Measure, scores: Floats, bounds: Floats) -> Estimate:
    kind = measure.entry.aggregate
    value = aggregate(kind, scores)
    ci = None if np.isnan(bounds).any() else (float(bounds[0]), float(bounds[1]))
    return Estimate(run, str(measure), kind, value, ci, len(scores))
