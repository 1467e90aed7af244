"""What `preference_agreement` returns, and the forms in which it can be had."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judged.answer import plain
from judged.online.offline.agreement_rows import AgreementTable
from judged.online.offline.layout import cell
from judged.online.offline.preferences import RULES
from judged.tables import Table

if TYPE_CHECKING:
    from judged.online.offline.agreement_rows import AgreementRow

_WIDTH = 100  # of sentences, where no width is given


@dataclass(frozen=True, eq=False, repr=False)
class PreferenceAgreement(AgreementTable):
    """Whether preferences from clicks agree with judgments, by rule and slice.

    Its attributes are those of `AgreementTable`.
    """

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return _sentences(self)

    def table(self) -> Table:
        """Lay out one row a rule and slice."""
        header = ["rule", *([self.by] if self.by else []), "preferences", "judged", "tied", "decided", f"{self.unit}s",
                  "agreement", "upper is better", "expected by rank", "gain"]  # fmt: skip
        rows: list[tuple[str, ...]] = []
        for one in self.rows:
            sliced = ["all" if one.slice is None else one.slice] if self.by else []
            counts = (one.preferences, one.judged, one.tied, one.decided, one.units)
            cells = (cell(one.agreement), cell(one.by_rank), cell(one.expected), cell(one.gain, "+.3f"))
            rows.append((one.rule, *sliced, *map(str, counts), *cells))
        return Table(tuple(header), tuple(rows), labels=2 if self.by else 1)

    def text(self, *, width: int | None = None) -> str:
        """Write for a terminal."""
        wrapped = "\n".join(
            textwrap.fill(one, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)
            for one in self.sentences
        )
        return f"{self.table().text(width=width)}\n\n{wrapped}"

    def markdown(self) -> str:
        """Write as Markdown."""
        return "\n\n".join([self.table().markdown(), "\n".join(f"- {one}" for one in self.sentences)])

    def csv(self) -> str:
        """Write one row a rule and slice, in full precision; nothing where something is not known."""
        counts = ("preferences", "judged", "tied", "decided", "agreed", "units")
        shares = ("agreement", "by_rank", "expected", "gain")
        header = ["rule", "by", "slice", *counts, *(f"{name}{end}" for name in shares for end in ("", "_low", "_high"))]
        rows: list[tuple[str, ...]] = []
        for one in self.rows:
            numbers = [part for name in shares for part in plain(list(vars(getattr(one, name)).values()))]
            parts = [one.rule, self.by, one.slice, *(getattr(one, name) for name in counts), *numbers]
            rows.append(tuple("" if part is None else str(part) for part in parts))
        return Table(tuple(header), tuple(rows)).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: None for what is not known."""
        names = ("log", "qrels", "how", "pages", "joined", "by", "unit", "units", "depth", "level")
        return {
            **{name: plain(getattr(self, name)) for name in names},
            "left_out": [{"reason": reason, "pages": count} for reason, count in self.left_out],
            "rules": [{"name": name, "meaning": RULES[name]} for name in self.rules],
            "slices": [{"slice": name, "pages": count} for name, count in self.slices],
            "rows": [plain(one) for one in self.rows],
            "repeated": plain(self.repeated) | {"share": plain(self.repeated.share)},
            "sentences": list(self.sentences),
        }

    def __repr__(self) -> str:
        return self.text()


def _sentences(found: AgreementTable) -> tuple[str, ...]:
    said = [_pages(found), *(_told(one) for one in found.rows if one.slice is None)]
    if found.repeated.comparisons:
        said.append(_again(found))
    said.append(
        "Agreement is the share of preferences between results of different grades that agree with the grades; ties are"
        " counted apart. Swaps at random would agree half of the time. 'Expected by rank' is the agreement of pairs at"
        f" the same ranks whatever was clicked; the gain over it is what the clicks say. {found.level:.0%} intervals"
        f" take whole {found.unit}s for what varies, and are about these topics."
    )
    return tuple(said)


def _pages(found: AgreementTable) -> str:
    gone = "; ".join(f"{count} {reason}" for reason, count in found.left_out)
    return (
        f"{found.joined} of {found.pages} pages of {found.log} have a topic judged in {found.qrels}, found"
        f" {found.how}{f'; left out: {gone}' if gone else ''}. Results down to rank {found.depth} count."
    )


def _again(found: AgreementTable) -> str:
    repeated = found.repeated
    return (
        f"Of {repeated.comparisons} pairs of preferences, from different pages, about the same two results of a topic"
        f" {repeated.share:.0%} prefer the same one. Where the list did not change this is no evidence for one rule: it"
        " then prefers the lower, or the upper, of the two each time."
    )


def _told(one: AgreementRow) -> str:
    if not one.decided:
        return f"{one.rule}: none of {one.preferences} preferences is between judged results of different grades."
    shown = (
        f"{one.rule}: {one.agreed} of {one.decided} decided preferences agree with the grades ({one.agreement});"
        f" the ranks alone would bring {one.expected.value:.3f}"
    )
    if not one.gain.excludes(0.0):
        return f"{shown}: that clicks say more is not shown (gain {one.gain})."
    way = "the clicks say more than the ranks" if one.gain.value > 0 else "the clicks agree less than the ranks"
    return f"{shown}: {way} (gain {one.gain})."
