"""What a metric of user behaviour is: a ratio of two sums over rows, written down as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Row: TypeAlias = Literal["page", "query", "click", "session", "user", "purchase", "rating"]
Kind: TypeAlias = Literal["ratio", "total", "quantile", "survival", "survival mean", "survival quantile"]
Unit: TypeAlias = Literal["share", "count", "seconds", "rank", "reciprocal rank", "money", "rating"]
_QUANTILE: dict[Kind, Kind] = {"ratio": "quantile", "survival mean": "survival quantile"}


@dataclass(frozen=True)
class OnlineMetric:
    """A metric: what is counted, of what, over which rows, and when it misleads.

    Its value is ``sum(numerator) / sum(denominator)`` over the rows (kind ``ratio``), the sum of the numerator
    (``total``), a quantile of the numerator over rows whose denominator is not 0 (``quantile``), or a share, a mean up
    to a time, or a quantile of the Kaplan-Meier curve (``survival``, ``survival mean``, ``survival quantile``).

    Parameters
    ----------
    name
        Its name, without parameters.
    title
        What it is, in a few words.
    row
        What a row is: a page of results, the first page of a query, an opened result, a session, a user, a purchase, a
        rating.
    numerator, denominator
        Columns of the facts (`judged.online.facts`), with parameters in braces: ``clicked_to_{k}``.
    unit
        Of the value.
    better
        1: more is better, -1: less is, 0: it depends.
    formula
        The formula in words.
    window
        What time a row looks at.
    attribution
        What counts as belonging to a page.
    source
        Where it is from.
    misleads
        When it misleads.
    parameters
        Names and default values; ``k`` is the cutoff, written behind an ``@``.
    needs
        What the log must tell: of `InteractionLog.has`.
    biased
        Clicks depend on rank: the value must not be read as quality without CTR by rank beside it.
    kind
        As above.
    changed
        The parameters that were given: they stand in the name.

    Examples
    --------
    >>> from judged.online import online_metric
    >>> str(online_metric("ImpressionCTR@5")), online_metric("SatisfiedClicks(t=20)").parameters["t"]
    ('ImpressionCTR@5', 20.0)
    """

    name: str
    title: str
    row: Row
    numerator: str
    denominator: str
    unit: Unit
    better: Literal[-1, 0, 1]
    formula: str
    window: str
    attribution: str
    source: str
    misleads: str
    parameters: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    needs: tuple[str, ...] = ()
    biased: bool = False
    kind: Kind = "ratio"
    changed: tuple[str, ...] = ()

    def needed(self) -> tuple[str, ...]:
        """Name what the log must tell, with these parameters: of `InteractionLog.has`."""
        return self.needs if self.parameters.get("k") is None else (*self.needs, "ranks")

    def columns(self) -> tuple[str, str]:
        """Name the two columns, parameters filled in; a cutoff counts what is at ranks 1 to k."""
        values = {name: written(value) for name, value in self.parameters.items()}
        behind = "" if self.parameters.get("k") is None else f"_to_{values['k']}"
        return self.numerator.format(**values) + behind, self.denominator.format(**values) + behind

    def given(self, **values: float) -> OnlineMetric:
        """Give the same metric with other parameters."""
        kind = _QUANTILE.get(self.kind, self.kind) if "q" in values else self.kind
        changed = tuple(dict.fromkeys((*self.changed, *values)))
        return replace(self, parameters={**self.parameters, **values}, changed=changed, kind=kind)

    def __str__(self) -> str:
        inside = ",".join(f"{name}={written(self.parameters[name])}" for name in self.changed if name != "k")
        cutoff = self.parameters.get("k")
        return f"{self.name}{f'({inside})' if inside else ''}{'' if cutoff is None else f'@{written(cutoff)}'}"

    def __hash__(self) -> int:
        return hash(str(self))


def written(value: float | None) -> str:
    """Write a parameter: whole numbers whole.

    >>> written(30.0), written(0.95), written(None)
    ('30', '0.95', 'all')
    """
    if value is None:
        return "all"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
