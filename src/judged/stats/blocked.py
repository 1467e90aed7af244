"""Tests of many systems over the same topics, in one place.

Every topic is a block: it meets every system, and its difficulty is taken out before systems are compared.

>>> [found.method for found in (tukey_hsd([[0.1, 0.2], [0.3, 0.5]]), nemenyi([[0.1, 0.2], [0.3, 0.5]]))]
['tukey', 'nemenyi']
"""

from judged.stats.anova import anova
from judged.stats.blocked_results import AgainstBaseline, AllPairs, Anova, Factor, Friedman
from judged.stats.dunnett import dunnett, randomised_dunnett
from judged.stats.friedman import friedman, nemenyi
from judged.stats.tukey import randomised_tukey, tukey_hsd

__all__ = [
    "AgainstBaseline",
    "AllPairs",
    "Anova",
    "Factor",
    "Friedman",
    "anova",
    "dunnett",
    "friedman",
    "nemenyi",
    "randomised_dunnett",
    "randomised_tukey",
    "tukey_hsd",
]
