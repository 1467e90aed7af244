"""The choices behind the facts that no metric carries in its name: they are printed with every result."""

from __future__ import annotations

from dataclasses import dataclass

from judged.online.arguments import need


@dataclass(frozen=True)
class FactSettings:
    """What counts as belonging together.

    Parameters
    ----------
    reformulation_gap
        Seconds within which the next query of a session may be a reformulation.
    attribution_window
        Seconds within which a cart or purchase that names no page counts for the last page of its session.
    winsorise
        Money of a page above this quantile, of the pages that brought any, counts as that quantile.
    success
        Seconds of dwell that make a session successful, where a metric does not say so itself (`t`).

    Raises
    ------
    InputError
        If one is no number, a time is negative or too long, or the quantile is not above 0 and at most 1.
    """

    reformulation_gap: float = 300.0
    attribution_window: float = 1800.0
    winsorise: float = 0.999
    success: float = 30.0

    def __post_init__(self) -> None:
        need(**vars(self))

    def policies(self) -> tuple[tuple[str, str], ...]:
        """Name them for a result."""
        return (
            ("reformulation gap", f"{self.reformulation_gap:g} s"),
            ("attribution", f"same page, or else the last of the session within {self.attribution_window:g} s"),
            ("money", f"winsorised at {100 * self.winsorise:g} % of the pages that brought any"),
        )
