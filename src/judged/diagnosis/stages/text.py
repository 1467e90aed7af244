"""A diagnosis by stages as a text, for a terminal or in Markdown; and one topic of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.comparison.forms import wrapped
from judged.diagnosis.stages.layout import changes_table, documents_table, parts_table, topics_table, verdicts_table
from judged.diagnosis.stages.sentences import caption, changes_caption, sentences, topic_sentences
from judged.tables import markdown_list, markdown_prose

if TYPE_CHECKING:
    from judged.diagnosis.stages.split import SplitLoss


def text(found: SplitLoss, width: int | None, *, topics: bool) -> str:
    """Write tables, rules and sentences."""
    blocks = [parts_table(found).text(width=width), verdicts_table(found).text(width=width)]
    blocks.append(wrapped(caption(found), width))
    if found.against is not None:
        blocks += [changes_table(found).text(width=width), wrapped(changes_caption(found), width)]
    if topics:
        blocks.append(topics_table(found, None).text(width=width))
    return "\n\n".join([*blocks, "\n".join(wrapped(one, width) for one in sentences(found))])


def markdown(found: SplitLoss, *, topics: bool) -> str:
    """Write the same in Markdown."""
    blocks = [parts_table(found).markdown(), verdicts_table(found).markdown(), markdown_prose(caption(found) + ".")]
    if found.against is not None:
        blocks += [changes_table(found).markdown(), markdown_prose(changes_caption(found) + ".")]
    if topics:
        blocks.append(topics_table(found, None).markdown())
    return "\n\n".join([*blocks, markdown_list(sentences(found))])


def topic_text(found: SplitLoss, query_id: str, width: int | None, *, query: str, markdown: bool) -> str:
    """Write one topic: what was scored, what was lost by which part, and where each document was lost."""
    table = documents_table(found, query_id)
    said = [f"{query_id}: {query}" if query else query_id, *topic_sentences(found, query_id)]
    if not table.rows:
        what = "No relevant document is known." if _barren(found, query_id) else "No relevant document was lost."
        said.append(what)
    words = "\n".join(wrapped(markdown_prose(one) if markdown else one, width) for one in said)
    drawn = table.markdown() if markdown else table.text(width=width)
    return f"{words}\n\n{drawn}" if table.rows else words


def _barren(found: SplitLoss, query_id: str) -> bool:
    return not found.trace.relevant[found.query_ids.index(query_id)]
