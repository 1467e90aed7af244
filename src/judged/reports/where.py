"""The sections that say where it fails: slices, the performance matrix, and the stages of a system."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from judged.comparison.slicing.derived import OUTCOME
from judged.comparison.slicing.slice_tests import ALL
from judged.diagnosis.matrix import matrix as matrix_of_runs
from judged.diagnosis.matrix.points import BOTH, COVERAGE, RANKING
from judged.reports.material import DEPTH, ReportPart, listed, quoted
from judged.results import Block, Chart, Section, Sentences
from judged.results.decimals import counted, decimal
from judged.scoring.evaluation.evaluate import chosen_measures

if TYPE_CHECKING:
    from judged.comparison.slicing.scores import SlicedScores
    from judged.diagnosis.matrix import Matrix
    from judged.reports.material import Material

CANDIDATES = "R@100"
_TOPICS = 40  # rows of a table of topics


def matrix(material: Material) -> ReportPart:
    """Set both runs and their slices against recall and the first measure, to tell what was not found."""
    names = material.two
    found = matrix_of_runs(
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
    aside = () if material.baseline is None else tuple(found.of_run(material.baseline))
    first = tuple(sentence for sentence in found.sentences if sentence not in aside)
    about = Sentences(aside, "matrix_aside", f"What the matrix shows of {material.baseline}", folded=True)
    section = Section("matrix", "Performance matrix", (Sentences(first), chart, topics, *((about,) if aside else ())))
    return ReportPart(section, {"matrix": found}, _failing(material, found))


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


def by_stage(material: Material) -> ReportPart:
    """Say where the loss of both runs arises: what was not found, and what was ranked badly."""
    found, slicing = material.stages, material.slicing
    each = "each slice and run" if slicing is not None else listed(material.two[::-1])
    said = (
        f"A bar for {each}: the mean {found.measure}, then"
        f" what is lost of the best that could be attained, by ranking and by candidates (the first {DEPTH})."
    )
    chart = quoted(found.charts()["slices"], "stages", title=f"Where {found.measure} is lost", sentence=said)
    parts: list[Block] = [Sentences(found.sentences), chart]
    if found.baseline is not None:
        folded = slicing is not None
        parts.append(quoted(found.table("changes"), "stage_changes", title="What changed, by stage", folded=folded))
    worst = found.topics_table().take(range(min(_TOPICS, len(found.query_ids))))
    parts.append(quoted(worst, "stage_topics", title="Topics with the largest loss", folded=True))
    section = Section("stages", "Two stages: found, then ranked", tuple(parts))
    rests = found.provenance.warnings  # those of the evaluation, for two of its runs
    return ReportPart(
        section, {"stages": found}, found.headline, tuple(one for one in found.warnings if one not in rests)
    )


def slices(material: Material) -> ReportPart | None:
    """Show both runs by slice, and test where they differ."""
    if material.slicing is None:
        return None
    scores = chosen_measures(material.scores, material.scores.measures[:1])
    at = [scores.run_names.index(name) for name in material.two]
    runs = tuple(scores.runs[run] for run in at)
    scores = replace(scores, runs=runs, values=scores.values[at], counted=scores.counted[at])
    shown, measure = scores.by_slice(material.slicing, seed=material.seed), str(material.lead)
    said = (
        f"{measure} of {listed(scores.run_names)} by slice, with 95% intervals over topics. A slice with fewer topics"
        f" than it is judged by is marked, and not tested.{_ends(shown, material.candidate)}"
    )
    drawn = replace(shown.overview(), name="slice_scores", only="")
    parts: list[Block] = [Chart("slices", f"{measure} by slice", drawn, said, draw=shown.chart)]
    results: dict[str, Any] = {"slices": shown}
    sentences, warned = list(shown.sentences), list(shown.warnings)
    headline = next((text for row, text in shown.differing() if row and row.better is False), "")
    if material.baseline is not None and material.tested is not None:
        tested = scores.compare_slices(material.slicing, material.baseline, seed=material.seed)
        results["slice comparison"] = tested
        sentences = [*tested.sentences, *sentences, material.caution]
        warned = [*tested.warnings, *warned]
        title = f"{material.candidate} against {material.baseline}"
        differences = {"name": "slice_differences", "title": title, "note": tested.caption, "only": ""}
        parts.append(replace(tested.overview(), **differences))
        headline = tested.sentences[0] if tested.sentences else headline
    if OUTCOME in material.by:
        bad = "on topics where it did badly, any other run does better by luck alone (regression to the mean)"
        warned.append(f"{OUTCOME} is that of {material.two[0]}: {bad}")
    new = tuple(text for text in dict.fromkeys(warned) if text not in scores.warnings)
    section = Section("slices", "By slice", (Sentences(tuple(dict.fromkeys(filter(None, sentences)))), *parts))
    return ReportPart(section, results, headline, new)


def _ends(shown: SlicedScores, run: str) -> str:
    """Name the slices with the lowest and the highest number of a run."""
    rows = [row for row in shown.estimates if row.run == run and row.part != ALL and not row.small]
    known = sorted((row.value, row.part) for row in rows if row.value == row.value)
    if len(known) < 2:
        return ""
    (least, low), (most, high) = known[0], known[-1]
    return f" Of {run}, {low} is lowest with {decimal(least)}, and {high} highest with {decimal(most)}."
