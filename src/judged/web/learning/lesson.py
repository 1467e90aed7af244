"""What a lesson is made of, and what is computed of its list, before and after a change."""

from __future__ import annotations

import re
from dataclasses import dataclass

from judged.evaluation import evaluate
from judged.judging import judge, judge_list
from judged.measures import parse
from judged.uncertainty import tie_expected, tie_range, unjudged_range
from judged.web.evaluator.lists import read_list, read_missing

_NUMBER = re.compile(
    r"\{(?:(after|open|tied|topics) (?:(low|high|mean|after) )?)?"  # of what; which end, or after the change
    r"([^ :}]+)(?: of ([^ :}]+)(?: missing ([^ :}]+))?)?:([^}]+)\}"  # a measure, another list than the lesson's, digits
)


@dataclass(frozen=True)
class Lesson:
    """One step of the introduction. Texts are a little Markdown with numbers in braces, as `filled` reads them."""

    key: str
    title: str
    idea: str  # the lesson in one sentence
    text: tuple[str, ...]  # paragraphs
    typed: str  # the list, as the evaluator takes it
    measures: tuple[str, ...]  # what is computed of it; the first is the one to edit
    # change, ask, answer: what to do with the list, what to guess before one looks, what happens, and why
    change: str
    ask: str
    answer: str
    after: str  # the list after the change
    further: tuple[str, ...]  # measures to read about next
    missing: str = ""  # from the list
    after_missing: str = ""  # from the list after the change
    errors: tuple[tuple[str, str], ...] = ()  # what teaching material has wrong in places, and what is right
    other_topics: tuple[tuple[str, str], ...] = ()  # lists and what they miss; the lesson's own is the first topic

    def filled(self, text: str) -> str:
        """Write a text on one line, with its numbers computed.

        ``{AP:.3f}`` is that of the list, ``{after AP:.3f}`` after the change, ``{AP of 1,0 missing 1:.3f}`` of another
        list; ``open low`` and ``high`` are the ends if unjudged documents had judgments, ``tied`` those of all orders;
        ``topics mean``, ``low``, ``high`` and ``after`` are of all topics, the last with the first one changed.
        """
        return " ".join(_NUMBER.sub(lambda found: format(self._number(*found.groups()[:-1]), found[6]), text).split())

    def _number(self, what: str | None, end: str, measure: str, typed: str | None, missing: str | None) -> float:
        if what == "topics":
            first = (self.after, self.after_missing) if end == "after" else (self.typed, self.missing)
            return _over_topics(measure, (first, *self.other_topics), end)
        if what == "tied":
            docs = {f"d{at}": grade for at, grade in enumerate(grades(self.typed), 1) if grade is not None}
            judged = judge({"list": docs}, {"list": dict.fromkeys(docs, 1.0)})
            if end == "mean":
                return float(tie_expected(judged, measure).values[0])
            return float(getattr(tie_range(judged, measure), end)[0])
        if what == "open":
            judged = judge_list(grades(self.typed), missing=read_missing(self.missing))
            return float(getattr(unjudged_range(judged, measure), end)[0])
        if what == "after":
            return score(measure, self.after, self.after_missing)
        return score(measure, typed, missing or "") if typed else score(measure, self.typed, self.missing)


def grades(typed: str) -> list[float | None]:
    """Read the grades of a list as the evaluator takes it."""
    return [item.grade for item in read_list(typed, "list")]


def score(measure: str, typed: str, missing: str = "") -> float:
    """Score a list as the evaluator takes it.

    >>> round(score("AP", "1,0,1,0,1", "1"), 3)
    0.567
    """
    return parse(measure).of_list(grades(typed), missing=read_missing(missing))


def _over_topics(measure: str, topics: tuple[tuple[str, str], ...], end: str) -> float:
    """Give the aggregate over lists and what is missing from each, or an end of its interval."""
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for topic, (typed, missing) in enumerate(topics):
        ranked = list(enumerate(grades(typed), 1))
        qrels[str(topic)] = {f"d{rank}": grade for rank, grade in ranked if grade is not None}
        qrels[str(topic)] |= {f"m{at}": grade for at, grade in enumerate(read_missing(missing))}
        run[str(topic)] = {f"d{rank}": -float(rank) for rank, _ in ranked}
    estimate = evaluate(qrels, run, measure).estimates()[0]
    low, high = estimate.ci or (0.0, 0.0)
    return {"low": low, "high": high}.get(end, estimate.value)
