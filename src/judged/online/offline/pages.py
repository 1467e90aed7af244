"""Which pages an answer about judgments and users rests on: what the answers of this package have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.online.log import LogAnswer, about
from judged.online.numbers import ALL, percent
from judged.results import TEXT, Column, number
from judged.results.notes import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.online.offline.concordance import Estimate
    from judged.online.offline.joined import Joined

SHARE, _CHANGE = (number(3, sign)._replace(limit=f"{{:{sign}.3f}}".format) for sign in ("", "+"))
_NOBODY = "the log names no users: each session, or page where it names none, counts as one"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JudgedPages(LogAnswer):
    """An answer about the pages of a log whose topics are judged.

    Attributes
    ----------
    log, qrels : str
        Their names.
    how : str
        How topics of pages were found.
    pages, joined : int
        Pages of the log, and those that count: all but those in `left_out`.
    left_out : tuple of (str, int)
        Why pages were left out, and how many.
    by, slices : str or None, tuple of (str, int)
        The column that was sliced by, and pages of each value.
    unit, units, level : str, int, float
        What intervals are made over, ``session`` where no page names a user, how many of these, and the confidence.
    """

    asked: ClassVar[tuple[str, ...]] = ("qrels", "how", "pages", "joined", "by", "units")

    qrels: str
    how: str
    pages: int
    joined: int
    left_out: tuple[tuple[str, int], ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    units: int

    def facts(self) -> dict[str, Any]:
        """Give which pages count and why others do not."""
        return {
            **super().facts(),
            "left_out": [{"reason": reason, "pages": count} for reason, count in self.left_out],
            "slices": [{"slice": name, "pages": count} for name, count in self.slices],
        }

    @property
    def counted(self) -> str:
        """Which pages count, in words."""
        gone = "; ".join(f"{count} {reason}" for reason, count in self.left_out)
        some = f"{self.joined} of {self.pages} pages of {self.log} have a topic judged in {self.qrels}"
        return f"{some}, found {self.how}{f'; left out: {gone}' if gone else ''}."

    @property
    def intervals(self) -> str:
        """What intervals are made over, in words."""
        return f"{percent(self.level)} intervals take whole {self.unit}s for what varies, and are about these topics"

    def slice_columns(self, rows: Sequence[Any]) -> tuple[Column, ...]:
        """Make the columns of slices: for data, and for people where there are some."""
        slices = [row.slice for row in rows]
        shown = [ALL if name is None else name for name in slices]
        named = (Column("sliced", shown, TEXT, self.by, only="people"),) if self.by else ()
        return (Column("slice", slices, TEXT, only="data"), *named)


def rests_on(
    log: InteractionLog, qrels: Qrels, joined: Joined, by: str | None, unit: str, level: float
) -> dict[str, Any]:
    """Give the attributes of `JudgedPages`."""
    slices = tuple((name, int((joined.slices == at).sum())) for at, name in enumerate(joined.values))
    known = {name: getattr(joined, name) for name in ("how", "pages", "left_out", "units")}
    known |= {"qrels": qrels.name, "joined": len(joined.serp), "by": by, "slices": slices}
    shared = about(log, unit, level, {})
    if unit != shared["unit"]:
        shared["notes"] += (Note("no-users", _NOBODY),)
    return known | shared


def estimates(found: Sequence[Estimate], name: str, title: str | None = None, *, signed: bool = False) -> Column:
    """Make a column of estimates with their intervals; with signs where they may be below 0."""
    limits = [(one.low, one.high) if one.known else None for one in found]
    return Column(name, [one.value for one in found], _CHANGE if signed else SHARE, title, limits)
