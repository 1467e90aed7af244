"""A model's verdicts against people's: may it be believed, what its error does to means, and how far it wavers."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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
    from judged.pipelines.rag.judge_bias import Believed
    from judged.results import Block
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores

LEAST_REPEATED = 12
"""Minimum number of topics that were judged twice for an interval of the judge's own variance."""
_ADDED = 5  # topics
_PEOPLE = "people"
_NAMES = Show(", ".join, "string")
_GRADES = (CONTRADICTS, NOT, PARTIAL, SUPPORT)  # the grade of a verdict is its place: kappa and shift need an order


@dataclass(frozen=True)
class OwnVariance:
    """How much of the variance of a mean over topics is the judge's own: it says something else when asked again."""

    topics: int  # that were asked twice
    variance: float  # of a topic's score, by the judge alone; NaN where nothing was asked twice
    share: float  # of the variance of the mean over topics; NaN also where topics do not differ
    share_ci: tuple[float, float] | None

    @classmethod
    def of(cls, first: Floats, again: Floats, scores: Floats, level: float = 0.95) -> OwnVariance:
        """Estimate it of topics that were scored twice, (R, K) and (R, K) of R systems, for one system's scores, (T,).

        Half the mean squared difference of two independent scores is the judge's variance, without bias; it is taken to
        be the same for all systems. The variance of scores over topics holds it already, so an interval over topics
        needs nothing added. The interval is that of a variance (chi-square), with fewer degrees of freedom the more the
        squared differences vary; from 12 topics. It and the share are kept from 0 to 1.

        >>> found = OwnVariance.of(np.array([[0.5, 0.5]]), np.array([[0.7, 0.5]]), np.array([0.5, 0.5, 0.1, 0.9]))
        >>> round(found.variance, 3), round(found.share, 3)
        (0.01, 0.094)
        """
        halves = ((first - again) ** 2 / 2).mean(axis=0)
        whole = float(scores.var(ddof=1)) if len(scores) > 1 else 0.0
        if not len(halves) or not whole > 0:
            return cls(len(halves), float(halves.mean()) if len(halves) else math.nan, math.nan, None)
        ends = _variance_interval(halves, len(first), level)
        share = min(float(halves.mean()) / whole, 1.0)
        limits = None if ends is None else (min(ends[0] / whole, 1.0), min(ends[1] / whole, 1.0))
        return cls(len(halves), float(halves.mean()), share, limits)


@dataclass(frozen=True)
class VerdictAgreement:
    """How far a model and people give the same verdicts, in one table."""

    judge: str
    verdicts: str  # the table
    shared: int
    failed: int  # of the model's, among those that people judged
    same: float
    kappa: float
    kappa_ci: tuple[float, float] | None
    quadratic: float
    shift: float  # in grades: contradicts 0, not 1, partial 2, support 3


@dataclass(frozen=True)
class JudgedMean:
    """A system's mean by people, by a model, and by both."""

    judge: str
    measure: str
    run: str
    labeled: int  # topics that both scored
    known: float  # by people
    model: float  # by the model, over all its topics
    model_judged: float  # by the model, over the topics that both scored
    bias: float  # the model's less people's, over the topics that both scored
    bias_ci: tuple[float, float] | None
    believed: Believed  # whether the bias is shown to be within the margin, or beyond it
    few_topics: tuple[str, ...]  # whose uncertain share of all topics could undo that; empty: none
    selection_p: float  # of the model's means on the topics that people judged, and on all others; NaN: not tested
    value: float  # corrected; NaN where the model judged no topics beside people's
    ci: tuple[float, float] | None
    weight: float  # how far the model is believed in it
    repeated: int  # topics that the model judged twice
    own_sd: float  # of a topic's score, by the judge alone, over all systems
    own_share: float  # of the variance of the model's mean
    own_share_ci: tuple[float, float] | None


@dataclass(frozen=True, eq=False, repr=False)
class VerdictCalibration(Answer):
    """What `calibrate` returns."""

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
        """What is set against what."""
        return "Verdicts of models, against people's"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether each judge may be believed, and how far it wavers."""
        said = [
            f"{one.judge} gives {one.same:.0%} of {counted(one.shared, 'verdict')} on {one.verdicts} as people do"
            f" (kappa {one.kappa:.3f}); {one.failed:,} failed."
            for one in self.agreement
        ]
        for judge in dict.fromkeys(one.judge for one in self.means):
            own = [one for one in self.means if one.judge == judge]
            for key, text in (
                ("yes", f"Within {self.margin:g} of people's, by {judge}"),
                ("no", f"Not to be reported as if people had said it, by {judge}"),
                ("undecided", f"Not shown either way by the topics that people judged, for {judge}"),
                (
                    "not tested",
                    f"Not tested, as people judged fewer than {MIN_N} topics or no error varies, for {judge}",
                ),
            ):
                if names := [f"{one.measure} of {one.run}" for one in own if one.believed == key]:
                    said.append(f"{text}: {listed(names)}.{self._unseen(own) if key == 'yes' else ''}")
            said += [
                f"Sensitive to a few topics, {one.measure} of {one.run} by {judge}: if topics such as"
                f" {listed(one.few_topics[:3])} are as rare or as frequent as the sample allows, this verdict does not"
                " hold."
                for one in own
                if one.few_topics
            ]
            said += [
                f"{one.measure} of {one.run} by {judge} is {one.model_judged:.3f} on the topics that people judged, and"
                f" {one.model:.3f} on all (p {one.selection_p:.4f}): people's topics are not like the others, so that"
                " its bias on these is not known."
                for one in own
                if one.selection_p <= 1 - self.level
            ]
            shares = [one.own_share for one in own if not math.isnan(one.own_share)]
            if shares:
                twice = counted(max(one.repeated for one in own), "topic")
                span = f"{min(shares):.0%} to {max(shares):.0%}" if len(shares) > 1 else f"{shares[0]:.0%}"
                said.append(f"Asked again on {twice}, {judge} is itself the cause of {span} of the variance of a mean.")
        return tuple(said)

    @staticmethod
    def _unseen(means: Sequence[JudgedMean]) -> str:
        """Say how rare topics can be that people's sample does not show, in 5 of 100 samples."""
        n = min(one.labeled for one in means if one.believed == "yes")
        topics = f"{1 - 0.05 ** (1 / n):.0%} of all topics"
        return f" With {n} topics judged by people, errors on up to {topics} can go unseen, and the bias can be larger."

    def blocks(self) -> tuple[Block, ...]:
        """Give the sentences, agreement by table, means, and how verdicts met."""
        means = columns_of(
            self.means, ("judge", TEXT), ("measure", TEXT), ("run", TEXT), ("labeled", COUNT, "topics"),
            ("known", NUMBER, "people"), ("model", NUMBER), ("bias", number(4, "+")), "bias_ci", ("believed", TEXT),
            ("few_topics", _NAMES, "few topics"), ("selection_p", P_VALUE, "selection p"),
            ("value", NUMBER, "corrected"), ("weight", number(2)), ("repeated", COUNT), ("own_sd", NUMBER, "own sd"),
            ("own_share", SHARE, "own share"), "own_share_ci",
        )  # fmt: skip
        agreement = columns_of(
            self.agreement, ("judge", TEXT), ("verdicts", TEXT), ("shared", COUNT), ("failed", COUNT), ("same", SHARE),
            ("kappa", number(3)), "kappa_ci", ("quadratic", number(3)), ("shift", number(3, "+")),
        )  # fmt: skip
        return (
            Sentences(self.sentences),
            Table("agreement", agreement, "Verdicts", labels=2),
            *((Table("means", means, "Means of systems", labels=3),) if self.means else ()),
            *(self.grades.values() if len({judge for judge, _ in self.grades}) == 1 else ()),
        )

    def facts(self) -> dict[str, Any]:
        """Give what the numbers are of."""
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
    """Set the verdicts of models against people's on a share of topics, and correct the means of measures by them.

    Whether a model may be believed is decided by what its errors do to means: by the interval of its bias over the
    topics that people judged, against a margin. Agreement and kappa stand beside it and decide nothing. Corrected means
    (`judged.stats.prediction_powered`, over topics) are of the population of topics; they take those that people judged
    to be chosen at random and judged fully. All intervals hold the judge's own variance, for it is in the scores that
    they are made of; bias is in none but the corrected ones.

    Parameters
    ----------
    responses
        `Responses`, or what `Responses.of` takes, with verdicts of people and of models.
    people
        The judges who are people; of several the middle verdict counts. All others are models.
    measures
        Measures of answers; None: those that the verdicts allow; ``()``: none, only verdicts are compared.
    labeled
        The topics that people judged fully; None: all of theirs.
    margin
        A bias that does not matter.
    level, resamples, seed
        Of intervals, and of the bootstrap that says what a judge is worth.

    Raises
    ------
    InputError
        If there is nothing to compare.
    """
    check_share("level", level)
    check_resampling(resamples, seed)
    if not margin > 0:
        raise InputError(f"a margin of {margin:g} decides nothing", fix="give a number above 0")
    given = Responses.of(responses)
    humans = {people} if isinstance(people, str) else set(people)
    names = {judge for table in VERDICTS for judge in given[table]["judge"].unique().to_pylist()}
    if strange := sorted(humans - names):
        raise InputError(
            f"nobody called {strange[0]!r} gave a verdict",
            fix=f"use some of {', '.join(sorted(names))}",
            path=given.where,
        )
    agreement: list[VerdictAgreement] = []
    means: list[JudgedMean] = []
    grades: dict[tuple[str, str], Table] = {}
    known = _of_people(given, humans)
    topics = {topic for table in VERDICTS for topic in known[table]["query_id"].to_pylist()}
    topics &= topics if labeled is None else set(labeled)
    for judge in sorted(names - humans):
        own = _of_judge(given, judge)
        both = [table for table in VERDICTS if known[table].num_rows and own[table].num_rows]
        for table in both:
            found = _agreement(known, own, table, judge, level)
            if found is not None:
                agreement.append(found[0])
                grades |= {(judge, table): found[1]}
        if any(one.judge == judge for one in agreement) and measures != ():
            means += _means(known.of_topics(topics), own, _of_judge(given, judge, 1), measures, judge,
                            (margin, level, resamples, seed))  # fmt: skip
    if not agreement:
        fix = "have a model judge some of what people judged"
        raise InputError("no model and people judged the same", fix=fix, path=given.where)
    fewest = min([MIN_N, *(one.labeled for one in means)])
    lacking = insufficiency(fewest, "verdict", min_units=MIN_N)
    result = "there are no intervals" if insufficiency(fewest) else "intervals do not hold their level"
    said = lacking.sentence("topic") if lacking else ""
    text = f"{said} So {result}, and whether a judge can be believed is not tested"
    notes = (Note("few-topics", text),) if fewest < MIN_N else ()
    return VerdictCalibration(margin, level, tuple(agreement), tuple(means), grades, (*given.notes, *notes))


def _of_judge(given: Responses, judge: str, repeat: int = 0) -> Responses:
    """Leave the verdicts of one judge, and of those what it said first, or again."""
    tables = {
        name: given[name].filter(
            pc.and_(pc.equal(given[name]["judge"], judge), pc.equal(given[name]["repeat"], repeat))
        )
        for name in VERDICTS
    }
    return given.with_tables(**tables)


def verdict_labels(given: Responses, table: str, kind: Literal["human", "model"]) -> Labels | None:
    """Make labels of verdicts: what was judged is the document, and the grade is how far; None where there are none."""
    key = [name for name in KEYS[table] if name not in ("query_id", "judge", "repeat")]
    rows = [
        {
            "query_id": row["query_id"],
            "doc_id": json.dumps([row[name] for name in key]),
            "judge": row["judge"],
            "repeat": row["repeat"],
            "grade": None if row["verdict"] == FAILED else float(_GRADES.index(row["verdict"])),
            "valid": row["verdict"] != FAILED,
        }
        for row in given[table].to_pylist()
    ]
    return Labels(complete_columns(pa.Table.from_pylist(rows), kind, given.where), table, given.where) if rows else None


def _of_people(given: Responses, humans: Collection[str]) -> Responses:
    """Put the middle verdict of people in the place of all verdicts."""
    tables: dict[str, Any] = {}
    chosen = pa.array(sorted(humans), pa.string())
    for name in VERDICTS:
        key = [column for column in KEYS[name] if column not in ("judge", "repeat")]
        theirs = given[name].filter(pc.is_in(given[name]["judge"], value_set=chosen))
        tables[name] = [
            {**dict(zip(key, place, strict=True)), "judge": _PEOPLE, "verdict": verdict}
            for place, verdict in middle_verdicts(theirs, *key).items()
            if verdict != FAILED
        ]
    return given.with_tables(**tables)


def _agreement(
    known: Responses, own: Responses, table: str, judge: str, level: float
) -> tuple[VerdictAgreement, Table] | None:
    """Compare verdicts on what both judged; None where that is nothing."""
    people, model = verdict_labels(known, table, "human"), verdict_labels(own, table, "model")
    if people is None or model is None:
        return None
    pairs = {(row["query_id"], row["doc_id"]) for row in people.table.to_pylist()}
    shared = [row for row in model.table.to_pylist() if (row["query_id"], row["doc_id"]) in pairs]
    if not any(row["valid"] for row in shared):
        return None
    both = Labels(pa.concat_tables([people.table, pa.Table.from_pylist(shared, schema=people.table.schema)]))
    made = calibration.calibrate(both, rel=len(_GRADES) - 1, highest=len(_GRADES) - 1, level=level)
    one: JudgeCalibration = made.judges[0]
    failed = sum(not row["valid"] for row in shared)
    said = {(row["query_id"], row["doc_id"]): row["grade"] for row in people.table.to_pylist()}
    met = Counter((said[row["query_id"], row["doc_id"]], row["grade"]) for row in shared)
    words = [word for word in (*_GRADES, FAILED) if word in VERDICTS[table]]
    columns = [Column(_PEOPLE, words[:-1], TEXT)]
    for model_word in words:
        grade = None if model_word == FAILED else float(_GRADES.index(model_word))
        times = [met[float(_GRADES.index(word)), grade] for word in words[:-1]]
        columns.append(Column(model_word, times, COUNT))
    confusion = Table(table, tuple(columns), f"What {judge} said of {table}, by what people said", folded=True)
    found = VerdictAgreement(
        judge, table, one.shared, failed, one.same, one.kappa, one.kappa_ci, one.quadratic, one.shift
    )
    return found, confusion


def _means(
    known: Responses, own: Responses, again: Responses, measures: Any, judge: str, how: tuple[float, float, int, int]
) -> list[JudgedMean]:
    """Give each system's mean of each measure by people, by the model, and corrected."""
    from judged.pipelines.rag.scoring import asked, evaluate, usual_measures

    margin, level, resamples, seed = how
    counts = [[Counter(one[table]["query_id"].to_pylist()) for table in VERDICTS] for one in (own, again)]
    repeated = {  # as a whole: half a topic would be scored on other pieces than before
        topic for count in counts[1] for topic in count
        if all(after[topic] in (0, before[topic]) for before, after in zip(*counts, strict=True))
    }  # fmt: skip
    made: list[JudgedMean] = []
    for measure in measures_of(usual_measures(asked(known) & asked(own)) if measures is None else measures):
        scores, model = evaluate(known, measure, unjudged=False), evaluate(own, measure, unjudged=False)
        if scores.run_names != model.run_names:
            fix = "leave it out, or have people judge its answers"
            raise InputError("a system has no answer among the topics that people judged", fix=fix, path=known.where)
        twice = evaluate(again.of_topics(repeated), measure, unjudged=False) if repeated else None
        seen = PairedScores.of(scores, model)
        corrected = seen.prediction_powered_means(level, resamples, seed)
        for at, run in enumerate(seen.runs):
            bias = judge_bias(seen.people[at], seen.model[at], seen.model_only[at], margin=margin, level=level)
            whole = model.values[at, 0][~np.isnan(model.values[at, 0])]
            variance = OwnVariance.of(*_twice(model, twice), whole, level)
            found = corrected[at] if corrected else None
            limits = found.interval if found else None
            if limits is not None and not limits[0] < limits[1]:
                limits = None
            made.append(
                JudgedMean(
                    judge=judge, measure=str(measure), run=run, labeled=bias.n,
                    known=float(seen.people[at].mean()) if bias.n else math.nan,
                    model=float(whole.mean()) if len(whole) else math.nan,
                    model_judged=float(seen.model[at].mean()) if bias.n else math.nan,
                    bias=bias.mean, bias_ci=bias.ci, believed=bias.believed,
                    few_topics=tuple(seen.query_ids[topic] for topic in bias.few_topics), selection_p=bias.selection_p,
                    value=found.value if found else math.nan, ci=limits,
                    weight=found.weight if found else math.nan, repeated=variance.topics,
                    own_sd=math.sqrt(variance.variance), own_share=variance.share, own_share_ci=variance.share_ci,
                )
            )  # fmt: skip
    return made


def _twice(model: Scores, twice: Scores | None) -> tuple[Floats, Floats]:
    """Give the scores of the topics that were judged twice for all systems, as they were first and again."""
    if twice is None or twice.run_names != model.run_names:
        return np.empty((1, 0)), np.empty((1, 0))
    place = {topic: at for at, topic in enumerate(model.query_ids)}
    first = model.values[:, 0][:, [place[topic] for topic in twice.query_ids]]
    again = twice.values[:, 0]
    both = ~(np.isnan(first) | np.isnan(again)).any(axis=0)
    return first[:, both], again[:, both]


def _variance_interval(halves: Floats, systems: int, level: float) -> tuple[float, float] | None:
    """Return an interval of the mean of halves of squared differences; None where there is not enough data for one.

    Of normal noise, n of them are a multiple of chi-square with n degrees of freedom, and their variance is 2 squared
    means. Heavier tails leave fewer degrees (Satterthwaite). Their variance is estimated roughly, so five topics of
    Laplace noise, of which it is 5 squared means, are added to the estimate: see docs/calibration.md.
    """
    from scipy.special import gammaincinv

    n = len(halves)
    if insufficiency(n, variance=float(halves.var()) if n else 0.0, min_units=LEAST_REPEATED):
        return None
    mean = float(halves.mean())
    spread = (n * float(halves.var(ddof=1)) / mean**2 + _ADDED * 5.0 / systems) / (n + _ADDED)
    freedom = min(2.0 * n / spread, float(n * systems))
    low, high = (2.0 * float(gammaincinv(freedom / 2.0, q)) for q in ((1 + level) / 2, (1 - level) / 2))
    return freedom * mean / low, freedom * mean / high
