"""Systems compared on several collections: one table, collections as columns."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.comparison.answer import SHOWN, board, data_tables, letters
from judged.comparison.choices import Choices, default_resamples, default_test
from judged.comparison.compare import compared
from judged.comparison.pair import corrected, marked, numbers, tested
from judged.errors import InputError
from judged.results import NUMBER, TEXT, Answer, Column, Table
from judged.results.blocks import Note
from judged.scoring.evaluation.evaluate import chosen_measures, scored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged.comparison.answer import Comparison, MeasureComparison
    from judged.results import Block
    from judged.scoring.evaluation import Scores

_CHOICES = ("test", "correction", "family", "alpha", "resamples", "seed")


@dataclass(frozen=True, eq=False, repr=False)
class Collections(Answer):
    """Systems, matched by the names of their runs, compared on each of several collections."""

    kind: ClassVar[str] = "collections"
    main: ClassVar[str] = "results"

    comparisons: dict[str, Comparison]  # by the name of the collection
    systems: tuple[str, ...]  # the names of all runs, in the order in which they are first met
    measures: tuple[str, ...]  # those that every collection has
    choices: Choices  # the same for all
    notes: tuple[Note, ...] = ()  # of every collection, and of all together

    def mean(self, system: str, measure: str | None = None) -> float:
        """Give the macro mean: every collection counts the same. NaN where the system lacks one."""
        if system not in self.systems:
            raise InputError(f"no system {system!r}", fix=f"use one of {', '.join(self.systems)}")
        values: list[float] = []
        for comparison in self.comparisons.values():
            estimates = comparison.measure(measure or self.measures[0]).estimates
            values.append(next((estimate.value for estimate in estimates if estimate.run == system), math.nan))
        return math.fsum(values) / len(values)

    def order(self, measure: str | None = None) -> tuple[str, ...]:
        """Give the systems by their macro mean, best first; those without one last."""
        means = {system: self.mean(system, measure) for system in self.systems}
        side = 1 if self._first(measure).lower_is_better else -1
        return tuple(sorted(self.systems, key=lambda system: (math.isnan(means[system]), side * means[system])))

    def _first(self, measure: str | None = None) -> MeasureComparison:
        return next(iter(self.comparisons.values())).measure(measure or self.measures[0])

    def leaderboard(self, measure: str | None = None) -> Table:
        """Give a row per system, a column a collection, and the macro mean; marks are of each collection's tests."""
        name = measure or self.measures[0]
        if name not in self.measures:
            raise InputError(f"{name} was not compared everywhere", fix=f"use one of {', '.join(self.measures)}")
        order, baseline = self.order(), self.choices.baseline
        means = [self.mean(system, name) for system in order]
        best = self._first(name).best_of([mean for mean in means if not math.isnan(mean)])
        columns = [
            comparison.measure(name).column(collection, order, baseline, intervals=False)
            for collection, comparison in self.comparisons.items()
        ]
        columns.append(Column("mean", means, NUMBER, best=[round(mean, SHOWN) in best for mean in means]))
        return board(f"leaderboard {name}", name, order, baseline, columns, self.caption)

    def blocks(self) -> tuple[Block, ...]:
        """Give a table for each measure; and for data all numbers of every collection, and the means."""
        return (*map(self.leaderboard, self.measures), *self._data(), self._means())

    def facts(self) -> dict[str, Any]:
        """Give the options, the rules in words, and what the numbers of each collection rest on."""
        collections = {name: comparison.provenance.to_dict() for name, comparison in self.comparisons.items()}
        return {"choices": asdict(self.choices), "caption": self.caption, "collections": collections}

    def _data(self) -> Iterator[Table]:
        """Put the tables of all collections below each other."""
        rows = [
            (name, comparison.measure(measure))
            for name, comparison in self.comparisons.items()
            for measure in self.measures
        ]
        names = {
            "results": [name for name, measured in rows for _ in measured.estimates],
            "pairs": [name for name, measured in rows for _ in measured.pairs],
            "topics": [name for name, measured in rows for pair in measured.pairs for _ in (*pair.gains, *pair.losses)],
            "measures": [name for name, _ in rows],
        }
        for table in data_tables([measured for _, measured in rows]):
            yield replace(table, columns=(Column("collection", names[table.name], TEXT), *table.columns))

    def _means(self) -> Table:
        rows = [(measure, system) for measure in self.measures for system in self.order()]
        columns = (
            Column("run", [system for _, system in rows], TEXT),
            Column("measure", [measure for measure, _ in rows], TEXT),
            Column("mean", [self.mean(system, measure) for measure, system in rows], NUMBER),
        )
        return Table("means", columns, only="data")

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha, over how many topics of each collection."""
        pairs = [pair for comparison in self.comparisons.values() for pair in comparison.pairs]
        topics = ", ".join(
            f"{name} {numbers(pair.result.n for pair in comparison.pairs)}"
            for name, comparison in self.comparisons.items()
            if comparison.pairs
        )
        mean = "mean: every collection counts the same, and it is not tested"
        if not pairs:
            return f"nothing is tested; {mean}"
        families = [measured.family for comparison in self.comparisons.values() for measured in comparison.measures]
        sizes = numbers(filter(None, families))
        return "; ".join(
            [
                f"topics: {topics}",
                f"{tested(self.choices, pairs)}, on each collection by itself",
                corrected(self.choices, sizes, several=len(self.measures) > 1),
                f"alpha = {self.choices.alpha:g}",
                marked(self.choices, f"the baseline {self.choices.baseline}", letters(len(self.systems))),
                mean,
            ]
        )


def compare_collections(
    collections: Mapping[str, Any],
    measures: Any = None,
    *,
    baseline: str | None = None,
    **options: Any,
) -> Collections:
    """Compare systems on several collections, each by tests of its own, and by their macro mean.

    Parameters
    ----------
    collections
        ``{name: (qrels, runs)}``, each as `evaluate` takes them. Systems are matched by the names of their runs.
    measures
        As `evaluate` takes them; nDCG@10 and AP, if they are left out.
    baseline, options
        As `compare` takes them: ``test``, ``correction``, ``family``, ``alpha``, ``resamples``, ``seed``, and the
        policies of `evaluate`. A correction allows for the comparisons within one collection.

    Returns
    -------
    Collections

    Raises
    ------
    InputError
        If there are fewer than two collections, no measure or no system in common, or as for `compare`.

    Examples
    --------
    >>> from judged.comparison import compare_collections
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> first, second = (qrels, {"old": bad, "new": good}), (qrels, {"old": good, "new": bad})
    >>> found = compare_collections({"news": first, "web": second}, "RR", baseline="old")
    >>> print(found.leaderboard().text())
    RR                  news      web    mean
    old (baseline)  0.5000    1.0000    0.7500
    new             1.0000 †  0.5000 ‡  0.7500
    """
    for name, given in collections.items():
        if not (isinstance(given, tuple) and len(given) == 2):
            fix = "give {name: (qrels, runs)}, or scores to collections_of_scores"
            raise InputError(f"{name}: {type(given).__name__} is not a pair of qrels and runs", fix=fix)
    chosen = {name: options.pop(name) for name in _CHOICES if name in options}
    tables = {name: scored(qrels, runs, measures, **options) for name, (qrels, runs) in collections.items()}
    return collections_of_scores(tables, baseline=baseline, **chosen)


def collections_of_scores(
    tables: Mapping[str, Scores], measures: Any = None, *, baseline: str | None = None, **chosen: Any
) -> Collections:
    """Compare systems on several collections from the scores of each, as `compare_collections` does."""
    if len(tables) < 2:
        raise InputError(f"{len(tables)} collection is too few", fix="give two or more, or use compare")
    topics = max(len(table.query_ids) for table in tables.values())
    defaults: dict[str, Any] = {"test": default_test(topics), "resamples": default_resamples(topics)}
    given = {name: value for name, value in chosen.items() if value is not None}
    choices = Choices(baseline=baseline, **(defaults | given))
    if measures is not None:
        tables = {name: chosen_measures(table, measures) for name, table in tables.items()}
    first, *others = tables.values()
    shared = [name for name in first.measure_names if all(name in table.measure_names for table in others)]
    if not shared:
        raise InputError("the collections have no measure in common", fix="evaluate the same measures on each")
    comparisons: dict[str, Comparison] = {}
    for name, table in tables.items():
        try:
            comparisons[name] = compared(chosen_measures(table, shared), choices, "none")
        except InputError as error:
            raise InputError(f"{name}: {error.problem}", fix=error.fix, path=error.path) from None
    systems = tuple(dict.fromkeys(run for table in tables.values() for run in table.run_names))
    lacking = {system: [name for name, table in tables.items() if system not in table.run_names] for system in systems}
    if all(lacking.values()):
        raise InputError("no run has the same name in all collections", fix="name the runs alike: NAME=FILE")
    notes = [
        Note("no-mean", f"{system} has no mean: no run on {', '.join(names)}")
        for system, names in lacking.items()
        if names
    ]
    for name, comparison in comparisons.items():
        notes += [replace(note, subject=": ".join(filter(None, (name, note.subject)))) for note in comparison.notes]
    return Collections(comparisons, systems, tuple(shared), choices, tuple(notes))
