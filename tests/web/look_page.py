"""Show all components of the pages on one page, to check the effect of changes on other components."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse
from jinja2 import ChoiceLoader, FileSystemLoader

from judged.interface.pages import answers
from judged.interface.pages.answers import PageAnswer, page
from judged.interface.pages.pagination import Paging
from judged.results import (
    CHANGE,
    COUNT,
    NUMBER,
    TEXT,
    Chart,
    Code,
    Column,
    RankedDocument,
    RankedList,
    RankedLists,
    ReferenceLine,
    Sentences,
    Table,
)
from judged.results.blocks import Note
from judged.web.app import make_app

if TYPE_CHECKING:
    from fastapi import FastAPI

router = APIRouter(include_in_schema=False)

_LONG = "bge-large-en-v1.5_bm25-top1000_rerank-cross-encoder_2024-05-31_seed42"
_RUNS = (
    "bm25",
    "dense",
    _LONG,
    "\N{HEBREW LETTER MEM}\N{HEBREW LETTER NUN}\N{HEBREW LETTER VAV}\N{HEBREW LETTER AYIN} 2",
)
_SCORES = (0.4213, 0.3875, 0.5120, 0.2048)
_INTERVALS = [(0.371, 0.472), (0.334, 0.441), (0.461, 0.563), (0.151, 0.259)]
_CUTOFFS = (1, 5, 10, 20)


class Look(PageAnswer):
    """Answer with one block of each kind; the numbers are invented."""

    kind: ClassVar[str] = "look"


def example() -> Look:
    """Create an answer with all blocks."""
    sentences = Sentences(("The difference is -0.0338 [-0.081, 0.012].", f"`{_LONG}` is a command or a name as typed."))
    notes = (
        Note("ties", "another order of equal scores moves AP by -0.0004", "dense"),
        Note("no-ranking", "the run is a set, so nDCG@10 is not defined", _RUNS[3], severity="error"),
    )
    commands = Code(("judged compare qrels.txt bm25.run dense.run",), title="A command")
    return Look({}, (sentences, _table(), *_empty(), *_charts(), _lists(), commands), notes)


def _table() -> Table:
    columns = (
        Column("run", _RUNS, TEXT, "Run", links=["/look", "", "/look", ""]),
        Column(
            "value",
            _SCORES,
            NUMBER,
            "nDCG@10",
            ci=_INTERVALS,
            mark=["", "", "\N{DAGGER}", "\N{DOUBLE DAGGER}"],
            best=[False, False, True, False],
            kinds=["", "", "good", "bad"],
        ),
        Column(
            "change", (0.0, -0.0338, 0.0907, float("nan")), CHANGE, "Change", details=["", "p 0.1500", "p 0.0004", ""]
        ),
        Column("documents", (48_000, 6_980, 48_000, 12), COUNT, "Documents"),
        Column(
            "query",
            ("short", "a text that finds room in several lines, as those of queries do", "", "-1"),
            TEXT,
            "Text",
        ),
    )
    note = "\N{DAGGER} better, \N{DOUBLE DAGGER} worse; a row that is chosen, and one of few topics"
    return Table("runs", columns, "A table", note, kinds=["selected", "", "", "small"])


def _empty() -> tuple[Table, Table]:
    columns = (Column("run", (), TEXT, "Run"), Column("value", (), NUMBER, "nDCG@10"))
    return Table("none", columns, "A table without rows"), Table(
        "folded", _table().columns, "A folded table", folded=True
    )


def _charts() -> tuple[Chart, ...]:
    runs = Table(
        "drawn", (Column("run", _RUNS, TEXT, "Run"), Column("value", _SCORES, NUMBER, "nDCG@10", ci=_INTERVALS))
    )
    columns = (
        Column("topic", [f"t{i}" for i in range(12)], TEXT, "Topic"),
        Column("value", [0.3 - 0.05 * i for i in range(12)], CHANGE, "Difference"),
        Column("first", [0.05 * i for i in range(12)], NUMBER, "nDCG@10 of bm25"),
        Column("second", [0.6 - 0.04 * i for i in range(12)], NUMBER, "nDCG@10 of dense"),
    )
    topics = Table("topics", columns)
    rows = [
        (run, cutoff, score * cutoff**0.25 / 2)
        for run, score in zip(_RUNS, _SCORES, strict=True)
        for cutoff in _CUTOFFS
    ]
    names, cutoffs, values = zip(*rows, strict=True)
    curves = Table(
        "curves", (Column("run", names, TEXT), Column("k", cutoffs, COUNT), Column("value", values, NUMBER, "R@k"))
    )
    sentence = "What someone who does not see the chart should learn from it."
    return (
        Chart("dots", "Dots with intervals", runs, sentence, y="run"),
        Chart("bars", "Bars", runs, sentence, kind="bars", y="run"),
        Chart("columns", "Columns, -0.25 at the least", topics, sentence, kind="columns", x="topic", y="value"),
        Chart(
            "points",
            "Points",
            topics,
            sentence,
            "points",
            x="first",
            y="second",
            diagonal=True,
            lines=(ReferenceLine("y", 0.3),),
        ),
        Chart("lines", "Lines", curves, sentence, "lines", x="k", y="value", color="run", spread="cutoff"),
    )


def _lists() -> RankedLists:
    items = (
        RankedDocument(
            "1",
            "msmarco_passage_04_812345678_and_a_long_rest",
            "3",
            relevant=True,
            change="up 2",
            text="The beginning of a text.",
        ),
        RankedDocument("2", "d2", "0", relevant=False, change="same"),
        RankedDocument("3", "d3", "", None, change="new"),
    )
    rankings = (RankedList("bm25", "nDCG@10 0.4213", items), RankedList(_LONG, "nDCG@10 0.5120", items[::-1]))
    return RankedLists("lists", "Ranked lists", ("Two lists of one topic; the difference is -0.0907.",), rankings)


def with_look(workspace: Any) -> FastAPI:
    """Create a workbench with this page."""
    here, templates = Path(__file__).parent, answers._TEMPLATES
    templates.loader = ChoiceLoader([FileSystemLoader(here), *filter(None, [templates.loader])])
    app = make_app(workspace)
    app.include_router(router)
    return app


@router.get("/look.css")
def style() -> FileResponse:
    """Return the content that only this page has."""
    return FileResponse(Path(__file__).with_name("look.css"))


@router.get("/look")
def look(request: Request) -> HTMLResponse:
    """Show every component."""
    return page(request, "look.html", title="Look", answer=example(), paging=Paging.for_page(2, 70))
