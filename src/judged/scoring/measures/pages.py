"""The catalogue and the page of each measure, made from the definitions: for terminal and documentation."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from typing import TYPE_CHECKING, Any

from judged.scoring.measures.base import Entry
from judged.scoring.measures.grammar import entry_of
from judged.scoring.measures.parameters import Parameter, spell
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


FAMILIES = {
    "set at a cutoff": "How many of the first k documents are relevant. Their order within these does not count.",
    "set": "All that was returned counts, and in no order: for Boolean searches and filters.",
    "ranked, binary": "A document is relevant or not, and it matters at which ranks the relevant ones stand.",
    "graded": "Documents are relevant to different degrees, and the best should stand first.",
    "user model": "Somebody reads from the top and stops at some point; the score is what they gain on the way.",
    "incomplete judgments": "Not every document has a judgment: what can be said all the same, and how much is open.",
    "diversity": "A query has several meanings, and the page should serve them all. The qrels tell subtopics apart.",
    "preferences and assessors": "Users said which document is better, or several people judged.",
    "facts about documents": "Facts about a document count too, such as its length, or the group it belongs to.",
    "answers": "What a system answered, what it cites and what its context held, judged piece by piece:"
    " `judged rag evaluate`. A piece without a verdict is left out, and bounded.",
    "count": "Plain numbers to see what the averages rest on.",
}
"""What the measures of a family have in common, in the order of the catalogue."""


def catalogue() -> str:
    """List all measures, family by family: how each is written, and what it is.

    >>> print(*[line for line in catalogue().splitlines() if line.startswith("  P@k")])
      P@k                                 Precision at k: the share of the first k places that hold a relevant document.
    """
    width = max(len(written(entry)) for entry in REGISTRY.values())
    lines: list[str] = []
    for family, entries in families().items():
        lines += ["", family] if lines else [family]
        lines += [f"  {written(entry):{width}}  {summary(entry)}" for entry in entries]
    return "\n".join([*lines, "", "'judged measures NAME' shows one with its formula, parameters and pitfalls."])


def families() -> dict[str, list[Entry]]:
    """Give all measures family by family, in the order of the catalogue; families of others' measures come last.

    >>> list(families())[:2], [entry.name for entry in families()["set at a cutoff"]]
    (['set at a cutoff', 'set'], ['P', 'R', 'F', 'Success', 'RelP'])
    """
    found: dict[str, list[Entry]] = {}
    for entry in REGISTRY.values():
        found.setdefault(entry.family, []).append(entry)
    known = list(FAMILIES)
    order = sorted(found, key=lambda family: known.index(family) if family in known else len(known))
    return {family: found[family] for family in order}


def page(name: str) -> str:
    """Write the page of one measure as Markdown that also reads well as it stands."""
    entry = entry_of(name)
    parts = [
        f"# {written(entry)}",
        definition(entry),
        "## Parameters\n\n" + _parameters(entry) if entry.all_parameters else "It has no parameters.",
        *inputs(entry),
        f"## When to use it\n\n{entry.use}",
        f"## When it misleads\n\n{entry.misleads}",
        f"## Properties\n\n{_when(entry)}{_list(properties(entry))}",
        "## Other names\n\n" + _names(entry),
        f"## Examples\n\n{examples(entry)}",
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


def definition(entry: Entry) -> str:
    r"""Give the definition as Markdown: paragraphs between blank lines, a formula between ``$$`` or, in a line, ``$``.

    >>> print(definition(REGISTRY["CG"]))
    Cumulated gain: the gains of the first k documents, added up.
    <BLANKLINE>
    $$ \mathrm{CG}@k = \sum_{r \le k} g_r $$
    """
    return as_markdown(_docstring(entry)[0])


def examples(entry: Entry) -> str:
    """Give the examples of the definition as Markdown: prose, and blocks of Python with what they print.

    >>> examples(REGISTRY["CG"]).splitlines()[2:]
    ['```python', '>>> from judged.scoring.measures import CG', '>>> CG().of_list([3, 2, 3, 0, 1, 2])', '11.0', '```']
    """
    text = _docstring(entry)[1]
    return _how_to_read(text, entry.family) + _blocks(text)


def _docstring(entry: Entry) -> tuple[str, str]:
    text = inspect.getdoc(entry.cls) or ""
    before, _, behind = text.partition("Examples\n--------\n")
    return before.strip(), behind.strip()


def as_markdown(docstring: str) -> str:
    r"""Turn a docstring's formulas and code, which are reStructuredText, into those of Markdown.

    >>> as_markdown(".. math:: x_1\n\nwhere :math:`x_1` is ``max=4``").splitlines()
    ['$$ x_1 $$', '', 'where $x_1$ is `max=4`']
    """
    return _markdown(_with_formula(docstring))


def _markdown(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", re.sub(r":math:`([^`]+)`", r"$\1$", text))


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


_DOCUMENTS = (
    "is a column of the table of documents: `--documents FILE`, in Python `documents=`; see"
    " [facts about documents](formats.md#facts-about-documents)."
)
_INPUTS = {
    "diversity": "The qrels must tell subtopics apart: see [subtopics](formats.md#subtopics).",
    "preferences and assessors": "The qrels must tell users apart: see"
    " [preferences and assessors](formats.md#preferences-and-assessors).",
}


def inputs(entry: Entry) -> list[str]:
    """Say, as Markdown, what the measure reads beside grades and rankings.

    >>> inputs(REGISTRY["AP"]), inputs(REGISTRY["APIA"])
    ([], ['The qrels must tell subtopics apart: see [subtopics](formats.md#subtopics).'])
    """
    if entry.family == "facts about documents":
        return [f"`{'group' if entry.name == 'AWRF' else 'length'}` {_DOCUMENTS}"]
    if "costs" in {p.name for p in entry.parameters}:
        return [f"With `costs=given`, `cost` {_DOCUMENTS}"]
    return [_INPUTS[entry.family]] if entry.family in _INPUTS else []


def _how_to_read(text: str, family: str) -> str:
    """Say what the lists of the examples are, as far as these need it."""
    if ".of_list(" not in text:
        return ""
    facts = ["`of_list` scores one topic: the grades from rank 1 down"]
    if "None" in text:
        facts.append("`None` is a document without a judgment")
    if "missing=" in text:
        facts.append("`missing` are the grades of judged documents that were not returned")
    if "[(" in text:
        of = "subtopic" if family == "diversity" else "user"
        facts.append(
            f"a tuple is one document, with a grade for each {of}: (1, 0) is 1 for the first, 0 for the second"
        )
    return "; ".join(facts) + ".\n\n"


def _blocks(text: str) -> str:
    r"""Put the code of a docstring's examples into blocks, the first with its import, and prose between them.

    >>> _blocks("Half of two:\n\n>>> P(cutoff=2).of_list([1, 0])\n0.5").splitlines()[2:5]
    ['```python', '>>> from judged.scoring.measures import P', '>>> P(cutoff=2).of_list([1, 0])']
    """
    parts: list[str] = []
    first = True
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(">>>"):
            parts.append(_markdown(paragraph))
            continue
        parts.append("```python\n" + (_imports(text) if first else "") + paragraph + "\n```")
        first = False
    return "\n\n".join(parts)


def _imports(text: str) -> str:
    """Write the line that imports the measures that the examples use; other names they import themselves."""
    classes = {entry.cls.__name__ for entry in REGISTRY.values() if entry.cls.__module__.startswith("judged.")}
    trees = [ast.parse(example.source) for example in doctest.DocTestParser().get_examples(text)]
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)} & classes
    return f">>> from judged.scoring.measures import {', '.join(sorted(used))}\n" if used else ""


def _parameters(entry: Entry) -> str:
    return _list(
        f"`{p.name}` ({p.allowed}; {default(p)}): {_markdown(p.meaning)}{_at(entry, p)}" for p in entry.all_parameters
    )


def _at(entry: Entry, parameter: Parameter) -> str:
    """Say that the number after ``@`` is this parameter."""
    if parameter.name != entry.at:
        return ""
    return f" In names and on the command line it is written `{written(entry).split(', ')[-1]}`."


def default(parameter: Parameter) -> str:
    """Say what a parameter is where it is not given.

    >>> [default(parameter) for parameter in REGISTRY["RBP"].all_parameters][:3]
    ['default none', 'must be given', 'default binary']
    """
    if parameter.required:
        return "must be given"
    return "default none" if parameter.default is None else f"default {spell(parameter.default)}"


def changing(entry: Entry) -> list[str]:
    """Name the parameters that change the properties that are listed."""
    names = {parameter.name for parameter in entry.parameters}
    return ["of", "costs", "residual"] if "residual" in names else ["gain"] if "gain" in names else []


def _when(entry: Entry) -> str:
    """Say which parameters change the properties that are listed; the object knows its own."""
    named = changing(entry)
    if not named:
        return ""
    which = " and ".join(filter(None, [", ".join(f"`{name}`" for name in named[:-1]), f"`{named[-1]}`"]))
    return f"With the default parameters; {which} can change them (see `judged.measures.parse(NAME).properties`):\n\n"


def properties(entry: Entry) -> list[str]:
    """Say in words what is true of every score, with the default parameters.

    >>> properties(REGISTRY["Success"])[:3]
    ['range 0 to 1', 'relevant or not: grades count only through `rel`', 'needs a ranking']
    """
    known = entry.properties
    low = "-inf" if known.low is None else f"{known.low:g}"
    high = "inf" if known.high is None else f"{known.high:g}"
    better = {True: "higher is better", False: "lower is better", None: "neither high nor low is better"}
    facts = [
        "grades count" if known.graded else _binary(entry),
        "needs a ranking" if known.needs_ranking else "needs no ranking: a set will do",
        f"unjudged documents at the end change {'nothing' if known.ignores_unjudged_tail else 'it'}",
    ]
    if known.reads_answers:
        facts = ["reads answers, not rankings", "a missing verdict is left out, and bounded"]
    return [f"range {low} to {high}", *facts, better[known.higher_is_better], f"over topics: {entry.aggregate}"]


def _binary(entry: Entry) -> str:
    if "rel" in {parameter.name for parameter in entry.parameters}:
        return "relevant or not: grades count only through `rel`"
    return "how high a grade is changes nothing"


def _names(entry: Entry) -> str:
    aliases = [f"`{alias}`" + _meaning(values) for alias, values in entry.aliases.items()]
    tools = [f"{tool}: {_coded(names)}" for tool, names in entry.tools.items()]
    understood = [f"understood here: {', '.join(aliases)}"] if aliases else []
    return _list([*understood, *tools]) or "None."


def _coded(names: str) -> str:
    """Set names as code, and what is said of them in brackets as text.

    >>> _coded("dcg@10, dcg_burges@10 (the gain differs)")
    '`dcg@10`, `dcg_burges@10` (the gain differs)'
    """
    listed, bracket, remark = names.partition(" (")
    return ", ".join(f"`{name}`" for name in listed.split(", ")) + bracket + remark


def _meaning(values: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={spell(value)}" for name, value in values.items())
    return f" (means {given})" if given else ""


def _list(facts: Iterable[str]) -> str:
    return "\n".join(f"- {fact}" for fact in facts)
