"""What may be concluded of two systems, and what not, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.comparison.claims import claim_of, level_text, of_means, shown
from judged.decimals import decimal, p_text
from judged.stats.pairing import topics_text
from judged.stats.results import TEST_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.tested_pair import TestedPair, TopicDifference

_NAMES = {
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "hochberg": "Hochberg",
    "bh": "Benjamini-Hochberg",
    "by": "Benjamini-Yekutieli",
}


def name_of_correction(correction: str) -> str:
    """Give the name of a correction as it is written in a text."""
    return _NAMES.get(correction, correction)


def sentence(pair: TestedPair) -> str:
    """Say of a pair what its numbers allow to say."""
    found = pair.found
    if found.n < 2:
        some = "one topic" if found.n else "no topic"
        return f"{pair.second} and {pair.first} have {some} in common for {pair.measure}: nothing can be concluded."
    if not pair.gains and not pair.losses:
        return f"{pair.second} and {pair.first} have the same {pair.measure} on all {found.n} topics."
    parts = [_belief(pair) if found.posterior is not None else _verdict(pair), _spread(pair), _closeness(pair)]
    parts += [f"Note: {found.note}."] if found.note else []
    return " ".join(part for part in parts if part)


def _verdict(pair: TestedPair) -> str:
    test = pair.found.method
    if not of_means(test):
        return _of_topics(pair)
    what = f"{_size(pair)} over {pair.found.n} topics, {_p(pair)}"
    if pair.better is not None:
        return f"{shown(test, pair.better, pair.other(pair.better), pair.measure)}: {what}."
    missed = ""
    if not math.isnan(pair.detectable):
        many = f" with {pair.sharing} comparisons to allow for" if pair.sharing > 1 else ""
        missed = f": a difference below {decimal(pair.detectable, 3)} would often be missed{many}"
    return f"{_open(pair)}: {what}. That does not make them equal{missed}."


def _of_topics(pair: TestedPair) -> str:
    """Say what a test of signs or ranks shows, and that this is not the mean."""
    name = TEST_NAMES.get(pair.found.method, pair.found.method)
    test = _p(pair) if pair.found.correction == pair.found.method else f"{_p(pair)} ({name})"
    mean = f"{_size(pair)} over {pair.found.n} topics"
    if not pair.significant or pair.favoured is None:
        return f"{_open(pair)}: {test}. The test does not speak of the mean: {mean}."
    claim = shown(pair.found.method, pair.favoured, pair.other(pair.favoured), pair.measure)
    turned = ", which points the other way" if pair.better is None and pair.found.difference else ""
    return f"{claim}: {test}. The test does not speak of the mean: {mean}{turned}."


def _open(pair: TestedPair) -> str:
    claim = claim_of(pair.found.method).open
    return claim.format(winner=pair.second, loser=pair.first, measure=pair.measure)


def _belief(pair: TestedPair) -> str:
    posterior = pair.found.posterior
    if posterior is None:
        return ""
    return (
        f"The probability that {pair.second} is higher than {pair.first} in {pair.measure} is {posterior.higher:.1%}:"
        f" {_size(pair)} over {pair.found.n} topics. It is higher by more than {posterior.rope:g} with probability"
        f" {posterior.practically_higher:.1%}, lower by more with {posterior.practically_lower:.1%}."
    )


def _size(pair: TestedPair) -> str:
    size = (
        f"{pair.second} / {pair.first} {decimal(pair.shown_difference, 3)}"
        if pair.is_ratio
        else (f"{pair.second} - {pair.first} {decimal(pair.shown_difference, 4, '+')}")
    )
    limits = pair.shown_interval
    if limits is None:
        return size
    apart = "" if pair.agrees else ", made in another way than p, which decides"
    level = level_text(pair.found.level)
    return f"{size} ({level} interval {decimal(limits[0], 3)} to {decimal(limits[1], 3)}{apart})"


def _p(pair: TestedPair) -> str:
    found = pair.found
    if found.adjusted is None or found.correction == "none":
        return f"p {p_text(found.p, pair.alpha)}"
    if found.correction == found.method:  # the test of many systems allows for them itself
        return f"p {p_text(found.adjusted, pair.alpha)} ({TEST_NAMES.get(found.method, found.method)})"
    return f"p {p_text(found.adjusted, pair.alpha)} after {name_of_correction(found.correction)}"


def _spread(pair: TestedPair) -> str:
    """Say how large the difference is against the spread of the topics, and how they divide."""
    wins, ties, losses = pair.wins.wins, pair.wins.ties, pair.wins.losses
    effect = "" if math.isnan(pair.effects.dz) else f"Effect dz {pair.effects.dz:+.2f}; "
    start = f"{effect}{pair.second} is" if effect else f"{pair.second} is"
    return f"{start} higher on {topics_text(wins)}, equal on {ties}, lower on {losses}."


def _closeness(pair: TestedPair) -> str:
    return "" if pair.equivalence is None else pair.equivalence.sentence


def topics_sentence(pair: TestedPair) -> str:
    """Name the topics with the largest differences each way."""
    parts = [
        f"most for {name}: {_listed(topics)}"
        for name, topics in ((pair.second, pair.gains), (pair.first, pair.losses))
        if topics
    ]
    return f"Topics {'; '.join(parts)}." if parts else ""


def _listed(topics: Sequence[TopicDifference]) -> str:
    return ", ".join(f"{one.query_id} {decimal(abs(one.difference), 3)}" for one in topics)
