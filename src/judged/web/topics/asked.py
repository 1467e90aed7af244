"""What is asked of the list of topics and of the page of one: the parameters of their addresses."""

from __future__ import annotations

from pydantic import BaseModel, Field

MEASURE = "nDCG@10"
LONGEST = 8192
"""Characters of a query id or a document id; some are addresses of pages."""


class Order(BaseModel):
    """Which topics a list has, and in which order: kept in the address of each topic that is opened from it."""

    measure: str = Field(MEASURE, max_length=300, description="The measure of the scores.")
    sort: str = Field(
        "id",
        max_length=1000,
        description="id, query, relevant, judged, mean, spread, or run:NAME; with - before it, falling.",
    )
    q: str = Field("", max_length=500, description="Words that id or query text must hold.")
    where: str = Field("", max_length=2000, description="An expression over attributes, such as kind == 'law'.")
    runs: list[str] = Field(
        [], max_length=200, description="The runs whose scores make columns, mean and spread; the first 12 without it."
    )


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

    @property
    def order(self) -> Order:
        """The list of topics that the topic is one of."""
        return Order(**self.model_dump(include=set(Order.model_fields)))


class AskedExplanation(BaseModel):
    """How one score comes about."""

    id: str = Field(max_length=LONGEST, description="The query id.")
    run: str = Field(max_length=LONGEST, description="The run.")
    measure: str = Field(MEASURE, max_length=300, description="The measure.")


class AskedDocument(BaseModel):
    """The text of one document."""

    id: str = Field(max_length=LONGEST, description="The document id.")
    length: int = Field(4000, ge=1, le=10_000_000, description="So many characters of the text at most.")
