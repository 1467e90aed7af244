"""`where`: the first stage at which each wrong trial lost its evidence, and what perfect parts would gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.trajectories.judging import first_rows, judge_system
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results import (
    COUNT,
    SHARE,
    TEXT,
    Answer,
    Axis,
    Chart,
    Column,
    Headline,
    Sentences,
    Table,
    columns_of,
    counted,
)
from judged.results.blocks import Note
from judged.results.decimals import percent
from judged.stats.inputs import spread
from judged.stats.interval import IntervalMethod, mean_intervals, resampling_weights
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.pipelines.trajectories.judging import JudgedSystem
    from judged.results import Block
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.measures.base import AnswerMeasure

LossPart: TypeAlias = Literal[
    "corpus", "failed", "looped", "stopped", "queries", "opened", "abstained", "cited", "answer", "unknown"
]
PARTS: Mapping[LossPart, str] = {
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
Required: TypeAlias = Literal["any", "all"]
_ZERO_TO_ONE = Axis(0.0, 1.0)


@dataclass(frozen=True)
class PartShare:
    """Share of one part of the wrong trials, or of another number, with its interval over questions."""

    run: str
    name: str
    trials: int
    share: float
    ci: tuple[float, float] | None


@dataclass(frozen=True)
class TrialLoss:
    """Stage at which one trial lost its evidence.

    Parameters
    ----------
    run, query_id, trial
        The trial.
    part
        Key of `PARTS`; empty for a right answer.
    has_evidence
        Whether the trial retrieved all required evidence; None if it is unknown.
    step
        Last search if evidence was never retrieved; otherwise the search that first returned it. 0: no search.
    documents
        Up to five documents of the required evidence that are missing at the stage.
    """

    run: str
    query_id: str
    trial: int
    part: str
    has_evidence: bool | None
    step: int
    documents: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class EvidenceLoss(Answer):
    """Parts of the wrong answers of agents, which sum to 1 - accuracy; and what perfect parts would gain.

    Attributes
    ----------
    parts, headroom, unsupported : tuple of PartShare
        Shares of all trials: by part, for ``accuracy`` as well; gain in accuracy of each perfect part; and right
        answers without the required evidence.
    slices : tuple of (str, PartShare)
        Parts by slice.
    losses : tuple of TrialLoss
        Each trial with a verdict.
    """

    kind: ClassVar[str] = "evidence-loss"
    main: ClassVar[str] = "parts"

    parts: tuple[PartShare, ...]
    headroom: tuple[PartShare, ...]
    unsupported: tuple[PartShare, ...]
    slices: tuple[tuple[str, PartShare], ...]
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
        sentence = f"The largest part of the wrong answers of {run}: {title}."
        if part.ci is None:
            return Headline("unknown", "not enough data", sentence, f"{title}, share of trials", part.share, SHARE)
        return Headline(
            "info", "largest loss", sentence, f"{title}, share of trials", part.share, SHARE, part.ci, self.level,
            axis=_ZERO_TO_ONE,
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Largest part, accuracy, and right answers without evidence, by system."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for run in self.run_names:
            accuracy = next(part for part in self.parts if part.run == run and part.name == "accuracy")
            part = self.largest(run)
            text = f"{run}: accuracy {percent(accuracy.share)} over {counted(self.n, 'question')}"
            if part is not None:
                text += (
                    f"; largest part of the wrong answers: {_TITLES[part.name]}, {percent(part.share)} of all trials"
                )
            unsupported = next((part for part in self.unsupported if part.run == run), None)
            if unsupported is not None and unsupported.trials:
                text += f"; right without the required evidence: {percent(unsupported.share)}"
            yield f"{text}."

    def facts(self) -> Mapping[str, Any]:
        """Return the number of questions and the confidence level."""
        return {"n": self.n, "level": self.level}

    def blocks(self) -> tuple[Block, ...]:
        """Return the parts, their chart, the headroom, slices, and trials."""
        wrong = [part for part in self.parts if part.name in PARTS and part.trials]
        used = {part.name for part in wrong} | {"accuracy"}
        rows = [part for part in self.parts if part.name in used]
        parts = _share_table("parts", rows, "Parts of all trials", note=DEFINITIONS)
        options: dict[str, Any] = {"kind": "dots", "color": "run"} if len(self.run_names) > 1 else {"kind": "bars"}
        chart = Chart(
            "lost",
            "Where evidence is lost",
            _share_table("lost", wrong, "Where evidence is lost"),
            "Share of all trials; intervals over questions.",
            x="share",
            y="title",
            percent="x",
            from_zero=True,
            **options,
        )
        headroom_note = (
            "Gain in accuracy if one part were perfect. Retriever and stopping rule: these trials would be right as"
            " often as trials with all evidence. Reader: every trial with all evidence would be right."
        )
        return (
            Sentences(self.sentences),
            chart,
            parts,
            _share_table("headroom", self.headroom, "Gain of a perfect part", note=headroom_note),
            _share_table("unsupported", self.unsupported, "Right answers without the required evidence", folded=True),
            *([self._slice_table()] if self.slices else []),
            self._trial_table(),
        )

    def _slice_table(self) -> Table:
        table = _share_table("slices", [part for _, part in self.slices], "Parts by slice", folded=True)
        column = Column("slice", [name for name, _ in self.slices], TEXT)
        return replace(table, columns=(column, *table.columns), labels=3)

    def _trial_table(self) -> Table:
        rows = [loss for loss in self.losses if loss.part]
        columns = (
            *columns_of(rows, ("run", TEXT, "system"), ("query_id", TEXT, "question"), ("trial", COUNT), "part"),
            Column("title", [_TITLES[loss.part] for loss in rows], TEXT, "lost", only="people"),
            *columns_of(rows, ("step", COUNT)),
            Column("documents", [", ".join(loss.documents) for loss in rows], TEXT, "evidence"),
        )
        return Table("trials", columns, "Wrong trials", labels=3, folded=True)


def _share_table(name: str, rows: Sequence[PartShare], title: str, *, note: str = "", folded: bool = False) -> Table:
    several = len({row.run for row in rows}) > 1
    columns = (
        *columns_of(rows, ("run", TEXT, "system") if several else "run"),
        Column("part", [row.name for row in rows], TEXT, only="data"),
        Column("title", [_TITLES[row.name] for row in rows], TEXT, "part", only="people"),
        *columns_of(rows, ("trials", COUNT)),
        Column("share", [row.share for row in rows], SHARE, ci=[row.ci for row in rows], axis=_ZERO_TO_ONE),
    )
    return Table(name, columns, title, note, labels=1 + several, folded=folded)


_TITLES: Mapping[str, str] = {
    **PARTS,
    "accuracy": "right answers",
    "retriever": "perfect retriever",
    "stopping rule": "perfect stopping rule",
    "reader": "perfect reader",
    "unsupported": "right without evidence",
}


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
    systems = [judge_system(selected, run, judgments, accuracy=accuracy) for run in selected.run_names]
    evidence = [_Evidence.of(system, required, rel) for system in systems]
    needed = _needed_searches(systems, evidence)
    in_corpus = None if corpus is None else set(corpus)
    slices = None if slicing is None else as_slicing(slicing).over(selected.query_ids)
    parts, headroom, unsupported, by_slice, losses = ([] for _ in range(5))
    notes = [*selected.notes]
    for system, trial_evidence in zip(systems, evidence, strict=True):
        judged = system.trajectories
        has_verdict = ~np.isnan(judged.right)
        if not has_verdict.any():
            fix = "add verdicts (`correct`) or references to the trials"
            raise InputError(f"no answer of {judged.name} has a verdict or a reference", fix=fix, path=selected.where)
        if not has_verdict.all():
            n_missing = int((~has_verdict).sum())
            text = f"no verdict on {n_missing} of {counted(judged.n_trials, 'answer')}, which are left out"
            notes.append(Note("unjudged", text, judged.name))
        part = _parts(system, trial_evidence, needed, in_corpus)
        shares = _Shares(system, part, trial_evidence.retrieved, level)
        parts += [*map(shares.of_part, PARTS), shares.share("accuracy", judged.right == 1)]
        unsupported.append(
            shares.share("unsupported", (judged.right == 1) & ~trial_evidence.retrieved & trial_evidence.is_known)
        )
        headroom += shares.headroom(seed)
        by_slice += _slices(shares, slices)
        losses += _losses(system, trial_evidence, part)
    return EvidenceLoss(
        tuple(parts), tuple(headroom), tuple(unsupported), tuple(by_slice), tuple(losses),
        len(selected.query_ids), level, tuple(notes),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Groups of required evidence of the trials of one system, of which one document each is enough."""

    group_trial: Ints  # (G,)
    group: Ints  # (P,): group of each document
    key: Ints  # (P,): trial * width + document
    is_known: Bools  # (N,): whether the evidence of the trial's question is known
    retrieved: Bools  # (N,): whether all groups were returned or opened
    width: int

    @classmethod
    def of(cls, system: JudgedSystem, required: Required, rel: float) -> _Evidence:
        """Collect the evidence from hops, or else from relevant documents."""
        documents, judged = system.documents, system.trajectories
        groups: dict[int, list[list[int]]] = {}
        hops: dict[tuple[int, str], list[int]] = {}
        for question, hop, code in zip(
            documents.hop_question.tolist(), documents.hop.tolist(), documents.hop_doc.tolist(), strict=True
        ):
            hops.setdefault((question, hop), []).append(code)
        for (question, _), codes in hops.items():
            groups.setdefault(question, []).append(codes)
        with_hops = set(groups)
        is_relevant = documents.label_grade >= rel
        for question, code in zip(
            documents.label_question[is_relevant].tolist(), documents.label_doc[is_relevant].tolist(), strict=True
        ):
            if question in with_hops:
                continue
            of_question = groups.setdefault(question, [])
            if required == "all" or not of_question:
                of_question.append([code])
            else:
                of_question[0].append(code)
        rows = [
            (trial, trial * documents.width + code, i == 0)
            for trial, question in enumerate(judged.question.tolist())
            for codes in groups.get(question, ())
            for i, code in enumerate(codes)
        ]
        trial, key, starts = (
            np.array(column, dtype=np.int64) for column in (zip(*rows, strict=True) if rows else [()] * 3)
        )
        group = np.cumsum(starts) - 1
        evidence = cls(trial[starts == 1], group, key, np.bincount(trial, minlength=judged.n_trials) > 0,
                       np.zeros(judged.n_trials, dtype=np.bool_), documents.width)  # fmt: skip
        retrieved = evidence.complete(np.isin(key, np.concatenate([documents.returned, documents.opened])))
        return cls(evidence.group_trial, group, key, evidence.is_known, retrieved, documents.width)

    def complete(self, holds: Bools) -> Bools:
        """Return whether each trial has a document of every group: (N,); `holds`: (P,)."""
        has_document = np.bincount(self.group, holds, minlength=len(self.group_trial)) > 0
        lacks_any = np.bincount(self.group_trial[~has_document], minlength=len(self.is_known)) > 0
        return self.is_known & ~lacks_any


def _needed_searches(systems: Sequence[JudgedSystem], evidence: Sequence[_Evidence]) -> dict[int | None, float]:
    """Return the median number of searches that retrieved all evidence, by question, and None for all questions."""
    needed: dict[int | None, list[float]] = {}
    for system, trial_evidence in zip(systems, evidence, strict=True):
        judged = system.trajectories
        rows = first_rows(system.documents.returned, trial_evidence.key)
        is_returned = rows >= 0
        numbers = judged.number[judged.search[rows[is_returned]]].astype(np.float64)
        of_group = np.full(len(trial_evidence.group_trial), np.inf)
        np.minimum.at(of_group, trial_evidence.group[is_returned], numbers)
        last = np.zeros(judged.n_trials)
        np.maximum.at(last, trial_evidence.group_trial, of_group)
        for trial in np.flatnonzero(trial_evidence.is_known & np.isfinite(last)).tolist():
            needed.setdefault(int(judged.question[trial]), []).append(float(last[trial]))
            needed.setdefault(None, []).append(float(last[trial]))
    return {question: float(np.median(numbers)) for question, numbers in needed.items()}


def _parts(
    system: JudgedSystem, trial_evidence: _Evidence, needed: Mapping[int | None, float], corpus: set[str] | None
) -> np.ndarray[Any, Any]:
    """Return the part of each trial: (N,); empty for right answers and trials without a verdict."""
    judged, documents, n = system.trajectories, system.documents, system.trajectories.n_trials
    searches = np.bincount(judged.search_trial, minlength=n)
    unrecorded = judged.by_trial(~judged.recorded & ~judged.failed) > 0
    repeated = judged.by_trial(judged.repeated)
    typical = np.array([needed.get(question, needed.get(None, 0.0)) for question in judged.question.tolist()])
    names = (
        documents.names[trial_evidence.key % documents.width] if len(trial_evidence.key) else np.zeros(0, dtype=object)
    )
    in_corpus = np.array([corpus is None or name in corpus for name in names.tolist()], dtype=np.bool_)
    opened = trial_evidence.complete(np.isin(trial_evidence.key, documents.opened))
    cited = trial_evidence.complete(np.isin(trial_evidence.key, documents.cited))
    is_looped = (searches > 0) & (repeated >= searches / 2)
    lost: tuple[tuple[LossPart, Bools], ...] = (
        ("unknown", ~trial_evidence.is_known),
        ("corpus", ~trial_evidence.complete(in_corpus)),
        ("failed", ~system.completed),
        ("unknown", ~trial_evidence.retrieved & unrecorded),
        ("looped", ~trial_evidence.retrieved & is_looped),
        ("stopped", ~trial_evidence.retrieved & (searches < typical)),
        ("queries", ~trial_evidence.retrieved),
        ("opened", ~opened if system.records_opens else np.zeros(n, dtype=np.bool_)),
        ("abstained", ~system.answers.has_answer | (system.answers.abstained == 1)),
        ("unknown", np.full(n, not len(documents.cited))),
        ("cited", ~cited),
        ("answer", np.ones(n, dtype=np.bool_)),
    )
    part = np.full(n, "", dtype=object)
    for name, is_lost in lost:
        part[(part == "") & is_lost & (judged.right == 0)] = name
    return part


class _Shares:
    """Shares of the trials of one system, with intervals over questions."""

    def __init__(self, system: JudgedSystem, part: np.ndarray[Any, Any], retrieved: Bools, level: float) -> None:
        self.judged, self.part, self.retrieved = system.trajectories, part, retrieved
        self.method = IntervalMethod("adjusted", level)
        self.known = ~np.isnan(self.judged.right)

    def of_part(self, name: str) -> PartShare:
        return self.share(name, self.part == name)

    def by_question(self, mask: Bools) -> Floats:
        return self.judged.by_question(np.where(self.known, mask.astype(np.float64), np.nan))

    def share(self, name: str, mask: Bools, questions: Bools | None = None) -> PartShare:
        """Return the mean share of the marked trials over questions."""
        values = self.by_question(mask)
        if questions is not None:
            values = np.where(questions, values, np.nan)
            mask = mask & questions[self.judged.question]
        valid = values[~np.isnan(values)]
        ci = None
        if insufficiency(len(valid), variance=spread(valid)) is None:
            low, high = mean_intervals(valid[np.newaxis], self.method, (0.0, 1.0))[0].tolist()
            ci = (low, high)
        share = float(valid.mean()) if len(valid) else np.nan
        return PartShare(self.judged.name, name, int((mask & self.known).sum()), share, ci)

    def headroom(self, seed: int) -> Iterator[PartShare]:
        """Yield the gain in accuracy of each perfect part, with bootstrap intervals over questions."""
        never = np.isin(self.part, ["looped", "stopped", "queries"])
        stopped = self.part == "stopped"
        right = self.by_question(self.retrieved & (self.judged.right == 1))
        with_evidence = self.by_question(self.retrieved)
        for name, mask in (("retriever", never), ("stopping rule", stopped)):
            yield self._gain(name, mask, self.by_question(mask), right, with_evidence, seed)
        reader = np.isin(self.part, ["opened", "abstained", "cited", "answer"])
        share = self.share("reader", reader)
        yield share

    def _gain(
        self, name: str, mask: Bools, share: Floats, right: Floats, with_evidence: Floats, seed: int
    ) -> PartShare:
        """Multiply a share by the accuracy of the trials with all evidence."""
        valid = ~np.isnan(share)
        share, right, with_evidence = share[valid], right[valid], with_evidence[valid]
        n, total = len(share), float(with_evidence.sum())
        gain = float(share.mean() * right.sum() / total) if total else np.nan
        ci = None
        if total and insufficiency(n, variance=spread(share)) is None:
            method = IntervalMethod("bootstrap", self.method.level, 2000, seed)
            blocks = [
                (weights @ share / n, weights @ right, weights @ with_evidence)
                for weights in resampling_weights(n, method)
            ]
            means, rights, totals = (np.concatenate(column) for column in zip(*blocks, strict=True))
            gains = means * np.divide(rights, totals, out=np.zeros(len(rights)), where=totals > 0)
            tail = 50 * (1 - self.method.level)
            low, high = np.percentile(gains, [tail, 100 - tail]).tolist()
            ci = (low, high)
        return PartShare(self.judged.name, name, int((mask & self.known).sum()), gain, ci)


def _slices(shares: _Shares, slicing: Slicing | None) -> Iterator[tuple[str, PartShare]]:
    if slicing is None:
        return
    for name, mask in zip(slicing.names, slicing.members, strict=True):
        for part in (*PARTS, "accuracy"):
            row = shares.share(part, (shares.judged.right == 1) if part == "accuracy" else shares.part == part, mask)
            if row.trials:
                yield name, row


def _losses(system: JudgedSystem, required: _Evidence, part: np.ndarray[Any, Any]) -> Iterator[TrialLoss]:
    judged, documents = system.trajectories, system.documents
    last_step = np.zeros(judged.n_trials, dtype=np.int64)
    last_step[judged.search_trial] = system.steps  # searches are in order, so the last one is written last
    first = first_rows(documents.returned, required.key)
    steps_of = np.where(first >= 0, np.append(system.steps, 0)[np.append(judged.search, 0)[first]], 0)
    held = {
        name: np.isin(required.key, keys) for name, keys in (("opened", documents.opened), ("cited", documents.cited))
    }
    rows_of: dict[int, list[int]] = {}
    for row, key in enumerate(required.key.tolist()):
        rows_of.setdefault(key // required.width, []).append(row)
    for trial, (name, right) in enumerate(zip(part.tolist(), judged.right.tolist(), strict=True)):
        if np.isnan(right):
            continue
        evidence = rows_of.get(trial, [])
        missing = [row for row in evidence if not held.get(name, first >= 0)[row]]
        steps = [int(steps_of[row]) for row in evidence if first[row] >= 0]
        is_never = name in ("looped", "stopped", "queries", "failed")
        yield TrialLoss(
            judged.name, judged.query_ids[judged.question[trial]], int(system.trial_numbers[trial]), name,
            bool(required.retrieved[trial]) if required.is_known[trial] else None,
            int(last_step[trial]) if is_never or not steps else min(steps),
            tuple(str(documents.names[required.key[row] % required.width]) for row in (missing or evidence)[:5]),
        )  # fmt: skip
