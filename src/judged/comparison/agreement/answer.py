"""Results of `agree`: agreement of pairs of judges, and its effect on systems."""

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

_MAX_CONFUSION_GRADES = 12  # larger confusion tables are not shown
_COEFFICIENTS = ("kappa", "linear", "quadratic", "alpha")


def _decimals(digits: int = 3) -> Show:
    """Return a format with a fixed number of decimals, also for intervals."""
    return Show(number(digits).write, "float64", digits=_decimals)


_THREE = _decimals()
_KEY_COLUMNS = ("judge", "other_judge", "query_id", "measure")


@dataclass(frozen=True)
class TopicAgreement:
    """Agreement of two judges on one topic."""

    query_id: str
    shared: int  # documents that both judged
    same: float  # share of equal grades
    distance: float  # mean absolute difference of grades
    bias: float  # mean of second minus first grade


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """Agreement of two judges on the documents that both judged."""

    first: str
    second: str
    shared: int  # pairs of topic and document that both judged
    only_first: int  # pairs judged by the first only
    only_second: int  # pairs judged by the second only
    same: float  # share of equal grades; NaN without shared pairs
    kappa: Agreement  # Cohen's; undefined for grades that are not integers
    linear: Agreement  # Cohen's kappa, weighted by differences
    quadratic: Agreement  # Cohen's kappa, weighted by squared differences
    alpha: Agreement  # Krippendorff's
    confusion: Confusion = field(repr=False)  # counts of pairs by the two grades
    topics: tuple[TopicAgreement, ...] = field(repr=False)  # topics with shared pairs, in byte order of ids

    @property
    def sentence(self) -> str:
        """Agreement and bias in one sentence."""
        if not self.shared:
            return f"{self.first} and {self.second} share no judged document."
        coefficient = self.alpha if math.isnan(self.kappa.value) else self.kappa
        bias = sum(topic.bias * topic.shared for topic in self.topics) / self.shared
        direction = "higher" if bias > 0 else "lower"
        bias_text = f" {self.second} grades {abs(bias):.2f} {direction} on average." if bias else ""
        return (
            f"{self.first} and {self.second} gave the same grade to {percent(self.same)} of {self.shared} documents in"
            f" {len(self.topics)} topics. {coefficient.sentence}{bias_text}"
        )


@dataclass(frozen=True, eq=False)
class JudgeEffect(ReadOnly):
    """Effect on the scores of systems by one measure of replacing the first judge by the second."""

    first: str
    second: str
    measure: str
    n: int  # topics that both judged
    runs: tuple[str, ...]  # R
    scores: Floats = field(repr=False)  # (R,): aggregate of each run by the first judge
    other_scores: Floats = field(repr=False)  # (R,): ... and by the second
    tau: Correlation  # tau_b of the two rankings of systems
    tau_ap: Correlation  # tau_AP,b
    spearman: Correlation  # Spearman's rho of the two system orders

    @property
    def largest_change(self) -> float:
        """Largest absolute difference between the two scores of a run; NaN without any."""
        change = np.abs(self.other_scores - self.scores)
        return float(np.nanmax(change)) if np.isfinite(change).any() else math.nan

    @property
    def sentence(self) -> str:
        """Number of swapped pairs of systems, and the correlations."""
        subject = f"{self.measure} by {self.second} instead of {self.first}, n = {counted(self.n, 'topic')}: "
        if math.isnan(self.tau.value):
            return subject + self.tau.sentence
        pairs = self.tau.concordant + self.tau.discordant + self.tau.tied
        return (
            f"{subject}{self.tau.discordant} of {pairs} pairs of systems are swapped"
            f" (tau = {decimal(self.tau.value, 3)}, tau_AP = {decimal(self.tau_ap.value, 3)}); scores change by up to"
            f" {decimal(self.largest_change, 3)}."
        )


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAgreement(Answer):
    """Result of `agree`.

    Attributes
    ----------
    judges : tuple of str
    levels : tuple of (float or None)
        Threshold that made the grades of each judge binary, if any.
    pairs : tuple of PairAgreement
        Pairs of judges, in the given order.
    alpha : Agreement
        Krippendorff's alpha of all judges.
    fleiss : Agreement
        Fleiss' kappa on the documents that all judges judged.
    systems : tuple of JudgeEffect
        By pair and measure; empty without runs or shared topics.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "agreement"

    judges: tuple[str, ...]
    levels: tuple[float | None, ...]
    pairs: tuple[PairAgreement, ...]
    alpha: Agreement
    fleiss: Agreement
    systems: tuple[JudgeEffect, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on each pair of judges, and on systems."""
        return tuple(agreement.sentence for agreement in (*self.pairs, *self.systems))

    def facts(self) -> dict[str, Any]:
        """Return the judges, their thresholds, and the names of the correlations."""
        first = self.systems[0] if self.systems else None
        correlations = [first.tau.name, first.tau_ap.name, first.spearman.name] if first else []
        return {"judges": self.judges, "levels": self.levels, "correlations": correlations}

    def blocks(self) -> tuple[Block, ...]:
        """Return tables of pairs of judges, of confusion, systems, and topics, and the data tables."""
        pairs, coefficients = self._pairs_table(), self._coefficients_table()
        systems, topics = self._systems_table(), self._topics_table()
        all_judges = replace(coefficients.take([0, 1]), name="all_judges", only="people")
        show_confusion = len(self.pairs) == 1 and len(self.pairs[0].confusion.grades) <= _MAX_CONFUSION_GRADES
        interval = "jackknife over topics, adjusted for skewness"
        rules = f"over documents that both judges graded; [{self.alpha.level:.0%} CI: {interval}]"
        return (
            *([pairs, all_judges] if len(self.judges) > 2 else [pairs]),
            *([self.confusion()] if show_confusion else []),
            *(systems, topics, Sentences((rules,)), coefficients, self._grades_table(), self._scores_table()),
            self._long_table(pairs, topics, systems),
        )

    def confusion(self, pair: int = 0) -> Table:
        """Return a table of counts of grade pairs: first judge in rows, second in columns."""
        agreement = self.pairs[pair]
        counts = agreement.confusion.counts
        names = [*(f"{grade:g}" for grade in agreement.confusion.grades), "all"]
        columns = [Column("grade", names, TEXT, f"{agreement.first} \\ {agreement.second}")]
        for name, column in zip(names, (*counts.T, counts.sum(axis=1)), strict=True):
            columns.append(Column(name, [*column.tolist(), int(column.sum())], COUNT))
        return Table("confusion", tuple(columns), only="people")

    def _pairs_table(self) -> Table:
        pairs, digits = self.pairs, _THREE
        columns = [
            *_judge_columns(pairs),
            Column("n", [len(pair.topics) for pair in pairs], COUNT, "topics"),
            *columns_of(pairs, ("shared", COUNT), "only_first", "only_second", ("same", digits)),
        ]
        for name in _COEFFICIENTS:
            coefficients = [getattr(pair, name) for pair in pairs]
            values = [coefficient.value for coefficient in coefficients]
            intervals = [coefficient.interval for coefficient in coefficients]
            title = coefficients[0].name.removeprefix("Krippendorff's ") if name == "alpha" else name
            weighted = name in {"linear", "quadratic"}  # shown without intervals
            columns.append(Column(name, values, digits, title, ci=intervals, only="data" if weighted else ""))
            columns += [Column(f"{name} weights", values, digits, name, only="people")] if weighted else []
        return Table("pairs", tuple(columns), labels=2)

    def _topics_table(self) -> Table:
        """Return a row per topic, lowest agreement of each pair first."""
        rows = [
            (pair, topic)
            for pair in self.pairs
            for topic in sorted(pair.topics, key=lambda topic: (topic.same, topic.query_id))
        ]
        numbers = ("same", _THREE), ("distance", _THREE), ("bias", number(3, "+"))
        columns = (
            *_judge_columns([pair for pair, _ in rows], only="" if len(self.pairs) > 1 else "data"),
            *columns_of([topic for _, topic in rows], ("query_id", TEXT), ("shared", COUNT), *numbers),
        )
        return Table("topics", columns, labels=3 if len(self.pairs) > 1 else 1, folded=True)

    def _systems_table(self) -> Table:
        rows, digits = self.systems, _THREE
        columns = (
            *_judge_columns(rows),
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

    def _coefficients_table(self) -> Table:
        rows = [("", "", "alpha", self.alpha), ("", "", "fleiss", self.fleiss)]
        rows += [(pair.first, pair.second, name, getattr(pair, name)) for pair in self.pairs for name in _COEFFICIENTS]
        keys, coefficients = enumerate((*_KEY_COLUMNS[:2], "coefficient")), [row[3] for row in rows]
        columns = (
            *(Column(name, [row[i] for row in rows], TEXT, only="data") for i, name in keys),
            *columns_of(coefficients, ("name", TEXT, "all judges")),
            Column("value", [row[3].value for row in rows], _THREE, ci=[row[3].interval for row in rows]),
            *columns_of(coefficients, ("judges", COUNT), ("groups", COUNT, "topics"), ("units", COUNT, "documents")),
            *columns_of(coefficients, "observed", "expected", "level", "left_out", "note", "sentence"),
        )
        return Table("coefficients", columns, only="data")

    def _grades_table(self) -> Table:
        rows = [
            (pair, grade, other, int(pair.confusion.counts[i, j]))
            for pair in self.pairs
            for i, grade in enumerate(pair.confusion.grades.tolist())
            for j, other in enumerate(pair.confusion.grades.tolist())
        ]
        cells = [Column(name, [row[i] for row in rows]) for i, name in enumerate(("grade", "other_grade", "count"), 1)]
        return Table("grades", (*_judge_columns([row[0] for row in rows]), *cells), only="data")

    def _scores_table(self) -> Table:
        rows = [
            (row, *run_scores)
            for row in self.systems
            for run_scores in zip(row.runs, row.scores.tolist(), row.other_scores.tolist(), strict=True)
        ]
        columns = (
            *_judge_columns([row for row, *_ in rows]),
            *columns_of([row for row, *_ in rows], "measure"),
            Column("run", [run for _, run, _, _ in rows], TEXT),
            Column("score", [score for _, _, score, _ in rows], NUMBER),
            Column("other_score", [other for *_, other in rows], NUMBER),
        )
        return Table("scores", columns, only="data")

    def _long_table(self, *tables: Table) -> Table:
        """Return all numbers in long format, one per row."""
        rows: list[tuple[Any, ...]] = [("", "", "", "", "alpha", self.alpha.value, self.alpha.interval)]
        rows.append(("", "", "", "", "fleiss", self.fleiss.value, self.fleiss.interval))
        rows += [
            (*(record.get(key, "") for key in _KEY_COLUMNS), name, value, record.get(f"{name}_ci"))
            for table in tables
            for record in table.records()
            for name, value in record.items()
            if name not in _KEY_COLUMNS and not isinstance(value, (str, list))
        ]
        columns = [Column(name, [row[i] for row in rows], TEXT) for i, name in enumerate((*_KEY_COLUMNS, "quantity"))]
        values = Column("value", [row[5] for row in rows], NUMBER, ci=[row[6] for row in rows])
        return Table("results", (*columns, values), only="data")


def _judge_columns(rows: Any, only: Any = "") -> tuple[Column, Column]:
    return (
        Column("judge", [row.first for row in rows], TEXT, only=only),
        Column("other_judge", [row.second for row in rows], TEXT, "other judge", only=only),
    )
