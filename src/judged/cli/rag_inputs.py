"""What the commands of `judged rag` read: answers of one system or several, named on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.cli import inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.rag import Responses

QRELS = "Judgments of documents.  [default: documents that hold a nugget, by the table evidence]"


def responses_at(texts: Sequence[str]) -> Responses:
    """Give the answers of PATH and NAME=PATH together; NAME is a system in it, or how its only one is called."""
    from judged.rag import Responses

    parts: list[Responses] = []
    for text in texts:
        name, path = inputs.named(text)
        made = Responses.of(path)
        parts.append(made.called(name) if name else made)
    return Responses.of(parts)
