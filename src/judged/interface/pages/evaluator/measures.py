"""Which measures the evaluator lists, in which forms and groups: tables as data, and no formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from judged.errors import MeasureError
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.interface.pages.evaluator.state import Options
    from judged.scoring.measures.base import Entry, Measure, Properties


GROUPS = ("graded", "ranked, binary", "set at a cutoff", "set", "user model", "incomplete judgments", "count")
"""The families of the catalogue for which a list is enough, in the order in which they are shown."""

_NEEDS_FAMILY = {
    "diversity": "needs judgments by subtopic: a typed list has one grade per document",
    "preferences and assessors": "needs the judgments of several assessors or users: a typed list has one grade a"
    " document",
    "answers": "reads what a system answered: a typed list is a ranking",
    "facts about documents": "needs facts about documents, such as their lengths: a typed list has none",
}
_NEEDS_SIZE = "needs the number of documents in the collection: a typed list does not say it"

USUAL: dict[str, Any] = {"p": 0.8, "factor": 0.5, "recall": 0.5, "T": 2.0, "A": 0.2}
"""What is taken for parameters that must be given."""
_FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    **dict.fromkeys(("AP", "RR", "Q", "ERR", "NumRelRet"), ({}, {"cutoff": None})),
    **dict.fromkeys(("nDCG", "DCG", "IdealDCG"), ({"cutoff": None}, {})),
    **dict.fromkeys(("CG", "Judged", "Unjudged", "Accuracy", "Fallout"), ({"cutoff": None},)),
    "RBP": ({}, {"gain": "graded", "max": None}),
}
"""Parameters of measures that are usual both with and without them; None for what the options say."""
_FIRST = ("nDCG", "DCG", "IdealDCG", "P", "R", "F", "Success", "AP", "RR", "Rprec", "RBP", "ERR")
"""What most people look for stands first in its group."""


@dataclass(frozen=True)
class Listed:
    """A measure as it is listed."""

    entry: Entry
    form: int  # which of the forms of its family, from 0
    measure: Measure | None  # None if it cannot be made with these options
    why: str = ""  # why it cannot be made

    @property
    def key(self) -> str:
        """What it is called whatever the options are: ``AP``, and ``AP.1`` for its second form."""
        return f"{self.entry.name}.{self.form}" if self.form else self.entry.name

    @property
    def name(self) -> str:
        """Its name with its parameters."""
        return self.entry.name if self.measure is None else str(self.measure)

    @property
    def properties(self) -> Properties:
        """What it declares of its values."""
        return self.entry.properties if self.measure is None else self.measure.properties


@lru_cache(maxsize=256)
def listed(options: Options) -> tuple[Listed, ...]:
    """Give the measures with these options put in, group by group."""
    made: dict[str, Listed] = {}
    for family in GROUPS:
        entries = [entry for entry in REGISTRY.values() if entry.family == family and not _lacks(entry, options.n)]
        entries.sort(key=lambda entry: _FIRST.index(entry.name) if entry.name in _FIRST else len(_FIRST))
        for entry in entries:
            for form, values in enumerate(_forms(entry, options)):
                try:
                    measure = Listed(entry, form, entry.cls(**values))
                except MeasureError as error:
                    measure = Listed(entry, form, None, str(error))
                made.setdefault(measure.name, measure)
    return tuple(made.values())


@lru_cache(maxsize=2)
def unavailable(n: int | None = None) -> dict[str, str]:
    """Name the measures that need what a typed list has not, and say what that is; n is the size of the collection."""
    return {entry.name: why for entry in REGISTRY.values() if (why := _lacks(entry, n))}


def _lacks(entry: Entry, n: int | None) -> str:
    """Say what a typed list lacks for a measure; nothing if it is enough."""
    if n is None and any(parameter.name == "n" and parameter.required for parameter in entry.all_parameters):
        return _NEEDS_SIZE
    if entry.family in GROUPS:
        return ""
    return _NEEDS_FAMILY.get(entry.family, f"is of the kind {entry.family!r}, which a typed list does not serve")


def _forms(entry: Entry, options: Options) -> Iterator[dict[str, Any]]:
    """Give the parameters of a measure in its usual forms, with those that the options set."""
    known = USUAL | options._asdict()
    given = {
        parameter.name: known[parameter.name]
        for parameter in entry.all_parameters
        if parameter.name in ({"rel", "discount", "base"} if not parameter.required else known)
        or (parameter.name, parameter.default) == ("gain", "linear")
    }
    for form in _FORMS.get(entry.name, ({},)):
        values = given | {name: known[name] if value is None else value for name, value in form.items()}
        if values.get("gain") == "graded":
            values.pop("rel", None)  # graded gains know no level of relevance
        yield values
