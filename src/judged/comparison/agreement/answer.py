"""What `agree` returns: agreement of each two judges, and what their disagreement does to systems."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.results import COUNT, NUMBER, TEXT, Answer, Column, Sentences, Show, Table, columns_of, number
from judged.results.decimals import counted, decimal, percent
from judged.results.types import ReadOnly

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats
    from judged.stats.agreement import Agreement, Confusion
    from judged.stats.rankings import Correlation

_MOST_GRADES = 12  # of a confusion table that anyone would read
_COEFFICIENTS = ("kappa", "linear", "quadratic", "alpha")


def _same(digits: int = 3) -> Show:
    """Write so many decimals, also of intervals."""
    return Show(number(digits).write, "float64", digits=_same)


_THREE = _same()
_KEYS = ("judge", "other_judge", "query_id", "measure")


@dataclass(frozen=True)
class TopicAgreement:
    """Two judges on one topic."""

    query_id: str
    shared: int  # documents that both judged
    same: float  # the share of equal grades
    distance: float  # the mean distance of the two grades
    bias: float  # the mean of the second judge's grade minus the first's


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """Two judges on all that both judged."""

    first: str
    second: str
    shared: int  # pairs of topic and document that both judged
    only_first: int  # and one alone
    only_second: int
    same: float  # the share of equal grades; NaN where nothing is shared
    kappa: Agreement  # Cohen's; undefined where grades are not whole numbers
    linear: Agreement  # Cohen's kappa, weighted
    quadratic: Agreement
    alpha: Agreement  # Krippendorff's
    confusion: Confusion = field(repr=False)
    topics: tuple[TopicAgreement, ...] = field(repr=False)  # where something is shared, in byte order of their ids

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        if not self.shared:
            return f"{self.first} and {self.second} judged nothing in common."
        best = self.alpha if math.isnan(self.kappa.value) else self.kappa
        bias = sum(topic.bias * topic.shared for topic in self.topics) / self.shared
        way = "higher" if bias > 0 else "lower"
        higher = f" {self.second} grades {abs(bias):.2f} {way} on average." if bias else ""
        return (
            f"{self.first} and {self.second} gave {percent(self.same)} of {self.shared} documents in {len(self.topics)}"
            f" topics the same grade. {best.sentence}{higher}"
        )


@dataclass(frozen=True, eq=False)
class SystemEffect(ReadOnly):
    """What becomes of the systems' scores by one measure, if the second judge stands in for the first."""

    first: str
    second: str
    measure: str
    n: int  # topics in which both judged something
    runs: tuple[str, ...]  # R
    scores: Floats = field(repr=False)  # (R,): the aggregate of each run by the judgments of the first
    other_scores: Floats = field(repr=False)  # (R,): and of the second
    tau: Correlation  # tau_b of the two rankings of systems
    tau_ap: Correlation  # tau_AP,b
    spearman: Correlation

    @property
    def largest_change(self) -> float:
        """The largest difference of a run's two scores; NaN without any."""
        change = np.abs(self.other_scores - self.scores)
        return float(np.nanmax(change)) if np.isfinite(change).any() else math.nan

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        head = f"{self.measure}, {self.second} in place of {self.first}, {counted(self.n, 'topic')}: "
        if math.isnan(self.tau.value):
            return head + self.tau.sentence
        pairs = self.tau.concordant + self.tau.discordant + self.tau.tied
        return (
            f"{head}{self.tau.discordant} of {pairs} pairs of systems change places (tau {decimal(self.tau.value, 3)},"
            f" tau_AP {decimal(self.tau_ap.value, 3)}); a score moves by up to {decimal(self.largest_change, 3)}."
        )


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAgreement(Answer):
    """What `agree` returns.

    Attributes
    ----------
    judges : tuple of str
    levels : tuple of (float or None)
        From which grade on each judge's grades were made 1, if they were.
    pairs : tuple of PairAgreement
        Each two judges, in the order given.
    alpha : Agreement
        Krippendorff's alpha of all judges together.
    fleiss : Agreement
        Fleiss' kappa of all judges, over what all of them judged.
    systems : tuple of SystemEffect
        Pair by pair, measure by measure; none without runs, or for two judges without a common topic.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "agreement"

    judges: tuple[str, ...]
    levels: tuple[float | None, ...]
    pairs: tuple[PairAgreement, ...]
    alpha: Agreement
    fleiss: Agreement
    systems: tuple[SystemEffect, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found of each two judges, and of systems."""
        return tuple(found.sentence for found in (*self.pairs, *self.systems))

    def facts(self) -> dict[str, Any]:
        """Give the judges, from which grade on each one's grades were made 1, and how rankings of systems compare."""
        first = self.systems[0] if self.systems else None
        ways = [first.tau.name, first.tau_ap.name, first.spearman.name] if first else []
        return {"judges": self.judges, "levels": self.levels, "correlations": ways}

    def blocks(self) -> tuple[Block, ...]:
        """Give each two judges, all together, grades that met, systems, and topics; and for data one number a row."""
        pairs, coefficients, systems, topics = self._pairs(), self._coefficients(), self._systems(), self._topics()
        everyone = replace(coefficients.take([0, 1]), name="all_judges", only="people")
        few = len(self.pairs) == 1 and len(self.pairs[0].confusion.grades) <= _MOST_GRADES
        rules = f"over what both judged; [{self.alpha.level:.0%} interval: jackknife over topics, adjusted t]"
        return (
            *([pairs, everyone] if len(self.judges) > 2 else [pairs]),
            *([self.confusion()] if few else []),
            *(systems, topics, Sentences((rules,)), coefficients, self._grades(), self._scores()),
            self._one_by_one(pairs, topics, systems),
        )

    def confusion(self, pair: int = 0) -> Table:
        """Give how often each grade of the first judge (rows) met each of the second (columns)."""
        found = self.pairs[pair]
        counts = found.confusion.counts
        names = [*(f"{grade:g}" for grade in found.confusion.grades), "all"]
        columns = [Column("grade", names, TEXT, f"{found.first} \\ {found.second}")]
        for name, column in zip(names, (*counts.T, counts.sum(axis=1)), strict=True):
            columns.append(Column(name, [*column.tolist(), int(column.sum())], COUNT))
        return Table("confusion", tuple(columns), only="people")

    def _pairs(self) -> Table:
        pairs, digits = self.pairs, _THREE
        columns = [
            *_judges(pairs),
            Column("n", [len(pair.topics) for pair in pairs], COUNT, "topics"),
            *columns_of(pairs, ("shared", COUNT), "only_first", "only_second", ("same", digits)),
        ]
        for name in _COEFFICIENTS:
            found = [getattr(pair, name) for pair in pairs]
            values, ends = [one.value for one in found], [one.interval for one in found]
            title = found[0].name.removeprefix("Krippendorff's ") if name == "alpha" else name
            weighted = name in {"linear", "quadratic"}  # people see no intervals of these
            columns.append(Column(name, values, digits, title, ci=ends, only="data" if weighted else ""))
            columns += [Column(f"{name} weights", values, digits, name, only="people")] if weighted else []
        return Table("pairs", tuple(columns), labels=2)

    def _topics(self) -> Table:
        """Give a row per topic, the least agreement of each two judges first."""
        rows = [
            (pair, topic)
            for pair in self.pairs
            for topic in sorted(pair.topics, key=lambda topic: (topic.same, topic.query_id))
        ]
        numbers = ("same", _THREE), ("distance", _THREE), ("bias", number(3, "+"))
        columns = (
            *_judges([pair for pair, _ in rows], only="" if len(self.pairs) > 1 else "data"),
            *columns_of([topic for _, topic in rows], ("query_id", TEXT), ("shared", COUNT), *numbers),
        )
        return Table("topics", columns, labels=3 if len(self.pairs) > 1 else 1, folded=True)

    def _systems(self) -> Table:
        rows, digits = self.systems, _THREE
        columns = (
            *_judges(rows),
            *columns_of(rows, ("measure", TEXT), ("n", COUNT, "topics")),
            Column("runs", [len(row.runs) for row in rows], COUNT),
            Column("tau", [row.tau.value for row in rows], digits),
            Column("tau_ap", [row.tau_ap.value for row in rows], digits, "tau_AP"),
            Column("spearman", [row.spearman.value for row in rows], digits, "rho"),
            Column("discordant", [row.tau.discordant for row in rows], COUNT, "swaps"),
            *columns_of([row.tau for row in rows], "concordant", "tied", "left_out", "note"),
            *columns_of(rows, ("largest_change", NUMBER, "largest change")),
        )
        return Table("systems", columns, labels=3, only="" if rows else "data")

    def _coefficients(self) -> Table:
        """Give what stands behind each coefficient: those of all judges, and then of each two."""
        rows = [("", "", "alpha", self.alpha), ("", "", "fleiss", self.fleiss)]
        rows += [(pair.first, pair.second, name, getattr(pair, name)) for pair in self.pairs for name in _COEFFICIENTS]
        names, found = enumerate((*_KEYS[:2], "coefficient")), [row[3] for row in rows]
        columns = (
            *(Column(name, [row[at] for row in rows], TEXT, only="data") for at, name in names),
            *columns_of(found, ("name", TEXT, "all judges")),
            Column("value", [one.value for one in found], _THREE, ci=[one.interval for one in found]),
            *columns_of(found, ("judges", COUNT), ("groups", COUNT, "topics"), ("units", COUNT, "documents")),
            *columns_of(found, "observed", "expected", "level", "left_out", "note", "sentence"),
        )
        return Table("coefficients", columns, only="data")

    def _grades(self) -> Table:
        """Give how often two grades met, for each two judges."""
        rows = [
            (pair, grade, other, int(pair.confusion.counts[at, to]))
            for pair in self.pairs
            for at, grade in enumerate(pair.confusion.grades.tolist())
            for to, other in enumerate(pair.confusion.grades.tolist())
        ]
        numbers = [
            Column(name, [row[at] for row in rows]) for at, name in ((1, "grade"), (2, "other_grade"), (3, "count"))
        ]
        return Table("grades", (*_judges([row[0] for row in rows]), *numbers), only="data")

    def _scores(self) -> Table:
        """Give every run's score by the judgments of each of two judges."""
        rows = [
            (row, *parts)
            for row in self.systems
            for parts in zip(row.runs, row.scores.tolist(), row.other_scores.tolist(), strict=True)
        ]
        columns = (
            *_judges([row for row, *_ in rows]),
            *columns_of([row for row, *_ in rows], "measure"),
            Column("run", [run for _, run, _, _ in rows], TEXT),
            Column("score", [score for _, _, score, _ in rows], NUMBER),
            Column("other_score", [other for *_, other in rows], NUMBER),
        )
        return Table("scores", columns, only="data")

    def _one_by_one(self, *tables: Table) -> Table:
        """Give one number a row."""
        everyone = (("alpha", self.alpha), ("fleiss", self.fleiss))
        rows: list[tuple[Any, ...]] = [("", "", "", "", name, one.value, one.interval) for name, one in everyone]
        rows += [
            (*(record.get(key, "") for key in _KEYS), name, value, record.get(f"{name}_ci"))
            for table in tables
            for record in table.records()
            for name, value in record.items()
            if name not in _KEYS and not isinstance(value, (str, list))
        ]
        columns = [Column(name, [row[at] for row in rows], TEXT) for at, name in enumerate((*_KEYS, "quantity"))]
        numbers = Column("value", [row[5] for row in rows], NUMBER, ci=[row[6] for row in rows])
        return Table("results", (*columns, numbers), only="data")


def _judges(rows: Any, only: Any = "") -> tuple[Column, Column]:
    return (
        Column("judge", [row.first for row in rows], TEXT, only=only),
        Column("other_judge", [row.second for row in rows], TEXT, "other judge", only=only),
    )
