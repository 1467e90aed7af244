"""Generate docs/choosing.md from the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabled import markdown_table

from judged.scoring.advice.rules import RULES, SOURCES, TASKS

if TYPE_CHECKING:
    from judged.scoring.advice.rules import Rule

_HEAD = """\
# Choosing measures

Generated from the rules in `src/judged/scoring/advice`. To get advice for your own data, run:

    judged advise QRELS RUN... --task rag

A measure models how the results are used. Select it by your task, then check whether your judgments support it. If
experts disagree about a rule, *Disputed* explains why.

| cutoff | typical use |
|:--|:--|
| 10 | the first results page |
| 100 | the input of a reranker |
| 1000 | the output of a first-stage retriever, or the candidate pool of a language model |

Report a measure of the first page with a measure of deeper ranks, and the share of judged documents. Here, binary
measures count grade 1 and above as relevant. `judged advise` uses the relevance level, the highest grade, and the list
length of your data."""


def page() -> str:
    """Build the page."""
    parts = [
        _HEAD,
        "## Tasks",
        markdown_table(("task", "description"), ((task.name, task.description) for task in TASKS.values())),
        "## Recommended measures by task",
        "Report measures that are joined by + together.",
        _by_task(),
        "## Measures to avoid",
        markdown_table(
            ("measures", "tasks", "condition", "reason", "source"), (_row(rule) for rule in _rules_of_kind("avoid"))
        ),
        "## Notes on interpretation",
        markdown_table(
            ("subject", "tasks", "condition", "note", "source"),
            (_row(rule) for rule in _rules_of_kind("caution", "note")),
        ),
        "## Sources",
        "\n".join(f"- **{key}.** {SOURCES[key]}" for key in sorted(SOURCES, key=str.lower)),
    ]
    return "\n\n".join(parts) + "\n"


def _rules_of_kind(*kinds: str) -> list[Rule]:
    return [rule for rule in RULES if rule.kind in kinds]


def _by_task() -> str:
    """Return one row per task and rule; rules for all tasks are last."""
    rules = _rules_of_kind("recommend", "pair")
    rows = [
        (task, _measures(rule), _condition(rule), _reason(rule), _source(rule))
        for task in TASKS
        for rule in rules
        if task in rule.tasks
    ]
    rows += [
        ("every task", _measures(rule), _condition(rule), _reason(rule), _source(rule))
        for rule in rules
        if not rule.tasks
    ]
    return markdown_table(("task", "measures", "condition", "reason", "source"), rows)


def _row(rule: Rule) -> tuple[str, ...]:
    tasks = ", ".join(rule.tasks) or "every task"
    return (_measures(rule) or rule.id.replace("-", " "), tasks, _condition(rule), _reason(rule), _source(rule))


def _measures(rule: Rule) -> str:
    return (" + " if rule.kind == "pair" else ", ").join(f"`{name}`" for name in rule.measures)


def _condition(rule: Rule) -> str:
    return "; ".join(condition.name for condition in rule.when) or "always"


def _reason(rule: Rule) -> str:
    return f"{rule.rationale} *Disputed:* {rule.disputed}" if rule.disputed else rule.rationale


def _source(rule: Rule) -> str:
    return "; ".join(rule.sources)
