"""Join trajectories with judgments, verdicts, and references: the input of measures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.query_text import normalize_query
from judged.data.run import Run
from judged.errors import InputError
from judged.pipelines.rag.responses import verdict_shares, verdicts_of
from judged.pipelines.trajectories.trajectories import COMPLETED
from judged.scoring.judging.answers import JudgedAnswers, judge_answer
from judged.scoring.judging.trajectories import JudgedTrajectories, first_of, positions
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from judged.pipelines.trajectories.trajectories import Trajectories
    from judged.results.types import Bools, Floats, Ints, Table

_LABELS = pa.schema({"query_id": pa.string(), "doc_id": pa.string(), "relevance": pa.float64()})


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
    system, query_ids = trajectories.of_run(run), trajectories.query_ids
    questions = pa.array(query_ids, pa.string())
    trials = _sorted(system["trials"], "query_id", "trial")
    steps = _sorted(system["steps"], "query_id", "trial", "step")
    names_of_trials = _names_of_trials(trials).unique()
    question, step_trial = _codes(trials["query_id"], questions), _codes(_names_of_trials(steps), names_of_trials)
    is_search, is_open = (pc.equal(steps["kind"], kind) for kind in ("search", "open"))
    searches, search_trial = steps.filter(is_search), step_trial[np.asarray(is_search)]

    citations, labels = system["citations"], _labels(trajectories, qrels, questions)
    hops = trajectories["hops"].filter(pc.is_in(trajectories["hops"]["query_id"], value_set=questions))
    hops = _sorted(hops, "query_id", "hop")
    returned, search = _flat(searches["documents"])
    opened, open_step = _flat(steps.filter(is_open)["documents"])
    columns = (returned, opened, citations["doc_id"], labels["doc_id"], hops["doc_id"])
    doc_ids = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()).unique()
    width = len(doc_ids) + 1

    doc, recorded = _codes(returned, doc_ids), np.asarray(searches["documents"].is_valid())
    del returned, columns
    steps, searches = (table.drop_columns(["documents"]) for table in (steps, searches))  # frees memory
    is_first = first_of(search * width + doc)  # a list can repeat a document
    search, doc = search[is_first], doc[is_first]
    trial = search_trial[search]
    documents = TrialDocuments(
        width, np.array(doc_ids.to_pylist(), dtype=object),
        returned=trial * width + doc,
        opened=step_trial[np.asarray(is_open)][open_step] * width + _codes(opened, doc_ids),
        cited=_codes(_names_of_trials(citations), names_of_trials) * width + _codes(citations["doc_id"], doc_ids),
        label_question=_codes(labels["query_id"], questions), label_doc=_codes(labels["doc_id"], doc_ids),
        label_grade=_floats(labels["relevance"]), hop_question=_codes(hops["query_id"], questions),
        hop=np.array(hops["hop"].to_pylist(), dtype=object), hop_doc=_codes(hops["doc_id"], doc_ids),
    )  # fmt: skip
    label_keys = documents.label_question * width + documents.label_doc
    grade = _look_up(label_keys, documents.label_grade, question[trial] * width + doc)
    completed = np.asarray(pc.equal(trials["status"], COMPLETED))
    answers = _answers(system, trials, question, completed, documents)
    decides, right = _accuracy_measure(answers, accuracy), np.full(len(trials), np.nan)
    if decides is not None:
        pieces = decides.pieces(answers)
        right[pieces.topic] = np.where((pieces.weight > 0) & ~np.isnan(pieces.value), pieces.value > 0.5, np.nan)
    hop_trial, hop_search = _first_search_of_hops(documents, question, positions(search_trial)[search])
    judged = JudgedTrajectories(
        query_ids=query_ids, name=run, question=question, search_trial=search_trial,
        failed=np.asarray(searches["failed"]), recorded=recorded,
        query=_query_codes(searches["query"]), search=search, doc=doc, rank=positions(search), grade=grade,
        is_judged=~np.isnan(grade), label_question=documents.label_question, label_grade=documents.label_grade,
        opened=np.isin(documents.returned, documents.opened), cited=np.isin(documents.returned, documents.cited),
        hop_trial=hop_trial, hop_search=hop_search,
        right=np.where((answers.answerable == 0) & (answers.abstained == 1), 1.0, right),
        records_use=bool(len(documents.opened) or len(documents.cited)),
        tokens=_effort(trials["tokens"], steps["tokens"], step_trial),
        cost=_effort(trials["cost"], steps["cost"], step_trial),
        latency_ms=_effort(trials["latency_ms"], steps["latency_ms"], step_trial),
        confidence=_floats(trials["confidence"]),
    )  # fmt: skip
    numbers, search_steps = np.asarray(trials["trial"]), np.asarray(searches["step"])
    has_opens = bool(pc.any(is_open).as_py())
    return JudgedSystem(judged, answers, documents, decides, numbers, search_steps, completed, has_opens)


def _sorted(table: Table, *columns: str) -> Table:
    return table.sort_by([(column, "ascending") for column in columns])


def _names_of_trials(table: Table) -> Any:
    """Return question and number of the trial of each row as one text."""
    return pc.binary_join_element_wise(table["query_id"], table["trial"].cast(pa.string()), " ")


def _codes(column: Any, values: Any) -> Ints:
    """Return the position of each element in `values`."""
    return np.asarray(pc.index_in(column, value_set=values), dtype=np.int64)


def _floats(column: Any) -> Floats:
    return np.asarray(column.cast(pa.float64()))


def _flat(lists: Any) -> tuple[Any, Ints]:
    """Return the elements of all lists, and the row of each."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    return pc.list_flatten(lists), np.repeat(np.arange(len(lengths)), lengths)


def _query_codes(column: Any) -> Ints:
    codes: dict[str, int] = {}
    texts = (None if text is None else normalize_query(text) for text in column.to_pylist())
    return np.array([-1 if text is None else codes.setdefault(text, len(codes)) for text in texts], dtype=np.int64)


def _labels(trajectories: Trajectories, qrels: Qrels | None, questions: Any) -> Table:
    """Return the judged documents of the questions, sorted by question, with their highest grades."""
    hops = trajectories["hops"]
    of_hops = hops.append_column("relevance", pa.repeat(1.0, hops.num_rows))
    table = (of_hops if qrels is None else qrels.table).select(_LABELS.names).cast(_LABELS)
    table = table.filter(pc.is_in(table["query_id"], value_set=questions))
    highest = table.group_by(["query_id", "doc_id"]).aggregate([("relevance", "max")])
    return _sorted(highest.rename_columns(_LABELS.names), "query_id", "doc_id")


def first_rows(returned: Ints, requested: Ints) -> Ints:
    """Return the first row of each requested key in the returned documents; -1 if it was not returned."""
    if not len(requested):  # an index of the returned documents needs much memory
        return np.empty(0, dtype=np.int64)
    return np.asarray(pc.fill_null(pc.index_in(pa.array(requested), value_set=pa.array(returned)), -1))


def _look_up(keys: Ints, values: Floats, requested: Ints) -> Floats:
    """Return the value of each requested key; NaN if it is missing."""
    return np.append(values, np.nan)[first_rows(keys, requested)]


def _rows_of_trials(question: Ints, row_question: Ints) -> tuple[Ints, Ints]:
    """Return trial and row of each row of the question of each trial; rows are sorted by question."""
    starts = np.searchsorted(row_question, np.arange(int(question.max(initial=-1)) + 2))
    trial = np.repeat(np.arange(len(question)), np.diff(starts)[question])
    return trial, starts[question][trial] + positions(trial) - 1


def _first_search_of_hops(documents: TrialDocuments, question: Ints, number: Ints) -> tuple[Ints, Ints]:
    """Return trial and number of the first search for each hop of each trial; 0 if no search returned a document."""
    trial, row = _rows_of_trials(question, documents.hop_question)
    first = first_rows(documents.returned, trial * documents.width + documents.hop_doc[row])
    never = np.iinfo(np.int64).max
    numbers = np.append(number, never)[first]
    names, codes = np.unique(documents.hop.astype(str), return_inverse=True)
    _, starts = np.unique(trial * (len(names) + 1) + codes[row], return_index=True)
    least = np.minimum.reduceat(numbers, starts) if len(starts) else starts
    return trial[starts], np.where(least == never, 0, least)


def _effort(of_trials: Any, of_steps: Any, step_trial: Ints) -> Floats:
    """Return the effort of each trial; where it is not recorded, the sum of the recorded efforts of its steps."""
    values, step_values = _floats(of_trials), _floats(of_steps)
    is_recorded = ~np.isnan(step_values)
    trial = step_trial[is_recorded]
    total = np.bincount(trial, step_values[is_recorded], minlength=len(values))
    has_steps = np.bincount(trial, minlength=len(values)) > 0
    return np.where(np.isnan(values) & has_steps, total, values)


def _accuracy_measure(answers: JudgedAnswers, accuracy: str | AnswerMeasure | None) -> AnswerMeasure | None:
    if accuracy is None and not answers.judged_kinds and not any(answers.references):
        return None
    default = "Correctness(partial=0)" if answers.judged_kinds else "ExactMatch"
    measure = parse(accuracy or default) if accuracy is None or isinstance(accuracy, str) else accuracy
    if not isinstance(measure, AnswerMeasure):
        fix = "use Correctness(partial=0), ExactMatch, or TokenF1"
        raise InputError(f"accuracy must be a measure of answers, got {measure}", fix=fix)
    return measure


def _answers(
    system: Trajectories, trials: Table, question: Ints, completed: Bools, documents: TrialDocuments
) -> JudgedAnswers:
    """Collect the answer of each trial as a topic of its own, with cited and judged documents."""
    texts, query_ids = trials["answer"].to_pylist(), trials["query_id"].to_pylist()
    abstained = _floats(trials["abstained"])
    has_answer = np.array([bool(text and text.strip()) for text in texts], dtype=np.bool_) & completed
    is_silent = ~has_answer | (abstained == 1)
    references: dict[str, list[str]] = {}
    answerable_of: dict[str, float] = {}
    for row in system["references"].to_pylist():
        if row["text"] is not None:
            references.setdefault(row["query_id"], []).append(row["text"])
        if row["answerable"] is not None:
            answerable_of[row["query_id"]] = float(row["answerable"])
    pairs = list(zip(query_ids, trials["trial"].to_pylist(), strict=True))
    verdicts = verdict_shares(system["correctness"], "query_id", "trial")
    correctness = verdicts_of(verdicts, range(len(pairs)), pairs)
    judged_questions = {query_id for query_id, _ in verdicts}
    has_reference = np.array([q in judged_questions or q in references for q in query_ids], dtype=np.bool_)
    is_wrong = correctness.is_missing & is_silent & has_reference
    width = documents.width
    trial, label = _rows_of_trials(question, documents.label_question)
    label_keys = trial * width + documents.label_doc[label]
    keys = np.unique(np.concatenate([documents.cited, label_keys]))
    grade = _look_up(label_keys, documents.label_grade[label], keys)
    return replace(
        judge_answer(),  # without sentences and nuggets
        query_ids=tuple(f"{query_id} {number}" for query_id, number in pairs),
        name=system.run_names[0],
        has_answer=has_answer,
        abstained=abstained,
        answerable=np.array([answerable_of.get(query_id, np.nan) for query_id in query_ids], dtype=np.float64),
        words=np.array([np.nan if text is None else float(len(text.split())) for text in texts], dtype=np.float64),
        correctness=correctness.replace_where(is_wrong, 0.0),
        has_reference=has_reference,
        document_topic=keys // width,
        grade=grade,
        is_judged=~np.isnan(grade),
        rank=np.zeros(len(keys), dtype=np.int64),
        cited=np.isin(keys, documents.cited),
        texts=["" if silent else text for silent, text in zip(is_silent.tolist(), texts, strict=True)],
        references=[references.get(query_id, []) for query_id in query_ids],
        contexts=[None] * len(pairs),
        judged_kinds=frozenset({"correctness"} if verdicts else ()),
        highest=max(1.0, float(documents.label_grade.max(initial=1.0))),
    )


def seen_lists(system: JudgedSystem) -> tuple[Qrels, Run]:
    """Return the judgments of the question of each trial, and its documents in order of first sight as a run.

    The topics are the positions of the trials.
    """
    judged, documents = system.trajectories, system.documents
    rows = np.flatnonzero(judged.is_new)
    seen = pa.table({
        "query_id": judged.trial[rows].astype(str),
        "doc_id": pa.array(documents.names[judged.doc[rows]], pa.string()),
        "score": -positions(judged.trial[rows]).astype(np.float64),
    })  # fmt: skip
    trial, label = _rows_of_trials(judged.question, documents.label_question)
    labels = pa.table({
        "query_id": trial.astype(str),
        "doc_id": pa.array(documents.names[documents.label_doc[label]], pa.string()),
        "relevance": documents.label_grade[label],
    })  # fmt: skip
    return Qrels.of(labels), Run.of(seen, name=judged.name)
