"""TrAP: average precision as cwl_eval sees it, as a user's weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.results.cache import cached_property
from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.cwl import ADAPTIVE, Expected, UserModel
from judged.scoring.measures.cwl_reading import Reading
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.measures.cwl_reading import Sheet


def falling_to(weights: Floats) -> Floats:
    """Give the continuation that leads from each weight to the next; nobody reads on after the last.

    >>> falling_to(np.array([[1.0, 0.5, 0.0, 0.0]])).tolist()
    [[0.5, 0.0, 0.0, 0.0]]
    """
    after = np.zeros_like(weights)
    after[:, :-1] = weights[:, 1:]
    return divide(after, weights)


@dataclass(frozen=True, eq=False)
class _Weighted(Expected):
    """Expectations under weights that need not add up to 1."""

    weights: Floats

    @cached_property
    def W(self) -> Floats:
        return self.weights

    @cached_property
    def ED(self) -> Floats:
        return 1.0 / self.weights[:, 0]

    def write_ED(self, sheet: Sheet, name: object) -> None:
        self._write_weights(sheet)
        sheet.top.judged.step(name, self.ED, "1 / W_of_rank_1", W_of_rank_1=self.weights[:, 0])

    def write_W(self, sheet: Sheet, amount: str) -> Sheet:  # noqa: ARG002
        self._write_weights(sheet)
        return sheet

    def write_reached(self, sheet: Sheet) -> None:
        self._write_weights(sheet)
        sheet.column("C", self.continuation, "W of the next rank / W", W=self.weights)
        sheet.column("reached", self.reached, "C of all ranks above, multiplied", C=self.continuation)

    def _write_weights(self, sheet: Sheet) -> None:
        relevant = np.maximum(self.reading.relevant[:, 0], 1.0)
        sheet.top.judged.step("R", relevant, "documents that gain something, returned or not, at least 1")
        sheet.notes()


@measure(
    category="user model",
    cite="Harman 1992; cwl_eval",
    use="To compare AP with other user models, with grades as gains and costs of documents.",
    misleads="It is not a user model: the weights depend on what comes next, do not add up to 1, and can grow with the"
    " rank, so ETU and ETC may be negative. For AP itself, use AP.",
    aliases={"TrAPCWLMetric": {}},
    properties=replace(ADAPTIVE, missing_matter=True),
    tools={"cwl_eval": "TrAP"},
)
class TrAP(UserModel):
    r"""Average precision in terms of C/W/L: with two grades, EU is AP.

    .. math:: W(i) = \frac{1}{R} \cdot \frac{\sum_{j \le i} g_j}{\sum_{j \le i} c_j}, \qquad
        C(i) = \frac{W(i+1)}{W(i)}

    R counts the judged documents that gain something. Before the first gain the sum above counts as 1. This is how
    cwl_eval 1.0.12 computes it, though its documentation says the opposite of its two: its ``AP`` divides by the
    relevant documents returned, and this one by all that are known.

    Examples
    --------
    >>> round(TrAP(max=1).of_list([1, 0, 1, 0, 1], missing=[1]), 3)  # AP, to the digit
    0.567
    """

    def continuation(self, reading: Reading) -> Floats:
        """The next weight, divided by this one."""
        return falling_to(self.weights(reading))

    def weights(self, reading: Reading) -> Floats:
        """Gain for each cost so far, divided by the number of relevant documents."""
        gained = np.where(reading.gained == 0, 1.0, reading.gained)
        gained[:, -1] = reading.gained[:, -1]
        relevant = np.maximum(reading.relevant, 1.0)
        reading.note("G", gained, "gained, or 1 until something is gained", gained=reading.gained)
        how, parts = f"G / {reading.spent_word} / R", {"G": gained, "spent": reading.spent, "R": float(relevant[0, 0])}
        return reading.note("W", gained / reading.spent / relevant, how, **parts)

    def expected(self, reading: Reading) -> Expected:
        """Take the weights as they are."""
        weights = self.weights(reading)
        return _Weighted(reading, falling_to(weights), weights)
