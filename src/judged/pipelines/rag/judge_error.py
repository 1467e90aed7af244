"""Comparison of a model's verdicts with people's: agreement, bias of means, and the judge's own variance."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.errors import InputError
from judged.labels import calibration
from judged.labels.calibration import JudgeCalibration
from judged.labels.corrected_systems import PairedScores
from judged.labels.labels import Labels, complete_columns
from judged.pipelines.rag.judge_bias import judge_bias
from judged.pipelines.rag.responses import KEYS, VERDICTS, Responses, middle_verdicts
from judged.results import Answer, Sentences, Table, counted, listed
from judged.results.blocks import Note
from judged.results.table import COUNT, NUMBER, P_VALUE, SHARE, TEXT, Column, Show, columns_of, number
from judged.scoring.evaluation.inputs import measures_of
from judged.scoring.judging.answers import CONTRADICTS, FAILED, NOT, PARTIAL, SUPPORT
from judged.stats.inputs import check_resampling, check_share
from judged.stats.prediction_powered import MIN_N
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.pipelines.rag.judge_bias import WithinMargin
    from judged.results import Block
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores

MIN_REPEATED_TOPICS = 12
"""Minimum number of topics that were judged twice for an interval of the judge's own variance."""
_PRIOR_TOPICS = 5  # topics of Laplace noise that stabilize the estimated spread
_PEOPLE = "people"
_NAMES = Show(", ".join, "string")
_Options: TypeAlias = tuple[float, float, int, int]  # margin, level, resamples, seed
_GRADES = (CONTRADICTS, NOT, PARTIAL, SUPPORT)  # grade of a verdict: its index; kappa and shift need an order


@dataclass(frozen=True)
class JudgeVariance:
    """Share of the variance of a mean over topics that comes from the judge, whose verdicts vary when repeated."""

    topics: int  # judged twice
    variance: float  # of a topic's score, caused by the judge; NaN if no topic was judged twice
    share: float  # of the variance of the mean over topics; NaN also if topics do not vary
    share_ci: tuple[float, float] | None

    @classmethod
    def of(cls, first: Floats, repeated: Floats, scores: Floats, level: float = 0.95) -> JudgeVariance:
        """Estimate it from (R, K) scores of R systems on K topics that were judged twice, and one system's (T,) scores.

        Half the mean squared difference of two independent scores is an unbiased estimate of the judge's variance,
        assumed equal for all systems. The variance of scores over topics already contains it: intervals over topics
        need no correction. Its interval is that of a variance (chi-square), with fewer degrees of freedom the more the
        squared differences vary, from 12 topics. Interval and share are truncated to [0, 1].

        >>> own = JudgeVariance.of(np.array([[0.5, 0.5]]), np.array([[0.7, 0.5]]), np.array([0.5, 0.5, 0.1, 0.9]))
        >>> round(own.variance, 3), round(own.share, 3)
        (0.01, 0.094)
        """
        half_squares = ((first - repeated) ** 2 / 2).mean(axis=0)
        total = float(scores.var(ddof=1)) if len(scores) > 1 else 0.0
        if not len(half_squares) or not total > 0:
            return cls(len(half_squares), float(half_squares.mean()) if len(half_squares) else math.nan, math.nan, None)
        limits = _variance_interval(half_squares, len(first), level)
        share = min(float(half_squares.mean()) / total, 1.0)
        share_ci = None if limits is None else (min(limits[0] / total, 1.0), min(limits[1] / total, 1.0))
        return cls(len(half_squares), float(half_squares.mean()), share, share_ci)


@dataclass(frozen=True)
class VerdictAgreement:
    """Agreement of the verdicts of a model and of people in one table."""

    judge: str
    verdicts: str  # name of the table
    shared: int  # pieces that both judged
    failed: int  # verdicts of the model that failed, on pieces that people judged
    same: float  # share of equal verdicts
    kappa: float
    kappa_ci: tuple[float, float] | None
    quadratic: float  # kappa with quadratic weights
    shift: float  # mean difference in grades: contradicts 0, not 1, partial 2, support 3


@dataclass(frozen=True)
class JudgedMean:
    """Mean of a measure for one system, by people, by a model, and corrected by both."""

    judge: str
    measure: str
    run: str
    labeled: int  # topics that both scored
    people: float  # mean of people's scores
    model: float  # mean of the model's scores over all its topics
    model_judged: float  # mean of the model's scores over the topics that both scored
    bias: float  # the model's mean minus people's mean, over the topics that both scored
    bias_ci: tuple[float, float] | None
    within_margin: WithinMargin  # whether the bias is within the margin
    few_topics: tuple[str, ...]  # topics whose uncertain share of all topics could change `within_margin`
    selection_p: float  # of equal model means on topics with and without people's verdicts; NaN if not tested
    value: float  # corrected mean; NaN if the model judged only the topics that people judged
    ci: tuple[float, float] | None
    weight: float  # weight of the model's scores in the corrected mean
    repeated: int  # topics that the model judged twice
    judge_sd: float  # standard deviation of a topic's score caused by the judge, pooled over systems
    judge_variance_share: float  # share of the variance of the model's mean that is caused by the judge
    judge_variance_share_ci: tuple[float, float] | None


@dataclass(frozen=True, eq=False, repr=False)
class VerdictCalibration(Answer):
    """Result of `calibrate`."""

    kind: ClassVar[str] = "verdict-calibration"
    main: ClassVar[str] = "agreement"

    margin: float
    level: float
    agreement: tuple[VerdictAgreement, ...]
    means: tuple[JudgedMean, ...]
    grades: Mapping[tuple[str, str], Table]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return "Verdicts of models compared with verdicts of people"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Agreement of each judge, whether its bias is within the margin, and its own variance."""
        texts = [
            f"{row.judge} agrees with people on {row.same:.0%} of {counted(row.shared, 'verdict')} on {row.verdicts}"
            f" (kappa {row.kappa:.3f}); {row.failed:,} verdicts failed."
            for row in self.agreement
        ]
        for judge in dict.fromkeys(row.judge for row in self.means):
            judge_means = [row for row in self.means if row.judge == judge]
            for key, text in (
                ("yes", f"The bias of {judge} is within the margin of {self.margin:g} for these scores"),
                (
                    "no",
                    (
                        f"The bias of {judge} is beyond the margin of {self.margin:g} for these scores, so do not"
                        " replace people's scores"
                    ),
                ),
                (
                    "undecided",
                    (
                        f"It is undecided whether the bias of {judge} is within the margin of {self.margin:g}"
                        " for these scores"
                    ),
                ),
                (
                    "few topics",
                    (
                        f"The bias of {judge} was not tested for these scores, because people judged fewer than {MIN_N}"
                        " topics"
                    ),
                ),
                (
                    "not tested",
                    f"The bias of {judge} was not tested for these scores, because all errors of {judge} are equal",
                ),
            ):
                if scores := [f"{row.measure} of {row.run}" for row in judge_means if _bias_verdict(row) == key]:
                    texts.append(f"{text}: {listed(scores)}.{self._unseen(judge_means) if key == 'yes' else ''}")
            texts += [
                f"The result for {row.measure} of {row.run} by {judge} is sensitive to a few topics: it can change if"
                f" topics such as {listed(row.few_topics[:3])} are rarer or more frequent than in the sample."
                for row in judge_means
                if row.few_topics
            ]
            texts += [
                f"{row.measure} of {row.run} by {judge} is {row.model_judged:.3f} on the topics that people judged, and"
                f" {row.model:.3f} on all topics (p = {row.selection_p:.4f}): the judged topics differ from the other"
                " topics, so the bias on the other topics is unknown."
                for row in judge_means
                if row.selection_p <= 1 - self.level
            ]
            shares = [row.judge_variance_share for row in judge_means if not math.isnan(row.judge_variance_share)]
            if shares:
                repeated = counted(max(row.repeated for row in judge_means), "topic")
                span = " to ".join(dict.fromkeys(f"{share:.0%}" for share in (min(shares), max(shares))))
                texts.append(
                    f"Differences between repeated verdicts of {judge} cause {span} of the variance of a mean score,"
                    f" estimated from {repeated} that {judge} judged twice."
                )
        return tuple(texts)

    @staticmethod
    def _unseen(means: Sequence[JudgedMean]) -> str:
        # A kind of topic with share q is absent from n topics with probability (1 - q)^n, which is 0.05 at this q.
        n = min(mean.labeled for mean in means if mean.within_margin == "yes")
        topics = f"{1 - 0.05 ** (1 / n):.0%} of all topics"
        return (
            f" A sample of {n} topics can miss errors that affect up to {topics} (at 95% confidence), so the bias can"
            " be larger."
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return the sentences, agreement by table, means, and confusion tables."""
        means = (
            *columns_of(self.means, ("judge", TEXT), ("measure", TEXT), ("run", TEXT), ("labeled", COUNT, "topics")),
            Column("human_mean", [row.people for row in self.means], NUMBER, "people"),
            *columns_of(self.means, ("model", NUMBER), ("bias", number(4, "+")), "bias_ci",
            ("within_margin", TEXT, "within margin"),
            ("few_topics", _NAMES, "few topics"), ("selection_p", P_VALUE, "selection p"),
            ("value", NUMBER, "corrected"), ("weight", number(2)), ("repeated", COUNT),
            ("judge_sd", NUMBER, "judge sd"),
            ("judge_variance_share", SHARE, "judge share"), "judge_variance_share_ci"),
        )  # fmt: skip
        agreement = columns_of(
            self.agreement, ("judge", TEXT), ("verdicts", TEXT), ("shared", COUNT, "shared items"), ("failed", COUNT),
            ("same", SHARE, "same verdict"), ("kappa", number(3)), "kappa_ci",
            ("quadratic", number(3), "quadratic kappa"),
            ("shift", number(3, "+"), "mean difference"),
        )  # fmt: skip
        return (
            Sentences(self.sentences),
            Table("agreement", agreement, "Verdicts", labels=2),
            *((Table("means", means, "Means of systems", labels=3),) if self.means else ()),
            *(self.grades.values() if len({judge for judge, _ in self.grades}) == 1 else ()),
        )

    def facts(self) -> dict[str, Any]:
        """Return margin, level, and grades."""
        return {"margin": self.margin, "level": self.level, "grades": list(_GRADES)}


def calibrate(
    responses: Any,
    people: str | Collection[str],
    measures: Any = None,
    *,
    labeled: Collection[str] | None = None,
    margin: float = 0.05,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> VerdictCalibration:
    """Compare verdicts of models with those of people on a sample of topics, and correct the means of measures.

    A model is accepted if the interval of the bias of its means, over the topics that people judged, is within the
    margin. Agreement and kappa are shown for information. Corrected means (`judged.stats.prediction_powered`, over
    topics) estimate the population of topics; they assume that the topics that people judged are a random sample and
    fully judged. All intervals include the judge's own variance, as scores contain it; only the corrected intervals
    account for bias.

    Parameters
    ----------
    responses
        `Responses`, or an argument of `Responses.of`, with verdicts of people and of models.
    people
        Judges who are people; the middle of their verdicts is used. All other judges are models.
    measures
        Measures of answers. Default: those that the verdicts allow; ``()``: compare only verdicts.
    labeled
        Topics that people judged completely. Default: all topics with verdicts of people.
    margin
        Largest bias that does not matter, in units of the measure.
    level, resamples, seed
        Confidence level of intervals, and bootstrap of the corrected means.

    Raises
    ------
    InputError
        If no model and people judged the same.
    """
    check_share("level", level)
    check_resampling(resamples, seed)
    if not margin > 0:
        raise InputError(f"`margin` must be above 0, got {margin:g}", fix="use 0.05")
    source = Responses.of(responses)
    humans = {people} if isinstance(people, str) else set(people)
    judges = {judge for table in VERDICTS for judge in source[table]["judge"].unique().to_pylist()}
    if unknown := sorted(humans - judges):
        fix = f"use one or more of {', '.join(sorted(judges))}"
        raise InputError(f"judge {unknown[0]!r} has no verdict", fix=fix, path=source.where)
    agreement: list[VerdictAgreement] = []
    means: list[JudgedMean] = []
    grades: dict[tuple[str, str], Table] = {}
    by_people = _middle_of_people(source, humans)
    topics = {topic for table in VERDICTS for topic in by_people[table]["query_id"].to_pylist()}
    topics &= topics if labeled is None else set(labeled)
    for judge in sorted(judges - humans):
        by_model = _verdicts_of(source, judge)
        for table in VERDICTS:
            comparison = _agreement(by_people, by_model, table, judge, level)
            if comparison is not None:
                agreement.append(comparison[0])
                grades |= {(judge, table): comparison[1]}
        if any(row.judge == judge for row in agreement) and measures != ():
            by_people_labeled, repeated = by_people.of_topics(topics), _verdicts_of(source, judge, 1)
            means += _means(by_people_labeled, by_model, repeated, measures, judge, (margin, level, resamples, seed))
    if not agreement:
        fix = "let a model judge items that people judged"
        raise InputError("no model judged the same items as people", fix=fix, path=source.where)
    fewest = min([MIN_N, *(mean.labeled for mean in means)])
    shortage = insufficiency(fewest, "verdict", min_units=MIN_N)
    result = "there are no confidence intervals" if insufficiency(fewest) else "confidence intervals may be too narrow"
    reason = shortage.sentence("topic") if shortage else ""
    text = f"{reason} Therefore, {result}, and the bias of model judges is not tested"
    notes = (Note("few-topics", text),) if fewest < MIN_N else ()
    return VerdictCalibration(margin, level, tuple(agreement), tuple(means), grades, (*source.notes, *notes))


def _bias_verdict(row: JudgedMean) -> str:
    """Return whether the bias is within the margin, or `few topics` if it was not tested for this reason."""
    return "few topics" if row.within_margin == "not tested" and row.labeled < MIN_N else row.within_margin


def _verdicts_of(responses: Responses, judge: str, repeat: int = 0) -> Responses:
    tables = {
        name: responses[name].filter(
            pc.and_(pc.equal(responses[name]["judge"], judge), pc.equal(responses[name]["repeat"], repeat))
        )
        for name in VERDICTS
    }
    return responses.with_tables(**tables)


def verdict_labels(responses: Responses, table: str, kind: Literal["human", "model"]) -> Labels | None:
    """Convert verdicts to labels of documents: the judged piece becomes the document id; None without verdicts."""
    key_columns = [name for name in KEYS[table] if name not in ("query_id", "judge", "repeat")]
    rows = [
        {
            "query_id": row["query_id"],
            "doc_id": json.dumps([row[name] for name in key_columns]),
            "judge": row["judge"],
            "repeat": row["repeat"],
            "grade": None if row["verdict"] == FAILED else float(_GRADES.index(row["verdict"])),
            "valid": row["verdict"] != FAILED,
        }
        for row in responses[table].to_pylist()
    ]
    where = responses.where
    return Labels(complete_columns(pa.Table.from_pylist(rows), kind, where), table, where) if rows else None


def _middle_of_people(responses: Responses, humans: Collection[str]) -> Responses:
    """Replace all verdicts by the middle verdict of people."""
    tables: dict[str, Any] = {}
    judges = pa.array(sorted(humans), pa.string())
    for name in VERDICTS:
        key_columns = [column for column in KEYS[name] if column not in ("judge", "repeat")]
        rows = responses[name].filter(pc.is_in(responses[name]["judge"], value_set=judges))
        tables[name] = [
            {**dict(zip(key_columns, key, strict=True)), "judge": _PEOPLE, "verdict": verdict}
            for key, verdict in middle_verdicts(rows, *key_columns).items()
            if verdict != FAILED
        ]
    return responses.with_tables(**tables)


def _agreement(
    by_people: Responses, by_model: Responses, table: str, judge: str, level: float
) -> tuple[VerdictAgreement, Table] | None:
    people, model = verdict_labels(by_people, table, "human"), verdict_labels(by_model, table, "model")
    if people is None or model is None:
        return None
    pairs = {(row["query_id"], row["doc_id"]) for row in people.table.to_pylist()}
    shared = [row for row in model.table.to_pylist() if (row["query_id"], row["doc_id"]) in pairs]
    if not any(row["valid"] for row in shared):
        return None
    labels = Labels(pa.concat_tables([people.table, pa.Table.from_pylist(shared, schema=people.table.schema)]))
    calibrated = calibration.calibrate(labels, rel=len(_GRADES) - 1, highest=len(_GRADES) - 1, level=level)
    failed = sum(not row["valid"] for row in shared)
    grade_of = {(row["query_id"], row["doc_id"]): row["grade"] for row in people.table.to_pylist()}
    pair_counts = Counter((grade_of[row["query_id"], row["doc_id"]], row["grade"]) for row in shared)
    verdicts = [verdict for verdict in (*_GRADES, FAILED) if verdict in VERDICTS[table]]
    columns = [Column(_PEOPLE, verdicts[:-1], TEXT)]
    for model_verdict in verdicts:
        grade = None if model_verdict == FAILED else float(_GRADES.index(model_verdict))
        counts = [pair_counts[float(_GRADES.index(verdict)), grade] for verdict in verdicts[:-1]]
        columns.append(Column(model_verdict, counts, COUNT))
    confusion = Table(table, tuple(columns), f"Verdicts of {judge} on {table}, by verdict of people", folded=True)
    row: JudgeCalibration = calibrated.judges[0]
    kappas = (row.kappa, row.kappa_ci, row.quadratic)
    return VerdictAgreement(judge, table, row.shared, failed, row.same, *kappas, row.shift), confusion


def _means(
    by_people: Responses, by_model: Responses, repeats: Responses, measures: Any, judge: str, options: _Options
) -> list[JudgedMean]:
    from judged.pipelines.rag.scoring import evaluate, judged_pieces, usual_measures

    margin, level, resamples, seed = options
    counts = [[Counter(rows[table]["query_id"].to_pylist()) for table in VERDICTS] for rows in (by_model, repeats)]
    complete = {  # a topic with fewer verdicts in the repetition would be scored on other pieces
        topic for topic_counts in counts[1] for topic in topic_counts
        if all(after[topic] in (0, before[topic]) for before, after in zip(*counts, strict=True))
    }  # fmt: skip
    means: list[JudgedMean] = []
    if measures is None:
        measures = usual_measures(judged_pieces(by_people) & judged_pieces(by_model))
    for measure in measures_of(measures):
        people_scores = evaluate(by_people, measure, unjudged=False)
        model_scores = evaluate(by_model, measure, unjudged=False)
        if people_scores.run_names != model_scores.run_names:
            fix = "remove the system, or have people judge its answers"
            raise InputError("a system has no answer to the topics that people judged", fix=fix, path=by_people.where)
        repeated = evaluate(repeats.of_topics(complete), measure, unjudged=False) if complete else None
        both = PairedScores.of(people_scores, model_scores)
        corrected = both.prediction_powered_means(level, resamples, seed)
        for i, run in enumerate(both.runs):
            bias = judge_bias(both.people[i], both.model[i], both.model_only[i], margin=margin, level=level)
            all_scores = model_scores.values[i, 0][~np.isnan(model_scores.values[i, 0])]
            variance = JudgeVariance.of(*_scores_of_repeated(model_scores, repeated), all_scores, level)
            estimate = corrected[i] if corrected else None
            ci = estimate.interval if estimate else None
            ci = None if ci is None or ci[0] >= ci[1] else ci
            means.append(
                JudgedMean(
                    judge=judge, measure=str(measure), run=run, labeled=bias.n,
                    people=float(both.people[i].mean()) if bias.n else math.nan,
                    model=float(all_scores.mean()) if len(all_scores) else math.nan,
                    model_judged=float(both.model[i].mean()) if bias.n else math.nan,
                    bias=bias.mean, bias_ci=bias.ci, within_margin=bias.within_margin,
                    few_topics=tuple(both.query_ids[topic] for topic in bias.few_topics), selection_p=bias.selection_p,
                    value=estimate.value if estimate else math.nan, ci=ci,
                    weight=estimate.weight if estimate else math.nan, repeated=variance.topics,
                    judge_sd=math.sqrt(variance.variance), judge_variance_share=variance.share,
                    judge_variance_share_ci=variance.share_ci,
                )
            )  # fmt: skip
    return means


def _scores_of_repeated(model: Scores, repeated: Scores | None) -> tuple[Floats, Floats]:
    """Return first and repeated scores of the topics that were judged twice for all systems."""
    if repeated is None or repeated.run_names != model.run_names:
        return np.empty((1, 0)), np.empty((1, 0))
    column = {topic: i for i, topic in enumerate(model.query_ids)}
    first = model.values[:, 0][:, [column[topic] for topic in repeated.query_ids]]
    second = repeated.values[:, 0]
    is_complete = ~(np.isnan(first) | np.isnan(second)).any(axis=0)
    return first[:, is_complete], second[:, is_complete]


def _variance_interval(half_squares: Floats, systems: int, level: float) -> tuple[float, float] | None:
    """Return an interval of the mean of halves of squared differences; None if there is not enough data.

    For normal noise, n times their mean is a multiple of chi-square with n degrees of freedom, and their variance is
    twice the squared mean. Heavier tails reduce the degrees of freedom (Satterthwaite). As the variance of few values
    is uncertain, five topics of Laplace noise, with a variance of 5 squared means, are added: see docs/calibration.md.
    """
    from scipy.special import gammaincinv

    n = len(half_squares)
    if insufficiency(n, variance=float(half_squares.var()) if n else 0.0, min_units=MIN_REPEATED_TOPICS):
        return None
    mean = float(half_squares.mean())
    squares = n * float(half_squares.var(ddof=1)) / mean**2
    relative_variance = (squares + _PRIOR_TOPICS * 5.0 / systems) / (n + _PRIOR_TOPICS)
    freedom = min(2.0 * n / relative_variance, float(n * systems))
    low, high = (2.0 * float(gammaincinv(freedom / 2.0, q)) for q in ((1 + level) / 2, (1 - level) / 2))
    return freedom * mean / low, freedom * mean / high
