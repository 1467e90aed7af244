"""What the evaluator's API answers: the form of its data, for the description of the API."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Document(BaseModel):
    """A document of a list."""

    doc: str
    grade: float | None = Field(description="null where there is no judgment.")


class From(BaseModel):
    """Where lists come from."""

    run: str
    topic: str
    query: str = Field(description="The text of the query; empty where it is not known.")
    other_run: str | None


class Stated(BaseModel):
    """The state, spelled out."""

    typed: list[Document] = Field(alias="list")
    other: list[Document] | None
    missing: list[float] = Field(description="Grades of judged documents that neither list returned.")
    relevant: int = Field(description="Relevant documents in the collection.")
    relevant_given: int | None = Field(description="The same as it was given; null where it follows from the grades.")
    known_relevant: int = Field(description="The least that it may be.")
    k: int
    gain: str
    discount: str
    base: float
    rel: float
    max: float = Field(description="The highest grade of the scale.")
    max_given: float | None
    source: From | None


class Scored(BaseModel):
    """A measure and what it says."""

    name: str
    family: str = Field(description="The measure without its parameters.")
    value: float | None = Field(description="Of the list; null where there is no number.")
    other: float | None
    difference: float | None = Field(description="other - value.")
    before: float | None
    moved: float | None = Field(description="value - before.")
    low: float | None
    high: float | None
    higher_is_better: bool | None
    perfect: float | None
    why: str = Field(description="Why a number is null; empty where none is.")


class Grouped(BaseModel):
    """Measures that look at the same thing."""

    key: str
    title: str
    what: str
    measures: list[Scored]


class Unavailable(BaseModel):
    """A measure that needs more than a list of grades."""

    name: str
    why: str


class Row(BaseModel):
    """A document at its rank."""

    rank: int
    doc: str
    grade: float | None
    relevant: bool | None
    gain: float | None
    discount: float
    rank_in_other: int | None
    rank_before: int | None


class Laid(BaseModel):
    """A list, row by row."""

    rows: list[Row]
    ideal: list[Document] = Field(description="The best order of the judged documents, at most 200 of them.")
    judged: int
    relevant_found: int
    returned: int


class Evaluation(BaseModel):
    """What every measure says of a list."""

    state: Stated
    query: str = Field(description="The state as the query of an address.")
    groups: list[Grouped]
    unavailable: list[Unavailable]
    lists: list[Laid]
    notes: list[str]


class Contribution(BaseModel):
    """What the document at a rank brings to the score."""

    rank: int
    doc: str
    value: float | None


class ExplainedList(BaseModel):
    """A score step by step."""

    value: float | None
    explanation: dict[str, Any] = Field(description="Sheets with columns, rows, and lines, as `Explanation.to_dict`.")
    lines: list[str]
    text: str
    contributions: list[Contribution]
    contributions_are: str


class ExplainedMeasure(BaseModel):
    """A measure, and its score for each list."""

    name: str
    family: str
    title: str
    definition: str
    formula: str = Field(description="The formula of each step, one a line.")
    lists: list[ExplainedList]


class ReadList(BaseModel):
    """A list that was read from a text."""

    typed: list[Document] = Field(alias="list")
    read_as: str
    cut: int = Field(description="Documents that were left out.")
