"""Headline of a comparison of several systems: whether one of them is significantly the best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.pair import is_test_of_means
from judged.results import Axis, Headline, counted
from judged.stats.inputs import topics_text
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from judged.comparison.answer import MeasureComparison
    from judged.results import Status


def best_run_headline(compared: MeasureComparison, baseline: str | None, n_topics: int) -> Headline:
    """Return whether the first system by a measure is significantly best, with its value.

    If another system than the baseline is first, the headline is the number of systems that are significantly better
    than the baseline. Only tested pairs count.
    """
    ranked = [compared.estimates[i] for i in compared.order()]
    first = ranked[0]
    if math.isnan(first.value):
        return Headline("unknown", "no scores", f"No run has a score by {compared.name}.")
    ties = sum(estimate.value == first.value for estimate in ranked) - 1
    subject = f"{first.run} and {counted(ties, 'other run')} are" if ties else f"{first.run} is"
    reference = baseline or first.run
    pairs = [pair for pair in compared.pairs if reference in {pair.first, pair.second}]
    n_worse = len(compared.better_than.get(reference, ()))
    n_better = sum(reference in beaten for beaten in compared.better_than.values())
    is_of_means = all(is_test_of_means(pair.result.test) for pair in pairs)
    better, worse, of = ("better", "worse", "than") if is_of_means else ("ahead", "behind", "of")
    status: Status = "same"
    if not pairs:
        finding = "Only one run is scored" if len(ranked) == 1 else f"{subject} first, without a test"
        status, word, sentence = "info", "not compared", f"{finding}, over {topics_text(n_topics)}."
    elif all(pair.insufficiency is not None for pair in pairs):
        status, word = "unknown", "not enough data"
        sentence = f"A verdict requires at least {MIN_UNITS['verdict']} topics, got {n_topics}."
    elif compared.higher_is_better is None:
        status, word, sentence = "info", "highest", f"{subject} highest, which is neither good nor bad."
    elif first.run != reference:
        status, word = "better" if n_better else "same", f"{n_better or 'none'} {better}"
        sentence = f"{_of_others(n_better, len(pairs))} significantly {better} {of} the baseline {baseline}."
    else:
        status, word = ("better", "best run") if n_worse == len(pairs) else ("same", "no single best run")
        sentence = f"{subject} first; {_of_others(n_worse, len(pairs))} significantly {worse}."
    axis = Axis(0.0, 1.0) if 0 <= first.value <= 1 else None
    return Headline(status, word, sentence, f"{compared.name} of {first.run}", first.value, ci=first.ci, axis=axis)


def _of_others(count: int, others: int) -> str:
    return f"{count} of {counted(others, 'other run')} {'is' if count == 1 else 'are'}"
