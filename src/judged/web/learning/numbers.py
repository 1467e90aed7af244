"""Numbers that lessons speak of: each says what is to be computed, and judged computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from judged.evaluation import evaluate
from judged.judging import judge, judge_list
from judged.measures import parse
from judged.uncertainty import tie_expected, tie_range, unjudged_range
from judged.web.evaluator.typed import read_list, read_missing

if TYPE_CHECKING:
    from judged.judging import Judged


class Number(Protocol):
    """Something that can be computed."""

    def value(self) -> float:
        """Compute it."""
        ...


@dataclass(frozen=True)
class Score:
    """A measure on a list, both as the evaluator takes them.

    >>> round(Score("AP", "1,0,1,0,1", "1").value(), 3)
    0.567
    """

    measure: str
    typed: str
    missing: str = ""

    def value(self) -> float:
        """Score the list."""
        return parse(self.measure).of_list(_grades(self.typed), missing=read_missing(self.missing))


@dataclass(frozen=True)
class Tied:
    """A measure on a list whose documents all have the same score.

    >>> Tied("RR", "1,0", "expected").value()
    0.75
    """

    measure: str
    typed: str
    end: Literal["low", "high", "expected"]

    def value(self) -> float:
        """Give the least or the greatest score of all orders, or the mean of them."""
        docs = {f"d{at}": grade for at, grade in enumerate(_grades(self.typed), 1)}
        judged = judge(
            {"list": {doc: grade for doc, grade in docs.items() if grade is not None}},
            {"list": dict.fromkeys(docs, 1.0)},
        )
        if self.end == "expected":
            return float(tie_expected(judged, self.measure).values[0])
        return float(getattr(tie_range(judged, self.measure), self.end)[0])


@dataclass(frozen=True)
class Open:
    """How far a score could move if the unjudged documents had a judgment."""

    measure: str
    typed: str
    missing: str
    end: Literal["low", "high"]

    def value(self) -> float:
        """Give the least or the greatest score of all ways to judge them."""
        return float(getattr(unjudged_range(_judged(self.typed, self.missing), self.measure), self.end)[0])


@dataclass(frozen=True)
class Mean:
    """A measure over several topics, each a list and what is missing from it.

    >>> topics = (("0,1", ""), ("1", ""), ("0,0,0,0,1", ""))
    >>> round(Mean("RR", topics).value(), 4)
    0.5667
    """

    measure: str
    topics: tuple[tuple[str, str], ...]
    end: Literal["value", "low", "high"] = "value"

    def value(self) -> float:
        """Give the aggregate, or an end of its interval."""
        qrels: dict[str, dict[str, float]] = {}
        run: dict[str, dict[str, float]] = {}
        for at, (typed, missing) in enumerate(self.topics, 1):
            grades = _grades(typed)
            qrels[str(at)] = {f"d{rank}": grade for rank, grade in enumerate(grades, 1) if grade is not None}
            qrels[str(at)] |= {f"m{place}": grade for place, grade in enumerate(read_missing(missing), 1)}
            run[str(at)] = {f"d{rank}": -float(rank) for rank in range(1, len(grades) + 1)}
        found = evaluate(qrels, run, self.measure).estimates()[0]
        return found.value if self.end == "value" or found.ci is None else found.ci[("low", "high").index(self.end)]


def _grades(typed: str) -> list[float | None]:
    return [item.grade for item in read_list(typed, "list")]


def _judged(typed: str, missing: str) -> Judged:
    return judge_list(_grades(typed), missing=read_missing(missing))
