"""What is asked of the list of topics and of the page of one: the parameters of their addresses."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel, Field

MEASURE = "nDCG@10"
LONGEST = 8192
"""Characters of a query id or a document id; some are addresses of pages."""

Pairs: TypeAlias = list[tuple[str, str]]


class Order(BaseModel):
    """Which topics a list has, and in which order: kept in the address of each topic that is opened from it."""

    measure: str = Field(MEASURE, max_length=300, description="The measure of the scores.")
    runs: list[str] = Field(
        [], max_length=200, description="The runs whose scores make columns, mean and spread; the first 12 without it."
    )
    sort: str = Field(
        "id",
        max_length=1000,
        description="id, query, relevant, judged, mean, spread, or run:NAME; with - before it, falling.",
    )
    q: str = Field("", max_length=500, description="Words that id or query text must hold.")
    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")

    def order_pairs(self) -> Pairs:
        """Give what is not as it is without being asked, for an address."""
        one = [("measure", self.measure), ("sort", self.sort), ("q", self.q), ("where", self.where)]
        usual = {"measure": MEASURE, "sort": "id", "q": "", "where": ""}
        return [(name, value) for name, value in one if value != usual[name]] + [("runs", name) for name in self.runs]


class AskedList(Order):
    """The list of topics."""

    page: int = Field(1, ge=1, le=1_000_000, description="Which page of the list.")


class AskedTopic(Order):
    """One topic."""

    id: str = Field(max_length=LONGEST, description="The query id.")
    first: str | None = Field(None, max_length=LONGEST, description="The run on the left; the first one without it.")
    second: str | None = Field(
        None, max_length=LONGEST, description="The run on the right; another one without both, none where it is empty."
    )
    depth: int = Field(10, ge=1, le=100, description="How many documents of each list are shown.")
    explain: str = Field("", max_length=300, description="The measure that is explained; the chosen one without it.")
    tools: bool = Field(default=False, description="Whether to ask what other tools report.")

    def pairs(self) -> Pairs:
        """Give what is not as it is without being asked, for an address."""
        made = [("id", self.id)]
        made += [(name, value) for name, value in (("first", self.first), ("second", self.second)) if value is not None]
        made += [("depth", str(self.depth))] if self.depth != 10 else []
        made += [("explain", self.explain)] if self.explain else []
        made += [("tools", "true")] if self.tools else []
        return made + self.order_pairs()


class AskedExplanation(BaseModel):
    """How one score comes about."""

    id: str = Field(max_length=LONGEST, description="The query id.")
    run: str = Field(max_length=LONGEST, description="The run.")
    measure: str = Field(MEASURE, max_length=300, description="The measure.")


class AskedDocument(BaseModel):
    """The text of one document."""

    id: str = Field(max_length=LONGEST, description="The document id.")
    length: int = Field(4000, ge=1, le=10_000_000, description="So many characters of the text at most.")
