"""A comparison in plain words: what may be concluded from it, and what not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.stats.results import p_text

if TYPE_CHECKING:
    from judged.stats.results import Difference

_TESTS = {
    "randomisation": "randomisation test",
    "t": "t-test",
    "wilcoxon": "Wilcoxon test",
    "sign": "sign test",
    "bootstrap": "bootstrap test",
    "bca": "BCa bootstrap test",
    "studentised": "studentised bootstrap test",
    "ratio": "randomisation test of the ratio",
    "bayes": "Bayesian comparison",
}


def sentence(found: Difference) -> str:
    """Say what was found; second and first are the two systems."""
    if found.n == 0:
        return "No topic has a score for both systems: there is nothing to compare."
    if found.n == 1:
        return f"On the only topic {_seen(found)}; one topic cannot show whether others would agree."
    if found.difference == 0 and math.isnan(found.effect):
        return f"The two systems have the same score on each of the {found.n} topics: these show no difference."
    if found.posterior is not None:
        return _belief(found)
    if math.isnan(found.p):
        return (
            f"On each of the {found.n} topics {_seen(found)}; the {_test(found)} judges by how much differences"
            " vary, and these do not: take the randomisation test."
        )
    return _tested(found)


def _tested(found: Difference) -> str:
    over = f"Over {found.n} topics {_seen(found)}{_interval(found)}"
    alpha = f"{1 - found.level:.2g}"
    p = f"p {p_text(found.p)}, {_test(found)}"
    if found.adjusted is not None and found.correction not in {"", "none", found.method}:
        p += f"; p {p_text(found.adjusted)} with the correction {found.correction}"
    if found.significant:
        return f"{over}. Chance alone would seldom give as much ({p}): significant at {alpha}."
    claim = {
        "two-sided": "the two cannot be told apart with these",
        "greater": "that it is higher cannot be shown with these",
        "less": "that it is lower cannot be shown with these",
    }[found.alternative]
    return f"{over}, but {claim} {found.n} topics ({p}, above {alpha}). A real difference may have been missed."


def _belief(found: Difference) -> str:
    posterior = found.posterior
    if posterior is None or math.isnan(found.statistic):
        return ""
    return (
        f"Over {found.n} topics {_seen(found)}{_interval(found)}. Knowing nothing but these scores, and taking"
        f" differences as normal, the probability that its true mean is higher is {_share(posterior.higher)}, and"
        f" that the two means are within {posterior.rope:g} of each other {_share(posterior.equivalent)}."
    )


def _test(found: Difference) -> str:
    return _TESTS.get(found.method, f"{found.method} test")


def _seen(found: Difference) -> str:
    """Say which system is higher, and by how much."""
    average = "" if found.n == 1 or (math.isnan(found.p) and found.posterior is None) else " on average"
    if found.method == "ratio":
        kind = "geometric mean" if found.n > 1 else "score"
        return f"the second system's {kind} is {_number(math.exp(found.difference))} times the first's"
    if found.difference == 0:
        return f"both systems score the same{average}"
    word = "higher" if found.difference > 0 else "lower"
    return f"the second system scores {_number(abs(found.difference))} {word}{average}"


def _interval(found: Difference) -> str:
    if found.interval is None:
        return ""
    low, high = found.interval
    kind = f"{found.level * 100:g}% {'interval' if found.posterior is None else 'credible interval'}"
    if math.isinf(low) and math.isinf(high):
        return f" (no finite {kind}: too few topics)"
    shown = math.exp if found.method == "ratio" else float
    if math.isinf(high):
        text = f"at least {_number(shown(low))}"
    elif math.isinf(low):
        text = f"at most {_number(shown(high))}"
    else:
        text = f"{_number(shown(low))} to {_number(shown(high))}"
    return f" ({kind} {text})"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _share(probability: float) -> str:
    """Write a probability that is neither 0 nor 1, however near.

    >>> _share(0.9234), _share(0.99999), _share(0.0)
    ('0.923', 'above 0.999', 'below 0.001')
    """
    if probability > 0.999:
        return "above 0.999"
    return "below 0.001" if probability < 0.001 else f"{probability:.3f}"
