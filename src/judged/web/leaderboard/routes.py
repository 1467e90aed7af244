"""The page and the API of the leaderboard."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from judged.comparison.choices import known_tests
from judged.measures.grammar import parse
from judged.measures.registry import REGISTRY
from judged.stats.correction import CORRECTIONS
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import blocks
from judged.web.leaderboard.answer import AskedLeaderboard
from judged.web.leaderboard.leaderboard import leaderboard
from judged.web.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from judged.web.leaderboard.answer import LeaderboardPage

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


router = APIRouter()


@router.get("/leaderboard", include_in_schema=False)
def leaderboard_page(request: Request, workspace: Opened, asked: Annotated[AskedLeaderboard, Query()]) -> HTMLResponse:
    """Show the leaderboard; what is wrong stands beside its field."""
    answer = leaderboard(workspace, asked)
    lower = [str(measure) for measure in answer.measures if measure.properties.higher_is_better is False]
    return page(
        request,
        "leaderboard.html",
        status=HTTPStatus.BAD_REQUEST if answer.problems else HTTPStatus.OK,
        title="Leaderboard",
        answer=answer,
        asked=answer.asked,
        keys={name: name for name in ("run", *answer.names, "judged")},
        rising=["run", *lower],
        choices={
            "families": families(answer.plain_names),
            "names": _known(),
            "tests": known_tests(),
            "corrections": CORRECTIONS,
            "curves": dict.fromkeys(filter(None, (*CURVES, answer.asked.curve))),
        },
        figures=_figures(answer),
    )


def _figures(answer: LeaderboardPage) -> dict[str, Markup]:
    """Draw the charts, by name, once."""
    charts, key = answer.figures(), (answer.result, str(answer.lead), answer.series, answer.asked.run)
    return answer.workspace.remember(
        ("leaderboard figures", *key), lambda: {chart.name: blocks([chart]) for chart in charts}
    )


@router.get(
    "/api/v1/leaderboard",
    tags=["leaderboard"],
    summary="Every run by the chosen measures, tested against a baseline",
    responses=PROBLEMS,
)
def leaderboard_data(workspace: Opened, asked: Annotated[AskedLeaderboard, Query()]) -> dict[str, Any]:
    """Give the leaderboard: numbers with intervals, tests against the baseline, and a curve where one is asked for."""
    answer = leaderboard(workspace, asked)
    for error in answer.problems.values():  # a program asks for exactly what it wants
        raise error
    return answer.to_dict()
