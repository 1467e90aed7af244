"""`report`: what a study shows of its systems, for which people and topics, and what may not be concluded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from judged.errors import InputError
from judged.results import Answer, Sentences, counted
from judged.results.blocks import Note
from judged.results.decimals import decimal, percent
from judged.results.table import CHANGE, COUNT, NUMBER, P_VALUE, SHARE, TEXT, Column, Show, Table, columns_of
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import evaluate
from judged.stats.sufficiency import MIN_UNITS
from judged.studies.effects import Effect, Parts, Practice, effects, parts, practice
from judged.studies.outcomes import FEWEST, Agreement, measure_agreement, measured_trials, outcome_of, outcomes
from judged.studies.preference import (
    FEATURES,
    Preferred,
    Searching,
    Side,
    Strength,
    preferred,
    searching,
    sides,
    strengths_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.comparison import Pair
    from judged.results import Block
    from judged.studies.design import Design
    from judged.studies.outcomes import Outcome
    from judged.studies.records import StudyRecords

_FEW = MIN_UNITS["verdict"]
_VERDICTS = ("better", "worse", "different")


@dataclass(frozen=True, eq=False, repr=False)
class StudyReport(Answer):
    """What a study shows.

    Parameters
    ----------
    name
        What the study is called.
    outcome
        The outcome that decides; all others explore.
    people, n, trials
        How many people, topics and trials there are, practice not counted.
    effects, practice, parts
        Of each outcome: systems against each other, what changes from task to task, and where differences come from.
    searching
        How people searched, by system and group.
    preferred, strengths, side
        What was preferred side by side, and whether what stood left was.
    agreements
        Measures of the lists that people got against what people said.
    offline
        The comparison of each pair of systems by judgments alone.
    level
        Of intervals.
    """

    kind: ClassVar[str] = "study"
    main: ClassVar[str] = "effects"

    name: str
    outcome: str
    people: int
    n: int
    trials: int
    effects: tuple[Effect, ...]
    practice: tuple[Practice, ...]
    parts: tuple[Parts, ...]
    searching: tuple[Searching, ...]
    preferred: tuple[Preferred, ...]
    strengths: tuple[Strength, ...]
    side: Side | None
    agreements: tuple[Agreement, ...]
    offline: tuple[Pair, ...]
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """The name of the study."""
        return self.name

    @property
    def decisive(self) -> tuple[Effect, ...]:
        """The effects on the outcome that decides."""
        return tuple(one for one in self.effects if one.outcome == self.outcome)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what the study shows of the outcome that decides, and of what was preferred."""
        return (*map(self._said, self.decisive), *(
            f"Side by side, {_of(one)}; {counted(one.people, 'person', 'people')} compared them,"
            f" {f'p {decimal(one.p)}.' if not one.reason else f'not tested. {one.reason}'}"
            for one in self.preferred
        ))  # fmt: skip

    def _said(self, one: Effect) -> str:
        if any(map(math.isnan, one.ci)):
            sides = zip((one.first, one.second), one.means, one.counts, strict=True)
            means = [f"{name} {decimal(mean, 2)} ({counted(count, 'trial')})" for name, mean, count in sides if name]
            change = "" if math.isnan(one.difference) else f"; difference {decimal(one.difference, 2, '+')}"
            return f"{one.outcome}: {', '.join(means)}{change}. Not tested. {one.reason}"
        who = "other people and topics" if one.n > 1 else "other people"
        change, low, high = (decimal(value, 2, "+") for value in (one.difference, *one.ci))
        verdict = says(one, self.level)
        if verdict in _VERDICTS:
            verdict = f"{one.second} is {verdict}"
        elif not one.has_verdict:
            verdict = f"no verdict. {one.reason.removesuffix('.')}"
        return f"{one.outcome}, for {who}: {one.second} less {one.first}: {change} [{low}, {high}]; {verdict}."

    def facts(self) -> Mapping[str, Any]:
        """Give what the numbers are of."""
        names = ("name", "outcome", "people", "n", "trials", "level")
        return {name: getattr(self, name) for name in names}

    def blocks(self) -> tuple[Block, ...]:
        """Give what it shows, from what decides to what explores, and what may not be concluded."""
        tables = (
            (self.preferred, self._preferences),
            (self.strengths, self._strengths),
            (self.offline, self._offline),
            (self.agreements, self._agreements),
            (self.practice, self._practice),
            (self.searching, self._searching),
            (self.parts, self._parts),
        )
        found = (table() for rows, table in tables if rows)
        return Sentences(self.sentences), self._effects(), *found, Sentences(self._not_concluded())

    def _preferences(self) -> Table:
        note = "value: wins and half of the ties, each person counting once; p of their signs"
        return Table("preferences", columns_of(self.preferred, *_PREFERRED), "Side by side", note=note)

    def _strengths(self) -> Table:
        rows = self.strengths
        strength = Column("strength", [row.strength for row in rows], CHANGE, ci=[row.ci for row in rows])
        note = "Bradley and Terry: the difference of two is the logarithm of the odds of being preferred"
        return Table("strengths", (*columns_of(rows, ("system", TEXT)), strength), "Strengths", note=note)

    def _parts(self) -> Table:
        note = "standard deviations, by a mixed model; x: of what systems are to people, and to topics"
        columns = columns_of(self.parts, *_PARTS)
        return Table("parts", columns, "Where differences come from", note=note, folded=True)

    def _effects(self) -> Table:
        rows = sorted(self.effects, key=lambda row: row.outcome != self.outcome)
        differences = [row.difference for row in rows]
        trials = ((f"{side}_trials", [row.counts[at] for row in rows]) for at, side in enumerate(("first", "second")))
        columns = (
            *columns_of(rows, ("outcome", TEXT), ("first", TEXT), ("second", TEXT)),
            Column("first_mean", [row.means[0] for row in rows], _TWO, "its mean"),
            Column("second_mean", [row.means[1] for row in rows], _TWO, "its mean"),
            Column("difference", differences, _MORE, ci=[row.ci for row in rows]),
            Column("adjusted_p", [row.adjusted for row in rows], P_VALUE, "p"),
            Column("people_difference", differences, _MORE, "these topics", ci=[row.people_ci for row in rows]),
            Column("says", [says(row, self.level) for row in rows], TEXT),
            Column("p", [row.p for row in rows], P_VALUE, only="data"),
            _reasons(rows, "why not"),
            *(Column(name, counts, COUNT, only="data") for name, counts in trials),
            *(replace(column, only="data") for column in columns_of(rows, *_MORE_OF_EFFECTS)),
        )
        note = (
            f"second less first, {percent(self.level)} intervals: for other people and topics (p by Holm), and for"
            " other people with these topics; only the first outcome decides"
        )
        return Table("effects", columns, "Systems against each other", labels=3, note=note)

    def _offline(self) -> Table:
        """Hold what people say of each pair against what judgments say."""
        people = {frozenset((one.first, one.second)): one for one in self.decisive}
        pairs = [pair for pair in self.offline if frozenset((pair.first, pair.second)) in people]
        effects = [people[frozenset((pair.first, pair.second))] for pair in pairs]
        liked = [
            {"better": effect.second, "worse": effect.first}.get(says(effect, self.level), "") for effect in effects
        ]
        judged = [pair.better if pair.significant else "" for pair in pairs]
        together = ["undecided" if "" in two else "yes" if len(set(two)) == 1 else "no"
                    for two in zip(liked, judged, strict=True)]  # fmt: skip
        results = [pair.result for pair in pairs]
        differences, ends = [found.difference for found in results], [found.interval for found in results]
        columns = (
            *columns_of(pairs, ("measure", TEXT), ("first", TEXT), ("second", TEXT)),
            Column("difference", differences, CHANGE, ci=ends),
            Column("p", [pair.adjusted for pair in pairs], P_VALUE),
            Column("by_judgments", judged, TEXT, "better by judgments"),
            Column("by_people", liked, TEXT, f"better by {self.outcome}"),
            Column("agree", together, TEXT),
        )
        note = "over all topics with judgments; judgments know no user, people saw few topics"
        return Table("offline", columns, "Offline and people", note=note)

    def _agreements(self) -> Table:
        rows = self.agreements
        within, ends = [row.within for row in rows], [row.within_ci for row in rows]
        columns = (
            *columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("trials", COUNT), ("people", COUNT)),
            Column("pooled", [row.pooled for row in rows], _CORRELATION, ci=[row.ci for row in rows]),
            Column("within", within, _CORRELATION, "within people", ci=ends),
            *columns_of(rows, ("rank", _CORRELATION, "tau within people")),
            _reasons(rows, "no interval"),
            Column("positive", [_share(row.persons) for row in rows], SHARE, "people above 0"),
        )
        note = "Pearson's correlation over trials, and of what differs from a person's means; intervals over people"
        return Table("agreements", columns, "Measures and people", note=note)

    def _practice(self) -> Table:
        rows = [row for row in self.practice if row.outcome == self.outcome or not row.system]
        return Table(
            "practice",
            (
                *columns_of(rows, ("outcome", TEXT), ("system", TEXT)),
                Column("change", [row.change for row in rows], _MORE, "a task", ci=[row.ci for row in rows]),
                *columns_of(rows, ("first", _TWO, "at first"), ("last", _TWO, "at last")),
            ),
            "Learning: from one task to the next",
            labels=2,
            note="people, topics and systems in the model; no system: all of them; intervals over people",
            folded=True,
        )

    def _searching(self) -> Table:
        rows = self.searching
        shares = (Column(name.replace(" ", "_"), [row.shares[name] for row in rows], SHARE, name) for name in FEATURES)
        return Table(
            "searching",
            (*columns_of(rows, *_SEARCHING), *shares),
            "Flexibility: ways in which each system was used",
            labels=2,
            note="a way: what a trial had of the last columns; effective: weighted by how often",
            folded=True,
        )

    def _not_concluded(self) -> tuple[str, ...]:
        rows, topics, people = self.decisive, counted(self.n, "topic"), counted(self.people, "person", "people")
        doubts = {
            "undecided does not mean equal: these trials do not tell the differences in the interval apart.":
                any(says(row, self.level) == "undecided" for row in rows),
            "a difference without a verdict was not tested, which is not the same as no difference.":
                not all(row.has_verdict for row in rows),
            f"with {topics}, do not trust the intervals for other topics.": self.n < _FEW,
            f"with {people}, do not trust the intervals for other people; permutations of so few cannot reach 5%.":
                self.people < _FEW,
            "each interval is of one pair by itself: only p, and what it says, are corrected for all pairs.":
                len(rows) > 1,
            "people used one system or variant each: differences of people are in the interval, not taken out.":
                any(row.design == "between" for row in rows),
        }  # fmt: skip
        explored = f"all outcomes but {self.outcome} explore: of many, some differ by chance."
        return ("What may not be concluded:", *(doubt for doubt, holds in doubts.items() if holds), explored)


_TWO = Show(lambda value: f"{value:.2f}", "float64")
_MORE = Show(lambda value: f"{value:+.2f}", "float64")
_CORRELATION = Show(lambda value: f"{value:.3f}", "float64")
_PREFERRED = (("first", TEXT), ("second", TEXT), ("people", COUNT), ("comparisons", COUNT), ("wins", COUNT),
              ("losses", COUNT), ("value", SHARE), ("p", P_VALUE))  # fmt: skip
_PARTS = (("outcome", TEXT), ("by_person", NUMBER, "people"), ("by_topic", NUMBER, "topics"),
          ("people_by_system", NUMBER, "people x systems"), ("topics_by_system", NUMBER, "topics x systems"),
          ("trials", NUMBER))  # fmt: skip


_SEARCHING = (("system", TEXT), ("group", TEXT), ("people", COUNT), ("trials", COUNT), ("ways", COUNT),
              ("effective", _TWO), ("own", _TWO, "a person's"))  # fmt: skip
_MORE_OF_EFFECTS = (("design", TEXT), ("people", COUNT), ("n", COUNT), ("people_p", P_VALUE), ("topics_p", P_VALUE),
                    ("mixed", _MORE), ("mixed_error", _TWO))  # fmt: skip


def _reasons(rows: Sequence[Effect | Agreement], title: str) -> Column:
    """Return the column of why something was not done; people see it where there is a reason."""
    reasons = [row.reason for row in rows]
    return Column("reason", reasons, TEXT, title, only="" if any(reasons) else "data")


def says(one: Effect, level: float) -> str:
    """Return whether the second system is better, worse, different where neither is better, undecided, or untested."""
    if not one.has_verdict:
        return "not tested"
    if one.adjusted > round(1 - level, 12):
        return "undecided"
    if not one.better:
        return "different"
    return "better" if (one.difference > 0) == (one.better == "more") else "worse"


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
    """Say what a study shows.

    Parameters
    ----------
    records
        What it recorded.
    design
        Its design: how questionnaires are scored, the runs that people saw, and judgments.
    outcome
        The outcome that decides, chosen before the study; None: the first.
    qrels
        Judgments; None: those of the design.
    measured
        The measure of the list of each trial, by participant and position; None: that of the systems' runs.
    measure
        Which measure.
    level, seed
        Of intervals; of what is drawn.

    Raises
    ------
    InputError
        If there is no trial that counts, or no such outcome.
    """
    from judged.data.qrels import Qrels

    given = qrels if qrels is not None else design.file(design.qrels) if design is not None and design.qrels else None
    known = None if given is None else Qrels.read(given) if isinstance(given, str) else Qrels.of(given)
    found = outcomes(records, design, qrels=known)
    if not found:
        raise InputError(
            "no trial that counts has an outcome", fix="give trials with answers, times or actions", path=records.where
        )
    decides = outcome_of(found, outcome) if outcome else found[0]
    trials = [row for row in records["trials"].to_pylist() if not row["practice"]]
    people = len({row["participant"] for row in trials})
    offline: tuple[Pair, ...] = ()
    if measured is None and design is not None and known is not None:
        runs = {one.name: design.file(one.run) for one in design.systems if one.run}
        scores = evaluate(known, runs, [measure])
        measured = measured_trials(decides, scores, measure)
        offline = scores.compare(seed=seed).measures[0].pairs if len(runs) > 1 else ()
    side = sides(records, level=level, seed=seed)
    factors: tuple[Literal["system", "variant"], ...] = ("system", "variant")
    names = {by: sorted({row[by] for row in trials}) for by in factors}
    compared: list[Literal["system", "variant"]] = [by for by in factors if len(names[by]) > 1] or ["system"]
    return StudyReport(
        design.title if design is not None else "Study",
        decides.name,
        people,
        len({row["query_id"] for row in trials}),
        len(trials),
        tuple(
            effect
            for one in found
            for by in compared
            for effect in effects(one, by=by, names=names[by], level=level, seed=seed)
        ),
        tuple(row for one in found for row in practice(one, level=level)),
        tuple(row for one in found if (row := parts(one, by=compared[0])) is not None),
        searching(records),
        preferred(records, seed=seed),
        strengths_of(records, level=level),
        side,
        _agreements(found, measured, measure, level),
        offline,
        level,
        (*records.notes, *_notes(trials, side)),
    )


def _agreements(
    found: Sequence[Outcome], measured: Mapping[tuple[str, int], float] | None, measure: str, level: float
) -> tuple[Agreement, ...]:
    lists = measured or {}
    several = [
        one
        for one in found
        if sum(v[:2] in lists for v in one.values) >= FEWEST and len({v.value for v in one.values}) > 1
    ]
    return tuple(measure_agreement(one, lists, measure, level=level) for one in several)


def _notes(trials: Sequence[Mapping[str, Any]], side: Side | None) -> tuple[Note, ...]:
    open_ = sum(row["started"] is not None and row["ended"] is None for row in trials)
    notes = list[Note]()
    if open_:
        text = f"{counted(open_, 'trial')} of {len(trials)} not finished; what was answered of them counts"
        notes.append(Note("unfinished-trials", text))
    if side is not None and side.preferred:
        text = f"what stood left was preferred in {percent(side.left)}: sides count beside systems"
        notes.append(Note("side-preferred", text))
    return tuple(notes)


def _of(one: Preferred) -> str:
    times = f"{one.wins} times of {one.comparisons}"
    return f"{one.second} was preferred to {one.first} {times} and {one.first} {one.losses} times"


def _share(persons: Sequence[float]) -> float:
    return sum(one > 0 for one in persons) / len(persons) if persons else math.nan
