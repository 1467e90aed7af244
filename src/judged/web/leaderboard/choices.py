"""What the forms of the page offer: measures, slices, tests, corrections, and measures of curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from judged.comparison.choices import known_tests
from judged.errors import InputError
from judged.measures import REGISTRY, parse
from judged.slicing import slice_topics
from judged.stats.correction import CORRECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.web.leaderboard.board import Board
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


@dataclass(frozen=True)
class Family:
    """Measures that can be ticked, of one family."""

    name: str
    measures: tuple[str, ...]


@dataclass(frozen=True)
class SliceChoice:
    """A slice: its name, the expression that gives it, and how many topics it has."""

    name: str
    expression: str
    topics: int


@dataclass(frozen=True)
class Choices:
    """What the forms offer; of slices by attribute."""

    families: tuple[Family, ...]
    names: tuple[str, ...]
    slices: tuple[tuple[str, tuple[SliceChoice, ...]], ...]
    tests: tuple[str, ...]
    corrections: tuple[str, ...]
    curves: tuple[str, ...]


def choices_of(board: Board) -> Choices:
    """Give what can be chosen here; what is chosen already is among it."""
    curves = CURVES if board.asked.curve.strip() in {"", *CURVES} else (*CURVES, board.asked.curve.strip())
    return Choices(
        families=families(board.names),
        names=_known(),
        slices=slices(board.workspace),
        tests=tuple(known_tests()),
        corrections=tuple(CORRECTIONS),
        curves=curves,
    )


def families(chosen: Sequence[str]) -> tuple[Family, ...]:
    """Give measures by family: the common ones, and those that are chosen."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys((*COMMON, *chosen)):
        found.setdefault(parse(name).entry.family, []).append(name)
    return tuple(Family(name, tuple(measures)) for name, measures in found.items())


@cache
def _known() -> tuple[str, ...]:
    """Name every measure as it can be typed; what needs more than a cutoff stands there as it begins."""
    return tuple(
        entry.cutoff.example(name, entry.at) if entry.cutoff is not None and entry.cutoff.required else name
        for name, entry in REGISTRY.items()
    )


def slices(workspace: Workspace) -> tuple[tuple[str, tuple[SliceChoice, ...]], ...]:
    """Cut the topics by each attribute that makes slices: as given, and as it follows from judgments and queries."""
    return workspace.remember(("leaderboard", "slices"), lambda: _slices(workspace))


def _slices(workspace: Workspace) -> tuple[tuple[str, tuple[SliceChoice, ...]], ...]:
    try:
        known = workspace.known(("relevant_band",))
    except InputError:
        known = workspace.known()
    found: list[tuple[str, tuple[SliceChoice, ...]]] = []
    for name in known.names:
        try:
            cut = slice_topics(known, name, query_ids=workspace.query_ids)
        except InputError:  # too many values, or none
            continue
        made = tuple(
            SliceChoice(one.name, one.expression, n) for one, n in zip(cut.slices, cut.n.tolist(), strict=True) if n
        )
        if 1 < len(made) <= _MOST:
            found.append((name, made))
    return tuple(found)
