"""The sections that every report has: the leaderboard, and curves by cutoff."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.errors import JudgedError
from judged.reports.material import ReportPart, listed
from judged.results import Block, Section, Sentences
from judged.results.decimals import counted
from judged.scoring.curves import curve
from judged.scoring.evaluation.summary import best_first
from judged.scoring.measures.grammar import parse
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from judged.reports.material import Material
    from judged.scoring.curves import Curves

_LINES = 5  # runs of a curve
_DEPTH = 100


def leaderboard(material: Material) -> ReportPart:
    """Write the table of all runs and measures, the chart of the first, and the tests of the pair looked at."""
    comparison, title = material.comparison, "Every run and measure"
    if comparison is None:
        note = material.scores.interval_words(IntervalMethod())
        board = replace(material.scores.summary().runs(), name="board", title=title, note=note, only="")
        return ReportPart(Section("leaderboard", "Leaderboard", (board,)))
    note = "; ".join([comparison.caption, *(one.untested for one in comparison.measures if one.untested)])
    board = replace(comparison.leaderboard(), name="board", title=title, note=note, only="")
    parts: list[Block] = [best_first(material.lead, material.estimates, material.two[::-1]), board]
    if sentences := tuple(pair.sentence for one in comparison.measures if (pair := material.pair(one))):
        parts.insert(0, Sentences(sentences))
    if material.tested and len(material.tested.pairs) > 1 and material.given_baseline is not None:
        title = f"Every run against the baseline: {material.lead}"
        parts.append(replace(comparison.pair_table(), name="against_baseline", title=title, folded=True, only=""))
    return ReportPart(Section("leaderboard", "Leaderboard", tuple(parts)))


def cutoffs(material: Material) -> ReportPart | None:
    """Draw the first measure and recall by cutoff, for the best runs and the two that are looked at."""
    names = list(material.two[::-1])
    names += [name for name in material.ranked if name not in names][: _LINES - len(names)]
    wanted = dict.fromkeys([_series(material), "R"])
    curves = [made for one in wanted if (made := _curve(material, names, one))]
    if not curves:
        return None
    sentences = ["Where lines cross, the answer to which run is better depends on the cutoff."]
    if rest := len(material.ranked) - len(names):
        drawn = f"{listed(names, _LINES)} {'is' if len(names) == 1 else 'are'} drawn"
        sentences.insert(0, f"{drawn}; {counted(rest, 'other')} {'is' if rest == 1 else 'are'} not.")
    said = [Sentences(tuple(sentences))] if len(names) > 1 else []
    parts = (replace(one.charts()["curves"], name=f"cutoffs{at}") for at, one in enumerate(curves, 1))
    return ReportPart(Section("cutoffs", "By cutoff", (*said, *parts)), {f"curve {one.name}": one for one in curves})


def _series(material: Material) -> str:
    """Name the first measure without its cutoff; nDCG, where it has none."""
    lead = material.lead
    if lead.entry.cutoff is None or lead.entry.at != "cutoff":
        return "nDCG"
    return str(lead.replace(cutoff=1)).removesuffix("@1")


def _curve(material: Material, names: list[str], measure: str) -> Curves | None:
    """Draw a measure by cutoff; the report does without, where there is no curve of it over these runs."""
    series: Any = measure
    policies: dict[str, Any] = {**material.policies, "seed": material.seed}
    try:
        if policies.get("dialect"):  # our own names must not be read as the tool's
            series, policies["cutoffs"] = parse(f"{measure}@{_DEPTH}"), _DEPTH
        return curve(material.qrels, [material.runs[name] for name in names], series, **policies)
    except JudgedError:
        return None
