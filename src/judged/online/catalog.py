"""The catalog of metrics of user behavior as a list, and the full definition of a metric."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import TYPE_CHECKING

from judged.online.layout import MARK, RANK_NOTE
from judged.online.metrics import FAMILIES, online_metric, synonyms_of
from judged.results.escaping import TextTable

if TYPE_CHECKING:
    from judged.online.metrics import OnlineMetric

_WIDTH = 100
_MIN_WIDTH = 24  # characters for the column next to the names
_BETTER = {1: "higher is better", -1: "lower is better", 0: "neither higher nor lower is always better"}
_AGGREGATION = {
    "ratio": "the sum of the numerator over the sum of the denominator",
    "quantile": "a quantile of the numerator, over rows whose denominator is not 0",
    "total": "the sum of the numerator",
    "survival": "a value of the Kaplan-Meier curve",
    "survival mean": "the area below the Kaplan-Meier curve up to a time",
    "survival quantile": "a quantile of the Kaplan-Meier curve",
}


def catalog() -> TextTable:
    """Build the list of all metrics with description, row, unit, and required data."""
    rows: list[tuple[str, ...]] = []
    for family, members in FAMILIES.items():
        rows.append((family, "", "", "", ""))
        rows += [(f"  {_label(row)}", row.title, row.row, row.unit, ", ".join(row.needs)) for row in members]
    return TextTable(("metric", "description", "row", "unit", "data"), tuple(rows), labels=5)


def text(*, width: int | None = None) -> str:
    """Format the list for a terminal."""
    legend = (
        "* The metric depends on rank: read it together with CTR by rank. Parameters and their defaults are in"
        " parentheses; a cutoff follows @: SatisfiedClicks(t=20), PageCTR@5. 'judged online list NAME' shows the full"
        " definition."
    )
    return f"{_fit_width(width)}\n\n{textwrap.fill(legend, min(width or _WIDTH, _WIDTH))}"


def _fit_width(width: int | None) -> str:
    """Format the table. If it is too wide, wrap the text next to the names."""
    table = catalog().text()
    if width is None or max(map(len, table.splitlines())) <= width:
        return table
    # The column of names is as wide as the longest name.
    labels = {metric: f"  {_label(metric)}" for members in FAMILIES.values() for metric in members}
    indent = max(map(len, labels.values())) + 2
    lines = ["metric".ljust(indent) + "description; row, unit; data"]
    for family, members in FAMILIES.items():
        lines.append(family)
        for metric in members:
            texts = [metric.title, f"{metric.row}, {metric.unit}; {', '.join(metric.needs)}"]
            wrapped = [line for text in texts for line in _wrap(text, max(width - indent, _MIN_WIDTH))]
            lines += [f"{'' if i else labels[metric]:{indent}}{line}" for i, line in enumerate(wrapped)]
    return "\n".join(lines)


_wrap = partial(textwrap.wrap, break_on_hyphens=False)


def page(name: str | OnlineMetric, *, width: int | None = None) -> str:
    """Format the full definition of a metric in Markdown that is readable in a terminal.

    Raises
    ------
    MeasureError
        If the metric is unknown.
    """
    metric = online_metric(name)
    max_width = min(width or _WIDTH, _WIDTH)
    lines = [f"# {metric}", "", f"{metric.title}.", ""]
    for label, value in facts(metric):
        lines.append(
            textwrap.fill(
                f"- {label}: {value}", max_width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        )
    return "\n".join(lines)


def facts(metric: OnlineMetric) -> tuple[tuple[str, str], ...]:
    """Return all facts about a metric with their labels."""
    numerator, denominator = metric.columns()
    parameters = ", ".join(
        f"{name} = {('all' if name == 'k' else 'not set') if value is None else f'{value:g}'}"
        for name, value in metric.parameters.items()
    )
    labeled_facts = (
        ("synonyms", ", ".join(synonyms_of(str(metric)))),
        ("formula", metric.formula),
        ("value", _AGGREGATION[metric.kind]),
        ("numerator", f"`{numerator}`"),
        ("denominator", f"`{denominator}`"),
        ("row", metric.row),
        ("unit", f"{metric.unit}; {_BETTER[metric.better]}"),
        ("parameters", parameters),
        ("window", metric.window),
        ("attribution", metric.attribution),
        ("needs", ", ".join(metric.needs)),
        ("source", metric.source),
        ("caveats", metric.misleads),
        ("position bias", RANK_NOTE if metric.biased else ""),
    )
    return tuple((label, value) for label, value in labeled_facts if value)


def _label(metric: OnlineMetric) -> str:
    """Format a name with its parameters, and the mark of metrics that depend on rank."""
    parameters = ",".join(
        f"{name}={value:g}" for name, value in metric.parameters.items() if name != "k" and value is not None
    )
    cutoff = "[@k]" if "k" in metric.parameters else ""
    return f"{metric.name}{f'({parameters})' if parameters else ''}{cutoff}{f' {MARK}' if metric.biased else ''}"
