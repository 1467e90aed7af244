"""What is asked of the page of the matrix: the parameters of its address."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from judged.diagnosis.matrix.points import NOTHING, QUADRANTS
from judged.web.slices.asked import LONGEST, Number, Sliced

X, Y = "R@100", "nDCG@10"
Quadrant: TypeAlias = Literal["", "healthy", "ranking problem", "coverage problem", "both problems", "nothing relevant"]
Order: TypeAlias = Literal["query_id", "-query_id", "x", "-x", "y", "-y", "change", "-change"]
Box: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
PARTS = (*QUADRANTS, NOTHING)
"""What `quadrant` can be."""


def _first_page(value: object) -> object:
    return 1 if value == "" else value


class AskedMatrix(Sliced):
    """Topics and slices against two measures, and which topics are selected."""

    run: str = Field("", max_length=LONGEST, description="The run; the first one without it.")
    against: str = Field(
        "", max_length=LONGEST, description="The run whose means are the cuts; without it, the run's own."
    )
    x: str = Field(X, max_length=200, description="The measure across: of the candidates.")
    y: str = Field(Y, max_length=200, description="The measure up: of the final ranking.")
    x0: Number = Field(None, description="Topics are selected whose x is at least this,")
    x1: Number = Field(None, description="and at most this;")
    y0: Number = Field(None, description="whose y is at least this,")
    y1: Number = Field(None, description="and at most this.")
    quadrant: Quadrant = Field("", description="Topics of this quadrant alone are selected.")
    sort: Order = Field("y", description="The order of the topics; with - before it, falling.")
    page: Annotated[int, Field(ge=1, le=1_000_000), BeforeValidator(_first_page)] = Field(
        1, description="Which page of the topics."
    )

    @property
    def bounds(self) -> Box:
        """From and to on x, from and to on y; infinite where nothing is said."""
        return _ends(self.x0, self.x1), _ends(self.y0, self.y1)

    @property
    def selects(self) -> bool:
        """Whether topics are selected at all."""
        return bool(self.quadrant) or any(side is not None for side in (self.x0, self.x1, self.y0, self.y1))


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    """Give both ends, the lower one first."""
    ends = (float("-inf") if low is None else low, float("inf") if high is None else high)
    return (min(ends), max(ends)) if low is not None and high is not None else ends
