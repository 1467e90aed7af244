"""The page and the API of the leaderboard."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.comparison.choices import known_tests
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.registry import REGISTRY
from judged.stats.correction import CORRECTIONS
from judged.web.answer_pages import answer_page
from judged.web.desk import Opened
from judged.web.leaderboard.answer import AskedLeaderboard, LeaderboardPage
from judged.web.leaderboard.leaderboard import leaderboard

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        if not entry.properties.reads_answers
    )


router = APIRouter(tags=["leaderboard"])


def _shown(_: Workspace, __: AskedLeaderboard, answer: LeaderboardPage) -> dict[str, Any]:
    """Give what can be chosen, by what rows are sorted, and the charts."""
    lower = [str(measure) for measure in answer.measures if measure.properties.higher_is_better is False]
    return {
        "asked": answer.asked,
        "status": HTTPStatus.BAD_REQUEST if answer.problems else HTTPStatus.OK,
        "keys": {name: name for name in ("run", *answer.names, "judged")},
        "rising": ["run", *lower],
        "choices": {
            "families": families(answer.plain_names),
            "names": _known(),
            "tests": known_tests(),
            "corrections": CORRECTIONS,
            "curves": dict.fromkeys(filter(None, (*CURVES, answer.asked.curve))),
        },
        "figures": answer.drawn(),
    }


_WHAT = "Every run by the chosen measures, tested against a baseline"


@answer_page(router, "leaderboard.html", "/leaderboard", "Leaderboard", _WHAT, _shown)
def leaderboard_page(workspace: Opened, asked: Annotated[AskedLeaderboard, Query()]) -> LeaderboardPage:
    """Give the leaderboard: numbers with intervals, tests against the baseline, and a curve where one is asked for."""
    return leaderboard(workspace, asked)
