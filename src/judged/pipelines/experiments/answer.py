"""`Conclusions`: leaderboard with costs, effects of factors, and the uncertainty of choosing the best configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from judged.comparison.answer import data_tables
from judged.comparison.pair import (
    DIFFERENCE,
    SENSITIVE,
    SIGNIFICANT,
    correction_name,
    sensitivity_columns,
)
from judged.pipelines.experiments.limits import QUANTILES
from judged.pipelines.experiments.neighbors import neighbor_section
from judged.results import Answer, Axis, Chart, Headline, ReferenceLine, Section, Sentences, Table, counted, listed
from judged.results.blocks import first_few
from judged.results.decimals import decimal, format_level, p_text
from judged.results.table import COUNT, NUMBER, SHARE, TEXT, YES_NO, Column, columns_of, number, significant
from judged.stats.sensitivity import sensitivity_sentences
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.comparison import Comparison
    from judged.comparison.slicing import Slicing
    from judged.diagnosis.tradeoff import Tradeoff
    from judged.pipelines.experiments.effects import Effect, FactorEffects
    from judged.pipelines.experiments.neighbors import NeighborRow
    from judged.results import Block, Status
    from judged.results.blocks import Note
    from judged.results.table import IntervalLimits
    from judged.scoring.evaluation import Scores
    from judged.scoring.evaluation.facts import Provenance
    from judged.stats.selection import SystemChoice

Costs: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Costs by configuration and name; None if unknown. ``<name>_ci`` is the confidence interval, and ``<name>_noise`` the
range over repeated measurements, None with too few of them."""

_SHOWN_TOPICS = 3
_NOISE = "\N{ALMOST EQUAL TO}"
_LATENCY = (
    "p50_ms, p95_ms, and p99_ms: 50th, 95th, and 99th percentile of the latency over the queries of a round, and the"
    " median of these values over rounds; 95% confidence intervals over queries; the intervals of p95_ms and p99_ms"
    " require at least 72 and 368 queries"
)


@dataclass(frozen=True, eq=False, repr=False)
class Conclusions(Answer):
    """Result of `conclude`.

    Attributes
    ----------
    comparison : Comparison
        Each configuration against the baseline.
    tradeoff : Tradeoff
        Effectiveness against cost, and the front.
    effects : FactorEffects
        Effect of each factor.
    choice : SystemChoice
        Best configuration, and the expected score of choosing the best on new topics. If low values of the measure are
        better, signs are reversed.
    may_be_best : tuple of str
        Configurations that are not significantly worse than any other: the truly best one is among them with
        probability `level`.
    costs : dict
        By configuration.
    neighbors : tuple of NeighborRow
        Configurations that search vectors, compared with exact search.
    margin : float
        Margin of their equivalence tests.
    level : float
        Confidence level of intervals.
    """

    kind: ClassVar[str] = "conclusions"

    comparison: Comparison
    tradeoff: Tradeoff
    effects: FactorEffects
    choice: SystemChoice
    may_be_best: tuple[str, ...]
    costs: Costs
    slicing: Slicing | None
    queries: Mapping[str, str]
    neighbors: tuple[NeighborRow, ...]
    margin: float
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def scores(self) -> Scores:
        """Scores of all configurations."""
        return self.comparison.scores

    @property
    def provenance(self) -> Provenance:
        """Provenance of the scores."""
        return self.scores.provenance

    @property
    def measure(self) -> str:
        """Name of the measure."""
        return self.scores.measure_names[0]

    @property
    def baseline(self) -> str:
        """Configuration that the others are compared with."""
        return str(self.comparison.choices.baseline)

    @property
    def best(self) -> str:
        """Configuration with the best mean."""
        return self.scores.run_names[self.choice.best]

    @property
    def title(self) -> str:
        """Measure and number of configurations."""
        return f"{self.measure} of {counted(len(self.scores.runs), 'configuration')}"

    @property
    def headline(self) -> Headline:
        """Whether a single configuration may be the best, with the expected score of the choice on new topics."""
        n, total = self._complete_topics, len(self.scores.runs)
        status: Status = "same"
        word = "no single best configuration"
        sentence = f"{self.best} has the best mean; {len(self.may_be_best)} of {total} configurations may be the best."
        if shortage := insufficiency(n, "verdict"):
            status, word, sentence = "unknown", "not enough data", shortage.sentence("topic")
        elif total == 1:
            status, word, sentence = "info", "not compared", f"Only one configuration is scored, on {n} topics."
        elif len(self.may_be_best) == 1:
            status, word = "better", "best configuration"
            sentence = (
                f"Only {self.best} may be the best; every other configuration is significantly worse than another."
            )
        value, low_high = self._sign * self.choice.honest, self.scores.measures[0].properties.bounds
        axis = Axis(*low_high) if all(map(math.isfinite, low_high)) else None
        label = f"{self.measure} of the selected configuration on new topics"
        options: dict[str, Any] = {"ci": self.cross_validated_interval, "level": self.level, "axis": axis}
        return Headline(status, word, sentence, label, value, **options)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Best configuration, expected score of the choice, and limits of the conclusion."""
        sign, choice, measure = self._sign, self.choice, self.measure
        n, total = self._complete_topics, len(self.scores.runs)
        end_texts = [decimal(end, 3) for end in self.cross_validated_interval or ()]
        interval_text = f" ({format_level(self.level)} CI [{end_texts[0]}, {end_texts[1]}])" if end_texts else ""
        n_excluded = total - len(self.may_be_best)
        excluded_text = (
            f"; each of the other {n_excluded} is significantly worse than another configuration" if n_excluded else ""
        )
        candidates_text = (
            f"{len(self.may_be_best)} of {total} configurations may be the best: {first_few(self.may_be_best)}"
        )
        single_text = f"Only {self.may_be_best[0]} may be the best"
        return (
            (
                f"{self.best} has the best mean of {total} configurations: {measure} {decimal(sign * choice.naive)} on"
                f" {counted(n, 'topic')}. This configuration was selected on the same topics, so its mean tends to be"
                " too high."
            ),
            (
                f"Nested cross-validation estimates a mean of {decimal(sign * choice.honest)} on topics that were not"
                f" used for the selection{interval_text}, so the bias of the selection (optimism) is"
                f" {decimal(choice.optimism)}. This estimate is for the procedure that selects the best of {total}"
                f" configurations, not for {self.best} itself."
            ),
            f"{single_text if len(self.may_be_best) == 1 else candidates_text}{excluded_text}.",
            (
                f"These results hold for topics similar to these {n} topics, on this collection. On other collections,"
                " results can differ."
            ),
        )

    @property
    def _sign(self) -> float:
        return 1.0 if self.tradeoff.higher_is_better else -1.0

    @property
    def _complete_topics(self) -> int:
        """Number of topics with a score of every configuration."""
        return int((~np.isnan(self.scores.values[:, 0]).any(axis=0)).sum())

    @property
    def cross_validated_interval(self) -> IntervalLimits:
        """Interval of the expected score of the choice, clipped to the bounds of the measure."""
        if self.choice.interval is None:
            return None
        minimum, maximum = self.scores.measures[0].properties.bounds  # NaN if unbounded
        low, high = sorted(self._sign * end for end in self.choice.interval)
        return float(np.fmax(low, minimum)), float(np.fmin(high, maximum))

    def facts(self) -> Mapping[str, Any]:
        """Return the options, the best configuration, its scores, and the candidates for the best."""
        choice, sign = self.choice, self._sign
        return {
            "measure": self.measure,
            "baseline": self.baseline,
            "level": self.level,
            "choices": self.comparison.choices,
            "best": self.best,
            "naive_mean": sign * choice.naive,
            "cross_validated_mean": sign * choice.honest,
            "cross_validated_ci": self.cross_validated_interval,
            "optimism": choice.optimism,
            "may_be_best": self.may_be_best,
            "front": self.tradeoff.front,
            "omitted_interactions": self.effects.omitted_interactions,
            "full_factorial": self.effects.is_full_factorial,
        }

    def blocks(self) -> tuple[Block, ...]:
        """Return leaderboard, costs, comparisons with the baseline, effects of factors, and stability of the choice."""
        measure_comparison = self.comparison.measures[0]
        pairs = [pair.sentence for pair in measure_comparison.pairs]
        chart = [self._effect_chart()] if any(row.estimate for row in self.effects.main) else []
        effects = [self._effects_table(), *chart, Sentences(tuple(self._effect_sentences()))]
        effects += [self._slice_table(), Sentences(tuple(self._slice_sentences()))] if self.slicing is not None else []
        options = self.costs, self.margin, self.level
        neighbors = [neighbor_section(self.neighbors, self.scores, *options)] if self.neighbors else []
        return (
            Sentences(self.sentences),
            self._leaderboard(),
            Section("costs", "Effectiveness and cost", tuple(self._tradeoff_blocks())),
            *neighbors,
            Section(
                "vs-baseline",
                f"Comparison with {self.baseline}",
                (
                    self.comparison.pair_table(),
                    Sentences(tuple(pairs), "comparisons", folded=len(pairs) > _SHOWN_TOPICS),
                ),
            ),
            *data_tables(self.comparison.measures),
            Section("factors", "Effects of factors", (*effects, self._topic_table())),
            self._stability_table(),
        )

    def _tradeoff_blocks(self) -> Iterator[Block]:
        yield from self.tradeoff.charts().values()
        yield Sentences(self.tradeoff.sentences)

    def _leaderboard(self) -> Table:
        """Return the leaderboard, best first, with costs, and whether a configuration is on the front."""
        runs, baseline = self.comparison.ranked, self.baseline
        measure_comparison = self.comparison.measures[0]
        score = measure_comparison.column(self.measure, runs, baseline)
        tradeoff_rows = {row.run: row for row in self.tradeoff.rows}
        columns = [
            Column(
                "run", runs, TEXT, "configuration", details=["(baseline)" if run == baseline else "" for run in runs]
            ),
            Column(
                "value",
                score.values,
                NUMBER,
                self.measure,
                ci=score.ci,
                mark=score.mark,
                best=score.best,
                axis=Axis.over(score.values, score.ci or ()),
            ),
            Column("may_be_best", [run in self.may_be_best for run in runs], YES_NO, "may be best"),
        ]
        for name in cost_names(self.costs):
            values = [self.costs.get(run, {}).get(name) for run in runs]
            intervals = [_interval(self.costs, run, name) for run in runs]
            is_within_noise = [
                run != baseline
                and _overlap(*(_noise(self.costs, configuration, name) for configuration in (run, baseline)))
                for run in runs
            ]
            marks = [_NOISE if is_noise else "" for is_noise in is_within_noise]
            is_known = any(value is not None for value in values)
            column = Column(name, values, significant(3), ci=intervals if any(intervals) else None, mark=marks)
            columns.append(column if is_known else replace(column, only="data"))
        columns.append(Column("front", [tradeoff_rows[run].front for run in runs], YES_NO))
        note = f"{self.comparison.caption}; {_NOISE}: cost within the measurement noise of the baseline"
        if any(_noise(self.costs, run, name) for run in runs for name in QUANTILES):
            note += f"; {_LATENCY}"
        return Table("leaderboard", tuple(columns), note=note, one_piece=True)

    @property
    def _estimated_effects(self) -> tuple[Effect, ...]:
        """Main effects and estimated interactions."""
        return (*self.effects.main, *(effect for effect in self.effects.interactions if effect.estimate is not None))

    def _effects_table(self) -> Table:
        """Return the table of effects."""
        rows, n_main = self._estimated_effects, len(self.effects.main)
        wins = [row.wins for row in rows]
        columns = [
            *columns_of(rows, ("factor", TEXT), ("change", TEXT)),
            *_test_columns([row.estimate for row in rows], [row.sensitive for row in rows]),
            Column("sensitive", [row.sensitive for row in rows], only="data"),
            Column("few_topics", [self._few_topics(row) for row in rows], only="data"),
            *sensitivity_columns([row.sensitivity for row in rows]),
            *columns_of(rows, ("detectable", number(3)), "aliased"),
            *(Column(name, [counts and getattr(counts, name) for counts in wins], only="data")
              for name in ("wins", "ties", "losses")),
            Column("n", [row.estimate and row.estimate.n for row in rows], only="data"),
            Column("p", [row.estimate and row.estimate.p for row in rows], only="data"),
            Column("between_p", [row.between_p for row in rows], number(3), "p between slices",
                   only="" if self.slicing is not None else "data"),
        ]  # fmt: skip
        options = self.comparison.choices
        few_note = f" ({SENSITIVE} if sensitive to a few topics)" if any(row.sensitive for row in rows) else ""
        slice_note = (
            "; p between slices: test whether the effect is equal on all slices, Holm-corrected"
            if self.slicing is not None
            else ""
        )
        note = (
            f"differences in {self.measure}, averaged over the levels of the other factors; interaction: effect of two"
            " changes together minus the sum of their separate effects;"
            f" {_interval_levels(row.estimate for row in rows)}intervals and tests over topics; {SIGNIFICANT}"
            f" significant at alpha = {options.alpha:g}{few_note}, corrected separately for main effects and"
            f" interactions ({correction_name(options.correction)}){slice_note}"
        )
        values, baseline_index = self.scores.values[:, 0], self.scores.run_names.index(self.baseline)
        estimated = [row for row in self.effects.main if row.estimate]
        if all(
            any(np.allclose(row.values, scores - values[baseline_index], equal_nan=True) for scores in values)
            for row in estimated
        ):
            note = f"{note}; each effect equals the difference between one configuration and {self.baseline}"
        groups = ["Main effects"] * n_main + ["Interactions"] * (len(rows) - n_main)
        return Table("effects", tuple(columns), note=note, labels=2, groups=groups)

    def _effect_chart(self) -> Chart:
        """Plot the main effects. Names of interactions are too long for the chart."""
        rows = [row for row in self.effects.main if row.estimate is not None]
        estimates = [row.estimate for row in rows if row.estimate is not None]
        columns = (
            Column("effect", [f"{row.factor}: {row.change}" for row in rows], TEXT),
            Column("value", [estimate.difference for estimate in estimates], DIFFERENCE,
                   f"difference in {self.measure}", ci=[estimate.interval for estimate in estimates]),
        )  # fmt: skip
        return Chart(
            "effects",
            f"Effect of each factor on {self.measure}",
            Table("effects_in_chart", columns, only="people"),
            f"Effect of each change of a setting on {self.measure}, with its confidence interval.",
            y="effect",
            lines=(ReferenceLine("x", 0.0),),
        )

    def _effect_sentences(self) -> Iterator[str]:
        """Yield sentences on significant, insignificant, and inestimable effects."""
        for effect in self._estimated_effects:
            if effect.estimate is not None and effect.estimate.significant:
                above_sum = ", in addition to the sum of the two separate effects" if len(effect.factors) > 1 else ""
                sensitivity_text = "".join(
                    f" {text}" for text in sensitivity_sentences(effect.sensitivity, self._few_topics(effect))
                )
                size = f"{self.measure} {_format_effect(effect.estimate)}{above_sum}"
                yield f"The effect of {effect.factor} ({effect.change}) is significant: {size}.{sensitivity_text}"
        insignificant = [effect for effect in self.effects.main if effect.estimate and not effect.estimate.significant]
        if insignificant:
            detectable = [effect.detectable for effect in insignificant if not math.isnan(effect.detectable)]
            power_text = (
                f" The tests would often miss an effect below {decimal(max(detectable), 3)}." if detectable else ""
            )
            changes = [f"{effect.factor} from {effect.change}" for effect in insignificant]
            verdict = (
                f"The change of {changes[0]} has no significant effect"
                if len(changes) == 1
                else f"These changes have no significant effect: {first_few(changes)}"
            )
            shortage = insufficiency(max(effect.estimate.n for effect in insignificant if effect.estimate), "verdict")
            shortage_text = f" {shortage.sentence('topic')}" if shortage else ""
            yield f"{verdict}. This does not show that there is no effect.{power_text}{shortage_text}"
        for effect in (*self.effects.main, *self.effects.interactions):
            if effect.estimate is None and effect.aliased:
                yield (
                    f"The effect of {effect.factor} ({effect.change}) cannot be separated from the effect of"
                    f" {listed(effect.aliased)}."
                )
        for effect in self.effects.main:
            if effect.estimate is not None and effect.held_levels:
                setting_noun = "this setting" if len(effect.held_levels) == 1 else "these settings"
                yield (
                    f"The effect of {effect.factor} ({effect.change}) is estimated only from configurations"
                    f" with {listed(effect.held_levels)}, because only one of the two levels of {effect.factor} uses"
                    f" {setting_noun}."
                )
        if self.effects.omitted_interactions:
            is_partly_estimated = any(
                effect.estimate and effect.factor in self.effects.omitted_interactions
                for effect in self.effects.interactions
            )
            other_text = (
                ", and that the factors of these interactions have no other interactions" if is_partly_estimated else ""
            )
            yield (
                "Some combinations were not run, so these interactions cannot be estimated:"
                f" {first_few(self.effects.not_estimated)}. The main effects assume that the listed interactions are"
                f" 0{other_text}. Otherwise, the main effects hold only for the combinations of levels that were run."
            )

    def _few_topics(self, effect: Effect) -> tuple[str, ...]:
        """Return the topics that a significant effect depends on."""
        topic_indices = () if effect.sensitivity is None else effect.sensitivity.few_topics
        return tuple(self.scores.query_ids[topic_index] for topic_index in topic_indices)

    def _slice_table(self) -> Table:
        """Return the table of main effects by slice."""
        rows = [(effect, slice_effect) for effect in self.effects.main for slice_effect in effect.slices]
        columns = (
            *columns_of([effect for effect, _ in rows], ("factor", TEXT), ("change", TEXT)),
            Column("slice", [slice_effect.slice for _, slice_effect in rows], TEXT),
            Column("n", [slice_effect.estimate.n for _, slice_effect in rows], COUNT),
            *_test_columns([slice_effect.estimate for _, slice_effect in rows], [False] * len(rows)),
        )
        correction = correction_name(self.comparison.choices.correction)
        levels = _interval_levels(slice_effect.estimate for _, slice_effect in rows)
        note = f"{levels}p-values corrected over all rows ({correction}); slices with few topics are not tested"
        return Table("slices", columns, "Main effects by slice", note=note, labels=3)

    def _slice_sentences(self) -> Iterator[str]:
        """Yield sentences on differences of effects between slices."""
        alpha = self.comparison.choices.alpha
        tested_effects = [effect for effect in self.effects.main if effect.between and not math.isnan(effect.between_p)]
        for effect in tested_effects:
            if effect.between_p <= alpha:
                significant = [part for part in effect.slices if part.estimate.significant]
                names = listed([f"{part.slice} {_format_effect(part.estimate)}" for part in significant])
                slices_text = (
                    f"; significant effects: {names}" if significant else "; the effect is not significant in any slice"
                )
                yield (
                    f"The effect of {effect.factor} ({effect.change}) differs between slices"
                    f" (p {p_text(effect.between_p, alpha)}){slices_text}."
                )
        homogeneous = [f"{effect.factor} ({effect.change})" for effect in tested_effects if effect.between_p > alpha]
        if homogeneous:
            yield f"No significant difference between slices in the effect of {first_few(homogeneous)}."

    def _topic_table(self) -> Table:
        """Return the table of topics with the largest effects."""
        ids = self.scores.query_ids
        rows = [(effect, i) for effect in self.effects.main for i in effect.topics(_SHOWN_TOPICS)]
        members = [[] if self.slicing is None else np.flatnonzero(self.slicing.members[:, i]).tolist() for _, i in rows]
        slice_names = () if self.slicing is None else self.slicing.names
        columns = [
            *columns_of([effect for effect, _ in rows], ("factor", TEXT), ("change", TEXT)),
            Column("query_id", [ids[i] for _, i in rows], TEXT, "topic"),
            Column("difference", [float(effect.values[i]) for effect, i in rows], DIFFERENCE),
            Column("slices", [", ".join(slice_names[index] for index in indices) for indices in members], TEXT,
                   only="" if slice_names else "data"),
            Column("query", [self.queries.get(ids[i], "") for _, i in rows], TEXT, below=True,
                   only="" if self.queries else "data"),
        ]  # fmt: skip
        return Table("effect_topics", tuple(columns), "Topics with the largest effects", labels=3)

    def _stability_table(self) -> Table:
        """Return how often each configuration is the best when some topics are left out."""
        shares = self.choice.shares
        order = [i for i in np.argsort(-shares, kind="stable").tolist() if shares[i] > 0]
        columns = (
            Column("run", [self.scores.run_names[i] for i in order], TEXT, "configuration"),
            Column("share", shares[order].tolist(), SHARE, "selected"),
        )
        note = (
            "selected: share of cross-validation folds in which the configuration is the best on the training topics,"
            " which are the topics of all other folds"
        )
        return Table("selection_shares", columns, "Stability of the selection", note=note)


def _test_columns(estimates: Sequence[Any], sensitive: Sequence[bool]) -> tuple[Column, ...]:
    """Return the columns of tests: the difference with its interval, and the corrected p-value."""
    differences = [estimate and estimate.difference for estimate in estimates]
    intervals = [estimate and estimate.interval for estimate in estimates]
    return (
        Column(
            "difference",
            differences,
            DIFFERENCE,
            ci=intervals,
            axis=Axis.over(differences, intervals, "CI", 0.0),
            mark=[
                (SENSITIVE if is_sensitive else SIGNIFICANT) if estimate and estimate.significant else ""
                for estimate, is_sensitive in zip(estimates, sensitive, strict=True)
            ],
        ),
        Column("adjusted", [estimate and estimate.decisive_p for estimate in estimates], number(3), "adjusted p"),
        Column("significant", [estimate and estimate.significant for estimate in estimates], only="data"),
    )


def _interval_levels(estimates: Iterable[Any]) -> str:
    """Format the confidence levels of intervals."""
    levels = sorted(
        {estimate.level for estimate in estimates if estimate is not None and estimate.interval is not None},
        reverse=True,
    )
    return f"{' and '.join(map(format_level, levels))} intervals; " if levels else ""


def _format_effect(estimate: Any) -> str:
    low, high = estimate.interval or (math.nan, math.nan)
    interval = f"{format_level(estimate.level)} CI [{decimal(low, 3, '+')}, {decimal(high, 3, '+')}]"
    p = p_text(estimate.decisive_p, estimate.alpha)
    return f"{decimal(estimate.difference, 4, '+')}, {interval}, p {p}, n = {counted(estimate.n, 'topic')}"


def cost_names(costs: Costs) -> list[str]:
    """Return the names of costs in their order, without intervals and noise."""
    names = dict.fromkeys(name for run_costs in costs.values() for name in run_costs)
    return [name for name in names if not name.endswith(("_ci", "_noise"))]


def _interval(costs: Costs, run: str, name: str) -> IntervalLimits:
    return costs.get(run, {}).get(f"{name}_ci")


def _noise(costs: Costs, run: str, name: str) -> IntervalLimits:
    """Return the range of a cost over repeated measurements."""
    return costs.get(run, {}).get(f"{name}_noise")


def _overlap(first: IntervalLimits, second: IntervalLimits) -> bool:
    return first is not None and second is not None and first[0] <= second[1] and second[0] <= first[1]
