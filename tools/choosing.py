"""Generate docs/choosing.md from the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabled import markdown_table

from judged.scoring.advice.rules import RULES, SOURCES, TASKS

if TYPE_CHECKING:
    from judged.scoring.advice.rules import Rule

_HEAD = """\
# Choosing measures

Generated from the rules in `src/judged/scoring/advice`. To get advice on your own data, with your numbers in the
sentences:

    judged advise QRELS RUN... --task rag

A measure is a model of what the result is for. So begin with the task, then look at what the judgments allow. Where
experts disagree, the rule says so under *disputed*.

| cutoff | stands for |
|:--|:--|
| 10 | what people see: the first page |
| 100 | what a reranker is given |
| 1000 | what a first stage passes on, or the pool from which a language model is fed |

Report a measure of the first page together with one of what lies beyond it and, beside the means, the share of
documents that were judged at all. Binary measures count grade 1 and above as relevant here; `judged advise` fills in
the level and the highest grade of your scale, and the length of your lists."""


def page() -> str:
    """Build the page."""
    parts = [
        _HEAD,
        "## Tasks",
        markdown_table(("task", "take it when"), ((task.name, task.description) for task in TASKS.values())),
        "## Task, measures, why",
        "Report measures joined by + side by side.",
        _by_task(),
        "## What to avoid, and when",
        markdown_table(("measures", "tasks", "when", "why", "source"), (_row(rule) for rule in _of("avoid"))),
        "## What to know when reading the numbers",
        markdown_table(("about", "tasks", "when", "what", "source"), (_row(rule) for rule in _of("caution", "note"))),
        "## Sources",
        "\n".join(f"- **{key}.** {SOURCES[key]}" for key in sorted(SOURCES, key=str.lower)),
    ]
    return "\n\n".join(parts) + "\n"


def _of(*kinds: str) -> list[Rule]:
    return [rule for rule in RULES if rule.kind in kinds]


def _by_task() -> str:
    """Return one row per task and rule; rules for all tasks are last."""
    rules = _of("recommend", "pair")
    rows = [
        (task, _measures(rule), _when(rule), _why(rule), _source(rule))
        for task in TASKS
        for rule in rules
        if task in rule.tasks
    ]
    rows += [
        ("every task", _measures(rule), _when(rule), _why(rule), _source(rule)) for rule in rules if not rule.tasks
    ]
    return markdown_table(("task", "measures", "when", "why", "source"), rows)


def _row(rule: Rule) -> tuple[str, ...]:
    tasks = ", ".join(rule.tasks) or "every task"
    return (_measures(rule) or rule.id.replace("-", " "), tasks, _when(rule), _why(rule), _source(rule))


def _measures(rule: Rule) -> str:
    return (" + " if rule.kind == "pair" else ", ").join(f"`{name}`" for name in rule.measures)


def _when(rule: Rule) -> str:
    return "; ".join(condition.name for condition in rule.when) or "always"


def _why(rule: Rule) -> str:
    return f"{rule.rationale} *Disputed:* {rule.disputed}" if rule.disputed else rule.rationale


def _source(rule: Rule) -> str:
    return "; ".join(rule.sources)
