"""Systems compared on several collections: one table, collections as columns."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from judged.comparison.captions import corrected, marked, numbers, tested
from judged.comparison.choices import Choices, Family
from judged.comparison.comparing import compared
from judged.comparison.document import number
from judged.comparison.forms import latex_float, wrapped
from judged.comparison.layout import cell_of, mark_of
from judged.comparison.marks import letters
from judged.comparison.pair import SHOWN
from judged.decimals import decimal
from judged.errors import InputError
from judged.evaluation.given import chosen_measures, scores_of
from judged.tables import Cell, Table, markdown_prose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.comparison.comparison import Comparison

_MEAN = "mean"


@dataclass(frozen=True, eq=False, repr=False)
class Collections:
    """Systems, matched by the names of their runs, compared on each of several collections."""

    comparisons: dict[str, Comparison]  # by the name of the collection
    systems: tuple[str, ...]  # the names of all runs, in the order in which they are first met
    measures: tuple[str, ...]  # those that every collection has
    choices: Choices  # the same for all
    warnings: tuple[str, ...] = ()  # of every collection, and of all together

    def mean(self, system: str, measure: str | None = None) -> float:
        """Give the macro mean: every collection counts the same. NaN where the system lacks one."""
        if system not in self.systems:
            raise InputError(f"no system {system!r}", fix=f"one of {', '.join(self.systems)}")
        values = [self._value(name, system, measure or self.measures[0]) for name in self.comparisons]
        return math.fsum(values) / len(values)

    def _value(self, collection: str, system: str, measure: str) -> float:
        one = self.comparisons[collection]
        if system not in one.scores.run_names:
            return math.nan
        return one.measure(measure).estimates[one.scores.run_names.index(system)].value

    def order(self, measure: str | None = None) -> tuple[str, ...]:
        """Give the systems by their macro mean, best first; those without one last."""
        name = measure or self.measures[0]
        means = {system: self.mean(system, name) for system in self.systems}
        side = 1 if next(iter(self.comparisons.values())).measure(name).lower_is_better else -1
        return tuple(sorted(self.systems, key=lambda system: (math.isnan(means[system]), side * means[system])))

    def table(self, measure: str | None = None) -> Table:
        """Lay out a row a system, a column a collection, and the macro mean; marks are of each collection's tests."""
        name = measure or self.measures[0]
        if name not in self.measures:
            raise InputError(f"{name} was not compared everywhere", fix=f"one of {', '.join(self.measures)}")
        order, baseline = self.order(), self.choices.baseline
        marks = letters(len(order))
        columns = [self._column(one, name, order, marks) for one in self.comparisons.values()]
        columns.append(self._means(name, order))
        header = (name, *self.comparisons, _MEAN)
        shown = [f"{system} (baseline)" if system == baseline else system for system in order]
        rows = tuple(zip(shown, *columns, strict=True))
        if baseline is not None:
            return Table(header, rows)
        return Table(("", *header), tuple((mark, *row) for mark, row in zip(marks, rows, strict=True)), labels=2)

    def _column(self, one: Comparison, measure: str, order: tuple[str, ...], marks: tuple[str, ...]) -> list[str]:
        found, names = one.measure(measure), one.scores.run_names
        best = {names[at] for at in found.best()}
        place = {name: at for at, name in enumerate(names)}
        return [
            cell_of(
                found.estimates[place[system]],
                mark_of(found, system, order, marks, self.choices.baseline),
                best=system in best,
                interval=False,
            )
            if system in place
            else "-"
            for system in order
        ]

    def _means(self, measure: str, order: tuple[str, ...]) -> list[str]:
        means = [self.mean(system, measure) for system in order]
        known = [mean for mean in means if not math.isnan(mean)]
        best = next(iter(self.comparisons.values())).measure(measure).best_of(known)
        return ["-" if math.isnan(mean) else Cell(decimal(mean), best=round(mean, SHOWN) in best) for mean in means]

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha, over how many topics of each collection."""
        pairs = [pair for one in self.comparisons.values() for pair in one.pairs]
        topics = ", ".join(
            f"{name} {numbers(pair.found.n for pair in one.pairs)}"
            for name, one in self.comparisons.items()
            if one.pairs
        )
        mean = f"{_MEAN}: every collection counts the same, and it is not tested"
        if not pairs:
            return f"nothing is tested; {mean}"
        sizes = numbers(
            [one.family for found in self.comparisons.values() for one in found.measures if one.family] or [0]
        )
        rules = corrected(self.choices, sizes, several=len(self.measures) > 1)
        return "; ".join([
            f"topics: {topics}", f"{tested(self.choices, pairs)}, on each collection by itself", rules,
            f"alpha = {self.choices.alpha:g}",
            marked(self.choices, f"the baseline {self.choices.baseline}", letters(len(self.systems))), mean,
        ])  # fmt: skip

    def text(self, *, width: int | None = None) -> str:
        """Write for a terminal."""
        tables = [self.table(name).text(width=width) for name in self.measures]
        return "\n\n".join([*tables, wrapped(self.caption, width)])

    def markdown(self) -> str:
        """Write as Markdown tables with a caption."""
        return "\n\n".join(
            [*(self.table(name).markdown() for name in self.measures), markdown_prose(f"{self.caption}.")]
        )

    def latex(self) -> str:
        """Write as LaTeX tables for a paper (package booktabs)."""
        return "\n\n".join(latex_float(self.table(name), f"{name}; {self.caption}") for name in self.measures)

    def csv(self) -> str:
        """Write every number in full precision: one row a collection, system and measure."""
        rows = tuple(
            (name, one.run, one.measure, "" if math.isnan(one.value) else repr(one.value), str(one.topics))
            for name, comparison in self.comparisons.items()
            for measure in self.measures
            for one in comparison.measure(measure).estimates
        )
        return Table(("collection", "run", "measure", "value", "topics"), rows, labels=3).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: the same document that the CLI prints."""
        return {
            "choices": asdict(self.choices),
            "caption": self.caption,
            "means": {
                measure: {system: number(self.mean(system, measure)) for system in self.order()}
                for measure in self.measures
            },
            "collections": {name: one.to_dict() for name, one in self.comparisons.items()},
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return "".join(self.table(name).html() for name in self.measures) + Table((self.caption,), ()).html(
            self.warnings
        )


def compare_collections(
    collections: Mapping[str, Any],
    measures: Any = None,
    *,
    baseline: str | None = None,
    test: str = "randomisation",
    correction: str = "holm",
    family: Family = "measure",
    alpha: float = 0.05,
    resamples: int = 100_000,
    seed: int = 0,
    **policies: Any,
) -> Collections:
    """Compare systems on several collections, each by tests of its own, and by their macro mean.

    Parameters
    ----------
    collections
        ``{name: scores}``: what `evaluate` returned, or a file that `Scores.save` wrote; or ``{name: (qrels, runs)}``.
        Systems are matched by the names of their runs.
    measures
        Which; those that all given scores have, or nDCG@10 and AP, if they are left out.
    baseline, test, correction, family, alpha, resamples, seed, policies
        As `compare` takes them. A correction allows for the comparisons within one collection.

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
    >>> print(found.table().text())
    RR                  news      web    mean
    old (baseline)  0.5000    1.0000    0.7500
    new             1.0000 †  0.5000 ‡  0.7500
    """
    if len(collections) < 2:
        raise InputError(f"{len(collections)} collections are no several", fix="give two or more, or use compare")
    choices = Choices(test, correction, family, alpha, resamples, seed, baseline=baseline)
    tables = {
        name: scores_of(given[0], given[1], measures, policies)
        if isinstance(given, tuple)
        else scores_of(given, None, measures, policies)
        for name, given in collections.items()
    }
    shared = [
        one for one in next(iter(tables.values())).measure_names if all(one in t.measure_names for t in tables.values())
    ]
    if not shared:
        raise InputError("the collections have no measure in common", fix="evaluate the same measures on each")
    made = {name: _one(name, chosen_measures(table, shared), choices) for name, table in tables.items()}
    systems = tuple(dict.fromkeys(run for table in tables.values() for run in table.run_names))
    lacking = {system: [name for name, table in tables.items() if system not in table.run_names] for system in systems}
    if all(lacking.values()):
        raise InputError("no run has the same name in all collections", fix="name the runs alike: NAME=FILE")
    notes = [f"{system} has no mean: no run on {', '.join(names)}" for system, names in lacking.items() if names]
    warnings = [f"{name}: {text}" for name, one in made.items() for text in one.warnings]
    return Collections(made, systems, tuple(shared), choices, (*notes, *warnings))


def _one(name: str, scores: Any, choices: Choices) -> Comparison:
    try:
        return compared(scores, choices, "none")
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", fix=error.fix, path=error.path) from None
