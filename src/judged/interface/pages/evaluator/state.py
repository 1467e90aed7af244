"""The state of the evaluator: two lists, what is missing, and what measures are to assume."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from judged.errors import InputError, MeasureError
from judged.interface.pages.evaluator.lists import (
    MOST_MISSING,
    Item,
    read_list,
    read_missing,
    read_other,
    write_list,
    write_missing,
)
from judged.interface.pages.problems import Parameters
from judged.scoring.judging import judge
from judged.scoring.measures.dcg import CG, DCG
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import format_value
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.data.qrels import Qrels
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Entry, Measure, Properties
    from judged.scoring.measures.gain import Gain


LONGEST = 60_000
"""Characters of a list as it stands in an address: no browser and no server takes a longer one."""
_GAIN = re.compile(r"\w+|\{[^(){}]*\}")
_FORM = "items in rank order, separated by commas: grade, or grade:name; - is a document without a judgment"


_Typed = Annotated[str | None, Field(max_length=LONGEST)]


class AskedEvaluation(Parameters):
    """The state of the evaluator, as query parameters."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _left_out(cls, given: Any) -> Any:
        """Take a field that a form left empty for one that is not given; a list may be empty."""
        return {name: value for name, value in given.items() if value != "" or name in {"list", "other", "before"}}

    typed: _Typed = Field(None, alias="list", description=f"The list: {_FORM}.")
    other: _Typed = Field(
        None,
        description="A second list, in the same form. A row without a name is taken for a document of the"
        " first list with its grade, else for one of its own.",
    )
    before: _Typed = Field(None, description="The list before the last change: each measure says how it moved.")
    missing: _Typed = Field(
        None, description="Grades of judged documents that neither list returned; 0*30 is thirty of grade 0."
    )
    before_missing: _Typed = Field(
        None, description="What was missing before the last change; as now if it is not given."
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

    format: Literal["qrels", "run", "markdown"] = Field(description="The form of the file.")
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
_EXAMPLE = {"typed": "3,0,2,1,0", "cutoff": 5}


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
class State:
    """The lists, with one grade per document, and the options."""

    items: tuple[Item, ...]  # the list
    other: tuple[Item, ...] | None
    before: tuple[Item, ...] | None
    # missing, before_missing: grades of judged documents that were not returned: now, and before the last change
    missing: tuple[float, ...]
    before_missing: tuple[float, ...]
    options: Options
    asked: AskedEvaluation

    def is_relevant(self, grade: float) -> bool:
        """Whether a grade counts as relevant."""
        return grade >= self.options.rel and grade >= 0

    @property
    def known(self) -> int:
        """How many relevant documents are known: the least that there can be."""
        grades = {item.doc: item.grade for item in (*self.items, *(self.other or ())) if item.grade is not None}
        return sum(map(self.is_relevant, (*grades.values(), *self.missing)))

    @property
    def relevant(self) -> int:
        """How many relevant documents there are."""
        return self.known if self.asked.relevant is None else self.asked.relevant

    def facts(self, workspace: Workspace) -> dict[str, Any]:
        """Spell it out, without the lists, and with the text of the topic's query, where that is known."""
        topic = self.asked.topic
        source = self.asked.model_dump(include={"run", "topic", "other_run"})
        return {
            "missing": self.missing,
            "relevant": self.relevant,
            "relevant_given": self.asked.relevant,
            "known_relevant": self.known,
            **self.options._asdict(),
            "gain": format_value(self.options.gain),
            "max_given": self.asked.max,
            "source": source | {"query": workspace.query(topic)} if topic else None,
        }

    def query(self) -> str:
        """Write the query of the address, in one form for equal states; without what was before."""
        now = {
            "list": write_list(self.items),
            "other": None if self.other is None else write_list(self.other, beside=True),
            "missing": write_missing(self.missing) or None,
            **dict.fromkeys(("before", "before_missing", "only")),
            **{name: getattr(self.options, name) for name in ("gain", "discount", "base")},
        }
        fields = {field.alias or name: field.default for name, field in AskedEvaluation.model_fields.items()}
        known = self.asked.model_dump(by_alias=True, include=set(AskedEvaluation.model_fields)) | now
        kept = {name: value for name, value in known.items() if value != fields[name] or name in {"cutoff", "gain"}}
        return urlencode({name: format_value(value) for name, value in kept.items() if value is not None}, safe=",:*{}")


def read_state(workspace: Workspace, asked: AskedEvaluation) -> State:
    """Read what was asked."""
    missing = read_missing(asked.missing or "")
    if (asked.run is None) != (asked.topic is None) or (asked.run is None and asked.other_run is not None):
        raise InputError("a run and a topic go together", fix="give run= and topic=")
    if asked.typed is None and asked.run is not None and asked.topic is not None:
        names = [asked.run, *filter(None, [asked.other_run])]
        items, other, missing = _opened(workspace, asked.topic, names)
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
        raise InputError(
            f"a grade is above max={format_value(highest)}, the highest of the scale", fix="give a higher max"
        )
    base = asked.base if asked.discount == "original" else 2.0
    discounted = DCG().replace(discount=asked.discount, base=base)  # checks both
    gain = _read_gain(asked.gain)
    options = Options(asked.cutoff, gain, discounted.discount, discounted.base, asked.rel, highest, asked.n)
    state = State(items, other, before, missing, gone, options, asked)
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
    made = None
    if _GAIN.fullmatch(text):
        with suppress(MeasureError):
            made = parse(f"CG(gain={text})")
    if not isinstance(made, CG):
        raise MeasureError(
            f"{text[:80]!a} does not define gains. Fix: use linear, exp2, or a table of gains such as {{1:1,2:3}}"
        )
    return made.gain


def _opened(
    workspace: Workspace, topic: str, names: Sequence[str]
) -> tuple[tuple[Item, ...], tuple[Item, ...] | None, tuple[float, ...]]:
    """Take the first documents of a topic from a run, and from a second one."""
    for name in names:
        workspace.judged(name)  # refuses an unknown run
    qrels, runs = workspace.one_topic(topic, names)
    grades = grades_of(qrels)
    lists = [tuple(Item(doc, grades.get(doc)) for doc in returned_docs(judge(qrels, run))[:SHOWN]) for run in runs]
    return lists[0], lists[1] if len(lists) > 1 else None, missing_of(grades, *lists)


def returned_docs(judged: Judged) -> list[str]:
    """Give the documents of one topic in rank order."""
    every = judged.returned_docs
    return every.doc.take(np.argsort(every.rank, kind="stable")).to_pylist()


def grades_of(qrels: Qrels) -> dict[str, float]:
    """Give the grades of one topic by document."""
    return dict(zip(qrels.index.row_names, qrels.index.grade.tolist(), strict=True))


def missing_of(grades: dict[str, float], *lists: Sequence[Item]) -> tuple[float, ...]:
    """Give the grades of the judged documents that no list has, from the highest."""
    shown = {item.doc for items in lists for item in items}
    return tuple(sorted((grade for doc, grade in grades.items() if doc not in shown), reverse=True)[:MOST_MISSING])


GROUPS = ("graded", "ranked, binary", "set at a cutoff", "set", "user model", "incomplete judgments", "count")
"""The families of the catalogue for which a list is enough, in the order in which they are shown."""

_NEEDS_FAMILY = {
    "diversity": "needs judgments by subtopic: a typed list has one grade per document",
    "preferences and assessors": "needs the judgments of several assessors or users: a typed list has one grade a"
    " document",
    "answers": "reads what a system answered: a typed list is a ranking",
    "facts about documents": "needs facts about documents, such as their lengths: a typed list has none",
}
_NEEDS_SIZE = "needs the number of documents in the collection: a typed list does not say it"

USUAL: dict[str, Any] = {"p": 0.8, "factor": 0.5, "recall": 0.5, "T": 2.0, "A": 0.2}
"""What is taken for parameters that must be given."""
_FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    **dict.fromkeys(("AP", "RR", "Q", "ERR", "NumRelRet"), ({}, {"cutoff": None})),
    **dict.fromkeys(("nDCG", "DCG", "IdealDCG"), ({"cutoff": None}, {})),
    **dict.fromkeys(("CG", "Judged", "Unjudged", "Accuracy", "Fallout"), ({"cutoff": None},)),
    "RBP": ({}, {"gain": "graded", "max": None}),
}
"""Parameters of measures that are usual both with and without them; None for what the options say."""
_FIRST = ("nDCG", "DCG", "IdealDCG", "P", "R", "F", "Success", "AP", "RR", "Rprec", "RBP", "ERR")
"""What most people look for stands first in its group."""


@dataclass(frozen=True)
class Listed:
    """A measure as it is listed."""

    entry: Entry
    form: int  # which of the forms of its family, from 0
    measure: Measure | None  # None if it cannot be made with these options
    why: str = ""  # why it cannot be made

    @property
    def key(self) -> str:
        """What it is called whatever the options are: ``AP``, and ``AP.1`` for its second form."""
        return f"{self.entry.name}.{self.form}" if self.form else self.entry.name

    @property
    def name(self) -> str:
        """Its name with its parameters."""
        return self.entry.name if self.measure is None else str(self.measure)

    @property
    def properties(self) -> Properties:
        """What it declares of its values."""
        return self.entry.properties if self.measure is None else self.measure.properties


@lru_cache(maxsize=256)
def listed(options: Options) -> tuple[Listed, ...]:
    """Give the measures with these options put in, group by group."""
    made: dict[str, Listed] = {}
    for family in GROUPS:
        entries = [entry for entry in REGISTRY.values() if entry.family == family and not _lacks(entry, options.n)]
        entries.sort(key=lambda entry: _FIRST.index(entry.name) if entry.name in _FIRST else len(_FIRST))
        for entry in entries:
            for form, values in enumerate(_forms(entry, options)):
                try:
                    measure = Listed(entry, form, entry.cls(**values))
                except MeasureError as error:
                    measure = Listed(entry, form, None, str(error))
                made.setdefault(measure.name, measure)
    return tuple(made.values())


@lru_cache(maxsize=2)
def unavailable(n: int | None = None) -> dict[str, str]:
    """Name the measures that need what a typed list has not, and say what that is; n is the size of the collection."""
    return {entry.name: why for entry in REGISTRY.values() if (why := _lacks(entry, n))}


def _lacks(entry: Entry, n: int | None) -> str:
    """Say what a typed list lacks for a measure; nothing if it is enough."""
    if n is None and any(parameter.name == "n" and parameter.required for parameter in entry.all_parameters):
        return _NEEDS_SIZE
    if entry.family in GROUPS:
        return ""
    return _NEEDS_FAMILY.get(entry.family, f"is of the kind {entry.family!r}, which a typed list does not serve")


def _forms(entry: Entry, options: Options) -> Iterator[dict[str, Any]]:
    """Give the parameters of a measure in its usual forms, with those that the options set."""
    known = USUAL | options._asdict()
    given = {
        parameter.name: known[parameter.name]
        for parameter in entry.all_parameters
        if parameter.name in ({"rel", "discount", "base"} if not parameter.required else known)
        or (parameter.name, parameter.default) == ("gain", "linear")
    }
    for form in _FORMS.get(entry.name, ({},)):
        values = given | {name: known[name] if value is None else value for name, value in form.items()}
        if values.get("gain") == "graded":
            values.pop("rel", None)  # graded gains know no level of relevance
        yield values
