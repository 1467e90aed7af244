"""Where judges disagree: their labels of a pair side by side, most telling first, and the grade that is final."""

from __future__ import annotations

from contextlib import suppress
from statistics import pvariance
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.errors import InputError
from judged.labels.labels import ADJUDICATOR
from judged.results import ANY, TEXT, Table, columns_of, significant
from judged.stats.sufficiency import insufficiency
from judged.web.answers import PageAnswer

if TYPE_CHECKING:
    from judged.labels.store import LabelStore


State: TypeAlias = Literal["no-shared-pair", "too-few-pairs", "no-disagreement", "disagreement"]


class Disagreements(PageAnswer):
    """Pairs that judges grade differently, the largest difference first, those that are settled last.

    ``shared`` counts the pairs with grades of several judges, ``state`` says what follows: ``no-shared-pair`` (nothing
    can be compared), ``too-few-pairs`` (the same grades, on too few pairs to say that judges agree),
    ``no-disagreement``, or ``disagreement``.
    """

    kind: ClassVar[str] = "disagreements"


def disagreements(store: LabelStore | None) -> Disagreements:
    """Find the pairs that several judges grade differently."""
    rows: list[dict[str, Any]] = []
    shared = 0
    for (query_id, doc_id), given in _by_pair(store).items():
        final = next((label["grade"] for label in given if label["judge"] == ADJUDICATOR), None)
        others = sorted((label for label in given if label["judge"] != ADJUDICATOR), key=lambda label: -label["grade"])
        grades = [label["grade"] for label in others]
        shared += len(grades) > 1
        if len(set(grades)) > 1:
            labels = [{name: label[name] for name in ("judge", "kind", "grade", "note", "seconds")} for label in others]
            row = {"query_id": query_id, "doc_id": doc_id, "spread": grades[0] - grades[-1]}
            rows.append(row | {"variance": pvariance(grades), "final": final, "labels": labels})
    rows.sort(
        key=lambda row: (row["final"] is not None, -row["spread"], -row["variance"], row["query_id"], row["doc_id"])
    )
    pair = (("query_id", TEXT, "Topic"), ("doc_id", TEXT, "Document"))
    grade = significant()
    columns = columns_of(rows, *pair, ("spread", grade, "Spread"), ("final", grade, "Final"), ("labels", ANY, "Labels"))
    about = {
        "n": len({row["query_id"] for row in rows}),
        "open": sum(row["final"] is None for row in rows),
        "shared": shared,
        "state": _state(shared, len(rows)),
    }
    return Disagreements(about, (Table("pairs", columns, only="data"),))


def _state(shared: int, different: int) -> State:
    if different:
        return "disagreement"
    if not shared:
        return "no-shared-pair"
    return "too-few-pairs" if insufficiency(shared, "verdict") else "no-disagreement"


def _by_pair(store: LabelStore | None) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Give what was said of each pair when judges saw it first; nothing where no label is there."""
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with suppress(InputError):
        for label in [] if store is None else store.labels().graded.to_pylist():
            if label["repeat"] == 0:
                pairs.setdefault((label["query_id"], label["doc_id"]), []).append(label)
    return pairs
