"""How many people, and topics, it takes to find a difference between systems, when both are samples of many."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.results import COUNT, Answer, Chart, Column, Sentences, Show, Table, counted
from judged.results.blocks import Note
from judged.results.decimals import decimal, percent
from judged.stats.inputs import check_share
from judged.stats.sample_size import power, topics_needed_t
from judged.stats.sufficiency import MIN_UNITS, insufficiency
from judged.studies.assignment import blocks
from judged.studies.effects import parts
from judged.studies.outcomes import outcome_of, outcomes

if TYPE_CHECKING:
    from judged.results import Block
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords


_MOST = 10_000  # people: what takes more is out of reach
_STEPS = 24  # of each chi-squared distribution
_NEARLY = "> 99%"
_TIMES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # of the design's topics, and of its people


def _written(share: float) -> str:
    return _NEARLY if share > 0.99 else percent(share)


_POWER = Show(_written, "float64")


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of the parts of an outcome.

    Parameters
    ----------
    people
        Of people's levels: it counts where they are compared with each other.
    people_by_system
        Of how much people differ in what a system does to them, for each system.
    topics_by_system
        The same of topics.
    trials
        Of what is left of a single trial.
    """

    people: float = 0.0
    people_by_system: float = 0.0
    topics_by_system: float = 0.0
    trials: float = 0.0

    def __post_init__(self) -> None:
        for name, sd in vars(self).items():
            if not 0 <= sd < math.inf:
                raise InputError(f"{name.replace('_', ' ')}: the standard deviation is {sd}", fix="give 0 or more")


@dataclass(frozen=True)
class Contrast:
    """What is compared: one of several conditions with another, over people who do each topic once.

    Parameters
    ----------
    conditions
        How many there are, each used in as many trials.
    between
        Whether each person has only one of them.
    """

    conditions: int = 2
    between: bool = False

    def variances(self, spreads: Spreads, people: float, topics: float) -> tuple[float, float, float]:
        """Give the parts of the variance of an estimated difference: of people, of topics, of single trials.

        The estimate is that of least squares with people and topics in it. What topics are worth in themselves does not
        count, since each is done with each condition; nor what people are, unless they are compared with each other.
        """
        n = self.conditions
        of_people = 2 * spreads.people_by_system**2 / people
        if self.between:
            of_people = 2 * n * (spreads.people**2 + spreads.people_by_system**2) / people
        return of_people, 2 * spreads.topics_by_system**2 / topics, 2 * n * spreads.trials**2 / (people * topics)

    def power(self, difference: float, spreads: Spreads, people: int, topics: int, alpha: float = 0.05) -> float:
        """Give the probability that a true difference is found, for other people and other topics.

        The test is Student's t with the variance that is estimated over people, plus that over topics, less that of
        single trials, which is in both, and never less than either; its degrees of freedom are Satterthwaite's (1946).
        Both variances are taken to follow chi-squared distributions, at the middles of `_STEPS` equal parts of each.

        Returns
        -------
        float
            From 0 to 1; 0 where there are too few people or topics for a verdict, whatever the difference is.

        Examples
        --------
        >>> spreads = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)
        >>> round(Contrast().power(0.5, spreads, 24, 8), 3)
        0.486
        """
        from scipy.special import gammaincinv, ndtr, stdtrit

        n, (of_people, of_topics, of_trials) = self.conditions, self.variances(spreads, people, topics)
        df_people, df_topics = people - (n if self.between else 1), topics - 1
        fewest = people / n if self.between else people
        if insufficiency(min(fewest, topics), "verdict") or (topics < n and not self.between):
            return 0.0
        if not (true := of_people + of_topics + of_trials):
            return 1.0
        middles = (np.arange(_STEPS) + 0.5) / _STEPS
        over_people, over_topics = np.meshgrid(
            (of_people + of_trials) * 2.0 * gammaincinv(df_people / 2.0, middles) / df_people,
            (of_topics + of_trials) * 2.0 * gammaincinv(df_topics / 2.0, middles) / df_topics,
        )
        left = people * topics - (people if self.between else n * people) - n * (topics - 1)
        both = over_people + over_topics - (of_trials if left > 0 else 0.0)
        squares = over_people**2 / df_people + over_topics**2 / df_topics + of_trials**2 / max(left, 1) * (left > 0)
        variance = np.maximum(both, np.maximum(over_people, over_topics))
        least = stdtrit(variance**2 / squares, 1.0 - alpha / 2.0) * np.sqrt(variance / true)
        shift = abs(difference) / math.sqrt(true)
        return float((ndtr(shift - least) + ndtr(-shift - least)).mean())

    def people_needed(
        self,
        difference: float,
        spreads: Spreads,
        topics: int,
        *,
        alpha: float = 0.05,
        power: float = 0.8,
        step: int = 1,
    ) -> int | None:
        """Give how many people it takes, a multiple of `step`; None where no number of people is enough."""
        counts = range(step * math.ceil(2 * self.conditions / step), _MOST + 1, step)
        at = bisect_left(counts, power, key=lambda people: self.power(difference, spreads, people, topics, alpha))
        return counts[at] if at < len(counts) else None

    @staticmethod
    def most(difference: float, spreads: Spreads, topics: int, alpha: float = 0.05) -> float:
        """Return the power with as many people as one likes: what is left is that topics are few."""
        if insufficiency(topics, "verdict"):
            return 0.0
        return power(difference, math.sqrt(2) * spreads.topics_by_system, topics, alpha)


@dataclass(frozen=True, eq=False, repr=False)
class StudyPlan(Answer):
    """What `plan_study` returns.

    Attributes
    ----------
    difference : float
        That matters.
    spreads : Spreads
        Of the outcome.
    contrast : Contrast
    people, n : int
        People and topics of the design.
    step : int
        How many people it takes until systems are balanced in every group.
    alpha, power : float
        The level of the test; the probability that is asked for.
    outcome : str
        From which a pilot's parts were estimated; empty where they were given.
    notes : tuple of Note
    """

    kind: ClassVar[str] = "study-plan"
    main: ClassVar[str] = "people_needed"

    difference: float
    spreads: Spreads
    contrast: Contrast
    people: int
    n: int
    step: int
    alpha: float
    power: float
    outcome: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is planned for."""
        return f"How many people a difference of {self.difference:g} takes"

    def _power(self, people: int, topics: int) -> float:
        return self.contrast.power(self.difference, self.spreads, people, topics, self.alpha)

    def _needed(self, topics: int) -> int | None:
        asked: dict[str, Any] = {"alpha": self.alpha, "power": self.power, "step": self.step}
        return self.contrast.people_needed(self.difference, self.spreads, topics, **asked)

    def _most(self, topics: int) -> float:
        return self.contrast.most(self.difference, self.spreads, topics, self.alpha)

    @property
    def topics_needed(self) -> int:
        """Number of topics below which no number of people is enough."""
        fewest = MIN_UNITS["verdict"]
        if not self.spreads.topics_by_system:
            return fewest
        sd = math.sqrt(2) * self.spreads.topics_by_system
        return max(fewest, topics_needed_t(self.difference, sd, self.alpha, self.power))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the design would find, what it takes, and where more people do not help."""
        here = f"{counted(self.people, 'participant')} and {counted(self.n, 'topic')}"
        rule = f"(alpha {self.alpha:g}, other people and other topics)"
        found = _written(self._power(self.people, self.n))
        said = [f"With {here} a true difference of {self.difference:g} is found with a probability of {found} {rule}."]
        needed, most = self._needed(self.n), _written(self._most(self.n))
        if needed is None:
            least = counted(self.topics_needed, "topic")
            said.append(
                f"More people are not enough: however many, {counted(self.n, 'topic')} give at most {most}."
                f" For {percent(self.power)} it takes {least} or more."
            )
        else:
            limit = "" if most == _NEARLY else f"; however many take part, it is at most {most}"
            said.append(f"{percent(self.power)} takes {counted(needed, 'participant')} with these topics{limit}.")
        shares = self.contrast.variances(self.spreads, self.people, self.n)
        if total := math.fsum(shares):
            people, topics, trials = (percent(share / total) for share in shares)
            said.append(
                f"Of the variance of the difference, people are {people}, topics {topics}, single trials {trials}:"
                " more people make the first and the last smaller, more topics the second and the last."
            )
        return tuple(said)

    def blocks(self) -> tuple[Block, ...]:
        """Give what may be concluded, the people that it takes by topics, and the power by both."""
        n = self.contrast.conditions
        every = sorted({max(n, round(self.n * times / n) * n) for times in _TIMES} | {self.n})
        needed = [self._needed(topics) for topics in every]
        trials = [people and people * topics for people, topics in zip(needed, every, strict=True)]
        table = Table(
            "people_needed",
            (
                Column("n", every, COUNT, "topics"),
                Column("people", needed, COUNT, title="participants"),
                Column("trials", trials, COUNT),
                Column("most", [self._most(topics) for topics in every], _POWER, title="power at most"),
            ),
            title=f"Participants for {percent(self.power)}",
            note=f"in whole balanced blocks; a dash: {_MOST:,} are not enough",
        )
        counts = sorted({max(2 * n, self.step, round(self.people * times)) for times in _TIMES} | {self.people})
        cells = [(people, topics) for topics in every for people in counts]
        powers = Table(
            "powers",
            (
                Column("topics", [f"{topics} topics" for _, topics in cells]),
                Column("people", [people for people, _ in cells], COUNT, title="participants"),
                Column("power", [self._power(*cell) for cell in cells], _POWER),
            ),
        )
        low, high = (_written(self._power(self.people, topics)) for topics in (every[0], every[-1]))
        chart = Chart(
            "power_by_people",
            "Power by participants and topics",
            powers,
            f"With {self.people} participants it is {low} for {every[0]} topics and {high} for {every[-1]}.",
            kind="lines",
            x="people",
            y="power",
            color="topics",
            percent="y",
            spread="amount",
        )
        return (Sentences(self.sentences), table, chart)

    def facts(self) -> dict[str, Any]:
        """Give what is planned for."""
        return {
            "difference": self.difference,
            "alpha": self.alpha,
            "power": self.power,
            "outcome": self.outcome,
            "sd": vars(self.spreads),
            "participants": self.people,
            "n": self.n,
            "topics_needed": self.topics_needed,
        }


def plan_study(
    design: Design,
    difference: float,
    spreads: Spreads,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    outcome: str = "",
    notes: tuple[Note, ...] = (),
) -> StudyPlan:
    """Say how many people, and topics, it takes to find a true difference between two of the design's systems.

    Parameters
    ----------
    design
        Says how many people, topics and systems there are. Where variants of the interface are the only difference, and
        each person has one, people are compared with each other.
    difference
        That matters, in the unit of the outcome: what a pilot found is no such thing.
    spreads
        Of the outcome, stated or from a pilot.
    alpha, power
        The level of the test; the probability of finding the difference, above alpha.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> from judged.studies.design import first_design, parse_design
    >>> spreads = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)
    >>> found = plan_study(parse_design(first_design()), 0.5, spreads)
    >>> found.topics_needed
    8
    """
    check_share("alpha", alpha)
    check_share("power", power, alpha)
    if not difference or not math.isfinite(difference):
        raise InputError(f"the difference is {decimal(difference)}", fix="give the least that matters")
    between = len(design.systems) == 1 and design.variants == "between"
    contrast = Contrast(len(design.interfaces) if between else len(design.conditions), between)
    people, step = sum(group.participants for group in design.groups), blocks(design)[0] * len(design.groups)
    return StudyPlan(abs(difference), spreads, contrast, people, len(design.tasks), step, alpha, power, outcome, notes)


_NONE = 0.01  # of the spread of single trials: what is smaller is no more than chance
_FEW = 8  # people or topics: with fewer a pilot says little of how much they vary


def pilot_spreads(records: StudyRecords, design: Design, outcome: str) -> tuple[Spreads, tuple[Note, ...]]:
    """Estimate how much an outcome varies, by a mixed model, and say what the estimate is worth.

    Parameters
    ----------
    records, design
        Of the pilot; practice does not count.
    outcome
        An outcome of single trials, such as ``minutes``, ``saved``, or a questionnaire that is asked after each task.

    Raises
    ------
    InputError
        If there is no such outcome, or too few trials have one.
    """
    qrels = Qrels.of(design.file(design.qrels)) if design.qrels else None
    chosen = outcome_of(outcomes(records, design, qrels=qrels), outcome)
    if (found := parts(chosen, by="system" if len(design.systems) > 1 else "variant")) is None:
        problem = f"the pilot has too few trials to part {outcome}, or people and topics explain all of it"
        raise InputError(problem, fix="take more people and topics, or state what you expect", path=records.where)
    people, topics = (len({getattr(one, name) for one in chosen.values}) for name in ("participant", "query_id"))
    notes: list[Note] = []
    if min(people, topics) < _FEW:
        text = f"a pilot of {people} people and {topics} topics says little of how much they vary"
        notes.append(Note("small-pilot", f"{text}: plan with larger spreads too"))
    sds = {
        "people": found.by_person, "people_by_system": found.people_by_system,
        "topics_by_system": found.topics_by_system, "trials": found.trials,
    }  # fmt: skip
    for name, sd in sds.items():
        if sd < _NONE * found.trials:
            sds[name] = 0.0
            notes.append(Note("no-spread", f"{name.replace('_', ' ')}: no more than chance, taken as 0"))
    # where each has one system only, what it is to people is part of what they are
    return Spreads(**{name: 0.0 if math.isnan(sd) else sd for name, sd in sds.items()}), tuple(notes)
