"""What full judgments of a pool would say, estimated from a sample of it with known probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.results import NUMBER, TEXT, Answer, Column, Sentences, Table
from judged.results.blocks import Note
from judged.results.table import columns_of
from judged.results.types import cached_property
from judged.scoring.evaluation.inputs import runs_of
from judged.scoring.judging import judge
from judged.scoring.measures.grammar import list_measures, parse_many
from judged.stats.ratio import ratio_interval
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.labels.pooling import Pool
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Judged, TiePolicy
    from judged.scoring.measures.base import Measure


Estimator: TypeAlias = Literal["sum", "ratio"]
_RATIOS = {"R": {"rel", "cutoff"}, "SetR": {"rel"}, "AP": {"rel"}}  # with these parameters, and the others as usual


class Estimate(NamedTuple):
    """One number of a run, as full judgments of the pool would give it."""

    run: str
    measure: str
    value: float
    # None for a ratio, since intervals of ratios were measured not to hold, and where the documents drawn do not vary
    ci: tuple[float, float] | None
    error: float  # standard error over samples
    # `sum`: unbiased; `ratio`: of two sums, unbiased only as samples grow
    estimator: Estimator


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Answer):
    """What `estimate` returns.

    Attributes
    ----------
    rows : tuple of Estimate
        Run by run, measure by measure.
    topics : tuple of str
    by_topic : dict of (run, measure) to (value, error)
        By topic, (T,) each. One topic has few documents in the sample: its error is itself a rough estimate.
    level : float
        Of the intervals.
    """

    kind: ClassVar[str] = "estimates"

    rows: tuple[Estimate, ...]
    topics: tuple[str, ...]
    by_topic: Mapping[tuple[str, str], tuple[Floats, Floats]]
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is estimated."""
        return f"Estimated from a sample of the pool, {len(self.topics)} topics"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers are of, and what they are not."""
        said = (
            "The numbers are those that judgments of the whole pool of these topics would give, where documents outside"
            f" the pool count as not relevant. The {self.level:.0%} intervals are over samples of documents; they do"
            " not say how other topics would turn out."
        )
        if any(row.estimator == "ratio" for row in self.rows):
            ratios = "Ratios are biased in small samples, so they have no interval: docs/pooling.md has how much was"
            return said, f"{ratios} measured. They are over topics with a relevant document in the sample."
        return (said,)

    def facts(self) -> dict[str, Any]:
        """Give the level."""
        return {"level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Give a row for each run and measure, and topics for those who ask."""
        shown = columns_of(
            self.rows, ("run", TEXT), ("measure", TEXT), ("value", NUMBER), ("error", NUMBER), ("estimator", TEXT)
        )
        each = [(key, at) for key in self.by_topic for at in range(len(self.topics))]
        topics = (
            Column("run", [key[0] for key, _ in each], TEXT),
            Column("measure", [key[1] for key, _ in each], TEXT),
            Column("query_id", [self.topics[at] for _, at in each], TEXT, "topic"),
            Column("value", [float(self.by_topic[key][0][at]) for key, at in each], NUMBER),
            Column("error", [float(self.by_topic[key][1][at]) for key, at in each], NUMBER),
        )
        rows, said = Table("rows", shown, labels=2), Sentences(self.sentences)
        return rows, said, Table("topics", topics, labels=3, folded=True)


def estimate(
    pool: Pool,
    qrels: Any,
    runs: Any,
    measures: str | Measure | Sequence[str | Measure],
    *,
    ties: TiePolicy = "docid",
    level: float = 0.95,
) -> Estimates:
    """Estimate scores from judgments of a sample that `pool` drew.

    Measures that are sums over documents (P@k, DCG@k, RBP, NumRel, NumRelRet and others) are estimated without bias:
    each document counts one over its probability (Horvitz and Thompson 1952). They may leave the range of the measure.
    Recall and AP are ratios of such estimates, corrected as in Tin 1965: AP is the sum over pairs of relevant
    documents, each counted one over the probability that both came in (as in Aslam and Pavlu's statAP, 2007), over the
    number of relevant documents.

    Parameters
    ----------
    pool
        A sample of `pool`, or a pool by depth, of which everything is judged.
    qrels
        Judgments of all of its pairs; others are not looked at.
    runs
        ``{name: run}``, or a list of runs or paths.
    measures
        One or several, as names or measures.
    ties
        How equal scores are ordered, as in `judge`.
    level
        Of the intervals over samples.

    Raises
    ------
    InputError
        If a pair of the pool has no judgment, or the pool no probabilities.
    MeasureError
        If a measure cannot be estimated from a sample; the message says why.

    Examples
    --------
    >>> from judged.labels import estimate, pool
    >>> runs = {"first": {"q": ["a", "b", "c", "d"]}, "second": {"q": ["e", "f", "g", "h"]}}
    >>> sample = pool(runs, sample=6, strata=[2], rates=[1, 1])
    >>> print(estimate(sample, {"q": dict.fromkeys("abcdefgh", 1)}, runs, "P@2").table().text())
    run     measure                  value   error  estimator
    first   P@2      0.6667 [0.078, 5.731]  0.3333        sum
    second  P@2      1.3333 [0.455, 3.909]  0.3333        sum
    """
    if not 0 < level < 1:
        raise InputError(f"the level {level} is not between 0 and 1", fix="use 0.95, for example")
    wanted = tuple(dict.fromkeys(one for text in list_measures(measures) for one in parse_many(text)))
    forms: dict[Measure, Estimator] = {one: form_of(one) for one in wanted}
    known = _judged_pairs(pool, qrels)
    rows: list[Estimate] = []
    by_topic: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    topics: tuple[str, ...] = ()
    notes: dict[str, Note] = {}
    for run in runs_of(runs):
        judged = judge(known, run, ties=ties)
        design, topics = design_of(pool, judged), judged.query_ids
        for one, form in forms.items():
            found = estimated(one, judged, design, level)
            limits = found.limits if form == "sum" else None
            rows.append(Estimate(run.name, str(one), found.value, limits, found.error, form))
            by_topic[run.name, str(one)] = found.topics, found.errors
            if found.error == 0 and (design.drawn < design.sizes).any():
                notes[str(one)] = Note("no-variation", _ALIKE, str(one), of="measures")
            elif form == "sum" and limits is None:
                notes[str(one)] = Note("too-few-relevant", _FEW, str(one), of="measures")
    return Estimates(tuple(rows), topics, by_topic, level, tuple(notes.values()))


_FEW = "no interval: too few relevant documents came into the sample to say how much it varies"
_ALIKE = "no interval: the documents drawn were all alike where some were left out, and those may differ"


def form_of(measure: Measure) -> Estimator:
    """Tell how a measure can be estimated from a sample; refuse those that cannot."""
    # A sum over documents: what each adds does not depend on which others are relevant, returned or not.
    known, name = measure.properties, measure.entry.name
    parameters = {one.name: one.default for one in measure.entry.all_parameters}
    changed = {key for key, value in parameters.items() if getattr(measure, key) != value}
    if measure.where:
        why = "it is of some topics only: estimate those from a pool of their own"
    elif name in _RATIOS and changed <= _RATIOS[name]:
        return "ratio"
    elif not known.depends_on_relevance:
        why = "it does not depend on what is relevant, so evaluate gives it"
    elif known.uses_all_labels:
        why = "it needs every label of a document"
    elif getattr(measure, "undefined", 0.0) != 0.0:
        why = "whether a topic has relevant documents is not known from a sample"
    elif (known.additive and not known.depends_on_missing) or name == "NumRel":
        return "sum"
    elif known.relative_to_ideal or known.additive:
        why = "it is divided by what the best ranking, or all relevant documents, would give"
    else:
        why = "what a document adds to it depends on which others are relevant"
    raise MeasureError(
        f"{measure} cannot be estimated from a sample: {why}."
        " Fix: use a sum over documents such as P@10, DCG@10, RBP(p=0.8), NumRel; or R@k, AP"
    )


def _judged_pairs(pool: Pool, qrels: Any) -> Qrels:
    """Give the judgments of the pool's pairs, and no others."""
    if pool.pairs["probability"].null_count:
        raise InputError(
            "this pool has no probabilities: MaxMean prefers relevant documents, by an unknown amount",
            fix="estimate from a sample (judged pool --sample), or evaluate with its judgments",
        )
    given = Qrels.of(qrels)
    asked = pool.pairs.select(["query_id", "doc_id"])
    found = asked.join(
        given.table.select(["query_id", "doc_id", "relevance"]), ["query_id", "doc_id"], join_type="inner"
    )
    if lacking := asked.num_rows - found.num_rows:
        raise InputError(
            f"{lacking} of {asked.num_rows} pairs of the pool have no judgment, or several have two",
            fix="judge all of them: what is left out is no part of a random sample",
            path=given.where,
        )
    return Qrels(found.combine_chunks(), given.name, given.where)


def design_of(pool: Pool, judged: Judged) -> Design:
    """Give how the judged pairs of a list were drawn, in the order of its pairs."""
    sizes, names = pool.sizes, judged.qrels.index.row_names
    strata = {pair: at for at, pair in enumerate(zip(*(sizes[name].to_pylist() for name in _STRATUM), strict=True))}
    of = dict(zip(zip(*(pool.pairs[name].to_pylist() for name in ("query_id", "doc_id")), strict=True),
                  zip(*(pool.pairs[name].to_pylist() for name in _STRATUM), strict=True), strict=True))  # fmt: skip
    asked = zip(judged.label_topic.tolist(), judged.label_row.tolist(), strict=True)
    stratum = np.array([strata[of[judged.query_ids[topic], names[row]]] for topic, row in asked], dtype=np.int64)
    codes = {name: code for code, name in enumerate(judged.query_ids)}
    topic = np.array([codes[name] for name in sizes["query_id"].to_pylist()], dtype=np.int64)
    exact = sizes["of"].to_numpy()
    whole = np.rint(exact).astype(np.int64)
    if (np.abs(exact - whole) > 1e-6 * exact + 1e-6).any():
        raise InputError("the probabilities of a stratum are not its share that was drawn", fix="give a pool as saved")
    return Design(stratum, whole, topic, len(judged))


_STRATUM = ("query_id", "stratum")


def shares(measure: Measure, judged: Judged) -> tuple[Floats, Floats]:
    """Give what each topic scores with nothing judged, and what each judged pair adds: (T,) and (L,)."""
    pairs = np.arange(len(judged.label_topic))
    none = np.zeros(0, dtype=np.int64)
    empty = replace(judged, **judged.hit_columns(none), **judged.label_columns(none))
    base = measure.score(empty)
    # Each pair is a topic of its own, with the whole ranking and no other judgment.
    alone = replace(
        judged,
        **judged.topic_columns(judged.label_topic),
        **judged.hit_columns(
            order := np.argsort(judged.row, kind="stable"), topic=judged.row[order], row=judged.row[order]
        ),
        **judged.label_columns(pairs, label_topic=pairs),
        stored_docs=None,
    )
    return base, measure.score(alone) - base[judged.label_topic]


def estimated(measure: Measure, judged: Judged, design: Design, level: float = 0.95) -> MeanEstimate:
    """Estimate the aggregate of a measure from a list whose judged pairs were drawn so."""
    if form_of(measure) == "ratio":
        return _ratio(measure, judged, design, level)
    base, values = shares(measure, judged)
    found = mean_estimate(design, base + design.totals(values), values, level)
    if measure.entry.aggregate != "sum":
        return found
    count, ends = len(judged), found.limits
    limits = None if ends is None else (ends[0] * count, ends[1] * count)
    return found._replace(value=found.value * count, error=found.error * count, limits=limits)


def _ratio(measure: Measure, judged: Judged, design: Design, level: float) -> MeanEstimate:
    """Estimate recall or AP; the linearized value of a pair is how the quotient changes with the pair's weight."""
    relevant = judged.label_grade >= getattr(measure, "rel")  # noqa: B009  of these three measures all have it
    known = design.totals(relevant.astype(np.float64))
    rank = np.zeros(len(relevant), dtype=np.int64)
    rank[judged.row] = judged.rank
    if measure.entry.name == "AP":
        above, slope = _pairs_in_order(design, np.flatnonzero(relevant & (rank > 0)), rank, judged.label_topic)
    else:
        cutoff = getattr(measure, "cutoff", None) or np.iinfo(np.int64).max
        slope = (relevant & (rank > 0) & (rank <= cutoff)).astype(np.float64)
        above = design.totals(slope)
    values = np.divide(above, known, out=np.full(len(known), np.nan), where=known > 0)
    linear = slope - relevant * np.nan_to_num(values)[judged.label_topic]
    over = np.where(known > 0, known, 1.0)[judged.label_topic]
    # Tin 1965: what a quotient of estimates is too large by, to the first order in the size of the sample.
    bias = -design.covariances(linear, relevant.astype(np.float64)) / np.where(known > 0, known, 1.0) ** 2
    return mean_estimate(design, values - bias, linear / over, level)


def _pairs_in_order(design: Design, hits: Ints, rank: Ints, topic: Ints) -> tuple[Floats, Floats]:
    """Estimate the sum of precisions at relevant documents, and how it changes with each unit's weight: (T,), (n,)."""
    totals, slope = np.zeros(design.topics), np.zeros(len(rank))
    for units in np.split(
        hits := hits[np.lexsort((rank[hits], topic[hits]))], np.flatnonzero(np.diff(topic[hits])) + 1
    ):
        if len(units):
            own, above = design.probability[units], np.tril(np.ones((len(units), len(units))), -1)
            each = above / rank[units][:, None] / design.together(units)  # (i, j): j stands above the relevant i
            totals[topic[units[0]]] = (1 / rank[units] / own).sum() + each.sum()
            slope[units] = 1 / rank[units] + own * (each.sum(axis=0) + each.sum(axis=1))
    return totals, slope


_LEAST = math.sqrt(2.0) * (1.0 - 1e-9)  # errors: of two equal units that were drawn of many


@dataclass(frozen=True, eq=False)
class Design:
    """A sample of n units: within each stratum so many were drawn of all, each set of them as likely as any other.

    Parameters
    ----------
    stratum
        (n,): codes from 0; a stratum belongs to one topic.
    sizes
        (H,): how many units each stratum has, drawn or not.
    topic
        (H,): the topic of each stratum, as a code from 0.
    topics
        How many topics there are, with a sample or without.

    Raises
    ------
    InputError
        If more were drawn than there are, or one of several: nothing then says how much they vary.
    """

    stratum: Ints
    sizes: Ints
    topic: Ints
    topics: int

    def __post_init__(self) -> None:
        drawn = self.drawn
        if (drawn > self.sizes).any():
            raise InputError("more were drawn of a stratum than it has", fix="give each the probability it had")
        if ((drawn < 2) & (self.sizes > drawn)).any():
            raise InputError(
                "of a stratum of several fewer than two were drawn, so nothing says how much they vary",
                fix="draw at least two of each stratum, or all",
            )

    @cached_property
    def drawn(self) -> Ints:
        """How many units of each stratum are in the sample; (H,)."""
        return np.bincount(self.stratum, minlength=len(self.sizes)).astype(np.int64)

    @cached_property
    def probability(self) -> Floats:
        """How likely each unit came into the sample; (n,)."""
        return (self.drawn / self.sizes)[self.stratum]

    def together(self, units: Ints) -> Floats:
        """Give how likely each two of some units came into the sample together; (m, m)."""
        own, stratum = self.probability[units], self.stratum[units]
        drawn, size = self.drawn[stratum], self.sizes[stratum]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.where(drawn == size, 1.0, own * (drawn - 1) / (size - 1))
        joint = np.where(stratum[:, None] == stratum, inside[:, None], own[:, None] * own)
        np.fill_diagonal(joint, own)
        return joint

    def totals(self, values: Floats) -> Floats:
        """Estimate the sum of a value over all units of each topic: (n,) to (T,)."""
        made = np.bincount(self.topic[self.stratum], values / self.probability, minlength=self.topics)
        return made.astype(np.float64)

    def variances(self, values: Floats, others: Floats | None = None) -> Floats:
        """Estimate how the total of each stratum varies from sample to sample, or with another total: (n,) to (H,)."""
        drawn, count, others = self.drawn, len(self.sizes), values if others is None else others
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = [
                each - (np.bincount(self.stratum, each, minlength=count) / drawn)[self.stratum]
                for each in (values, others)
            ]
            products = np.bincount(self.stratum, apart[0] * apart[1], minlength=count)
            spread = self.sizes**2 * (1 - drawn / self.sizes) / drawn * products / (drawn - 1)
        return np.where(drawn == self.sizes, 0.0, spread)

    def covariances(self, values: Floats, others: Floats) -> Floats:
        """Estimate how the totals of two values vary together, by topic: (n,) to (T,)."""
        made = np.bincount(self.topic, self.variances(values, others), minlength=self.topics)
        return made.astype(np.float64)


class MeanEstimate(NamedTuple):
    """The mean over topics, estimated from a sample of what they consist of."""

    value: float
    error: float  # its standard error over samples; the topics are taken as they are
    limits: tuple[float, float] | None  # None where the sample cannot tell how much its units vary
    topics: Floats  # (T,): the estimate of each topic
    errors: Floats  # (T,): its standard error


def mean_estimate(design: Design, estimates: Floats, values: Floats, level: float = 0.95) -> MeanEstimate:
    """Give the mean of estimates by topic with its design-based interval.

    Parameters
    ----------
    design
        How units were drawn.
    estimates
        (T,): the estimate of each topic, such as `Design.totals` gives. NaN: the topic does not count.
    values
        (n,): what each unit adds to its topic's estimate; of an estimate that is no sum, how much the estimate changes
        with the weight of the unit (its linearized value).
    level
        Of the interval: Student's t, with Satterthwaite's degrees of freedom over strata. Of values that are never
        negative, what the sampled strata add has its interval on the logarithmic scale: where few documents are
        relevant, a symmetric one covers 88 to 91% instead of 95%, and reaches below 0. None where that is less than the
        square root of 2 errors, which is the error of two equal units.

    Examples
    --------
    Two of four units were drawn, worth 1 and 3: the total is estimated as 8, with variance 16 * (1 - 2/4) / 2 * 2 = 8.

    >>> design = Design(np.array([0, 0]), np.array([4]), np.array([0]), 1)
    >>> values = np.array([1.0, 3.0])
    >>> found = mean_estimate(design, design.totals(values), values)
    >>> found.value, round(found.error**2, 6)
    (8.0, 8.0)
    """
    variances = design.variances(values)
    counted = ~np.isnan(estimates)
    count = int(counted.sum())
    if not count:
        return MeanEstimate(math.nan, math.nan, None, estimates, estimates)
    errors = np.sqrt(np.bincount(design.topic, variances, minlength=design.topics))
    variances = np.where(counted[design.topic], variances, 0.0)
    total = float(variances.sum())
    value, error = float(estimates[counted].mean()), math.sqrt(total) / count
    sampled = (design.drawn < design.sizes) & counted[design.topic]  # of the others everything is known
    if not sampled.any():
        return MeanEstimate(value, 0.0, (value, value), estimates, errors)
    if insufficiency(int(design.drawn[sampled].sum()), variance=total):
        return MeanEstimate(value, error, None, estimates, errors)
    within = np.maximum(design.drawn - 1, 1)
    df = max(math.floor(total**2 / (variances**2 / within).sum()), 1)
    half = student_quantile((1 + level) / 2, df) * error
    limits = value - half, value + half
    if (values >= 0).all():
        part = float((values / design.probability * sampled[design.stratum]).sum()) / count
        low, high = ratio_interval(part, error, df + 1, level, share=False, counted=True)
        enough = part >= _LEAST * error and not math.isnan(low)
        limits = (value - part + low, value - part + high) if enough else None
    return MeanEstimate(value, error, limits, estimates, errors)
