"""Lessons of `lessons.toml`, with scores of each list before and after a change."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar, Literal
from urllib.parse import urlencode

from markupsafe import Markup, escape

from judged.interface.pages.answers import PageAnswer
from judged.interface.pages.evaluator.lists import read_list, read_missing
from judged.interface.pages.learn.advice import typed_example
from judged.interface.pages.problems import UnknownError
from judged.results import TEXT, YES_NO, Column, Table, number
from judged.results.spelling import use_one_of
from judged.scoring.evaluation import evaluate
from judged.scoring.judging import judge, judge_list
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.registry import REGISTRY
from judged.scoring.uncertainty.ties import tie_expected, tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range

_INLINE = re.compile(r"`([^`]+)`|\$([^$]+)\$|\[([^\]]+)\]\([^)]+\)|\*(\w+)\*")
_MEASURE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_STYLE = re.compile(' style="[^"]*"')  # a thin space; the content security policy forbids inline styles
_PARTS = re.compile(r",\s*\\q?quad\b")


def formula(latex: str, *, block: bool = False) -> Markup:
    r"""Convert a LaTeX formula to MathML; unsupported LaTeX is shown as code.

    >>> print(formula("R^2")), print(formula(r"\nothing"))
    <math><msup><mi>R</mi><mn>2</mn></msup></math>
    <code>\nothing</code>
    (None, None)
    """
    from math_core import LatexError, LatexToMathML

    try:
        mathml = LatexToMathML().convert_with_local_state(latex, displaystyle=block)
    except LatexError:
        return Markup("<code>{}</code>").format(latex)
    return Markup(_STYLE.sub("", mathml))  # noqa: S704  it escapes all texts


@dataclass(frozen=True)
class Block:
    """A paragraph, a formula between ``$$``, or code."""

    kind: Literal["text", "formula", "code"]
    text: str  # source; of formulas, the LaTeX without the dollars
    formulas: tuple[str, ...] = ()  # MathML of each part; parts are separated by a comma and a wide space


def blocks(markdown: str) -> tuple[Block, ...]:
    r"""Split a text into paragraphs, formulas, and code.

    >>> [block.kind for block in blocks("Half:\n\n$$ a = \\frac{b}{2} $$\n\n```python\n>>> 1\n1\n```")]
    ['text', 'formula', 'code']
    """
    return tuple(_block(part.strip()) for part in markdown.split("\n\n") if part.strip())


def _block(text: str) -> Block:
    if text.startswith("```"):
        return Block("code", text.partition("\n")[2].removesuffix("```").rstrip())
    joined = " ".join(text.split())
    if not (joined.startswith("$$") and joined.endswith("$$")):
        return Block("text", joined)
    latex = joined.strip("$ ")
    return Block("formula", latex, tuple(formula(part, block=True) for part in _PARTS.split(latex)))


def prose(text: str) -> Markup:
    """Render a text with code, formulas, and names of measures as links; other links are removed.

    >>> print(prose("what `CwlU` is & `gain=exp2`"))
    what <a href="/learn/CwlU"><code>CwlU</code></a> is &amp; <code>gain=exp2</code>
    """
    markup, end = Markup(), 0
    for match in _INLINE.finditer(text):
        markup += escape(text[end : match.start()]) + _inline(*match.groups())
        end = match.end()
    return markup + escape(text[end:])


def _inline(code: str | None, latex: str | None, link: str | None, emphasized: str | None) -> Markup:
    if latex is not None:
        return formula(latex)
    if emphasized is not None:
        return Markup("<em>{}</em>").format(emphasized)
    if code is None:
        return escape(link)
    markup = Markup("<code>{}</code>").format(code)
    is_measure = _MEASURE_NAME.fullmatch(code) and len(code) > 1 and code in REGISTRY
    return Markup('<a href="/learn/{}">{}</a>').format(code, markup) if is_measure else markup


_NUMBER = re.compile(
    r"\{(?:(after|open|tied|topics|weight) (?:(low|high|mean|after) )?)?"  # source; end of the range, or the change
    r"([^ :}]+)(?: of ([^ :}]+)(?: missing ([^ :}]+))?)?:([^}]+)\}"  # measure; other list; format
)


@dataclass(frozen=True)
class Lesson:
    """One step of the introduction. Texts are simple Markdown with numbers in braces, see `filled`."""

    key: str
    title: str
    idea: str  # the lesson in one sentence
    text: list[str]  # paragraphs
    typed: str  # the list, in the format of the evaluator
    measures: list[str]  # computed for the list; the first one can be edited
    # instruction to change the list, question before the result is shown, and result with the reason
    change: str
    question: str
    answer: str
    after: str  # the list after the change
    further: list[str]  # further reading
    missing: str = ""  # of the list
    after_missing: str = ""  # of the list after the change
    # `wrong` statements in teaching material, and the `right` ones, possibly with a list (`typed`, `missing`) and a
    # table: its name (`table`), titles of `columns`, and `rows` of a label and numbers as in `filled`, without a format
    errors: tuple[dict[str, Any], ...] = ()
    other_topics: tuple[list[str], ...] = ()  # lists and missing grades of topics after the first one

    def filled(self, text: str) -> str:
        """Return a text on one line, with its numbers computed.

        ``{AP:.3f}`` is the score of the list, ``{after AP:.3f}`` after the change, ``{AP of 1,0 missing 1:.3f}`` of
        another list; ``open low`` and ``high`` are bounds over unjudged documents, ``tied`` over the order of ties;
        ``topics mean``, ``low``, ``high``, and ``after`` are over all topics, the last one after the change.
        ``weight DCG of 0,1`` is the score divided by the score of a list with one relevant document at rank 1.
        """
        line = " ".join(text.split())
        return _NUMBER.sub(lambda match: format(self._number(*match.groups()[:-1]), match[6]), line)

    def fill_error(self, error: dict[str, Any]) -> tuple[dict[str, Any], Table | None]:
        """Compute the numbers of a common error and its table; empty cells of the table have no number."""
        own = replace(self, typed=error["typed"], missing=error.get("missing", "")) if "typed" in error else self
        about: dict[str, Any] = {name: own.filled(error[name]) for name in ("wrong", "right")}
        if own is not self:
            example = typed_example(parse("AP"), own.typed, own.missing)
            about |= {"rows": example.rows, "missing_grades": example.missing_grades}
        if "table" not in error:
            return about, None
        names, titles = zip(*error["columns"].items(), strict=True)
        labels, *cells = zip(*error["rows"], strict=True)
        numbers = [[float(own.filled(f"{{{cell}:.17g}}")) if cell else None for cell in column] for column in cells]
        columns = map(Column, names, [labels, *numbers], [TEXT, *[number(3)] * len(numbers)], titles)
        return about | {"table": error["table"]}, Table(error["table"], tuple(columns))

    def _number(self, source: str | None, end: str, measure: str, typed: str | None, missing: str | None) -> float:
        current, after = (self.typed, self.missing), (self.after, self.after_missing)
        match source:
            case "topics":
                return _over_topics(measure, [after if end == "after" else current, *self.other_topics], end)
            case "tied":
                docs = {f"d{i}": grade for i, grade in enumerate(grades(self.typed)) if grade is not None}
                judged = judge({"list": docs}, {"list": dict.fromkeys(docs, 1.0)})
                if end == "mean":
                    return float(tie_expected(judged, measure).values[0])
                return float(getattr(tie_range(judged, measure), end)[0])
            case "open":
                judged = judge_list(grades(self.typed), missing=read_missing(self.missing))
                return float(getattr(unjudged_range(judged, measure), end)[0])
            case "after":
                return score(measure, *after)
            case "weight":
                return score(measure, typed or self.typed) / score(measure, "1")
            case _:
                return score(measure, typed, missing or "") if typed else score(measure, *current)


def grades(typed: str) -> list[float | None]:
    """Parse the grades of a list in the format of the evaluator."""
    return [document.grade for document in read_list(typed, "list")]


def score(measure: str, typed: str, missing: str = "") -> float:
    """Score a list in the format of the evaluator.

    >>> round(score("AP", "1,0,1,0,1", "1"), 3)
    0.567
    """
    return parse(measure).of_list(grades(typed), missing=read_missing(missing))


def _over_topics(measure: str, topics: list[Any], end: str) -> float:
    """Return the mean over lists, or an end of its interval; each list has its missing grades."""
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for topic, (typed, missing) in enumerate(topics):
        ranked = list(enumerate(grades(typed), 1))
        qrels[str(topic)] = {f"d{rank}": grade for rank, grade in ranked if grade is not None}
        qrels[str(topic)] |= {f"m{i}": grade for i, grade in enumerate(read_missing(missing))}
        run[str(topic)] = {f"d{rank}": -float(rank) for rank, _ in ranked}
    estimate = evaluate(qrels, run, measure).estimates()[0]
    low, high = estimate.ci or (0.0, 0.0)
    return {"low": low, "high": high}.get(end, estimate.value)


_TEXTS = files("judged.interface.pages.learn").joinpath("lessons.toml").read_text(encoding="utf-8")
LESSONS = {row["key"]: Lesson(**row) for row in tomllib.loads(_TEXTS)["lessons"]}
"""Lessons by key, in teaching order."""
STEPS: list[dict[str, Any]] = [
    {"key": lesson.key, "number": number, "title": lesson.title, "idea": lesson.idea}
    for number, lesson in enumerate(LESSONS.values(), 1)
]
"""Table of contents."""


class LessonPage(PageAnswer):
    """Page of a lesson. Texts are simple Markdown: code in backticks."""

    kind: ClassVar[str] = "lesson"


@lru_cache(maxsize=len(LESSONS))
def lesson_page(key: str) -> LessonPage:
    """Compute the page of a lesson.

    >>> print(*lesson_page("rank-matters").table().grid().rows[:2])
    ('AP', '0.567', '0.442', 'yes') ('P@5', '0.600', '0.600', 'no')
    """
    if key not in LESSONS:
        raise UnknownError(f"no lesson {key!r}. Fix: {use_one_of(LESSONS)}.")
    lesson, position = LESSONS[key], list(LESSONS).index(key)
    first = parse(lesson.measures[0])
    changed = typed_example(first, lesson.after, lesson.after_missing)
    example = typed_example(first, lesson.typed, lesson.missing)
    state = {"list": lesson.typed, "missing": lesson.missing, "cutoff": len(example.rows)}
    errors = [lesson.fill_error(error) for error in lesson.errors]
    before = {"before": lesson.typed, "before_missing": lesson.missing}
    after = state | before | {"list": lesson.after, "missing": lesson.after_missing}
    about = {
        **STEPS[position],
        "n_lessons": len(LESSONS),
        "text": [lesson.filled(text) for text in lesson.text],
        "change": lesson.change,
        "question": lesson.question,
        "answer": lesson.filled(lesson.answer),
        "changed": {"rows": changed.rows, "missing_grades": changed.missing_grades, "evaluator": _evaluator(after)},
        "evaluator": _evaluator(state),
        "errors": [about_error for about_error, _ in errors],
        "further": lesson.further,
        "previous": STEPS[position - 1] if position else None,
        "next": STEPS[position + 1] if position + 1 < len(STEPS) else None,
        "example": example,
    }
    return LessonPage(about, (_moves(lesson), *(table for _, table in errors if table is not None)))


def _evaluator(parameters: dict[str, Any]) -> str:
    """Return the address of the evaluator with a list."""
    return f"/evaluator?{urlencode({name: value for name, value in parameters.items() if value}, safe=',*')}"


def _moves(lesson: Lesson) -> Table:
    """Return the table of scores before and after the change."""
    before = [score(name, lesson.typed, lesson.missing) for name in lesson.measures]
    after = [score(name, lesson.after, lesson.after_missing) for name in lesson.measures]
    has_changed = [abs(new - old) > 1e-12 for old, new in zip(before, after, strict=True)]
    columns = (
        Column("measure", lesson.measures, TEXT, "Measure"),
        Column("family", [parse(name).entry.name for name in lesson.measures], only="data"),
        Column("before", before, number(3), "Before"),
        Column("after", after, number(3), "After"),
        Column("changed", has_changed, YES_NO, "Changed"),
    )
    kinds = ["changed" if changed else "unchanged" for changed in has_changed]
    return Table("measures", columns, "Before and after", kinds=kinds)
