"""`Scores`, the result of `evaluate`: a score for every topic, run and measure, with provenance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from judged.data.run import find_run_name
from judged.errors import InputError
from judged.results import Answer, Column
from judged.results import Table as AnswerTable
from judged.results.spelling import use_one_of
from judged.results.types import ReadOnly
from judged.scoring.evaluation.dialects import DIALECTS
from judged.scoring.evaluation.facts import (
    AggregateRange,
    Estimate,
    Policies,
    Provenance,
    QrelsFacts,
    RunFacts,
    TopicRanges,
)
from judged.scoring.evaluation.inputs import index_of_measure
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


# Users write `scores.compare()`, but a method in plain code would import from a higher layer, which import-linter
# forbids, and repeat a signature and a docstring. So the class holds the location of each such function. It is imported
# when the method is looked up, and `help(Scores.compare)` shows the function itself.
class LazyMethod:
    """A method that is a function in a higher layer, imported when it is used."""

    def __init__(self, module: str, function: str) -> None:
        self._location = module, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._qualname = f"{owner.__name__}.{name}"

    def __get__(self, scores: Scores | None, owner: type) -> Callable[..., Any]:
        module, name = self._location
        function = getattr(import_module(module), name)
        function.__qualname__ = self._qualname  # shown by help and in errors
        return function if scores is None else MethodType(function, scores)


class _LazyField:
    """A field that can be set to a function, which is called at the first access; empty by default."""

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
    """A score for every topic, run and measure, with the provenance of the numbers; the result of `evaluate`.

    Text, HTML and JSON are those of `summary` with its default options. The main table, and that of data frames, has
    every score.

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

    compare = LazyMethod("judged.comparison.compare", "comparison_of_scores")
    orders = LazyMethod("judged.comparison.orders", "orders")
    power = LazyMethod("judged.comparison.plans", "power_of_scores")
    curve = LazyMethod("judged.scoring.curves.curve", "curve_of_scores")
    by_slice = LazyMethod("judged.comparison.slicing.by_slice", "by_slice")
    compare_slices = LazyMethod("judged.comparison.slicing.compare_slices", "compare_slices")
    matrix = LazyMethod("judged.diagnosis.matrix.matrix", "matrix_of_scores")
    disagree = LazyMethod("judged.diagnosis.disagreement.disagree", "disagreement_of_scores")
    needs = LazyMethod("judged.diagnosis.needs.needs", "needs_of_scores")
    tradeoff = LazyMethod("judged.diagnosis.tradeoff.tradeoff", "tradeoff_of_scores")
    gate = LazyMethod("judged.diagnosis.gates.gate", "gate_of_scores")
    log_to = LazyMethod("judged.integrations.trackers", "log_scores")

    runs: tuple[RunFacts, ...]  # R
    measures: tuple[Measure, ...]  # M
    query_ids: tuple[str, ...]  # T: all topics that count for a run, in byte order
    # (R, M, T): NaN if a topic does not count for a run, or a measure leaves it out
    values: Floats
    counted: Bools  # (R, T): whether a topic counts for a run
    # policies, qrels, notes, versions: provenance
    policies: Policies
    qrels: QrelsFacts
    notes: tuple[Note, ...] = _LazyField()  # type: ignore[assignment]
    versions: dict[str, str] = field(default_factory=dict)
    ranges: tuple[TopicRanges, ...] = ()  # ranges of the scores, if they were requested
    queries: Mapping[str, str] | None = None  # texts of topics, shown with their scores

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "notes": self.notes}

    @property
    def run_names(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(run.name for run in self.runs)

    @property
    def measure_names(self) -> tuple[str, ...]:
        """Canonical names of the measures."""
        return tuple(map(str, self.measures))

    @property
    def provenance(self) -> Provenance:
        """Provenance of the numbers."""
        return Provenance(self.qrels, self.policies, self.runs, self.versions, self.notes)

    def rules(self, over: str = "") -> str:
        """Describe the topics of the numbers (or `over`, if set), and the rules of the evaluation."""
        if any(measure.properties.reads != "rankings" for measure in self.measures):
            topics = "topic" if len(self.query_ids) == 1 else "topics"
            return f"Over {over or f'the {len(self.query_ids)} {topics} of the answers'}"
        return self.policies.describe(len(self.query_ids), over)

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks of `summary`."""
        return self.summary().blocks()

    def to_dict(self) -> dict[str, Any]:
        """Return `summary` as plain Python values; use ``summary(per_topic=True)`` to include every score."""
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
        """Summarize the scores for a report.

        Parameters
        ----------
        ci, level, resamples, seed
            Options of intervals over topics, as for `estimates`.
        per_topic
            Whether every topic is shown, and JSON has all scores. Default False.

        Raises
        ------
        InputError
            If the options of the interval are invalid.
        """
        method = IntervalMethod(ci, level, resamples, seed)
        estimates = self.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
        provenance = replace(self.provenance, interval=method)
        return Summary(self, estimates, provenance, self.notes, per_topic)

    def over_topics(self, mask: Bools) -> Self:
        """Select topics by a mask: (T,) of true and false.

        Raises
        ------
        InputError
            If no topic is selected, or the mask has another length.
        """
        selected = np.asarray(mask, dtype=np.bool_)
        if selected.shape != (len(self.query_ids),):
            problem = f"the mask must have shape ({len(self.query_ids)},), got {selected.shape}"
            raise InputError(problem, fix="use one value per topic")
        if not selected.any():
            raise InputError("at least one topic must be selected", fix="use topics of the qrels")
        ranges = (
            replace(part, low=part.low[:, :, selected], high=part.high[:, :, selected], kind=part.kind[:, :, selected])
            for part in self.ranges
        )
        return replace(
            self,
            query_ids=tuple(np.array(self.query_ids, dtype=object)[selected].tolist()),
            values=self.values[:, :, selected],
            counted=self.counted[:, selected],
            ranges=tuple(ranges),
        )

    def join(self, *others: Self) -> Self:
        """Combine the runs of these and other scores, as if one call had scored them all.

        Parameters
        ----------
        others
            Scores with the same judgments, policies and measures.

        Raises
        ------
        InputError
            If judgments, policies, measures or topics differ, or two runs have the same name.

        Examples
        --------
        >>> from judged import evaluate
        >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
        >>> old = evaluate(qrels, {"old": {"q1": ["d1"], "q2": ["x", "d2"]}}, "RR")
        >>> new = evaluate(qrels, {"new": {"q1": ["d1"], "q2": ["d2"]}}, "RR")
        >>> old.join(new).aggregate()
        {'old': {'RR': 0.75}, 'new': {'RR': 1.0}}
        """
        from judged.scoring.evaluation.storage import join_scores

        return join_scores(self, *others)

    def aggregate(self) -> dict[str, dict[str, float]]:
        """Return one number per run and measure, by the aggregate of the measure."""
        table: dict[str, dict[str, float]] = {}
        for estimate in self.estimates(ci="none"):
            table.setdefault(estimate.run, {})[estimate.measure] = estimate.value
        return table

    def estimates(
        self, *, ci: IntervalName = "adjusted", level: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> tuple[Estimate, ...]:
        """Return every number with its confidence interval over topics, ordered by run.

        Arithmetic and geometric means have intervals, by `IntervalMethod`; ``adjusted`` uses the bounds that a measure
        declares.

        Raises
        ------
        InputError
            If the options of the interval are invalid.
        """
        method = IntervalMethod(ci, level, resamples, seed)
        flat = self.values.reshape(-1, len(self.query_ids))
        limits = self._limits(flat, method)
        rows = [(run, measure) for run in self.run_names for measure in self.measures]
        estimates = (
            _estimate(run, measure, scores[~np.isnan(scores)], bounds)
            for (run, measure), scores, bounds in zip(rows, flat, limits, strict=True)
        )
        if not self.ranges:
            return tuple(estimates)
        return tuple(replace(estimate, ranges=self._ranges_of(index)) for index, estimate in enumerate(estimates))

    def _ranges_of(self, index: int) -> tuple[AggregateRange, ...]:
        """Aggregate the ranges of one estimate over its topics."""
        from judged.scoring.evaluation.summary import aggregate_range

        run, measure_index = divmod(index, len(self.measures))
        kind = self.measures[measure_index].entry.aggregate
        scores = self.values[run, measure_index]
        return tuple(
            aggregate_range(ranges, (run, measure_index), scores, kind)
            for ranges in self.ranges
            if not np.isnan(ranges.low[run, measure_index]).all()
        )

    def _limits(self, flat: Floats, method: IntervalMethod) -> Floats:
        """Compute the interval of each row; for a geometric mean, from the logarithms of the scores."""
        kinds = np.array([measure.entry.aggregate for _ in self.runs for measure in self.measures])
        bounds = np.array([measure.properties.bounds for _ in self.runs for measure in self.measures])
        limits = np.full((len(flat), 2), np.nan)
        is_mean = kinds == "mean"
        limits[is_mean] = mean_intervals(flat[is_mean], method, bounds[is_mean])
        if len(geometric := np.flatnonzero(kinds == "geometric mean")):
            logs, ends = (np.stack([logarithms(row) for row in table[geometric]]) for table in (flat, bounds))
            limits[geometric] = np.exp(mean_intervals(logs, method, ends))
        return limits

    def interval_caption(self, method: IntervalMethod) -> str:
        """Describe the intervals for a caption; empty if there are none."""
        means = (measure for measure in self.measures if measure.entry.aggregate == "mean")
        unbounded = [str(measure) for measure in means if np.isnan(measure.properties.bounds).any()]
        if method.name != "adjusted" or not unbounded:
            return method.words
        return f"{method.words} ({', '.join(unbounded)}: adjusted only for skewness, because the measure has no bounds)"

    def value(self, measure: str | Measure, run: str | None = None) -> float:
        """Return the aggregate of one measure; `run` is required if there are several.

        A name is parsed as for `evaluate`: with a dialect, by the rules of the tool.

        Raises
        ------
        InputError
            If the table has no such run or measure.
        """
        position = self._position(run)
        rules = DIALECTS.get(
            self.policies.dialect, DIALECTS["judged"]
        )  # a custom dialect is not stored with the scores
        parsed = rules.measures(measure, self.qrels.grades)
        is_evaluated = len(parsed) == 1 and parsed[0] in self.measures
        row = index_of_measure(parsed[0] if is_evaluated else parse(measure), self.measures)
        scores = self.values[position, row]
        return _estimate("", self.measures[row], scores[~np.isnan(scores)], np.full(2, np.nan)).value

    def per_topic(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return every score as ``{run: {measure: {query_id: value}}}``."""
        return {
            run: {
                measure: {
                    query: value
                    for query, value, counts in zip(
                        self.query_ids, self.values[i, row].tolist(), self.counted[i].tolist(), strict=True
                    )
                    if counts
                }
                for row, measure in enumerate(self.measure_names)
            }
            for i, run in enumerate(self.run_names)
        }

    def table(self, name: str | None = None) -> AnswerTable:
        """Return a table by its name: ``results``, or every score for None.

        Raises
        ------
        InputError
            If there is no table with this name.
        """
        if name not in {None, "topics"}:
            return super().table(name)
        columns = self.to_arrow().to_pydict().items()
        return AnswerTable("topics", tuple(Column(name, values) for name, values in columns), labels=3, only="data")

    def to_arrow(self, table: str | None = None) -> Table:
        """Return every score as a long table: ``run, measure, query_id, value``; or the table with this name.

        If ranges were requested, ``ties_low, ties_high, ties_kind`` and the same for ``unjudged`` follow; then
        ``query``, the text of each topic, if texts were passed.
        """
        if table not in {None, "topics"}:
            return super().to_arrow(table)
        is_counted = np.repeat(self.counted[:, None, :], len(self.measures), axis=1).ravel()
        run, measure, topic = (index.ravel()[is_counted] for index in np.indices(self.values.shape))
        columns: dict[str, Any] = {
            "run": pa.array(self.run_names, pa.string()).take(pa.array(run)),
            "measure": pa.array(self.measure_names, pa.string()).take(pa.array(measure)),
            "query_id": pa.array(self.query_ids, pa.string()).take(pa.array(topic)),
            "value": self.values.ravel()[is_counted],
        }
        for ranges in self.ranges:
            parts = {"low": ranges.low, "high": ranges.high, "kind": ranges.kind}
            columns |= {f"{ranges.reason}_{name}": pa.array(part.ravel()[is_counted]) for name, part in parts.items()}
        if self.queries is not None:
            texts = [self.queries.get(query_id, "") for query_id in self.query_ids]
            columns["query"] = pa.array(texts, pa.string()).take(pa.array(topic))
        return pa.table(columns)

    def written(self, form: str, **options: Any) -> str | bytes:
        """Serialize to a format, as every answer; Parquet has all that `load` needs."""
        if form != "parquet":
            return super().written(form, **options)
        from judged.scoring.evaluation.storage import to_parquet  # most calls save nothing

        return to_parquet(self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read scores that `save` wrote as Parquet.

        Raises
        ------
        InputError
            If the file was not written by `save`.
        """
        from judged.scoring.evaluation.storage import load

        return load(cls, path)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the long table to any library that reads Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _position(self, run: str | None) -> int:
        if run is None and len(self.runs) == 1:
            return 0
        if run is None:
            raise InputError("`run` is required for scores of several runs", fix=use_one_of(self.run_names))
        return self.run_names.index(find_run_name(run, self.run_names))


def _estimate(run: str, measure: Measure, scores: Floats, bounds: Floats) -> Estimate:
    kind = measure.entry.aggregate
    value = aggregate(kind, scores)
    ci = None if np.isnan(bounds).any() else (float(bounds[0]), float(bounds[1]))
    return Estimate(run, str(measure), kind, value, ci, len(scores))
