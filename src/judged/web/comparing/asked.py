"""What is asked of the page that compares two runs: the parameters of its address."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, Field

from judged.web.typed import LONGEST, Trimmed

MEASURE = "nDCG@10"
MEASURES = "nDCG@10, AP, RR, R@100"
MOST = 8
"""Measures of one table: every one that is tested is another chance to find something by luck."""

Show: TypeAlias = Literal["all", "wins", "losses", "ties"]
Sort: TypeAlias = Literal[
    "", "topic", "-topic", "query", "-query", "first", "-first", "second", "-second", "difference", "-difference",
    "first_judged", "-first_judged", "second_judged", "-second_judged",
]  # fmt: skip


class Asked(BaseModel):
    """Two runs, a measure, and which topics are listed."""

    first: str = Field("", max_length=LONGEST, description="The run that is the baseline; the first one without it.")
    second: str = Field("", max_length=LONGEST, description="The other run; the best of the others without it.")
    measure: Trimmed = Field(MEASURE, max_length=300, description="The measure whose topics are shown.")
    measures: str = Field(
        MEASURES,
        max_length=500,
        description=f"Measures that are tested together, with commas between; {MOST} at most.",
    )
    where: Trimmed = Field("", max_length=2000, description="Only topics that satisfy it, such as kind == 'law'.")
    show: Show = Field("all", description="Which topics are listed: where the second run is better, worse, or equal.")
    q: str = Field("", max_length=500, description="Only list topics with this in their id or query.")
    sort: Sort = Field("", description="The column by which topics are sorted; falling with - before it.")
    page: int = Field(1, ge=1, le=1_000_000, description="Which page of the topics.")
    by: Trimmed = Field(
        "", max_length=300, description="An attribute of the topics: compare the two on each slice of it."
    )
