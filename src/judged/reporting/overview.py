"""The sections that every report has: the leaderboard, and curves by cutoff."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.answer import Block, Section, Sentences, Table
from judged.curves import curve
from judged.decimals import counted
from judged.errors import JudgedError, JudgedWarning
from judged.evaluation.summary import best_first
from judged.measures import parse
from judged.reporting.material import listed
from judged.stats import IntervalMethod

if TYPE_CHECKING:
    from judged.curves import Curves
    from judged.reporting.material import Material

_LINES = 5  # runs of a curve
_DEPTH = 100


def leaderboard(material: Material) -> Section:
    """Write the table of all runs and measures, the chart of the first, and the tests of the pair looked at."""
    comparison = material.comparison
    title = "Every run and measure"
    if comparison is None:
        note = material.scores.interval_words(IntervalMethod())
        board = Table.of_grid("board", material.scores.summary().runs().grid(), title, note)
    else:
        note = "; ".join([comparison.caption, *(one.untested for one in comparison.measures if one.untested)])
        board = replace(comparison.leaderboard(), name="board", title=title, note=note, only="")
    parts: list[Block] = [board]
    if len(material.scores.runs) > 1:
        emphasised = [name for name in (material.candidate, material.reference) if name]
        parts.insert(0, best_first(material.lead, material.estimates, emphasised))
    sentences: tuple[str, ...] = ()
    if comparison is not None and material.reference is not None:
        known = [one.by_runs for one in comparison.measures]
        two = (material.reference, material.candidate)
        pairs = [found for one in known if (found := one.get(two) or one.get((two[1], two[0])))]
        sentences = tuple(pair.sentence for pair in pairs)
        if material.tested and len(material.tested.pairs) > 1 and comparison.choices.baseline is not None:
            title = f"Every run against the baseline: {material.lead}"
            parts.append(replace(comparison.pair_table(), name="against_baseline", title=title, folded=True, only=""))
    return Section("leaderboard", "Leaderboard", (*([Sentences(sentences)] if sentences else []), *parts))


def cutoffs(material: Material) -> tuple[Section | None, dict[str, Any]]:
    """Draw the first measure and recall by cutoff, for the best runs and the two that are looked at."""
    names = [material.candidate, *([material.reference] if material.reference is not None else [])]
    names += [name for name in material.ranked if name not in names][: _LINES - len(names)]
    wanted = list(dict.fromkeys([_series(material), "R"]))
    made = [found for one in wanted if (found := _curve(material, names, one))]
    if not made:
        return None, {}
    rest = len(material.ranked) - len(names)
    more = f"; {counted(rest, 'other')} {'is' if rest == 1 else 'are'} not" if rest else ""
    which = f"{listed(names, _LINES)} {'is' if len(names) == 1 else 'are'} drawn{more}." if more else ""
    parts = tuple(replace(one.charts()["curves"], name=f"cutoffs{at}") for at, one in enumerate(made, 1))
    sentences = tuple(
        one for one in (which, "Where lines cross, the answer to which run is better depends on the cutoff.") if one
    )
    said = [Sentences(sentences)] if len(names) > 1 else []
    section = Section("cutoffs", "By cutoff", (*said, *parts))
    return section, {f"curve {one.name}": one for one in made}


def _series(material: Material) -> str:
    """Name the first measure without its cutoff; nDCG, where it has none."""
    lead = material.lead
    if lead.entry.cutoff is None or lead.entry.at != "cutoff":
        return "nDCG"
    return str(lead.replace(cutoff=1)).removesuffix("@1")


def _curve(material: Material, names: list[str], measure: str) -> Curves | None:
    policies = dict(material.policies)
    series: Any = measure
    options: dict[str, Any] = {}
    if policies.get("dialect"):  # our own names must not be read as the tool's
        try:
            series = parse(f"{measure}@{_DEPTH}")
        except JudgedError:
            return None
        options["cutoffs"] = _DEPTH
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JudgedWarning)  # they are those of the scores, which the report lists
            return curve(material.qrels, material.some_runs(names), series, seed=material.seed, **options, **policies)
    except JudgedError:  # no curve of this measure over these runs: the report does without
        return None
