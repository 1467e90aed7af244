"""Web pages about clicks and users, and their JSON equivalents."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.interface.pages.answer_pages import NotOpenError, answer_page, replace_blocks, with_links
from judged.interface.pages.filters import query_string
from judged.interface.pages.pagination import Trimmed, shades_of
from judged.interface.pages.problems import Parameters, text_field
from judged.interface.pages.workspace import CurrentWorkspace, Workspace, cached_in_workspace
from judged.online import clicks
from judged.results import Answer, Column, Sentences, Table

if TYPE_CHECKING:
    from judged.online.ab_tests.abtest import ABTest
    from judged.online.log import InteractionLog
    from judged.online.user_metrics import UserMetrics
    from judged.online.watch import Watch


router = APIRouter(tags=["clicks"])
_TABS = {"/clicks": "Click models", "/clicks/ranks": "Position bias", "/clicks/people": "Clicks and judgments"}


def files_of_log(workspace: Workspace, *_: Any) -> dict[str, Any]:
    """Return the file names of the open log."""
    return {"names": [Path(path).name for path in workspace.parts.get("log", ())]}


_page = partial(answer_page, router, "of_log.html", page_values=files_of_log, label="Clicks", tabs=_TABS)


@_page("/clicks", "Clicks", "Which click model fits best")
@cached_in_workspace
def models_of_clicks(workspace: CurrentWorkspace) -> Answer:
    """Compare click models on held-out users."""
    return clicks.compare_models(log_of(workspace))


@_page("/clicks/ranks", _TABS["/clicks/ranks"], "How often users examine each rank")
@cached_in_workspace
def looks_at_ranks(workspace: CurrentWorkspace) -> Answer:
    """Estimate position bias from documents shown at several ranks."""
    return clicks.propensities(log_of(workspace))


@_page("/clicks/people", _TABS["/clicks/people"], "Agreement of clicks and judgments")
@cached_in_workspace
def clicks_against_people(workspace: CurrentWorkspace) -> Answer:
    """Compare judgments derived from clicks with the loaded judgments."""
    runs = [judged.run for judged in workspace.lists.values()]
    return clicks.against_people(clicks.judge_clicks(log_of(workspace)), workspace.qrels, runs)


def log_of(workspace: Workspace) -> InteractionLog:
    """Read the open log. Each request reads it again, because a DuckDB connection serves one thread."""
    from judged.online import read_log

    if "log" not in workspace.parts:
        raise NotOpenError("no log is open", "judged serve QRELS RUN --log LOG")
    return read_log(workspace.parts["log"])


users_router, test_router, watch_router = (APIRouter(tags=["users"]) for _ in range(3))


class MetricsQuery(Parameters):
    """Query parameters of the metrics."""

    measure: Trimmed = text_field("Metric of the headline and the charts. Default: PageCTR.", limit=300)
    by: Trimmed = text_field("Slicing attribute. Default: no slices.", limit=300)


def _shaded_blocks(workspace: Workspace, query: MetricsQuery, answer: UserMetrics | None) -> dict[str, Any]:
    """Link the metrics to their charts, and shade the metrics of slices."""
    if answer is None:
        return files_of_log(workspace)
    directions = {str(metric): metric.better for metric in answer.scores.metrics}

    def shaded(column: Column) -> Column:
        if not (better := directions.get(column.name, 0)):
            return column
        # The first row is over all slices.
        return replace(column, kinds=["", *shades_of(column.values[1:], lower_is_better=better < 0)])

    changes = {
        "overview": lambda table: with_links(table, "metric", lambda row: query_string(query, measure=row["metric"])),
        "by_slice": lambda table: replace(table, columns=tuple(map(shaded, table.columns))),
    }
    return {**files_of_log(workspace), "block_changes": changes}


@answer_page(users_router, "users.html", "/users", "Metrics", "Metrics of users", _shaded_blocks)
@cached_in_workspace
def metrics_of_users(workspace: CurrentWorkspace, query: Annotated[MetricsQuery, Query()]) -> UserMetrics:
    """Compute the main metrics of the open log: overall, by day, by rank, and by slice."""
    from judged.online.user_metrics import user_metrics

    return user_metrics(log_of(workspace), query.measure or None, by=query.by or None)


def _test_blocks(workspace: Workspace, _: Any, answer: ABTest | None) -> dict[str, Any]:
    """Show one value per cell of the differences; their note is part of the details."""
    if answer is None:
        return files_of_log(workspace)

    def main_columns(table: Table) -> Table:
        table = table.showing("metric", "arm", "role", "baseline", "value", "difference", "relative", "p")
        return replace(table, note="")

    sentences, *blocks = answer.blocks()
    details = (sentences, Sentences((answer.table("differences").note,)))
    shown = tuple(replace_blocks(blocks, {"differences": main_columns}))
    return {**files_of_log(workspace), "blocks": shown, "details_blocks": details}


@answer_page(test_router, "of_log.html", "/users/test", "A/B test", "Results of the A/B test", _test_blocks)
@cached_in_workspace
def ab_test(workspace: CurrentWorkspace) -> ABTest:
    """Analyze the A/B test in the open log."""
    from judged.online import abtest

    return abtest(log_of(workspace))


def _watch_file_name(workspace: Workspace, *_: Any) -> dict[str, Any]:
    return {"names": [Path(workspace.parts["watch"]).name]}


@answer_page(watch_router, "of_log.html", "/users/watch", "Monitoring", "Changes in production", _watch_file_name)
@cached_in_workspace
def watched(workspace: CurrentWorkspace) -> Watch:
    """Compare the time series of the open 'judged watch' configuration with the baseline of each series."""
    from judged.online.watch import watch

    if "watch" not in workspace.parts:
        raise NotOpenError("no configuration of 'judged watch' is open", "judged serve QRELS RUN --watch CONFIG")
    return watch(workspace.parts["watch"], keep=False)  # read-only: does not update the state of the watch
