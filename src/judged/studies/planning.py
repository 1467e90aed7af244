"""Numbers of people and topics to detect a difference between systems, both being random samples."""

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
from judged.studies.assignment import block_sizes
from judged.studies.effects import variance_components
from judged.studies.outcomes import find_outcome, outcomes

if TYPE_CHECKING:
    from judged.results import Block
    from judged.studies.design import Design
    from judged.studies.records import StudyRecords


_MAX_PEOPLE = 10_000
_QUADRATURE_POINTS = 24  # for each chi-squared distribution
_NEARLY_CERTAIN = "> 99%"
_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # multiples of the design's topics, and of its people


def _format_power(share: float) -> str:
    return _NEARLY_CERTAIN if share > 0.99 else percent(share)


_POWER = Show(_format_power, "float64")


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of the components of an outcome.

    Parameters
    ----------
    people
        Of people's levels; relevant only if people are compared with each other.
    people_by_system
        Of the person-by-system interaction, for each system.
    topics_by_system
        Of the topic-by-system interaction, for each system.
    trials
        Of the residual of a single trial.
    """

    people: float = 0.0
    people_by_system: float = 0.0
    topics_by_system: float = 0.0
    trials: float = 0.0

    def __post_init__(self) -> None:
        for name, sd in vars(self).items():
            if not 0 <= sd < math.inf:
                problem = f"standard deviations must be finite and 0 or more, got {sd} for {name.replace('_', ' ')}"
                raise InputError(problem, fix="use 0 or more")


@dataclass(frozen=True)
class Contrast:
    """Comparison of two of several conditions, over people who do each topic once.

    Parameters
    ----------
    conditions
        Number of conditions, each used in the same number of trials.
    between
        Whether each person has only one condition.
    """

    conditions: int = 2
    between: bool = False

    def variances(self, spreads: Spreads, people: float, topics: float) -> tuple[float, float, float]:
        """Compute the variance components of an estimated difference: of people, of topics, of single trials.

        The estimate is by least squares with people and topics in the model. Levels of topics cancel, because each
        topic is done with each condition; so do levels of people, unless people are compared with each other.
        """
        n = self.conditions
        # Each person has two interaction effects in the difference; with one condition each, the levels add to it.
        of_people = 2 * spreads.people_by_system**2 / people
        if self.between:
            of_people = 2 * n * (spreads.people**2 + spreads.people_by_system**2) / people
        return of_people, 2 * spreads.topics_by_system**2 / topics, 2 * n * spreads.trials**2 / (people * topics)

    def power(self, difference: float, spreads: Spreads, people: int, topics: int, alpha: float = 0.05) -> float:
        """Compute the power to detect a true difference, for other people and other topics.

        The test is Student's t with the variance of `judged.studies.crossed`: over people plus over topics less single
        trials, at least the largest component; degrees of freedom by Satterthwaite (1946). Power is averaged over
        chi-squared distributed variance estimates.

        Returns
        -------
        float
            From 0 to 1; 0 if there are too few people or topics for a verdict.

        Examples
        --------
        >>> spreads = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)
        >>> round(Contrast().power(0.5, spreads, 24, 8), 3)
        0.486
        """
        from scipy.special import gammaincinv, ndtr, stdtrit

        n, (of_people, of_topics, of_trials) = self.conditions, self.variances(spreads, people, topics)
        df_people, df_topics = people - (n if self.between else 1), topics - 1
        people_per_arm = people / n if self.between else people
        if insufficiency(min(people_per_arm, topics), "verdict") or (topics < n and not self.between):
            return 0.0
        if not (true_variance := of_people + of_topics + of_trials):
            return 1.0
        # Quantiles of the two variance estimates, at the midpoints of intervals of equal probability.
        midpoints = (np.arange(_QUADRATURE_POINTS) + 0.5) / _QUADRATURE_POINTS
        over_people, over_topics = np.meshgrid(
            (of_people + of_trials) * 2.0 * gammaincinv(df_people / 2.0, midpoints) / df_people,
            (of_topics + of_trials) * 2.0 * gammaincinv(df_topics / 2.0, midpoints) / df_topics,
        )
        df_trials = people * topics - (people if self.between else n * people) - n * (topics - 1)
        total, trial_squares = over_people + over_topics, 0.0
        if df_trials > 0:
            total, trial_squares = total - of_trials, of_trials**2 / df_trials
        squares = over_people**2 / df_people + over_topics**2 / df_topics + trial_squares
        variance = np.maximum(total, np.maximum(over_people, over_topics))
        critical = stdtrit(variance**2 / squares, 1.0 - alpha / 2.0) * np.sqrt(variance / true_variance)
        shift = abs(difference) / math.sqrt(true_variance)
        return float((ndtr(shift - critical) + ndtr(-shift - critical)).mean())

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
        """Find the smallest number of people, a multiple of `step`, with this power; None if none up to 10,000 has."""
        # Two people per condition are the least that can be analyzed. Power grows with people, so bisection works.
        counts = range(step * math.ceil(2 * self.conditions / step), _MAX_PEOPLE + 1, step)
        i = bisect_left(counts, power, key=lambda people: self.power(difference, spreads, people, topics, alpha))
        return counts[i] if i < len(counts) else None

    @staticmethod
    def max_power(difference: float, spreads: Spreads, topics: int, alpha: float = 0.05) -> float:
        """Compute the limit of the power as the number of people grows; only the topics vary then."""
        if insufficiency(topics, "verdict"):
            return 0.0
        # The difference of two conditions has twice the interaction variance of one.
        return power(difference, math.sqrt(2) * spreads.topics_by_system, topics, alpha)


@dataclass(frozen=True, eq=False, repr=False)
class StudyPlan(Answer):
    """Result of `plan_study`.

    Attributes
    ----------
    difference : float
        Smallest relevant difference.
    spreads : Spreads
        Standard deviations of the outcome.
    contrast : Contrast
    people, n : int
        Numbers of people and topics in the design.
    step : int
        Number of people that balances systems in each group.
    alpha, power : float
        Significance level of the test; required power.
    outcome : str
        Outcome of the pilot from which `spreads` were estimated; empty without a pilot.
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
        """Difference that the plan is for."""
        return f"Sample size for a difference of {self.difference:g}"

    def _power(self, people: int, topics: int) -> float:
        return self.contrast.power(self.difference, self.spreads, people, topics, self.alpha)

    def _people_needed(self, topics: int) -> int | None:
        options: dict[str, Any] = {"alpha": self.alpha, "power": self.power, "step": self.step}
        return self.contrast.people_needed(self.difference, self.spreads, topics, **options)

    def _max_power(self, topics: int) -> float:
        return self.contrast.max_power(self.difference, self.spreads, topics, self.alpha)

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
        """Power of the design, the numbers that reach the required power, and the shares of the variance."""
        sample = f"{counted(self.people, 'participant')} and {counted(self.n, 'topic')}"
        rule = f"alpha = {self.alpha:g}, for conclusions about other participants and topics"
        power = _format_power(self._power(self.people, self.n))
        sentences = [
            f"With {sample}, the power to detect a true difference of {self.difference:g} is {power} ({rule})."
        ]
        people_needed, max_power = self._people_needed(self.n), _format_power(self._max_power(self.n))
        if people_needed is None:
            topics_needed = counted(self.topics_needed, "topic")
            sentences.append(
                f"With {counted(self.n, 'topic')}, the power is at most {max_power} for any number of participants."
                f" A power of {percent(self.power)} requires at least {topics_needed}."
            )
        else:
            limit = (
                ""
                if max_power == _NEARLY_CERTAIN
                else f" The maximum power for any number of participants is {max_power}."
            )
            people = counted(people_needed, "participant")
            sentences.append(f"With these topics, a power of {percent(self.power)} requires {people}.{limit}")
        shares = self.contrast.variances(self.spreads, self.people, self.n)
        if total := math.fsum(shares):
            people, topics, trials = (percent(share / total) for share in shares)
            sentences.append(
                f"The variance of the difference comes from participants ({people}), topics ({topics}), and single"
                f" trials ({trials}). More participants reduce the variance from participants and trials. More topics"
                " reduce the variance from topics and trials."
            )
        return tuple(sentences)

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, the people needed by topics, and the power by people and topics."""
        n = self.contrast.conditions
        # Only multiples of the number of conditions balance topics within people.
        topic_counts = sorted({max(n, round(self.n * factor / n) * n) for factor in _FACTORS} | {self.n})
        people_needed = [self._people_needed(topics) for topics in topic_counts]
        trials = [people and people * topics for people, topics in zip(people_needed, topic_counts, strict=True)]
        table = Table(
            "people_needed",
            (
                Column("n", topic_counts, COUNT, "topics"),
                Column("people", people_needed, COUNT, title="participants"),
                Column("trials", trials, COUNT),
                Column(
                    "max_power", [self._max_power(topics) for topics in topic_counts], _POWER, title="maximum power"
                ),
            ),
            title=f"Participants for a power of {percent(self.power)}",
            note=f"Numbers of participants are multiples of {self.step}. A dash means that even {_MAX_PEOPLE:,}"
            f" participants are too few.",
        )
        # Fewer people than two per condition, or than one balanced block, are no useful plan.
        multiples = {max(2 * n, self.step, round(self.people * factor)) for factor in _FACTORS}
        people_counts = sorted(multiples | {self.people})
        cells = [(people, topics) for topics in topic_counts for people in people_counts]
        powers = Table(
            "powers",
            (
                Column("topics", [f"{topics} topics" for _, topics in cells]),
                Column("people", [people for people, _ in cells], COUNT, title="participants"),
                Column("power", [self._power(*cell) for cell in cells], _POWER),
            ),
        )
        low, high = (_format_power(self._power(self.people, topics)) for topics in (topic_counts[0], topic_counts[-1]))
        chart = Chart(
            "power_by_people",
            "Power by participants and topics",
            powers,
            f"With {counted(self.people, 'participant')}, the power is {low} for"
            f" {counted(topic_counts[0], 'topic')} and {high} for {counted(topic_counts[-1], 'topic')}.",
            kind="lines",
            x="people",
            y="power",
            color="topics",
            percent="y",
            spread="amount",
        )
        return (Sentences(self.sentences), table, chart)

    def facts(self) -> dict[str, Any]:
        """Return the metadata shown with the results."""
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
    """Compute how many people and topics are needed to detect a true difference between two systems of a design.

    Parameters
    ----------
    design
        Design with numbers of people, topics, and systems. With one system and one interface variant per person, people
        are compared with each other.
    difference
        Smallest relevant difference, in the unit of the outcome; not the estimate of a pilot.
    spreads
        Standard deviations of the outcome, assumed or from a pilot.
    alpha, power
        Significance level of the test; required power, above alpha.

    Raises
    ------
    InputError
        If an option is out of range.

    Examples
    --------
    >>> from judged.studies.design import first_design, parse_design
    >>> spreads = Spreads(people_by_system=0.3, topics_by_system=0.3, trials=1.0)
    >>> plan_study(parse_design(first_design()), 0.5, spreads).topics_needed
    8
    """
    check_share("alpha", alpha)
    check_share("power", power, alpha)
    if not difference or not math.isfinite(difference):
        problem = f"`difference` must be finite and not 0, got {decimal(difference)}"
        raise InputError(problem, fix="use the smallest difference that is relevant to you, in the unit of the outcome")
    between = len(design.systems) == 1 and design.variants == "between"
    contrast = Contrast(len(design.interfaces) if between else len(design.conditions), between)
    people, step = sum(group.participants for group in design.groups), block_sizes(design)[0] * len(design.groups)
    return StudyPlan(abs(difference), spreads, contrast, people, len(design.tasks), step, alpha, power, outcome, notes)


_MIN_SD_RATIO = 0.01  # relative to the standard deviation of single trials; smaller estimates are noise
_MIN_PILOT_UNITS = 8  # people or topics for a usable estimate of their variance


def pilot_spreads(records: StudyRecords, design: Design, outcome: str) -> tuple[Spreads, tuple[Note, ...]]:
    """Estimate the standard deviations of an outcome from a pilot, by a mixed model, with notes on their reliability.

    Parameters
    ----------
    records, design
        Records and design of the pilot; practice is ignored.
    outcome
        Outcome of single trials, such as ``minutes``, ``saved``, or a questionnaire after each task.

    Raises
    ------
    InputError
        If the outcome does not exist, or too few trials have a value.
    """
    qrels = Qrels.of(design.file(design.qrels)) if design.qrels else None
    pilot = find_outcome(outcomes(records, design, qrels=qrels), outcome)
    components = variance_components(pilot, by="system" if len(design.systems) > 1 else "variant")
    if components is None:
        problem = (
            f"a mixed model of the outcome {outcome} cannot be fitted: the pilot has too few trials or no residual"
            " variance"
        )
        fix = "use a pilot with more participants and topics, or pass expected standard deviations"
        raise InputError(problem, fix=fix, path=records.where)
    people, topics = (len({getattr(trial, name) for trial in pilot.values}) for name in ("participant", "query_id"))
    notes: list[Note] = []
    if min(people, topics) < _MIN_PILOT_UNITS:
        size = f"{counted(people, 'participant')} and {counted(topics, 'topic')}"
        text = f"estimates of standard deviations from a pilot with {size} are imprecise"
        notes.append(Note("small-pilot", f"{text}. Fix: also plan with larger standard deviations"))
    sds = {
        "people": components.by_person, "people_by_system": components.people_by_system,
        "topics_by_system": components.topics_by_system, "trials": components.trials,
    }  # fmt: skip
    # REML estimates of a variance of 0 are small positive numbers.
    for name, sd in sds.items():
        if sd < _MIN_SD_RATIO * components.trials:
            sds[name] = 0.0
            notes.append(
                Note(
                    "no-spread", f"the standard deviation of {name.replace('_', ' ')} is estimated near 0, so 0 is used"
                )
            )
    # If each person used one system, people_by_system is NaN, and "people" includes it.
    return Spreads(**{name: 0.0 if math.isnan(sd) else sd for name, sd in sds.items()}), tuple(notes)
