"""The page of one measure, made of what the registry says about it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from judged.explanation import compare_tools
from judged.judging import judge_list
from judged.measures import REGISTRY, parse
from judged.measures.pages import (
    changing,
    default,
    definition,
    examples,
    families,
    inputs,
    properties,
    summary,
    written,
)
from judged.measures.parameters import spell
from judged.web.evaluator.typed import read_list, read_missing
from judged.web.learning.examples import Example, example_of
from judged.web.learning.prose import Block, blocks

if TYPE_CHECKING:
    from judged.explanation.other_tools import Opinion
    from judged.measures import Measure
    from judged.measures.base import Entry

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_ENGLISH = {"Accuracy", "Fallout", "Generality", "Hole", "Judged", "Success", "Unjudged", "Utility"}
"""Names that are also words, as which they mean no measure unless they stand as code."""


@dataclass(frozen=True)
class Setting:
    """One parameter: its name, what it does, what it may be, and what it is where it is not given."""

    name: str
    meaning: str
    values: str
    default: str
    behind_at: bool


@dataclass(frozen=True)
class OtherName:
    """A name of a measure that is understood here, and the parameters that it stands for."""

    name: str
    means: str


@dataclass(frozen=True)
class Elsewhere:
    """What another tool makes of the measure's name, on the list of the example."""

    # tool, called: the tool, and its own name for it
    tool: str
    called: str
    measure: str  # the name here of the number that it prints
    score: float | None
    differs: bool  # whether its number is another than ours
    why: tuple[str, ...]  # its rules that make the difference, or what is special about it


@dataclass(frozen=True)
class Link:
    """Another measure, and what it is."""

    name: str
    what: str


@dataclass(frozen=True)
class MeasurePage:
    """All that is known of one measure, as a little Markdown: code between backticks, formulas between dollars."""

    # name, title, what, family: the title shows how it is written: `P@k`. What it is, in a sentence.
    name: str
    title: str
    what: str
    family: str
    definition: tuple[Block, ...]  # behind that sentence
    settings: tuple[Setting, ...]
    inputs: tuple[str, ...]  # what it reads beside grades and rankings
    use: str
    misleads: str
    # what is true of every score with the default parameters; `changing` names those that change it
    properties: tuple[str, ...]
    changing: tuple[str, ...]
    other_names: tuple[OtherName, ...]
    tools: dict[str, str]  # what other tools call it
    example: Example | None
    elsewhere: tuple[Elsewhere, ...]  # what other tools print under this name for the example
    examples: tuple[Block, ...]  # those of the definition, with prose and Python
    command: str  # how its score is had
    python: str  # how its score is had
    related: tuple[Link, ...]  # measures that its texts name, or whose texts name it
    neighbours: tuple[Link, ...]  # the others of its family
    source: str


def measure_page(entry: Entry) -> MeasurePage:
    """Collect what is known of a measure.

    >>> made = measure_page(REGISTRY["AP"])
    >>> made.title, round(made.example.value, 3), [one.name for one in made.other_names]
    ('AP, AP@k', 0.567, ['MAP', 'map_cut'])
    """
    return _page_of(entry.cls)


@lru_cache(maxsize=256)
def _page_of(cls: type[Measure]) -> MeasurePage:
    """Make the page of a class; a class that is defined anew is another one."""
    entry = cls.entry
    first, *rest = blocks(definition(entry))
    example = example_of(entry)
    related = _related(entry)
    named = example.measure if example else entry.name
    return MeasurePage(
        name=entry.name,
        title=written(entry),
        what=first.text,
        family=entry.family,
        definition=tuple(rest),
        settings=tuple(
            Setting(one.name, one.meaning, one.values, default(one), one.name == entry.at)
            for one in entry.all_parameters
        ),
        inputs=tuple(inputs(entry)),
        use=entry.use,
        misleads=entry.misleads,
        properties=tuple(properties(entry)),
        changing=tuple(changing(entry)),
        other_names=tuple(
            OtherName(alias, ",".join(f"{name}={spell(value)}" for name, value in values.items()))
            for alias, values in entry.aliases.items()
        ),
        tools=dict(entry.tools),
        example=example,
        elsewhere=_elsewhere(example),
        examples=blocks(examples(entry)),
        command=f"judged evaluate QRELS RUN -m {_quoted(named)}",
        python=f'judged.evaluate(qrels, run, "{named}")',
        related=related,
        neighbours=tuple(_link(one) for one in families()[entry.family] if one.name != entry.name),
        source=entry.cite,
    )


def _quoted(name: str) -> str:
    return f'"{name}"' if "(" in name else name


def _link(entry: Entry) -> Link:
    return Link(entry.name, summary(entry))


def _elsewhere(example: Example | None) -> tuple[Elsewhere, ...]:
    """Ask what other tools print for the list of the example."""
    if example is None or not example.typed:
        return ()
    grades = [item.grade for item in read_list(example.typed, "list")]
    judged = judge_list(grades, missing=read_missing(example.missing))
    found = compare_tools(judged.qrels, judged.run, judged.query_ids[0], parse(example.measure))
    return tuple(_other(one, found.score) for one in found.opinions if one.called)


def _other(opinion: Opinion, score: float) -> Elsewhere:
    why = tuple(rule.rule for rule in opinion.rules if rule.matters)
    missing = math.isnan(opinion.score)
    return Elsewhere(
        opinion.tool,
        opinion.called,
        opinion.measure,
        None if missing else opinion.score,
        missing or not math.isclose(opinion.score, score, rel_tol=1e-9, abs_tol=1e-12),
        tuple(dict.fromkeys(filter(None, (*why, opinion.remark, opinion.caveat)))),
    )


def _related(entry: Entry) -> tuple[Link, ...]:
    """Find the measures that the texts name, then those whose texts name this one."""
    others = [one for one in REGISTRY.values() if one.name != entry.name]
    words = _words(entry.cls)
    named = [one for one in others if one.name in words]
    naming = [one for one in others if entry.name in _words(one.cls) and one not in named]
    return tuple(map(_link, (*named, *naming)))


@lru_cache(maxsize=256)
def _words(cls: type[Measure]) -> frozenset[str]:
    """Give the names in a measure's texts; a single letter may be a variable, and a word just a word."""
    entry = cls.entry
    texts = f"{definition(entry)} {entry.use} {entry.misleads}"
    words = {word for word in _WORD.findall(texts) if len(word) > 1 and word not in _ENGLISH}
    return frozenset(words | {word for word in _ENGLISH if f"`{word}" in texts or f"{word}@" in texts})
