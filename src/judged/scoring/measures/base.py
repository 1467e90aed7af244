"""Base classes of measures: a frozen value with a name, parameters, declared properties, and a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter as InspectParameter
from inspect import Signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, Self, TypeVar, cast, dataclass_transform

import numpy as np

from judged.data.engine_rows import NotFetchedError
from judged.errors import MeasureError
from judged.scoring.judging import judge_list
from judged.scoring.judging.answers import JudgedAnswers, judge_answer
from judged.scoring.judging.trajectories import JudgedTrajectories, judge_trial
from judged.scoring.measures.parameters import JUDGED_ONLY, UNDEFINED, Parameter, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.judging.answers import Pieces
    from judged.scoring.judging.join import Grade, Grades
    from judged.scoring.measures.aggregates import Aggregate
    from judged.scoring.measures.parameters import Undefined


@dataclass(frozen=True)
class Properties:
    """Properties that hold for every score of a measure. The tests check each measure against its declaration.

    Parameters
    ----------
    low, high
        Range of the scores. None if there is no bound.
    needs_ranking
        Whether the measure uses ranks. False for measures of a set.
    graded
        Whether the height of a grade matters. False if a document is only relevant or not.
    ignores_unjudged_tail
        Whether unjudged documents appended to the ranking leave the score unchanged.
    monotone
        Whether a higher grade for a returned document never lowers the score. For a binary measure, the number of
        relevant documents is held constant.
    perfect
        Score of a ranking of all relevant documents, best first. None if it varies.
    higher_is_better
        None if neither high nor low scores are better (a count).
    uses_all_labels
        Whether each label of a document counts (subtopics, assessors). Other measures use the highest grade.
    topics_independent
        Whether the score of a topic depends on that topic alone.
    additive
        Whether the score is a sum over returned documents in which the term of a document depends on its own rank and
        grade only.
    better_first
        Whether moving the better of two returned documents above the other never lowers the score. The better document
        has the higher grade. An unjudged document is as good as one of grade 0.
    judged_better_first
        Whether `better_first` holds if every returned document is judged with a grade of 0 or more.
    depends_on_relevance
        Whether the score depends on which documents are relevant. False if only the presence or number of judgments
        matters.
    depends_on_missing
        Whether judged documents that were not returned can change the score, for example through an ideal or R.
    relative_to_ideal
        Whether the score is relative to such an ideal: a higher grade in the ranking never lowers the score if the
        judgments stay the same, and a higher grade in the judgments never raises it if the ranking stays the same and
        at least one document is relevant.
    reads
        What the measure scores: rankings, answers (`judged.scoring.judging.answers.JudgedAnswers`), or trajectories of
        agents (`judged.scoring.judging.trajectories.JudgedTrajectories`).
    """

    low: float | None = 0.0
    high: float | None = 1.0
    needs_ranking: bool = True
    graded: bool = False
    ignores_unjudged_tail: bool = True
    monotone: bool = True
    perfect: float | None = None
    higher_is_better: bool | None = True
    uses_all_labels: bool = False
    topics_independent: bool = True
    additive: bool = False
    better_first: bool = False
    judged_better_first: bool = False
    depends_on_relevance: bool = True
    depends_on_missing: bool = True
    relative_to_ideal: bool = False
    reads: Literal["rankings", "answers", "trajectories"] = "rankings"

    @property
    def bounds(self) -> tuple[float, float]:
        """Range of the scores. NaN if there is no bound."""
        return math.nan if self.low is None else self.low, math.nan if self.high is None else self.high

    @property
    def score_range(self) -> float:
        """Largest possible difference of two scores. Infinite if there is no bound."""
        return math.inf if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True)
class Entry:
    """Registry entry of a measure: all that is declared besides its formula."""

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
    cutoff_name: str = "cutoff"  # the parameter written after the @; `recall` for IPrec
    all_parameters: tuple[Parameter, ...] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters in the order of the name, without the parameter after the ``@``."""
        return tuple(parameter for parameter in self.all_parameters if parameter.name != self.cutoff_name)

    @property
    def cutoff(self) -> Parameter | None:
        """Parameter after the ``@``, usually the cutoff. None if the measure has none."""
        return next((parameter for parameter in self.all_parameters if parameter.name == self.cutoff_name), None)


class MeasureType(type):
    """Metaclass of measures. It lets a class represent its defaults: ``nDCG @ 10`` is ``nDCG(cutoff=10)``."""

    @property
    def __signature__(cls) -> Signature:
        """Signature for `help`, with the declared parameters and their defaults."""
        entry: Entry | None = getattr(cls, "entry", None)
        declared = entry.all_parameters if entry else ()
        kind, empty = InspectParameter.KEYWORD_ONLY, InspectParameter.empty
        defaults = {parameter.name: empty if parameter.required else parameter.default for parameter in declared}
        return Signature([InspectParameter(name, kind, default=default) for name, default in defaults.items()])

    def __matmul__(cls: type[M], cutoff: float) -> M:  # type: ignore[misc]
        return cls(**{cls.entry.cutoff_name: cutoff})


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
class Measure(metaclass=MeasureType):
    """Base class of all measures. A subclass defines its parameters and `score`.

    Instances are immutable and compare by name. Editors see a constructor with the parameters of each class.
    """

    # One constructor serves all measures: generating one per class, as dataclasses do, would take most of the start-up
    # time of a command.

    entry: ClassVar[Entry]
    where: str = ""  # expression over attributes that selects the topics; empty for all

    def __init__(self, *positional: Any, **parameters: Any) -> None:
        if not hasattr(type(self), "entry"):
            raise MeasureError(f"{type(self).__name__} must be registered. Fix: decorate it with @measure(...)")
        if positional:
            names = ", ".join(f"{parameter.name}=" for parameter in self.entry.all_parameters) or "none"
            raise MeasureError(f"{self.entry.name}: parameters must be passed by name. Fix: use {names}")
        # P(rel=2) @ 5: the cutoff may follow, so a missing one is an error only if no parameter was passed.
        may_get_cutoff = bool(parameters)
        if where := parameters.pop("where", "").strip():
            from judged.data.expression import Expression  # few measures have a condition

            vars(self)["where"] = Expression(where).text
        for parameter in self.entry.all_parameters:
            if parameter.name not in parameters and parameter.required:
                if may_get_cutoff and parameter.name == self.entry.cutoff_name:
                    continue
                example = parameter.example(self.entry.name, self.entry.cutoff_name)
                raise MeasureError(f"{self.entry.name} requires `{parameter.name}`. Fix: write {example}")
            value = parameter.check(parameters.pop(parameter.name, parameter.default), self.entry.name)
            vars(self)[parameter.name] = value
        for name in parameters:
            if name == "cutoff":
                raise MeasureError(f"{self.entry.name} takes no cutoff. Fix: write {self.entry.name}")
            names = ", ".join(sorted(parameter.name for parameter in self.entry.all_parameters)) or "none"
            raise MeasureError(f"{self.entry.name} has no parameter {name!r}. Fix: use one of {names}")
        self.verify()

    def require_cutoff(self) -> Self:
        """Return the measure, or raise if the parameter after the ``@`` is missing.

        Raises
        ------
        MeasureError
            If the measure has no cutoff and needs one.
        """
        cutoff = self.entry.cutoff
        if cutoff is not None and cutoff.required and cutoff.name not in vars(self):
            example = 10 if cutoff.name == "cutoff" else "..."
            raise MeasureError(f"{self} requires `{cutoff.name}`. Fix: write {self}@{example}")
        return self

    def verify(self) -> None:
        """Raise if the combination of parameters is invalid. Each one is already checked by itself.

        Raises
        ------
        MeasureError
            If the parameters contradict each other.
        """

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"{self} cannot be changed. Fix: create another measure with .replace({name}={value!r})")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{self} cannot be changed, so its attribute {name} cannot be deleted")

    @property
    def without_condition(self) -> Self:
        """The same measure over all topics, without its `where`."""
        return self.replace(where="") if self.where else self

    @property
    def properties(self) -> Properties:
        """Properties of the scores with these parameters.

        They are the declared ones, except where a parameter changes them.
        """
        declared, table = self._valid_order(self.entry.properties), getattr(self, "gain", None)
        if not isinstance(table, tuple):
            return declared
        # A table of gains may assign negative gains, or less gain to a higher grade.
        declared = replace(declared, better_first=False)
        gains = [gain for _, gain in cast("tuple[tuple[float, float], ...]", table)]
        low = None if min(gains) < 0 else declared.low
        return replace(declared, low=low, monotone=declared.monotone and gains == sorted(gains), perfect=None)

    def _valid_order(self, declared: Properties) -> Properties:
        """Drop order properties that fail if unjudged documents are removed or rank below grade 0."""
        if getattr(self, "judged_only", False):
            return replace(declared, additive=False, better_first=False)
        return replace(declared, better_first=False) if getattr(self, "rel", None) == 0 else declared

    def score(self, judged: Judged) -> Floats:
        """Compute the score of each topic: (T,)."""
        raise MeasureError(f"{type(self).__name__} does not define score(), so {len(judged)} topics cannot be scored")

    def __call__(self, judged: Judged) -> Floats:
        """Return the score of each topic of a judged list: (T,)."""
        # Returns NaN only for a topic that the measure's parameters exclude (`undefined=skip`).
        self.require_cutoff()
        if self.where:
            raise MeasureError(
                f"{self} requires attributes of topics, which this function does not have. Fix: use this measure in"
                " evaluate, compare, slices, or report"
            )
        if not judged.ranked and (self.properties.needs_ranking or getattr(self, "cutoff", None) is not None):
            raise MeasureError(
                f"{self} requires a ranking, but the run {judged.run.name} has no scores."
                " Fix: add scores, or use set measures such as SetP, SetR, SetF"
            )
        counted = judged.condensed if getattr(self, "judged_only", False) else judged
        try:
            scores = self.score(counted)
        except NotFetchedError as error:
            raise MeasureError(f"{self}: {error}") from None
        if np.shape(scores) != (len(judged),):
            shape = np.shape(scores)
            raise MeasureError(
                f"{self}: score returned shape {shape} for {len(judged)} topics. Fix: return one score per topic"
            )
        # Formulas return 0 for a topic without relevant documents, which is the default of `undefined`.
        undefined = getattr(self, "undefined", 0.0)
        if undefined != 0.0 and not (defined := self.is_defined(judged)).all():
            how = f"undefined={format_value(undefined)}, because no document is relevant"
            scores = judged.step(self, np.where(defined, scores, undefined), how)
        return scores

    def of_list(
        self,
        grades: Grades | str,
        *,
        missing: Sequence[Grade] | str = (),
        facts: Mapping[str, Sequence[Any]] | None = None,
    ) -> float:
        """Return the score of one ranked list of grades. `judge_list` describes the parameters.

        >>> from judged import AP
        >>> AP().of_list([1, 0, 1, 0, 1], missing=[1])
        0.5666666666666667
        """
        return float(self(judge_list(grades, missing=missing, facts=facts))[0])

    def is_defined(self, judged: Judged) -> Any:
        """Return whether each topic has a relevant document: (T,) bool."""
        return judged.num_relevant(getattr(self, "rel", np.nextafter(0, 1))) > 0

    def __matmul__(self, cutoff: float) -> Self:
        return self.replace(**{self.entry.cutoff_name: cutoff})

    def replace(self, **changes: Any) -> Self:
        """Return the same measure with other parameters."""
        return type(self)(**{**vars(self), **changes})

    def __str__(self) -> str:
        """Format the canonical name: parameters that differ from their defaults, then the cutoff."""
        changed = [
            f"{parameter.name}={format_value(getattr(self, parameter.name))}"
            for parameter in self.entry.parameters
            if getattr(self, parameter.name) != parameter.default
        ]
        parameters = f"({','.join(changed)})" if changed else ""
        cutoff = getattr(self, self.entry.cutoff_name, None)
        where = f" where {self.where}" if self.where else ""
        return f"{self.entry.name}{parameters}" + ("" if cutoff is None else f"@{format_value(cutoff)}") + where

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        # The name holds every parameter. Comparing values would fail for ``undefined=skip``, which is NaN.
        return str(self) == str(other) if isinstance(other, Measure) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


M = TypeVar("M", bound=Measure)


def param(parameter: Parameter) -> Any:
    """Declare a parameter of a measure: an attribute with a meaning, a default, and a check.

    Parameters
    ----------
    parameter
        Meaning, default, and check.

    Returns
    -------
    object
        The parameter, typed as the attribute; an instance of the measure has its value.

    Examples
    --------
    >>> class Share(Measure):  # doctest: +SKIP
    ...     cutoff: int | None = param(Parameter("deepest rank", default=None))
    """
    return parameter


class RelevanceMeasure(Measure):
    """Base of the measures that need a relevant document. Two parameters follow those of the subclass."""

    judged_only: bool = param(JUDGED_ONLY)
    undefined: Undefined = param(UNDEFINED)


class AnswerMeasure(Measure):
    """Base of the measures of answers: a weighted mean over pieces, such as nuggets or sentences."""

    exact: ClassVar[bool] = True  # whether some verdicts attain both of `score_bounds`

    def pieces(self, answered: JudgedAnswers) -> Pieces:
        """Return the pieces that the score is the mean of."""
        raise MeasureError(
            f"{type(self).__name__} does not define pieces(), so {len(answered)} topics cannot be scored"
        )

    def __call__(self, judged: Any) -> Floats:
        """Return the score of each topic: (T,). NaN if the topic has no judged piece."""
        if not isinstance(judged, JudgedAnswers):
            raise MeasureError(
                f"{self} is a measure of answers, not of rankings. Fix: pass answers: 'judged rag evaluate RESPONSES',"
                " in Python judged.pipelines.rag.evaluate(responses, ...)"
            )
        if self.where:
            raise MeasureError(
                f"{self} requires attributes of topics. Fix: use this measure in judged.pipelines.rag.evaluate"
            )
        return judged.mean(self.pieces(judged))

    def score_bounds(self, answered: JudgedAnswers) -> tuple[Floats, Floats]:
        """Return the lowest and the highest score that the missing verdicts allow: (T,) each."""
        extremes = [self(answered.fill_unjudged(best=best)) for best in (False, True)]
        return np.fmin(*extremes), np.fmax(*extremes)

    def decided_share(self, answered: JudgedAnswers) -> float:
        """Return the share of the countable pieces that no missing verdict can change."""
        now, worst, best = (
            self.pieces(filled)
            for filled in (answered, answered.fill_unjudged(best=False), answered.fill_unjudged(best=True))
        )
        weights = np.array([pieces.weight for pieces in (now, worst, best)])
        values = np.array([pieces.value for pieces in (now, worst, best)])
        is_counted = ((weights > 0) & ~np.isnan(values)).any(axis=0)
        settled = ~np.isnan(now.value) & (worst.value == best.value) & (weights[1] == weights[2])
        return float(settled[is_counted].mean()) if is_counted.any() else math.nan

    def of_answer(self, **parts: Any) -> float:
        """Return the score of one answer. `judged.scoring.judging.answers.judge_answer` describes the parameters.

        >>> from judged.scoring.measures import NuggetRecall
        >>> NuggetRecall().of_answer(vital=["support", "not"], okay=["partial", None])
        0.5
        """
        return float(self(judge_answer(**parts))[0])


class TrajectoryMeasure(Measure):
    """Base of the measures of trajectories: the mean over the trials of a question."""

    def trial_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return the score of each trial: (N,). NaN if it has none."""
        raise MeasureError(
            f"{type(self).__name__} does not define trial_scores(), so {judged.n_trials} trials cannot be scored"
        )

    def question_scores(self, judged: JudgedTrajectories) -> Floats:
        """Return the mean score of the trials of each question: (T,). NaN if no trial has a score."""
        return judged.by_question(self.trial_scores(judged))

    def __call__(self, judged: Any) -> Floats:
        """Return the score of each question: (T,). NaN if it has none."""
        if not isinstance(judged, JudgedTrajectories):
            raise MeasureError(
                f"{self} is a measure of trajectories of agents, not of rankings. Fix: pass trajectories:"
                " 'judged trajectories evaluate', in Python judged.pipelines.trajectories.evaluate(trajectories, ...)"
            )
        self.require_cutoff()
        if self.where:
            raise MeasureError(
                f"{self} requires attributes of topics. Fix: use this measure in judged.pipelines.trajectories.evaluate"
            )
        return self.question_scores(judged)

    def score_bounds(self, judged: JudgedTrajectories) -> tuple[Floats, Floats]:
        """Return the lower of the scores with all unjudged documents nonrelevant or relevant, and the higher: (T,)."""
        if not self.properties.depends_on_relevance:
            return self(judged), self(judged)
        extremes = [self(judged.fill_unjudged(grade)) for grade in (0.0, judged.highest)]
        return np.fmin(*extremes), np.fmax(*extremes)

    def of_trial(self, *args: Any, **parts: Any) -> float:
        """Return the score of one question. `judged.scoring.judging.trajectories.judge_trial` describes the parameters.

        >>> from judged.scoring.measures import SeenR
        >>> SeenR().of_trial([["a", "x"], ["b"]], {"a": 1, "b": 1, "c": 1, "d": 1})
        0.5
        """
        return float(self(judge_trial(*args, **parts))[0])
