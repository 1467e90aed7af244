"""The sections that say where it fails: slices, the performance matrix, and the stages of a system."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from judged.answer import Block, Chart, Section, Sentences
from judged.decimals import counted, decimal
from judged.diagnosis.matrix import performance_matrix
from judged.diagnosis.matrix.points import BOTH, COVERAGE, RANKING
from judged.reporting.material import DEPTH, Found, listed, quoted

if TYPE_CHECKING:
    from judged.diagnosis.matrix import Matrix
    from judged.reporting.material import Material

CANDIDATES = "R@100"
_TOPICS = 40  # rows of a table of topics


def matrix(material: Material) -> Found:
    """Set both runs and their slices against recall and the first measure, to tell what was not found."""
    names = material.two
    found = performance_matrix(
        material.qrels,
        [material.runs[name] for name in names],
        x=CANDIDATES,
        y=str(material.lead),
        slicing=material.slicing,
        baseline=names[0],
        seed=material.seed,
        resamples=material.resamples,
        **material.policies,
    )
    run = material.candidate
    said = (
        f"One dot a topic of {run}: {found.x} across, {found.y} upwards. The lines are the means of {found.baseline}:"
        f" {decimal(found.cuts[0], 3)} and {decimal(found.cuts[1], 3)}."
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


def by_stage(material: Material) -> Found:
    """Say where the loss of both runs arises: what was not found, and what was ranked badly."""
    found, slicing = material.stages, material.slicing
    each = "each slice and run" if slicing is not None else listed(material.two[::-1])
    said = (
        f"A bar for {each}: the mean {found.measure}, then"
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
    rests = found.provenance.warnings  # those of the evaluation, for two of its runs
    return Found(section, {"stages": found}, found.headline, tuple(one for one in found.warnings if one not in rests))
