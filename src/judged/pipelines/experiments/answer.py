"""What `conclude` returns: the leaderboard with costs, the front, effects of factors, and what the choice is worth."""

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
    format_level,
    sensitivity_columns,
)
from judged.pipelines.experiments.limits import QUANTILES
from judged.results import Answer, Chart, ReferenceLine, Section, Sentences, Table, counted, listed
from judged.results.blocks import first_few
from judged.results.decimals import decimal, p_text
from judged.results.table import COUNT, NUMBER, SHARE, TEXT, YES_NO, Column, columns_of, number, significant
from judged.stats.sensitivity import sensitivity_sentences
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.comparison import Comparison
    from judged.comparison.slicing import Slicing
    from judged.diagnosis.tradeoff import Tradeoff
    from judged.pipelines.experiments.effects import Effect, FactorEffects
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.table import IntervalLimits
    from judged.scoring.evaluation import Scores
    from judged.scoring.evaluation.facts import Provenance
    from judged.stats.selection import SystemChoice

Costs: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Of each configuration, by name: a number, None where it is not known; under ``<name>_ci`` its interval, and under
``<name>_noise`` how far it varied when it was measured again, None where that was too rarely."""

_SHOWN_TOPICS = 3
_NOISE = "\N{ALMOST EQUAL TO}"
_LATENCY = (
    "p50_ms and p95_ms: a quantile over the queries of a round, of rounds the median; in brackets its 95% interval over"
    " queries, which p95_ms has from 72 queries on"
)


@dataclass(frozen=True, eq=False, repr=False)
class Conclusions(Answer):
    """What `conclude` returns.

    Attributes
    ----------
    comparison : Comparison
        Each configuration against the baseline.
    tradeoff : Tradeoff
        Effectiveness against cost, and the front.
    effects : FactorEffects
        What each factor does.
    choice : SystemChoice
        The best configuration, and what choosing it so is worth on topics that did not choose; of a measure that is
        better low, with the signs turned.
    may_be_best : tuple of str
        The configurations that no other is significantly better than: the truly best one is among them with the
        probability `level`.
    costs : dict
        By configuration.
    level : float
        Of intervals.
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
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def scores(self) -> Scores:
        """What it rests on."""
        return self.comparison.scores

    @property
    def provenance(self) -> Provenance:
        """What the scores rest on."""
        return self.scores.provenance

    @property
    def measure(self) -> str:
        """By which it is concluded."""
        return self.scores.measure_names[0]

    @property
    def baseline(self) -> str:
        """The configuration that the others are compared with."""
        return str(self.comparison.choices.baseline)

    @property
    def best(self) -> str:
        """The configuration with the best mean."""
        return self.scores.run_names[self.choice.best]

    @property
    def title(self) -> str:
        """What is concluded on."""
        return f"{self.measure} of {counted(len(self.scores.runs), 'configuration')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which is best, what that is worth, and how far it may be concluded."""
        sign, chosen, measure = self._sign, self.choice, self.measure
        n, of = self._complete, len(self.scores.runs)
        ends = [decimal(end, 3) for end in self.honest_interval or ()]
        limits = f" ({format_level(self.level)} interval {ends[0]} to {ends[1]})" if ends else ""
        rest = of - len(self.may_be_best)
        others = f"; each of the other {rest} is significantly worse than some other" if rest else ""
        many = f"{len(self.may_be_best)} of {of} may be the best: {first_few(self.may_be_best)}"
        alone = f"{self.may_be_best[0]} alone may be the best"
        return (
            (
                f"{self.best} has the best mean of {of} configurations: {measure} {decimal(sign * chosen.naive)} on the"
                f" {counted(n, 'topic')} that chose it, which favors it."
            ),
            (
                f"By nested cross-validation, picking the best in this way scores {decimal(sign * chosen.honest)} on"
                f" topics that took no part in the choice{limits}: an optimism of {decimal(chosen.optimism)}. This"
                f" estimates what the procedure of picking one of these {of} scores, not what {self.best} does."
            ),
            f"{alone if len(self.may_be_best) == 1 else many}{others}.",
            f"This holds for topics like these {n}, on this collection: another collection may say otherwise.",
        )

    @property
    def _sign(self) -> float:
        return 1.0 if self.tradeoff.higher_is_better else -1.0

    @property
    def _complete(self) -> int:
        """The topics that every configuration has a score of."""
        return int((~np.isnan(self.scores.values[:, 0]).any(axis=0)).sum())

    @property
    def honest_interval(self) -> IntervalLimits:
        """Of what choosing the best scores, within what the measure can be."""
        if self.choice.interval is None:
            return None
        least, most = self.scores.measures[0].properties.bounds  # NaN: none
        low, high = sorted(self._sign * end for end in self.choice.interval)
        return float(np.fmax(low, least)), float(np.fmin(high, most))

    def facts(self) -> Mapping[str, Any]:
        """Give the choices, the best, the numbers of its choice, and what may be best."""
        chosen, sign = self.choice, self._sign
        return {
            "measure": self.measure,
            "baseline": self.baseline,
            "level": self.level,
            "choices": self.comparison.choices,
            "best": self.best,
            "naive": sign * chosen.naive,
            "honest": sign * chosen.honest,
            "honest_ci": self.honest_interval,
            "optimism": chosen.optimism,
            "may_be_best": self.may_be_best,
            "front": self.tradeoff.front,
            "assumed": self.effects.assumed,
            "full": self.effects.full,
        }

    def blocks(self) -> tuple[Block, ...]:
        """Give the leaderboard, costs, the baseline's comparison, the effects of factors, and the choice."""
        found = self.comparison.measures[0]
        pairs = [pair.sentence for pair in found.pairs]
        chart = [self._chart()] if any(row.found for row in self.effects.main) else []
        effects = [self._effects(), *chart, Sentences(tuple(self._said()))]
        effects += [self._by_slice(), Sentences(tuple(self._varying()))] if self.slicing is not None else []
        return (
            Sentences(self.sentences),
            self._leaderboard(),
            Section("costs", "Gain against cost", tuple(self._fronts())),
            Section(
                "against-baseline",
                f"Against {self.baseline}",
                (self.comparison.pair_table(), Sentences(tuple(pairs), "against", folded=len(pairs) > _SHOWN_TOPICS)),
            ),
            *data_tables(self.comparison.measures),
            Section("factors", "What each factor does", (*effects, self._topics())),
            self._picked(),
        )

    def _fronts(self) -> Iterator[Block]:
        yield from self.tradeoff.charts().values()
        yield Sentences(self.tradeoff.sentences)

    def _leaderboard(self) -> Table:
        """Lay out a row a configuration, best first: effectiveness, costs, and whether it is on the front."""
        runs, base = self.comparison.ranked, self.baseline
        found = self.comparison.measures[0]
        score = found.column(self.measure, runs, base)
        rows = {row.run: row for row in self.tradeoff.rows}
        columns = [
            Column("run", runs, TEXT, "configuration", details=["(baseline)" if run == base else "" for run in runs]),
            Column("value", score.values, NUMBER, self.measure, ci=score.ci, mark=score.mark, best=score.best),
            Column("may_be_best", [run in self.may_be_best for run in runs], YES_NO, "may be best"),
        ]
        for name in cost_names(self.costs):
            values = [self.costs.get(run, {}).get(name) for run in runs]
            ends = [_ends(self.costs, run, name) for run in runs]
            noisy = [run != base and _overlap(*(_noise(self.costs, one, name) for one in (run, base))) for run in runs]
            marks = [_NOISE if inside else "" for inside in noisy]
            known = any(value is not None for value in values)
            shown = Column(name, values, significant(3), ci=ends if any(ends) else None, mark=marks)
            columns.append(shown if known else replace(shown, only="data"))
        columns.append(Column("front", [rows[run].front for run in runs], YES_NO))
        note = f"{self.comparison.caption}; {_NOISE} inside the noise of the baseline: measured again, the two overlap"
        if any(_noise(self.costs, run, name) for run in runs for name in QUANTILES):
            note += f"; {_LATENCY}"
        return Table("leaderboard", tuple(columns), note=note, one_piece=True)

    @property
    def _shown(self) -> tuple[Effect, ...]:
        """All main effects, and the interactions that were estimated."""
        return (*self.effects.main, *(effect for effect in self.effects.interactions if effect.found is not None))

    def _effects(self) -> Table:
        """Lay out a row an effect."""
        rows, main = self._shown, len(self.effects.main)
        wins = [row.wins for row in rows]
        columns = [
            *columns_of(rows, ("factor", TEXT), ("change", TEXT)),
            *_tested([row.found for row in rows], [row.sensitive for row in rows]),
            Column("sensitive", [row.sensitive for row in rows], only="data"),
            Column("few_topics", [self._few_topics(row) for row in rows], only="data"),
            *sensitivity_columns([row.sensitivity for row in rows]),
            *columns_of(rows, ("detectable", number(3)), "aliased"),
            *(Column(name, [one and getattr(one, name) for one in wins], only="data")
              for name in ("wins", "ties", "losses")),
            Column("n", [row.found and row.found.n for row in rows], only="data"),
            Column("p", [row.found and row.found.p for row in rows], only="data"),
            Column("between_p", [row.between_p for row in rows], number(3), "between slices",
                   only="" if self.slicing is not None else "data"),
        ]  # fmt: skip
        how = self.comparison.choices
        few = f" ({SENSITIVE} if sensitive to a few topics)" if any(row.sensitive for row in rows) else ""
        between = "; between slices: p of the same effect on all (Holm)" if self.slicing is not None else ""
        note = (
            f"differences in {self.measure}, averaged over the levels of the other factors alike; an interaction is"
            f" what two changes together do more than the sum of both; {_levels(row.found for row in rows)}intervals"
            f" and tests are over topics;"
            f" {SIGNIFICANT} significant at alpha = {how.alpha:g}{few}, main effects and interactions each corrected"
            f" for their number ({correction_name(how.correction)}){between}"
        )
        values, at = self.scores.values[:, 0], self.scores.run_names.index(self.baseline)
        seen = [row for row in self.effects.main if row.found]
        if all(any(np.allclose(row.values, run - values[at], equal_nan=True) for run in values) for row in seen):
            note = f"{note}; each is one configuration against {self.baseline}, the same difference as in that table"
        groups = ["Main effects"] * main + ["Interactions"] * (len(rows) - main)
        return Table("effects", tuple(columns), note=note, labels=2, groups=groups)

    def _chart(self) -> Chart:
        """Draw the main effects; interactions have names that are too long for it."""
        rows = [row for row in self.effects.main if row.found is not None]
        found = [row.found for row in rows if row.found is not None]
        columns = (
            Column("effect", [f"{row.factor}: {row.change}" for row in rows], TEXT),
            Column("value", [one.difference for one in found], DIFFERENCE, f"difference in {self.measure}",
                   ci=[one.interval for one in found]),
        )  # fmt: skip
        return Chart(
            "effects",
            f"What each factor does to {self.measure}",
            Table("effects_drawn", columns, only="people"),
            f"The effect of every change on {self.measure}, with its interval.",
            y="effect",
            lines=(ReferenceLine("x", 0.0),),
        )

    def _said(self) -> Iterator[str]:
        """Say which effects are shown, which are not, and what the configurations cannot tell."""
        for effect in self._shown:
            if effect.found is not None and effect.found.significant:
                more = " more than the sum of both" if len(effect.factors) > 1 else ""
                doubts = "".join(
                    f" {text}" for text in sensitivity_sentences(effect.sensitivity, self._few_topics(effect))
                )
                yield f"{effect.factor} ({effect.change}): {self.measure} {_size(effect.found)}{more}.{doubts}"
        unclear = [effect for effect in self.effects.main if effect.found and not effect.found.significant]
        if unclear:
            least = [effect.detectable for effect in unclear if not math.isnan(effect.detectable)]
            missed = f": one below {decimal(max(least), 3)} would often be missed" if least else ""
            names = first_few([f"{effect.factor} ({effect.change})" for effect in unclear])
            lacking = insufficiency(max(effect.found.n for effect in unclear if effect.found), "verdict")
            why = f" {lacking.sentence('topic')}" if lacking else ""
            yield f"No effect is shown of {names}. That does not make it none{missed}.{why}"
        for effect in (*self.effects.main, *self.effects.interactions):
            if effect.found is None and effect.aliased:
                yield f"{effect.factor} ({effect.change}) cannot be told apart from {listed(effect.aliased)}."
        for effect in self.effects.main:
            if effect.found is not None and effect.held:
                which = "a factor" if len(effect.held) == 1 else "factors"
                yield (
                    f"{effect.factor} ({effect.change}) is what changes at {listed(effect.held)}: {which} that only one"
                    " of the two has."
                )
        if self.effects.assumed:
            partly = any(effect.found and effect.factor in self.effects.assumed for effect in self.effects.interactions)
            other = ", nor others of the same factors" if partly else ""
            yield (
                "Some combinations were not run, so that these interactions cannot be estimated:"
                f" {first_few(self.effects.unseen)}. The main effects assume that there are none{other}; if there are,"
                " they hold for the levels that were run together."
            )

    def _few_topics(self, effect: Effect) -> tuple[str, ...]:
        """Name the topics that a significant effect is sensitive to."""
        few = () if effect.sensitivity is None else effect.sensitivity.few_topics
        return tuple(self.scores.query_ids[at] for at in few)

    def _by_slice(self) -> Table:
        """Lay out a row for each main effect on each slice."""
        rows = [(effect, part) for effect in self.effects.main for part in effect.slices]
        columns = (
            *columns_of([effect for effect, _ in rows], ("factor", TEXT), ("change", TEXT)),
            Column("slice", [part.slice for _, part in rows], TEXT),
            Column("n", [part.found.n for _, part in rows], COUNT),
            *_tested([part.found for _, part in rows], [False] * len(rows)),
        )
        how = correction_name(self.comparison.choices.correction)
        note = f"{_levels(part.found for _, part in rows)}p corrected ({how}) for all rows; slices of few topics are"
        note = f"{note} not tested"
        return Table("slices", columns, "Main effects by slice", note=note, labels=3)

    def _varying(self) -> Iterator[str]:
        """Say which effects differ between slices."""
        alpha = self.comparison.choices.alpha
        tested = [effect for effect in self.effects.main if effect.between and not math.isnan(effect.between_p)]
        for effect in tested:
            if effect.between_p <= alpha:
                here = [f"{part.slice} {_size(part.found)}" for part in effect.slices if part.found.significant]
                where = f"; it is shown on {listed(here)}" if here else "; on no slice by itself is it shown"
                yield (
                    f"{effect.factor} ({effect.change}) does not do the same on all slices"
                    f" (p {p_text(effect.between_p, alpha)}){where}."
                )
        same = [f"{effect.factor} ({effect.change})" for effect in tested if effect.between_p > alpha]
        if same:
            yield f"No difference between slices is shown for {first_few(same)}."

    def _topics(self) -> Table:
        """Name the topics that each main effect raises and lowers most."""
        ids = self.scores.query_ids
        rows = [(effect, at) for effect in self.effects.main for at in effect.topics(_SHOWN_TOPICS)]
        members = [
            [] if self.slicing is None else np.flatnonzero(self.slicing.members[:, at]).tolist() for _, at in rows
        ]
        names = () if self.slicing is None else self.slicing.names
        columns = [
            *columns_of([effect for effect, _ in rows], ("factor", TEXT), ("change", TEXT)),
            Column("query_id", [ids[at] for _, at in rows], TEXT, "topic"),
            Column("difference", [float(effect.values[at]) for effect, at in rows], DIFFERENCE),
            Column("slices", [", ".join(names[of] for of in part) for part in members], TEXT,
                   only="" if names else "data"),
            Column("query", [self.queries.get(ids[at], "") for _, at in rows], TEXT, below=True,
                   only="" if self.queries else "data"),
        ]  # fmt: skip
        return Table("effect_topics", tuple(columns), "Topics that show it most", labels=3)

    def _picked(self) -> Table:
        """Tell how often each configuration is picked where some topics are left out."""
        shares = self.choice.shares
        order = [at for at in np.argsort(-shares, kind="stable").tolist() if shares[at] > 0]
        columns = (
            Column("run", [self.scores.run_names[at] for at in order], TEXT, "configuration"),
            Column("share", shares[order].tolist(), SHARE, "picked"),
        )
        note = "of all folds of topics: each is scored by what the topics of the others pick"
        return Table("picked", columns, "How stable the choice is", note=note)


def _tested(found: Sequence[Any], sensitive: Sequence[bool]) -> tuple[Column, ...]:
    """Give the columns of tests: the difference with its interval, and the p-value that decides."""
    return (
        Column(
            "difference",
            [one and one.difference for one in found],
            DIFFERENCE,
            ci=[one and one.interval for one in found],
            mark=[
                (SENSITIVE if few else SIGNIFICANT) if one and one.significant else ""
                for one, few in zip(found, sensitive, strict=True)
            ],
        ),
        Column("adjusted", [one and one.decisive_p for one in found], number(3), "adjusted p"),
        Column("significant", [one and one.significant for one in found], only="data"),
    )


def _levels(found: Iterable[Any]) -> str:
    """Say at which levels intervals are."""
    levels = sorted({one.level for one in found if one is not None and one.interval is not None}, reverse=True)
    return f"{' and '.join(map(format_level, levels))} intervals; " if levels else ""


def _size(found: Any) -> str:
    low, high = found.interval or (math.nan, math.nan)
    return f"{decimal(found.difference, 4, '+')} ({decimal(low, 3, '+')} to {decimal(high, 3, '+')})"


def cost_names(costs: Costs) -> list[str]:
    """Give the costs in the order in which they come, without their intervals."""
    names = dict.fromkeys(name for of in costs.values() for name in of)
    return [name for name in names if not name.endswith(("_ci", "_noise"))]


def _ends(costs: Costs, run: str, name: str) -> IntervalLimits:
    return costs.get(run, {}).get(f"{name}_ci")


def _noise(costs: Costs, run: str, name: str) -> IntervalLimits:
    """Give what a cost was, from the least to the most, when it was measured again."""
    return costs.get(run, {}).get(f"{name}_noise")


def _overlap(one: IntervalLimits, other: IntervalLimits) -> bool:
    return one is not None and other is not None and one[0] <= other[1] and other[0] <= one[1]
