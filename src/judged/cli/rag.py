"""`judged rag`: what systems answered, and where the evidence for it went."""

from __future__ import annotations

import click

from judged.cli.groups import Group

_FILLING = ("nuggets", "assign", "support", "correctness")
_COMMANDS = ("check", "evaluate", "waterfall", "explain", "gate", *_FILLING, "calibrate")


@click.group(
    "rag",
    cls=Group,
    names=_COMMANDS,
    together=dict.fromkeys(_FILLING, "filling"),
    short_help="Answers: what they say, cite and rest on.",
)
def command() -> None:
    """Evaluate generated answers: what they say of what they should, what they cite, and what supports it.

    RESPONSES are folders or files of answers, sentences, citations, context, nuggets and verdicts (docs/rag.md). Files
    go together; folders hold systems beside each other. NAME=PATH takes the system NAME, or calls the only one so.
    """
