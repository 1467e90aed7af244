"""What is asked of the leaderboard: the parameters of its address."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

from judged.web.typed import LONGEST, Trimmed

CORRECTION = "holm"

Form: TypeAlias = Literal["csv", "tests", "latex", "markdown"]
Name: TypeAlias = Annotated[str, Field(max_length=300)]


class Asked(BaseModel):
    """The state of the leaderboard."""

    measures: list[Name] = Field(
        [],
        max_length=100,
        description="Names of measures, separated by commas or each by itself; the first is the leading one.",
    )
    baseline: str = Field(
        "", max_length=LONGEST, description="The run that all others are tested against; the first one without it."
    )
    sort: Trimmed = Field(
        "",
        max_length=300,
        description="run, judged, or a measure; with - before it, falling. The best by the first measure come first"
        " without it.",
    )
    where: Trimmed = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    test: Trimmed = Field(
        "",
        max_length=40,
        description="As compare takes it. Without it: randomisation, and t over more than 2,000 topics.",
    )
    correction: Trimmed = Field(CORRECTION, max_length=40, description="For the number of tests, as compare takes it.")
    show: Literal["", "difference"] = Field(
        "", description="Whether each cell of the page has the difference to the baseline, too."
    )
    curve: Trimmed = Field(
        "", max_length=300, description="A measure that is drawn by cutoff, such as nDCG; none without."
    )


class AskedTable(Asked):
    """The leaderboard in a form for papers and programs."""

    form: Form = Field(
        "csv",
        description="csv: every number in full precision; tests: every test so; latex and markdown: the leaderboard.",
    )
