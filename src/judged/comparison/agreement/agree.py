"""`agree`: several judges' qrels in, their agreement out, and what it does to measures and the order of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from judged.comparison.agreement.answer import JudgeAgreement, PairAgreement, SystemEffect, TopicAgreement
from judged.data.index import id_text
from judged.data.objects import is_ids
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.results.blocks import Note
from judged.results.spelling import hinting
from judged.results.types import ReadOnly
from judged.scoring.evaluation import measures_of, runs_of
from judged.scoring.evaluation.notes import origin_notes
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import withdrawn
from judged.scoring.measures.aggregates import aggregate
from judged.stats.agreement import ENOUGH, Agreement, cohen_kappa, confusion, fleiss_kappa, krippendorff_alpha
from judged.stats.rankings import kendall_tau, spearman, tau_ap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged, Precision, TiePolicy
    from judged.scoring.measures.base import Measure
    from judged.stats.agreement import Scale


@dataclass(frozen=True, eq=False)
class Judges(ReadOnly):
    """Several judges' grades of the same pairs of topic and document."""

    names: tuple[str, ...]  # J
    everything: Qrels = field(repr=False)  # every pair that some judge judged, with grade 0: for joining runs once
    # (P, J): in the order of `everything.index`; NaN where a judge did not judge the pair
    grades: Floats = field(repr=False)
    levels: tuple[float | None, ...]  # the grade from which each judge's grades were made 1, if they were
    origins: tuple[Note, ...] = ()  # what should be known of whose labels they were made

    def fractional(self, *judges: int) -> bool:
        """Whether one of these judges gave grades that are not whole numbers: a measurement, not a category."""
        grades = self.grades[:, list(judges)]
        return bool((grades[~np.isnan(grades)] % 1 != 0).any())

    def both(self, one: int, other: int) -> Bools:
        """Mark the pairs that both judged; (P,)."""
        return ~np.isnan(self.grades[:, one]) & ~np.isnan(self.grades[:, other])

    def scale(self, judge: int) -> tuple[float, ...]:
        """Give the different grades of one judge, rising."""
        grades = self.grades[:, judge]
        return tuple(np.unique(grades[~np.isnan(grades)]).tolist())


def _is_named(given: Any) -> bool:
    """Whether something is ``{name: judgments}`` and not ``{query_id: {doc_id: grade}}``."""
    if not isinstance(given, Mapping) or not given:
        return False
    first = next(iter(cast("Mapping[Any, Any]", given).values()))
    if isinstance(first, Mapping):
        return isinstance(next(iter(cast("Mapping[Any, Any]", first).values()), None), (Mapping, list, set, frozenset))
    return not is_ids(first)


def judges_of(given: Sequence[Any], rel: float | Mapping[str, float] | None) -> Judges:
    """Put judgments side by side."""
    if len(given) == 1 and _is_named(given[0]):
        several = [replace(Qrels.of(one), name=id_text(name, "name")) for name, one in given[0].items()]
    else:
        several = [Qrels.of(one, name=f"judge{at}") for at, one in enumerate(given, 1)]
    if len(several) < 2:
        raise InputError(f"{len(several)} judges cannot be compared", fix="give the judgments of at least two")
    names = _distinct(several)
    levels = _levels(names, rel)
    everything = _union(several)
    grades = np.full((len(everything), len(several)), np.nan)
    for at, (qrels, level) in enumerate(zip(several, levels, strict=True)):
        index = qrels.index
        codes = np.array([everything.index.codes[name] for name in index.topics], dtype=np.int64)
        rows = everything.index.rows_of(codes[index.topic], pa.array(index.row_names, pa.string()))
        own = index.grade if level is None else ((index.grade >= level) & (index.grade >= 0)).astype(np.float64)
        grades[rows, at] = own
    said = zip(names, several, strict=True)
    origins = tuple(
        replace(note, subject=name, of="judges") for name, qrels in said for note in origin_notes(qrels.origin)
    )
    return Judges(names, everything, grades, levels, origins)


def _distinct(several: Sequence[Qrels]) -> tuple[str, ...]:
    """Give each judge a name of its own: with the folder, then with a number, where names repeat."""
    names = [one.name for one in several]
    names = [
        f"{Path(one.where).parent.name}/{name}" if names.count(name) > 1 and Path(one.where).parent.name else name
        for one, name in zip(several, names, strict=True)
    ]
    made: list[str] = []
    for name in names:
        free = (other for at in count(2) if (other := f"{name}#{at}") not in {*made, *names})
        made.append(next(free) if name in made else name)
    return tuple(made)


def _levels(names: tuple[str, ...], rel: float | Mapping[str, float] | None) -> tuple[float | None, ...]:
    if not isinstance(rel, Mapping):
        return (rel,) * len(names)
    for name in rel:
        if name not in names:
            raise InputError(f"no judge is called {name!r}", fix=f"use one of {', '.join(names)}")
    return tuple(rel.get(name) for name in names)


def _union(several: Sequence[Qrels]) -> Qrels:
    pairs = pa.concat_tables([one.table.select(["query_id", "doc_id"]) for one in several])
    distinct = pairs.group_by(["query_id", "doc_id"]).aggregate([])
    nothing = pa.array(np.zeros(distinct.num_rows))
    return Qrels(distinct.append_column("relevance", nothing), "all judges", several[0].where)


_NO_CATEGORIES = (
    "grades that are not whole numbers are measurements, which are almost never equal; see alpha, or use rel"
)


@hinting
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
    policies = {"ties": ties, "depth": depth, "precision": precision}
    systems = () if nothing else system_effects(judges, runs, measures, policies, own=own)
    alpha = krippendorff_alpha(judges.grades, scale, groups=topic, level=level)
    notes = [*_notes(judges, pairs), *judges.origins]
    if systems and own:
        text = "Each judge's scores rest on all of this judge's documents: not only grades differ."
        notes.append(Note("own-documents", text))
    if alpha.groups < ENOUGH and alpha.interval is not None:
        text = f"With {alpha.groups} topics, intervals cover the true value less often than stated if a grade is rare."
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
    return replace(found, value=math.nan, observed=math.nan, expected=math.nan, interval=None, note=_NO_CATEGORIES)


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
                " the shared ones may not be like the rest."
            )
            yield Note("few-shared", text)
    apart = [f"{pair.first} and {pair.second}" for pair in pairs if not pair.shared]
    if apart:
        some = "; ".join(apart[:3]) + ("; ..." if len(apart) > 3 else "")
        text = f"{len(apart)} of {len(pairs)} pairs of judges judged nothing in common: {some}."
        yield Note("nothing-shared", text)


def system_effects(
    judges: Judges, runs: Any, measures: Any, policies: Mapping[str, Any], *, own: bool
) -> tuple[SystemEffect, ...]:
    """Score every run by the judgments of each two judges, over the topics that both have; none without such topics."""
    # Each run is joined once, with every pair that anyone judged; the grades of one judge are then put in.
    wanted = measures_of(measures)
    for measure in wanted:
        if measure.properties.every_label:
            raise MeasureError(f"{measure} looks at every label of a document. Fix: leave it out here")
        if not measure.properties.topics_apart:
            raise MeasureError(f"{measure} looks at the judgments of all topics. Fix: leave it out here")
    lists = [judge(judges.everything, run, **policies) for run in runs_of(runs)]
    names = tuple(one.run.name for one in lists)
    found: list[SystemEffect] = []
    topic, count = judges.everything.index.topic, len(judges.everything.topics)
    for one, other in combinations(range(len(judges.names)), 2):
        shared = judges.both(one, other)
        seen = [np.bincount(topic[~np.isnan(judges.grades[:, at])], minlength=count) > 0 for at in (one, other)]
        topics = seen[0] & seen[1] if own else np.bincount(topic[shared], minlength=count) > 0
        if not topics.any():
            continue
        scores = [_scores(lists, judges.grades[:, at], None if own else shared, topics, wanted) for at in (one, other)]
        found += [
            _effect(judges.names[one], judges.names[other], measure, int(topics.sum()), names, *columns)
            for measure, *columns in zip(wanted, scores[0], scores[1], strict=True)
        ]
    return tuple(found)


def _scores(
    lists: list[Judged], grades: Floats, shared: Bools | None, topics: Bools, measures: tuple[Measure, ...]
) -> Floats:
    """Give the aggregate of each measure and run: (M, R)."""
    gone = np.isnan(grades) if shared is None else ~shared
    table = np.full((len(measures), len(lists)), np.nan)
    for column, judged in enumerate(lists):
        left = withdrawn(judged, gone)
        label_grade = grades[left.label_row]  # this judge's grades, in the place of those in the list
        left = replace(left, grade=label_grade[left.row], label_grade=label_grade)
        for row, measure in enumerate(measures):
            values = measure(left)[topics]
            table[row, column] = aggregate(measure.entry.aggregate, values[~np.isnan(values)])
    return table


def _effect(
    first: str, second: str, measure: Measure, topics: int, runs: tuple[str, ...], scores: Floats, other: Floats
) -> SystemEffect:
    sign = -1.0 if measure.properties.higher_is_better is False else 1.0
    # scores that differ only in the last bits are equal: means of the same fractions in another order differ so
    one, two = (np.round(sign * side, 12) for side in (scores, other))
    correlations = kendall_tau(one, two), tau_ap(one, two, "b"), spearman(one, two)
    return SystemEffect(first, second, str(measure), topics, runs, scores, other, *correlations)
