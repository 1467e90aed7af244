"""What a participant is shown of a list: pages of results, with words of the query marked where the variant says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.data.texts import shortened
from judged.web.judging.tasks import marked

if TYPE_CHECKING:
    from judged.studies.design import Variant
    from judged.studies.lists import Hits, SystemLists


def results(lists: SystemLists, hits: Hits, query: str, variant: Variant, first: int = 1) -> list[dict[str, Any]]:
    """Give a page of results, from a rank on; of the pieces of titles and snippets those at odd places are marked."""
    rows: list[dict[str, Any]] = []
    for rank, (doc_id, score) in enumerate(hits[first - 1 : first - 1 + variant.results], first):
        title, text = (" ".join(part.split()) for part in lists.text(doc_id))
        repeated = text.removeprefix(title).strip() or text
        rows.append(
            {
                "rank": rank,
                "doc_id": doc_id,
                "score": score,
                "title": pieces(title or shortened(text, 80) or doc_id, query, variant),
                "snippet": pieces(_about(repeated, query, variant.snippets), query, variant),
            }
        )
    return rows


def pieces(text: str, query: str, variant: Variant) -> list[str]:
    """Split a text at the words of the query, if they are to be marked."""
    return marked(text, query) if variant.marks else [text]


def _about(text: str, query: str, length: int) -> str:
    """Give a part of a text: its beginning, or, if that has no word of the query, a part with the first of them."""
    if not length or len(text) <= length:
        return text[:length]
    head, *rest = marked(text, query)
    start = 0 if not rest or len(head) < length // 2 else text.rfind(" ", 0, len(head) - length // 4) + 1
    return ("... " if start else "") + shortened(text[start:], length)
