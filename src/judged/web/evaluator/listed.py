"""Which measures the evaluator lists, in which forms and groups: tables as data, and no formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from judged.errors import MeasureError
from judged.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged.measures import Measure
    from judged.measures.base import Entry, Properties
    from judged.web.evaluator.state import Options


@dataclass(frozen=True)
class Group:
    """Measures that look at the same thing."""

    key: str
    title: str
    what: str  # what they look at, in one sentence
    families: tuple[str, ...]  # those of the registry


GROUPS = (
    Group(
        "graded",
        "Graded",
        "How much each document is worth, and how far down it stands; grades count.",
        ("graded",),
    ),
    Group(
        "ranked",
        "Ranked, relevant or not",
        "At which ranks the relevant documents stand; a grade only says whether a document is relevant.",
        ("ranked, binary",),
    ),
    Group(
        "set",
        "Sets",
        "How many of the first k documents, or of all that were returned, are relevant; their order does not count.",
        ("set at a cutoff", "set"),
    ),
    Group(
        "user",
        "User models",
        "What a person gains who reads from the top, and stops with a probability that the model gives.",
        ("user model",),
    ),
    Group(
        "incomplete",
        "Incomplete judgments",
        "What is known where not every document has a judgment, and how much is not.",
        ("incomplete judgments",),
    ),
    Group("count", "Counts", "How many documents there are of each kind.", ("count",)),
)
"""In the order in which they are shown."""

_NEEDS_FAMILY = {
    "diversity": "needs judgments by subtopic: a typed list has one grade a document",
    "preferences and assessors": "needs the judgments of several assessors or users: a typed list has one grade a"
    " document",
    "facts about documents": "needs facts about documents, such as their lengths: a typed list has none",
}
_NEEDS_SIZE = "needs n, the number of documents of the whole collection: a typed list does not say it"

_AT_K = "at k"
_USUAL: dict[str, tuple[dict[str, Any], ...]] = {
    "AP": ({}, {"cutoff": _AT_K}),
    "RR": ({}, {"cutoff": _AT_K}),
    "nDCG": ({"cutoff": _AT_K}, {}),
    "DCG": ({"cutoff": _AT_K}, {}),
    "IdealDCG": ({"cutoff": _AT_K}, {}),
    "CG": ({"cutoff": _AT_K},),
    "Q": ({}, {"cutoff": _AT_K}),
    "ERR": ({}, {"cutoff": _AT_K}),
    "Judged": ({"cutoff": _AT_K},),
    "Unjudged": ({"cutoff": _AT_K},),
    "NumRelRet": ({}, {"cutoff": _AT_K}),
    "RBP": ({"p": 0.8}, {"p": 0.8, "gain": "graded", "max": "of the scale"}),
    "RBPResidual": ({"p": 0.8},),
    "RprecMult": ({"factor": 0.5},),
    "IPrec": ({"recall": 0.5},),
    "IFT1": ({"T": 2.0},),
    "IFT2": ({"A": 0.2},),
    "IFT12": ({"T": 2.0, "A": 0.2},),
}
"""Forms of measures that have a usual value, or are usual both with a cutoff and without."""
_FIRST = ("nDCG", "DCG", "IdealDCG", "P", "R", "F", "Success", "AP", "RR", "Rprec", "RBP", "ERR")
"""What most people look for stands first in its group."""


@dataclass(frozen=True)
class Listed:
    """A measure as it is listed."""

    measure: Measure | None  # None if it cannot be made with these options
    # name, family: with its parameters, and without
    name: str
    family: str
    facts: Mapping[str, Any]  # `low`, `high`, `higher_is_better` and `perfect`, as the measure declares them
    apart: bool  # whether the score of a topic depends on that topic alone
    why: str = ""  # why it cannot be made

    @classmethod
    def of(cls, entry: Entry, values: Mapping[str, Any]) -> Listed:
        """List a measure with these parameters."""
        try:
            measure = entry.cls(**values)
        except MeasureError as error:
            return cls(None, entry.name, entry.name, _facts(entry.properties), apart=True, why=str(error))
        known = measure.properties
        return cls(measure, str(measure), entry.name, _facts(known), known.topics_apart)


def _facts(known: Properties) -> dict[str, Any]:
    return {name: getattr(known, name) for name in ("low", "high", "higher_is_better", "perfect")}


@lru_cache(maxsize=256)
def listed(options: Options) -> tuple[tuple[Group, tuple[Listed, ...]], ...]:
    """Give the measures of each group with these options put in."""
    made: list[tuple[Group, tuple[Listed, ...]]] = []
    for group in GROUPS:
        entries = [entry for entry in REGISTRY.values() if entry.family in group.families and not _lacks(entry)]
        entries.sort(key=lambda entry: _FIRST.index(entry.name) if entry.name in _FIRST else len(_FIRST))
        forms = (Listed.of(entry, values) for entry in entries for values in _forms(entry, options))
        made.append((group, tuple({one.name: one for one in forms}.values())))
    return tuple(made)


@lru_cache(maxsize=1)
def unavailable() -> tuple[dict[str, str], ...]:
    """Name the measures that need what a typed list has not, and say what that is."""
    return tuple({"name": entry.name, "why": why} for entry in REGISTRY.values() if (why := _lacks(entry)))


def _lacks(entry: Entry) -> str:
    """Say what a typed list lacks for a measure; nothing if it is enough."""
    if any(parameter.name == "n" and parameter.required for parameter in entry.all_parameters):
        return _NEEDS_SIZE
    if any(entry.family in group.families for group in GROUPS):
        return ""
    return _NEEDS_FAMILY.get(entry.family, f"is of the kind {entry.family!r}, which a typed list does not serve")


def _forms(entry: Entry, options: Options) -> Iterator[dict[str, Any]]:
    """Give the parameters of a measure in its usual forms."""
    required = {parameter.name for parameter in entry.all_parameters if parameter.required}
    usual = {"cutoff": _AT_K} if "cutoff" in required else {}
    for form in _USUAL.get(entry.name, ({},)):
        values = _of_options(entry, options) | usual | form
        if values.get("cutoff") == _AT_K:
            values["cutoff"] = options.k
        if values.get("max") == "of the scale":
            values["max"] = options.max
        if values.get("gain") == "graded":
            values.pop("rel", None)  # graded gains know no level of relevance
        yield values


def _of_options(entry: Entry, options: Options) -> dict[str, Any]:
    """Give the parameters of a measure that the options set."""
    parameters = {parameter.name: parameter for parameter in entry.all_parameters}
    values: dict[str, Any] = {}
    if "rel" in parameters:
        values["rel"] = options.rel
    if "gain" in parameters and parameters["gain"].default == "linear":
        values["gain"] = options.gain
    if "discount" in parameters:
        values |= {"discount": options.discount, "base": options.base}
    if "max" in parameters and parameters["max"].required:
        values["max"] = options.max
    return values
