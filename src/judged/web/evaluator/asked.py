"""What the evaluator is asked: the whole state is the query of the address."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST = 60_000
"""Characters of a list as it stands in an address: no browser and no server takes a longer one."""
_FORM = "items in rank order, separated by commas: grade, or grade:name; - is a document without a judgment"


class Asked(BaseModel):
    """The state of the evaluator, as query parameters."""

    model_config = ConfigDict(populate_by_name=True)

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
    k: int = Field(10, ge=1, le=1000, description="The cutoff.")
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
    only: str | None = Field(
        None,
        max_length=2000,
        description="Score these measures only: families such as nDCG,AP. A page asks first for what is in view.",
    )
    run: str | None = Field(None, max_length=500, description="Instead of a list: an open run.")
    topic: str | None = Field(None, max_length=500, description="The topic of that run.")
    other_run: str | None = Field(None, max_length=500, description="A second run, to compare with.")


class MeasureAsked(Asked):
    """The state, and one measure."""

    measure: str = Field(max_length=2000, description="The measure, named as the evaluator lists it.")


class ExportAsked(Asked):
    """The state, and the form in which it is wanted."""

    format: Literal["qrels", "run", "json", "markdown"] = Field(description="The form of the file.")
    which: Literal["list", "other"] = Field("list", description="Which of the lists is written as a run.")


class Pasted(BaseModel):
    """A text with a list in it."""

    text: str = Field(max_length=1_000_000, description="Grades, documents with grades, TREC lines, or JSON.")
