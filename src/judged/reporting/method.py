"""The last section: by which rules, from which files, with which versions, and how to make it again."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from judged.answer import COUNT, TEXT, Block, Code, Column, Section, Sentences, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.reporting.material import Material

_OVER = {
    "qrels": "all topics of the qrels count; one that a run lacks scores as an empty ranking",
    "run": "the topics of each run count, judged or not",
    "both": "the topics that qrels and run have in common count",
}
_TIES = {
    "docid": "equal scores are ordered by falling document id",
    "docid-rising": "equal scores are ordered by rising document id",
    "stable": "equal scores stand as the run lists them",
    "rank": "documents are ordered by the rank column",
    "expected": "scores are means over all orders of tied documents",
    "bounds": "equal scores are ordered by falling document id, and bounds hold over all orders",
}


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
    versions = tuple(f"{name} {number}" for name, number in (scores.versions | _drawn_by()).items())
    parts.append(Sentences(versions, "drawn_with", "Versions"))
    if command:
        parts.append(Code((command,), "command", "To make this report again"))
    return Section("method", "How this was computed", tuple(parts))


def _drawn_by() -> dict[str, str]:
    """Name the versions of what draws charts, where it is installed."""
    known: dict[str, str] = {}
    for name in ("altair", "vl-convert-python"):
        with suppress(PackageNotFoundError):
            known[name] = version(name)
    return known


def _rules(material: Material) -> tuple[str, ...]:
    scores, comparison = material.scores, material.comparison
    policies = scores.policies
    rules = [f"dialect {policies.dialect}"] if policies.dialect != "judged" else []
    rules += [_OVER[policies.topics], _TIES[policies.ties]]
    rules += [f"the first {policies.depth} documents of each topic count"] if policies.depth is not None else []
    rules += ["scores of runs are compared as 32-bit numbers"] if policies.precision == "single" else []
    grades = ", ".join(f"{grade:g}" for grade in scores.qrels.grades[:12])
    rules.append(f"grades in the judgments: {grades}")
    rules.append(f"measures: {', '.join(f'{one} ({one.entry.aggregate} over topics)' for one in scores.measures)}")
    if comparison is not None:
        rules.append(comparison.caption)
    rules += [material.caution.rstrip(".")] if material.caution else []
    rules.append(f"seed {material.seed} for every resampling")
    return tuple(rules)


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
