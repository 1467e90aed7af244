"""The metrics of user behavior as a list, and one of them in full."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from judged.online.layout import MARK
from judged.online.metrics import FAMILIES, called, online_metric
from judged.results.escaping import TextTable

if TYPE_CHECKING:
    from judged.online.metrics import OnlineMetric

_WIDTH = 100
_LEAST = 24  # characters beside a name, however narrow the terminal is
_BETTER = {1: "more is better", -1: "less is better", 0: "more is neither better nor worse by itself"}
_KIND = {
    "ratio": "the sum of the numerator over the sum of the denominator",
    "quantile": "a quantile of the numerator, over rows whose denominator is not 0",
    "total": "the sum of the numerator",
    "survival": "a value of the Kaplan-Meier curve",
    "survival mean": "the area below the Kaplan-Meier curve up to a time",
    "survival quantile": "a quantile by the Kaplan-Meier curve",
}


def catalog() -> TextTable:
    """Lay out every metric: what it is, what one row of it is, its unit, and what a log must tell for it."""
    rows: list[tuple[str, ...]] = []
    for family, members in FAMILIES.items():
        rows.append((family, "", "", "", ""))
        rows += [(f"  {_written(one)}", one.title, one.row, one.unit, ", ".join(one.needs)) for one in members]
    return TextTable(("metric", "what", "over", "unit", "needs"), tuple(rows), labels=5)


def text(*, width: int | None = None) -> str:
    """Write the list for a terminal."""
    below = (
        "* depends on rank: shown with CTR by rank beside it. Parameters stand in brackets with their defaults, a"
        " cutoff behind @: SatisfiedClicks(t=20), PageCTR@5. 'judged online list NAME' shows one in full."
    )
    return f"{_fitted(width)}\n\n{textwrap.fill(below, min(width or _WIDTH, _WIDTH))}"


def _fitted(width: int | None) -> str:
    """Draw the table; where it is too wide, what stands right of a metric is wrapped beside its name."""
    table = catalog().text()
    if width is None or max(map(len, table.splitlines())) <= width:
        return table
    names = {one: f"  {_written(one)}" for members in FAMILIES.values() for one in members}
    at = max(map(len, names.values())) + 2
    drawn = ["metric".ljust(at) + "what; over, unit; needs"]
    for family, members in FAMILIES.items():
        drawn.append(family)
        for one in members:
            beside = [one.title, f"{one.row}, {one.unit}; {', '.join(one.needs)}"]
            wrapped = [line for said in beside for line in textwrap.wrap(said, max(width - at, _LEAST))]
            drawn += [f"{'' if row else names[one]:{at}}{line}" for row, line in enumerate(wrapped)]
    return "\n".join(drawn)


def page(name: str | OnlineMetric, *, width: int | None = None) -> str:
    """Write one metric in full, in Markdown that reads well in a terminal.

    Raises
    ------
    MeasureError
        If there is no such metric.
    """
    metric = online_metric(name)
    wide = min(width or _WIDTH, _WIDTH)
    lines = [f"# {metric}", "", f"{metric.title}.", ""]
    for label, value in facts(metric):
        lines.append(textwrap.fill(f"- {label}: {value}", wide, subsequent_indent="  ", break_long_words=False))
    return "\n".join(lines)


def facts(metric: OnlineMetric) -> tuple[tuple[str, str], ...]:
    """Say everything that is written down about a metric, label by label."""
    numerator, denominator = metric.columns()
    parameters = ", ".join(
        f"{name} = {'all' if value is None else f'{value:g}'}" for name, value in metric.parameters.items()
    )
    known = (
        ("also called", ", ".join(called(str(metric)))),
        ("formula", metric.formula),
        ("value", _KIND[metric.kind]),
        ("numerator", f"`{numerator}`"),
        ("denominator", f"`{denominator}`"),
        ("one row", f"a {metric.row}"),
        ("unit", f"{metric.unit}; {_BETTER[metric.better]}"),
        ("parameters", parameters),
        ("window", metric.window),
        ("attribution", metric.attribution),
        ("needs", ", ".join(metric.needs)),
        ("source", metric.source),
        ("misleads", metric.misleads),
        ("position bias", "depends on rank: read it beside CTR by rank" if metric.biased else ""),
    )
    return tuple((label, value) for label, value in known if value)


def _written(metric: OnlineMetric) -> str:
    """Write a name with its parameters, and the mark of those that depend on rank."""
    inside = ",".join(
        f"{name}={value:g}" for name, value in metric.parameters.items() if name != "k" and value is not None
    )
    cutoff = "[@k]" if "k" in metric.parameters else ""
    return f"{metric.name}{f'({inside})' if inside else ''}{cutoff}{f' {MARK}' if metric.biased else ''}"
