"""Models as judges against people: how they grade, what they do to systems, and what their labels are worth."""

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
    ScoresByBoth,
    corrected_means,
    family_biases,
    of_slices,
    topic_interval,
    topic_means,
)
from judged.labels.labels import Labels
from judged.results import COUNT, NUMBER, SHARE, TEXT, Answer, Sentences, Table, columns_of, counted, number
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
    from judged.results import Block
    from judged.stats.prediction_powered import PredictionPoweredMean

_TWO, _SIGNED = number(3), number(3, "+")
_CONTESTED, _MANY = 100, 12


@dataclass(frozen=True)
class JudgeCalibration:
    """One model as a judge, against people."""

    judge: str
    shared: int  # pairs that both graded
    absent: int  # pairs that people graded and the model did not
    invalid: int  # its grades that are none of the scale: left out, and never rounded into it
    same: float
    kappa: float
    kappa_ci: tuple[float, float] | None
    quadratic: float
    binary: float  # kappa of relevant and not
    shift: float  # the mean grade of the model less that of people, over shared pairs
    shift_ci: tuple[float, float] | None  # over topics
    tau: float  # of the order of systems, over the topics that both judged
    tau_ap: float
    within_topics: float  # the correlation of the systems' topic scores, each less the topic's mean
    largest_error: float  # of a system's mean
    worth: float  # topics judged by people that its labels stand for, in the median over systems
    worth_ci: tuple[float, float] | None


@dataclass(frozen=True)
class SliceCalibration:
    """One model as a judge, on the topics of a slice."""

    judge: str
    slice: str
    n: int  # topics in which both graded something
    shared: int
    same: float
    kappa: float
    quadratic: float
    shift: float
    shift_ci: tuple[float, float] | None  # over topics


@dataclass(frozen=True)
class Contested:
    """A document that people and a model grade differently."""

    query_id: str
    doc_id: str
    judge: str
    human: float
    model: float
    runs: int  # that have it within the measure's cutoff


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Answer):
    """What `calibrate` returns."""

    kind: ClassVar[str] = "calibration"
    main: ClassVar[str] = "judges"

    measure: str
    labeled: int  # topics that people judged
    others: int  # topics that only the models judged
    level: float
    judges: tuple[JudgeCalibration, ...]
    means: tuple[CorrectedMean, ...]
    slices: tuple[SliceCalibration, ...]
    families: tuple[FamilyBias, ...]
    contested: tuple[Contested, ...]
    grades: Mapping[str, Table]  # by judge, how often grades met
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is set against what."""
        return "Models as judges, against people"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the models are worth, and what may not be concluded."""
        return tuple(text for one in self.judges for text in self._of(one))

    def _of(self, one: JudgeCalibration) -> Iterator[str]:
        kappa = f"kappa {decimal(one.kappa, 3)}" if not math.isnan(one.kappa) else "no kappa, as grades are not whole"
        way = "higher" if one.shift > 0 else "lower"
        yield (
            f"{one.judge} gives {one.same:.0%} of {counted(one.shared, 'document')} people's grade ({kappa}; quadratic"
            f" {decimal(one.quadratic, 3)}), and grades {decimal(abs(one.shift), 2)} {way}."
        )
        if one.invalid:
            yield f"{counted(one.invalid, 'grade')} of {one.judge} are not on the scale, and count as not judged."
        if not math.isnan(one.tau):
            yield (
                f"Systems under {one.judge}: tau {decimal(one.tau, 3)}; within topics their scores correlate by"
                f" {decimal(one.within_topics, 3)}; a mean is wrong by up to {decimal(one.largest_error, 3)}."
            )
        if one.worth_ci is not None:
            low, high = one.worth_ci
            head = f"For {self.measure} {one.judge} is worth"
            if low <= 0:
                yield f"{head} none of people's topics (up to {high:.0f} are not ruled out)."
            else:
                worth = f"{one.worth:.0f} [{low:.0f}, {high:.0f}]"
                yield f"{head} {worth} topics beside the {self.labeled} that people judged."

    def blocks(self) -> tuple[Block, ...]:
        """Give judges, systems under people, models and both, families, grades that met, and contested documents."""
        agreed = (("same", SHARE), ("kappa", _TWO), "kappa_ci", ("quadratic", _TWO), ("binary", _TWO))
        systems = (("tau", _TWO), ("tau_ap", _TWO, "tau_AP"), ("within_topics", _TWO, "within topics"))
        columns: list[Any] = [("judge", TEXT), ("shared", COUNT), "absent", ("invalid", COUNT), *agreed]
        columns += [("shift", _SIGNED), "shift_ci"]
        if self.means or any(not math.isnan(one.tau) for one in self.judges):
            columns += [*systems, ("largest_error", NUMBER, "largest error")]
            columns += [("worth", number(0), "worth topics"), "worth_ci"]
        judges = columns_of(self.judges, *columns)
        blocks: list[Block] = [Sentences(self.sentences), Table("judges", judges)]
        if self.slices:
            shown = (
                ("judge", TEXT),
                ("slice", TEXT),
                ("n", COUNT, "topics"),
                ("shared", COUNT),
                *agreed[:2],
                agreed[3],
            )
            columns = [*shown, ("shift", _SIGNED), "shift_ci"]
            blocks.append(Table("slices", columns_of(self.slices, *columns), labels=2, title="By slice"))
        if self.means:
            shown = (("judge", TEXT), ("run", TEXT), ("known", NUMBER, "people"), "known_ci", ("model", NUMBER))
            rest = (
                ("value", NUMBER, "corrected"),
                ("weight", number(2)),
                ("difference", number(4, "+")),
                "difference_ci",
            )
            blocks.append(Table("systems", columns_of(self.means, *shown, *rest), labels=2, title="Means of systems"))
        if self.families:
            shown = (("judge", TEXT), ("family", TEXT), ("runs", COUNT), ("bias", number(4, "+")), "ci")
            blocks.append(
                Table(
                    "families",
                    columns_of(self.families, *shown),
                    labels=2,
                    title="Whom a judge favors",
                    folded=len(self.families) > _MANY,
                )
            )
        blocks += self.grades.values()
        numbers = (("human", number(0), "people"), ("model", number(1)), ("runs", COUNT))
        names = (("query_id", TEXT, "topic"), ("doc_id", TEXT, "document"), ("judge", TEXT))
        return (
            *blocks,
            Table("contested", columns_of(self.contested, *names, *numbers), labels=3, folded=True, title="Contested"),
        )

    def facts(self) -> dict[str, Any]:
        """Give what the numbers are of."""
        names = ("measure", "labeled", "others", "level")
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
    """Set models as judges against people, and correct the means of systems by what people said.

    Corrected means are of the population of topics. They take the topics that people judged to be chosen at random and
    judged fully, and weigh the model's scores on the other topics by how well it predicts people's
    (`judged.stats.prediction_powered`): a model that is of no use gets little weight or none.

    Parameters
    ----------
    human
        People's judgments, as `Qrels.of` takes them; or `Labels` (or a store) of people and models together, of which
        the majority of people counts.
    models
        ``{judge: judgments}`` of models; None with labels.
    runs, measure
        Systems, and a measure that is a mean over topics.
    labeled
        The topics that people judged fully; None: all of theirs.
    rel
        The grade from which a document is relevant, for the binary kappa.
    highest
        The highest grade; None: people's. A model's grade outside the scale is invalid, and counted.
    families
        The family of models behind a run, by its name: a judge may favor its own. None: each run by itself is set
        against all others.
    slicing
        Slices of topics, or a table with the one attribute by which to slice: grades are compared in each, too.
    level, resamples, seed
        Of intervals, and of the bootstrap that says what a judge is worth.

    Returns
    -------
    Calibration

    Raises
    ------
    InputError
        If there is nothing to compare.
    """
    check_share("level", level)
    check_resampling(resamples, seed)
    people, judges = _judgments(human, models)
    if "people" in judges:
        raise InputError("a model is called people", fix="give it another name")
    if labeled is not None:
        people = people.over(set(labeled))
    top = float(people.grades.max()) if highest is None else highest
    given = [] if hasattr(runs, "__len__") and not len(runs) else runs_of(runs)
    if given and parse(measure).entry.aggregate != "mean":
        raise InputError(f"{measure} is no mean over topics", fix="use one that is, such as nDCG@10")
    scores = evaluate(people, given, measure) if given else None
    rows: list[JudgeCalibration] = []
    means: list[CorrectedMean] = []
    biases: list[FamilyBias] = []
    slices: list[SliceCalibration] = []
    contested: list[Contested] = []
    grades: dict[str, Table] = {}
    notes: tuple[Note, ...] = ()
    others, fewest, labeled_topics = 0, MIN_N, len(people.topics)
    for judge, own in judges.items():
        valid, invalid = _valid(own, top)
        grades_of = parse_judges([{"people": people, judge: valid}], None)
        if np.isnan(grades_of.grades).any(axis=1).all():
            fix = "have it grade documents that people graded"
            raise InputError(f"{judge} and people graded no document in common", fix=fix)
        agreed = agree({"people": people, judge: valid}, runs=given, measures=measure, level=level)
        if len(judges) == 1:
            grades[judge] = agreed.confusion()
        found: list[PredictionPoweredMean] = []
        seen = None
        if scores is not None:
            seen = ScoresByBoth.of(scores, evaluate(valid, given, measure))
            others = max(others, seen.rest.shape[1])
            labeled_topics = min(labeled_topics, seen.people.shape[1])
            found = seen.corrected(level, resamples, seed)
            fewest = min([fewest, *(one.n for one in found)])
            means += corrected_means(judge, seen, found, level)
            alone = {run: run for run in seen.runs}
            biases += family_biases(judge, seen, families or alone, level)
        rows.append(_judge(judge, agreed, grades_of, (invalid, rel, level), seen, found))
        slices += [] if slicing is None else _by_slice(judge, grades_of, as_slicing(slicing), level)
        contested += _contested(grades_of, judge, given, measure)
    if scores is not None:
        notes = tuple(_notes(means, fewest, labeled_topics if biases else 0))
    contested.sort(key=lambda one: (-abs(one.human - one.model), -one.runs, one.query_id, one.doc_id))
    return Calibration(
        measure=measure,
        labeled=len(people.topics),
        others=others,
        level=level,
        judges=tuple(rows),
        means=tuple(means),
        slices=tuple(slices),
        families=tuple(biases),
        contested=tuple(contested[:_CONTESTED]),
        grades=grades,
        notes=notes,
    )


def _notes(means: Sequence[CorrectedMean], fewest: int, labeled: int) -> Iterator[Note]:
    """Warn of what could not be corrected, and of what so few topics cannot show; `labeled`: 0 without biases."""
    if not means:
        text = "the models judged no topics that people did not, so there is nothing to correct: name fewer as labeled"
        yield Note("nothing-to-correct", text)
    if fewest < MIN_N:
        text = (
            f"{fewest} topics judged by people are fewer than {MIN_N}: intervals of differences do not hold their level"
        )
        yield Note("few-topics", text)
    if labeled:
        # an error on a larger share of all topics is lacking from fewer than 5 of 100 samples
        text = (
            f"intervals of families and of differences do not know errors that no labeled topic shows: {labeled} topics"
            f" can lack those on fewer than {1 - 0.05 ** (1 / labeled):.0%} of all topics"
        )
        yield Note("rare-errors", text)


def _judgments(human: Any, models: Any) -> tuple[Qrels, dict[str, Qrels]]:
    if models is not None:
        return Qrels.of(human, name="people"), {
            str(name): Qrels.of(own, name=str(name)) for name, own in models.items()
        }
    from judged.labels.consensus import qrels_of

    labels = Labels.of(human)
    kinds = labels.table["kind"].unique().to_pylist()
    if "model" not in kinds:
        raise InputError("no model gave a label", fix="ask one: judged labels ask", path=labels.where)
    if "human" not in kinds:
        raise InputError("no person gave a label", fix="judge some topics", path=labels.where)
    of_models = labels.of_kind("model")
    answered = of_models.graded["judge"].unique().to_pylist()  # a model may have given no grade at all
    judges = {judge: qrels_of(of_models, by=judge) for judge in answered}
    return qrels_of(labels.of_kind("human"), by="majority"), judges


def _valid(own: Qrels, top: float) -> tuple[Qrels, int]:
    """Leave the grades that are on the scale, and count the others."""
    inside = (own.grades >= 0) & (own.grades <= top)
    if not inside.any():
        raise InputError(f"no grade of {own.name} lies between 0 and {top:g}", fix="check the scale", path=own.where)
    return (own, 0) if inside.all() else (Qrels(own.table.filter(inside), own.name, own.where), int((~inside).sum()))


def _judge(
    judge: str,
    agreed: JudgeAgreement,
    grades: Judges,
    asked: tuple[int, float, float],
    seen: ScoresByBoth | None,
    found: Sequence[PredictionPoweredMean],
) -> JudgeCalibration:
    invalid, rel, level = asked
    pair, effect = agreed.pairs[0], agreed.systems[0] if agreed.systems else None
    relevant = np.where(np.isnan(grades.grades), np.nan, grades.grades >= rel)
    shift = sum(topic.bias * topic.shared for topic in pair.topics) / pair.shared if pair.shared else math.nan
    worth = sorted(found, key=lambda one: one.worth)
    middle = worth[len(worth) // 2] if worth else None
    return JudgeCalibration(
        judge=judge,
        shared=pair.shared,
        absent=pair.only_first,
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
        within_topics=seen.within_topics if seen else math.nan,
        largest_error=effect.largest_change if effect else math.nan,
        worth=middle.worth if middle else math.nan,
        worth_ci=middle.worth_interval if middle else None,
    )


def _by_slice(judge: str, grades: Judges, slicing: Slicing, level: float) -> Iterator[SliceCalibration]:
    """Compare grades in each slice of topics."""
    both = ~np.isnan(grades.grades).any(axis=1)
    table, topic = grades.grades[both], grades.all_pairs.index.topic[both]
    for name, rows in of_slices(slicing, grades.all_pairs.index.topics, topic):
        people, model = table[rows].T
        means = topic_means(model - people, topic[rows])
        yield SliceCalibration(
            judge=judge,
            slice=name,
            n=len(means),
            shared=int(rows.sum()),
            same=float((people == model).mean()),
            kappa=math.nan if (table[rows] % 1).any() else cohen_kappa(people, model).value,
            quadratic=cohen_kappa(people, model, "quadratic").value,
            shift=float((model - people).mean()),
            shift_ci=topic_interval(means, level),
        )


def _contested(grades: Judges, judge: str, runs: Sequence[Run], measure: str) -> Iterator[Contested]:
    """List what people and the model grade differently, with how many systems show it."""
    index = grades.all_pairs.index
    apart = np.flatnonzero(np.abs(grades.grades[:, 0] - grades.grades[:, 1]) > 0)
    shown = np.zeros(len(grades.grades), dtype=np.int64)
    for run in runs:
        judged = judge_run(grades.all_pairs, run)
        first = judged.rank <= (getattr(parse(measure), "cutoff", None) or 10)
        shown[judged.label_row[judged.row[first]]] += 1
    for at in apart.tolist():
        pair = index.topics[index.topic[at]], str(index.row_names[at])
        human, model = grades.grades[at].tolist()
        yield Contested(*pair, judge, human, model, int(shown[at]))
