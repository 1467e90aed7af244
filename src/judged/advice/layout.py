"""The forms in which advice is shown: for a terminal, as Markdown, and as plain values."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judged.advice.sources import SOURCES
from judged.tables import Markdown, Table, markdown_list, markdown_prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.advice.recommendations import Recommendation, Recommendations

_PARTS = (
    ("Report", ("recommend", "pair")),
    ("Avoid here", ("avoid",)),
    ("Know when reading", ("note",)),
)
_LEAST = 40  # columns: below that, text is not folded further


def text(advice: Recommendations, width: int) -> str:
    """Lay advice out for a terminal of this width."""
    width = max(width, _LEAST)
    blocks = [_folded(_task(advice), width, "")]
    for title, kinds in _PARTS:
        entries = [entry for entry in advice.entries if entry.kind in kinds]
        if entries:
            blocks.append("\n\n".join([title, *(_entry(entry, width) for entry in entries)]))
    facts = [_folded(line, width, "  ") for line in _facts(advice)]
    blocks.append("\n".join(["It rests on these facts", "", *facts]))
    blocks.append(f"Next\n\n  {advice.command}")
    return "\n\n".join(blocks)


def markdown(advice: Recommendations) -> str:
    """Lay advice out as Markdown."""
    blocks = ["# Advice", markdown_prose(_task(advice))]
    for title, kinds in _PARTS:
        entries = [entry for entry in advice.entries if entry.kind in kinds]
        if entries:
            rows = tuple(
                (Markdown(_named(entry, code=True)), Markdown(markdown_prose(_reason(entry))), "; ".join(entry.sources))
                for entry in entries
            )
            blocks += [f"## {title}", Table(("measures", "why", "source"), rows, labels=3).markdown()]
    blocks += ["## It rests on these facts", markdown_list(_facts(advice))]
    blocks += ["## Next", f"```console\n$ {advice.command}\n```"]
    cited = sorted({source for entry in advice.entries for source in entry.sources}, key=str.lower)
    blocks += ["## Sources", "\n".join(f"- {source}: {SOURCES[source]}" for source in cited)]
    return "\n\n".join(blocks)


def plain(advice: Recommendations) -> dict[str, Any]:
    """Lay advice out as plain values."""
    import judged

    return {
        "judged": judged.__version__,
        "task": {"name": advice.task.name, "what": advice.task.what, "given": advice.given},
        "others": [{"name": task.name, "what": task.what} for task in advice.others],
        "measures": [str(one) for one in advice.measures],
        "avoid": [str(one) for one in advice.avoid],
        "entries": [
            asdict(entry) | {"measures": [str(one) for one in entry.measures], "sources": _cited(entry)}
            for entry in advice.entries
        ],
        "profile": asdict(advice.profile),
        "command": advice.command,
    }


def _cited(entry: Recommendation) -> dict[str, str]:
    return {source: SOURCES[source] for source in entry.sources}


def _task(advice: Recommendations) -> str:
    """Say what the advice is for, why that, and what else it could be for."""
    task, others = advice.task, "; ".join(f"{task.name} ({task.what})" for task in advice.others)
    if advice.given:
        return f"For the task {task.name}: {task.what}."
    because = " and ".join(condition.name for condition in task.allowed or ()) or "nothing in them speaks for another"
    return (
        f"For the task {task.name}: {task.what}. No task was given; this one is taken from the data, as {because}."
        f" The data cannot say what the system is for. It could be, with --task: {others}."
    )


def _entry(entry: Recommendation, width: int) -> str:
    head = _named(entry, code=False)
    reason = _folded(f"{_reason(entry)} [{entry.rule}: {'; '.join(entry.sources)}]", width, "    ")
    return f"  {head}\n{reason}" if head else reason


def _named(entry: Recommendation, *, code: bool) -> str:
    """Name the measures; those that belong together with a plus between them."""
    between = " + " if entry.kind == "pair" else ", "
    return between.join(f"`{one}`" if code else str(one) for one in entry.measures)


def _reason(entry: Recommendation) -> str:
    return f"{entry.reason} Disputed: {entry.disputed}" if entry.disputed else entry.reason


def _facts(advice: Recommendations) -> list[str]:
    """List each fact once, with the rules that rest on it; then the rules that rest on the task alone."""
    rules: dict[str, list[str]] = {}
    for entry in advice.entries:
        for fact in entry.facts:
            rules.setdefault(fact, []).append(entry.rule)
    alone = [entry.rule for entry in advice.entries if not entry.facts]
    lines = [f"{fact} ({', '.join(names)})" for fact, names in rules.items()]
    return [*lines, *([f"the task alone ({', '.join(alone)})"] if alone else [])]


def _folded(paragraph: str, width: int, indent: str) -> str:
    words: Sequence[str] = textwrap.wrap(
        paragraph, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(words)
