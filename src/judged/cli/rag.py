"""`judged rag`: what systems answered, and where the evidence for it went."""

from __future__ import annotations

import click

from judged.cli.groups import Group

_COMMANDS: tuple[str, ...] = (
    "check",
    "evaluate",
    "waterfall",
    "explain",
    "gate",
    "nuggets",
    "assign",
    "support",
    "correctness",
    "calibrate",
)
"""Each is the `command` of a module `judged.cli.rag_NAME`, imported when it is run."""


@click.group("rag", cls=Group, names=_COMMANDS, short_help="Answers: what they say, cite and rest on.")
def command() -> None:
    """Evaluate generated answers: what they say of what they should, what they cite, and what supports it.

    RESPONSES is a folder or a file of answers, sentences, citations, context, nuggets and verdicts (docs/rag.md).
    """
