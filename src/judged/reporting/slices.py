"""The section about slices: which ones, the scores on each, and where two runs differ."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from judged.answer import Block, Chart, Section, Sentences
from judged.decimals import decimal
from judged.reporting.material import Found, listed
from judged.slicing.by_slice import by_slice
from judged.slicing.compare_slices import compare_slices
from judged.slicing.derived import OUTCOME, known_topics
from judged.slicing.scores import ALL
from judged.slicing.slices import slice_topics

if TYPE_CHECKING:
    from judged.data.attributes import Attributes
    from judged.evaluation import Scores
    from judged.reporting.material import Material
    from judged.slicing.scores import SlicedScores
    from judged.slicing.slices import Slicing

_LENGTH = "length"  # of queries: what there is to slice by where nothing else is known
_MOST_VALUES = 12  # of an attribute that is sliced by without being asked for
_MOST_ATTRIBUTES = 3


def sliced(material: Material) -> Slicing | None:
    """Cut the topics into slices: by what was asked for, or by what is known of them; None if that is nothing."""
    given: dict[str, Any] = {"attributes": material.attributes, "queries": material.topics}
    known = known_topics(
        material.qrels,
        needed=material.by,
        run=material.runs[material.two[0]],
        documents=material.policies.get("documents"),
        **given,
    )
    names = material.by or _usable(known)
    if not names and material.topics is not None:
        known, names = known_topics(material.qrels, needed=(_LENGTH,), **given), (_LENGTH,)
    return slice_topics(known, names, query_ids=list(material.scores.query_ids)) if names else None


def _usable(known: Attributes) -> tuple[str, ...]:
    """Name the attributes of few values, of which each has some topics: the first ones of those."""
    found: list[str] = []
    for name in known.names:
        values = [value for value in known.column(name).to_pylist() if value is not None]
        distinct = len(set(values))
        text = not (values and isinstance(values[0], float))
        if text and 2 <= distinct <= _MOST_VALUES and distinct * 4 <= max(len(values), 8):
            found.append(name)
    return tuple(found[:_MOST_ATTRIBUTES])


def two_runs(material: Material) -> Scores:
    """Give the scores of the two runs that are looked at, by the first measure: the reference first."""
    scores = material.scores
    names = material.two
    at = [scores.run_names.index(name) for name in names]
    return replace(
        scores,
        runs=tuple(scores.runs[one] for one in at),
        measures=scores.measures[:1],
        values=scores.values[at][:, :1],
        counted=scores.counted[at],
        ranges=(),
    )


def slices(material: Material, slicing: Slicing) -> Found:
    """Show both runs by slice, and test where they differ."""
    scores = two_runs(material)
    shown = by_slice(scores, slicing, seed=material.seed)
    measure = str(material.lead)
    said = (
        f"{measure} of {listed(scores.run_names)} by slice, with 95% intervals over topics. A slice with fewer topics"
        f" than it is judged by is marked, and not tested.{_ends(shown, material)}"
    )
    drawn = replace(shown.overview(), name="slice_scores", only="")
    parts: list[Block] = [Chart("slices", f"{measure} by slice", drawn, said, draw=shown.chart)]
    results: dict[str, Any] = {"slices": shown}
    sentences, warned = list(shown.sentences), shown.warnings
    headline = next((text for row, text in shown.differing() if row and row.better is False), "")
    if material.reference is not None and not _untestable(material):
        tested = compare_slices(scores, slicing, material.reference, seed=material.seed, resamples=material.resamples)
        results["slice comparison"] = tested
        sentences = [*tested.sentences, *sentences, *([material.caution] if material.caution else [])]
        warned = tuple(dict.fromkeys((*tested.warnings, *warned)))
        title = f"{material.candidate} against {material.reference}"
        differences = {"name": "slice_differences", "title": title, "note": tested.caption, "only": ""}
        parts.append(replace(tested.overview(), **differences))
        headline = tested.sentences[0] if tested.sentences else headline
    if OUTCOME in material.by:
        bad = "on topics where it did badly, any other run does better by luck alone (regression to the mean)"
        warned = (*warned, f"{OUTCOME} is that of {material.two[0]}: {bad}")
    rests = scores.warnings  # said of all runs
    section = Section("slices", "By slice", (Sentences(tuple(dict.fromkeys(sentences))), *parts))
    return Found(section, results, headline, tuple(text for text in warned if text not in rests))


def _untestable(material: Material) -> bool:
    return material.tested is None


def _ends(shown: SlicedScores, material: Material) -> str:
    """Name the slices with the lowest and the highest number of the candidate."""
    run = material.candidate
    rows = [row for row in shown.estimates if row.run == run and row.slice != ALL and not row.small]
    known = sorted((row for row in rows if row.value == row.value), key=attrgetter("value"))
    if len(known) < 2:
        return ""
    low, high = known[0], known[-1]
    least, most = decimal(low.value), decimal(high.value)
    return f" Of {run}, {low.slice} is lowest with {least}, and {high.slice} highest with {most}."
