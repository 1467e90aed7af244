"""Estimate the scores of a fully judged pool from judgments of a random sample of it."""

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
from judged.results.decimals import counted
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
# Ratio measures, with the parameters that may differ from their defaults.
_RATIOS = {"R": {"rel", "cutoff"}, "SetR": {"rel"}, "AP": {"rel"}}


class RunEstimate(NamedTuple):
    """One aggregate of a run, estimated for a fully judged pool."""

    run: str
    measure: str
    value: float
    # None for a ratio (too low coverage, see docs/pooling-methods.md), and if the sampled documents do not vary
    ci: tuple[float, float] | None
    error: float  # standard error over samples
    # `sum`: unbiased; `ratio` of two sums: unbiased only for large samples
    estimator: Estimator


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Answer):
    """What `estimate` returns.

    Attributes
    ----------
    rows : tuple of Estimate
        Ordered by run, then measure.
    topics : tuple of str
    by_topic : dict of (run, measure) to (value, error)
        Arrays (T,) by topic. A topic has few documents in the sample, so its error is itself imprecise.
    level : float
        Confidence level of the intervals.
    """

    kind: ClassVar[str] = "estimates"

    rows: tuple[RunEstimate, ...]
    topics: tuple[str, ...]
    by_topic: Mapping[tuple[str, str], tuple[Floats, Floats]]
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Scores estimated from a sample of the pool, {counted(len(self.topics), 'topic')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Scope of the estimates and of their intervals."""
        scope = (
            "The scores are estimates of the scores that would result if the whole pool of these topics were judged."
            f" Documents outside the pool count as not relevant. The {self.level:.0%} CI covers the uncertainty from"
            " sampling documents, not from sampling topics."
        )
        if any(row.estimator == "ratio" for row in self.rows):
            bias = (
                "Ratio estimates are biased in small samples, so they have no confidence interval"
                " (docs/pooling-methods.md)."
            )
            return (
                scope,
                f"{bias} Ratio estimates are means over the topics that have a relevant document in the sample.",
            )
        return (scope,)

    def facts(self) -> dict[str, Any]:
        """Return the confidence level."""
        return {"level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return a table by run and measure, and a folded table by topic."""
        columns = columns_of(
            self.rows,
            ("run", TEXT),
            ("measure", TEXT),
            ("value", NUMBER),
            ("error", NUMBER, "std. error"),
            ("estimator", TEXT),
        )
        cells = [
            (run, measure, topic, float(value), float(error))
            for (run, measure), (values, errors) in self.by_topic.items()
            for topic, value, error in zip(self.topics, values, errors, strict=True)
        ]
        topics = (
            Column("run", [cell[0] for cell in cells], TEXT),
            Column("measure", [cell[1] for cell in cells], TEXT),
            Column("query_id", [cell[2] for cell in cells], TEXT, "topic"),
            Column("value", [cell[3] for cell in cells], NUMBER),
            Column("error", [cell[4] for cell in cells], NUMBER, "std. error"),
        )
        rows, scope = Table("rows", columns, labels=2), Sentences(self.sentences)
        return rows, scope, Table("topics", topics, labels=3, folded=True)


def estimate(
    pool: Pool,
    qrels: Any,
    runs: Any,
    measures: str | Measure | Sequence[str | Measure],
    *,
    ties: TiePolicy = "docid",
    level: float = 0.95,
) -> Estimates:
    """Estimate scores from judgments of the sample in `pool`.

    Estimates of measures that add up contributions of documents (P@k, DCG@k, RBP, NumRelRet) are unbiased (Horvitz and
    Thompson 1952): a document has weight 1 / (its inclusion probability). They can be outside the measure's range.
    Recall and AP are ratios of such estimates, with the bias correction of Tin (1965). The numerator of AP is the sum
    over pairs of relevant documents, each with weight 1 / (their joint inclusion probability), as in statAP (Aslam and
    Pavlu 2007).

    Parameters
    ----------
    pool
        A sample drawn by `pool`, or a pool by depth, with a judgment for each pair.
    qrels
        Judgments of all pairs of the pool; others are ignored.
    runs
        ``{name: run}``, or a list of runs or paths.
    measures
        One or several, as names or measures.
    ties
        Order of equal scores, as in `judge`.
    level
        Confidence level of the intervals, which are over samples of documents.

    Raises
    ------
    InputError
        If a pair of the pool has no judgment, or the pool has no probabilities.
    MeasureError
        If a measure cannot be estimated from a sample; the message gives the reason.

    Examples
    --------
    >>> from judged.labels import estimate, pool
    >>> runs = {"first": {"q": ["a", "b", "c", "d"]}, "second": {"q": ["e", "f", "g", "h"]}}
    >>> sample = pool(runs, sample=6, strata=[2], rates=[1, 1])
    >>> print(estimate(sample, {"q": dict.fromkeys("abcdefgh", 1)}, runs, "P@2").table().text())
    run     measure                  value  std. error  estimator
    first   P@2      0.6667 [0.078, 5.731]      0.3333        sum
    second  P@2      1.3333 [0.455, 3.909]      0.3333        sum
    """
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1, got {level}", fix="use 0.95, for example")
    parsed_measures = tuple(dict.fromkeys(parsed for name in list_measures(measures) for parsed in parse_many(name)))
    estimators: dict[Measure, Estimator] = {parsed: estimator_of(parsed) for parsed in parsed_measures}
    pool_qrels = _judged_pairs(pool, qrels)
    rows: list[RunEstimate] = []
    by_topic: dict[tuple[str, str], tuple[Floats, Floats]] = {}
    topics: tuple[str, ...] = ()
    notes: dict[str, Note] = {}
    for run in runs_of(runs):
        judged = judge(pool_qrels, run, ties=ties)
        matched, topics = match_sample(pool, judged), judged.query_ids
        for measure, estimator in estimators.items():
            mean = estimate_mean(measure, judged, matched, level)
            limits = mean.limits if estimator == "sum" else None
            rows.append(RunEstimate(run.name, str(measure), mean.value, limits, mean.error, estimator))
            by_topic[run.name, str(measure)] = mean.topics, mean.errors
            # A zero variance in a partial sample does not mean certainty: unsampled documents can have other grades.
            if mean.error == 0 and (matched.sample_sizes < matched.sizes).any():
                notes[str(measure)] = Note("no-variation", _NO_VARIATION, str(measure), of="measures")
            elif estimator == "sum" and limits is None:
                notes[str(measure)] = Note("too-few-relevant", _TOO_FEW_RELEVANT, str(measure), of="measures")
    return Estimates(tuple(rows), topics, by_topic, level, tuple(notes.values()))


_TOO_FEW_RELEVANT = "no confidence interval, because the sample has too few relevant documents"
_NO_VARIATION = (
    "no confidence interval, because all documents in the sample have the same value; documents outside the sample"
    " may have other values"
)


def estimator_of(measure: Measure) -> Estimator:
    """Return how `measure` can be estimated from a sample; raise MeasureError if it cannot."""
    # "sum": the contribution of a document does not depend on the relevance of other documents, returned or not.
    properties, name = measure.properties, measure.entry.name
    parameters = {parameter.name: parameter.default for parameter in measure.entry.all_parameters}
    changed = {key for key, value in parameters.items() if getattr(measure, key) != value}
    if measure.where:
        reason = (
            "the measure has a condition on topics; use a pool of only these topics, and a measure without a condition"
        )
    # Other parameters (for example `cutoff` of AP) change the denominator, which the linearization does not cover.
    elif name in _RATIOS and changed <= _RATIOS[name]:
        return "ratio"
    elif not properties.depends_on_relevance:
        reason = "the measure does not depend on relevance, so judged evaluate can compute the score without labels"
    elif properties.uses_all_labels:
        reason = "the measure needs all labels of a document"
    elif getattr(measure, "undefined", 0.0) != 0.0:
        reason = "a sample does not show whether a topic has relevant documents"
    elif (properties.additive and not properties.depends_on_missing) or name == "NumRel":
        return "sum"
    elif properties.relative_to_ideal or properties.additive:
        reason = "the measure is divided by the value of the ideal ranking or of the set of all relevant documents"
    else:
        reason = "the contribution of a document depends on the relevance of other documents"
    raise MeasureError(
        f"{measure} cannot be estimated from a sample: {reason}."
        " Fix: use a sum over documents such as P@10, DCG@10, RBP(p=0.8), NumRel; or R@k, AP"
    )


def _judged_pairs(pool: Pool, qrels: Any) -> Qrels:
    """Select the judgments of the pairs in the pool."""
    if pool.pairs["probability"].null_count:
        raise InputError(
            "the pool must be a random sample with probabilities; a pool by MaxMean has no probabilities",
            fix="draw a sample with judged pool --sample, or use judged evaluate with these judgments",
        )
    all_qrels = Qrels.of(qrels)
    pairs = pool.pairs.select(["query_id", "doc_id"])
    # The inner join also drops judgments outside the pool: they are not part of the random sample.
    judged = pairs.join(
        all_qrels.table.select(["query_id", "doc_id", "relevance"]), ["query_id", "doc_id"], join_type="inner"
    )
    if judged.num_rows != pairs.num_rows:
        raise InputError(
            f"each pair of the pool must have exactly one judgment, but the pool has"
            f" {counted(pairs.num_rows, 'pair')} and {counted(judged.num_rows, 'judgment')}",
            fix="judge all pairs of the sample: if pairs are left out, estimates are biased",
            path=all_qrels.where,
        )
    return Qrels(judged.combine_chunks(), all_qrels.name, all_qrels.where)


def match_sample(pool: Pool, judged: Judged) -> StratifiedSample:
    """Build the sample of the judged pairs in `judged`, in the order of its labels."""
    sizes, names = pool.sizes, judged.qrels.index.row_names
    strata = {pair: code for code, pair in enumerate(zip(*(sizes[name].to_pylist() for name in _STRATUM), strict=True))}
    stratum_of_pair = dict(zip(zip(*(pool.pairs[name].to_pylist() for name in ("query_id", "doc_id")), strict=True),
                  zip(*(pool.pairs[name].to_pylist() for name in _STRATUM), strict=True), strict=True))  # fmt: skip
    labels = zip(judged.label_topic.tolist(), judged.label_row.tolist(), strict=True)
    pairs = ((judged.query_ids[topic], names[row]) for topic, row in labels)
    label_stratum = np.array([strata[stratum_of_pair[pair]] for pair in pairs], dtype=np.int64)
    codes = {name: code for code, name in enumerate(judged.query_ids)}
    stratum_topic = np.array([codes[name] for name in sizes["query_id"].to_pylist()], dtype=np.int64)
    expected_sizes = sizes["size"].to_numpy()
    rounded_sizes = np.rint(expected_sizes).astype(np.int64)
    # Probabilities in a file are rounded, so sizes are recovered up to rounding errors.
    if (np.abs(expected_sizes - rounded_sizes) > 1e-6 * expected_sizes + 1e-6).any():
        raise InputError(
            "each probability must equal the sampled share of the document's stratum",
            fix="use the unchanged file of 'judged pool'",
        )
    return StratifiedSample(label_stratum, rounded_sizes, stratum_topic, len(judged))


_STRATUM = ("query_id", "stratum")


def score_contributions(measure: Measure, judged: Judged) -> tuple[Floats, Floats]:
    """Return the score of each topic without judgments, (T,), and the amount that each judged pair adds, (L,)."""
    label_rows = np.arange(len(judged.label_topic))
    no_rows = np.zeros(0, dtype=np.int64)
    # The score of a topic without judgments need not be 0.
    empty = replace(judged, **judged.hit_columns(no_rows), **judged.label_columns(no_rows))
    base_scores = measure.score(empty)
    # One call of `score` for all pairs: a topic for each pair, with its full ranking and this judgment only.
    one_label_per_topic = replace(
        judged,
        **judged.topic_columns(judged.label_topic),
        **judged.hit_columns(
            order := np.argsort(judged.row, kind="stable"), topic=judged.row[order], row=judged.row[order]
        ),
        **judged.label_columns(label_rows, label_topic=label_rows),
        stored_docs=None,
    )
    return base_scores, measure.score(one_label_per_topic) - base_scores[judged.label_topic]


def estimate_mean(measure: Measure, judged: Judged, sample: StratifiedSample, level: float = 0.95) -> MeanEstimate:
    """Estimate the aggregate of a measure from a list of which a sample of pairs is judged."""
    if estimator_of(measure) == "ratio":
        return _estimate_ratio(measure, judged, sample, level)
    base_scores, contributions = score_contributions(measure, judged)
    mean = mean_estimate(sample, base_scores + sample.totals(contributions), contributions, level)
    if measure.entry.aggregate != "sum":
        return mean
    # The aggregate of this measure is the sum over topics.
    topic_count, limits = len(judged), mean.limits
    sum_limits = None if limits is None else (limits[0] * topic_count, limits[1] * topic_count)
    return mean._replace(value=mean.value * topic_count, error=mean.error * topic_count, limits=sum_limits)


def _estimate_ratio(measure: Measure, judged: Judged, sample: StratifiedSample, level: float) -> MeanEstimate:
    """Estimate recall or AP by linearization: a quotient of two totals y / x."""
    relevant = judged.label_grade >= getattr(measure, "rel")  # noqa: B009  R, SetR, and AP all have `rel`
    relevant_total = sample.totals(relevant.astype(np.float64))
    rank = np.zeros(len(relevant), dtype=np.int64)
    # Rank 0: judged, but not returned.
    rank[judged.row] = judged.rank
    if measure.entry.name == "AP":
        numerator, weights = _sum_of_precisions(sample, np.flatnonzero(relevant & (rank > 0)), rank, judged.label_topic)
    else:
        cutoff = getattr(measure, "cutoff", None) or np.iinfo(np.int64).max
        weights = (relevant & (rank > 0) & (rank <= cutoff)).astype(np.float64)
        numerator = sample.totals(weights)
    ratios = np.divide(numerator, relevant_total, out=np.full(len(relevant_total), np.nan), where=relevant_total > 0)
    # Taylor linearization of y / x: the residuals y_i - R x_i, with R = y / x, estimate the variance.
    residuals = weights - relevant * np.nan_to_num(ratios)[judged.label_topic]
    safe_total = np.where(relevant_total > 0, relevant_total, 1.0)
    # Tin 1965: bias of a quotient of two estimated totals, to the first order in 1 / (sample size).
    bias = -sample.covariances(residuals, relevant.astype(np.float64)) / safe_total**2
    return mean_estimate(sample, ratios - bias, residuals / safe_total[judged.label_topic], level)


def _sum_of_precisions(sample: StratifiedSample, hits: Ints, rank: Ints, topic: Ints) -> tuple[Floats, Floats]:
    """Estimate the sum of precisions at relevant documents, (T,), and its derivative by each unit's weight, (n,)."""
    totals, slopes = np.zeros(sample.topics), np.zeros(len(rank))
    for units in np.split(
        hits := hits[np.lexsort((rank[hits], topic[hits]))], np.flatnonzero(np.diff(topic[hits])) + 1
    ):
        if len(units):
            marginal, is_above = sample.inclusion_probability[units], np.tril(np.ones((len(units), len(units))), -1)
            # pairs[i, j]: the relevant i, with the relevant j ranked above it
            pairs = is_above / rank[units][:, None] / sample.joint_probability(units)
            totals[topic[units[0]]] = (1 / rank[units] / marginal).sum() + pairs.sum()
            slopes[units] = 1 / rank[units] + marginal * (pairs.sum(axis=0) + pairs.sum(axis=1))
    return totals, slopes


# Two equal units sampled from many have a mean of exactly sqrt(2) standard errors: intervals need at least this much.
_MIN_ERRORS = math.sqrt(2.0) * (1.0 - 1e-9)


@dataclass(frozen=True, eq=False)
class StratifiedSample:
    """A stratified random sample of n units, without replacement within each stratum.

    Parameters
    ----------
    stratum
        (n,): stratum of each sampled unit, as a code from 0. A stratum belongs to one topic.
    sizes
        (H,): number of units in each stratum, sampled or not.
    topic
        (H,): topic of each stratum, as a code from 0.
    topics
        Number of topics, including those without sampled units.

    Raises
    ------
    InputError
        If a stratum has more sampled units than units, or fewer than two of several (no variance estimate).
    """

    stratum: Ints
    sizes: Ints
    topic: Ints
    topics: int

    def __post_init__(self) -> None:
        counts = self.sample_sizes
        if (counts > self.sizes).any():
            fix = "use the sampling probability of each unit in the sample"
            raise InputError("a stratum must not have more sampled units than units in total", fix=fix)
        if ((counts < 2) & (self.sizes > counts)).any():
            problem = "each stratum with several units must have at least two sampled units, to estimate its variance"
            raise InputError(problem, fix="sample at least two units of each stratum, or all units of the stratum")

    @cached_property
    def sample_sizes(self) -> Ints:
        """Number of sampled units in each stratum, (H,)."""
        return np.bincount(self.stratum, minlength=len(self.sizes)).astype(np.int64)

    @cached_property
    def inclusion_probability(self) -> Floats:
        """Inclusion probability of each sampled unit, (n,)."""
        return (self.sample_sizes / self.sizes)[self.stratum]

    def joint_probability(self, units: Ints) -> Floats:
        """Return the joint inclusion probability of each two of the m `units`, (m, m)."""
        marginal, stratum = self.inclusion_probability[units], self.stratum[units]
        count, size = self.sample_sizes[stratum], self.sizes[stratum]
        with np.errstate(invalid="ignore", divide="ignore"):
            # Simple random sampling in a stratum: n (n - 1) / (N (N - 1)). Strata are independent.
            within_stratum = np.where(count == size, 1.0, marginal * (count - 1) / (size - 1))
        joint = np.where(stratum[:, None] == stratum, within_stratum[:, None], marginal[:, None] * marginal)
        np.fill_diagonal(joint, marginal)
        return joint

    def totals(self, values: Floats) -> Floats:
        """Estimate the total of a value over all units of each topic (Horvitz-Thompson): (n,) to (T,)."""
        totals = np.bincount(self.topic[self.stratum], values / self.inclusion_probability, minlength=self.topics)
        return totals.astype(np.float64)

    def variances(self, values: Floats, others: Floats | None = None) -> Floats:
        """Estimate the variance of each stratum's total, or its covariance with another total: (n,) to (H,)."""
        sampled, stratum_count, others = self.sample_sizes, len(self.sizes), values if others is None else others
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = [
                column - (np.bincount(self.stratum, column, minlength=stratum_count) / sampled)[self.stratum]
                for column in (values, others)
            ]
            products = np.bincount(self.stratum, deviations[0] * deviations[1], minlength=stratum_count)
            # N (N - n) s^2 / n in each stratum (Cochran, Sampling Techniques, 1977, equation 5.6)
            variances = self.sizes**2 * (1 - sampled / self.sizes) / sampled * products / (sampled - 1)
        # Strata without unsampled units have no sampling error; the formula would divide by 0 for a single unit.
        return np.where(sampled == self.sizes, 0.0, variances)

    def covariances(self, values: Floats, others: Floats) -> Floats:
        """Estimate the covariance of the totals of two values by topic: (n,) to (T,)."""
        covariances = np.bincount(self.topic, self.variances(values, others), minlength=self.topics)
        return covariances.astype(np.float64)


class MeanEstimate(NamedTuple):
    """A mean over topics, estimated from a sample."""

    value: float
    error: float  # standard error over samples of documents; topics are fixed
    limits: tuple[float, float] | None  # None if the variance of the units cannot be estimated
    topics: Floats  # (T,): estimate of each topic
    errors: Floats  # (T,): standard error of each estimate


def mean_estimate(sample: StratifiedSample, estimates: Floats, values: Floats, level: float = 0.95) -> MeanEstimate:
    """Compute the mean over topics of estimates from a sample, with a design-based interval.

    Parameters
    ----------
    design
        The sampling design.
    estimates
        (T,): estimate of each topic, for example `StratifiedSample.totals`. Topics with NaN do not count.
    values
        (n,): contribution of each unit to the estimate of its topic. If the estimate is not a sum: its derivative by
        the weight of the unit (the linearized value).
    level
        Confidence level: Student's t, with Satterthwaite's degrees of freedom over strata. For nonnegative values the
        interval of the sampled strata's part is on the logarithmic scale: if few documents are relevant, a symmetric
        interval covers 88 to 91% instead of 95%, and can contain values below 0. There is no interval if this part is
        less than sqrt(2) standard errors, the ratio of two equal units.

    Examples
    --------
    Two of four units are sampled, with values 1 and 3: the total is 8, its variance 16 * (1 - 2/4) / 2 * 2 = 8.

    >>> sample = StratifiedSample(np.array([0, 0]), np.array([4]), np.array([0]), 1)
    >>> values = np.array([1.0, 3.0])
    >>> mean = mean_estimate(sample, sample.totals(values), values)
    >>> mean.value, round(mean.error**2, 6)
    (8.0, 8.0)
    """
    variances = sample.variances(values)
    has_estimate = ~np.isnan(estimates)
    topic_count = int(has_estimate.sum())
    if not topic_count:
        return MeanEstimate(math.nan, math.nan, None, estimates, estimates)
    errors = np.sqrt(np.bincount(sample.topic, variances, minlength=sample.topics))
    variances = np.where(has_estimate[sample.topic], variances, 0.0)
    total_variance = float(variances.sum())
    value, error = float(estimates[has_estimate].mean()), math.sqrt(total_variance) / topic_count
    # Strata that are judged completely have no sampling variance.
    is_sampled = (sample.sample_sizes < sample.sizes) & has_estimate[sample.topic]
    if not is_sampled.any():
        return MeanEstimate(value, 0.0, (value, value), estimates, errors)
    if insufficiency(int(sample.sample_sizes[is_sampled].sum()), variance=total_variance):
        return MeanEstimate(value, error, None, estimates, errors)
    stratum_df = np.maximum(sample.sample_sizes - 1, 1)
    # Satterthwaite's approximation (Cochran, Sampling Techniques, 1977, section 5.4), rounded down.
    df = max(math.floor(total_variance**2 / (variances**2 / stratum_df).sum()), 1)
    half_width = student_quantile((1 + level) / 2, df) * error
    limits = value - half_width, value + half_width
    # The log scale applies to the sampled part only: the fully judged part is a constant.
    if (values >= 0).all():
        sampled_part = float((values / sample.inclusion_probability * is_sampled[sample.stratum]).sum()) / topic_count
        low, high = ratio_interval(sampled_part, error, df + 1, level, share=False, counted=True)
        is_positive = sampled_part >= _MIN_ERRORS * error and not math.isnan(low)
        limits = (value - sampled_part + low, value - sampled_part + high) if is_positive else None
    return MeanEstimate(value, error, limits, estimates, errors)
