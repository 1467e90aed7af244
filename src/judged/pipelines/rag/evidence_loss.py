"""Waterfall of RAG pipelines: the evidence lost at each step from corpus to answer, and the step to improve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.parts import topic_subsets
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.diagnosis.needs.needs import needs_of
from judged.errors import InputError
from judged.pipelines.rag.chains import PASSED, STEPS, UNITS, UNJUDGED, chains
from judged.pipelines.rag.responses import Responses
from judged.pipelines.rag.steps import ChainCounts, LostItem, differences, weakest
from judged.pipelines.rag.waterfall_answer import Waterfall
from judged.pipelines.traces import Entities, traces_of_runs
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted, listed

if TYPE_CHECKING:
    from judged.pipelines.rag.chains import Chain
    from judged.pipelines.traces import Traces


def query_facts(traces: Traces | None = None, *, entities: Any = None, queries: Any = None) -> Attributes:
    """Return attributes of queries for slicing: ``rewritten`` from traces, and ``entity`` from query texts.

    Parameters
    ----------
    traces
        Traces: a query is rewritten if a stage of kind ``rewrite`` changed its text.
    entities
        As for `judged.pipelines.traces.Entities.of`; a query is about each entity that it names, and their parents.
    queries
        Texts of topics, as for `judged.Topics.of`; for topics without one, the traced text.

    Examples
    --------
    >>> query_facts(entities=[{"entity": "zip", "parent": "archives"}], queries={"q": "make a zip"}).table.to_pylist()
    [{'query_id': 'q', 'entity': ['zip', 'archives']}]
    """
    facts: dict[str, dict[str, Any]] = {}
    text_of: dict[str, str] = {}
    if queries is not None:
        topics, texts = map(Topics.of(queries).table.__getitem__, ("query_id", "text"))
        text_of = {str(topic): str(text) for topic, text in zip(topics, texts, strict=True)}
        facts = {topic: {} for topic in text_of}
    for topic in traces.query_ids if traces else ():
        spans = traces.spans_of(topic).values() if traces else ()
        traced = next((span.query for span in spans if span.query and span.kind != "rewrite"), "")
        original = text_of.setdefault(topic, traced)
        rewrites = {span.query for span in spans if span.kind == "rewrite" and span.query}
        facts.setdefault(topic, {})["rewritten"] = bool(rewrites - {original})
    if entities is not None:
        catalog = Entities.of(entities)
        for topic, text in text_of.items():
            facts.setdefault(topic, {})["entity"] = list(catalog.rolled_up(catalog.mentioned(text).entities)) or None
    return Attributes.of(facts)


_LAST_STEPS_OF_MAIN = {"nugget": ("covered",), "answer": ("correct", "matched"), "document": ()}
"""Candidates for the main chain, by preference, and the steps that each has to end with; empty: any step."""

_DEFAULT_CUTOFFS = (100, 10)


def waterfall(
    responses: Any,
    qrels: Any = None,
    *,
    runs: Mapping[str, Any] | None = None,
    traces: Traces | Mapping[str, Traces] | None = None,
    corpus: Iterable[str] | None = None,
    cutoffs: tuple[int, int] | None = None,
    rel: float = 1,
    strict: bool = True,
    needs: Any = None,
    slicing: Any = None,
    level: float = 0.95,
) -> Waterfall:
    """Follow evidence from the corpus to the answer by document ids, and find the step that loses most.

    Chains of documents, nuggets, and answers include the steps that the tables record: corpus, retrieval, top ranks,
    context, citations, and their support. Chains of nuggets (linked by ``evidence``) and of answers (linked by
    ``qrels``) continue to the text of the answer: its correctness by verdicts, or else exact match with a reference.
    Steps without a record are listed in the notes. Failed and missing verdicts are unjudged, and the result has bounds
    over all possible verdicts.

    Parameters
    ----------
    responses
        As for `judged.pipelines.rag.Responses.of`.
    qrels
        Judgments of documents, as for `judged.evaluate`.
    runs
        Stages before the context: runs by name, in pipeline order, which hold for all systems; or, if all names are
        systems, the run that each system used.
    traces
        Instead of runs: traces of all systems together, or by system.
    corpus
        Ids of all documents.
    cutoffs
        Number of documents that count in the first stage, and in the last one. Default: 100 and 10.
    rel
        Lowest relevant grade.
    strict
        Whether partial support counts as not supported.
    needs
        Queries with the same information need, as for `judged.needs`. Intervals are then over needs.
    slicing
        Slices of topics; steps are also estimated in each.
    level
        Confidence level of intervals. Tests use the significance level ``1 - level``.

    Raises
    ------
    InputError
        If an input is invalid, or no step is recorded.

    Examples
    --------
    >>> lost = waterfall({
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "context": [{"query_id": "q", "doc_id": doc} for doc in "ab"],
    ...     "citations": [{"query_id": "q", "sentence": 1, "doc_id": "a"}]}, {"q": {"a": 1, "b": 1, "c": 1}})
    >>> [(step.step, step.n_reached, step.n) for step in lost.steps if step.unit == "document"]
    [('context', 3, 2), ('cited', 2, 1)]
    """
    answered = Responses.of(responses)
    names = answered.run_names
    judgments = None if qrels is None else Qrels.of(qrels)
    relevant = None if judgments is None else _relevant_docs(judgments, rel)
    if judgments is not None:
        _check_context_ids(answered, judgments)
    traces_by_run, corpus_ids = _traces_by_run(names, runs, traces), None if corpus is None else frozenset(corpus)
    options: dict[str, Any] = {"corpus": corpus_ids, "cutoffs": cutoffs or _DEFAULT_CUTOFFS, "strict": strict}
    all_chains: list[Chain] = []
    for run in names:
        all_chains += chains(answered, run, relevant=relevant, traces=traces_by_run.get(run), **options)
    if not all_chains:
        fix = (
            "for the loss of relevant documents, use --qrels FILE, with --run NAME=RUN or a table `context` or"
            " `citations`; for the loss of nuggets, add the tables `nuggets` and `assignments`; for user feedback, add"
            " the table `feedback`"
        )
        raise InputError("the tables record no step of the pipeline", fix=fix, path=answered.where)
    topics: tuple[str, ...] = tuple(sorted(answered["answers"]["query_id"].unique().to_pylist()))
    need_of: Mapping[str, str] = {} if needs is None else needs_of(needs)
    need_of_topic = [need_of.get(topic, topic) for topic in topics]
    unit_of_need = {need: i for i, need in enumerate(dict.fromkeys(need_of_topic))}
    units = np.array([unit_of_need[need] for need in need_of_topic])
    _, *slices = topic_subsets(len(topics), None if slicing is None else as_slicing(slicing).over(topics))
    counts = [ChainCounts(chain, topics) for chain in all_chains]
    main_unit = _main_unit(all_chains)
    main_counts = [chain_counts for chain_counts in counts if chain_counts.chain.unit == main_unit]
    all_topics = np.ones(len(topics), dtype=np.bool_)
    steps = tuple(step for unit in UNITS for chain_counts in counts if chain_counts.chain.unit == unit
                  for step in chain_counts.steps(all_topics, units, level))  # fmt: skip
    weakest_of = {run: weakest([step for step in steps if (step.run, step.unit) == (run, main_unit)]) for run in names}
    recorded = {run: {step for chain in all_chains if chain.run == run for step in chain.steps} for run in names}
    unrecorded_steps = {run: tuple(step for step in STEPS if step not in recorded[run]) for run in names}
    return Waterfall(
        responses=answered,
        steps=steps,
        by_slice=tuple(step for part in slices for chain_counts in main_counts
                       for step in chain_counts.steps(part.mask, units, level, part.name)),
        small_slices=frozenset(part.name for part in slices if part.small),
        weakest={run: step for run, step in weakest_of.items() if step is not None},
        differences=tuple(differences(names, counts, units, level)),
        lost=tuple(item for chain in all_chains for item in _lost_items(chain)),
        topics=tuple((chain_counts.chain.run, topic, tuple(chain_counts.remaining[:, i].tolist()))
                     for chain_counts in main_counts for i, topic in enumerate(topics) if chain_counts.remaining[0, i]),
        unrecorded_steps=unrecorded_steps,
        main_unit=main_unit,
        cutoffs=cutoffs or _DEFAULT_CUTOFFS,
        level=level,
        sampling_unit="topics" if needs is None else "needs",
        notes=(*answered.notes, *_notes(answered, all_chains, relevant, unrecorded_steps)),
    )  # fmt: skip


def _check_context_ids(responses: Responses, qrels: Qrels) -> None:
    """Check that some document of the contexts is judged: other ids would lose all evidence."""
    context_ids = set(responses["context"]["doc_id"].to_pylist())
    if context_ids and context_ids.isdisjoint(qrels.table["doc_id"].unique().to_pylist()):
        raise InputError(
            f"none of the {counted(len(context_ids), 'document')} in the contexts is in the qrels",
            fix="use the same document ids in both; if RESPONSES has the ids of passages in a column, name the column"
            " (--columns contexts=COLUMN)",
            path=responses.where,
        )


def _relevant_docs(qrels: Qrels, rel: float) -> dict[str, list[str]]:
    docs_of: dict[str, dict[str, None]] = {}  # dicts as ordered sets: a source may list a document twice
    for row in qrels.table.select(["query_id", "doc_id", "relevance"]).to_pylist():
        docs_of.setdefault(row["query_id"], {}).update({row["doc_id"]: None} if row["relevance"] >= rel else {})
    return {topic: list(docs) for topic, docs in docs_of.items()}


def _traces_by_run(names: Sequence[str], runs: Mapping[str, Any] | None, traces: Any) -> Mapping[str, Traces]:
    if runs is not None and traces is not None:
        raise InputError("`runs` and `traces` cannot be combined", fix="pass only one of the two arguments")
    if runs and set(runs) <= set(names):
        return {name: traces_of_runs({name: run}) for name, run in runs.items()}
    if isinstance(traces, Mapping):
        if unknown := sorted(set(traces) - set(names)):
            raise InputError(
                f"there are traces of the system {unknown[0]!r}, but no answers of this system",
                fix=f"use {', '.join(names)}",
            )
        return traces
    shared = traces_of_runs(runs) if runs else traces
    return {} if shared is None else dict.fromkeys(names, shared)


def _main_unit(all_chains: Sequence[Chain]) -> str:
    """Select the chain that the first sentence describes: the one that covers most of the pipeline in several steps."""
    for unit, last_steps in _LAST_STEPS_OF_MAIN.items():
        for chain in all_chains:
            if chain.unit == unit and len(chain.steps) > 1 and (not last_steps or chain.steps[-1] in last_steps):
                return unit
    return max(all_chains, key=lambda chain: len(chain.steps)).unit


def _lost_items(chain: Chain) -> Iterator[LostItem]:
    not_passed = chain.cumulative != PASSED
    for column in np.flatnonzero(not_passed.any(axis=0)).tolist():
        i = int(not_passed[:, column].argmax())  # the first step that the item does not pass
        topic, *ids = chain.items[column]
        is_unjudged = bool(chain.cumulative[i, column] == UNJUDGED)
        yield LostItem(chain.run, chain.unit, topic, "".join(ids), chain.steps[i], is_unjudged)


def _notes(
    responses: Responses,
    all_chains: Sequence[Chain],
    relevant: Mapping[str, Sequence[str]] | None,
    unrecorded_steps: Mapping[str, Sequence[str]],
) -> Iterator[Note]:
    for run in responses.run_names:
        if missing := [STEPS[step] for step in unrecorded_steps[run]]:
            text = f"steps that are left out, because the tables do not record these steps: {listed(missing)}"
            if "retrieved" in unrecorded_steps[run]:
                text += "; for “retrieved” and “ranked”, name the runs of the first and the last stage: --run RUN"
            yield Note("steps-not-recorded", text, run)
        answered = set(responses.of_run(run)["answers"]["query_id"].to_pylist())
        docs_of = relevant or dict.fromkeys(answered, "")
        unanswered = sorted(topic for topic in docs_of if topic not in answered)
        without_relevant = sorted(topic for topic in answered if relevant is not None and not docs_of.get(topic))
        for rule, text, topics in (
            ("topics-not-answered", "judged topics without an answer, which are excluded", unanswered),
            ("topics-not-judged", "answers to topics without a relevant document", without_relevant),
        ):
            if topics:
                yield Note(rule, f"{text} ({len(topics):,}): {first_few(topics)}", run, len(topics))
        run_chains = [chain for chain in all_chains if chain.run == run]
        unjudged = {UNITS[chain.unit][0]: int((chain.cumulative[-1] == UNJUDGED).sum()) for chain in run_chains}
        if parts := [f"{count} {unit}" for unit, count in unjudged.items() if count]:
            text = f"items without a verdict, which count neither as passed nor as lost: {listed(parts)}"
            yield Note("unjudged", text, run, sum(unjudged.values()))
    linked = {(row["query_id"], row["nugget_id"]) for row in responses["evidence"].to_pylist()}
    total = responses["nuggets"].num_rows
    if 0 < len(linked) < total:
        yield Note(
            "nuggets-without-evidence", f"{total - len(linked)} of {total} nuggets have no document with evidence"
        )
