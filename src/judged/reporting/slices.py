"""The section about slices: which ones, the scores on each, and where two runs differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.answer import Block, Chart, Section, Sentences
from judged.decimals import decimal
from judged.evaluation.scoring import chosen_measures
from judged.reporting.material import Found, listed
from judged.slicing.by_slice import by_slice
from judged.slicing.compare_slices import compare_slices
from judged.slicing.derived import OUTCOME
from judged.slicing.testing import ALL

if TYPE_CHECKING:
    from judged.reporting.material import Material
    from judged.slicing.scores import SlicedScores


def slices(material: Material) -> Found | None:
    """Show both runs by slice, and test where they differ."""
    if material.slicing is None:
        return None
    scores = chosen_measures(material.scores, material.scores.measures[:1])
    at = [scores.run_names.index(name) for name in material.two]
    runs = tuple(scores.runs[run] for run in at)
    scores = replace(scores, runs=runs, values=scores.values[at], counted=scores.counted[at])
    shown, measure = by_slice(scores, material.slicing, seed=material.seed), str(material.lead)
    said = (
        f"{measure} of {listed(scores.run_names)} by slice, with 95% intervals over topics. A slice with fewer topics"
        f" than it is judged by is marked, and not tested.{_ends(shown, material.candidate)}"
    )
    drawn = replace(shown.overview(), name="slice_scores", only="")
    parts: list[Block] = [Chart("slices", f"{measure} by slice", drawn, said, draw=shown.chart)]
    results: dict[str, Any] = {"slices": shown}
    sentences, warned = list(shown.sentences), list(shown.warnings)
    headline = next((text for row, text in shown.differing() if row and row.better is False), "")
    if material.reference is not None and material.tested is not None:
        tested = compare_slices(
            scores, material.slicing, material.reference, seed=material.seed, resamples=material.resamples
        )
        results["slice comparison"] = tested
        sentences = [*tested.sentences, *sentences, material.caution]
        warned = [*tested.warnings, *warned]
        title = f"{material.candidate} against {material.reference}"
        differences = {"name": "slice_differences", "title": title, "note": tested.caption, "only": ""}
        parts.append(replace(tested.overview(), **differences))
        headline = tested.sentences[0] if tested.sentences else headline
    if OUTCOME in material.by:
        bad = "on topics where it did badly, any other run does better by luck alone (regression to the mean)"
        warned.append(f"{OUTCOME} is that of {material.two[0]}: {bad}")
    new = tuple(text for text in dict.fromkeys(warned) if text not in scores.warnings)
    section = Section("slices", "By slice", (Sentences(tuple(dict.fromkeys(filter(None, sentences)))), *parts))
    return Found(section, results, headline, new)


def _ends(shown: SlicedScores, run: str) -> str:
    """Name the slices with the lowest and the highest number of a run."""
    rows = [row for row in shown.estimates if row.run == run and row.part != ALL and not row.small]
    known = sorted((row.value, row.part) for row in rows if row.value == row.value)
    if len(known) < 2:
        return ""
    (least, low), (most, high) = known[0], known[-1]
    return f" Of {run}, {low} is lowest with {decimal(least)}, and {high} highest with {decimal(most)}."
