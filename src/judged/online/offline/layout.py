"""Judgments against users as text: tables, sentences, CSV and a document."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.answer import plain
from judged.online.findings import are_of_nobody
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.online.offline.clusters import Estimate
    from judged.online.offline.rows import OfflineTable, Relation

_WIDTH = 100  # of sentences, where no width is given
_CHANCE = 0.5


def cell(estimate: Estimate, form: str = ".3f") -> str:
    """Write an estimate with its interval."""
    if np.isnan(estimate.value):
        return "-"
    rest = f"[{estimate.low:{form}}, {estimate.high:{form}}]" if estimate.known else ""
    return Cell(f"{estimate.value:{form}}", rest=rest)


def relation_table(found: OfflineTable) -> Table:
    """Lay out one row a measure, outcome and slice."""
    header = ["measure", "outcome", *([found.by] if found.by else []), "pages", f"{found.unit}s", "mean",
              "better page, better outcome", "within topics", "tau_b", "slope"]  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for one in found.relations:
        sliced = ["all" if one.slice is None else one.slice] if found.by else []
        mean = "-" if np.isnan(one.mean) else f"{one.mean:.3f}"
        rows.append(
            (one.measure, one.outcome, *sliced, str(one.pages), str(one.units), mean, cell(one.probability),
             cell(one.within), cell(one.tau, "+.3f"), cell(one.slope, "+.3f"))
        )  # fmt: skip
    return Table(tuple(header), tuple(rows), labels=3 if found.by else 2)


def calibration_table(found: OfflineTable, measure: str, outcome: str) -> Table:
    """Lay out one row a range of scores."""
    rows = tuple(
        (f"{one.low:.3f} to {one.high:.3f}", str(one.pages), str(one.units), f"{one.score:.3f}", cell(one.rate))
        for one in found.bins(measure, outcome)
    )
    return Table((measure, "pages", f"{found.unit}s", "mean score", outcome), rows)


def topic_table(found: OfflineTable) -> Table:
    """Lay out one row a measure and outcome, over means of topics."""
    rows = tuple(
        (one.measure, one.outcome, str(one.topics), str(one.pages), cell(one.rho, "+.3f")) for one in found.topics
    )
    return Table(("measure", "outcome", "topics", "pages", "Spearman's rho of means"), rows, labels=2)


def tables(found: OfflineTable) -> list[Table]:
    """Give all tables: relations, the calibration of the first measure, topics."""
    made = [relation_table(found)]
    made += [calibration_table(found, found.measures[0], outcome) for outcome in found.outcomes]
    return [*made, topic_table(found)] if found.topics else made


def text(found: OfflineTable, width: int | None) -> str:
    """Write the tables, and sentences below them."""
    drawn = [one.text(width=width) for one in tables(found)]
    wrapped = "\n".join(
        textwrap.fill(one, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)
        for one in sentences(found)
    )
    return "\n\n".join([*drawn, wrapped])


def sentences(found: OfflineTable) -> tuple[str, ...]:
    """Say which pages were scored, what was found, and what may not be concluded."""
    said = [_pages(found), *(_told(one) for one in found.relations if one.slice is None)]
    if found.unit == "user" and are_of_nobody(found.findings):
        said.append("The log names no users: each session, or page where it names none, counts as one.")
    if found.hopeless:
        said.append(
            f"On {found.hopeless} of the pages that were scored the topic has no document with a grade above 0: no list"
            " could score there."
        )
    said.append(
        "By chance of two pages with different outcomes the better one has the better outcome half of the time; ties of"
        " the score count half. Within topics, pages of one topic alone are compared: that harder topics have both"
        f" worse scores and worse outcomes does not help there. {found.level:.0%} intervals take whole"
        f" {found.unit}s for what varies, and are about these topics: others may tell something else. Each stands for"
        " itself: of many some exclude chance by luck."
    )
    if any(np.isnan(one.within.value) for one in found.relations):
        said.append("A dash stands where nothing was compared: no two pages differ both in score and in outcome.")
    if found.topics:
        said.append("Spearman's rho alone has an interval over topics, as if they were drawn from many.")
    said.append(
        "What is clicked also depends on where it stands and what else is shown: this tells whether a measure predicts"
        " what users did on these pages, not what they would do on others."
    )
    return tuple(said)


def _pages(found: OfflineTable) -> str:
    gone = "; ".join(f"{count} {reason}" for reason, count in found.left_out)
    without = f"; left out: {gone}" if gone else ""
    return (
        f"{found.joined} of {found.pages} pages of {found.log} have a topic judged in {found.qrels}, found {found.how},"
        f" and were scored{without}. Of their first {found.judged_at} results {found.judged:.1%} are judged."
    )


def _told(one: Relation) -> str:
    name = f"{one.measure} and {one.outcome}"
    if np.isnan(one.probability.value):
        return f"{name}: nothing to compare, as no two of {one.pages} pages differ both in score and in outcome."
    shown = f"{name}: of two pages the better one has the better outcome with probability {one.probability}"
    if not one.probability.known:
        return f"{shown}; there is no interval."
    if not one.probability.excludes(_CHANCE):
        return f"{shown}: that it predicts anything is not shown."
    way = "predicts it" if one.probability.value > _CHANCE else "points the wrong way"
    if np.isnan(one.within.value):
        return f"{shown}: it {way}; within topics no two pages differ both in score and in outcome."
    inside = "within topics too" if one.within.excludes(_CHANCE) else "within topics that is not shown"
    if one.within.excludes(_CHANCE) and (one.within.value > _CHANCE) != (one.probability.value > _CHANCE):
        inside = "but the other way round within topics"
    return f"{shown}: it {way}; {inside} ({one.within})."


def csv_table(found: OfflineTable) -> Table:
    """Lay out one row a measure, outcome and slice, in full precision; nothing where something is not known."""
    names = ("probability", "within", "tau", "slope")
    header = ["measure", "outcome", "by", "slice", "pages", "units", "topics", "mean", "pairs", "pairs_within"]
    header += [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    rows: list[tuple[str, ...]] = []
    for one in found.relations:
        labels = [one.measure, one.outcome, found.by, one.slice, one.pages, one.units, one.topics, plain(one.mean),
                  one.pairs, one.pairs_within]  # fmt: skip
        numbers = [part for name in names for part in plain(list(vars(getattr(one, name)).values()))]
        rows.append(tuple("" if part is None else str(part) for part in (*labels, *numbers)))
    return Table(tuple(header), tuple(rows))


def document(found: OfflineTable) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    names = ("log", "qrels", "how", "pages", "joined", "judged", "judged_at", "least_judged", "hopeless", "by", "unit",
             "units", "level", "least_pages")  # fmt: skip
    return {
        **{name: plain(getattr(found, name)) for name in names},
        "left_out": [{"reason": reason, "pages": count} for reason, count in found.left_out],
        "measures": list(found.measures),
        "outcomes": [
            {"name": name, "meaning": meaning, "less_is_better": name in found.worse}
            for name, meaning in zip(found.outcomes, found.meanings, strict=True)
        ],
        "slices": [{"slice": name, "pages": count} for name, count in found.slices],
        "relations": [plain(one) for one in found.relations],
        "calibration": [plain(one) for one in found.calibration],
        "topics": [plain(one) for one in found.topics],
        "findings": [plain(one) for one in found.findings],
        "sentences": list(sentences(found)),
    }
