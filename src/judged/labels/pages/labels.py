"""The pages about labels, and their twins in JSON."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.problems import Parameters
from judged.interface.pages.workspace import Opened
from judged.labels.calibration import Calibration, calibrate
from judged.labels.trust import LabelQuality, quality

if TYPE_CHECKING:
    from judged.data.run import Run
    from judged.interface.pages.workspace import Workspace
    from judged.labels.labels import Labels
    from judged.results import Answer

router = APIRouter(tags=["labels"])
_TABS = {
    "/labels/quality": "Judges",
    "/labels/calibration": "Models against people",
    "/judging/disagreements": "Disagreements to settle",
    "/judging": "Judge",
}


def _title(_: Workspace, _asked: Parameters, answer: Answer | None) -> dict[str, Any]:
    return {"title": answer.title} if answer else {}


_page = partial(answer_page, router, "labels.html", shown=_title, label="Labels", tabs=_TABS)


class AskedLabels(Parameters):
    """By which measure systems are scored under each judge."""

    measure: str = Field("nDCG@10", max_length=200, description="A mean over topics.")


@_page("/labels/quality", "How far labels can be trusted", "How far labels can be trusted")
def trust(workspace: Opened, asked: Annotated[AskedLabels, Query()]) -> LabelQuality:
    """Say how far judges agree, with the others and with themselves, and what it does to systems."""
    labels, runs = _given(workspace)
    key = "label quality", len(labels), asked.measure
    return workspace.remember(key, lambda: quality(workspace.labels, runs, asked.measure))


@_page("/labels/calibration", "Models against people", "Models against people")
def calibration(workspace: Opened, asked: Annotated[AskedLabels, Query()]) -> Calibration:
    """Set models as judges against people, and say what their labels are worth."""
    labels, runs = _given(workspace)
    key = "calibration", len(labels), asked.measure
    return workspace.remember(key, lambda: calibrate(labels, None, runs, asked.measure))


def _given(workspace: Workspace) -> tuple[Labels, list[Run]]:
    """Give the labels of the store, and the runs that are open if they are of the same topics."""
    if workspace.labels is None:
        about = "Labels say who graded which document. Open a store of them, alone or with judgments and runs:"
        raise NotOpenError("no labels are open", "judged serve QRELS RUN --labels STORE", about)
    labels = workspace.labels.labels()
    shared = set(labels.table["query_id"].unique().to_pylist()) & set(workspace.query_ids)
    return labels, [one.run for one in workspace.lists.values()] if shared else []
