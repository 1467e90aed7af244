"""Systems by need, where several queries word the same one, as an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.comparison.pair import describe_winner
from judged.errors import InputError
from judged.results import Chart, Column, Sentences, Table
from judged.results.decimals import counted, decimal, p_text, percent
from judged.results.table import COUNT, TEXT, columns_of, number
from judged.results.types import ReadOnly

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.comparison import Comparison, Pair
    from judged.diagnosis.needs.needs import Consistency
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.types import Floats, Ints
    from judged.scoring.evaluation import Scores

_SCORE, _SHARE = number(3)._replace(limit=None), number(2)._replace(limit=None)
_TOLD = 5  # runs and pairs
_DRAWN = 40  # needs: more than these are no longer read one by one


@dataclass(frozen=True)
class NeedsSummary:
    """One run and measure over all needs, each counted once."""

    run: str
    measure: str
    # mean, mean_ci: mean over needs of the mean over wordings, with its interval over needs
    mean: float
    mean_ci: tuple[float, float] | None
    # worst, worst_ci: the same of the worst wording of each need
    worst: float
    worst_ci: tuple[float, float] | None
    best: float  # the same of the best wording
    deviation: float  # the standard deviation between wordings, averaged over the needs with two or more
    consistency: Consistency  # the share of the variance that lies between needs: the rest is between wordings
    # overlap, rbo: how alike the rankings of two wordings of a need are, averaged over pairs and then over needs; NaN
    # where there are no rankings to look at
    overlap: float
    rbo: float


@dataclass(frozen=True, eq=False, repr=False)
class Needs(ReadOnly, AnswerOfScores):
    """What `needs` returns: R runs by M measures over N needs, each worded by several queries.

    Attributes
    ----------
    scores : Scores
        By query id.
    needs : tuple of N str
        In byte order.
    query_ids : tuple of N tuples of str
        The wordings of each need that count.
    mean, worst, best, deviation : (R, M, N) float64
        Over the wordings of each need; NaN where it has no score, and no deviation for one wording.
    variants : (R, M, N) int64
        How many wordings have a score.
    overlap, rbo : (R, N) float64
        How alike the rankings of two wordings are, on average; NaN where that is not known.
    summaries : tuple of NeedsSummary
        One a run and measure.
    comparison : Comparison or None
        The runs compared over needs.
    cutoff, rbo_p : int, float
        Of the overlap and of RBO.
    shown : int
        How many of the needs people see that vary most.
    queries : dict of str to str
        Texts of wordings.
    """

    kind: ClassVar[str] = "needs"
    main: ClassVar[str] = "by_need"

    scores: Scores
    needs: tuple[str, ...]
    query_ids: tuple[tuple[str, ...], ...]
    mean: Floats
    worst: Floats
    best: Floats
    deviation: Floats
    variants: Ints
    overlap: Floats
    rbo: Floats
    summaries: tuple[NeedsSummary, ...]
    comparison: Comparison | None
    cutoff: int
    rbo_p: float
    limit: int = 10
    queries: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """How many needs there are."""
        return f"{counted(len(self.needs), 'need')} in several wordings"

    def summary(self, run: str | None = None, measure: str | None = None) -> NeedsSummary:
        """Give one summary; the first run and measure, where none is named.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        row, column = self._place(run, measure)
        return self.summaries[row * len(self.scores.measures) + column]

    def _place(self, run: str | None, measure: str | None) -> tuple[int, int]:
        """Give the place of a run and a measure; the first ones for None."""
        places: list[int] = []
        for name, names in ((run, self.scores.run_names), (measure, self.scores.measure_names)):
            if name is not None and name not in names:
                raise InputError(f"there is no {name!r} here", fix=f"use one of {', '.join(names)}")
            places.append(0 if name is None else names.index(name))
        return places[0], places[1]

    def facts(self) -> dict[str, Any]:
        """Give the number of needs, and what rankings are compared by."""
        return {"needs": len(self.needs), "cutoff": self.cutoff, "rbo_p": self.rbo_p}

    def blocks(self) -> tuple[Block, ...]:
        """Give what may be concluded, the runs by each measure, and the needs whose wordings differ most."""
        ids = Column("need", self.needs, TEXT), Column("query_ids", self.query_ids)
        best = self._ordered()[0].run
        several = self.limit and any(len(group) > 1 for group in self.query_ids)
        return (
            Sentences(self.sentences),
            *self._results(),
            *([self.needs_table(best, worst=self.limit)] if several else []),
            self._by_need(),
            Table("wordings", ids, only="data"),
            *([] if self.comparison is None else map(self.comparison.table, ("pairs", "topics"))),
            self._chart(best),
        )

    def _results(self) -> list[Table]:
        """Lay out a row per run: for people a table for each measure."""
        rows, shares = self.summaries, [row.consistency for row in self.summaries]
        columns = (
            *columns_of(rows, ("run", TEXT), "measure"),
            Column("mean", [row.mean for row in rows], _SCORE, ci=[row.mean_ci for row in rows]),
            Column("worst", [row.worst for row in rows], _SCORE, "worst wording", ci=[row.worst_ci for row in rows]),
            *columns_of(rows, ("best", _SCORE), ("deviation", _SCORE, "sd")),
            Column("consistency", [share.value for share in shares], _SHARE, ci=[share.interval for share in shares]),
            *columns_of(shares, "needs", "variants"),
            *columns_of(rows, ("overlap", _SHARE), ("rbo", _SHARE, "RBO")),
        )
        tables = [Table("results", columns, only="data")]
        for name in self.scores.measure_names:
            some = tables[0].take([at for at, row in enumerate(rows) if row.measure == name])
            run, *rest = some.columns
            tables.append(Table(name, (replace(run, title=name), *rest), only="people"))
        alike = f"; overlap, RBO: how alike the first {self.cutoff} documents of two wordings are"
        legend = (
            "mean: of the means over wordings; worst wording, best: of the worst and best score of each need; sd:"
            " standard deviation between wordings; consistency: share of the variance that lies between needs (1:"
            f" wording does not matter){'' if np.isnan(self.overlap).all() else alike}"
        )
        return [*tables[:-1], replace(tables[-1], note=legend)]

    def _by_need(self) -> Table:
        """Lay out a row per run, measure and need."""
        runs, measures, n = self.scores.run_names, self.scores.measure_names, len(self.needs)
        overlap, rbo = (np.repeat(part, len(measures), axis=0).ravel().tolist() for part in (self.overlap, self.rbo))
        columns = (
            Column("run", np.repeat(runs, len(measures) * n).tolist(), TEXT, only="data"),
            Column("measure", np.tile(np.repeat(measures, n), len(runs)).tolist(), TEXT, only="data"),
            Column("need", self.needs * (len(runs) * len(measures)), TEXT),
            Column("variants", self.variants.ravel().tolist(), COUNT),
            *(Column(name, getattr(self, name).ravel().tolist(), _SCORE) for name in ("mean", "worst", "best")),
            Column("deviation", self.deviation.ravel().tolist(), _SCORE, "sd"),
            Column("overlap", overlap, _SHARE, only="data" if np.isnan(self.overlap).all() else ""),
            Column("rbo", rbo, _SHARE, "RBO", only="data"),
        )
        return Table("by_need", columns, only="data")

    def needs_table(self, run: str | None = None, measure: str | None = None, worst: int | None = None) -> Table:
        """Lay out a row a need, those with the widest range of scores first; ``worst`` of them, or all."""
        r, m = self._place(run, measure)
        order = self._widest(r, m)[:worst]
        start = (r * len(self.scores.measures) + m) * len(self.needs)
        columns = self._by_need().take([start + at for at in order]).columns
        wordings: list[Column] = []
        for end in ("worst", "best"):
            names = [self._wording(r, m, at, end) for at in order]
            wordings.append(Column(f"{end}_wording", names, TEXT, f"{end} wording"))
            if self.queries:
                wordings.append(
                    Column(f"{end}_text", [self.queries.get(name, "") for name in names], TEXT, end, below=True)
                )
        title = f"Needs whose wordings differ most, {self.scores.run_names[r]}, {self.scores.measure_names[m]}"
        return Table("widest", (columns[2], *wordings, *columns[3:]), title, labels=1 + len(wordings), only="people")

    def _widest(self, run: int, measure: int) -> list[int]:
        """Order the needs by the range of their scores, the widest first."""
        ranges = np.nan_to_num(np.abs(self.best[run, measure] - self.worst[run, measure]), nan=-1.0)
        return sorted(range(len(self.needs)), key=lambda at: (-ranges[at], self.needs[at]))

    def _wording(self, run: int, measure: int, at: int, which: str) -> str:
        """Name the first wording with the worst or the best score of a need."""
        wanted, scores = getattr(self, which)[run, measure, at], self.scores
        place = {query: row for row, query in enumerate(scores.query_ids)}
        known = ((query, scores.values[run, measure, place[query]]) for query in self.query_ids[at])
        return next((query for query, score in known if score == wanted), "-")

    def charts(self) -> dict[str, Chart]:
        """Give a chart of the best run by the first measure, and those of all runs and measures by both names."""
        runs, measures = self.scores.run_names, self.scores.measure_names
        drawn = {f"{run} {measure}": self._chart(run, measure) for run in runs for measure in measures}
        return super().charts() | drawn

    def _chart(self, run: str | None = None, measure: str | None = None) -> Chart:
        """Draw the needs of one run by their mean; of many needs, those with the widest range."""
        r, m = self._place(run, measure)
        name, system = self.scores.measure_names[m], self.scores.run_names[r]
        widest = [at for at in self._widest(r, m)[:_DRAWN] if not math.isnan(self.mean[r, m, at])]
        order = sorted(widest, key=lambda at: (-self.mean[r, m, at], self.needs[at]))
        ends = np.sort(np.stack([self.worst[r, m], self.best[r, m]]), axis=0).T.tolist()
        columns = (
            Column("need", [self.needs[at] for at in order], TEXT),
            Column("mean", self.mean[r, m, order].tolist(), _SCORE, name, ci=[tuple(ends[at]) for at in order]),
            Column("variants", self.variants[r, m, order].tolist(), COUNT),
        )
        some = "" if len(order) == len(self.needs) else f" (the {len(order)} of {len(self.needs)} that vary most)"
        return Chart(
            name="needs",
            title=f"{system}: {name} by need",
            subtitle=f"from the worst to the best wording, with the mean{some}",
            table=Table("needs", columns, only="people"),
            sentence=f"{name} of {system} by need: the mean, from the worst to the best wording.",
            kind="dots",
            x="mean",
            y="need",
            width=420,
            from_zero=True,
        )

    def _ordered(self) -> list[NeedsSummary]:
        """Give the summaries by the first measure, best first."""
        less = self.scores.measures[0].properties.higher_is_better is False
        rows = [row for row in self.summaries if row.measure == self.scores.measure_names[0]]
        return sorted(rows, key=lambda row: (math.isnan(row.mean), row.mean if less else -row.mean))

    @property
    def sentences(self) -> tuple[str, ...]:
        """How good, how bad at worst and how consistent each run is, and which differ over needs."""
        needs, words = counted(len(self.needs), "need"), counted(sum(map(len, self.query_ids)), "query", "queries")
        rule = "each need counts once, and intervals and tests are over needs, as its wordings are not independent"
        said = [f"{needs}, worded by {words}: {rule}."]
        said += [self._of_run(row) for row in self._ordered()[:_TOLD]]
        if self.comparison is not None:
            pairs = self.comparison.measure(self.scores.measure_names[0]).pairs
            said += [_of_pair(pair) for pair in pairs[:_TOLD]]
            said += [f"More pairs were compared: {len(pairs) - _TOLD}."] if len(pairs) > _TOLD else []
        return tuple(said)

    def _of_run(self, row: NeedsSummary) -> str:
        mean, worst = _with_ci(row.mean, row.mean_ci), _with_ci(row.worst, row.worst_ci)
        parts = [f"{row.run} has {row.measure} {mean} on average, and {worst} with the worst wording of each need."]
        share, limits = row.consistency.value, row.consistency.interval
        if math.isnan(share):
            parts.append(
                "How consistent it is over wordings cannot be told: too few needs have two, or nothing varies."
            )
        else:
            ci = "" if limits is None else f" [{percent(limits[0])}, {percent(limits[1])}]"
            parts.append(
                f"{percent(share)}{ci} of the variance of its scores lies between needs, the rest between wordings."
            )
        if not math.isnan(row.overlap):
            shared = f"Two wordings share {percent(row.overlap)} of their first {self.cutoff} documents"
            parts.append(f"{shared} (RBO {decimal(row.rbo, 2)}).")
        return " ".join(parts)


def _of_pair(pair: Pair) -> str:
    test, verdict = pair.result, f"No difference between {pair.second} and {pair.first} is shown in {pair.measure}"
    if pair.better is not None:
        verdict = describe_winner(test.test, pair.better, pair.other(pair.better), pair.measure)
    gap = _with_ci(pair.shown_difference, pair.shown_interval, 4, "+")
    after = f" after {test.correction}" if test.correction not in {"", "none"} else ""
    p = "" if math.isnan(test.decisive_p) else f", p {p_text(test.decisive_p, pair.alpha)}{after}"
    said = f"{verdict}: {pair.second} - {pair.first} {gap} over {counted(test.n, 'need')}{p}."
    if pair.insufficiency:
        return f"{said} {pair.insufficiency.sentence('need')}"
    few = f" It is sensitive to {counted(len(pair.few_topics), 'need')}: {', '.join(pair.few_topics)}."
    return said + few * pair.sensitive


def _with_ci(value: float, limits: Sequence[float] | None, digits: int = 3, sign: str = "") -> str:
    ends = "" if limits is None else f" [{decimal(limits[0], 3)}, {decimal(limits[1], 3)}]"
    return decimal(value, digits, sign) + ends
