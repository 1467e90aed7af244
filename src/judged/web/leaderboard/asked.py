"""What is asked of the leaderboard: the parameters of its address."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

LONGEST = 8192
"""Characters of the name of a run."""
CORRECTION = "holm"

Form: TypeAlias = Literal["csv", "tests", "latex", "markdown"]
Name: TypeAlias = Annotated[str, Field(max_length=300)]

_PART = re.compile(r"(?:[^,;({]|\([^)]*\)|\{[^}]*\}|[({])+")  # up to a comma that is in no brackets
_CUTOFFS = re.compile(r"[0-9][0-9.]*")


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
    sort: str = Field(
        "",
        max_length=300,
        description="run, judged, or a measure; with - before it, falling. The best by the first measure come first"
        " without it.",
    )
    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    test: str = Field(
        "",
        max_length=40,
        description="As compare takes it. Without it: randomisation, and t over more than 2,000 topics.",
    )
    correction: str = Field(CORRECTION, max_length=40, description="For the number of tests, as compare takes it.")
    show: Literal["", "difference"] = Field(
        "", description="Whether each cell of the page has the difference to the baseline, too."
    )
    curve: str = Field("", max_length=300, description="A measure that is drawn by cutoff, such as nDCG; none without.")

    def pairs(self, measures: tuple[str, ...]) -> list[tuple[str, str]]:
        """Give what is not as it is without being asked, for an address; and the measures by their names."""
        usual = {"correction": CORRECTION}
        found = [("measures", ",".join(measures))] if measures else []
        return found + [
            (name, value)
            for name in ("baseline", "sort", "where", "test", "correction", "show", "curve")
            if (value := getattr(self, name).strip()) != usual.get(name, "")
        ]


class AskedTable(Asked):
    """The leaderboard in a form for papers and programs."""

    form: Form = Field(
        "csv",
        description="csv: every number in full precision; tests: every test so; latex and markdown: the leaderboard.",
    )


def names_in(texts: list[str]) -> list[str]:
    """Part names of measures from one another: by commas, but not by those inside a name.

    >>> names_in(["nDCG@10, AP", "P@5,10;RBP(p=0.5,rel=2)@10", " "])
    ['nDCG@10', 'AP', 'P@5,10', 'RBP(p=0.5,rel=2)@10']
    """
    found: list[str] = []
    for text in texts:
        parts: list[str] = []
        for part in (one.strip() for one in _PART.findall(text)):
            if parts and _CUTOFFS.fullmatch(part):
                parts[-1] += f",{part}"
            elif part:
                parts.append(part)
        found += parts
    return found
