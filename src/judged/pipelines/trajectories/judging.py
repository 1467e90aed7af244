"""Join trajectories with judgments, verdicts, and references: the input of measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.query_text import normalize_query
from judged.data.run import Run
from judged.errors import InputError
from judged.pipelines.rag.responses import SHARES, verdict_shares
from judged.pipelines.trajectories.trajectories import COMPLETED
from judged.scoring.judging.answers import JudgedAnswers, Verdicts
from judged.scoring.judging.trajectories import JudgedTrajectories, first_of, positions
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.pipelines.trajectories.trajectories import Trajectories
    from judged.results.types import Bools, Floats, Ints, Table


class TrialDocuments(NamedTuple):
    """Documents of the trials of one system, as keys ``trial * width + code of the document``."""

    width: int
    names: np.ndarray[Any, Any]  # id of the document with each code
    returned: Ints  # (D,): in order of search and rank
    opened: Ints
    cited: Ints
    label_question: Ints  # (L,): judged documents of the questions
    label_doc: Ints  # (L,): codes
    label_grade: Floats  # (L,)
    hop_question: Ints  # (P,): documents of required pieces of evidence
    hop: np.ndarray[Any, Any]  # (P,): names of hops
    hop_doc: Ints  # (P,): codes


class JudgedSystem(NamedTuple):
    """Trials of one system, joined with judgments."""

    trajectories: JudgedTrajectories
    answers: JudgedAnswers  # one answer for each trial
    documents: TrialDocuments
    accuracy: AnswerMeasure | None  # decides which answers are right: those with a score above 0.5
    trial_numbers: Ints  # (N,)
    steps: Ints  # (S,): step of each search
    completed: Bools  # (N,)
    records_opens: bool  # whether any trial has a step that opened documents


def judge_system(
    trajectories: Trajectories, run: str, qrels: Qrels | None = None, *, accuracy: str | AnswerMeasure | None = None
) -> JudgedSystem:
    """Join the trials of one system with judgments of documents and of answers.

    Parameters
    ----------
    trajectories
        Trajectories of one or several systems.
    run
        The system.
    qrels
        Judgments of documents. Default: documents of hops are relevant.
    accuracy
        Measure of answers that decides which answers are right: those with a score above 0.5. Default: the verdicts, or
        else an exact match with a reference.

    Raises
    ------
    InputError
        If the system does not exist.
    """
    system = trajectories.of_run(run)
    query_ids = trajectories.query_ids
    trials = system["trials"].sort_by([("query_id", "ascending"), ("trial", "ascending")])
    question, numbers = _indices(trials["query_id"], query_ids), _ints(trials["trial"])
    trial_index = _TrialIndex(query_ids, question, numbers)
    steps, order = system["steps"], ("query_id", "trial", "step")
    searches, opens = (
        steps.filter(pc.equal(steps["kind"], kind))
        .select([*order, "documents", "failed", "query"])
        .sort_by([(name, "ascending") for name in order])
        for kind in ("search", "open")
    )
    citations = system["citations"]

    listed, opened = _flat(searches["documents"]), _flat(opens["documents"])
    labels = _labels(_hop_qrels(trajectories) if qrels is None else qrels, query_ids)
    hops = trajectories["hops"].filter(pc.is_in(trajectories["hops"]["query_id"], value_set=pa.array(query_ids)))
    hops = hops.sort_by([("query_id", "ascending"), ("hop", "ascending")])
    names = pa.chunked_array(
        [*(part.cast(pa.string()) for part in (listed.values, opened.values)), *citations["doc_id"].chunks,
         labels["doc_id"].combine_chunks(), *hops["doc_id"].chunks], pa.string()
    )  # fmt: skip
    doc_ids = names.unique()

    def codes(values: Any) -> Ints:
        return _ints(pc.index_in(values, value_set=doc_ids))

    search, doc = listed.parent, codes(listed.values)
    search_trial = trial_index.of(searches)
    is_first = first_of(search * len(doc_ids) + doc)  # a list can repeat a document
    search, doc = search[is_first], doc[is_first]
    names = listed = None  # free the memory of texts
    trial = search_trial[search]
    width = len(doc_ids) + 1
    label_question, label_doc = _indices(labels["query_id"], query_ids), codes(labels["doc_id"])
    label_grade = labels["relevance"].to_numpy().astype(np.float64)
    grade = _look_up(label_question * width + label_doc, label_grade, question[trial] * width + doc)
    opened_keys = trial_index.of(opens)[opened.parent] * width + codes(opened.values)
    cited_keys = trial_index.of(citations) * width + codes(citations["doc_id"])
    keys = trial * width + doc
    tokens, cost, latency_ms = (
        _effort(trials[name], steps, trial_index, name) for name in ("tokens", "cost", "latency_ms")
    )
    documents = TrialDocuments(
        width, np.array(doc_ids.to_pylist(), dtype=object), keys, opened_keys, cited_keys,
        label_question, label_doc, label_grade,
        _indices(hops["query_id"], query_ids), np.array(hops["hop"].to_pylist(), dtype=object), codes(hops["doc_id"]),
    )  # fmt: skip
    hop_trial, hop_search = _first_search_of_hops(documents, question, positions(search_trial)[search])
    answers = _answers(trajectories, run, trials, _Trials(query_ids, question, numbers), documents)
    decides = _accuracy_measure(answers, accuracy)
    right = np.full(len(trials), np.nan)
    if decides is not None:
        pieces = decides.pieces(answers)
        right[pieces.topic] = np.where((pieces.weight > 0) & ~np.isnan(pieces.value), pieces.value > 0.5, np.nan)
    right = np.where((answers.answerable == 0) & (answers.abstained == 1), 1.0, right)
    judged = JudgedTrajectories(
        query_ids=query_ids,
        name=run,
        question=question,
        search_trial=search_trial,
        failed=searches["failed"].to_numpy().astype(np.bool_),
        recorded=searches["documents"].is_valid().to_numpy().astype(np.bool_),
        query=_query_codes(searches["query"]),
        search=search,
        doc=doc,
        rank=positions(search),
        grade=grade,
        is_judged=~np.isnan(grade),
        label_question=label_question,
        label_grade=label_grade,
        opened=np.isin(keys, opened_keys),
        cited=np.isin(keys, cited_keys),
        hop_trial=hop_trial,
        hop_search=hop_search,
        right=right,
        records_use=bool(len(opened_keys) or len(cited_keys)),
        tokens=tokens,
        cost=cost,
        latency_ms=latency_ms,
        confidence=_floats(trials["confidence"]),
    )
    completed = pc.equal(trials["status"], COMPLETED).to_numpy().astype(np.bool_)
    is_open = bool(opens.num_rows)
    return JudgedSystem(judged, answers, documents, decides, numbers, _ints(searches["step"]), completed, is_open)


class _FlatLists(NamedTuple):
    values: Any  # (D,) document ids
    parent: Ints  # (D,): row of each


def _flat(column: Any) -> _FlatLists:
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.chunk(0) if lists.num_chunks else pa.array([], pa.list_(pa.string()))
    return _FlatLists(pc.list_flatten(lists), _ints(pc.list_parent_indices(lists)))


class _TrialIndex:
    """Position of each trial in the sorted trials of a system."""

    def __init__(self, query_ids: Sequence[str], question: Ints, numbers: Ints) -> None:
        self._query_ids = query_ids
        self._numbers, codes = np.unique(numbers, return_inverse=True)
        self._keys = question * len(self._numbers) + codes

    def of(self, table: Table) -> Ints:
        """Return the trial of each row: (N,)."""
        codes = np.searchsorted(self._numbers, _ints(table["trial"]))
        keys = _indices(table["query_id"], self._query_ids) * len(self._numbers) + codes
        return np.searchsorted(self._keys, keys)


def _indices(column: Any, values: Sequence[str]) -> Ints:
    return _ints(pc.index_in(column, value_set=pa.array(values, pa.string())))


def _ints(values: Any) -> Ints:
    return values.to_numpy(**({} if isinstance(values, pa.ChunkedArray) else {"zero_copy_only": False})).astype(
        np.int64
    )


def _floats(column: Any) -> Floats:
    return column.cast(pa.float64()).to_numpy().astype(np.float64)


def _query_codes(column: Any) -> Ints:
    texts = column.to_pylist()
    codes: dict[str, int] = {}
    return np.array(
        [-1 if text is None else codes.setdefault(normalize_query(text), len(codes)) for text in texts], dtype=np.int64
    )


def _hop_qrels(trajectories: Trajectories) -> Qrels | None:
    rows = trajectories["hops"].select(["query_id", "doc_id"])
    rows = rows.group_by(["query_id", "doc_id"]).aggregate([])
    if not rows.num_rows:
        return None
    return Qrels.of(rows.append_column("relevance", pa.array(np.ones(rows.num_rows, dtype=np.int64))), name="hops")


def _labels(qrels: Qrels | None, query_ids: Sequence[str]) -> Table:
    """Return the judged documents of the questions, sorted by question, with their highest grades."""
    names = ["query_id", "doc_id", "relevance"]
    if qrels is None:
        return pa.table({"query_id": pa.array([], pa.string()), "doc_id": pa.array([], pa.string()),
                         "relevance": pa.array([], pa.float64())})  # fmt: skip
    table = qrels.table.select(names)
    columns = [
        table["query_id"].cast(pa.string()),
        table["doc_id"].cast(pa.string()),
        table["relevance"].cast(pa.float64()),
    ]
    table = pa.table(columns, names=names)
    table = table.filter(pc.is_in(table["query_id"], value_set=pa.array(query_ids, pa.string())))
    highest = table.group_by(names[:2]).aggregate([("relevance", "max")]).rename_columns(names)
    return highest.sort_by([("query_id", "ascending"), ("doc_id", "ascending")])


def _look_up(keys: Ints, values: Floats, requested: Ints) -> Floats:
    """Return the value of each wanted key; NaN without one."""
    order = np.argsort(keys)
    positions_of_keys = np.searchsorted(keys[order], requested)
    is_present = np.append(keys[order], -1)[positions_of_keys] == requested
    return np.where(is_present, np.append(values[order], np.nan)[positions_of_keys], np.nan)


def first_rows(returned: Ints, requested: Ints) -> Ints:
    """Return the first row of each wanted key in the returned documents; -1 if it was not returned."""
    rows = np.flatnonzero(np.isin(returned, requested))
    keys, first = np.unique(returned[rows], return_index=True)
    positions_of_keys = np.searchsorted(keys, requested)
    return np.where(
        np.append(keys, -1)[positions_of_keys] == requested, np.append(rows[first], -1)[positions_of_keys], -1
    )


def _first_search_of_hops(documents: TrialDocuments, question: Ints, number: Ints) -> tuple[Ints, Ints]:
    """Return trial and number of the first search for each hop of each trial; 0 if no search returned a document."""
    starts = np.searchsorted(documents.hop_question, np.arange(int(question.max(initial=-1)) + 2))
    owner = np.repeat(np.arange(len(question)), np.diff(starts)[question])
    rows = starts[question][owner] + positions(owner) - 1  # of documents of hops, for each trial
    first = first_rows(documents.returned, owner * documents.width + documents.hop_doc[rows])
    names, codes = np.unique(documents.hop.astype(str), return_inverse=True)
    _, start, hop = np.unique(owner * (len(names) + 1) + codes[rows], return_index=True, return_inverse=True)
    numbers = np.full(len(start), np.iinfo(np.int64).max)
    np.minimum.at(numbers, hop, np.where(first >= 0, np.append(number, 0)[first], numbers.max(initial=0)))
    return owner[start], np.where(numbers == np.iinfo(np.int64).max, 0, numbers)


def _effort(column: Any, steps: Table, index: _TrialIndex, name: str) -> Floats:
    """Return the effort of each trial; where it is not recorded, the sum of the recorded efforts of its steps."""
    values, recorded_steps = _floats(column), steps.filter(pc.is_valid(steps[name]))
    trial = index.of(recorded_steps)
    total = np.bincount(trial, _floats(recorded_steps[name]), minlength=len(values))
    has_steps = np.bincount(trial, minlength=len(values)) > 0
    return np.where(np.isnan(values) & has_steps, total, values)


def _accuracy_measure(answers: JudgedAnswers, accuracy: str | AnswerMeasure | None) -> AnswerMeasure | None:
    if accuracy is None:
        if (~answers.correctness.is_missing).any() and "correctness" in answers.judged_kinds:
            return parse("Correctness(partial=0)")  # type: ignore[return-value]
        return parse("ExactMatch") if any(map(bool, answers.references)) else None  # type: ignore[return-value]
    measure = parse(accuracy) if isinstance(accuracy, str) else accuracy
    if not isinstance(measure, AnswerMeasure):
        fix = "use Correctness(partial=0), ExactMatch, or TokenF1"
        raise InputError(f"accuracy must be a measure of answers, got {measure}", fix=fix)
    return measure


class _Trials(NamedTuple):
    query_ids: Sequence[str]
    question: Ints  # (N,)
    numbers: Ints  # (N,)


def _answers(
    trajectories: Trajectories, run: str, trials: Table, of_trials: _Trials, documents: TrialDocuments
) -> JudgedAnswers:
    """Collect the answer of each trial as a topic of its own, with cited and judged documents."""
    query_ids, question, numbers = of_trials
    n = len(question)
    texts = trials["answer"].to_pylist()
    abstained = _floats(trials["abstained"].cast(pa.int8()))
    has_text = np.array([bool(text and text.strip()) for text in texts], dtype=np.bool_)
    completed = pc.equal(trials["status"], COMPLETED).to_numpy().astype(np.bool_)
    is_silent = ~has_text | ~completed | (abstained == 1)
    references: dict[str, list[str]] = {}
    answerable_of: dict[str, bool] = {}
    for row in trajectories["references"].to_pylist():
        references.setdefault(row["query_id"], [])
        if row["text"] is not None:
            references[row["query_id"]].append(row["text"])
        if row["answerable"] is not None:
            answerable_of[row["query_id"]] = row["answerable"]
    of_questions: list[str] = np.array(query_ids, dtype=object)[question].tolist()
    correctness = trajectories["correctness"]
    verdicts = verdict_shares(correctness.filter(pc.equal(correctness["run_id"], run)), "query_id", "trial")
    missing = (np.nan,) * len(SHARES)
    pairs = list(zip(of_questions, numbers.tolist(), strict=True))
    shares = np.array([verdicts.get(pair, missing) for pair in pairs], dtype=np.float64).reshape(-1, len(SHARES))
    judged_questions = {query_id for query_id, _ in verdicts}
    has_reference = np.array([q in judged_questions or bool(references.get(q)) for q in of_questions], dtype=np.bool_)
    agreement = Verdicts(np.arange(n), *shares.T)
    answerable = np.array([float(answerable_of[q]) if q in answerable_of else np.nan for q in of_questions])
    agreement = agreement.replace_where(agreement.is_missing & is_silent & has_reference, 0.0)
    width = documents.width
    starts = np.searchsorted(documents.label_question, np.arange(len(query_ids) + 1))
    owner = np.repeat(np.arange(n), np.diff(starts)[question])
    labels = starts[question][owner] + positions(owner) - 1
    label_keys = owner * width + documents.label_doc[labels]
    keys = np.unique(np.concatenate([documents.cited, label_keys]))
    grade = _look_up(label_keys, documents.label_grade[labels], keys)
    empty = Verdicts(np.zeros(0, dtype=np.int64), *np.zeros((3, 0)))
    zeros = np.zeros(0, dtype=np.int64)
    return JudgedAnswers(
        query_ids=tuple(f"{query_id} {number}" for query_id, number in pairs),
        name=run,
        has_answer=has_text & completed,
        abstained=abstained,
        answerable=answerable,
        words=np.array([np.nan if text is None else float(len(text.split())) for text in texts]),
        correctness=agreement,
        has_reference=has_reference,
        nuggets=empty,
        vital=np.zeros(0, dtype=np.bool_),
        grounded=empty,
        citations=empty,
        sentence=zeros,
        citation_position=zeros,
        document_topic=keys // width,
        grade=grade,
        is_judged=~np.isnan(grade),
        rank=np.zeros(len(keys), dtype=np.int64),
        cited=np.isin(keys, documents.cited),
        evidence_nugget=zeros,
        evidence_document=zeros,
        texts=["" if silent else text for silent, text in zip(is_silent.tolist(), texts, strict=True)],
        references=[references.get(query_id, []) for query_id in of_questions],
        contexts=[None] * n,
        sentence_texts=[],
        judged_kinds=frozenset({"correctness"} if verdicts else ()),
        highest=max(1.0, float(documents.label_grade.max(initial=1.0))),
    )


def seen_lists(system: JudgedSystem, qrels: Qrels) -> tuple[Qrels, Run]:
    """Return the documents of each trial in order of first sight as a run, and the judgments of its question.

    The topics are the positions of the trials.
    """
    judged = system.trajectories
    rows = np.flatnonzero(judged.is_new)
    trial = judged.trial[rows]
    run = Run.of(
        pa.table({
            "query_id": pa.array(trial.astype(str)),
            "doc_id": pa.array(system.documents.names[judged.doc[rows]], pa.string()),
            "score": -positions(trial).astype(np.float64),
        }),
        name=judged.name,
    )  # fmt: skip
    labels = _labels(qrels, judged.query_ids)
    owners = pa.table({
        "query_id": pa.array(np.array(judged.query_ids, dtype=object)[judged.question], pa.string()),
        "trial": pa.array(np.arange(judged.n_trials).astype(str)),
    })  # fmt: skip
    joined = labels.join(owners, "query_id", join_type="inner")
    return Qrels.of(
        pa.table({"query_id": joined["trial"], "doc_id": joined["doc_id"], "relevance": joined["relevance"]})
    ), run
