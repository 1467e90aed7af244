"""The state of the evaluator: two lists, what is missing, and what measures are to assume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlencode

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from judged.errors import InputError, MeasureError
from judged.judging import judge
from judged.measures.dcg import CG, DCG
from judged.measures.grammar import parse
from judged.measures.parameters import spell
from judged.web.evaluator.lists import (
    MOST_MISSING,
    Item,
    read_list,
    read_missing,
    read_other,
    write_list,
    write_missing,
)
from judged.web.problems import Parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.judging import Judged
    from judged.measures.gain import Gain
    from judged.web.workspace import Workspace

LONGEST = 60_000
"""Characters of a list as it stands in an address: no browser and no server takes a longer one."""
_FORM = "items in rank order, separated by commas: grade, or grade:name; - is a document without a judgment"


class AskedEvaluation(Parameters):
    """The state of the evaluator, as query parameters."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _left_out(cls, given: Any) -> Any:
        """Take a field that a form left empty for one that is not given; a list may be empty."""
        return {name: value for name, value in given.items() if value != "" or name in {"list", "other", "before"}}

    typed: str | None = Field(None, alias="list", max_length=LONGEST, description=f"The list: {_FORM}.")
    other: str | None = Field(
        None,
        max_length=LONGEST,
        description="A second list, in the same form. A row without a name is taken for a document of the first list"
        " with its grade, else for one of its own.",
    )
    before: str | None = Field(
        None, max_length=LONGEST, description="The list before the last change: each measure says how it moved."
    )
    missing: str | None = Field(
        None,
        max_length=LONGEST,
        description="Grades of judged documents that neither list returned; 0*30 is thirty of grade 0.",
    )
    before_missing: str | None = Field(
        None, max_length=LONGEST, description="What was missing before the last change; as now if it is not given."
    )
    relevant: int | None = Field(
        None, ge=0, le=10_000, description="Relevant documents in the collection; as many as are known by default."
    )
    cutoff: int = Field(10, ge=1, le=1000, description="The cutoff.")
    gain: str = Field("linear", max_length=2000, description="linear, exp2, or a table such as {1:1,2:3}.")
    discount: str = Field("log2", max_length=20, description="log2, ln or original.")
    base: float = Field(2.0, description="The base of the original discount; others have none.")
    rel: float = Field(1.0, ge=0, le=1e9, description="The lowest grade that counts as relevant.")
    max: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="The highest grade of the scale, for measures with one; the highest known, at least 1, by default.",
    )
    n: int | None = Field(
        None, ge=1, le=10**12, description="Documents in the whole collection: for true negatives, Accuracy, Fallout."
    )
    pin: str = Field(
        "P,R,F,AP,nDCG,RR",
        max_length=2000,
        description="The measures that a page shows large, by their keys: AP.1 is the second form of AP.",
    )
    focus: str = Field("nDCG", max_length=100, description="The measure that a page explains, by its key.")
    only: str | None = Field(
        None,
        max_length=2000,
        description="Score these measures only: families such as nDCG,AP. A page asks first for what is in view.",
    )
    run: str | None = Field(None, max_length=500, description="Instead of a list: an open run.")
    topic: str | None = Field(None, max_length=500, description="The topic of that run.")
    other_run: str | None = Field(None, max_length=500, description="A second run, to compare with.")


class AskedMeasure(AskedEvaluation):
    """The state, and one measure."""

    measure: str = Field(max_length=2000, description="The measure, named as the evaluator lists it.")


class AskedExport(AskedEvaluation):
    """The state, and the form in which it is wanted."""

    format: Literal["qrels", "run", "json", "markdown"] = Field(description="The form of the file.")
    which: Literal["list", "other"] = Field("list", description="Which of the lists is written as a run.")


class AskedPaste(AskedEvaluation):
    """The state, and the list of it that is to be replaced."""

    into: Literal["list", "other"] = Field("list", description="Which of the lists becomes the one in the text.")


class Pasted(BaseModel):
    """A text with a list in it."""

    text: str = Field(
        max_length=1_000_000,
        description="Grades, R and N, documents with grades, lines of a run or of qrels, or JSON. A run has the grades"
        " of its topic where that is open.",
    )


SHOWN = 20
"""Documents that are taken from a run."""
_EXAMPLE = {"typed": "3,0,2,1,0", "cutoff": 5, "gain": "exp2"}


class Options(NamedTuple):
    """What measures are to assume, where they have such a parameter."""

    cutoff: int
    gain: Gain
    discount: str
    base: float  # that of the original discount; 2 for others, which have none
    rel: float
    max: float  # the highest grade of the scale
    n: int | None = None  # documents in the whole collection


@dataclass(frozen=True)
class Source:
    """Where the lists come from."""

    run: str
    topic: str
    query: str  # the text of the query; empty where it is not known
    other_run: str | None


@dataclass(frozen=True)
class State:
    """The lists, with one grade per document, and the options."""

    items: tuple[Item, ...]  # the list
    other: tuple[Item, ...] | None
    before: tuple[Item, ...] | None
    # missing, before_missing: grades of judged documents that were not returned: now, and before the last change
    missing: tuple[float, ...]
    before_missing: tuple[float, ...]
    options: Options
    source: Source | None
    asked: AskedEvaluation

    def is_relevant(self, grade: float) -> bool:
        """Whether a grade counts as relevant."""
        return grade >= self.options.rel and grade >= 0

    @property
    def labels(self) -> dict[str, float]:
        """The grades of the judged documents with a name."""
        return {item.doc: item.grade for item in (*self.items, *(self.other or ())) if item.grade is not None}

    @property
    def known(self) -> int:
        """How many relevant documents are known: the least that there can be."""
        return sum(map(self.is_relevant, (*self.labels.values(), *self.missing)))

    @property
    def relevant(self) -> int:
        """How many relevant documents there are."""
        return self.known if self.asked.relevant is None else self.asked.relevant

    def facts(self) -> dict[str, Any]:
        """Spell it out, without the lists."""
        return {
            "missing": self.missing,
            "relevant": self.relevant,
            "relevant_given": self.asked.relevant,
            "known_relevant": self.known,
            **self.options._asdict(),
            "gain": spell(self.options.gain),
            "max_given": self.asked.max,
            "source": self.source,
        }

    def query(self) -> str:
        """Write the query of the address, in one form for equal states; without what was before."""
        asked, options, source = self.asked, self.options, self.source
        fields = AskedEvaluation.model_fields
        usual = {name: fields[name].default for name in ("discount", "base", "rel", "pin", "focus")}
        known = asked.model_dump() | options._asdict() | {"max": asked.max}
        texts = {
            "list": write_list(self.items),
            "other": None if self.other is None else write_list(self.other, beside=True),
            "missing": write_missing(self.missing) or None,
            **{name: known[name] for name in ("relevant", "cutoff", "gain")},
            **{name: known[name] for name in usual if known[name] != usual[name]},
            **{name: known[name] for name in ("max", "n")},
            **({} if source is None else {"run": source.run, "topic": source.topic, "other_run": source.other_run}),
        }
        return urlencode({name: spell(text) for name, text in texts.items() if text is not None}, safe=",:*{}")


def read_state(workspace: Workspace, asked: AskedEvaluation) -> State:
    """Read what was asked."""
    missing, source = read_missing(asked.missing or ""), None
    if asked.run is not None and asked.topic is not None:
        source = Source(asked.run, asked.topic, workspace.query(asked.topic), asked.other_run)
    elif not asked.run is asked.topic is asked.other_run is None:
        raise InputError("a run and a topic go together", fix="give run= and topic=")
    if asked.typed is None and source is not None:
        items, other, missing = _opened(workspace, source)
    else:
        if asked.typed is None:
            asked = asked.model_copy(update=_EXAMPLE | asked.model_dump(exclude_none=True, exclude_unset=True))
        items = read_list(asked.typed or "", "list")
        other = None if asked.other is None else read_other(asked.other, items, "other")
    before = None if asked.before is None else read_list(asked.before, "before")
    gone = missing if asked.before_missing is None else read_missing(asked.before_missing)
    grades = [item.grade for item in (*items, *(other or ())) if item.grade is not None]
    highest = max(1.0, asked.rel, *grades, *missing) if asked.max is None else asked.max
    if highest < max((*grades, *missing), default=0.0):
        raise InputError(f"a grade is above max={spell(highest)}, the highest of the scale", fix="give a higher max")
    base = asked.base if asked.discount == "original" else 2.0
    discounted = DCG().replace(discount=asked.discount, base=base)  # checks both
    gain = _read_gain(asked.gain)
    options = Options(asked.cutoff, gain, discounted.discount, discounted.base, asked.rel, highest, asked.n)
    state = State(items, other, before, missing, gone, options, source, asked)
    if state.relevant < state.known:
        raise InputError(
            f"{state.known} relevant documents are known, and relevant={state.relevant}",
            fix=f"give at least relevant={state.known}, or leave it out",
        )
    documents = len({item.doc for item in (*items, *(other or ()))}) + len(missing) + state.relevant - state.known
    if documents > (asked.n or documents):
        raise InputError(f"{documents} documents are known, and n={asked.n}", fix=f"give at least n={documents}")
    return state


def _read_gain(text: str) -> Gain:
    """Read a gain as measures take it, and nothing else that could stand between the brackets of a name."""
    try:
        made = parse(f"CG(gain={text})")
    except MeasureError:
        made = None
    if not isinstance(made, CG) or made != CG(gain=made.gain) or ("," in text and not text.startswith("{")):
        raise MeasureError(
            f"{text[:80]!a} does not define gains. Fix: use linear, exp2, or a table of gains such as {{1:1,2:3}}"
        )
    return made.gain


def _opened(
    workspace: Workspace, source: Source
) -> tuple[tuple[Item, ...], tuple[Item, ...] | None, tuple[float, ...]]:
    """Take the first documents of a topic, and of a second run the same."""
    names = [source.run, *([] if source.other_run is None else [source.other_run])]
    for name in names:
        workspace.judged(name)  # refuses an unknown run
    qrels, runs = workspace.one_topic(source.topic, names)
    judged = [judge(qrels, run) for run in runs]
    grades = grades_of(judged[0])
    first = [one.everything.doc.take(np.argsort(one.everything.rank, kind="stable")[:SHOWN]) for one in judged]
    lists = [tuple(Item(doc, grades.get(doc)) for doc in docs.to_pylist()) for docs in first]
    missing = missing_of(grades, *lists)
    return lists[0], lists[1] if len(lists) > 1 else None, missing


def grades_of(judged: Judged) -> dict[str, float]:
    """Give the grades of one topic by document."""
    return dict(zip(judged.qrels.index.row_names, judged.label_grade.tolist(), strict=True))


def missing_of(grades: dict[str, float], *lists: Sequence[Item]) -> tuple[float, ...]:
    """Give the grades of the judged documents that no list has, from the highest."""
    shown = {item.doc for items in lists for item in items}
    return tuple(sorted((grade for doc, grade in grades.items() if doc not in shown), reverse=True)[:MOST_MISSING])
