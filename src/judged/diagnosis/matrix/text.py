"""A performance matrix as a text, for a terminal or in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.comparison.forms import wrapped
from judged.diagnosis.matrix.layout import changes_table, points_table, summary_table, topics_table
from judged.diagnosis.matrix.sentences import caption, changes_caption, sentences, summary_caption
from judged.tables import markdown_list, markdown_prose

if TYPE_CHECKING:
    from judged.diagnosis.matrix.two_measures import TwoMeasures
    from judged.tables import Table


def text(found: TwoMeasures, width: int | None, *, topics: bool, per_run: bool) -> str:
    """Write tables, rules and sentences; of many runs a summary, unless all of them are asked for."""
    parts = _parts(found, topics=topics, per_run=per_run)
    blocks = [wrapped(part, width) if isinstance(part, str) else part.text(width=width) for part in parts]
    said = sentences(found, full=per_run or not found.many)
    return "\n\n".join([*blocks, "\n".join(wrapped(one, width) for one in said)])


def markdown(found: TwoMeasures, *, topics: bool, per_run: bool) -> str:
    """Write the same in Markdown."""
    parts = _parts(found, topics=topics, per_run=per_run)
    blocks = [markdown_prose(f"{part}.") if isinstance(part, str) else part.markdown() for part in parts]
    said = sentences(found, full=per_run or not found.many)
    return "\n\n".join([*blocks, markdown_list(said)])


def _parts(found: TwoMeasures, *, topics: bool, per_run: bool) -> list[Table | str]:
    """Give the tables, and what stands below each."""
    if found.many and not per_run:
        parts: list[Table | str] = [summary_table(found), summary_caption(found)]
    else:
        parts = [points_table(found), caption(found)]
        parts += [changes_table(found), changes_caption(found)] if found.changes else []
    return [*parts, *([topics_table(found, None)] if topics else [])]
