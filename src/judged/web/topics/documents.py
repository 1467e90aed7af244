"""The text of one document, bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.web.topics.asked import AskedDocument
    from judged.web.workspace import Workspace


@dataclass(frozen=True)
class DocumentText:
    """What a document says, as plain text."""

    doc_id: str
    title: str
    text: str  # its beginning, or all of it
    characters: int  # how many the whole text has


def document(workspace: Workspace, asked: AskedDocument) -> DocumentText:
    """Give the text of a document that was judged or returned."""
    texts = workspace.texts
    if texts is None:
        fix = "open a collection as well: judged serve --docs FILE"
        raise InputError("no texts of documents are open", fix=fix)
    if asked.id not in texts:
        fix = "texts are kept of documents that were judged or returned; the collection may lack it"
        raise InputError(f"no text of document {asked.id!r} is known", fix=fix)
    text = texts.text(asked.id)
    return DocumentText(asked.id, texts.title(asked.id), text[: asked.length], len(text))
