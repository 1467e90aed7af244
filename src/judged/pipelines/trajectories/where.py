"""`where`: the first stage at which each wrong trial lost its evidence, and what perfect parts would gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.trajectories.evaluation import mean_interval, verdict_notes
from judged.pipelines.trajectories.judging import first_rows, judge_system
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results import COUNT, SHARE, TEXT, Answer, Axis, Chart, Column, Headline, Sentences, Table, columns_of
from judged.results.decimals import counted, percent
from judged.scoring.measures.aggregates import divide
from judged.stats.inputs import spread
from judged.stats.interval import IntervalMethod, resampling_weights
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.pipelines.trajectories.judging import JudgedSystem
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.results.table import IntervalLimits
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.measures.base import AnswerMeasure

PARTS: Mapping[str, str] = {
    "corpus": "not in the corpus",
    "failed": "trial failed",
    "looped": "never retrieved: looped",
    "stopped": "never retrieved: stopped early",
    "queries": "never retrieved: other queries",
    "opened": "retrieved, not opened",
    "abstained": "abstained with evidence",
    "cited": "opened, not cited",
    "answer": "cited, answered wrong",
    "unknown": "unknown",
}
"""Parts of the wrong trials, in the order of the stages."""
DEFINITIONS = (
    "Each wrong trial belongs to the first stage at which required evidence is lost. Looped: at least half of the"
    " searches repeat a query or a list of documents. Stopped early: fewer searches than the median number after which"
    " trials had retrieved all evidence (trials of the same question if there are any, otherwise all trials). Other"
    " queries: all other trials that did not retrieve the evidence. Abstained: no answer, although the evidence was"
    " retrieved. Unknown: a stage was not recorded, or the evidence of the question is unknown."
)
_GAIN_NOTE = (
    "Gain in accuracy if one part were perfect. Retriever and stopping rule: these trials would be right as often as"
    " trials with all evidence. Reader: every trial with all evidence would be right."
)
_TITLES: Mapping[str, str] = {
    **PARTS,
    "accuracy": "right answers",
    "retriever": "perfect retriever",
    "stopping rule": "perfect stopping rule",
    "reader": "perfect reader",
    "unsupported": "right without evidence",
}
_NEVER_RETRIEVED = ("looped", "stopped", "queries")
_AFTER_RETRIEVAL = ("opened", "abstained", "cited", "answer")
Required: TypeAlias = Literal["any", "all"]
_ZERO_TO_ONE = Axis(0.0, 1.0)


class PartShare(NamedTuple):
    """Share of one part of the wrong trials, or of another number, with its interval over questions."""

    slice: str  # of questions; empty for all questions
    run: str
    name: str
    trials: int
    share: float
    ci: IntervalLimits


class TrialLoss(NamedTuple):
    """Stage at which one trial lost its evidence."""

    run: str
    query_id: str
    trial: int
    part: str  # key of `PARTS`; empty for a right answer
    step: int  # last search if evidence was never retrieved; otherwise the first that returned it; 0: no search
    documents: tuple[str, ...]  # up to five documents of the required evidence that are missing at the stage


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceLoss(Answer):
    """Parts of the wrong answers of agents, which sum to 1 - accuracy; and what perfect parts would gain.

    Attributes
    ----------
    parts, headroom, unsupported : tuple of PartShare
        Shares of all trials: by part, for ``accuracy`` as well; gain in accuracy of each perfect part; and right
        answers without the required evidence.
    slices : tuple of PartShare
        Parts by slice.
    losses : tuple of TrialLoss
        Each trial with a verdict.
    """

    kind: ClassVar[str] = "evidence-loss"
    main: ClassVar[str] = "parts"

    parts: tuple[PartShare, ...]
    headroom: tuple[PartShare, ...]
    unsupported: tuple[PartShare, ...]
    slices: tuple[PartShare, ...]
    losses: tuple[TrialLoss, ...]
    n: int
    level: float
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of a page."""
        return "Where evidence is lost"

    @property
    def run_names(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(dict.fromkeys(part.run for part in self.parts))

    def largest(self, run: str) -> PartShare | None:
        """Return the largest part of the wrong trials of a system; None if no trial is wrong."""
        wrong = [part for part in self.parts if part.run == run and part.name in PARTS and part.trials]
        return max(wrong, key=lambda part: part.share, default=None)

    @property
    def headline(self) -> Headline:
        """Return the largest part of the first system. Whether other parts are smaller is not tested."""
        run = self.run_names[0]
        part = self.largest(run)
        if part is None:
            return Headline("info", "no wrong answer", f"All answers of {run} with a verdict are right.")
        title = _TITLES[part.name]
        sentence, label = f"The largest part of the wrong answers of {run}: {title}.", f"{title}, share of trials"
        interval: Any = {"ci": part.ci, "level": self.level, "axis": _ZERO_TO_ONE}
        status, word = ("info", "largest loss") if part.ci else ("unknown", "not enough data")
        return Headline(status, word, sentence, label, part.share, SHARE, **interval)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Largest part, accuracy, and right answers without evidence, by system."""
        accuracies = [part for part in self.parts if part.name == "accuracy"]
        return tuple(map(self._sentence, accuracies, self.unsupported))

    def _sentence(self, accuracy: PartShare, unsupported: PartShare) -> str:
        text = f"{accuracy.run}: accuracy {percent(accuracy.share)} over {counted(self.n, 'question')}"
        if part := self.largest(accuracy.run):
            text += f"; largest part of the wrong answers: {_TITLES[part.name]}, {percent(part.share)} of all trials"
        if unsupported.trials:
            text += f"; right without the required evidence: {percent(unsupported.share)}"
        return f"{text}."

    def facts(self) -> Mapping[str, Any]:
        """Return the number of questions and the confidence level."""
        return {"n": self.n, "level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return the parts, their chart, the headroom, slices, and trials."""
        wrong = [part for part in self.parts if part.name in PARTS and part.trials]
        used = {part.name for part in wrong} | {"accuracy"}
        options: dict[str, Any] = {"kind": "dots", "color": "run"} if len(self.run_names) > 1 else {"kind": "bars"}
        chart = Chart(
            "lost", self.title, _share_table("lost", wrong, self.title), "Share of all trials; intervals over"
            " questions.", x="share", y="title", percent="x", from_zero=True, **options,
        )  # fmt: skip
        parts = [part for part in self.parts if part.name in used]
        unsupported_title = "Right answers without the required evidence"
        return (
            Sentences(self.sentences),
            chart,
            _share_table("parts", parts, "Parts of all trials", DEFINITIONS),
            _share_table("headroom", self.headroom, "Gain of a perfect part", _GAIN_NOTE),
            _share_table("unsupported", self.unsupported, unsupported_title, folded=True),
            *([_share_table("slices", self.slices, "Parts by slice", folded=True)] if self.slices else []),
            self._trial_table(),
        )

    def _trial_table(self) -> Table:
        rows = [loss for loss in self.losses if loss.part]
        columns = (
            *columns_of(rows, ("run", TEXT, "system"), ("query_id", TEXT, "question"), ("trial", COUNT), "part"),
            Column("title", [_TITLES[loss.part] for loss in rows], TEXT, "lost", only="people"),
            *columns_of(rows, ("step", COUNT)),
            Column("documents", [", ".join(loss.documents) for loss in rows], TEXT, "evidence"),
        )
        return Table("trials", columns, "Wrong trials", labels=3, folded=True)


def _share_table(name: str, rows: Sequence[PartShare], title: str, note: str = "", *, folded: bool = False) -> Table:
    several, sliced = len({row.run for row in rows}) > 1, name == "slices"
    columns = (
        *columns_of(rows, *([("slice", TEXT)] if sliced else []), ("run", TEXT, "system") if several else "run"),
        Column("part", [row.name for row in rows], TEXT, only="data"),
        Column("title", [_TITLES[row.name] for row in rows], TEXT, "part", only="people"),
        *columns_of(rows, ("trials", COUNT)),
        Column("share", [row.share for row in rows], SHARE, ci=[row.ci for row in rows], axis=_ZERO_TO_ONE),
    )
    return Table(name, columns, title, note, labels=1 + several + sliced, folded=folded)


def where(
    trajectories: Any,
    qrels: Any = None,
    *,
    accuracy: str | AnswerMeasure | None = None,
    required: Required = "any",
    rel: float = 1.0,
    corpus: Iterable[str] | None = None,
    slicing: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> EvidenceLoss:
    """Assign each wrong trial to the first stage at which required evidence is lost.

    Stages: the corpus, the end of the trial, searches (looped, stopped early, other queries), opened documents,
    abstention, citations, and the answer. A system that never opens documents has no such stage. The parts sum to
    1 - accuracy, because shares are means over the trials of a question, and then over questions.

    Parameters
    ----------
    trajectories
        `Trajectories`, or any input of `Trajectories.of`.
    qrels
        Judgments of documents. Default: documents of hops are relevant.
    accuracy
        As for `evaluate`.
    required
        Evidence of a question without hops: ``any`` relevant document, or ``all``. With hops, a document of each hop is
        required.
    rel
        Lowest grade of a relevant document.
    corpus
        Ids of all documents, to find evidence that the corpus lacks.
    slicing
        Slices of questions.
    level
        Confidence level of the intervals, which are over questions.
    seed
        Seed of the bootstrap intervals of gains.

    Raises
    ------
    InputError
        If an input is invalid, or no answer has a verdict or a reference.

    Examples
    --------
    >>> trials = [{"query_id": q, "correct": q == "q1", "citations": cited, "answer": "7",
    ...            "steps": [{"kind": "search", "documents": ["d1"]}]}
    ...           for q, cited in (("q1", ["d1"]), ("q2", ["d1"]), ("q3", []))]
    >>> result = where(trials, {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d1": 1}})
    >>> {part.name: round(part.share, 3) for part in result.parts if part.share}
    {'cited': 0.333, 'answer': 0.333, 'accuracy': 0.333}
    """
    if required not in get_args(Required):
        raise InputError(f"required must be any or all, got {required!r}", fix="use any or all")
    selected = Trajectories.of(trajectories)
    judgments = None if qrels is None else Qrels.of(qrels)
    slices = None if slicing is None else as_slicing(slicing).over(selected.query_ids)
    systems = [judge_system(selected, run, judgments, accuracy=accuracy) for run in selected.run_names]
    for judged in (system.trajectories for system in systems):
        if np.isnan(judged.right).all():
            fix = "add verdicts (`correct`) or references to the trials"
            raise InputError(f"no answer of {judged.name} has a verdict or a reference", fix=fix, path=selected.where)
    evidence = [_Evidence.of(system, required, rel) for system in systems]
    typical = _typical_searches(systems, evidence)
    in_corpus = None if corpus is None else set(corpus)
    trials = [
        _WrongTrials(system, part, _parts(system, part, typical, in_corpus), level)
        for system, part in zip(systems, evidence, strict=True)
    ]
    return EvidenceLoss(
        parts=tuple(row for of_run in trials for row in of_run.shares()),
        headroom=tuple(row for of_run in trials for row in of_run.headroom(seed)),
        unsupported=tuple(of_run.unsupported() for of_run in trials),
        slices=tuple(row for of_run in trials for row in of_run.by_slice(slices)),
        losses=tuple(row for of_run in trials for row in of_run.losses()),
        n=len(selected.query_ids),
        level=level,
        notes=(*selected.notes, *(note for system in systems for note in verdict_notes(system.trajectories))),
    )


class _Evidence(NamedTuple):
    """Required evidence of the trials of one system: groups of documents, of which one each is enough."""

    trial: Ints  # (P,): trial of each document, in ascending order
    key: Ints  # (P,): trial * width + document
    group: Ints  # (P,)
    group_trial: Ints  # (G,)
    first: Ints  # (P,): first row of the document in the returned documents of the trial; -1 if it was not returned
    is_known: Bools  # (N,): whether the evidence of the trial's question is known
    retrieved: Bools  # (N,): whether all groups were returned or opened

    @classmethod
    def of(cls, system: JudgedSystem, required: Required, rel: float) -> _Evidence:
        """Collect the evidence from hops, or else from relevant documents."""
        documents, judged = system.documents, system.trajectories
        without_hops = ~np.isin(documents.label_question, documents.hop_question)
        labels = np.flatnonzero((documents.label_grade >= rel) & without_hops)
        hop_group = np.unique(documents.hop.astype(str), return_inverse=True)[1]
        question = np.concatenate([documents.hop_question, documents.label_question[labels]])
        doc = np.concatenate([documents.hop_doc, documents.label_doc[labels]])
        in_question = np.concatenate([hop_group, documents.label_doc[labels] * (required == "all")])
        order = np.argsort(question, kind="stable")
        trial, rows = judged.rows_by_trial(question[order])
        key = trial * documents.width + doc[order][rows]
        group_key = trial * (in_question.max(initial=0) + 1) + in_question[order][rows]
        _, starts, group = np.unique(group_key, return_index=True, return_inverse=True)
        is_known = np.bincount(trial, minlength=judged.n_trials) > 0
        evidence = cls(trial, key, group, trial[starts], first_rows(documents.returned, key), is_known, is_known)
        is_seen = (evidence.first >= 0) | np.isin(key, documents.opened)
        return evidence._replace(retrieved=evidence.complete(is_seen))

    def complete(self, holds: Bools) -> Bools:
        """Return whether each trial has a document of every group: (N,); `holds`: (P,)."""
        is_missing = np.bincount(self.group, holds, minlength=len(self.group_trial)) == 0
        return self.is_known & (np.bincount(self.group_trial, is_missing, minlength=len(self.is_known)) == 0)


def _typical_searches(systems: Sequence[JudgedSystem], evidence: Sequence[_Evidence]) -> Floats:
    """Return the median number of searches that retrieved all evidence of each question, or else of any: (T,)."""
    numbers: list[Floats] = []
    for system, part in zip(systems, evidence, strict=True):
        judged = system.trajectories
        number = np.append(judged.number[judged.search], 0)[part.first]
        of_group = np.full(len(part.group_trial), np.inf)
        np.minimum.at(of_group, part.group, np.where(part.first >= 0, number, np.inf))
        last = np.where(part.is_known, 0.0, np.inf)
        np.maximum.at(last, part.group_trial, of_group)
        numbers.append(last)
    question = np.concatenate([system.trajectories.question for system in systems])
    needed = np.concatenate(numbers)
    question, needed = question[np.isfinite(needed)], needed[np.isfinite(needed)]
    typical = np.full(len(systems[0].trajectories), np.median(needed) if len(needed) else 0.0)
    order = np.argsort(question)
    questions, starts = np.unique(question[order], return_index=True)
    for i, of_question in zip(questions, np.split(needed[order], starts[1:]), strict=False):
        typical[i] = np.median(of_question)
    return typical


def _parts(system: JudgedSystem, evidence: _Evidence, typical: Floats, corpus: set[str] | None) -> np.ndarray[Any, Any]:
    """Return the part of each trial: (N,); empty for right answers and trials without a verdict."""
    judged, documents, n = system.trajectories, system.documents, system.trajectories.n_trials
    lacks_record = judged.by_trial(~judged.recorded & ~judged.failed) > 0
    is_looped = (judged.num_searches > 0) & (judged.by_trial(judged.repeated) >= judged.num_searches / 2)
    names = documents.names[evidence.key % documents.width].tolist()
    in_corpus = np.array([corpus is None or name in corpus for name in names], dtype=np.bool_)
    lost: tuple[tuple[str, Bools | bool], ...] = (
        ("unknown", ~evidence.is_known),
        ("corpus", ~evidence.complete(in_corpus)),
        ("failed", ~system.completed),
        ("unknown", ~evidence.retrieved & lacks_record),
        ("looped", ~evidence.retrieved & is_looped),
        ("stopped", ~evidence.retrieved & (judged.num_searches < typical[judged.question])),
        ("queries", ~evidence.retrieved),
        ("opened", ~evidence.complete(np.isin(evidence.key, documents.opened)) & system.records_opens),
        ("abstained", ~system.answers.has_answer | (system.answers.abstained == 1)),
        ("unknown", not len(documents.cited)),
        ("cited", ~evidence.complete(np.isin(evidence.key, documents.cited))),
        ("answer", True),
    )
    part = np.full(n, "", dtype=object)
    for name, is_lost in lost:
        part[(part == "") & is_lost & (judged.right == 0)] = name
    return part


class _WrongTrials(NamedTuple):
    """Parts of the trials of one system."""

    system: JudgedSystem
    evidence: _Evidence
    part: np.ndarray[Any, Any]  # (N,)
    level: float

    def by_question(self, mask: Bools) -> Floats:
        """Return the share of the marked trials of each question: (T,); NaN without a verdict."""
        judged = self.system.trajectories
        return judged.by_question(np.where(np.isnan(judged.right), np.nan, mask))

    def share(self, name: str, mask: Bools, questions: Bools | None = None, slice_name: str = "") -> PartShare:
        """Return the mean share of the marked trials over questions."""
        judged, values = self.system.trajectories, self.by_question(mask)
        if questions is not None:
            values, mask = values[questions], mask & questions[judged.question]
        n_trials = int((mask & ~np.isnan(judged.right)).sum())
        return PartShare(slice_name, judged.name, name, n_trials, *mean_interval(values, self.level, (0.0, 1.0)))

    def shares(self, *questions: Any) -> Iterator[PartShare]:
        """Yield the share of each part, and the accuracy."""
        for name in PARTS:
            yield self.share(name, self.part == name, *questions)
        yield self.share("accuracy", self.system.trajectories.right == 1, *questions)

    def unsupported(self) -> PartShare:
        """Return the share of right answers without the required evidence."""
        lacks_evidence = self.evidence.is_known & ~self.evidence.retrieved
        return self.share("unsupported", (self.system.trajectories.right == 1) & lacks_evidence)

    def by_slice(self, slicing: Slicing | None) -> Iterator[PartShare]:
        """Yield the shares that are above 0 in each slice."""
        for name, mask in zip(slicing.names, slicing.members, strict=True) if slicing else ():
            yield from (row for row in self.shares(mask, name) if row.trials)

    def headroom(self, seed: int) -> Iterator[PartShare]:
        """Yield the gain in accuracy of each perfect part, with bootstrap intervals over questions."""
        yield self._gain("retriever", np.isin(self.part, _NEVER_RETRIEVED), seed)
        yield self._gain("stopping rule", self.part == "stopped", seed)
        yield self.share("reader", np.isin(self.part, _AFTER_RETRIEVAL))

    def _gain(self, name: str, mask: Bools, seed: int) -> PartShare:
        """Multiply a share by the accuracy of the trials with all evidence."""
        retrieved = self.evidence.retrieved
        is_right = retrieved & (self.system.trajectories.right == 1)
        sums = np.stack([self.by_question(each) for each in (mask, is_right, retrieved)])
        sums = sums[:, ~np.isnan(sums[0])]
        n = sums.shape[1]

        def gains(weights: Floats) -> Floats:
            lost, right, total = sums @ weights.T
            return lost / n * divide(right, total)

        gain, ci = float(gains(np.ones((1, n)))[0]) if sums[2].any() else np.nan, None
        if sums[2].any() and insufficiency(n, variance=spread(sums[0])) is None:
            method = IntervalMethod("bootstrap", self.level, 2000, seed)
            resampled = np.concatenate([gains(weights) for weights in resampling_weights(n, method)])
            low, high = np.quantile(resampled, [(1 - self.level) / 2, (1 + self.level) / 2]).tolist()
            ci = (low, high)
        return self.share(name, mask)._replace(share=gain, ci=ci)

    def losses(self) -> Iterator[TrialLoss]:
        """Yield the loss of each trial with a verdict."""
        system, evidence, part = self.system, self.evidence, self.part
        judged, documents = system.trajectories, system.documents
        last_step = np.zeros(judged.n_trials, dtype=np.int64)
        last_step[judged.search_trial] = system.steps  # searches are in order, so the last one is written last
        is_returned = evidence.first >= 0
        first_step = np.full(judged.n_trials, np.iinfo(np.int64).max)
        steps = system.steps[judged.search[evidence.first[is_returned]]]
        np.minimum.at(first_step, evidence.trial[is_returned], steps)
        is_never = np.isin(part, (*_NEVER_RETRIEVED, "failed")) | (first_step > last_step)
        step = np.where(is_never, last_step, first_step)
        holds = is_returned
        for name, keys in (("opened", documents.opened), ("cited", documents.cited)):
            holds = np.where(part[evidence.trial] == name, np.isin(evidence.key, keys), holds)
        lacks_any = np.bincount(evidence.trial, ~holds, minlength=judged.n_trials) > 0
        shown = np.flatnonzero(~holds | ~lacks_any[evidence.trial])  # missing documents, or else all
        starts = np.searchsorted(evidence.trial[shown], np.arange(judged.n_trials + 1))
        names = documents.names[evidence.key[shown] % documents.width]
        for trial in np.flatnonzero(~np.isnan(judged.right)).tolist():
            yield TrialLoss(
                judged.name, judged.query_ids[judged.question[trial]], int(system.trial_numbers[trial]), part[trial],
                int(step[trial]), tuple(names[starts[trial] : starts[trial + 1]][:5]),
            )  # fmt: skip
