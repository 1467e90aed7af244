"""Report of a user study: differences of systems, for which people and topics, and the limits of the conclusions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from judged.errors import InputError
from judged.results import Answer, Sentences, counted
from judged.results.blocks import Note
from judged.results.decimals import decimal, p_text, percent
from judged.results.table import CHANGE, COUNT, NUMBER, P_VALUE, SHARE, TEXT, Column, Show, Table, columns_of
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import evaluate
from judged.stats.sufficiency import MIN_UNITS
from judged.studies.effects import (
    GroupEffect,
    LearningEffect,
    SystemEffect,
    VarianceComponents,
    group_effects,
    learning_effects,
    system_effects,
    variance_components,
)
from judged.studies.outcomes import (
    MIN_CORRELATED,
    MeasureAgreement,
    find_outcome,
    measure_agreement,
    measured_trials,
    outcomes,
)
from judged.studies.preference import (
    FEATURES,
    PairPreference,
    SearchBehavior,
    SideBias,
    Strength,
    pair_preferences,
    preference_strengths,
    search_behavior,
    side_bias,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.comparison import Pair
    from judged.results import Block
    from judged.studies.design import Design
    from judged.studies.outcomes import Outcome
    from judged.studies.records import StudyRecords

_MIN_FOR_VERDICT = MIN_UNITS["verdict"]
_VERDICTS = ("better", "worse", "different")


@dataclass(frozen=True, eq=False, repr=False)
class StudyReport(Answer):
    """Results of a user study.

    Parameters
    ----------
    name
        Title of the study.
    outcome
        Primary outcome. All other outcomes are exploratory.
    people, n, trials
        Numbers of people, topics, and trials, without practice.
    effects, learning, groups, components
        For each outcome: differences of systems, changes from task to task, differences of groups of people, and
        standard deviations.
    behaviors
        Search behavior by system and group.
    preferences, strengths, side_bias
        Preferences side by side, Bradley-Terry strengths, and the preference for the left list.
    agreements
        Correlations of a measure of the lists with the outcomes.
    offline
        Comparison of each pair of systems by judgments alone.
    level
        Confidence level of the intervals.
    """

    kind: ClassVar[str] = "study"
    main: ClassVar[str] = "effects"

    name: str
    outcome: str
    people: int
    n: int
    trials: int
    effects: tuple[SystemEffect, ...]
    learning: tuple[LearningEffect, ...]
    groups: tuple[GroupEffect, ...]
    components: tuple[VarianceComponents, ...]
    behaviors: tuple[SearchBehavior, ...]
    preferences: tuple[PairPreference, ...]
    strengths: tuple[Strength, ...]
    side_bias: SideBias | None
    agreements: tuple[MeasureAgreement, ...]
    offline: tuple[Pair, ...]
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Name of the study."""
        return self.name

    @property
    def primary_effects(self) -> tuple[SystemEffect, ...]:
        """Effects on the primary outcome."""
        return tuple(effect for effect in self.effects if effect.outcome == self.outcome)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Effects on the primary outcome, and preferences."""
        return (*map(self._effect_sentence, self.primary_effects), *map(_preference_sentence, self.preferences))

    def _effect_sentence(self, effect: SystemEffect) -> str:
        if any(map(math.isnan, effect.ci)):
            systems = zip((effect.first, effect.second), effect.means, effect.counts, strict=True)
            means = [
                f"{decimal(mean, 2)} for {name} ({counted(count, 'trial')})" for name, mean, count in systems if name
            ]
            change = (
                "" if math.isnan(effect.difference) else f"; the difference is {decimal(effect.difference, 2, '+')}"
            )
            return f"{effect.outcome}: the mean is {' and '.join(means)}{change}. Not tested. {effect.reason}"
        population = "other participants and topics" if effect.n > 1 else "other participants"
        change, low, high = (decimal(value, 2, "+") for value in (effect.difference, *effect.ci))
        verdict = effect_verdict(effect, self.level)
        result = f"No significant difference in {effect.outcome}" if effect.has_verdict else effect.outcome
        if verdict in _VERDICTS:
            relation = "differs significantly from" if verdict == "different" else f"is significantly {verdict} than"
            result = f"{effect.second} {relation} {effect.first} in {effect.outcome}"
        units = counted(effect.people, "participant") + (f", {effect.n} topics" if effect.n > 1 else "")
        numbers = f"{change}, {percent(self.level)} CI [{low}, {high}], p {p_text(effect.adjusted, 1 - self.level)}"
        reason = "" if effect.has_verdict else f" No verdict. {effect.reason}"
        result += f", generalized to {population}"
        return f"{result}: {effect.second} minus {effect.first} is {numbers}, n = {units}.{reason}"

    def facts(self) -> Mapping[str, Any]:
        """Return the metadata shown with the results."""
        names = ("name", "outcome", "people", "n", "trials", "level")
        return {name: getattr(self, name) for name in names}

    def blocks(self) -> tuple[Block, ...]:
        """Return the results, primary before exploratory ones, and the limits of the conclusions."""
        tables = (
            (self.preferences, self._preferences),
            (self.strengths, self._strengths),
            (self.offline, self._offline),
            (self.agreements, self._agreements),
            (self.learning, self._learning),
            (self.groups, self._groups),
            (self.behaviors, self._searching),
            (self.components, self._components),
        )
        optional = (table() for rows, table in tables if rows)
        return Sentences(self.sentences), self._effects(), *optional, Sentences(self._caveats())

    def _preferences(self) -> Table:
        note = (
            "Share preferred: share of wins plus half of the share of ties, averaged over participants. p: sign-flip"
            " test."
        )
        return Table("preferences", columns_of(self.preferences, *_PREFERENCES), "Side-by-side preferences", note=note)

    def _strengths(self) -> Table:
        rows = self.strengths
        strength = Column("strength", [row.strength for row in rows], CHANGE, ci=[row.ci for row in rows])
        note = (
            "Bradley-Terry strengths: the strength of system A minus the strength of system B is the log odds that A is"
            " preferred to B."
        )
        return Table("strengths", (*columns_of(rows, ("system", TEXT)), strength), "Strengths of systems", note=note)

    def _components(self) -> Table:
        note = "Standard deviations from a mixed model. 'x' marks the interaction of two factors."
        columns = columns_of(self.components, *_COMPONENTS)
        return Table("components", columns, "Variance components", note=note, folded=True)

    def _effects(self) -> Table:
        rows = sorted(self.effects, key=lambda row: row.outcome != self.outcome)
        differences = [row.difference for row in rows]
        trials = ((f"{side}_trials", [row.counts[i] for row in rows]) for i, side in enumerate(("first", "second")))
        columns = (
            *columns_of(rows, ("outcome", TEXT), ("first", TEXT), ("second", TEXT)),
            Column("first_mean", [row.means[0] for row in rows], _TWO_DECIMALS, "mean of first"),
            Column("second_mean", [row.means[1] for row in rows], _TWO_DECIMALS, "mean of second"),
            Column("difference", differences, _SIGNED, ci=[row.ci for row in rows]),
            Column("adjusted_p", [row.adjusted for row in rows], P_VALUE, "p"),
            Column(
                "people_difference",
                differences,
                _SIGNED,
                "difference for these topics",
                ci=[row.people_ci for row in rows],
            ),
            Column("verdict", [effect_verdict(row, self.level) for row in rows], TEXT),
            Column("p", [row.p for row in rows], P_VALUE, only="data"),
            _reason_column(rows),
            *(Column(name, counts, COUNT, only="data") for name, counts in trials),
            *(replace(column, only="data") for column in columns_of(rows, *_EFFECT_DATA)),
        )
        note = (
            f"Differences are second system minus first system. The {percent(self.level)} CI in the column"
            f" 'difference' generalizes to other participants and topics. The CI in the column 'difference for these"
            f" topics' generalizes only to other participants. p is Holm-corrected. Only the primary outcome is"
            f" confirmatory."
        )
        return Table("effects", columns, "Differences between systems", labels=3, note=note)

    def _offline(self) -> Table:
        # The two comparisons can list a pair in different orders.
        effects = {frozenset((effect.first, effect.second)): effect for effect in self.primary_effects}
        pairs = [pair for pair in self.offline if frozenset((pair.first, pair.second)) in effects]
        better_by_people = [_better_system(effects[frozenset((pair.first, pair.second))], self.level) for pair in pairs]
        better_by_judgments = [pair.better if pair.significant else "" for pair in pairs]
        agree = ["undecided" if "" in systems else "yes" if len(set(systems)) == 1 else "no"
                 for systems in zip(better_by_people, better_by_judgments, strict=True)]  # fmt: skip
        differences, intervals = [pair.result.difference for pair in pairs], [pair.result.interval for pair in pairs]
        columns = (
            *columns_of(pairs, ("measure", TEXT), ("first", TEXT), ("second", TEXT)),
            Column("difference", differences, CHANGE, ci=intervals),
            Column("p", [pair.adjusted for pair in pairs], P_VALUE),
            Column("by_judgments", better_by_judgments, TEXT, "better by judgments"),
            Column("by_people", better_by_people, TEXT, f"better by {self.outcome}"),
            Column("agree", agree, TEXT),
        )
        note = (
            "Offline differences are means over all topics with judgments, but participants saw only the topics"
            " of the study."
        )
        return Table("offline", columns, "Offline evaluation compared with participants", note=note)

    def _agreements(self) -> Table:
        rows = self.agreements
        within, intervals = [row.within for row in rows], [row.within_ci for row in rows]
        columns = (
            *columns_of(
                rows, ("measure", TEXT), ("outcome", TEXT), ("trials", COUNT), ("people", COUNT, "participants")
            ),
            Column("pooled", [row.pooled for row in rows], _CORRELATION, ci=[row.ci for row in rows]),
            Column("within", within, _CORRELATION, "within participants", ci=intervals),
            Column("tau", [row.tau for row in rows], _CORRELATION, "tau within participants"),
            _reason_column(rows),
            Column("positive", [_positive_share(row.persons) for row in rows], SHARE, "participants with r > 0"),
        )
        note = (
            "Pearson's correlation over trials: pooled, and within participants (after the mean of each participant"
            " is subtracted). Confidence intervals are over participants."
        )
        return Table("agreements", columns, "Correlation of the measure with outcomes", note=note)

    def _learning(self) -> Table:
        rows, labels = self.learning, _label_columns(self.learning, "outcome", "system", "minus")
        return Table(
            "learning",
            (
                *labels,
                Column("change", [row.change for row in rows], _SIGNED, "change per task", ci=[row.ci for row in rows]),
                *columns_of(rows, ("p", P_VALUE), ("first", _TWO_DECIMALS, "first task")),
                *columns_of(rows, ("last", _TWO_DECIMALS, "last task")),
            ),
            "Learning effects",
            labels=sum(not column.only for column in labels),
            note="The model includes participants, topics, and systems. A row without a system combines all systems."
            " In a row with 'minus', the change with that system is subtracted. CIs and p are for other participants"
            " with these topics. p is not corrected.",
            folded=True,
        )

    def _groups(self) -> Table:
        rows, labels = self.groups, _label_columns(self.groups, "outcome", "first", "second", "system", "minus")
        return Table(
            "groups",
            (
                *labels,
                Column("difference", [row.difference for row in rows], _SIGNED, ci=[row.ci for row in rows]),
                *columns_of(rows, ("p", P_VALUE), ("people", COUNT, "participants")),
                _reason_column(rows),
            ),
            "Differences between groups",
            labels=sum(not column.only for column in labels),
            note="Differences are second group minus first group. A row with a system is an interaction: 'system' minus"
            " 'minus' in the second group, minus the same in the first group. p is Holm-corrected over the rows of an"
            " outcome. People are not assigned to groups at random, so a difference may have other causes.",
            folded=True,
        )

    def _searching(self) -> Table:
        rows, labels = self.behaviors, _label_columns(self.behaviors, "system", "variant", "group")
        strategies_per_person = Column(
            "strategies_per_person",
            [row.strategies_per_person for row in rows],
            _TWO_DECIMALS,
            "strategies per participant",
        )
        shares = (Column(name.replace(" ", "_"), [row.shares[name] for row in rows], SHARE, name) for name in FEATURES)
        return Table(
            "search_behavior",
            (*labels, *columns_of(rows, *_SEARCHING), strategies_per_person, *shares),
            "Search behavior by system",
            labels=sum(not column.only for column in labels),
            note="A strategy is a combination of the features in the last columns. Effective strategies:"
            " exponential of the entropy of strategies.",
            folded=True,
        )

    def _caveats(self) -> tuple[str, ...]:
        rows, topics, people = self.primary_effects, counted(self.n, "topic"), counted(self.people, "participant")
        conditions = {
            "The lack of a significant difference does not show that systems are equal. The data is compatible with all"
            " values in the interval.":
                any(effect_verdict(row, self.level) == "undecided" for row in rows),
            "A difference without a verdict is not evidence of equality.":
                not all(row.has_verdict for row in rows),
            f"With {topics}, intervals for other topics are unreliable.": self.n < _MIN_FOR_VERDICT,
            f"With {people}, intervals for other participants are unreliable. Permutation tests cannot reach p < 0.05.":
                self.people < _MIN_FOR_VERDICT,
            "Each interval is for one pair of systems, and is not corrected for multiple comparisons. p and the"
            " verdict are corrected.":
                len(rows) > 1,
            "Each participant used one system or variant. Differences between participants therefore widen the"
            " intervals.":
                any(row.design == "between" for row in rows),
        }  # fmt: skip
        exploratory = (
            f"All outcomes except {self.outcome} are exploratory. With many outcomes, some differ"
            f" significantly by chance."
        )
        return ("Limits of the conclusions:", *(caveat for caveat, holds in conditions.items() if holds), exploratory)


_TWO_DECIMALS = Show(lambda value: f"{value:.2f}", "float64")
_SIGNED = Show(lambda value: f"{value:+.2f}", "float64")
_CORRELATION = Show(lambda value: f"{value:.3f}", "float64")
_PREFERENCES = (("first", TEXT), ("second", TEXT), ("people", COUNT, "participants"), ("comparisons", COUNT),
              ("wins", COUNT), ("losses", COUNT), ("value", SHARE, "share preferred"), ("p", P_VALUE))  # fmt: skip
_COMPONENTS = (("outcome", TEXT), ("by_person", NUMBER, "participants"), ("by_topic", NUMBER, "topics"),
          ("people_by_system", NUMBER, "participants x systems"), ("topics_by_system", NUMBER, "topics x systems"),
          ("trials", NUMBER))  # fmt: skip


_SEARCHING = (("people", COUNT, "participants"), ("trials", COUNT), ("strategies", COUNT),
              ("effective_strategies", _TWO_DECIMALS, "effective strategies"))  # fmt: skip
_EFFECT_DATA = (("design", TEXT), ("people", COUNT), ("n", COUNT), ("people_p", P_VALUE), ("topics_p", P_VALUE),
                    ("mixed", _SIGNED), ("mixed_error", _TWO_DECIMALS))  # fmt: skip


def _label_columns(rows: Sequence[Any], *names: str) -> tuple[Column, ...]:
    """Return columns of texts; a column without any text is for data only."""
    columns = columns_of(rows, *((name, TEXT) for name in names))
    return tuple(replace(column, only="" if any(column.values) else "data") for column in columns)


def _reason_column(rows: Sequence[SystemEffect | MeasureAgreement | GroupEffect]) -> Column:
    """Return the column of reasons for missing results; it is shown if there is any reason."""
    reasons = [row.reason for row in rows]
    return Column("reason", reasons, TEXT, only="" if any(reasons) else "data")


def effect_verdict(effect: SystemEffect, level: float) -> str:
    """Return the verdict on the second system: better, worse, different, undecided, or no verdict."""
    if not effect.has_verdict:
        return "no verdict"
    # Without rounding, 1 - 0.95 is slightly above 0.05.
    if effect.adjusted > round(1 - level, 12):
        return "undecided"
    if not effect.better:  # neither more nor less of this outcome is better
        return "different"
    return "better" if (effect.difference > 0) == (effect.better == "more") else "worse"


def _better_system(effect: SystemEffect, level: float) -> str:
    return {"better": effect.second, "worse": effect.first}.get(effect_verdict(effect, level), "")


def report(
    records: StudyRecords,
    design: Design | None = None,
    *,
    outcome: str | None = None,
    qrels: Any = None,
    measured: Mapping[tuple[str, int], float] | None = None,
    measure: str = DEFAULT_MEASURE,
    level: float = 0.95,
    seed: int = 0,
) -> StudyReport:
    """Analyze the records of a user study.

    Parameters
    ----------
    records
        Records of the study.
    design
        Design with the scoring of questionnaires, the runs, and the judgments.
    outcome
        Primary outcome, chosen before the study. Default: the first.
    qrels
        Judgments. Default: those of the design.
    measured
        Score of the list of each trial, by participant and position. Default: the scores of the systems' runs.
    measure
        Name of the measure.
    level, seed
        Confidence level of the intervals; seed of the permutations.

    Raises
    ------
    InputError
        If no trial other than practice has an outcome, or the outcome does not exist.
    """
    from judged.data.qrels import Qrels

    source = qrels if qrels is not None else design.file(design.qrels) if design is not None and design.qrels else None
    judgments = None if source is None else Qrels.read(source) if isinstance(source, str) else Qrels.of(source)
    study_outcomes = outcomes(records, design, qrels=judgments)
    if not study_outcomes:
        problem = "at least one trial other than practice must have an outcome"
        raise InputError(problem, fix="add trials with answers, times, or actions", path=records.where)
    primary = find_outcome(study_outcomes, outcome) if outcome else study_outcomes[0]
    trials = [row for row in records["trials"].to_pylist() if not row["practice"]]
    people = len({row["participant"] for row in trials})
    offline: tuple[Pair, ...] = ()
    # Lists of an engine are unknown before the study, so only runs can be evaluated.
    runs = {} if design is None else {system.name: design.file(system.run) for system in design.systems if system.run}
    if measured is None and judgments is not None and runs:
        scores = evaluate(judgments, runs, [measure])
        measured = measured_trials(primary, scores, measure)
        offline = scores.compare(seed=seed).measures[0].pairs if len(runs) > 1 else ()
    groups = {row["participant"]: row["group"] for row in records["participants"].to_pylist()}
    # A preference for one side is noise for the systems if sides are balanced, but a warning for the reader.
    bias = side_bias(records, level=level, seed=seed)
    # Interface variants are a second factor; each factor is compared if the study has several of its values.
    factors: tuple[Literal["system", "variant"], ...] = ("system", "variant")
    names = {by: sorted({row[by] for row in trials}) for by in factors}
    compared: list[Literal["system", "variant"]] = [by for by in factors if len(names[by]) > 1] or ["system"]
    return StudyReport(
        design.title if design is not None else "Study",
        primary.name,
        people,
        len({row["query_id"] for row in trials}),
        len(trials),
        tuple(
            effect
            for each in study_outcomes
            for by in compared
            for effect in system_effects(each, by=by, names=names[by], level=level, seed=seed)
        ),
        tuple(
            row
            for each in study_outcomes
            for by in compared
            for row in learning_effects(each, by=by, level=level)
            if row.system or by == compared[0]
        ),
        tuple(
            row
            for each in study_outcomes
            for by in compared
            for row in group_effects(each, groups, by=by, level=level)
            if row.system or by == compared[0]
        ),
        tuple(row for each in study_outcomes if (row := variance_components(each, by=compared[0])) is not None),
        search_behavior(records),
        pair_preferences(records, seed=seed),
        preference_strengths(records, level=level),
        bias,
        _agreements(study_outcomes, measured or {}, measure, level),
        offline,
        level,
        (*records.notes, *_notes(trials, bias)),
    )


def _agreements(
    study_outcomes: Sequence[Outcome], measured: Mapping[tuple[str, int], float], measure: str, level: float
) -> tuple[MeasureAgreement, ...]:
    return tuple(
        measure_agreement(outcome, measured, measure, level=level)
        for outcome in study_outcomes
        if sum((trial.participant, trial.position) in measured for trial in outcome.values) >= MIN_CORRELATED
        and len({trial.value for trial in outcome.values}) > 1
    )


def _notes(trials: Sequence[Mapping[str, Any]], bias: SideBias | None) -> tuple[Note, ...]:
    unfinished = sum(row["started"] is not None and row["ended"] is None for row in trials)
    notes = list[Note]()
    if unfinished:
        text = f"{counted(unfinished, 'trial')} of {len(trials)} not finished; their answers are included"
        notes.append(Note("unfinished-trials", text))
    if bias is not None and bias.preferred:
        share = f"{percent(bias.left)} of their choices (p {p_text(bias.p, None)})"
        text = f"position bias: participants preferred the left list in {share}"
        notes.append(Note("side-preferred", text))
    return tuple(notes)


def _preference_sentence(row: PairPreference) -> str:
    choices = f"{row.second} was preferred {row.wins} times and {row.first} {row.losses} times"
    sizes = f"in {counted(row.comparisons, 'comparison')} by {counted(row.people, 'participant')}"
    test = f"Not tested. {row.reason}" if row.reason else f"p {p_text(row.p, None)}."
    return f"Side by side, {choices} {sizes}. {test}"


def _positive_share(correlations: Sequence[float]) -> float:
    return sum(r > 0 for r in correlations) / len(correlations) if correlations else math.nan
