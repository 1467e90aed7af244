"""A small collection with a report on it: 24 topics, three runs, two kinds of topics, awkward texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from judged.reports import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.reports import Report

EVIL = "</script><script>alert(1)</script>\u2028<img src=x onerror=alert(2)> & \"quoted\" 'single' `tick` |pipe| *star*"
"""What would run, break out of a script or a table, or become markup if it were not escaped."""


def ids() -> list[str]:
    return [f"q{i:02}" for i in range(24)]


@pytest.fixture(scope="session")
def report_input() -> dict[str, Any]:
    """Return all inputs of a report: ``old`` has the best document at ranks 1 to 6, the third at 1 or missing."""
    qrels = {q: {"good": 2, "fair": 1, "bad": 0} for q in ids()}
    old: dict[str, list[str]] = {}
    new: dict[str, list[str]] = {}
    for i, q in enumerate(ids()):
        filler = [f"x{rank}" for rank in range(i % 6)]
        old[q] = [*filler, "good", "bad", "fair"]
        new[q] = ["good", "fair", "bad"] if i % 4 else ["bad", "y1", "y2"]
    names = {"old": old, "<i>third</i>": new, "other": {q: ["bad", "good"] for q in ids()}}
    return {
        "qrels": qrels,
        "runs": names,
        "queries": {q: f"query {q} {EVIL}" if q == "q00" else f"query {q}" for q in ids()},
        "attributes": {q: {"kind": "even" if i % 2 == 0 else "odd <b>"} for i, q in enumerate(ids())},
        "texts": {"good": EVIL, "fair": "a fair text", "bad": "a bad text"},
    }


@pytest.fixture(scope="session")
def make(report_input: dict[str, Any]) -> Callable[..., Report]:
    """Return a function that reports on the collection. Options replace inputs, and None removes an input."""

    def make_report(**changes: Any) -> Report:
        options = {name: value for name, value in (report_input | changes).items() if value is not None}
        return report(options.pop("qrels"), options.pop("runs"), **options)

    return make_report


@pytest.fixture(scope="session")
def sample_report(make: Callable[..., Report]) -> Report:
    return make(baseline="old", title=f"Title {EVIL}", command="judged report qrels.txt 'a b.run'")


@pytest.fixture(scope="session")
def page(sample_report: Report) -> str:
    return sample_report.html()


@pytest.fixture(scope="session")
def evil() -> str:
    return EVIL
