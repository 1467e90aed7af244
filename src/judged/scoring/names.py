"""Index of names: find measures, online metrics, commands, and pages by name, abbreviation, and synonym."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from judged.components import all_components, load
from judged.scoring.measures.pages import summary
from judged.scoring.measures.registry import REGISTRY
from judged.scoring.peers.tool_measures import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.scoring.measures.base import Entry

_SYNONYMS = {
    "AP": "mean average precision",
    "RR": "mean reciprocal rank",
    "nDCG": "normalized discounted cumulative gain, normalised discounted cumulative gain",
    "DCG": "discounted cumulative gain",
    "CG": "cumulative gain",
    "NCG": "normalized cumulative gain, normalised cumulative gain",
    "GMAP": "geometric mean average precision",
    "F": "f1 score, f measure, f score",
    "Success": "hit ratio, accuracy at k",
    "ExitRate": "bounce rate",
    "judged compare": "p value, significance, significance test, statistical test, paired test, t test, wilcoxon",
    "judged agree": "inter annotator agreement, inter rater agreement, cohen's kappa, kappa, krippendorff's alpha",
    "judged power": "sample size, power analysis, statistical power, minimum detectable effect",
    "judged fuse": "reciprocal rank fusion, rrf, hybrid search, rank fusion",
    "judged gate": "regression test, quality gate, ci",
    "judged online abtest": "a/b test, split test, experiment with users",
    "API": "export, download, json, csv",
    "Open other files": "upload, import, open files, load data",
}
"""Names that people type, by name of the entry; definitions of measures and metrics have more names."""

_SKIPPED = frozenset({"a", "an", "and", "at", "do", "for", "how", "i", "in", "k", "of", "the", "to"})


class Name(NamedTuple):
    """Something that has a name."""

    kind: str  # measure, metric, command, page, run, topic
    name: str
    text: str = ""  # description
    address: str = ""  # of its page in the workbench
    names: tuple[str, ...] = ()  # other names: titles, abbreviations, names in other tools


@cache
def name_index() -> tuple[Name, ...]:
    """Return all measures, online metrics, pages, and commands."""
    measures = [
        Name("measure", entry.name, summary(entry), f"/learn/{entry.name}", (_title(entry), *other_names(entry)))
        for entry in REGISTRY.values()
    ]
    others: list[Name] = []
    for component in all_components():
        others += [Name("page", page.name, page.question, page.path) for page in component.pages if page.path]
        others += load(component.names)() if component.names else ()
        commands = (item for section in component.commands.values() for item in section.items())
        others += [command_name(name, command.about) for name, command in commands]
    return tuple(name._replace(names=(*name.names, _SYNONYMS.get(name.name, ""))) for name in (*measures, *others))


def command_name(name: str, about: str) -> Name:
    """Return the entry of a command."""
    return Name("command", f"judged {name}", about, f"/search?q={name.replace(' ', '+')}", (name,))


def other_names(entry: Entry) -> Iterator[str]:
    """Yield the abbreviations of a measure, and its names in other tools."""
    yield from entry.aliases
    for tool in TOOLS.values():
        for judged_name, reading in tool.aliases.items():
            if judged_name.partition("@")[0] == entry.name:
                yield reading.name.replace("{k}", "k")
    for names in entry.tools.values():
        yield from names.partition(" (")[0].split(", ")


def find_names(query: str, entries: Iterable[Name], *, similar: bool = True) -> list[Name]:
    """Return the entries that match a name or words, best match first; if none does, those with similar names.

    >>> [find_names(query, name_index())[0].name for query in ("precision at 5", "mean average precision", "ndgc")]
    ['P', 'AP', 'nDCG']
    """
    entries, words = list(entries), _words(query)
    ranks = [_rank(" ".join(_words(query, cutoff=True)), words, entry) for entry in entries]
    matches = [(rank, i) for i, rank in enumerate(ranks) if rank is not None]
    if not matches and words and similar:
        keys = {key: i for i, entry in reversed(list(enumerate(entries))) for key in _keys(entry)}
        matches = [((i,), keys[key]) for i, key in enumerate(get_close_matches(" ".join(words), keys, 5, 0.75))]
    return [entries[i] for i in dict.fromkeys(i for _, i in sorted(matches))]


def _rank(key: str, words: Sequence[str], entry: Name) -> tuple[int, ...] | None:
    """Return the rank of a match as a tuple that sorts first for the best; None if the entry does not match."""
    keys = _keys(entry)
    typed = {key, " ".join(words)}  # with and without a cutoff
    if typed & {*keys}:
        return 0, int(keys[0] not in typed)
    if keys[0].startswith(key):
        return 1, len(keys[0])
    lengths = [len(name.split()) for name in keys if _contains(name, words)]
    if lengths:
        return 2, min(lengths)
    return (3,) if _contains(" ".join((*keys, *_words(entry.text))), words) else None


def _contains(text: str, words: Sequence[str]) -> bool:
    return all(f" {word}" in f" {text}" for word in words)


def format_names(names: Iterable[Name]) -> str:
    """Format entries as lines of kind, name, and description."""
    return "\n".join(f"{name.kind:8} {name.name:24} {name.text}" for name in names)


@cache
def _keys(entry: Name) -> tuple[str, ...]:
    names = (entry.name, *(part for name in entry.names for part in name.split(",")))
    return tuple(dict.fromkeys(filter(None, (" ".join(_words(name)) for name in names))))


def _words(text: str, *, cutoff: bool = False) -> list[str]:
    """Split a text into words without cutoff ("at 5"), and without words that every name may have."""
    words = re.findall(r"[^\W_]+", text.casefold().replace("'s", ""))
    kept = [word for word in words if word not in _SKIPPED] or words
    return kept[:-1] if len(kept) > 1 and kept[-1].isdecimal() and not cutoff else kept


def _title(entry: Entry) -> str:
    """Return the full name of a measure: the beginning of its summary, before a colon."""
    title, colon, _ = summary(entry).partition(":")
    return title if colon else ""
