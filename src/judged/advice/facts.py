"""The facts in words: what a piece of advice says that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.advice.rule import written
from judged.decimals import percent

if TYPE_CHECKING:
    from judged.advice.profile import Profile

FACTS: dict[str, str] = {
    "topics": "{p.topics:topic}, {p.judgments:judgment}",
    "grades": "grades {p.grades}",
    "level": "relevant is what has grade {p.level:g} or more",
    "relevant": "relevant documents a topic: {p.relevant}",
    "judged": "judged documents a topic: {p.judged}",
    "single": "exactly one relevant document: {p.single} of {p.topics:topic}",
    "barren": "no relevant document: {p.barren} of {p.topics:topic}",
    "lost": "something above grade 0, but nothing of grade {p.level:g} or more: {p.lost} of {p.topics:topic}",
    "under_10": "1 to 9 relevant documents: {p.under_10} of {p.topics:topic};"
    " best possible mean of P@10 {p.best_p10:.3f}",
    "over_10": "more than 10 relevant documents: {p.over_10} of {p.topics:topic};"
    " best possible mean of R@10 {p.best_r10:.3f}",
    "over_100": "more than 100 relevant documents: {p.over_100} of {p.topics:topic};"
    " best possible mean of R@100 {p.best_r100:.3f}",
    "not_relevant": "judged not relevant: {p.not_relevant:pair}; topics with relevant documents and none of these:"
    " {p.one_sided}",
    "negative": "negative grade: {p.negative:pair}",
    "weakest": "lowest grade above 0: {p.weakest:.0%} of all documents above 0",
    "below_best": "nothing of the highest grade: {p.below_best} of {p.topics:topic}",
    "labels": "iterations in the qrels: {p.iterations}; pairs judged under several: {p.repeated}",
    "runs": "runs: {runs}",
    "scores": "runs without scores: {sets}",
    "lengths": "documents returned: {lengths}",
    "missing": "topics without results: {missing}",
    "judged_10": "judged among the first 10: {judged_10}",
    "judged_100": "judged among the first 100: {judged_100}",
    "judged_depth": "80% judged or more down to rank: {judged_depth}",
    "ties": "judged documents of the first 10 that are tied: {ties}",
}

_SHOWN = 4


def fact(name: str, profile: Profile) -> str:
    """Say one fact.

    >>> from judged.advice.profile import profile_of
    >>> fact("grades", profile_of({"q1": {"a": 2, "b": 0}}))
    'grades 0, 2'
    """
    text = FACTS[name]
    for key, value in _of_runs(profile).items():
        text = text.replace("{" + key + "}", value.replace("{", "{{").replace("}", "}}"))
    return written(text, profile)


def _of_runs(profile: Profile) -> dict[str, str]:
    runs = profile.runs
    if not runs:
        return dict.fromkeys(_OF_RUNS, "no runs were given")
    ranked = [run for run in runs if run.ranked]
    return {
        "runs": _some([run.name for run in runs]),
        "sets": _some(list(profile.sets)),
        "lengths": _some([f"{run.name} {run.returned}" for run in runs], "; "),
        "missing": _some([f"{run.name} {run.missing}" for run in runs if run.missing]),
        "judged_10": _some(
            [f"{run.name} {percent(run.judged_10)}" for run in sorted(ranked, key=lambda r: r.judged_10)]
        ),
        "judged_100": _some(
            [f"{run.name} {percent(run.judged_100)}" for run in sorted(ranked, key=lambda r: r.judged_100)]
        ),
        "judged_depth": _some([f"{run.name} {run.judged_depth}" for run in ranked]),
        "ties": _some([f"{run.name} {percent(run.tied_10)}" for run in sorted(ranked, key=lambda r: -r.tied_10)]),
    }


_OF_RUNS = ("runs", "sets", "lengths", "missing", "judged_10", "judged_100", "judged_depth", "ties")


def _some(texts: list[str], between: str = ", ") -> str:
    if not texts:
        return "none"
    more = f"{between}... ({len(texts)} in all)" if len(texts) > _SHOWN else ""
    return between.join(texts[:_SHOWN]) + more
