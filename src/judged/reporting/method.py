"""The last section: by which rules, from which files, with which versions, and how to make it again."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from judged.answer import COUNT, TEXT, Block, Code, Column, Section, Sentences, Table
from judged.evaluation.summary import basis
from judged.reporting.result import DRAWN_BY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.reporting.material import Material
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
        Column("topics", [qrels.topics, *(run.returned_topics for run in runs)], COUNT),
        Column("sha256", [qrels.sha256, *(run.sha256 for run in runs)], TEXT, "SHA-256"),
    )
    return Table("files", columns, "Files", labels=3, folded=len(runs) > 12)
