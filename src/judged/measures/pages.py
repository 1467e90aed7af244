"""The catalogue and the page of each measure, made from the definitions: for terminal and documentation."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from judged.measures.base import Entry
from judged.measures.grammar import find
from judged.measures.parameters import Parameter, spell
from judged.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable


def catalogue() -> str:
    """List all measures, family by family: how each is written, and what it is.

    >>> print(*[line for line in catalogue().splitlines() if line.startswith("  P@k")])
      P@k                                 Precision at k: the share of the first k places that hold a relevant document.
    """
    families: dict[str, list[Entry]] = {}
    for entry in REGISTRY.values():
        families.setdefault(entry.family, []).append(entry)
    order = sorted(families, key=_FAMILIES.index)
    width = max(len(written(entry)) for entry in REGISTRY.values())
    lines: list[str] = []
    for family in order:
        lines += ["", family] if lines else [family]
        lines += [f"  {written(entry):{width}}  {summary(entry)}" for entry in families[family]]
    return "\n".join([*lines, "", "'judged measures NAME' shows one with its formula, parameters and pitfalls."])


_FAMILIES = [
    "set at a cutoff",
    "set",
    "ranked, binary",
    "graded",
    "user model",
    "incomplete judgments",
    "diversity",
    "preferences and assessors",
    "facts about documents",
    "count",
]


def page(name: str) -> str:
    """Write the page of one measure as Markdown that also reads well as it stands.

    Raises
    ------
    MeasureError
        If there is no such measure.
    """
    entry = find(name)[0]
    definition, examples = _docstring(entry)
    parts = [
        f"# {written(entry)}",
        definition,
        "## Parameters\n\n" + _parameters(entry) if entry.all_parameters else "It has no parameters.",
        f"## When to use it\n\n{entry.use}",
        f"## When it misleads\n\n{entry.misleads}",
        f"## Properties\n\n{_properties(entry)}",
        "## Other names\n\n" + _names(entry),
        f"## Examples\n\n```python\n{examples}\n```",
        f"Source: {entry.cite}.",
    ]
    return "\n\n".join(parts)


def written(entry: Entry) -> str:
    """Show how the measure is written: ``P@k``, ``AP`` or ``AP@k``."""
    needed = [parameter.name for parameter in entry.parameters if parameter.required]
    name = entry.name + (f"({','.join(f'{name}=...' for name in needed)})" if needed else "")
    if entry.cutoff is None:
        return name
    at = f"{name}@{'k' if entry.at == 'cutoff' else entry.at}"
    return at if entry.cutoff.required else f"{name}, {at}"


def summary(entry: Entry) -> str:
    """Give the first sentence of the definition."""
    return (inspect.getdoc(entry.cls) or "").splitlines()[0]


def _docstring(entry: Entry) -> tuple[str, str]:
    text = inspect.getdoc(entry.cls) or ""
    definition, _, examples = text.partition("Examples\n--------\n")
    return _with_formula(definition.strip()), examples.strip()


def _with_formula(definition: str) -> str:
    """Turn the reStructuredText formula of a docstring into one that Markdown shows."""
    lines: list[str] = []
    inside = False
    for line in definition.splitlines():
        if line.startswith(".. math::"):
            lines.append("$$ " + line.removeprefix(".. math::").strip())
            inside = True
        elif inside and line.startswith(" "):
            lines.append("   " + line.strip())
        elif inside and not line.strip():
            lines[-1] += " $$"
            lines.append("")
            inside = False
        else:
            lines.append(line)
    return "\n".join(lines) + (" $$" if inside else "")


def _parameters(entry: Entry) -> str:
    return _list(f"`{p.name}` ({p.values}; {_default(p)}): {p.meaning}" for p in entry.all_parameters)


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "must be given"
    return "default none" if parameter.default is None else f"default {spell(parameter.default)}"


def _properties(entry: Entry) -> str:
    known = entry.properties
    low = "-inf" if known.low is None else f"{known.low:g}"
    high = "inf" if known.high is None else f"{known.high:g}"
    better = {True: "higher is better", False: "lower is better", None: "neither high nor low is better"}
    facts = [
        f"range {low} to {high}",
        "grades count" if known.graded else "relevant or not: grades count only through rel",
        "needs a ranking" if known.needs_ranking else "needs no ranking: a set will do",
        "unjudged documents at the end change nothing" if known.ignores_unjudged_tail else
        "unjudged documents at the end change it",
        better[known.higher_is_better],
        f"over topics: {entry.aggregate}",
    ]  # fmt: skip
    return _list(facts)


def _names(entry: Entry) -> str:
    aliases = [f"`{alias}`" + _meaning(values) for alias, values in entry.aliases.items()]
    tools = [f"{tool}: `{name}`" for tool, name in entry.tools.items()]
    understood = [f"understood here: {', '.join(aliases)}"] if aliases else []
    return _list([*understood, *tools]) or "None."


def _meaning(values: object) -> str:
    return (
        f" (means {', '.join(f'{k}={spell(v)}' for k, v in values.items())})"
        if isinstance(values, dict) and values
        else ""
    )


def _list(facts: Iterable[str]) -> str:
    return "\n".join(f"- {fact}" for fact in facts)
