"""The leaderboard for papers and programs, in the forms that comparisons and scores have themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from judged.answer.latex import latex
from judged.answer.markdown import markdown
from judged.errors import InputError
from judged.web.workspace import LEVEL

if TYPE_CHECKING:
    from judged.web.leaderboard.asked import Form
    from judged.web.leaderboard.board import Board

FILES: dict[Form, tuple[str, str]] = {
    "csv": ("leaderboard.csv", "text/csv"),
    "tests": ("tests.csv", "text/csv"),
    "latex": ("leaderboard.tex", "text/plain"),
    "markdown": ("leaderboard.md", "text/markdown"),
}
"""The name and the type of each form."""


def written(board: Board, form: Form) -> str:
    """Write the leaderboard: best first by its first measure."""
    if not board.workspace.lists:
        raise InputError("no run is open", fix="open some: judged serve QRELS RUN...")
    comparison, scores = board.comparison(), board.scores(board.measures)
    if form == "csv":
        one_by_one = (
            board.estimates()
            if comparison is None
            else tuple(one.estimates[at] for at in range(len(scores.runs)) for one in comparison.measures)
        )
        return replace(scores.summary(ci="none"), estimates=one_by_one).csv() + "\n"
    if comparison is not None:
        if form == "tests":
            return comparison.csv() + "\n"
        return (latex if form == "latex" else markdown)([comparison.leaderboard()]) + "\n"
    if form == "tests":
        raise InputError("one run is open: there is nothing to test it against", fix="open a second run")
    summary = replace(scores.summary(level=LEVEL), estimates=board.estimates())
    return (summary.latex() if form == "latex" else summary.markdown()) + "\n"
