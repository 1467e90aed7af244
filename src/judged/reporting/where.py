"""The sections that say where it fails: slices, the performance matrix, and the stages of a system."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from judged.answer import Block, Chart, Section, Sentences
from judged.decimals import counted, decimal
from judged.diagnosis.matrix import performance_matrix
from judged.diagnosis.matrix.points import BOTH, COVERAGE, RANKING
from judged.diagnosis.stages import stages
from judged.evaluation import dialect_of
from judged.reporting.material import Found, listed, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data import Qrels, Run
    from judged.diagnosis.matrix import Matrix
    from judged.diagnosis.stages import Stages
    from judged.reporting.material import Material
    from judged.slicing.slices import Slicing

CANDIDATES = "R@100"
DEPTH = 100
_TOPICS = 40  # rows of a table of topics


def matrix(material: Material, slicing: Slicing | None) -> Found:
    """Set both runs and their slices against recall and the first measure, to tell what was not found."""
    names = material.two
    found = performance_matrix(
        material.qrels,
        material.some_runs(names),
        x=CANDIDATES,
        y=str(material.lead),
        slicing=slicing,
        baseline=names[0],
        seed=material.seed,
        resamples=material.resamples,
        **material.policies,
    )
    run = material.candidate
    counts = ", ".join(f"{count} {name}" for name, count in found.counts(run).items())
    said = (
        f"One dot a topic of {run}: {found.x} across, {found.y} upwards. The lines are the means of {found.baseline}:"
        f" {decimal(found.cuts[0], 3)} and {decimal(found.cuts[1], 3)}. Topics: {counts}."
    )
    title = f"{run} by {found.x} and {found.y}"
    drawn = quoted(found.table("points"), "matrix_points")
    chart = Chart("matrix", title, drawn, said, draw=partial(found.chart, run))
    rows = found.topics_table(run)
    some = rows.take(range(min(_TOPICS, len(rows))))
    note = f"the first {_TOPICS} of {len(rows):,} topics" if len(rows) > _TOPICS else ""
    topics = quoted(some, "matrix_topics", title=f"Every topic of {run}", note=note)
    aside = () if material.reference is None else tuple(found.of_run(material.reference))
    first = tuple(sentence for sentence in found.sentences if sentence not in aside)
    about = Sentences(aside, "matrix_aside", f"What the matrix shows of {material.reference}", folded=True)
    section = Section("matrix", "Performance matrix", (Sentences(first), chart, topics, *((about,) if aside else ())))
    return Found(section, {"matrix": found}, _failing(material, found))


def _failing(material: Material, found: Matrix) -> str:
    """Say on how many topics the candidate falls short, and of what."""
    counts = found.counts(material.candidate)
    ranking, coverage, both = (counts[name] for name in (RANKING, COVERAGE, BOTH))
    short = ranking + coverage + both
    if not short:
        return ""
    whose = "its own mean" if found.baseline == material.candidate else f"the mean of {found.baseline}"
    return (
        f"On {short:,} of {counted(len(material.scores.query_ids), 'topic')}, {material.candidate} is below {whose} in"
        f" {found.y}, in {found.x}, or in both: on {ranking:,} only in {found.y} (found, and ranked badly), on"
        f" {coverage:,} only in {found.x} (not found), on {both:,} in both."
    )


def prepared(material: Material, names: Sequence[str]) -> tuple[Qrels, list[Run]]:
    """Give qrels and runs as the dialect ranks them."""
    rules = dialect_of(material.policies.get("dialect"))
    return rules.prepare_qrels(material.qrels), [rules.prepare_run(material.runs[name]) for name in names]


def why_not(material: Material) -> str:
    """Say why rankings cannot be looked into under these policies; nothing where they can."""
    policies = material.scores.policies
    if policies.ties in {"expected", "bounds"}:
        return f"ties={policies.ties!r} has no single order of documents"
    if policies.topics == "run":
        return "with topics='run' the runs need not have the same topics"
    return f"depth={policies.depth} cuts the rankings" if policies.depth is not None else ""


def by_stage(material: Material, slicing: Slicing | None) -> Found:
    """Split the loss of both runs into what was not found and what was ranked badly."""
    names = material.two[::-1]
    qrels, runs = prepared(material, names)
    policies = material.scores.policies
    found = stages(
        qrels,
        runs[0],
        measure=material.lead,
        depth=DEPTH,
        against=runs[1] if len(runs) > 1 else None,
        slicing=slicing,
        topics=policies.topics,
        ties=policies.ties if policies.ties not in {"expected", "bounds"} else "docid",  # type: ignore[arg-type]
        precision=policies.precision,
        documents=material.policies.get("documents"),
        seed=material.seed,
        resamples=material.resamples,
    )
    said = (
        f"A bar for {'each slice and run' if slicing is not None else listed(names)}: the mean {found.measure}, then"
        f" what is lost of the best that could be attained, by ranking and by candidates (the first {DEPTH})."
    )
    chart = quoted(found.charts()["slices"], "stages", title=f"Where {found.measure} is lost", sentence=said)
    parts: list[Block] = [Sentences(found.sentences), chart]
    if found.against is not None:
        folded = slicing is not None
        parts.append(quoted(found.table("changes"), "stage_changes", title="What changed, by stage", folded=folded))
    worst = found.topics_table().take(range(min(_TOPICS, len(found.query_ids))))
    parts.append(quoted(worst, "stage_topics", title="Topics with the largest loss", folded=True))
    section = Section("stages", "Two stages: found, then ranked", tuple(parts))
    return Found(section, {"stages": found}, found.headline, _new(found))


def _new(found: Stages) -> tuple[str, ...]:
    """Give the warnings that are not those of the evaluation again, for two of its runs."""
    rests = found.provenance.warnings
    return tuple(one for one in found.warnings if one not in rests)
