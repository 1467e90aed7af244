"""The lessons of `lessons.toml`, and what is computed of each list, before and after a change."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
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
from judged.scoring.evaluation import evaluate
from judged.scoring.judging import judge, judge_list
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.registry import REGISTRY
from judged.scoring.uncertainty.ties import tie_expected, tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range

_INLINE = re.compile(r"`([^`]+)`|\$([^$]+)\$|\[([^\]]+)\]\([^)]+\)|\*(\w+)\*")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_STYLE = re.compile(' style="[^"]*"')  # a thin space; pages let no element have a style of its own
_PARTS = re.compile(r",\s*\\q?quad\b")


def formula(latex: str, *, block: bool = False) -> Markup:
    r"""Convert one formula; what is not understood is shown as it stands.

    >>> print(formula("R^2")), print(formula(r"\nothing"))
    <math><msup><mi>R</mi><mn>2</mn></msup></math>
    <code>\nothing</code>
    (None, None)
    """
    from math_core import LatexError, LatexToMathML

    try:
        made = LatexToMathML().convert_with_local_state(latex, displaystyle=block)
    except LatexError:
        return Markup("<code>{}</code>").format(latex)
    return Markup(_STYLE.sub("", made))  # noqa: S704  it escapes all texts


@dataclass(frozen=True)
class Block:
    """A paragraph, what stands between ``$$``, or code."""

    kind: Literal["text", "formula", "code"]
    text: str  # as it stands; of formulas, the LaTeX without the dollars
    formulas: tuple[str, ...] = ()  # parts that a comma and a wide space separate are formulas of their own


def blocks(markdown: str) -> tuple[Block, ...]:
    r"""Part a text into paragraphs, formulas and code.

    >>> [block.kind for block in blocks("Half:\n\n$$ a = \\frac{b}{2} $$\n\n```python\n>>> 1\n1\n```")]
    ['text', 'formula', 'code']
    """
    return tuple(_block(part.strip()) for part in markdown.split("\n\n") if part.strip())


def _block(text: str) -> Block:
    if text.startswith("```"):
        return Block("code", text.partition("\n")[2].removesuffix("```").rstrip())
    bare = " ".join(text.split())
    if not (bare.startswith("$$") and bare.endswith("$$")):
        return Block("text", bare)
    latex = bare.strip("$ ")
    return Block("formula", latex, tuple(formula(part, block=True) for part in _PARTS.split(latex)))


def prose(text: str) -> Markup:
    """Write a text with its code, its formulas and the names of measures; links lead out of the pages and are left out.

    >>> print(prose("what `CwlU` is & `gain=exp2`"))
    what <a href="/learn/CwlU"><code>CwlU</code></a> is &amp; <code>gain=exp2</code>
    """
    made, at = Markup(), 0
    for found in _INLINE.finditer(text):
        made += escape(text[at : found.start()]) + _inline(*found.groups())
        at = found.end()
    return made + escape(text[at:])


def _inline(code: str | None, latex: str | None, link: str | None, stressed: str | None) -> Markup:
    if latex is not None:
        return formula(latex)
    if stressed is not None:
        return Markup("<em>{}</em>").format(stressed)
    if code is None:
        return escape(link)
    made = Markup("<code>{}</code>").format(code)
    known = _NAMED.fullmatch(code) and len(code) > 1 and code in REGISTRY
    return Markup('<a href="/learn/{}">{}</a>').format(code, made) if known else made


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
    text: list[str]  # paragraphs
    typed: str  # the list, as the evaluator takes it
    measures: list[str]  # what is computed of it; the first is the one to edit
    # change, ask, answer: what to do with the list, what to guess before one looks, what happens, and why
    change: str
    ask: str
    answer: str
    after: str  # the list after the change
    further: list[str]  # measures to read about next
    missing: str = ""  # from the list
    after_missing: str = ""  # from the list after the change
    errors: tuple[dict[str, str], ...] = ()  # what is `wrong` in some teaching material, and what is `right`
    other_topics: tuple[list[str], ...] = ()  # lists and what they miss; the lesson's own is the first topic

    def filled(self, text: str) -> str:
        """Write a text on one line, with its numbers computed.

        ``{AP:.3f}`` is that of the list, ``{after AP:.3f}`` after the change, ``{AP of 1,0 missing 1:.3f}`` of another
        list; ``open low`` and ``high`` are the ends if unjudged documents had judgments, ``tied`` those of all orders;
        ``topics mean``, ``low``, ``high`` and ``after`` are of all topics, the last with the first one changed.
        """
        bare = " ".join(text.split())
        return _NUMBER.sub(lambda found: format(self._number(*found.groups()[:-1]), found[6]), bare)

    def _number(self, what: str | None, end: str, measure: str, typed: str | None, missing: str | None) -> float:
        own, after = (self.typed, self.missing), (self.after, self.after_missing)
        match what:
            case "topics":
                return _over_topics(measure, [after if end == "after" else own, *self.other_topics], end)
            case "tied":
                docs = {f"d{at}": grade for at, grade in enumerate(grades(self.typed)) if grade is not None}
                judged = judge({"list": docs}, {"list": dict.fromkeys(docs, 1.0)})
                if end == "mean":
                    return float(tie_expected(judged, measure).values[0])
                return float(getattr(tie_range(judged, measure), end)[0])
            case "open":
                judged = judge_list(grades(self.typed), missing=read_missing(self.missing))
                return float(getattr(unjudged_range(judged, measure), end)[0])
            case "after":
                return score(measure, *after)
            case _:
                return score(measure, typed, missing or "") if typed else score(measure, *own)


def grades(typed: str) -> list[float | None]:
    """Read the grades of a list as the evaluator takes it."""
    return [item.grade for item in read_list(typed, "list")]


def score(measure: str, typed: str, missing: str = "") -> float:
    """Score a list as the evaluator takes it.

    >>> round(score("AP", "1,0,1,0,1", "1"), 3)
    0.567
    """
    return parse(measure).of_list(grades(typed), missing=read_missing(missing))


def _over_topics(measure: str, topics: list[Any], end: str) -> float:
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


_TEXTS = files("judged.interface.pages.learn").joinpath("lessons.toml").read_text(encoding="utf-8")
LESSONS = {row["key"]: Lesson(**row) for row in tomllib.loads(_TEXTS)["lessons"]}
"""By their keys, in the order in which the ideas build on one another."""
STEPS: list[dict[str, Any]] = [
    {"key": lesson.key, "number": number, "title": lesson.title, "idea": lesson.idea}
    for number, lesson in enumerate(LESSONS.values(), 1)
]
"""The table of contents."""


class LessonPage(PageAnswer):
    """A lesson, worked out. Texts are a little Markdown: code between backticks."""

    kind: ClassVar[str] = "lesson"


@lru_cache(maxsize=len(LESSONS))
def lesson_page(key: str) -> LessonPage:
    """Work a lesson out.

    >>> print(*lesson_page("rank-matters").table().grid().rows[:2])
    ('AP', '0.567', '0.442', 'yes') ('P@5', '0.600', '0.600', 'no')
    """
    if key not in LESSONS:
        raise UnknownError(f"there is no lesson {key!r}. Fix: use one of {', '.join(LESSONS)}.")
    lesson, at = LESSONS[key], list(LESSONS).index(key)
    first = parse(lesson.measures[0])
    changed = typed_example(first, lesson.after, lesson.after_missing)
    example = typed_example(first, lesson.typed, lesson.missing)
    own = {"list": lesson.typed, "missing": lesson.missing, "cutoff": len(example.rows)}
    before = {"before": lesson.typed, "before_missing": lesson.missing}
    after = own | before | {"list": lesson.after, "missing": lesson.after_missing}
    about = {
        **STEPS[at],
        "of": len(LESSONS),
        "text": [lesson.filled(text) for text in lesson.text],
        "change": lesson.change,
        "ask": lesson.ask,
        "answer": lesson.filled(lesson.answer),
        "changed": {"rows": changed.rows, "gone": changed.gone, "evaluator": _evaluator(after)},
        "evaluator": _evaluator(own),
        "errors": [{name: lesson.filled(text) for name, text in error.items()} for error in lesson.errors],
        "further": lesson.further,
        "previous": STEPS[at - 1] if at else None,
        "next": STEPS[at + 1] if at + 1 < len(STEPS) else None,
        "example": example,
    }
    return LessonPage(about, (_moves(lesson),))


def _evaluator(asked: dict[str, Any]) -> str:
    """Give the address of the evaluator with a list."""
    return f"/evaluator?{urlencode({name: value for name, value in asked.items() if value}, safe=',*')}"


def _moves(lesson: Lesson) -> Table:
    """Lay out what each measure says before and after the change."""
    before = [score(name, lesson.typed, lesson.missing) for name in lesson.measures]
    after = [score(name, lesson.after, lesson.after_missing) for name in lesson.measures]
    moves = [abs(new - old) > 1e-12 for old, new in zip(before, after, strict=True)]
    columns = (
        Column("measure", lesson.measures, TEXT, "Measure"),
        Column("family", [parse(name).entry.name for name in lesson.measures], only="data"),
        Column("before", before, number(3), "Before"),
        Column("after", after, number(3), "After"),
        Column("moves", moves, YES_NO, "Moved"),
    )
    kinds = ["moves" if moved else "still" for moved in moves]
    return Table("measures", columns, "Before and after", kinds=kinds)
