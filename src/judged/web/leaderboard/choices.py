"""What the forms of the page offer: measures, slices, tests, corrections, and measures of curves."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from judged.comparison.choices import known_tests
from judged.errors import InputError
from judged.measures import REGISTRY, parse
from judged.slicing import slice_topics
from judged.stats.correction import CORRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.web.leaderboard.answer import LeaderboardPage
    from judged.web.workspace import Workspace

COMMON = (
    *("nDCG@5", "nDCG@10", "nDCG@20", "nDCG", "DCG@10", "Q"),
    *("AP", "GMAP", "RR", "RR@10", "Rprec"),
    *("P@1", "P@5", "P@10", "R@10", "R@100", "R@1000", "Success@1", "Success@10"),
    *("RBP(p=0.5)", "RBP(p=0.8)"),
    *("Bpref", "InfAP", "Judged@10"),
    *("NumRelRet", "NumRet", "NumRel"),
)
"""Measures that can be ticked; every other one can be typed."""
CURVES = ("nDCG", "P", "R", "Success", "AP", "RR", "RBP(p=0.8)", "DCG", "Judged")
_MOST = 12  # slices of one attribute


def choices_of(answer: LeaderboardPage) -> dict[str, Any]:
    """Give what can be chosen here; what is chosen already is among it."""
    return {
        "families": families(answer.names),
        "names": _known(),
        "slices": slices(answer.workspace),
        "tests": known_tests(),
        "corrections": CORRECTIONS,
        "curves": dict.fromkeys(filter(None, (*CURVES, answer.asked.curve))),
    }


def families(chosen: Sequence[str]) -> dict[str, list[str]]:
    """Give measures by family: the common ones, and those that are chosen."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys((*COMMON, *chosen)):
        found.setdefault(parse(name).entry.family, []).append(name)
    return found


@cache
def _known() -> tuple[str, ...]:
    """Name every measure as it can be typed; what needs more than a cutoff stands there as it begins."""
    return tuple(
        entry.cutoff.example(name, entry.at) if entry.cutoff is not None and entry.cutoff.required else name
        for name, entry in REGISTRY.items()
    )


def slices(workspace: Workspace) -> dict[str, list[tuple[str, str, int]]]:
    """Cut the topics by each attribute that makes slices: give the name, expression and size of each slice."""
    return workspace.remember(("leaderboard", "slices"), lambda: _slices(workspace))


def _slices(workspace: Workspace) -> dict[str, list[tuple[str, str, int]]]:
    try:
        known = workspace.known(("relevant_band",))
    except InputError:
        known = workspace.known()
    found: dict[str, list[tuple[str, str, int]]] = {}
    for name in known.names:
        try:
            cut = slice_topics(known, name, query_ids=workspace.query_ids)
        except InputError:  # too many values, or none
            continue
        made = [(part.name, part.expression, n) for part, n in zip(cut.slices, cut.n.tolist(), strict=True) if n]
        if 1 < len(made) <= _MOST:
            found[name] = made
    return found
