"""What to look at next: findings of the answers that exist already, each with the page that shows it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judged.answer import counted
from judged.decimals import decimal, p_text, percent
from judged.errors import JudgedError
from judged.web.links import link
from judged.web.slices.answer import AskedSlices, slices
from judged.web.workspace import MEASURE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.web.workspace import Workspace

LOW = 0.9
"""A smaller share of judged documents is worth a look."""
DEPTH, HALF = 100, 0.5


Finding: TypeAlias = "tuple[str, str]"
"""One finding, and the address where it is seen."""


def findings(workspace: Workspace, most: int = 3) -> tuple[Finding, ...]:
    """Give the first findings: what the data lack, then where the best run is weak."""
    found: list[Finding] = []
    for look in (_lacking, _weak_slice, _losses, _not_found):
        try:
            found += look(workspace) if len(found) < most and workspace.lists else ()
        except JudgedError:  # a run without scores, or topics that cannot be sliced: nothing is found there
            continue
    return tuple(found)


def _lacking(workspace: Workspace) -> Iterator[Finding]:
    lacking = {name: int((~judged.present).sum()) for name, judged in workspace.lists.items()}
    if some := [name for name, topics in lacking.items() if topics]:
        worst = max(some, key=lacking.__getitem__)
        more = f", and {counted(len(some) - 1, 'other run')} also lack some" if len(some) > 1 else ""
        said = f"{worst} returned nothing for {counted(lacking[worst], 'topic')}: 0 counts there{more}."
        yield (said, link("/topics", {}, runs=[worst], sort=f"run:{worst}"))
        return
    share = {row.run: row.value for row in workspace.scores("Judged@10").estimates(ci="none")}
    worst = min(share, key=share.__getitem__)
    if share[worst] < LOW:
        said = f"Of the first 10 documents of {worst}, {percent(share[worst])} are judged: the others count as bad."
        yield (said, link("/leaderboard", {}, sort="judged"))


def _weak_slice(workspace: Workspace) -> Iterator[Finding]:
    best = workspace.ranked()[0]
    page = slices(workspace, AskedSlices.model_validate({"run": best, "measures": MEASURE}))
    found = page.scores.findings if page.scores else ()
    row = min((row for row in found if row.better is False), key=attrgetter("value"), default=None)
    if row is not None and row.rest is not None:
        gap = f"{decimal(row.rest.difference, 3, '+')} against the other topics, p {p_text(row.adjusted, 0.05)}."
        said = f"{best} is weak on {counted(row.n, 'topic')}, {row.part}: {MEASURE} {decimal(row.value, 3)}, {gap}"
        yield (said, link("/slices", {}, run=best, by=page.asked.by))


def _losses(workspace: Workspace) -> Iterator[Finding]:
    best, other = workspace.ranked()[:2] if len(workspace.lists) > 1 else ("", "")
    if best:
        values = workspace.scores(MEASURE, (best, other)).values[:, 0]
        lost, topics = int((values[0] < values[1]).sum()), counted(values.shape[1], "topic")
        if not lost or np.nanmean(values[0]) <= np.nanmean(values[1]):
            return
        said = f"{best} is ahead on average, but {other} is better on {lost:,} of {topics}."
        yield (said, link("/compare", {}, baseline=other, run=best, outcome="losses"))


def _not_found(workspace: Workspace) -> Iterator[Finding]:
    best, x = workspace.ranked()[0], f"R@{DEPTH}"
    few = int(np.nansum(workspace.scores(x, (best,)).values[0, 0] < HALF))
    if few:
        said = f"On {counted(few, 'topic')}, {best} finds less than half of what is relevant in its first {DEPTH}."
        yield (said, link("/matrix", {}, run=best, x=x, cuts=f"{HALF},{HALF}"))
