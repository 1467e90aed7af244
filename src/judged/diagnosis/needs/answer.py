"""Result of `needs`: scores of runs by information need, where several queries word the same need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.comparison.choices import correction_name
from judged.comparison.pair import describe_winner
from judged.errors import InputError
from judged.results import Chart, Column, Sentences, Table
from judged.results.decimals import counted, decimal, p_text, percent
from judged.results.spelling import use_one_of
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
_MAX_LINES = 5  # about runs, and about pairs of runs
_MAX_DOTS = 40  # needs in a chart


@dataclass(frozen=True)
class NeedsSummary:
    """Means of a run and measure over all needs. Each need has the same weight."""

    run: str
    measure: str
    # mean, mean_ci: mean over needs of the mean over wordings, and its interval over needs
    mean: float
    mean_ci: tuple[float, float] | None
    # worst, worst_ci: mean over needs of the worst wording, and its interval
    worst: float
    worst_ci: tuple[float, float] | None
    best: float  # mean over needs of the best wording
    deviation: float  # standard deviation between wordings, averaged over the needs with two or more
    consistency: Consistency  # share of the variance between needs; the remainder is between wordings
    # overlap, rbo: similarity of the rankings of two wordings of a need, averaged over pairs and then over needs; NaN
    # without rankings
    overlap: float
    rbo: float


@dataclass(frozen=True, eq=False, repr=False)
class Needs(ReadOnly, AnswerOfScores):
    """Result of `needs`: R runs by M measures over N needs, each worded by several queries.

    Attributes
    ----------
    scores : Scores
        Scores by query id.
    needs : tuple of N str
        Needs, sorted.
    query_ids : tuple of N tuples of str
        Wordings of each need.
    mean, worst, best, deviation : (R, M, N) float64
        Statistics over the wordings of each need; NaN without a score, and no deviation for one wording.
    variants : (R, M, N) int64
        Number of wordings with a score.
    overlap, rbo : (R, N) float64
        Mean similarity of the rankings of two wordings; NaN if unknown.
    summaries : tuple of NeedsSummary
        One per run and measure.
    comparison : Comparison or None
        Comparison of the runs over needs.
    cutoff, rbo_p : int, float
        Depth of the overlap, and persistence of RBO.
    limit : int
        Number of needs listed, those with the largest range of scores.
    queries : dict of str to str
        Texts of wordings.
    notes : tuple of Note
        Warnings about needs and scores.
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
        """Number of needs."""
        return f"{counted(len(self.needs), 'need')} in several wordings"

    def summary(self, run: str | None = None, measure: str | None = None) -> NeedsSummary:
        """Return the summary of a run and measure. None: the first one.

        Raises
        ------
        InputError
            If the run or measure does not exist.
        """
        row, column = self._indices(run, measure)
        return self.summaries[row * len(self.scores.measures) + column]

    def _indices(self, run: str | None, measure: str | None) -> tuple[int, int]:
        """Return the indices of a run and a measure; 0 for None."""
        indices: list[int] = []
        for name, names in ((run, self.scores.run_names), (measure, self.scores.measure_names)):
            if name is not None and name not in names:
                raise InputError(f"{name!r} does not exist", fix=use_one_of(names))
            indices.append(0 if name is None else names.index(name))
        return indices[0], indices[1]

    def facts(self) -> dict[str, Any]:
        """Return the number of needs, and the settings of the similarity of rankings."""
        return {"needs": len(self.needs), "cutoff": self.cutoff, "rbo_p": self.rbo_p}

    def blocks(self) -> tuple[Block, ...]:
        """Return sentences, tables by run, by need and of pairs, and a chart of the best run."""
        ids = Column("need", self.needs, TEXT), Column("query_ids", self.query_ids)
        best = self._summaries_by_mean()[0].run
        is_listed = self.limit and any(len(group) > 1 for group in self.query_ids)
        return (
            Sentences(self.sentences),
            *self._results(),
            *([self.needs_table(best, worst=self.limit)] if is_listed else []),
            self._by_need(),
            Table("wordings", ids, only="data"),
            *([] if self.comparison is None else map(self.comparison.table, ("pairs", "topics"))),
            self._chart(best),
        )

    def _results(self) -> list[Table]:
        """Return tables with one row per run: all measures for data, and one table per measure for printing."""
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
            measure_table = tables[0].take([i for i, row in enumerate(rows) if row.measure == name])
            run, *others = measure_table.columns
            tables.append(Table(name, (replace(run, title=name), *others), only="people"))
        similarity_legend = f"; overlap, RBO: similarity of the top {self.cutoff} documents of two wordings"
        legend = (
            "mean: mean over wordings, then over needs; worst wording, best: score of the worst or best wording of"
            " each need, averaged over needs; sd: standard deviation between wordings; consistency: share of the"
            " variance"
            f" that is between needs (1: the wording has no"
            f" effect){'' if np.isnan(self.overlap).all() else similarity_legend}"
        )
        return [*tables[:-1], replace(tables[-1], note=legend)]

    def _by_need(self) -> Table:
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
        """Return a table with one row per need, sorted by descending range of scores, and cut to `worst` rows."""
        r, m = self._indices(run, measure)
        order = self._widest(r, m)[:worst]
        start = (r * len(self.scores.measures) + m) * len(self.needs)
        columns = self._by_need().take([start + need for need in order]).columns
        wordings: list[Column] = []
        for end in ("worst", "best"):
            names = [self._extreme_wording(r, m, need, end) for need in order]
            wordings.append(Column(f"{end}_wording", names, TEXT, f"{end} wording"))
            if self.queries:
                wordings.append(
                    Column(f"{end}_text", [self.queries.get(name, "") for name in names], TEXT, end, below=True)
                )
        run_name, measure_name = self.scores.run_names[r], self.scores.measure_names[m]
        title = f"Information needs whose wordings differ most in the {measure_name} of {run_name}"
        return Table("widest", (columns[2], *wordings, *columns[3:]), title, labels=1 + len(wordings), only="people")

    def _widest(self, run: int, measure: int) -> list[int]:
        """Sort the needs by descending range of their scores."""
        ranges = np.nan_to_num(np.abs(self.best[run, measure] - self.worst[run, measure]), nan=-1.0)
        return sorted(range(len(self.needs)), key=lambda need: (-ranges[need], self.needs[need]))

    def _extreme_wording(self, run: int, measure: int, need: int, extreme: str) -> str:
        """Return the first wording with the worst or best score of a need."""
        extreme_score, scores = getattr(self, extreme)[run, measure, need], self.scores
        rows = {query_id: row for row, query_id in enumerate(scores.query_ids)}
        wordings = ((query_id, scores.values[run, measure, rows[query_id]]) for query_id in self.query_ids[need])
        return next((query_id for query_id, score in wordings if score == extreme_score), "-")

    def charts(self) -> dict[str, Chart]:
        """Return the chart of the best run by the first measure, and a chart of each run and measure by both names."""
        runs, measures = self.scores.run_names, self.scores.measure_names
        charts = {f"{run} {measure}": self._chart(run, measure) for run in runs for measure in measures}
        return super().charts() | charts

    def _chart(self, run: str | None = None, measure: str | None = None) -> Chart:
        """Return a chart of the needs of one run, sorted by mean. Of many needs, it has those with the widest range."""
        r, m = self._indices(run, measure)
        name, system = self.scores.measure_names[m], self.scores.run_names[r]
        widest = [need for need in self._widest(r, m)[:_MAX_DOTS] if not math.isnan(self.mean[r, m, need])]
        order = sorted(widest, key=lambda need: (-self.mean[r, m, need], self.needs[need]))
        ranges = np.sort(np.stack([self.worst[r, m], self.best[r, m]]), axis=0).T.tolist()
        columns = (
            Column("need", [self.needs[need] for need in order], TEXT),
            Column("mean", self.mean[r, m, order].tolist(), _SCORE, name, ci=[tuple(ranges[need]) for need in order]),
            Column("variants", self.variants[r, m, order].tolist(), COUNT),
        )
        selection = (
            ""
            if len(order) == len(self.needs)
            else f" (the {len(order)} of {len(self.needs)} information needs with the largest range)"
        )
        return Chart(
            name="needs",
            title=f"{system}: {name} by need",
            subtitle=f"from the worst to the best wording, with the mean{selection}",
            table=Table("needs", columns, only="people"),
            sentence=f"{name} of {system} by need: the mean, and the range from the worst to the best wording.",
            kind="dots",
            x="mean",
            y="need",
            width=420,
            from_zero=True,
        )

    def _summaries_by_mean(self) -> list[NeedsSummary]:
        """Sort the summaries by the first measure, best first."""
        lower_is_better = self.scores.measures[0].properties.higher_is_better is False
        rows = [row for row in self.summaries if row.measure == self.scores.measure_names[0]]
        return sorted(rows, key=lambda row: (math.isnan(row.mean), row.mean if lower_is_better else -row.mean))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Means and consistency of each run, and comparisons over needs."""
        needs, queries = (
            counted(len(self.needs), "information need"),
            counted(sum(map(len, self.query_ids)), "query", "queries"),
        )
        rule = (
            "CIs and tests treat all wordings of an information need as one unit, because the wordings are not"
            " independent"
        )
        sentences = [f"{needs}, worded by {queries}: {rule}."]
        sentences += [self._run_sentences(row) for row in self._summaries_by_mean()[:_MAX_LINES]]
        if self.comparison is not None:
            pairs = self.comparison.measure(self.scores.measure_names[0]).pairs
            sentences += [_pair_sentence(pair) for pair in pairs[:_MAX_LINES]]
            more = counted(len(pairs) - _MAX_LINES, "more pair was", "more pairs were")
            sentences += [f"{more} compared."] if len(pairs) > _MAX_LINES else []
        return tuple(sentences)

    def _run_sentences(self, row: NeedsSummary) -> str:
        mean, worst = _format_with_ci(row.mean, row.mean_ci), _format_with_ci(row.worst, row.worst_ci)
        parts = [f"{row.run} has {row.measure} {mean} on average, and {worst} with the worst wording of each need."]
        share, limits = row.consistency.value, row.consistency.interval
        if math.isnan(share):
            reason = "too few needs have two wordings, or scores do not vary"
            parts.append(f"The consistency over wordings is unknown: {reason}.")
        else:
            ci = "" if limits is None else f" [{percent(limits[0])}, {percent(limits[1])}]"
            between = f"{percent(share)}{ci} of the variance of the scores is between needs"
            parts.append(f"{between}, and the rest is between wordings of the same need.")
            if limits is None:
                parts.append("This share has no confidence interval.")
            elif (percent(limits[0]), percent(limits[1])) == (percent(0.0), percent(1.0)):
                parts.append("The data do not determine this share.")
        if not math.isnan(row.overlap):
            shared = (
                f"On average, two wordings of an information need share {percent(row.overlap)} of the top"
                f" {self.cutoff} documents"
            )
            parts.append(f"{shared} (RBO {decimal(row.rbo, 2)}).")
        return " ".join(parts)


def _pair_sentence(pair: Pair) -> str:
    test, verdict = pair.result, f"No significant difference between {pair.second} and {pair.first} in {pair.measure}"
    if pair.better is not None:
        verdict = describe_winner(test.test, pair.better, pair.other(pair.better), pair.measure)
    difference = _format_with_ci(pair.shown_difference, pair.shown_interval, 4, "+")
    correction = f" after {correction_name(test.correction)} correction" if test.correction not in {"", "none"} else ""
    p = "" if math.isnan(test.decisive_p) else f", p {p_text(test.decisive_p, pair.alpha)}{correction}"
    sentence = f"{verdict}: {pair.second} - {pair.first} = {difference} over {counted(test.n, 'need')}{p}."
    if pair.insufficiency:
        return f"{sentence} {pair.insufficiency.sentence('information need')}"
    sensitivity = f" The result is sensitive to {counted(len(pair.few_topics), 'need')}: {', '.join(pair.few_topics)}."
    return sentence + sensitivity * pair.sensitive


def _format_with_ci(value: float, limits: Sequence[float] | None, digits: int = 3, sign: str = "") -> str:
    interval = "" if limits is None else f" [{decimal(limits[0], 3)}, {decimal(limits[1], 3)}]"
    return decimal(value, digits, sign) + interval
