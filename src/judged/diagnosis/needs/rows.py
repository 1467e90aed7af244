"""Systems by need as numbers, with look-ups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Floats, Ints
    from judged.comparison import Comparison
    from judged.diagnosis.needs.consistency import Consistency
    from judged.evaluation import Scores


@dataclass(frozen=True)
class NeedsSummary:
    """One run and measure over all needs, each counted once."""

    run: str
    measure: str
    # mean, mean_ci: mean over needs of the mean over wordings, with its interval over needs
    mean: float
    mean_ci: tuple[float, float] | None
    # worst, worst_ci: the same of the worst wording of each need
    worst: float
    worst_ci: tuple[float, float] | None
    best: float  # the same of the best wording
    deviation: float  # the standard deviation between wordings, averaged over the needs with two or more
    consistency: Consistency  # the share of the variance that lies between needs: the rest is between wordings
    # overlap, rbo: how alike the rankings of two wordings of a need are, averaged over pairs and then over needs; NaN
    # where there are no rankings to look at
    overlap: float
    rbo: float


@dataclass(frozen=True, eq=False, repr=False)
class NeedsTable:
    """Systems by need, as numbers: what sentences, tables and charts are made of.

    With R runs, M measures and N needs.
    """

    scores: Scores  # by query id
    by_need: Scores  # the means over wordings, with needs as topics
    needs: tuple[str, ...]  # N: in byte order
    query_ids: tuple[tuple[str, ...], ...]  # N: the wordings of each need that count
    # mean, worst, best, deviation: (R, M, N): over the wordings of each need; NaN where it has no score, and no
    # deviation for one wording
    mean: Floats
    worst: Floats
    best: Floats
    deviation: Floats
    variants: Ints  # (R, M, N): how many wordings have a score
    # overlap, rbo: (R, N): how alike the rankings of two wordings are, on average; NaN where that is not known
    overlap: Floats
    rbo: Floats
    summaries: tuple[NeedsSummary, ...]  # one a run and measure
    comparison: Comparison | None  # the runs compared over needs
    # depth, p: of the overlap and of RBO
    depth: int
    p: float
    queries: Mapping[str, str] = field(default_factory=dict[str, str])  # texts of wordings
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = (self.mean, self.worst, self.best, self.deviation, self.variants, self.overlap, self.rbo)
        for column in columns:
            column.flags.writeable = False

    def summary(self, run: str | None = None, measure: str | None = None) -> NeedsSummary:
        """Give one summary; the first run and measure, where none is named.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        row, column = self.place(run, measure)
        return self.summaries[row * len(self.scores.measures) + column]

    def place(self, run: str | None, measure: str | None) -> tuple[int, int]:
        """Give the place of a run and a measure; the first ones for None."""
        known: list[int] = []
        for name, names in ((run, self.scores.run_names), (measure, self.scores.measure_names)):
            if name is not None and name not in names:
                raise InputError(f"there is no {name!r} here", fix=f"one of {', '.join(names)}")
            known.append(0 if name is None else names.index(name))
        return known[0], known[1]
