"""What is asked of the page of slices: the parameters of its address."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from judged.slicing.slices import MINIMUM

EVERY = "*"
"""In place of a run: all of them."""
LONGEST = 8192
"""Characters of the name of a run."""
MEASURES = "nDCG@10,R@100"


def _blank(value: Any) -> Any:
    """Take an empty field of a form for one that was left out."""
    return None if isinstance(value, str) and not value.strip() else value


Number: TypeAlias = Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, BeforeValidator(_blank)]
"""A number that may be left out, or empty."""
Least: TypeAlias = Annotated[Annotated[int, Field(ge=1, le=1_000_000)] | None, BeforeValidator(_blank)]
"""A number of topics that may be left out, or empty."""


class Sliced(BaseModel):
    """Which topics count, and into which slices they are cut."""

    by: str = Field("", max_length=500, description="Attributes, with commas between: one slice a value of each.")
    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    minimum: Least = Field(None, description="A slice of fewer topics is shown, and never tested; 10 if left out.")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(dict.fromkeys(name for part in self.by.split(",") if (name := part.strip())))

    @property
    def least(self) -> int:
        """The least number of topics of a slice that is tested."""
        return MINIMUM if self.minimum is None else self.minimum


class AskedSlices(Sliced):
    """Scores, or differences, by slice."""

    measures: str = Field(MEASURES, max_length=500, description="Measures, with commas between; six at most.")
    run: str = Field(
        "", max_length=LONGEST, description="A run; * for every one. Left out: every run, or of much data the first."
    )
    against: str = Field("", max_length=LONGEST, description="The run that the others are compared with on each slice.")
