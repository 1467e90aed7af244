"""Scores: what `evaluate` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from judged.evaluation.document import document
from judged.evaluation.score_table import ScoreTable
from judged.evaluation.storage import load, save
from judged.evaluation.table import summary_table
from judged.stats import IntervalMethod

if TYPE_CHECKING:
    from pathlib import Path

    from judged.stats import IntervalName


@dataclass(frozen=True, eq=False, repr=False)
class Scores(ScoreTable):
    """What `evaluate` returns: a score for every topic, run and measure, with what the numbers rest on.

    Its attributes, and its ways to numbers and tables, are those of `ScoreTable`.

    Examples
    --------
    >>> from judged import evaluate
    >>> scores = evaluate({"q1": {"d1": 1}, "q2": {"d2": 1}},
    ...                   {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 2.0, "d2": 1.0}}, ["AP", "P@1"])
    >>> scores.aggregate()
    {'run': {'AP': 0.75, 'P@1': 0.5}}
    >>> scores.per_topic()["run"]["AP"]
    {'q1': 1.0, 'q2': 0.5}
    """

    def to_dict(
        self,
        *,
        ci: IntervalName = "adjusted",
        level: float = 0.95,
        resamples: int = 2000,
        seed: int = 0,
        per_topic: bool = False,
    ) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: the same document that the CLI prints."""
        method = IntervalMethod(ci, level, resamples, seed)
        estimates = self.estimates(ci=ci, level=level, resamples=resamples, seed=seed)
        return document(self, estimates, method, per_topic=per_topic)

    def save(self, path: str | Path) -> None:
        """Write the table and its provenance to a Parquet file, whole or not at all."""
        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            If the file is not one of ours.
        """
        return load(cls, path)

    def __repr__(self) -> str:
        return "\n".join([summary_table(self).text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return summary_table(self).html(notes=self.warnings)
