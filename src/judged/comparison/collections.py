"""Comparison of systems on several collections, in one table with a column per collection."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.answer import SCORE_DECIMALS, data_tables, leaderboard_table, system_letters
from judged.comparison.choices import Choices, default_resamples, default_test
from judged.comparison.compare import compare_scores
from judged.comparison.pair import describe_correction, describe_marks, describe_test, format_range
from judged.errors import InputError
from judged.results import NUMBER, TEXT, Answer, Column, Table
from judged.results.blocks import Note
from judged.results.spelling import use_one_of
from judged.scoring.evaluation.evaluate import evaluate_without_warnings, select_measures

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged.comparison.answer import Comparison, MeasureComparison
    from judged.results import Block
    from judged.scoring.evaluation import Scores

_TEST_OPTIONS = ("test", "correction", "family", "alpha", "resamples", "seed")


@dataclass(frozen=True, eq=False, repr=False)
class Collections(Answer):
    """Comparison of systems on each of several collections; systems are matched by run name."""

    kind: ClassVar[str] = "collections"
    main: ClassVar[str] = "results"

    comparisons: dict[str, Comparison]  # by name of the collection
    systems: tuple[str, ...]  # names of all runs, in order of first occurrence
    measures: tuple[str, ...]  # common to all collections
    choices: Choices  # shared by all collections
    notes: tuple[Note, ...] = ()  # of each collection, and of the combination

    def mean(self, system: str, measure: str | None = None) -> float:
        """Return the macro mean over collections, all with equal weight. NaN if the system lacks one."""
        if system not in self.systems:
            raise InputError(f"no system {system!r}", fix=use_one_of(self.systems))
        values: list[float] = []  # NaN, and so no mean, if one collection lacks the system
        for comparison in self.comparisons.values():
            estimates = comparison.measure(measure or self.measures[0]).estimates
            values.append(next((estimate.value for estimate in estimates if estimate.run == system), math.nan))
        return math.fsum(values) / len(values)

    def order(self, measure: str | None = None) -> tuple[str, ...]:
        """Return the systems by macro mean, best first; systems without one come last."""
        means = {system: self.mean(system, measure) for system in self.systems}
        sign = 1 if self._first_comparison(measure).lower_is_better else -1
        return tuple(sorted(self.systems, key=lambda system: (math.isnan(means[system]), sign * means[system])))

    def _first_comparison(self, measure: str | None = None) -> MeasureComparison:
        return next(iter(self.comparisons.values())).measure(measure or self.measures[0])

    def leaderboard(self, measure: str | None = None) -> Table:
        """Return a row per system, a column per collection, and the macro mean; marks refer to each collection."""
        name = measure or self.measures[0]
        if name not in self.measures:
            raise InputError(f"{name} was not evaluated on all collections", fix=use_one_of(self.measures))
        order, baseline = self.order(), self.choices.baseline
        means = [self.mean(system, name) for system in order]
        best = self._first_comparison(name).best_of([mean for mean in means if not math.isnan(mean)])
        columns = [
            comparison.measure(name).column(collection, order, baseline, intervals=False)
            for collection, comparison in self.comparisons.items()
        ]
        columns.append(Column("mean", means, NUMBER, best=[round(mean, SCORE_DECIMALS) in best for mean in means]))
        return leaderboard_table(f"leaderboard {name}", name, order, baseline, columns, self.caption)

    def blocks(self) -> tuple[Block, ...]:
        """Return a leaderboard per measure, and data tables of the numbers and means of all collections."""
        return (*map(self.leaderboard, self.measures), *self._data_tables(), self._means_table())

    def facts(self) -> dict[str, Any]:
        """Return the options, the caption, and the provenance of each collection."""
        collections = {name: comparison.provenance.to_dict() for name, comparison in self.comparisons.items()}
        return {"choices": asdict(self.choices), "caption": self.caption, "collections": collections}

    def _data_tables(self) -> Iterator[Table]:
        rows = [
            (name, comparison.measure(measure))
            for name, comparison in self.comparisons.items()
            for measure in self.measures
        ]
        collection_names = {
            "results": [name for name, compared in rows for _ in compared.estimates],
            "pairs": [name for name, compared in rows for _ in compared.pairs],
            "topics": [name for name, compared in rows for pair in compared.pairs for _ in (*pair.gains, *pair.losses)],
            "measures": [name for name, _ in rows],
        }
        for table in data_tables([compared for _, compared in rows]):
            yield replace(table, columns=(Column("collection", collection_names[table.name], TEXT), *table.columns))

    def _means_table(self) -> Table:
        rows = [(measure, system) for measure in self.measures for system in self.order()]
        columns = (
            Column("run", [system for _, system in rows], TEXT),
            Column("measure", [measure for measure, _ in rows], TEXT),
            Column("mean", [self.mean(system, measure) for measure, system in rows], NUMBER),
        )
        return Table("means", columns, only="data")

    @property
    def caption(self) -> str:
        """Caption: test, correction, alpha, and number of topics of each collection."""
        pairs = [pair for comparison in self.comparisons.values() for pair in comparison.pairs]
        topics = ", ".join(
            f"{name} {format_range(pair.result.n for pair in comparison.pairs)}"
            for name, comparison in self.comparisons.items()
            if comparison.pairs
        )
        mean = "mean: macro average over collections, not tested"
        if not pairs:
            return f"no significance test; {mean}"
        families = [measured.family for comparison in self.comparisons.values() for measured in comparison.measures]
        sizes, letters = format_range(filter(None, families)), system_letters(len(self.systems))
        return "; ".join(
            [
                f"topics: {topics}",
                f"{describe_test(self.choices, pairs)}, separately on each collection",
                describe_correction(self.choices, sizes, several=len(self.measures) > 1),
                f"alpha = {self.choices.alpha:g}",
                describe_marks(self.choices, f"the baseline {self.choices.baseline}", letters),
                mean,
            ]
        )


def compare_collections(
    collections: Mapping[str, Any], measures: Any = None, *, baseline: str | None = None, **options: Any
) -> Collections:
    """Compare systems on several collections, with separate tests for each, and by their macro mean.

    Parameters
    ----------
    collections
        ``{name: (qrels, runs)}`` with qrels and runs as in `evaluate`. Systems are matched by the names of their runs.
    measures
        As in `evaluate`; default: nDCG@10 and AP.
    baseline, options
        As in `compare`: ``test``, ``correction``, ``family``, ``alpha``, ``resamples``, ``seed``, and the
        policies of `evaluate`. A correction covers the comparisons within one collection.

    Raises
    ------
    InputError
        If there are fewer than two collections, no measure or no system in common, or as for `compare`.

    Examples
    --------
    >>> from judged.comparison import compare_collections
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> first, second = (qrels, {"old": bad, "new": good}), (qrels, {"old": good, "new": bad})
    >>> result = compare_collections({"news": first, "web": second}, "RR", baseline="old")
    >>> print(result.leaderboard().text())
    RR                  news      web    mean
    old (baseline)  0.5000    1.0000    0.7500
    new             1.0000 †  0.5000 ‡  0.7500
    """
    for name, collection in collections.items():
        if not (isinstance(collection, tuple) and len(collection) == 2):
            fix = "pass {name: (qrels, runs)}, or use collections_of_scores for scores"
            raise InputError(f"{name} must be a tuple (qrels, runs), got {type(collection).__name__}", fix=fix)
    test_options = {name: options.pop(name) for name in _TEST_OPTIONS if name in options}
    tables = {
        name: evaluate_without_warnings(qrels, runs, measures, **options) for name, (qrels, runs) in collections.items()
    }
    return collections_of_scores(tables, baseline=baseline, **test_options)


def collections_of_scores(
    tables: Mapping[str, Scores], measures: Any = None, *, baseline: str | None = None, **test_options: Any
) -> Collections:
    """Compare systems on several collections from their scores, like `compare_collections`.

    Parameters
    ----------
    tables
        Scores by collection.
    measures, baseline, **test_options
        As in `compare_collections`.

    Raises
    ------
    InputError
        If there are fewer than two collections, or they have no measure or run in common.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> tables = {name: evaluate(qrels, {"old": bad, "new": good}, "RR") for name in ("news", "web")}
    >>> print(collections_of_scores(tables, baseline="old").leaderboard().text())
    RR                  news       web    mean
    new             1.0000 †  1.0000 †  1.0000
    old (baseline)  0.5000    0.5000    0.5000
    """
    if len(tables) < 2:
        raise InputError(
            f"at least two collections are required, got {len(tables)}", fix="add a collection, or use compare"
        )
    topics = max(len(table.query_ids) for table in tables.values())
    defaults: dict[str, Any] = {"test": default_test(topics), "resamples": default_resamples(topics)}
    overrides = {name: value for name, value in test_options.items() if value is not None}
    choices = Choices(baseline=baseline, **(defaults | overrides))
    if measures is not None:
        tables = {name: select_measures(table, measures) for name, table in tables.items()}
    first, *others = tables.values()
    shared = [name for name in first.measure_names if all(name in table.measure_names for table in others)]
    if not shared:
        raise InputError(
            "the collections have no measure in common", fix="evaluate the same measures on each collection"
        )
    comparisons: dict[str, Comparison] = {}
    for name, table in tables.items():
        try:
            comparisons[name] = compare_scores(select_measures(table, shared), choices, "none")
        except InputError as error:
            raise InputError(f"{name}: {error.problem}", fix=error.fix, path=error.path) from None
    systems = tuple(dict.fromkeys(run for table in tables.values() for run in table.run_names))
    missing = {system: [name for name, table in tables.items() if system not in table.run_names] for system in systems}
    if all(missing.values()):
        raise InputError("no run name occurs in all collections", fix="use the same names: NAME=FILE")
    notes = [
        Note("no-mean", f"{system} has no macro average: no run on {', '.join(names)}")
        for system, names in missing.items()
        if names
    ]
    for name, comparison in comparisons.items():
        notes += [replace(note, subject=": ".join(filter(None, (name, note.subject)))) for note in comparison.notes]
    return Collections(comparisons, systems, tuple(shared), choices, tuple(notes))
