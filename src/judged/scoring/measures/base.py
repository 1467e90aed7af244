"""What a measure is: a frozen value with a name, parameters, declared properties and a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter as InspectParameter
from inspect import Signature
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self, TypeVar, cast, dataclass_transform

import numpy as np

from judged.data.engine_rows import NotFetchedError
from judged.errors import MeasureError
from judged.scoring.judging import judge_list
from judged.scoring.judging.answered import Answered, judge_answer
from judged.scoring.measures.parameters import JUDGED_ONLY, UNDEFINED, Parameter, spell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.judging.answered import Pieces
    from judged.scoring.judging.join import Grade, Grades
    from judged.scoring.measures.aggregates import Aggregate
    from judged.scoring.measures.parameters import Undefined


@dataclass(frozen=True)
class Properties:
    """What is true of every score of a measure. The tests hold each measure to what it declares.

    Parameters
    ----------
    low, high
        The range of the scores; None where there is no bound.
    needs_ranking
        False for measures of a set, which do not look at ranks.
    graded
        Whether grades count, or only relevant and not relevant.
    ignores_unjudged_tail
        Whether unjudged documents appended at the end leave the score as it is.
    monotone
        Whether a higher grade for a returned document never lowers the score. For a binary measure, with the number
        of relevant documents left as it is.
    perfect
        The score of a ranking of all relevant documents, best first, where it is always the same.
    higher_is_better
        None for a measure that is neither (a count).
    every_label
        Whether each label of a document counts (subtopics, assessors), where others take the highest grade.
    topics_apart
        Whether the score of a topic depends on that topic alone.
    additive
        Whether each returned document adds its share to the score by itself: what it is worth at its rank does not
        depend on what stands at other ranks.
    better_first
        Whether exchanging two returned documents, so that the better one comes to stand above, never lowers the
        score. The better one has the higher grade; an unjudged document is as good as one of grade 0.
    judged_better_first
        Whether the same holds where every returned document is judged, of two with grades from 0.
    sees_relevance
        Whether it matters which documents are relevant, and not only which are judged, or how many there are.
    missing_matter
        Whether judged documents that were not returned may change the score: it has an ideal, or R, in it.
    against_ideal
        Whether the ranking is set against such an ideal: a higher grade in the ranking never lowers the score while
        the judgments stay as they are, and a higher grade in the judgments never raises it while the ranking stays,
        given that something is relevant.
    reads_answers
        Whether it is a measure of what a system answered (`judged.scoring.judging.answered.Answered`), not of a
        ranking.
    """

    low: float | None = 0.0
    high: float | None = 1.0
    needs_ranking: bool = True
    graded: bool = False
    ignores_unjudged_tail: bool = True
    monotone: bool = True
    perfect: float | None = None
    higher_is_better: bool | None = True
    every_label: bool = False
    topics_apart: bool = True
    additive: bool = False
    better_first: bool = False
    judged_better_first: bool = False
    sees_relevance: bool = True
    missing_matter: bool = True
    against_ideal: bool = False
    reads_answers: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of the scores as numbers; NaN where there is no bound."""
        return math.nan if self.low is None else self.low, math.nan if self.high is None else self.high

    @property
    def reach(self) -> float:
        """How far apart two scores can be; infinite where there is no bound."""
        return math.inf if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True)
class Entry:
    """What the registry knows of a measure beside its formula."""

    cls: type[Measure]
    name: str
    family: str
    aliases: Mapping[str, Mapping[str, Any]]
    aggregate: Aggregate
    properties: Properties
    cite: str
    use: str
    misleads: str
    tools: Mapping[str, str] = field(default_factory=dict)
    at: str = "cutoff"
    all_parameters: tuple[Parameter, ...] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in the order in which they are written, without the one that follows the ``@``."""
        return tuple(parameter for parameter in self.all_parameters if parameter.name != self.at)

    @property
    def cutoff(self) -> Parameter | None:
        """What follows the ``@``, where the measure takes something there: the cutoff, as a rule."""
        return next((parameter for parameter in self.all_parameters if parameter.name == self.at), None)


class MeasureType(type):
    """The type of measure classes. It lets a class stand for its defaults: ``nDCG @ 10`` is ``nDCG(cutoff=10)``."""

    @property
    def __signature__(cls) -> Signature:
        """Show the parameters in `help`, and what they are when they are not given."""
        entry: Entry | None = getattr(cls, "entry", None)
        declared = entry.all_parameters if entry else ()
        return Signature(
            [
                InspectParameter(
                    one.name,
                    InspectParameter.KEYWORD_ONLY,
                    default=InspectParameter.empty if one.required else one.default,
                )
                for one in declared
            ]
        )

    def __matmul__(cls: type[M], cutoff: float) -> M:  # type: ignore[misc]
        return cls(**{cls.entry.at: cutoff})


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
class Measure(metaclass=MeasureType):
    """Base of all measures. A measure has one method of its own: `score`.

    Its parameters are attributes that cannot be set anew. One constructor serves all measures: a generated
    one for each class, as data classes have, would cost a command most of its start. To an editor each class has
    one of its own, with its parameters.
    """

    entry: ClassVar[Entry]
    where: str = ""  # of which topics: an expression over their attributes; empty for all

    def __init__(self, *unnamed: Any, **given: Any) -> None:
        if not hasattr(type(self), "entry"):
            raise MeasureError(
                f"{type(self).__name__} is not a registered measure. Fix: decorate it with @measure(...)"
            )
        if unnamed:
            names = ", ".join(f"{parameter.name}=" for parameter in self.entry.all_parameters) or "none"
            raise MeasureError(f"{self.entry.name}: parameters are named. Fix: use {names}")
        incomplete = bool(given)  # what follows the @ may come later: P(rel=2) @ 5
        if where := given.pop("where", "").strip():
            from judged.data.expression import Expression  # few measures have a condition

            vars(self)["where"] = Expression(where).text
        for parameter in self.entry.all_parameters:
            if parameter.name not in given and parameter.required:
                if incomplete and parameter.name == self.entry.at:
                    continue
                how = parameter.example(self.entry.name, self.entry.at)
                raise MeasureError(f"{self.entry.name} needs {parameter.name}. Fix: write {how}")
            value = parameter.check(given.pop(parameter.name, parameter.default), self.entry.name)
            vars(self)[parameter.name] = value
        for name in given:
            if name == "cutoff":
                raise MeasureError(f"{self.entry.name} takes no cutoff. Fix: write {self.entry.name}")
            known = ", ".join(sorted(parameter.name for parameter in self.entry.all_parameters)) or "none"
            raise MeasureError(f"{self.entry.name} has no parameter {name!r}. Fix: use one of {known}")
        self.verify()

    def complete(self) -> Self:
        """Give the measure itself, and refuse one that still waits for what follows the ``@``.

        Raises
        ------
        MeasureError
            If it has no cutoff and needs one.
        """
        if (awaited := self.entry.cutoff) is not None and awaited.required and awaited.name not in vars(self):
            raise MeasureError(
                f"{self} needs {awaited.name}. Fix: write {self}@{10 if awaited.name == 'cutoff' else '...'}"
            )
        return self

    def verify(self) -> None:
        """Refuse parameters that are allowed each by itself, but not together.

        Raises
        ------
        MeasureError
            If they do not go together.
        """

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"{self} cannot be changed. Fix: make another with .replace({name}={value!r})")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{self} cannot be changed: {name} stays")

    @property
    def everywhere(self) -> Self:
        """The same measure over all topics."""
        return self.replace(where="") if self.where else self

    @property
    def properties(self) -> Properties:
        """What is true of the scores with these parameters: what the entry declares, unless they change it.

        A table of gains may take gains away, or give a higher grade less.
        """
        known, table = self._in_order(self.entry.properties), getattr(self, "gain", None)
        if not isinstance(table, tuple):
            return known
        known = replace(known, better_first=False)
        worth = [gain for _, gain in cast("tuple[tuple[float, float], ...]", table)]
        low = None if min(worth) < 0 else known.low
        return replace(known, low=low, monotone=known.monotone and worth == sorted(worth), perfect=None)

    def _in_order(self, known: Properties) -> Properties:
        """Take back what does not hold of the order: where the unjudged are left out, or are less than grade 0."""
        if getattr(self, "judged_only", False):
            return replace(known, additive=False, better_first=False)
        return replace(known, better_first=False) if getattr(self, "rel", None) == 0 else known

    def score(self, judged: Judged) -> Floats:
        """Compute one score per topic: (T,)."""
        raise MeasureError(f"{type(self).__name__} has no formula for the {len(judged)} topics")

    def __call__(self, judged: Judged) -> Floats:
        """Score every topic of a judged list."""
        # Returns NaN only for a topic that the measure's parameters leave out (`undefined=skip`).
        self.complete()
        if self.where:
            raise MeasureError(
                f"{self} needs attributes of topics. Fix: ask for it in evaluate, compare, slices or report"
            )
        if not judged.ranked and (self.properties.needs_ranking or getattr(self, "cutoff", None) is not None):
            raise MeasureError(
                f"{self} needs a ranking, and the run {judged.run.name} has no scores."
                " Fix: give scores, or use set measures such as SetP, SetR, SetF"
            )
        seen = judged.condensed if getattr(self, "judged_only", False) else judged
        try:
            scores = self.score(seen)
        except NotFetchedError as error:
            raise MeasureError(f"{self}: {error}") from None
        if np.shape(scores) != (len(judged),):
            raise MeasureError(f"{self} gave {np.shape(scores)} scores for {len(judged)} topics. Fix: one a topic")
        undefined = getattr(self, "undefined", 0.0)
        if undefined != 0.0 and not (defined := self.is_defined(judged)).all():
            how = f"undefined={spell(undefined)}, as nothing is relevant"
            scores = judged.step(self, np.where(defined, scores, undefined), how)
        return scores

    def of_list(
        self, grades: Grades, *, missing: Sequence[Grade] = (), facts: Mapping[str, Sequence[Any]] | None = None
    ) -> float:
        """Score one ranked list of grades, as `judge_list` takes them; `missing` are judged and not returned.

        >>> from judged import AP
        >>> AP().of_list([1, 0, 1, 0, 1], missing=[1])
        0.5666666666666667
        """
        return float(self(judge_list(grades, missing=missing, facts=facts))[0])

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics that have something relevant: (T,) bool."""
        return judged.num_relevant(getattr(self, "rel", np.nextafter(0, 1))) > 0

    def __matmul__(self, cutoff: float) -> Self:
        return self.replace(**{self.entry.at: cutoff})

    def replace(self, **changes: Any) -> Self:
        """Give the same measure with other parameters."""
        return type(self)(**{**vars(self), **changes})

    def __str__(self) -> str:
        """Write the canonical name: parameters that are not defaults, then the cutoff."""
        written = [
            f"{parameter.name}={spell(getattr(self, parameter.name))}"
            for parameter in self.entry.parameters
            if getattr(self, parameter.name) != parameter.default
        ]
        inside = f"({','.join(written)})" if written else ""
        cutoff = getattr(self, self.entry.at, None)
        where = f" where {self.where}" if self.where else ""
        return f"{self.entry.name}{inside}" + ("" if cutoff is None else f"@{spell(cutoff)}") + where

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        """Compare by name, which holds every parameter; NaN, which ``skip`` is, would not equal itself."""
        return str(self) == str(other) if isinstance(other, Measure) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


M = TypeVar("M", bound=Measure)


def param(parameter: Parameter) -> Any:
    """Declare a parameter of a measure: an attribute with its meaning, its default and its check."""
    return parameter


class RelevanceMeasure(Measure):
    """Base of the measures that need something relevant; these have two parameters more, behind their own."""

    judged_only: bool = param(JUDGED_ONLY)
    undefined: Undefined = param(UNDEFINED)


class AnswerMeasure(Measure):
    """Base of the measures of what a system answered: the weighted mean of pieces, such as nuggets or sentences."""

    exact: ClassVar[bool] = True  # whether some verdicts reach both ends of `reach`

    def pieces(self, answered: Answered) -> Pieces:
        """Give what the score is the mean of."""
        raise MeasureError(f"{type(self).__name__} has no formula for the {len(answered)} topics")

    def __call__(self, judged: Any) -> Floats:
        """Score every topic on what is judged: (T,); NaN where nothing is, or there is nothing to score."""
        if not isinstance(judged, Answered):
            raise MeasureError(
                f"{self} is a measure of answers, not of rankings. Fix: give answers: 'judged rag evaluate RESPONSES',"
                " in Python judged.pipelines.rag.evaluate(responses, ...)"
            )
        if self.where:
            raise MeasureError(f"{self} needs attributes of topics. Fix: ask for it in judged.pipelines.rag.evaluate")
        return judged.mean(self.pieces(judged))

    def reach(self, answered: Answered) -> tuple[Floats, Floats]:
        """Give the least and the greatest score that verdicts could make which are missing now: (T,) each."""
        ends = [self(answered.filled(best=best)) for best in (False, True)]
        return np.fmin(*ends), np.fmax(*ends)

    def decided(self, answered: Answered) -> float:
        """Give the share of the pieces whose value no further verdict could change, of those that may have one."""
        now, worst, best = (
            self.pieces(one) for one in (answered, answered.filled(best=False), answered.filled(best=True))
        )
        weights, worths = (np.array([getattr(one, of) for one in (now, worst, best)]) for of in ("weight", "worth"))
        counts = ((weights > 0) & ~np.isnan(worths)).any(axis=0)
        settled = ~np.isnan(now.worth) & (worst.worth == best.worth) & (weights[1] == weights[2])
        return float(settled[counts].mean()) if counts.any() else math.nan

    def of_answer(self, **parts: Any) -> float:
        """Score one answer, given as `judged.scoring.judging.answered.judge_answer` takes it.

        >>> from judged.scoring.measures import NuggetRecall
        >>> NuggetRecall().of_answer(vital=["support", "not"], okay=["partial", None])
        0.5
        """
        return float(self(judge_answer(**parts))[0])
