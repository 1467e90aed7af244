"""The waterfall: at which step on the way from the corpus to the answer evidence is lost, and which step to work on."""

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
from judged.pipelines.rag.steps import Counts, differences, weakest
from judged.pipelines.rag.waterfall_answer import Waterfall
from judged.pipelines.traces import Entities, traces_of_runs
from judged.results.blocks import Note, first_few
from judged.results.decimals import listed

if TYPE_CHECKING:
    from judged.pipelines.rag.chains import Chain
    from judged.pipelines.traces import Traces


def query_facts(traces: Traces | None = None, *, entities: Any = None, queries: Any = None) -> Attributes:
    """Tell ``rewritten`` of queries that were traced, and by their texts the ``entity`` of all, to be sliced by.

    Parameters
    ----------
    traces
        What was traced: a query is rewritten if a stage of kind ``rewrite`` made another text of it.
    entities
        What `judged.pipelines.traces.Entities.of` takes; a query is about each that it names, and what that is part of.
    queries
        Texts of topics, as `judged.Topics.of` takes them; where they are left out, those that were traced.

    Examples
    --------
    >>> query_facts(entities=[{"entity": "zip", "parent": "archives"}], queries={"q": "make a zip"}).table.to_pylist()
    [{'query_id': 'q', 'entity': ['zip', 'archives']}]
    """
    texts = (
        {}
        if queries is None
        else dict(zip(*map(Topics.of(queries).table.__getitem__, ("query_id", "text")), strict=True))
    )
    facts: dict[str, dict[str, Any]] = {str(topic): {} for topic in texts}
    given = {str(topic): str(text) for topic, text in texts.items()}
    for topic in traces.query_ids if traces else ():
        spans = traces.spans_of(topic).values() if traces else ()
        asked = next((span.query for span in spans if span.query and span.kind != "rewrite"), "")
        original = given.setdefault(topic, asked)
        made = {span.query for span in spans if span.kind == "rewrite" and span.query}
        facts.setdefault(topic, {})["rewritten"] = bool(made - {original})
    if entities is not None:
        known = Entities.of(entities)
        for topic, text in given.items():
            facts.setdefault(topic, {})["entity"] = list(known.rolled_up(known.mentioned(text).entities)) or None
    return Attributes.of(facts)


_LEADS = {"nugget": "covered", "answer": "correct", "document": ""}
"""The chains that the first sentence may be about, if they end so and have several steps."""

_CUTOFFS = (100, 10)


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
    """Follow evidence from the corpus to the answer, on the same ids, and say at which step most is lost.

    Chains of documents, nuggets and answers go through the corpus, what was retrieved, the first ranks, the context,
    citations and their support, as far as there are tables; those of nuggets, linked by ``evidence``, and of answers,
    linked by ``qrels``, go on to what was said. What nobody recorded is left out by name; failed and absent verdicts
    are unjudged, and bound what comes through.

    Parameters
    ----------
    responses
        What `judged.pipelines.rag.Responses.of` takes.
    qrels
        Relevant documents, as `judged.evaluate` takes them.
    runs
        The stages before the context: a run by the name of each, in the order of the pipeline, for all systems; or, if
        all names are those of systems, the run behind each.
    traces
        Instead, what was traced, of all systems or by system.
    corpus
        Ids of all documents that there are.
    cutoffs
        How many documents of the first stage, and how many of the last one, count; None: 100 and 10.
    rel
        The lowest grade that is relevant.
    strict
        Whether partial support does not pass.
    needs
        Which queries word the same need, as for `judged.needs`: intervals are then over needs.
    slicing
        Slices of topics, by which the steps are shown too.
    level
        Of intervals; a step is named, and systems differ, at ``1 - level``.

    Raises
    ------
    InputError
        If something cannot be read, or there is nothing to follow.

    Examples
    --------
    >>> made = waterfall({
    ...     "answers": [{"query_id": "q", "text": "It is 7."}],
    ...     "context": [{"query_id": "q", "doc_id": doc} for doc in "ab"],
    ...     "citations": [{"query_id": "q", "sentence": 1, "doc_id": "a"}]}, {"q": {"a": 1, "b": 1, "c": 1}})
    >>> [(step.step, step.given, step.n) for step in made.steps if step.unit == "document"]
    [('context', 3, 2), ('cited', 2, 1)]
    """
    given = Responses.of(responses)
    relevant = None if qrels is None else _relevant(Qrels.of(qrels), rel)
    before, there = _before(given.run_names, runs, traces), None if corpus is None else frozenset(corpus)
    how: dict[str, Any] = {"corpus": there, "cutoffs": cutoffs or _CUTOFFS, "strict": strict}
    made = [
        chain
        for run in given.run_names
        for chain in chains(given, run, relevant=relevant, traces=before.get(run), **how)
    ]
    if not made:
        fix = "give qrels with context or citations, or nuggets with assignments, or feedback"
        raise InputError("nothing is known that could be followed", fix=fix, path=given.where)
    topics: tuple[str, ...] = tuple(sorted(given["answers"]["query_id"].unique().to_pylist()))
    need_of: Mapping[str, str] = {} if needs is None else needs_of(needs)
    named = [need_of.get(topic, topic) for topic in topics]
    places = {name: at for at, name in enumerate(dict.fromkeys(named))}
    units = np.array([places[name] for name in named])
    sliced = None if slicing is None else as_slicing(slicing).over(topics)
    _, *slices = topic_subsets(len(topics), sliced)
    counts = [Counts(chain, topics) for chain in made]
    lead = _lead(made)
    leading = [one for one in counts if one.chain.unit == lead]
    every = np.ones(len(topics), dtype=np.bool_)
    order = {key: at for at, key in enumerate((unit, run) for unit in UNITS for run in given.run_names)}
    steps = tuple(step for one in sorted(counts, key=lambda one: order[one.chain.unit, one.chain.run])
                  for step in one.steps(every, units, level))  # fmt: skip
    ways = {one.chain.run: [step for step in steps if (step.run, step.unit) == (one.chain.run, lead)]
            for one in leading}  # fmt: skip
    found = {run: weakest(way) for run, way in ways.items()}
    told = {run: {name for chain in made if chain.run == run for name in chain.steps} for run in given.run_names}
    left_out = {run: tuple(name for name in STEPS if name not in names) for run, names in told.items()}
    return Waterfall(
        responses=given,
        steps=steps,
        by_slice=tuple(step for where in slices for one in leading
                       for step in one.steps(where.mask, units, level, where.name)),
        small=frozenset(where.name for where in slices if where.small),
        weakest={run: one for run, one in found.items() if one is not None},
        differences=tuple(differences(given.run_names, counts, units, level)),
        lost=tuple(lost for chain in made for lost in _lost(chain)),
        topics=tuple((one.chain.run, topic, tuple(one.alive[:, at].tolist()))
                     for one in leading for at, topic in enumerate(topics) if one.alive[0, at]),
        left_out=left_out,
        lead=lead,
        cutoffs=cutoffs or _CUTOFFS,
        level=level,
        over="topics" if needs is None else "needs",
        notes=(*given.notes, *_notes(given, made, relevant, left_out)),
    )  # fmt: skip


def _relevant(qrels: Qrels, rel: float) -> dict[str, list[str]]:
    """Give the relevant documents of each topic, each once."""
    found: dict[str, dict[str, None]] = {}
    for row in qrels.table.select(["query_id", "doc_id", "relevance"]).to_pylist():
        found.setdefault(row["query_id"], {}).update({row["doc_id"]: None} if row["relevance"] >= rel else {})
    return {topic: list(documents) for topic, documents in found.items()}


def _before(names: Sequence[str], runs: Mapping[str, Any] | None, traces: Any) -> Mapping[str, Traces]:
    """Give the stages before the context, by system."""
    if runs is not None and traces is not None:
        raise InputError("both runs and traces are given", fix="give the stages once")
    if runs and set(runs) <= set(names):
        return {name: traces_of_runs({name: run}) for name, run in runs.items()}
    if isinstance(traces, Mapping):
        if strange := sorted(set(traces) - set(names)):
            raise InputError(f"there are traces of {strange[0]!r}, and no answers", fix=f"use {', '.join(names)}")
        return traces
    shared = traces_of_runs(runs) if runs else traces
    return {} if shared is None else dict.fromkeys(names, shared)


def _lead(made: Sequence[Chain]) -> str:
    """Choose the chain that the first sentence is about: the one that reaches farthest over several steps."""
    for unit, last in _LEADS.items():
        if any(chain.unit == unit and len(chain.steps) > 1 and last in {"", chain.steps[-1]} for chain in made):
            return unit
    return max(made, key=lambda chain: len(chain.steps)).unit


def _lost(chain: Chain) -> Iterator[tuple[str, str, str, str, str, bool]]:
    """Give what does not come through, with the first step that it does not pass."""
    behind = chain.held != PASSED
    for at in np.flatnonzero(behind.any(axis=0)).tolist():
        step = int(behind[:, at].argmax())
        topic, *rest = chain.items[at]
        yield chain.run, chain.unit, topic, "".join(rest), chain.steps[step], bool(chain.held[step, at] == UNJUDGED)


def _notes(
    responses: Responses,
    made: Sequence[Chain],
    relevant: Mapping[str, Sequence[str]] | None,
    left_out: Mapping[str, Sequence[str]],
) -> Iterator[Note]:
    """Say what is not followed, and of what nobody knows."""
    for run in responses.run_names:
        if missing := [STEPS[step] for step in left_out[run]]:
            yield Note("steps-not-recorded", f"left out, as nothing is recorded of it: {listed(missing)}", run)
        answered = set(responses.of_run(run)["answers"]["query_id"].to_pylist())
        known = relevant or dict.fromkeys(answered, "")
        silent = sorted(topic for topic in known if topic not in answered)
        bare = sorted(topic for topic in answered if relevant is not None and not known.get(topic))
        for rule, what, some in (
            ("topics-not-answered", "judged topics without an answer, which are not followed", silent),
            ("topics-not-judged", "answers to topics without a relevant document", bare),
        ):
            if some:
                yield Note(rule, f"{what} ({len(some):,}): {first_few(some)}", run, len(some))
        unknown = {UNITS[chain.unit][0]: int((chain.held[-1] == UNJUDGED).sum()) for chain in made if chain.run == run}
        if of := [f"{count} {what}" for what, count in unknown.items() if count]:
            text = f"for want of verdicts neither held nor lost: {listed(of)}"
            yield Note("unjudged", text, run, sum(unknown.values()))
    linked = {(row["query_id"], row["nugget_id"]) for row in responses["evidence"].to_pylist()}
    every = responses["nuggets"].num_rows
    if 0 < len(linked) < every:
        yield Note("nuggets-without-evidence", f"{every - len(linked)} of {every} nuggets stand in no known document")
