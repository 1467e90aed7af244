"""A gate's decision as text for a terminal and as Markdown."""

from __future__ import annotations

import math
import re
import textwrap
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.gating.wording import caption, number, sentence_of, sentences, signed, size
from judged.tables import Cell, Table, markdown_list, markdown_prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.gating.findings import CheckFinding, Decision

_WIDTH = 100  # of sentences, where no width is given
_COLOURS = {"fail": 31, "inconclusive": 33, "pass": 32}
_STATUS = re.compile(r"^(fail|inconclusive|pass)\b", re.MULTILINE | re.IGNORECASE)


def check_table(result: Decision) -> Table:
    """Lay out one row a check: status, measure, slice, n, aggregates, difference, margin, topics that lost much."""
    level = 1 - 2 * result.config.alpha
    difference = f"difference [{level:.0%}]"
    header = ("status", "measure", "slice", "n", "baseline", "candidate", difference, "margin", "large losses")
    return Table(header, tuple(_row(one) for one in result.checks), labels=3)


def _row(one: CheckFinding) -> tuple[str, ...]:
    rest = "" if one.interval is None else f"[{signed(one, one.interval[0], 3)}, {signed(one, one.interval[1], 3)}]"
    lower = " (lower is better)" if one.lower_is_better else ""
    means = ("-" if math.isnan(value) else decimal(value) for value in (one.baseline, one.candidate))
    return (
        one.status,
        one.measure + lower,
        one.check.slice,
        str(one.n),
        *means,
        Cell(signed(one, one.difference), rest=rest),
        size(one, one.margin),
        f"{one.large_losses} ({one.large_losses / one.n:.0%})" if one.n else "-",
    )


def guardrail_table(result: Decision) -> Table:
    """Lay out one row a guardrail."""
    rows = tuple(
        (one.status, one.name, number(one.baseline), number(one.candidate), ", ".join(one.limits))
        for one in result.guardrails
    )
    return Table(("status", "guardrail", "baseline", "candidate", "allowed"), rows, labels=2)


def text(result: Decision, width: int | None, *, colour: bool) -> str:
    """Write the decision, the tables, a sentence for each check, and the rules."""
    first, *others = sentences(result)
    tables = [table.text(width=width) for table in _tables(result)]
    said = "\n".join(_wrapped(f"- {one}", width) for one in others)
    whole = "\n\n".join([_wrapped(first, width), *tables, said, _wrapped(caption(result), width)])
    return _STATUS.sub(_coloured, whole) if colour else whole


def _coloured(found: re.Match[str]) -> str:
    return f"\x1b[1;{_COLOURS[found[0].lower()]}m{found[0]}\x1b[0m"


def markdown(result: Decision) -> str:
    """Write a heading, the tables, what stands in the way, and the rest folded away."""
    first, *others = sentences(result)
    status, _, rest = first.partition(": ")
    heading = f"### judged gate: {status}"
    open_ = [sentence_of(one) for one in result.parts if one.status != "pass"]
    fine = [text for text, one in zip(others, result.parts, strict=True) if one.status == "pass"]
    blocks = [heading, markdown_prose(rest)]
    blocks += [_for_markdown(table).markdown() for table in _tables(result)]
    blocks += [markdown_list(open_)] if open_ else []
    blocks += _folded("What passed", fine) + _folded("Warnings", result.warnings)
    return "\n\n".join([*blocks, f"<sub>{markdown_prose(caption(result))}.</sub>"])


def _tables(result: Decision) -> list[Table]:
    return [table for table in (check_table(result), guardrail_table(result)) if table.rows]


def _for_markdown(table: Table) -> Table:
    """Set off what did not pass."""
    rows = tuple((Cell(row[0], best=row[0] != "pass"), *row[1:]) for row in table.rows)
    return Table(table.header, rows, table.labels)


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>\n\n" + markdown_list(lines) + "\n\n</details>"] if lines else []


def _wrapped(sentence: str, width: int | None) -> str:
    broken = textwrap.wrap(
        sentence,
        min(width or _WIDTH, _WIDTH),
        break_long_words=False,
        break_on_hyphens=False,
        subsequent_indent="  " if sentence.startswith("- ") else "",
    )
    return "\n".join(broken)
