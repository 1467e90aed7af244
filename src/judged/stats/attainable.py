"""The least p-value that so few topics, or resamples, can give: an alpha below it is reached by no difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.stats.resampling import SignFlips

if TYPE_CHECKING:
    from judged.stats.results import Alternative

_SIGN_FLIPS = ("randomisation", "ratio")
_COUNTED = ("sign", "wilcoxon")
_BOOTSTRAPS = ("bootstrap", "bca", "studentised")
_ROUNDING = 1e-12


def least_p(
    n: int, test: str = "randomisation", alternative: Alternative = "two-sided", resamples: int = 100_000
) -> float:
    """Give a p-value that a paired test cannot go below, however large the differences are.

    Tests that flip signs, or count and rank them, have 2^n arrangements, of which one is the most extreme to a side;
    those that draw resamples count what was seen as one more.

    Parameters
    ----------
    n
        Topics that are compared.
    test, alternative, resamples
        As for `judged.stats.paired.paired_test`.

    Returns
    -------
    float
        1 for fewer than two topics, of which there is no test; 0 for tests that know no bound, such as ``t``.

    Examples
    --------
    >>> least_p(5), least_p(5, alternative="less"), least_p(5, "t"), least_p(48, resamples=999)
    (0.0625, 0.03125, 0.0, 0.001)
    """
    if n < 2:
        return 1.0
    if test in _COUNTED or (test in _SIGN_FLIPS and SignFlips(n, resamples, 0).exact):
        return 2.0 ** (1 - n if alternative == "two-sided" else -n)
    return 1 / (resamples + 1) if test in _SIGN_FLIPS + _BOOTSTRAPS else 0.0


def out_of_reach(
    alpha: float,
    n: int,
    test: str = "randomisation",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
) -> bool:
    """Tell whether no difference could be significant: the least p-value is above alpha.

    For one of many comparisons give the alpha that is left after the correction, such as alpha / family.

    Examples
    --------
    >>> out_of_reach(0.05, 5), out_of_reach(0.05, 6), out_of_reach(0.05 / 2, 6), out_of_reach(0.05, 5, "t")
    (True, False, True, False)
    """
    return least_p(n, test, alternative, resamples) > alpha * (1 + _ROUNDING)
