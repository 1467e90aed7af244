"""Pairs with different grades from judges, and whether judges agree on the pairs that several of them graded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from statistics import pvariance
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.errors import InputError
from judged.labels.labels import ADJUDICATOR
from judged.results import ANY, COUNT, TEXT, Answer, Headline, Table, columns_of, counted, significant
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.labels.store import LabelStore
    from judged.results import Block

State: TypeAlias = Literal["no-shared-pair", "too-few-pairs", "no-disagreement", "disagreement"]


@dataclass(frozen=True, eq=False, repr=False)
class Disagreements(Answer):
    """Pairs with different grades from judges, by decreasing difference, settled pairs last.

    Parameters
    ----------
    rows
        Topic, document, difference of the grades, their variance, final grade, and all labels.
    shared
        Number of pairs with grades from several judges.
    """

    kind: ClassVar[str] = "disagreements"

    rows: tuple[Mapping[str, Any], ...]
    shared: int

    @property
    def open(self) -> int:
        """Number of pairs without a final grade."""
        return sum(row["final"] is None for row in self.rows)

    @property
    def state(self) -> State:
        """Conclusion; ``too-few-pairs``: equal grades, on too few pairs to conclude that judges agree."""
        if self.rows:
            return "disagreement"
        if not self.shared:
            return "no-shared-pair"
        return "too-few-pairs" if insufficiency(self.shared, "verdict") else "no-disagreement"

    @property
    def headline(self) -> Headline:
        """Number of pairs without a final grade, or why there is none."""
        n, documents = len(self.rows), counted(self.shared, "shared document")
        if self.state == "no-shared-pair":
            return Headline("unknown", "no shared document", "No document has grades from two judges yet.")
        if self.state == "too-few-pairs":
            return Headline("unknown", "not enough data", f"All grades are equal, but on only {documents}.")
        if self.state == "no-disagreement":
            return Headline("info", "no disagreements", f"All judges gave the same grades to {documents}.")
        sentence = f"Judges gave different grades to {n} of {documents}."
        label = f"of {counted(n, 'disagreement')} without a final grade"
        return Headline("info", "to settle" if self.open else "all settled", sentence, label, self.open, COUNT)

    def facts(self) -> dict[str, Any]:
        """Return the number of topics and of pairs without a final grade, and the conclusion."""
        topics = len({row["query_id"] for row in self.rows})
        return {"n": topics, "open": self.open, "shared": self.shared, "state": self.state}

    def blocks(self) -> tuple[Block, ...]:
        """Return the pairs."""
        pair = (("query_id", TEXT, "Topic"), ("doc_id", TEXT, "Document"))
        spread, final = ("spread", significant(), "Spread"), ("final", significant(), "Final")
        columns = columns_of(self.rows, *pair, spread, final, ("labels", ANY, "Labels"))
        return (Table("pairs", columns, only="data"),)


def disagreements(store: LabelStore | None) -> Disagreements:
    """Find pairs with different grades from judges; None is a store without labels.

    >>> disagreements(None).state
    'no-shared-pair'
    """
    rows: list[dict[str, Any]] = []
    shared = 0
    for (query_id, doc_id), pair_labels in _by_pair(store).items():
        final = next((label["grade"] for label in pair_labels if label["judge"] == ADJUDICATOR), None)
        votes = [label for label in pair_labels if label["judge"] != ADJUDICATOR]
        votes.sort(key=lambda label: -label["grade"])
        grades = [label["grade"] for label in votes]
        shared += len(grades) > 1
        if len(set(grades)) > 1:
            labels = [{name: label[name] for name in ("judge", "kind", "grade", "note", "seconds")} for label in votes]
            row = {"query_id": query_id, "doc_id": doc_id, "spread": grades[0] - grades[-1]}
            rows.append(row | {"variance": pvariance(grades), "final": final, "labels": labels})
    rows.sort(
        key=lambda row: (row["final"] is not None, -row["spread"], -row["variance"], row["query_id"], row["doc_id"])
    )
    return Disagreements(tuple(rows), shared)


def _by_pair(store: LabelStore | None) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the first labels of each pair, without repeats; empty if there are no labels."""
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with suppress(InputError):
        for label in [] if store is None else store.labels().graded.to_pylist():
            if label["repeat"] == 0:
                pairs.setdefault((label["query_id"], label["doc_id"]), []).append(label)
    return pairs
