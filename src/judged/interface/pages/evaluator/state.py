"""State of the evaluator: two lists, missing documents, and options of measures."""

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
    MAX_MISSING,
    ListDocument,
    read_list,
    read_missing,
    read_second_list,
    write_list,
    write_missing,
)
from judged.interface.pages.problems import Parameters, text_field
from judged.scoring.judging import Judged, judge
from judged.scoring.measures.dcg import CG, DCG
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import format_value
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.data.qrels import Qrels
    from judged.interface.pages.workspace import Workspace
    from judged.scoring.measures.base import Entry, Measure, Properties
    from judged.scoring.measures.gain import Gain


MAX_LIST_LENGTH = 60_000
"""Maximum number of characters of a list; browsers and servers do not support longer addresses."""
_GAIN = re.compile(r"\w+|\{[^(){}]*\}")
_FORM = "Items in rank order, separated by commas: grade or grade:name. An unjudged document is -."


_ListText = Annotated[str | None, Field(max_length=MAX_LIST_LENGTH)]


class EvaluationQuery(Parameters):
    """Parameters of the evaluator."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, values: Any) -> Any:
        """Remove form fields that are empty, except lists, which may be."""
        return {name: value for name, value in values.items() if value != "" or name in {"list", "other", "before"}}

    typed: _ListText = Field(None, alias="list", description=f"List of documents. {_FORM}")
    other: _ListText = Field(
        None,
        description="Second list, in the same format. A row without a document name is matched with a document of the"
        " first list that has the same grade. If the first list has no such document, the row is a new document.",
    )
    before: _ListText = Field(None, description="List before the last change, to show how each score changed.")
    missing: _ListText = Field(
        None, description="Grades of judged documents that are in neither list. 0*30 means thirty documents of grade 0."
    )
    before_missing: _ListText = Field(
        None, description="Value of `missing` before the last change. Default: `missing`."
    )
    relevant: int | None = Field(
        None,
        ge=0,
        le=10_000,
        description="Number of relevant documents in the collection. Default: the number of relevant documents in"
        " the lists and in `missing`.",
    )
    cutoff: int = Field(10, ge=1, le=1000, description="Cutoff.")
    gain: str = text_field("Gain: linear, exp2, or a table such as {1:1,2:3}.", limit=2000, default="linear")
    discount: str = text_field("Discount: log2, ln, log10, or original.", limit=20, default="log2")
    base: float = Field(2.0, description="Base of the logarithm if `discount` is original.")
    rel: float = Field(1.0, ge=0, le=1e9, description="Lowest relevant grade.")
    max: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="Highest grade of the scale, for measures that use it. Default: the maximum of 1, `rel`, and the"
        " grades.",
    )
    n: int | None = Field(
        None,
        ge=1,
        le=10**12,
        description="Number of documents in the collection, for true negatives, Accuracy, and Fallout.",
    )
    pin: str = text_field(
        "Keys of the pinned measures. AP is the first variant of AP, and AP.1 is the second.",
        limit=2000,
        default="P,R,F,AP,nDCG,RR",
    )
    focus: str = text_field("Key of the measure that the page explains.", limit=100, default="nDCG")
    only: str | None = text_field(
        "Families of measures to score, such as nDCG,AP. Default: all.", limit=2000, default=None
    )
    run: str | None = text_field("Name of the open run from which the list is read.", limit=500, default=None)
    topic: str | None = text_field("Topic whose ranking is read from the run.", limit=500, default=None)
    other_run: str | None = text_field(
        "Name of the open run from which the second list is read.", limit=500, default=None
    )


class MeasureQuery(EvaluationQuery):
    """State of the evaluator, and one measure."""

    measure: str = Field(max_length=2000, description="Name of the measure in the evaluator.")


class ExportQuery(EvaluationQuery):
    """State of the evaluator, and a file format."""

    format: Literal["qrels", "run", "markdown"] = Field(description="File format.")
    which: Literal["list", "other"] = Field("list", description="List to write as a run.")


class PasteQuery(EvaluationQuery):
    """State of the evaluator, and the list to replace."""

    into: Literal["list", "other"] = Field("list", description="List that the pasted list replaces.")


class Pasted(BaseModel):
    """Pasted text with a list."""

    text: str = Field(
        max_length=1_000_000,
        description="List in one of these formats: grades; the letters R (relevant) and N (not relevant); documents"
        " with grades; lines of a run or of qrels; JSON. If the open data contain the topic of a run, the documents of"
        " the run get the judgments of the open data.",
    )


RUN_DEPTH = 20
"""Maximum number of documents read from a run."""
_EXAMPLE_STATE = {"typed": "3,0,2,1,0", "cutoff": 5}


class EvaluatorOptions(NamedTuple):
    """Values of the parameters of measures that have such a parameter."""

    cutoff: int
    gain: Gain
    discount: str
    base: float  # of the original discount; 2 for others, which ignore it
    rel: float
    max: float  # the highest grade of the scale
    n: int | None = None  # documents in the whole collection


@dataclass(frozen=True)
class State:
    """Lists with one grade per document, and options."""

    documents: tuple[ListDocument, ...]  # the list
    other: tuple[ListDocument, ...] | None
    before: tuple[ListDocument, ...] | None
    # grades of judged documents that were not returned, now and before the last change
    missing: tuple[float, ...]
    before_missing: tuple[float, ...]
    options: EvaluatorOptions
    query: EvaluationQuery

    def is_relevant(self, grade: float) -> bool:
        """Return whether a grade counts as relevant."""
        return grade >= self.options.rel and grade >= 0

    @property
    def known_relevant(self) -> int:
        """Number of known relevant documents, a lower bound of `relevant`."""
        documents = (*self.documents, *(self.other or ()))
        grades = {document.doc: document.grade for document in documents if document.grade is not None}
        return sum(map(self.is_relevant, (*grades.values(), *self.missing)))

    @property
    def relevant(self) -> int:
        """Number of relevant documents."""
        return self.known_relevant if self.query.relevant is None else self.query.relevant

    def facts(self, workspace: Workspace) -> dict[str, Any]:
        """Return the state without the lists, and the text of the topic if it is from a run."""
        topic = self.query.topic
        source = self.query.model_dump(include={"run", "topic", "other_run"})
        return {
            "missing": self.missing,
            "relevant": self.relevant,
            "relevant_input": self.query.relevant,
            "known_relevant": self.known_relevant,
            **self.options._asdict(),
            "gain": format_value(self.options.gain),
            "max_input": self.query.max,
            "source": source | {"query": workspace.query(topic)} if topic else None,
        }

    def query_string(self) -> str:
        """Return the query string without the previous state; equal states have equal strings."""
        current = {
            "list": write_list(self.documents),
            "other": None if self.other is None else write_list(self.other, is_second=True),
            "missing": write_missing(self.missing) or None,
            **dict.fromkeys(("before", "before_missing", "only")),
            **{name: getattr(self.options, name) for name in ("gain", "discount", "base")},
        }
        defaults = {field.alias or name: field.default for name, field in EvaluationQuery.model_fields.items()}
        values = self.query.model_dump(by_alias=True, include=set(EvaluationQuery.model_fields)) | current
        always = {"cutoff", "gain"}  # written even if they are defaults
        changed = {name: value for name, value in values.items() if value != defaults[name] or name in always}
        return urlencode(
            {name: format_value(value) for name, value in changed.items() if value is not None}, safe=",:*{}"
        )


def read_state(workspace: Workspace, query: EvaluationQuery) -> State:
    """Parse and validate the parameters."""
    missing = read_missing(query.missing or "")
    if (query.run is None) != (query.topic is None) or (query.run is None and query.other_run is not None):
        raise InputError("`run` and `topic` must be used together", fix="use run= and topic=")
    if query.typed is None and query.run is not None and query.topic is not None:
        names = [query.run, *filter(None, [query.other_run])]
        documents, other, missing = _lists_of_runs(workspace, query.topic, names)
    else:
        if query.typed is None:
            query = query.model_copy(update=_EXAMPLE_STATE | query.model_dump(exclude_none=True, exclude_unset=True))
        documents = read_list(query.typed or "", "list")
        other = None if query.other is None else read_second_list(query.other, documents, "other")
    before = None if query.before is None else read_list(query.before, "before")
    before_missing = missing if query.before_missing is None else read_missing(query.before_missing)
    grades = [document.grade for document in (*documents, *(other or ())) if document.grade is not None]
    highest = max(1.0, query.rel, *grades, *missing) if query.max is None else query.max
    if highest < max((*grades, *missing), default=0.0):
        problem = f"grades must be at most max={format_value(highest)}, the highest grade of the scale"
        raise InputError(problem, fix="use a higher max")
    base = query.base if query.discount == "original" else 2.0
    dcg = DCG().replace(discount=query.discount, base=base)  # raises an error if one of them is invalid
    gain = _read_gain(query.gain)
    options = EvaluatorOptions(query.cutoff, gain, dcg.discount, dcg.base, query.rel, highest, query.n)
    state = State(documents, other, before, missing, before_missing, options, query)
    if state.relevant < state.known_relevant:
        raise InputError(
            f"`relevant` must be at least {state.known_relevant}, the number of relevant documents in the lists and in"
            f" `missing`, got {state.relevant}",
            fix=f"use relevant={state.known_relevant}, or omit `relevant`",
        )
    docs = {document.doc for document in (*documents, *(other or ()))}
    n_documents = len(docs) + len(missing) + state.relevant - state.known_relevant
    if n_documents > (query.n or n_documents):
        raise InputError(
            f"`n` must be at least {n_documents}, the number of documents in the lists and in `missing`, got {query.n}",
            fix=f"use n={n_documents} or more",
        )
    return state


def _read_gain(text: str) -> Gain:
    """Parse a gain. The pattern prevents other parameters of a measure in the text."""
    measure = None
    if _GAIN.fullmatch(text):
        with suppress(MeasureError):
            measure = parse(f"CG(gain={text})")
    if not isinstance(measure, CG):
        raise MeasureError(
            f"the gain is invalid, got {text[:80]!a}. Fix: use linear, exp2, or a table of gains such as {{1:1,2:3}}"
        )
    return measure.gain


def _lists_of_runs(
    workspace: Workspace, topic: str, names: Sequence[str]
) -> tuple[tuple[ListDocument, ...], tuple[ListDocument, ...] | None, tuple[float, ...]]:
    """Return the first documents of a topic from one run or two, and the missing grades."""
    for name in names:
        workspace.judged(name)  # raises an error if the run is unknown
    qrels, runs = workspace.topic_data(topic, names)
    grades = grades_of(qrels)
    docs_by_run = (returned_docs(judge(qrels, run))[:RUN_DEPTH] for run in runs)
    lists = [tuple(ListDocument(doc, grades.get(doc)) for doc in docs) for docs in docs_by_run]
    return lists[0], lists[1] if len(lists) > 1 else None, missing_grades(grades, *lists)


def returned_docs(judged: Judged) -> list[str]:
    """Return the documents of one topic in rank order."""
    all_documents = judged.returned_docs
    return all_documents.doc.take(np.argsort(all_documents.rank, kind="stable")).to_pylist()


def grades_of(qrels: Qrels) -> dict[str, float]:
    """Return the grades of one topic by document."""
    return dict(zip(qrels.index.row_names, qrels.index.grade.tolist(), strict=True))


def missing_grades(grades: dict[str, float], *lists: Sequence[ListDocument]) -> tuple[float, ...]:
    """Return the grades of judged documents in none of the lists, in descending order."""
    listed_docs = {document.doc for documents in lists for document in documents}
    return tuple(sorted((grade for doc, grade in grades.items() if doc not in listed_docs), reverse=True)[:MAX_MISSING])


GROUPS = ("graded", "ranked, binary", "set at a cutoff", "set", "user model", "incomplete judgments", "count")
"""Families of measures that can be computed from a list, in display order."""

_NEEDS_FAMILY = {
    "diversity": "requires judgments by subtopic, but a list has one grade per document",
    "preferences and assessors": "requires judgments of several people, but a list has one grade per document",
    "answers": "requires generated answers, but a list is a ranking",
    "facts about documents": "requires attributes of documents, such as their lengths",
}
_NEEDS_SIZE = "requires the number of documents in the collection"

EXAMPLE_PARAMETERS: dict[str, Any] = {"p": 0.8, "factor": 0.5, "recall": 0.5, "T": 2.0, "A": 0.2}
"""Example values of required parameters."""
_FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    **dict.fromkeys(("AP", "RR", "Q", "ERR", "NumRelRet"), ({}, {"cutoff": None})),
    **dict.fromkeys(("nDCG", "DCG", "IdealDCG"), ({"cutoff": None}, {})),
    **dict.fromkeys(("CG", "Judged", "Unjudged", "Accuracy", "Fallout"), ({"cutoff": None},)),
    "RBP": ({}, {"gain": "graded", "max": None}),
}
"""Parameters of measures with several common forms; None is the value of the option."""
_FIRST = ("nDCG", "DCG", "IdealDCG", "P", "R", "F", "Success", "AP", "RR", "Rprec", "RBP", "ERR")
"""The best known measures, first in their groups."""


@dataclass(frozen=True)
class ListedMeasure:
    """A measure in the list of the evaluator."""

    entry: Entry
    form: int  # index of the form within its family
    measure: Measure | None  # None if the options are invalid for it
    invalid_reason: str = ""  # why `measure` is None

    @property
    def key(self) -> str:
        """Identifier that does not depend on the options: ``AP``, and ``AP.1`` for the second form."""
        return f"{self.entry.name}.{self.form}" if self.form else self.entry.name

    @property
    def name(self) -> str:
        """Name with parameters."""
        return self.entry.name if self.measure is None else str(self.measure)

    @property
    def properties(self) -> Properties:
        """Declared properties of the values."""
        return self.entry.properties if self.measure is None else self.measure.properties


@lru_cache(maxsize=256)
def available_measures(options: EvaluatorOptions) -> tuple[ListedMeasure, ...]:
    """Return the measures with these options, group by group."""
    measures: dict[str, ListedMeasure] = {}
    for family in GROUPS:
        entries = [entry for entry in REGISTRY.values() if entry.family == family]
        entries = [entry for entry in entries if not _unavailable_reason(entry, options.n)]
        entries.sort(key=lambda entry: _FIRST.index(entry.name) if entry.name in _FIRST else len(_FIRST))
        for entry in entries:
            for form, values in enumerate(_forms(entry, options)):
                try:
                    listed_measure = ListedMeasure(entry, form, entry.cls(**values))
                except MeasureError as error:
                    listed_measure = ListedMeasure(entry, form, None, str(error))
                measures.setdefault(listed_measure.name, listed_measure)
    return tuple(measures.values())


@lru_cache(maxsize=2)
def unavailable(n: int | None = None) -> dict[str, str]:
    """Return why measures cannot be computed from a list, by name; n is the collection size."""
    return {entry.name: reason for entry in REGISTRY.values() if (reason := _unavailable_reason(entry, n))}


def _unavailable_reason(entry: Entry, n: int | None) -> str:
    """Return why a measure cannot be computed from a list; empty if it can."""
    if n is None and any(parameter.name == "n" and parameter.required for parameter in entry.all_parameters):
        return _NEEDS_SIZE
    if entry.family in GROUPS:
        return ""
    return _NEEDS_FAMILY.get(entry.family, f"cannot be computed from a list (family {entry.family!r})")


def _forms(entry: Entry, options: EvaluatorOptions) -> Iterator[dict[str, Any]]:
    """Yield the parameters of the common forms of a measure, with the values of the options."""
    option_values = EXAMPLE_PARAMETERS | options._asdict()
    defaults = {
        parameter.name: option_values[parameter.name]
        for parameter in entry.all_parameters
        if parameter.name in ({"rel", "discount", "base"} if not parameter.required else option_values)
        or (parameter.name, parameter.default) == ("gain", "linear")
    }
    for form in _FORMS.get(entry.name, ({},)):
        values = defaults | {name: option_values[name] if value is None else value for name, value in form.items()}
        if values.get("gain") == "graded":
            values.pop("rel", None)  # graded gains do not use a lowest relevant grade
        yield values
