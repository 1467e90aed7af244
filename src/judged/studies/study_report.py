"""`report`: what a study shows of its systems, for which people and topics, and what may not be concluded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from judged.errors import InputError
from judged.results import (
    CHANGE,
    COUNT,
    NUMBER,
    P_VALUE,
    SHARE,
    TEXT,
    Answer,
    Column,
    Sentences,
    Show,
    Table,
    columns_of,
    counted,
)
from judged.results.blocks import Note
from judged.results.decimals import decimal, percent
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
_MEASURE = "nDCG@10"


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
        found: list[Block] = [Sentences(self.sentences), self._effects()]
        if self.preferred:
            found.append(
                Table(
                    "preferences",
                    columns_of(self.preferred, *_PREFERRED),
                    "Side by side",
                    note="value: wins and half of the ties, each person counting once; p of their signs",
                )
            )
        if self.strengths:
            strength = Column(
                "strength", [one.strength for one in self.strengths], CHANGE, ci=[one.ci for one in self.strengths]
            )
            note = "Bradley and Terry: the difference of two is the logarithm of the odds of being preferred"
            found.append(
                Table("strengths", (*columns_of(self.strengths, ("system", TEXT)), strength), "Strengths", note=note)
            )
        if self.offline:
            found.append(self._offline())
        if self.agreements:
            found.append(self._agreements())
        if self.practice:
            found.append(self._practice())
        if self.searching:
            found.append(self._searching())
        if self.parts:
            note = "standard deviations, by a mixed model; x: of what systems are to people, and to topics"
            found.append(
                Table("parts", columns_of(self.parts, *_PARTS), "Where differences come from", note=note, folded=True)
            )
        return (*found, Sentences(self._not_concluded()))

    def _effects(self) -> Table:
        rows = sorted(self.effects, key=lambda one: one.outcome != self.outcome)
        return Table(
            "effects",
            (
                Column("outcome", [one.outcome for one in rows], TEXT),
                Column("first", [one.first for one in rows], TEXT),
                Column("second", [one.second for one in rows], TEXT),
                Column("first_mean", [one.means[0] for one in rows], _TWO, "its mean"),
                Column("second_mean", [one.means[1] for one in rows], _TWO, "its mean"),
                Column("difference", [one.difference for one in rows], _MORE, ci=[one.ci for one in rows]),
                Column("adjusted_p", [one.adjusted for one in rows], P_VALUE, "p"),
                Column("people_difference", [one.difference for one in rows], _MORE, "these topics",
                       ci=[one.people_ci for one in rows]),
                Column("says", [says(one, self.level) for one in rows], TEXT),
                Column("p", [one.p for one in rows], P_VALUE, only="data"),
                Column("reason", [one.reason for one in rows], TEXT, "why not",
                       only="" if any(one.reason for one in rows) else "data"),
                Column("first_trials", [one.counts[0] for one in rows], COUNT, only="data"),
                Column("second_trials", [one.counts[1] for one in rows], COUNT, only="data"),
                Column("design", [one.design for one in rows], TEXT, only="data"),
                Column("people", [one.people for one in rows], COUNT, only="data"),
                Column("n", [one.n for one in rows], COUNT, only="data"),
                Column("people_p", [one.people_p for one in rows], P_VALUE, only="data"),
                Column("topics_p", [one.topics_p for one in rows], P_VALUE, only="data"),
                Column("mixed", [one.mixed for one in rows], _MORE, only="data"),
                Column("mixed_error", [one.mixed_error for one in rows], _TWO, only="data"),
            ),
            "Systems against each other",
            labels=3,
            note=f"second less first, {percent(self.level)} intervals: for other people and topics (p by Holm), and for"
            " other people with these topics; only the first outcome decides",
        )  # fmt: skip

    def _offline(self) -> Table:
        """Hold what people say of each pair against what judgments say."""
        people = {frozenset((one.first, one.second)): one for one in self.decisive}
        rows = [(one, people[pair]) for one in self.offline if (pair := frozenset((one.first, one.second))) in people]
        study = [says(one, self.level) for _, one in rows]
        better = {"better": "second", "worse": "first"}
        liked = [
            getattr(one, better[said]) if said in better else "" for said, (_, one) in zip(study, rows, strict=True)
        ]
        judged = [one.better if one.significant else "" for one, _ in rows]
        together = ["undecided" if "" in two else "yes" if len(set(two)) == 1 else "no"
                    for two in zip(liked, judged, strict=True)]  # fmt: skip
        return Table(
            "offline",
            (
                Column("measure", [one.measure for one, _ in rows], TEXT),
                Column("first", [one.first for one, _ in rows], TEXT),
                Column("second", [one.second for one, _ in rows], TEXT),
                Column(
                    "difference",
                    [one.result.difference for one, _ in rows],
                    CHANGE,
                    ci=[one.result.interval for one, _ in rows],
                ),
                Column("p", [one.adjusted for one, _ in rows], P_VALUE),
                Column("by_judgments", judged, TEXT, "better by judgments"),
                Column("by_people", liked, TEXT, f"better by {self.outcome}"),
                Column("agree", together, TEXT),
            ),
            "Offline and people",
            note="over all topics with judgments; judgments know no user, people saw few topics",
        )

    def _agreements(self) -> Table:
        rows = self.agreements
        return Table(
            "agreements",
            (
                *columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("trials", COUNT), ("people", COUNT)),
                Column("pooled", [one.pooled for one in rows], _CORRELATION, ci=[one.ci for one in rows]),
                Column(
                    "within",
                    [one.within for one in rows],
                    _CORRELATION,
                    "within people",
                    ci=[one.within_ci for one in rows],
                ),
                Column("rank", [one.rank for one in rows], _CORRELATION, "tau within people"),
                Column(
                    "reason",
                    [one.reason for one in rows],
                    TEXT,
                    "no interval",
                    only="" if any(one.reason for one in rows) else "data",
                ),
                Column("positive", [_share(one.persons) for one in rows], SHARE, "people above 0"),
            ),
            "Measures and people",
            note="Pearson's correlation over trials, and of what differs from a person's means; intervals over people",
        )

    def _practice(self) -> Table:
        rows = [one for one in self.practice if one.outcome == self.outcome or not one.system]
        return Table(
            "practice",
            (
                *columns_of(rows, ("outcome", TEXT), ("system", TEXT)),
                Column("change", [one.change for one in rows], _MORE, "a task", ci=[one.ci for one in rows]),
                Column("first", [one.first for one in rows], _TWO, "at first"),
                Column("last", [one.last for one in rows], _TWO, "at last"),
            ),
            "Learning: from one task to the next",
            labels=2,
            note="people, topics and systems in the model; no system: all of them; intervals over people",
            folded=True,
        )

    def _searching(self) -> Table:
        rows = self.searching
        shares = (Column(name.replace(" ", "_"), [one.shares[name] for one in rows], SHARE, name) for name in FEATURES)
        columns = columns_of(
            rows, ("system", TEXT), ("group", TEXT), ("people", COUNT), ("trials", COUNT), ("ways", COUNT)
        )
        return Table(
            "searching",
            (*columns, *columns_of(rows, ("effective", _TWO), ("own", _TWO, "a person's")), *shares),
            "Flexibility: ways in which each system was used",
            labels=2,
            note="a way: what a trial had of the last columns; effective: weighted by how often",
            folded=True,
        )

    def _not_concluded(self) -> tuple[str, ...]:
        found = ["What may not be concluded:"]
        if any(says(one, self.level) == "undecided" for one in self.decisive):
            found.append(
                "undecided does not mean equal: these trials do not tell the differences in the interval apart."
            )
        if any(not one.has_verdict for one in self.decisive):
            found.append("a difference without a verdict was not tested, which is not the same as no difference.")
        if self.n < _FEW:
            found.append(f"with {counted(self.n, 'topic')}, do not trust the intervals for other topics.")
        if self.people < _FEW:
            few = counted(self.people, "person", "people")
            found.append(
                f"with {few}, do not trust the intervals for other people; permutations of so few cannot reach 5%."
            )
        if len(self.decisive) > 1:
            found.append(
                "each interval is of one pair by itself: only p, and what it says, are corrected for all pairs."
            )
        if any(one.design == "between" for one in self.decisive):
            found.append(
                "people used one system or variant each: differences of people are in the interval, not taken out."
            )
        found.append(f"all outcomes but {self.outcome} explore: of many, some differ by chance.")
        return tuple(found)


_TWO = Show(lambda value: f"{value:.2f}", "float64")
_MORE = Show(lambda value: f"{value:+.2f}", "float64")
_CORRELATION = Show(lambda value: f"{value:.3f}", "float64")
_PREFERRED = (("first", TEXT), ("second", TEXT), ("people", COUNT), ("comparisons", COUNT), ("wins", COUNT),
              ("losses", COUNT), ("value", SHARE), ("p", P_VALUE))  # fmt: skip
_PARTS = (("outcome", TEXT), ("by_person", NUMBER, "people"), ("by_topic", NUMBER, "topics"),
          ("people_by_system", NUMBER, "people x systems"), ("topics_by_system", NUMBER, "topics x systems"),
          ("trials", NUMBER))  # fmt: skip


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
    measure: str = _MEASURE,
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
        notes.append(
            Note(
                "unfinished-trials",
                f"{counted(open_, 'trial')} of {len(trials)} not finished; what was answered of them counts",
            )
        )
    if side is not None and side.preferred:
        notes.append(
            Note("side-preferred", f"what stood left was preferred in {percent(side.left)}: sides count beside systems")
        )
    return tuple(notes)


def _of(one: Preferred) -> str:
    times = f"{one.wins} times of {one.comparisons}"
    return f"{one.second} was preferred to {one.first} {times} and {one.first} {one.losses} times"


def _share(persons: Sequence[float]) -> float:
    return sum(one > 0 for one in persons) / len(persons) if persons else math.nan
