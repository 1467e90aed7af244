"""What a report says first, of what was evaluated and which run is best; and last, of how it was computed."""

from __future__ import annotations

import math
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from judged.reports.answer import DRAWN_BY
from judged.reports.material import listed
from judged.results import COUNT, TEXT, Block, Code, Column, Section, Sentences, Table
from judged.results.decimals import counted, decimal
from judged.scoring.evaluation.summary import basis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.reports.material import Material
    from judged.scoring.evaluation import Estimate

_LEAST = 2  # topics that a test needs


def summary(material: Material) -> tuple[str, ...]:
    """Write the answer in sentences; those about which nothing can be said are empty."""
    return _evaluated(material), _best(material), _told_apart(material), _detectable(material)


def _evaluated(material: Material) -> str:
    scores = material.scores
    runs, topics = counted(len(scores.runs), "run was", "runs were"), counted(len(scores.query_ids), "topic")
    judgments, names = counted(scores.qrels.judgments, "judgment"), listed(scores.measure_names, 6)
    return f"{runs} evaluated on {topics} with {judgments} ({scores.qrels.name}), by {names}."


def _best(material: Material) -> str:
    known = {one.run: one for one in material.estimates}
    best, *others = (known[name] for name in material.ranked)
    if math.isnan(best.value) or material.lead.properties.higher_is_better is None:
        return ""
    if not others:
        return f"{best.run} has {best.measure} {_value(best)}."
    if all(material.alike(best.run, other.run) for other in others):
        return f"{listed(material.ranked)} have the same {best.measure} on every topic: {_value(best)}."
    equal = [other.run for other in others if other.value == best.value]
    also = f", as {listed(equal)} {'has' if len(equal) == 1 else 'have'}" if equal else ""
    return f"{best.run} has the best {best.measure}, {_value(best)}{also}."


def _value(one: Estimate) -> str:
    shown = f"{one.value:.0f}" if one.aggregate in {"sum", "count"} else decimal(one.value)
    return shown if one.ci is None else f"{shown} (95% interval {decimal(one.ci[0], 3)} to {decimal(one.ci[1], 3)})"


def _told_apart(material: Material) -> str:
    """Say which runs are distinguishable from the baseline, or from the best run."""
    tested = material.tested
    if material.comparison is None:
        return ""
    if tested is None:
        reason = material.comparison.measures[0].untested
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""
    if all(pair.result.n < _LEAST for pair in tested.pairs):
        return "With fewer than two topics to compare on, nothing was tested: what holds on others is not known."
    against = material.given_baseline or material.ranked[0]
    others = [name for name in material.ranked if name != against]
    better = [name for name in others if against in tested.better_than.get(name, ())]
    worse = [name for name in others if name in tested.better_than.get(against, ())]
    same = [name for name in others if material.alike(against, name)]
    if len(same) == len(others):
        return ""
    groups = {
        "significantly better": better,
        "significantly worse": worse,
        "the same on every topic": same,
        "not distinguishable, as the differences may be chance": [
            name for name in others if name not in {*better, *worse, *same}
        ],
    }
    parts = [f"{what}: {listed(names)}" for what, names in groups.items() if names]
    return f"Against {'the baseline ' if material.given_baseline else ''}{against}, {'; '.join(parts)}."


def _detectable(material: Material) -> str:
    """Say what these topics can show at all."""
    tested = material.tested
    pair = tested and material.pair(tested)
    if not tested or not pair or math.isnan(pair.detectable):
        return ""
    of = f", with {tested.family} comparisons allowed for" if tested.family > 1 else ""
    return (
        f"What {counted(pair.result.n, 'topic')} can show: a true difference in {pair.measure} of"
        f" {decimal(pair.detectable, 3)} between {pair.second} and {pair.first} would be found four times out of"
        f" five{of}; a smaller one would often be missed."
    )


_GRADES = 12  # that are named


def method(material: Material, warned: Sequence[str], left_out: Sequence[str], command: str) -> Section:
    """Write the rules, the files with their hashes, the versions, what to beware of, and the command."""
    scores = material.scores
    said = "The same files, seed and versions give the same report, byte for byte."
    parts: list[Block] = [Sentences((said,))]
    if warned:
        parts.append(Sentences(tuple(warned), "warnings", "What to know before the numbers are used"))
    if left_out:
        parts.append(Sentences(tuple(left_out), "left_out", "Left out"))
    parts += [Sentences(_rules(material), "rules", "Rules"), _files(material)]
    drawn_by = {name: version(name) for module, name in DRAWN_BY.items() if find_spec(module) is not None}
    versions = tuple(f"{name} {number}" for name, number in (scores.versions | drawn_by).items())
    parts.append(Sentences(versions, "drawn_with", "Versions"))
    if command:
        parts.append(Code((command,), "command", "To make this report again"))
    return Section("method", "How this was computed", tuple(parts))


def _rules(material: Material) -> tuple[str, ...]:
    scores, comparison = material.scores, material.comparison
    grades = ", ".join(f"{grade:g}" for grade in scores.qrels.grades[:_GRADES])
    measures = ", ".join(f"{one} ({one.entry.aggregate} over topics)" for one in scores.measures)
    rules = [basis(scores), f"grades in the judgments: {grades}", f"measures: {measures}"]
    rules += [comparison.caption] if comparison is not None else []
    rules += [material.caution.rstrip(".")] if material.caution else []
    return (*rules, f"seed {material.seed} for every resampling")


def _files(material: Material) -> Table:
    scores = material.scores
    qrels, runs = scores.qrels, scores.runs
    columns = (
        Column("what", ["qrels", *("run" for _ in runs)], TEXT),
        Column("name", [qrels.name, *(run.name for run in runs)], TEXT),
        Column("file", [qrels.path, *(run.path for run in runs)], TEXT),
        Column("n", [qrels.n, *(run.returned_topics for run in runs)], COUNT, "topics"),
        Column("sha256", [qrels.sha256, *(run.sha256 for run in runs)], TEXT, "SHA-256"),
    )
    return Table("files", columns, "Files", labels=3, folded=len(runs) > 12)
