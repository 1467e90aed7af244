"""What a significant test says of two systems: of their means, or of whatever else it looks at."""

from __future__ import annotations

import math
from typing import NamedTuple


class Claim(NamedTuple):
    """How a finding is put into words; ``{loser}`` and ``{measure}`` stand for names."""

    verb: str  # what follows the name of the winner
    letters: str  # what the letters of a leaderboard mean: the systems that this one is ...
    # ahead, behind: what the signs of a leaderboard mean: this one is ..., or ... the baseline.
    ahead: str
    behind: str
    open: str  # what is said where nothing is shown of `{loser}` and `{winner}`


_OF_MEANS = Claim(
    "is better than {loser} in {measure}",
    "significantly better than",
    "significantly better",
    "worse than",
    "No difference between {winner} and {loser} is shown in {measure}",
)
_OTHERS = {
    "ratio": _OF_MEANS._replace(verb="is better than {loser} in {measure} by the ratio of geometric means"),
    "sign": Claim(
        "is ahead of {loser} in {measure} on more topics than it is behind",
        "ahead of on significantly more topics than behind",
        "ahead on significantly more topics",
        "behind on more than",
        "That {winner} or {loser} is ahead in {measure} on more topics than it is behind is not shown",
    ),
    "wilcoxon": Claim(
        "is favoured over {loser} in {measure} by the signed ranks of their differences",
        "favoured over by the signed ranks of differences, significantly",
        "significantly favoured by signed ranks",
        "disfavoured against",
        "That the signed ranks of differences in {measure} favour {winner} or {loser} is not shown",
    ),
    "nemenyi": Claim(
        "has a better mean rank over topics than {loser} in {measure}",
        "significantly better than in its mean rank over topics",
        "significantly better in its mean rank over topics",
        "worse than",
        "No difference between the mean ranks of {winner} and {loser} is shown in {measure}",
    ),
}


def claim_of(test: str) -> Claim:
    """Give the words for what a test shows."""
    return _OTHERS.get(test, _OF_MEANS)


def of_means(test: str) -> bool:
    """Whether a test speaks of the means that stand beside it, or of their ratio."""
    return test == "ratio" or test not in _OTHERS


def shown(test: str, winner: str, loser: str, measure: str) -> str:
    """Say what a significant test shows.

    >>> shown("t", "new", "old", "AP"), shown("sign", "new", "old", "AP")
    ('new is better than old in AP', 'new is ahead of old in AP on more topics than it is behind')
    """
    return f"{winner} {claim_of(test).verb.format(loser=loser, measure=measure)}"


def level_text(level: float) -> str:
    """Write the level of an interval, with as many digits as tell it from 100%.

    >>> level_text(0.95), level_text(1 - 0.05 / 7), level_text(1 - 0.05 / 66)
    ('95%', '99.29%', '99.924%')
    """
    rest = 100 * (1 - level)
    digits = max(0, 1 - math.floor(math.log10(rest) + 1e-9))
    text = f"{100 - rest:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text}%"
