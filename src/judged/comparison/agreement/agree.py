"""`agree`: agreement between the judgments of several judges, and its effect on measures and system rankings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from judged.comparison.agreement.answer import JudgeAgreement, JudgeEffect, PairAgreement, TopicAgreement
from judged.data.index import id_text
from judged.data.objects import is_id_list
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.results.blocks import Note
from judged.results.decimals import counted
from judged.results.spelling import use_one_of, with_parameter_hints
from judged.results.types import ReadOnly
from judged.scoring.evaluation import measures_of, runs_of
from judged.scoring.evaluation.notes import origin_notes
from judged.scoring.judging import judge
from judged.scoring.judging.unjudged import remove_judgments
from judged.scoring.measures.aggregates import aggregate
from judged.stats.agreement import MIN_GROUPS, Agreement, cohen_kappa, confusion, fleiss_kappa, krippendorff_alpha
from judged.stats.rankings import kendall_tau, spearman, tau_ap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged, Precision, TiePolicy
    from judged.scoring.measures.base import Measure
    from judged.stats.agreement import Scale


@dataclass(frozen=True, eq=False)
class Judges(ReadOnly):
    """Grades of several judges for the same pairs of topic and document."""

    names: tuple[str, ...]  # J
    all_pairs: Qrels = field(repr=False)  # pairs judged by any judge, all with grade 0: used to join each run once
    grades: Floats = field(repr=False)  # (P, J), in the order of `all_pairs.index`; NaN: not judged by this judge
    levels: tuple[float | None, ...]  # threshold that made the grades of each judge binary, if any
    origins: tuple[Note, ...] = ()  # notes on the origin of labels

    def has_fractional_grades(self, *judges: int) -> bool:
        """Return whether any of these judges used grades that are not integers: measurements, not categories."""
        grades = self.grades[:, list(judges)]
        return bool((grades[~np.isnan(grades)] % 1 != 0).any())

    def shared_pairs(self, first: int, second: int) -> Bools:
        """Return a mask of the pairs that both judges judged: (P,)."""
        return ~np.isnan(self.grades[:, first]) & ~np.isnan(self.grades[:, second])

    def grades_of(self, judge: int) -> tuple[float, ...]:
        """Return the distinct grades of one judge, ascending."""
        grades = self.grades[:, judge]
        return tuple(np.unique(grades[~np.isnan(grades)]).tolist())


def _is_mapping_of_judges(value: Any) -> bool:
    """Return whether a value is ``{name: judgments}``, not ``{query_id: {doc_id: grade}}``."""
    if not isinstance(value, Mapping) or not value:
        return False
    first = next(iter(cast("Mapping[Any, Any]", value).values()))
    if isinstance(first, Mapping):
        return isinstance(next(iter(cast("Mapping[Any, Any]", first).values()), None), (Mapping, list, set, frozenset))
    return not is_id_list(first)


def parse_judges(sources: Sequence[Any], rel: float | Mapping[str, float] | None) -> Judges:
    """Align the judgments of several judges."""
    if len(sources) == 1 and _is_mapping_of_judges(sources[0]):
        judgments = [replace(Qrels.of(source), name=id_text(name, "name")) for name, source in sources[0].items()]
    else:
        judgments = [Qrels.of(source, name=f"judge{i}") for i, source in enumerate(sources, 1)]
    if len(judgments) < 2:
        raise InputError(f"at least two judges are required, got {len(judgments)}", fix="add another judge")
    names = _distinct_names(judgments)
    levels = _parse_levels(names, rel)
    all_pairs = _union_of_pairs(judgments)
    grades = np.full((len(all_pairs), len(judgments)), np.nan)
    for i, (qrels, level) in enumerate(zip(judgments, levels, strict=True)):
        index = qrels.index
        codes = np.array([all_pairs.index.codes[name] for name in index.topics], dtype=np.int64)
        rows = all_pairs.index.rows_of(codes[index.topic], pa.array(index.row_names, pa.string()))
        grades[rows, i] = index.grade if level is None else (index.grade >= level) & (index.grade >= 0)
    origins = tuple(
        replace(note, subject=name, of="judges")
        for name, qrels in zip(names, judgments, strict=True)
        for note in origin_notes(qrels.origin)
    )
    return Judges(names, all_pairs, grades, levels, origins)


def _distinct_names(judgments: Sequence[Qrels]) -> tuple[str, ...]:
    """Return unique names of judges: repeated names get the folder, then a number."""
    names = [qrels.name for qrels in judgments]
    names = [
        f"{Path(qrels.where).parent.name}/{name}" if names.count(name) > 1 and Path(qrels.where).parent.name else name
        for qrels, name in zip(judgments, names, strict=True)
    ]
    result: list[str] = []
    for name in names:
        unused = (candidate for number in count(2) if (candidate := f"{name}#{number}") not in {*result, *names})
        result.append(next(unused) if name in result else name)
    return tuple(result)


def _parse_levels(names: tuple[str, ...], rel: float | Mapping[str, float] | None) -> tuple[float | None, ...]:
    if not isinstance(rel, Mapping):
        return (rel,) * len(names)
    for name in rel:
        if name not in names:
            raise InputError(f"no judge {name!r}", fix=use_one_of(names))
    return tuple(rel.get(name) for name in names)


def _union_of_pairs(judgments: Sequence[Qrels]) -> Qrels:
    pairs = pa.concat_tables([qrels.table.select(["query_id", "doc_id"]) for qrels in judgments])
    # pairs with several labels (subtopics) occur once
    distinct = pairs.group_by(["query_id", "doc_id"]).aggregate([])
    zeros = pa.array(np.zeros(distinct.num_rows))
    return Qrels(distinct.append_column("relevance", zeros), "all judges", judgments[0].where)


_FRACTIONAL_NOTE = "undefined for grades that are not integers; use Krippendorff's alpha, or set rel"


@with_parameter_hints
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
    """Compare judges on the documents that they share, and by the system rankings that they produce.

    Parameters
    ----------
    qrels
        Judgments of two or more judges: a `Qrels` or input of `Qrels.of` for each; or ``{judge: qrels}``. If a pair has
        several labels (subtopics), the highest is used.
    runs, measures
        Systems as in `evaluate`, and the measures that rank them. Without runs only grades are compared.
    rel
        Binarize grades: 1 from this grade on, else 0; ``{judge: grade}`` if scales differ. Measures use the binary
        grades.
    scale
        Scale of the grades for alpha: ``ordinal``, ``interval`` (differences are meaningful), or ``nominal``.
    own
        Whether scores of systems use all documents of a judge. Otherwise they use the documents that both judged, so
        that only grades differ. Topics are those that both judged in either case.
    ties, depth, precision
        Ranking of runs, as in `judge`.
    level
        Confidence level of intervals, which are over topics.

    Returns
    -------
    JudgeAgreement

    Raises
    ------
    InputError
        If there are fewer than two judges, `rel` names an unknown judge, or input is invalid.
    MeasureError
        If a measure uses subtopic labels or judgments of other topics.

    Examples
    --------
    >>> first = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
    >>> second = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0}}
    >>> agreement = agree(first, second)
    >>> print(agreement.table().text())
    judge   other judge  topics  shared   same  kappa  linear  quadratic  alpha (ordinal)
    judge1  judge2            2       4  0.750  0.636   0.714      0.800            0.790
    >>> agreement.pairs[0].confusion.counts.tolist()
    [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    """
    judges = parse_judges(qrels, rel)
    topic, all_judges = judges.all_pairs.index.topic, range(len(judges.names))
    pairs = tuple(_pair_agreement(judges, first, second, scale, level) for first, second in combinations(all_judges, 2))
    fleiss = fleiss_kappa(judges.grades, groups=topic, level=level)
    if judges.has_fractional_grades(*all_judges):
        fleiss = _without_value(fleiss)
    no_runs = runs is None or (isinstance(runs, (list, tuple, dict)) and not runs)
    policies = {"ties": ties, "depth": depth, "precision": precision}
    systems = () if no_runs else system_effects(judges, runs, measures, policies, own_documents=own)
    alpha = krippendorff_alpha(judges.grades, scale, groups=topic, level=level)
    notes = [*_notes(judges, pairs), *judges.origins]
    if systems and own:
        text = (
            "The scores with the grades of a judge use all documents that this judge graded. Therefore, the scores"
            " with the grades of two judges can differ because the judges graded different documents, or because the"
            " judges gave different grades."
        )
        notes.append(Note("own-documents", text))
    if alpha.groups < MIN_GROUPS and alpha.interval is not None:
        text = f"With {alpha.groups} topics, CIs are too narrow if a grade is rare."
        notes.append(Note("few-topics", text))
    return JudgeAgreement(judges.names, judges.levels, pairs, alpha, fleiss, systems, tuple(notes))


def _pair_agreement(judges: Judges, first_judge: int, second_judge: int, scale: Scale, level: float) -> PairAgreement:
    first, second = judges.grades[:, first_judge], judges.grades[:, second_judge]
    shared = judges.shared_pairs(first_judge, second_judge)
    options: dict[str, Any] = {"groups": judges.all_pairs.index.topic, "level": level}
    kappa = cohen_kappa(first, second, **options)
    fractional = judges.has_fractional_grades(first_judge, second_judge)
    return PairAgreement(
        first=judges.names[first_judge],
        second=judges.names[second_judge],
        shared=int(shared.sum()),
        only_first=int((~np.isnan(first) & ~shared).sum()),
        only_second=int((~np.isnan(second) & ~shared).sum()),
        same=float((first == second)[shared].mean()) if shared.any() else math.nan,
        kappa=_without_value(kappa) if fractional else kappa,
        linear=cohen_kappa(first, second, "linear", **options),
        quadratic=cohen_kappa(first, second, "quadratic", **options),
        alpha=krippendorff_alpha(np.stack([first, second], axis=1), scale, **options),
        confusion=confusion(first, second),
        topics=_topic_agreements(judges, first_judge, second_judge, shared),
    )


def _without_value(coefficient: Agreement) -> Agreement:
    """Remove the value of a coefficient that is only defined for categories."""
    if not coefficient.units:
        return coefficient
    undefined = dict.fromkeys(("value", "observed", "expected"), math.nan)
    return replace(coefficient, **undefined, interval=None, note=_FRACTIONAL_NOTE)


def _topic_agreements(judges: Judges, first: int, second: int, shared_pairs: Bools) -> tuple[TopicAgreement, ...]:
    index = judges.all_pairs.index
    topic, change = index.topic[shared_pairs], (judges.grades[:, second] - judges.grades[:, first])[shared_pairs]
    size = len(index.topics)
    shared = np.bincount(topic, minlength=size)
    sums = (np.bincount(topic, weights=values, minlength=size) for values in (change == 0, np.abs(change), change))
    means = [np.divide(values, shared, out=np.zeros(size), where=shared > 0).tolist() for values in sums]
    return tuple(
        TopicAgreement(index.topics[i], int(shared[i]), means[0][i], means[1][i], means[2][i])
        for i in np.flatnonzero(shared).tolist()
    )


def _notes(judges: Judges, pairs: tuple[PairAgreement, ...]) -> Iterator[Note]:
    maxima = {name: judges.grades_of(i)[-1] for i, name in enumerate(judges.names)}
    if len(set(maxima.values())) > 1:
        examples = "; ".join(f"{name} up to {highest:g}" for name, highest in [*maxima.items()][:4])
        text = (
            f"The highest grade differs between judges ({examples}), so the same grade can have different meanings."
            f" If the judges used different grading scales, set rel for each judge."
        )
        yield Note("different-grades", text)
    for pair in pairs:
        if 0 < pair.shared < min(pair.only_first, pair.only_second):
            text = (
                f"{pair.first} and {pair.second} both judged {counted(pair.shared, 'document')}, but each judged"
                " more documents that the other did not judge. The documents judged by both may not be representative."
            )
            yield Note("few-shared", text)
    disjoint_pairs = [f"{pair.first} and {pair.second}" for pair in pairs if not pair.shared]
    if disjoint_pairs:
        examples = "; ".join(disjoint_pairs[:3]) + ("; ..." if len(disjoint_pairs) > 3 else "")
        text = f"{len(disjoint_pairs)} of {len(pairs)} pairs of judges share no judged document: {examples}."
        yield Note("nothing-shared", text)


def system_effects(
    judges: Judges, runs: Any, measures: Any, policies: Mapping[str, Any], *, own_documents: bool
) -> tuple[JudgeEffect, ...]:
    """Score all runs by the judgments of each pair of judges, on topics that both judged."""
    # Joining runs is expensive: each run is joined once with all pairs, then the grades of each judge are substituted.
    measures = measures_of(measures)
    for measure in measures:
        if measure.properties.uses_all_labels:
            raise MeasureError(f"{measure} requires subtopic labels, which `agree` does not support. Fix: remove it")
        if not measure.properties.topics_independent:
            raise MeasureError(
                f"{measure} requires judgments of other topics, which `agree` does not support. Fix: remove it"
            )
    lists = [judge(judges.all_pairs, run, **policies) for run in runs_of(runs)]
    names = tuple(judged.run.name for judged in lists)
    effects: list[JudgeEffect] = []
    topic, n_topics = judges.all_pairs.index.topic, len(judges.all_pairs.topics)
    for first, second in combinations(range(len(judges.names)), 2):
        shared = judges.shared_pairs(first, second)
        topic_mask = np.bincount(topic[shared], minlength=n_topics) > 0
        if own_documents:
            masks = (~np.isnan(judges.grades[:, i]) for i in (first, second))
            topic_mask = np.logical_and(*(np.bincount(topic[mask], minlength=n_topics) > 0 for mask in masks))
        if not topic_mask.any():
            continue
        shared_pairs = None if own_documents else shared
        scores = [
            _system_scores(lists, judges.grades[:, i], shared_pairs, topic_mask, measures) for i in (first, second)
        ]
        effects += [
            _system_effect(judges.names[first], judges.names[second], measure, int(topic_mask.sum()), names, *columns)
            for measure, *columns in zip(measures, scores[0], scores[1], strict=True)
        ]
    return tuple(effects)


def _system_scores(
    lists: list[Judged], grades: Floats, shared_pairs: Bools | None, topic_mask: Bools, measures: tuple[Measure, ...]
) -> Floats:
    """Compute the aggregate of each measure and run: (M, R)."""
    # documents without a grade of this judge count as unjudged, not as not relevant
    unused = np.isnan(grades) if shared_pairs is None else ~shared_pairs
    table = np.full((len(measures), len(lists)), np.nan)
    for column, judged in enumerate(lists):
        remaining = remove_judgments(judged, unused)
        label_grade = grades[remaining.label_row]  # grades of this judge replace those of the list
        remaining = replace(remaining, grade=label_grade[remaining.row], label_grade=label_grade)
        for row, measure in enumerate(measures):
            values = measure(remaining)[topic_mask]
            table[row, column] = aggregate(measure.entry.aggregate, values[~np.isnan(values)])
    return table


def _system_effect(
    first: str, second: str, measure: Measure, topics: int, runs: tuple[str, ...], scores: Floats, other_scores: Floats
) -> JudgeEffect:
    sign = -1.0 if measure.properties.higher_is_better is False else 1.0
    # rounding: means of equal values can differ in the last bits, depending on the order of summation
    a, b = (np.round(sign * aggregates, 12) for aggregates in (scores, other_scores))
    correlations = kendall_tau(a, b), tau_ap(a, b, "b"), spearman(a, b)
    return JudgeEffect(first, second, str(measure), topics, runs, scores, other_scores, *correlations)
