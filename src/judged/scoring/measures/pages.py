"""The catalog of measures and the page of each measure, for the terminal and the documentation."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from typing import TYPE_CHECKING, Any

from judged.scoring.measures.base import Entry
from judged.scoring.measures.grammar import find_entry
from judged.scoring.measures.parameters import Parameter, format_value
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


FAMILIES = {
    "set at a cutoff": "The share of the first k documents that are relevant. The order within the first k is ignored.",
    "set": "All returned documents count, and their order is ignored. Use these measures for Boolean searches and"
    " filters.",
    "ranked, binary": "A document is relevant or not, and the ranks of the relevant documents matter.",
    "graded": "Documents are relevant to different degrees, and the best should be ranked first.",
    "user model": "A user reads from the top and stops at some rank. The score depends on the gains of"
    " the documents read.",
    "incomplete judgments": "Not every document is judged. These measures estimate the score under"
    " complete judgments, or show how uncertain a score is.",
    "diversity": "A query has several meanings, and the page should cover all of them. The qrels must have subtopics.",
    "preferences and assessors": "Users stated which of two documents is better, or several assessors judged the"
    " same topic.",
    "facts about documents": "These measures also use facts about documents, such as their length or their group.",
    "answers": "These measures evaluate answers, citations, and contexts, with a verdict on each nugget, sentence, or"
    " citation. `judged rag evaluate` computes these measures. The score excludes missing verdicts, but the score"
    " bounds include every possible value of the missing verdicts.",
    "agent searches": "An agent searches several times for one question. These measures evaluate what all searches of"
    " a trial returned. `judged trajectories evaluate` computes them, and averages the trials of a question.",
    "agent trials": "An agent answers a question several times. These measures evaluate right answers, stated"
    " confidence, and effort. `judged trajectories evaluate` computes them.",
    "count": "Counts of topics and documents, which show how much data the means are based on.",
}
"""Description of each family of measures, in the order of the catalog."""


def catalog() -> str:
    """List all measures by family: the usage and the summary of each.

    >>> print(*[line for line in catalog().splitlines() if line.startswith("  P@k")])
      P@k                                 Precision at k: the share of the first k ranks that have a relevant document.
    """
    width = max(len(usage(entry)) for entry in REGISTRY.values())
    lines: list[str] = []
    for family, entries in families().items():
        lines += ["", family] if lines else [family]
        lines += [f"  {usage(entry):{width}}  {summary(entry)}" for entry in entries]
    return "\n".join([*lines, "", "'judged measures NAME' shows a measure with its formula, parameters and pitfalls."])


def families() -> dict[str, list[Entry]]:
    """Group all measures by family, in the order of the catalog. Families of other packages come last.

    >>> list(families())[:2], [entry.name for entry in families()["set at a cutoff"]]
    (['set at a cutoff', 'set'], ['P', 'R', 'F', 'Success', 'RelP'])
    """
    by_family: dict[str, list[Entry]] = {}
    for entry in REGISTRY.values():
        by_family.setdefault(entry.family, []).append(entry)
    names = list(FAMILIES)
    order = sorted(by_family, key=lambda family: names.index(family) if family in names else len(names))
    return {family: by_family[family] for family in order}


def page(name: str) -> str:
    """Render the page of one measure as Markdown that is also readable as plain text."""
    entry = find_entry(name)
    parts = [
        f"# {usage(entry)}",
        definition(entry),
        "## Parameters\n\n" + _parameters(entry) if entry.all_parameters else "It has no parameters.",
        *describe_inputs(entry),
        f"## When to use it\n\n{entry.use}",
        f"## When it misleads\n\n{entry.misleads}",
        f"## Properties\n\n{_properties_note(entry)}{_list(describe_properties(entry))}",
        "## Other names\n\n" + _names(entry),
        f"## Examples\n\n{examples(entry)}",
        f"Source: {entry.cite}.",
    ]
    return "\n\n".join(parts)


def usage(entry: Entry) -> str:
    """Format how a name of the measure is written: ``P@k``, ``AP``, or ``AP, AP@k``."""
    required = [parameter.name for parameter in entry.parameters if parameter.required]
    name = entry.name + (f"({','.join(f'{name}=...' for name in required)})" if required else "")
    if entry.cutoff is None:
        return name
    with_cutoff = f"{name}@{'k' if entry.cutoff_name == 'cutoff' else entry.cutoff_name}"
    return with_cutoff if entry.cutoff.required else f"{name}, {with_cutoff}"


def summary(entry: Entry) -> str:
    """Return the first line of the definition."""
    return (inspect.getdoc(entry.cls) or "").splitlines()[0]


def definition(entry: Entry) -> str:
    r"""Return the definition as Markdown, with display formulas between ``$$`` and inline formulas between ``$``.

    >>> print(definition(REGISTRY["CG"]))
    Cumulated gain: the sum of the gains of the first k documents.
    <BLANKLINE>
    $$ \mathrm{CG}@k = \sum_{r \le k} g_r $$
    """
    return as_markdown(_docstring(entry)[0])


def examples(entry: Entry) -> str:
    """Return the examples of the definition as Markdown: prose, and blocks of Python with their output.

    >>> examples(REGISTRY["CG"]).splitlines()[2:]
    ['```python', '>>> from judged.scoring.measures import CG', '>>> CG().of_list([3, 2, 3, 0, 1, 2])', '11.0', '```']
    """
    text = _docstring(entry)[1]
    return _describe_lists(text, entry.family) + _render_blocks(text)


def _docstring(entry: Entry) -> tuple[str, str]:
    text = inspect.getdoc(entry.cls) or ""
    definition, _, examples = text.partition("Examples\n--------\n")
    return definition.strip(), examples.strip()


def as_markdown(docstring: str) -> str:
    r"""Convert the formulas and the inline code of a docstring from reStructuredText to Markdown.

    >>> as_markdown(".. math:: x_1\n\nwhere :math:`x_1` is ``max=4``").splitlines()
    ['$$ x_1 $$', '', 'where $x_1$ is `max=4`']
    """
    return _convert_inline(_convert_formula(docstring))


def _convert_inline(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", re.sub(r":math:`([^`]+)`", r"$\1$", text))


def _convert_formula(definition: str) -> str:
    lines: list[str] = []
    in_formula = False
    for line in definition.splitlines():
        if line.startswith(".. math::"):
            lines.append("$$ " + line.removeprefix(".. math::").strip())
            in_formula = True
        elif in_formula and line.startswith(" "):
            lines.append("   " + line.strip())
        elif in_formula and not line.strip():
            lines[-1] += " $$"
            lines.append("")
            in_formula = False
        else:
            lines.append(line)
    return "\n".join(lines) + (" $$" if in_formula else "")


_DOCUMENTS = (
    "is a column of the table of documents, which is passed as `--documents FILE`, in Python as `documents=`. For the"
    " format of this table, see [Files and objects, facts about documents](formats.md#facts-about-documents)."
)
_INPUTS = {
    "diversity": "The qrels must have subtopics: see [Files and objects, subtopics](formats.md#subtopics).",
    "preferences and assessors": "The iteration column of the qrels must identify the user: see"
    " [Files and objects, preferences and assessors](formats.md#preferences-and-assessors).",
}


def describe_inputs(entry: Entry) -> list[str]:
    """Describe, as Markdown, the inputs besides grades and rankings.

    >>> describe_inputs(REGISTRY["AP"]), describe_inputs(REGISTRY["APIA"])
    ([], ['The qrels must have subtopics: see [Files and objects, subtopics](formats.md#subtopics).'])
    """
    if entry.family == "facts about documents":
        return [f"`{'group' if entry.name == 'AWRF' else 'length'}` {_DOCUMENTS}"]
    if "costs" in {parameter.name for parameter in entry.parameters}:
        return [f"With `costs=column`, `cost` {_DOCUMENTS}"]
    return [_INPUTS[entry.family]] if entry.family in _INPUTS else []


def _describe_lists(text: str, family: str) -> str:
    """Describe the notation of the lists in the examples."""
    if ".of_list(" not in text:
        return ""
    facts = ["`of_list` scores one topic: the grades from rank 1 down"]
    if "None" in text:
        facts.append("`None` is a document without a judgment")
    if "missing=" in text:
        facts.append("`missing` contains the grades of judged documents that were not returned")
    if "[(" in text:
        label = "subtopic" if family == "diversity" else "user"
        facts.append(
            f"a tuple is one document, with a grade for each {label}: (1, 0) is grade 1 for the first"
            f" {label} and 0 for the second"
        )
    return "; ".join(facts) + ".\n\n"


def _render_blocks(text: str) -> str:
    r"""Render the examples of a docstring as blocks of code, the first with its import, and prose.

    >>> _render_blocks("Half of two:\n\n>>> P(cutoff=2).of_list([1, 0])\n0.5").splitlines()[2:5]
    ['```python', '>>> from judged.scoring.measures import P', '>>> P(cutoff=2).of_list([1, 0])']
    """
    parts: list[str] = []
    is_first = True
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(">>>"):
            parts.append(_convert_inline(paragraph))
            continue
        parts.append("```python\n" + (_imports(text) if is_first else "") + paragraph + "\n```")
        is_first = False
    return "\n\n".join(parts)


def _imports(text: str) -> str:
    """Return the line that imports the measures of the examples. Examples import other names themselves."""
    # Measures of other packages cannot be imported from this one.
    classes = {entry.cls.__name__ for entry in REGISTRY.values() if entry.cls.__module__.startswith("judged.")}
    trees = [ast.parse(example.source) for example in doctest.DocTestParser().get_examples(text)]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)} & classes
    return f">>> from judged.scoring.measures import {', '.join(sorted(used))}\n" if used else ""


def _parameters(entry: Entry) -> str:
    return _list(
        f"`{parameter.name}` ({parameter.allowed}; {describe_default(parameter)}):"
        f" {_convert_inline(parameter.meaning)}{_cutoff_note(entry, parameter)}"
        for parameter in entry.all_parameters
    )


def _cutoff_note(entry: Entry, parameter: Parameter) -> str:
    if parameter.name != entry.cutoff_name:
        return ""
    return f" In names and on the command line, the measure is written `{usage(entry).split(', ')[-1]}`."


def describe_default(parameter: Parameter) -> str:
    """Describe the default of a parameter.

    >>> [describe_default(parameter) for parameter in REGISTRY["RBP"].all_parameters][:3]
    ['default none', 'required', 'default binary']
    """
    if parameter.required:
        return "required"
    return "default none" if parameter.default is None else f"default {format_value(parameter.default)}"


def parameters_changing_properties(entry: Entry) -> list[str]:
    """Return the names of the parameters that change the properties on the page."""
    names = {parameter.name for parameter in entry.parameters}
    return ["of", "costs", "residual"] if "residual" in names else ["gain"] if "gain" in names else []


def _properties_note(entry: Entry) -> str:
    names = parameters_changing_properties(entry)
    if not names:
        return ""
    listed = " and ".join(filter(None, [", ".join(f"`{name}`" for name in names[:-1]), f"`{names[-1]}`"]))
    return (
        f"These properties are for the default parameters; {listed} can change them"
        " (see `judged.measures.parse(NAME).properties`):\n\n"
    )


def describe_properties(entry: Entry) -> list[str]:
    """Describe the properties of the scores, with the default parameters.

    >>> describe_properties(REGISTRY["Success"])[:3]
    ['range 0 to 1', 'binary relevance: documents of grade `rel` or more are relevant', 'requires a ranking']
    """
    declared = entry.properties
    low = "-inf" if declared.low is None else f"{declared.low:g}"
    high = "inf" if declared.high is None else f"{declared.high:g}"
    better = {True: "higher is better", False: "lower is better", None: "neither higher nor lower is better"}
    can_change = "cannot" if declared.ignores_unjudged_tail else "can"
    facts = [
        "the score depends on the grades" if declared.graded else _describe_binary(entry),
        "requires a ranking" if declared.needs_ranking else "requires no ranking: a set is enough",
        f"unjudged documents at the end of a ranking {can_change} change the score",
    ]
    if declared.reads == "answers":
        facts = ["reads answers, not rankings", "missing verdicts are excluded; the score bounds account for them"]
    if declared.reads == "trajectories":
        facts = ["reads trajectories of agents, not rankings", "the score of a question is the mean over its trials"]
    return [
        f"range {low} to {high}",
        *facts,
        better[declared.higher_is_better],
        f"aggregation over topics: {entry.aggregate}",
    ]


def _describe_binary(entry: Entry) -> str:
    if "rel" in {parameter.name for parameter in entry.parameters}:
        return "binary relevance: documents of grade `rel` or more are relevant"
    return "grades have no effect"


def _names(entry: Entry) -> str:
    aliases = [f"`{alias}`" + _meaning(values) for alias, values in entry.aliases.items()]
    tools = [f"{tool}: {_format_as_code(names)}" for tool, names in entry.tools.items()]
    accepted = [f"accepted here: {', '.join(aliases)}"] if aliases else []
    return _list([*accepted, *tools]) or "None."


def _format_as_code(names: str) -> str:
    """Format names as code, and a remark in brackets as text.

    >>> _format_as_code("dcg@10, dcg_burges@10 (the gain differs)")
    '`dcg@10`, `dcg_burges@10` (the gain differs)'
    """
    names, bracket, remark = names.partition(" (")
    return ", ".join(f"`{name}`" for name in names.split(", ")) + bracket + remark


def _meaning(values: Mapping[str, Any]) -> str:
    parameters = ", ".join(f"{name}={format_value(value)}" for name, value in values.items())
    return f" (means {parameters})" if parameters else ""


def _list(facts: Iterable[str]) -> str:
    return "\n".join(f"- {fact}" for fact in facts)
