"""`agree`: several judges' qrels in, their agreement out."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.agreement.answer import JudgeAgreement, PairAgreement, TopicAgreement
from judged.agreement.judges import Judges, judges_of
from judged.agreement.systems import Policies, system_effects
from judged.notes import Note
from judged.stats.agreement import ENOUGH, Agreement, cohen_kappa, confusion, fleiss_kappa, krippendorff_alpha

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged._types import Bools
    from judged.judging import Precision, TiePolicy
    from judged.stats.agreement import Scale

_NO_CATEGORIES = (
    "grades that are no whole numbers are measurements, which are next to never equal; see alpha, or use rel"
)


def agree(
    *qrels: Any,
    runs: Any = (),
    measures: Any = ("nDCG@10",),
    rel: float | Mapping[str, float] | None = None,
    scale: Scale = "ordinal",
    own: bool = False,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
    level: float = 0.95,
) -> JudgeAgreement:
    """Compare judges by what they judged in common, and by how they rank systems.

    Parameters
    ----------
    qrels
        Two or more, one a judge: each a `Qrels` or anything that `Qrels.of` takes; or ``{judge: qrels}``. Where a
        pair has several labels (subtopics), the highest counts.
    runs, measures
        Systems, as `evaluate` takes them, and the measures by which they are ranked. Without runs only grades are
        compared.
    rel
        Make grades from this one on 1 and all others 0; ``{judge: grade}`` where scales differ. Measures see these
        grades too.
    scale
        What alpha takes grades for: ``ordinal``, an order; ``interval``, numbers whose differences mean something;
        ``nominal``, names.
    own
        Whether each judge's scores of systems rest on all documents that this judge judged. Otherwise on those that
        both judged, so that nothing but the grades differs. In both cases on the topics that both have.
    ties, depth, precision
        How runs are ranked, as for `judge`.
    level
        Of the intervals, which are over topics.

    Returns
    -------
    JudgeAgreement

    Raises
    ------
    InputError
        If there are fewer than two judges, ``rel`` names one that does not exist, or something cannot be read.
    MeasureError
        If a measure looks at single labels (subtopics) or at other topics' judgments.

    Examples
    --------
    >>> one = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
    >>> other = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0}}
    >>> found = agree(one, other)
    >>> print(found.table().text())
    judge   other judge  topics  shared   same  kappa  linear  quadratic  alpha (ordinal)
    judge1  judge2            2       4  0.750  0.636   0.714      0.800            0.790
    >>> found.pairs[0].confusion.counts.tolist()
    [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    """
    judges = judges_of(qrels, rel)
    topic, everybody = judges.everything.index.topic, range(len(judges.names))
    pairs = tuple(_pair(judges, one, other, scale, level) for one, other in combinations(everybody, 2))
    fleiss = fleiss_kappa(judges.grades, groups=topic, level=level)
    if judges.fractional(*everybody):
        fleiss = _undefined(fleiss)
    nothing = runs is None or (isinstance(runs, (list, tuple, dict)) and not runs)
    policies = Policies(ties, depth, precision)
    systems = () if nothing else system_effects(judges, runs, measures, policies, own=own)
    alpha = krippendorff_alpha(judges.grades, scale, groups=topic, level=level)
    notes = [*_notes(judges, pairs)]
    if systems and own:
        text = "Each judge's scores rest on all of this judge's documents: not only grades differ."
        notes.append(Note("own-documents", text))
    if 1 < alpha.groups < ENOUGH:
        text = f"{alpha.groups} topics are few: intervals hold less than they say where grades are rare."
        notes.append(Note("few-topics", text))
    return JudgeAgreement(judges.names, judges.levels, pairs, alpha, fleiss, systems, tuple(notes))


def _pair(judges: Judges, one: int, other: int, scale: Scale, level: float) -> PairAgreement:
    first, second = judges.grades[:, one], judges.grades[:, other]
    both = judges.both(one, other)
    options: dict[str, Any] = {"groups": judges.everything.index.topic, "level": level}
    kappa = cohen_kappa(first, second, **options)
    fractional = judges.fractional(one, other)
    return PairAgreement(
        first=judges.names[one],
        second=judges.names[other],
        shared=int(both.sum()),
        only_first=int((~np.isnan(first) & ~both).sum()),
        only_second=int((~np.isnan(second) & ~both).sum()),
        same=float((first == second)[both].mean()) if both.any() else math.nan,
        kappa=_undefined(kappa) if fractional else kappa,
        linear=cohen_kappa(first, second, "linear", **options),
        quadratic=cohen_kappa(first, second, "quadratic", **options),
        alpha=krippendorff_alpha(np.stack([first, second], axis=1), scale, **options),
        confusion=confusion(first, second),
        topics=_topics(judges, one, other, both),
    )


def _undefined(found: Agreement) -> Agreement:
    """Take the value of a coefficient for categories away."""
    if not found.units:
        return found
    return replace(
        found, value=math.nan, observed=math.nan, expected=math.nan, interval=None,
        note=_NO_CATEGORIES,
    )  # fmt: skip


def _topics(judges: Judges, one: int, other: int, both: Bools) -> tuple[TopicAgreement, ...]:
    index = judges.everything.index
    topic, change = index.topic[both], (judges.grades[:, other] - judges.grades[:, one])[both]
    size = len(index.topics)
    shared = np.bincount(topic, minlength=size)
    sums = (np.bincount(topic, weights=part, minlength=size) for part in (change == 0, np.abs(change), change))
    means = [np.divide(part, shared, out=np.zeros(size), where=shared > 0).tolist() for part in sums]
    return tuple(
        TopicAgreement(index.topics[at], int(shared[at]), means[0][at], means[1][at], means[2][at])
        for at in np.flatnonzero(shared).tolist()
    )


def _notes(judges: Judges, pairs: tuple[PairAgreement, ...]) -> Iterator[Note]:
    tops = {name: judges.scale(at)[-1] for at, name in enumerate(judges.names)}
    if len(set(tops.values())) > 1:
        some = "; ".join(f"{name} up to {top:g}" for name, top in [*tops.items()][:4])
        text = (
            f"The judges' highest grades differ ({some}): equal numbers need not mean the same. Set rel for each judge"
            " if their scales are different."
        )
        yield Note("different-grades", text)
    for pair in pairs:
        if 0 < pair.shared < min(pair.only_first, pair.only_second):
            text = (
                f"{pair.first} and {pair.second} share {pair.shared} judged documents, fewer than either judged alone:"
                " what is shared may not be like the rest."
            )
            yield Note("few-shared", text)
    apart = [f"{pair.first} and {pair.second}" for pair in pairs if not pair.shared]
    if apart:
        some = "; ".join(apart[:3]) + ("; ..." if len(apart) > 3 else "")
        text = f"{len(apart)} of {len(pairs)} pairs of judges judged nothing in common: {some}."
        yield Note("nothing-shared", text)
