"""What topics that were seen say of rare large losses: a mean is at the mercy of those that none of them shows."""

from __future__ import annotations


def share_bound(seen: int, n: int, level: float = 0.95) -> float:
    """Give the largest share of all topics that is not ruled out, where so many of n had something (Clopper-Pearson).

    >>> round(share_bound(0, 48), 3), round(share_bound(3, 48), 3), share_bound(5, 5)
    (0.061, 0.154, 1.0)
    """
    from scipy.special import betaincinv

    return 1.0 if seen >= n else float(betaincinv(seen + 1, n - seen, level))


def unseen_loss(margin: float, n: int, level: float = 0.95) -> float:
    """Give the loss that outweighs a margin on as many topics as n may have missed altogether.

    >>> round(unseen_loss(0.02, 48), 2), round(unseen_loss(0.02, 150), 2)
    (0.33, 1.01)
    """
    # On a share of topics up to `share_bound(0, n)` such a loss is not ruled out, whatever a test of the mean says.
    return margin / share_bound(0, n, level)
