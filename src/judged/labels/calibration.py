"""Calibration of models as judges against people: agreement, effect on systems, and value of their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.agreement import agree
from judged.comparison.agreement.agree import Judges, parse_judges
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.labels.corrected_systems import (
    CorrectedMean,
    FamilyBias,
    PairedScores,
    corrected_means,
    family_biases,
    rows_by_slice,
    topic_interval,
    topic_means,
)
from judged.labels.labels import Labels
from judged.results import COUNT, NUMBER, SHARE, TEXT, Answer, Headline, Sentences, Table, columns_of, counted, number
from judged.results.blocks import Note
from judged.results.decimals import decimal
from judged.scoring.evaluation import evaluate, runs_of
from judged.scoring.judging import judge as judge_run
from judged.scoring.measures.grammar import parse
from judged.stats.agreement import cohen_kappa
from judged.stats.inputs import check_resampling, check_share
from judged.stats.prediction_powered import MIN_N

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from judged.comparison.agreement import JudgeAgreement
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.run import Run
    from judged.results import Block, Status
    from judged.stats.prediction_powered import PredictionPoweredMean

_DIGITS, _SIGNED = number(3), number(3, "+")
_MAX_CONTESTED, _MAX_UNFOLDED = 100, 12


@dataclass(frozen=True)
class JudgeCalibration:
    """Agreement of one model as a judge with people."""

    judge: str
    shared: int  # pairs that both graded
    missing: int  # pairs that people graded and the model did not
    invalid: int  # its grades outside the scale: left out, not rounded
    same: float
    kappa: float
    kappa_ci: tuple[float, float] | None
    quadratic: float
    binary: float  # kappa of relevant against not relevant
    shift: float  # mean grade of the model minus that of people, over shared pairs
    shift_ci: tuple[float, float] | None  # over topics
    tau: float  # of the ranking of systems, over topics judged by both
    tau_ap: float
    within_topics: float  # correlation of the systems' topic scores, centered by topic
    largest_error: float  # largest error of a system's mean
    # number of additional human-judged topics that narrow an interval as much as its labels, median over systems
    added_topics: float
    added_topics_ci: tuple[float, float] | None


@dataclass(frozen=True)
class SliceCalibration:
    """Agreement of one model as a judge with people on the topics of a slice."""

    judge: str
    slice: str
    n: int  # topics with grades from both
    shared: int
    same: float
    kappa: float
    quadratic: float
    shift: float
    shift_ci: tuple[float, float] | None  # over topics


@dataclass(frozen=True)
class ContestedDocument:
    """A document with different grades from people and from a model."""

    query_id: str
    doc_id: str
    judge: str
    human: float
    model: float
    runs: int  # runs that return it within the measure's cutoff


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Answer):
    """Result of `calibrate`."""

    kind: ClassVar[str] = "calibration"
    main: ClassVar[str] = "judges"

    measure: str
    labeled: int  # topics that people judged
    model_only: int  # topics that only the models judged
    level: float
    judges: tuple[JudgeCalibration, ...]
    means: tuple[CorrectedMean, ...]
    slices: tuple[SliceCalibration, ...]
    families: tuple[FamilyBias, ...]
    contested: tuple[ContestedDocument, ...]
    grades: Mapping[str, Table]  # by judge, confusion matrix of grades
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return "Model judges compared with people"

    @property
    def headline(self) -> Headline:
        """Value of the labels of a single model, or the agreement with people of the model that agrees most."""
        judge = max(self.judges, key=lambda judge: -1.0 if math.isnan(judge.quadratic) else judge.quadratic)
        options: dict[str, Any] = {"level": self.level, "reference": 0.0}
        same = f"{judge.judge} gives {judge.same:.0%} of {counted(judge.shared, 'document')} the same grade as people"
        if judge.added_topics_ci is None or len(self.judges) > 1:
            label = f"kappa of {judge.judge} and people"
            return Headline("info", "agreement", f"{same}.", label, judge.kappa, _DIGITS, judge.kappa_ci, **options)
        status: Status = "better" if judge.added_topics_ci[0] > 0 else "same"
        word = "labels add information" if status == "better" else "no significant information"
        sentence = f"{same}, who judged {counted(self.labeled, 'topic')}."
        label = f"more topics judged by people would add as much information on {self.measure}"
        return Headline(status, word, sentence, label, judge.added_topics, number(0), judge.added_topics_ci, **options)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Value of the models' labels, with limits of the conclusions."""
        return tuple(text for judge in self.judges for text in self._of(judge))

    def _of(self, judge: JudgeCalibration) -> Iterator[str]:
        has_kappa = not math.isnan(judge.kappa)
        kappa = f"kappa {decimal(judge.kappa, 3)}" if has_kappa else "no kappa, because grades are not integers"
        direction = "higher" if judge.shift > 0 else "lower"
        yield (
            f"{judge.judge} gives {judge.same:.0%} of {counted(judge.shared, 'document')} the same grade as people"
            f" ({kappa}; quadratic kappa {decimal(judge.quadratic, 3)}). The grades of {judge.judge} are"
            f" {decimal(abs(judge.shift), 2)} {direction} on average than the grades of people."
        )
        if judge.invalid:
            yield f"{judge.judge} gave {counted(judge.invalid, 'grade')} outside the scale, treated as unjudged."
        if not math.isnan(judge.tau):
            yield (
                f"Between the rankings of systems by {judge.judge} and by people, Kendall's tau is"
                f" {decimal(judge.tau, 3)}. The correlation of the scores within topics is"
                f" {decimal(judge.within_topics, 3)}, and the largest error of the mean of a system is"
                f" {decimal(judge.largest_error, 3)}."
            )
        if judge.added_topics_ci is not None:
            low, high = judge.added_topics_ci
            yield (
                f"For {self.measure}, the labels of {judge.judge} add as much information as {judge.added_topics:.0f}"
                f" more topics judged by people ({self.level:.0%} CI [{low:.0f}, {high:.0f}]). People judged"
                f" {self.labeled} topics.{' The added information is not significant.' if low <= 0 else ''}"
            )

    def blocks(self) -> tuple[Block, ...]:
        """Return judges, systems under people and models, families, confusion matrices, and contested documents."""
        agreement = (
            ("same", SHARE, "same grade"),
            ("kappa", _DIGITS),
            "kappa_ci",
            ("quadratic", _DIGITS, "quadratic kappa"),
            ("binary", _DIGITS, "binary kappa"),
        )
        systems = (("tau", _DIGITS), ("tau_ap", _DIGITS, "tau_AP"), ("within_topics", _DIGITS, "within topics"))
        columns: list[Any] = [
            ("judge", TEXT),
            ("shared", COUNT, "shared pairs"),
            "missing",
            ("invalid", COUNT),
            *agreement,
        ]
        columns += [("shift", _SIGNED, "mean difference"), "shift_ci"]
        if self.means or any(not math.isnan(judge.tau) for judge in self.judges):
            columns += [*systems, ("largest_error", NUMBER, "largest error")]
            columns += [("added_topics", number(0), "added topics"), "added_topics_ci"]
        judges = columns_of(self.judges, *columns)
        blocks: list[Block] = [Sentences(self.sentences), Table("judges", judges)]
        if self.slices:
            head = (("judge", TEXT), ("slice", TEXT), ("n", COUNT, "topics"), ("shared", COUNT, "shared pairs"))
            columns = [*head, *agreement[:2], agreement[3], ("shift", _SIGNED, "mean difference"), "shift_ci"]
            blocks.append(Table("slices", columns_of(self.slices, *columns), labels=2, title="By slice"))
        if self.means:
            head = (("judge", TEXT), ("run", TEXT), ("human", NUMBER, "people"), "human_ci", ("model", NUMBER))
            corrected = (
                ("value", NUMBER, "corrected"),
                ("weight", number(2)),
                ("difference", number(4, "+")),
                "difference_ci",
            )
            means = columns_of(self.means, *head, *corrected)
            blocks.append(Table("systems", means, labels=2, title="Means of systems"))
        if self.families:
            head = (("judge", TEXT), ("family", TEXT), ("runs", COUNT), ("bias", number(4, "+")), "ci")
            blocks.append(
                Table(
                    "families",
                    columns_of(self.families, *head),
                    labels=2,
                    title="Bias of judges by system family",
                    folded=len(self.families) > _MAX_UNFOLDED,
                )
            )
        blocks += self.grades.values()
        numbers = (("human", number(0), "people"), ("model", number(1)), ("runs", COUNT))
        names = (("query_id", TEXT, "topic"), ("doc_id", TEXT, "document"), ("judge", TEXT))
        return (
            *blocks,
            Table(
                "contested",
                columns_of(self.contested, *names, *numbers),
                labels=3,
                folded=True,
                title="Documents that people and models grade differently",
            ),
        )

    def facts(self) -> dict[str, Any]:
        """Return the measure, the level, and the numbers of topics."""
        names = ("measure", "labeled", "model_only", "level")
        return {name: getattr(self, name) for name in names}


def calibrate(
    human: Any,
    models: Any = None,
    runs: Any = (),
    measure: str = "nDCG@10",
    *,
    labeled: Collection[str] | None = None,
    rel: float = 1,
    highest: float | None = None,
    families: Mapping[str, str] | None = None,
    slicing: Any = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Calibration:
    """Compare models as judges with people, and correct the means of systems with the human judgments.

    Corrected means are for the population of topics. They assume that the human-judged topics are a random sample with
    complete judgments. Scores by the model on the other topics get a weight by how well they predict scores by people
    (`judged.stats.prediction_powered`): a useless model gets little or no weight.

    Parameters
    ----------
    human
        Human judgments, as `Qrels.of` accepts them; or `Labels` (or a store) of people and models. The majority of
        people counts.
    models
        ``{judge: judgments}`` of models; None if `human` has the models' labels.
    runs, measure
        Systems to score, and a measure that is a mean over topics.
    labeled
        Topics that people judged completely; None: all of their topics.
    rel
        Lowest relevant grade, for the binary kappa.
    highest
        Highest grade of the scale; None: the highest human grade. A model's grade above it is invalid and counted.
    families
        Model family behind each run, by run name: a judge may favor its own family. None: each run is compared with
        all others.
    slicing
        Slices of topics, or a table with one attribute to slice by: grades are also compared in each slice.
    level, resamples, seed
        Confidence level of intervals, and bootstrap of the value of a judge.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        If no document is graded by people and a model.
    """
    check_share("level", level)
    check_resampling(resamples, seed)
    people, judges = _split_judgments(human, models)
    # The name is the key of the human judgments below.
    if "people" in judges:
        raise InputError("the name `people` is reserved for the human judgments", fix="rename the model")
    if labeled is not None:
        people = people.over(set(labeled))
    max_grade = float(people.grades.max()) if highest is None else highest
    run_list = [] if hasattr(runs, "__len__") and not len(runs) else runs_of(runs)
    if run_list and parse(measure).entry.aggregate != "mean":
        raise InputError(f"`measure` must be a mean over topics, got {measure}", fix="use a measure such as nDCG@10")
    scores = evaluate(people, run_list, measure) if run_list else None
    rows: list[JudgeCalibration] = []
    means: list[CorrectedMean] = []
    biases: list[FamilyBias] = []
    slices: list[SliceCalibration] = []
    contested: list[ContestedDocument] = []
    grades: dict[str, Table] = {}
    notes: tuple[Note, ...] = ()
    model_only, fewest, labeled_topics = 0, MIN_N, len(people.topics)
    for judge, model_qrels in judges.items():
        valid, invalid = _drop_invalid(model_qrels, max_grade)
        grades_by_both = parse_judges([{"people": people, judge: valid}], None)
        if np.isnan(grades_by_both.grades).any(axis=1).all():
            fix = "let the model grade documents that people graded"
            raise InputError(f"no document has grades from both {judge} and people", fix=fix)
        agreement = agree({"people": people, judge: valid}, runs=run_list, measures=measure, level=level)
        # With several models, one confusion matrix each would be too long.
        if len(judges) == 1:
            grades[judge] = agreement.confusion()
        corrected: list[PredictionPoweredMean] = []
        paired = None
        if scores is not None:
            paired = PairedScores.of(scores, evaluate(valid, run_list, measure))
            # Models may have judged different topics; the counts are for the model with most.
            model_only = max(model_only, paired.model_only.shape[1])
            labeled_topics = min(labeled_topics, paired.people.shape[1])
            corrected = paired.prediction_powered_means(level, resamples, seed)
            fewest = min([fewest, *(mean.n for mean in corrected)])
            means += corrected_means(judge, paired, corrected, level)
            single_families = {run: run for run in paired.runs}
            biases += family_biases(judge, paired, families or single_families, level)
        rows.append(_summarize_judge(judge, agreement, grades_by_both, (invalid, rel, level), paired, corrected))
        slices += [] if slicing is None else _by_slice(judge, grades_by_both, as_slicing(slicing), level)
        contested += _contested(grades_by_both, judge, run_list, measure)
    if scores is not None:
        notes = tuple(_notes(means, fewest, labeled_topics if biases else 0))
    contested.sort(key=lambda row: (-abs(row.human - row.model), -row.runs, row.query_id, row.doc_id))
    return Calibration(
        measure=measure,
        labeled=len(people.topics),
        model_only=model_only,
        level=level,
        judges=tuple(rows),
        means=tuple(means),
        slices=tuple(slices),
        families=tuple(biases),
        contested=tuple(contested[:_MAX_CONTESTED]),
        grades=grades,
        notes=notes,
    )


def _notes(means: Sequence[CorrectedMean], fewest: int, labeled: int) -> Iterator[Note]:
    """Yield warnings about the data; `labeled` is 0 if there are no family biases."""
    if not means:
        text = (
            "the means of the model are not corrected by human labels, because this requires 3 topics judged by"
            " people and 2 topics judged only by the model"
        )
        yield Note("no-correction", text)
    if fewest < MIN_N:
        text = (
            f"people judged {fewest} topics, fewer than {MIN_N}: the confidence intervals of differences may be too"
            " narrow"
        )
        yield Note("few-topics", text)
    if labeled:
        # 95% of samples of this size contain an error that affects a larger share of topics
        text = (
            "the confidence intervals of bias and difference ignore model errors that do not occur on the topics"
            f" judged by people. With {counted(labeled, 'topic')} judged by people, such model errors can affect up to"
            f" {1 - 0.05 ** (1 / labeled):.0%}"
            " of all topics"
        )
        yield Note("rare-errors", text)


def _split_judgments(human: Any, models: Any) -> tuple[Qrels, dict[str, Qrels]]:
    if models is not None:
        return Qrels.of(human, name="people"), {
            str(name): Qrels.of(judgments, name=str(name)) for name, judgments in models.items()
        }
    from judged.labels.consensus import qrels_of

    labels = Labels.of(human)
    kinds = labels.table["kind"].unique().to_pylist()
    if "model" not in kinds:
        raise InputError("there are no labels by a model judge", fix="run judged labels ask", path=labels.where)
    if "human" not in kinds:
        raise InputError("there are no labels by people", fix="judge some topics", path=labels.where)
    of_models = labels.of_kind("model")
    graded_by = of_models.graded["judge"].unique().to_pylist()  # a model may have labels without a grade
    judges = {judge: qrels_of(of_models, by=judge) for judge in graded_by}
    return qrels_of(labels.of_kind("human"), by="majority"), judges


def _drop_invalid(qrels: Qrels, max_grade: float) -> tuple[Qrels, int]:
    """Return the judgments with grades on the scale, and the number of other judgments."""
    is_valid = (qrels.grades >= 0) & (qrels.grades <= max_grade)
    if not is_valid.any():
        problem = f"all grades of {qrels.name} are outside the range from 0 to {max_grade:g}"
        raise InputError(problem, fix="check the scale", path=qrels.where)
    valid = qrels if is_valid.all() else Qrels(qrels.table.filter(is_valid), qrels.name, qrels.where)
    return valid, int((~is_valid).sum())


def _summarize_judge(
    judge: str,
    agreement: JudgeAgreement,
    grades: Judges,
    settings: tuple[int, float, float],
    paired: PairedScores | None,
    corrected: Sequence[PredictionPoweredMean],
) -> JudgeCalibration:
    invalid, rel, level = settings
    pair, effect = agreement.pairs[0], agreement.systems[0] if agreement.systems else None
    relevant = np.where(np.isnan(grades.grades), np.nan, grades.grades >= rel)
    shift = sum(topic.bias * topic.shared for topic in pair.topics) / pair.shared if pair.shared else math.nan
    by_worth = sorted(corrected, key=lambda mean: mean.worth)
    # Upper median over systems.
    middle = by_worth[len(by_worth) // 2] if by_worth else None
    return JudgeCalibration(
        judge=judge,
        shared=pair.shared,
        missing=pair.only_first,
        invalid=invalid,
        same=pair.same,
        kappa=pair.kappa.value,
        kappa_ci=pair.kappa.interval,
        quadratic=pair.quadratic.value,
        binary=cohen_kappa(relevant[:, 0], relevant[:, 1]).value,
        shift=shift,
        shift_ci=topic_interval(np.array([topic.bias for topic in pair.topics]), level),
        tau=effect.tau.value if effect else math.nan,
        tau_ap=effect.tau_ap.value if effect else math.nan,
        within_topics=paired.within_topics if paired else math.nan,
        largest_error=effect.largest_change if effect else math.nan,
        added_topics=middle.worth if middle else math.nan,
        added_topics_ci=middle.worth_interval if middle else None,
    )


def _by_slice(judge: str, grades: Judges, slicing: Slicing, level: float) -> Iterator[SliceCalibration]:
    is_shared = ~np.isnan(grades.grades).any(axis=1)
    shared_grades, topic = grades.grades[is_shared], grades.all_pairs.index.topic[is_shared]
    for name, rows in rows_by_slice(slicing, grades.all_pairs.index.topics, topic):
        people, model = shared_grades[rows].T
        means = topic_means(model - people, topic[rows])
        yield SliceCalibration(
            judge=judge,
            slice=name,
            n=len(means),
            shared=int(rows.sum()),
            same=float((people == model).mean()),
            kappa=math.nan if (shared_grades[rows] % 1).any() else cohen_kappa(people, model).value,
            quadratic=cohen_kappa(people, model, "quadratic").value,
            shift=float((model - people).mean()),
            shift_ci=topic_interval(means, level),
        )


def _contested(grades: Judges, judge: str, runs: Sequence[Run], measure: str) -> Iterator[ContestedDocument]:
    """Yield documents with different grades from people and the model, with the number of runs that return them."""
    index = grades.all_pairs.index
    rows = np.flatnonzero(np.abs(grades.grades[:, 0] - grades.grades[:, 1]) > 0)
    run_counts = np.zeros(len(grades.grades), dtype=np.int64)
    for run in runs:
        judged = judge_run(grades.all_pairs, run)
        # Measures without a cutoff count the first 10 ranks.
        is_within = judged.rank <= (getattr(parse(measure), "cutoff", None) or 10)
        run_counts[judged.label_row[judged.row[is_within]]] += 1
    for row in rows.tolist():
        ids = index.topics[index.topic[row]], str(index.row_names[row])
        human, model = grades.grades[row].tolist()
        yield ContestedDocument(*ids, judge, human, model, int(run_counts[row]))
