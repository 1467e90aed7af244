"""What a pipeline still holds behind each of its steps, and which relevant documents it has lost by then."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.records import records_of
from judged.data.run import Run
from judged.diagnosis.stages.trace import ORDER
from judged.errors import InputError
from judged.pipelines.traces.attributes import answered, asked, dig, first, parent_id, parsed, span_id, times, trace_id
from judged.pipelines.traces.conventions import facts_of, recorded_stage, span_kind
from judged.pipelines.traces.traces import Span
from judged.scoring.judging import judge
from judged.stats.inputs import spread
from judged.stats.interval import mean_intervals
from judged.stats.slice_differences import against_rest
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.data.qrels import Qrels
    from judged.pipelines.traces.conventions import Format, Recorded
    from judged.pipelines.traces.reading import Row
    from judged.pipelines.traces.traces import Stage, Traces
    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.stats.interval import IntervalMethod
    from judged.stats.slice_differences import AgainstRest


_INPUT = " input"  # what a stage is called that is another one's input


@dataclass(frozen=True, slots=True)
class Step:
    """What is kept of a span.

    Parameters
    ----------
    trace_id, span_id, parent_id
        Its ids; ``""`` where they are not recorded.
    kind
        Its kind, for counting.
    start, end
        Seconds; None where they are not recorded.
    query
        The text that it was given.
    query_id
        The topic, by the attribute that was asked for.
    facts
        Who asked, and what was thought of it or of its trace, where it is not a stage.
    stage
        The stage that it is, if it is one.
    """

    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    start: float | None
    end: float | None
    query: str | None
    query_id: Any
    facts: Mapping[str, Any]
    stage: Recorded | None


def step_of(
    row: Row, attributes: Row, odd: Counter[str], format: Format | None, topic_from: str | None, id_from: str | None
) -> Step:
    """Take of a span what a trace needs of it."""
    stage = recorded_stage(row, attributes, odd, format, id_from)
    start, end = times(row)
    return Step(
        trace_id=trace_id(row) or span_id(row),
        span_id=span_id(row),
        parent_id=parent_id(row),
        kind=span_kind(row, attributes),
        start=start,
        end=end,
        query=None if stage else asked(dig(attributes, "input.value")),
        query_id=None if topic_from is None else _named(attributes, topic_from),
        facts={} if stage else facts_of(attributes) | _answer(row, attributes),
        stage=stage,
    )


def _answer(row: Row, attributes: Row) -> dict[str, Any]:
    """Give what the outermost span or a model gave back."""
    if parent_id(row) and span_kind(row, attributes).upper() != "LLM":
        return {}
    message = "llm.output_messages.0.message.content"
    given = first(attributes, message, "output.value") if parent_id(row) else first(attributes, "output.value", message)
    text = answered(given)
    return {"answer": text} if text else {}


def _named(attributes: Row, path: str) -> Any:
    """Give an attribute, also where it stands in the JSON of another one, such as ``metadata``."""
    found = first(attributes, path)
    head, _, rest = path.partition(".")
    held = dig(attributes, head) if found is None and rest else None
    return first(parsed(held), rest) if isinstance(held, str) else found


def spans_of_trace(steps: Sequence[Step], topic: str, shared: Collection[str]) -> list[Span]:
    """Make the stages of one trace, each behind those that it was given documents of.

    `shared` are names that stages of several kinds have, which are told apart by their kinds.
    """
    around = {step.span_id: step.parent_id for step in steps if step.span_id}
    stages = [step for step in steps if step.stage is not None]
    if all(step.end is not None for step in stages):
        stages.sort(key=lambda step: step.end or 0)
    above = {id(step): _above(step, around) for step in stages}
    names: dict[int, str] = {}
    seen: Counter[str] = Counter()
    followed: set[int] = set()
    made: list[Span] = []
    for place, step in enumerate(stages):
        stage = step.stage
        if stage is None:
            continue
        base = f"{stage.name} ({stage.kind})" if stage.name in shared else stage.name
        seen[base] += 1
        names[id(step)] = name = base if seen[base] == 1 else f"{base} {seen[base]}"
        before = _before(step, stages[:place], above, followed)
        given = {one.doc_id for one in stage.given or ()}
        sharing = [one for one in before if one.stage and any(d.doc_id in given for d in one.stage.documents or ())]
        before = sharing or before
        followed.update(map(id, before))
        parents = tuple(names[id(one)] for one in before)
        took = None if step.start is None or step.end is None else round(1000 * (step.end - step.start), 3)
        if stage.given is not None:
            made.append(Span(step.trace_id, topic, name + _INPUT, "candidates", parents, stage.given))
            parents = (name + _INPUT,)
        known = (stage.query, took, stage.model, stage.facts)
        made.append(Span(step.trace_id, topic, name, stage.kind, parents, stage.documents, *known))
    last = made.pop()
    every = [last.facts, *(step.facts for step in steps)]  # what is known of the trace goes with its last stage
    known = {name: fact for facts in reversed(every) for name, fact in facts.items()}
    said = [step for step in steps if "answer" in step.facts]
    if said:  # the outermost span's, or else that of the model that was asked last
        known["answer"] = max(said, key=lambda step: (not step.parent_id, step.end or 0)).facts["answer"]
    feedback = [one for facts in every for one in facts.get("feedback", ())]
    return [*made, replace(last, facts=known | ({"feedback": feedback} if feedback else {}))]


def _above(step: Step, around: dict[str, str]) -> list[str]:
    """Give the ids of the spans around a step, the nearest first."""
    found: list[str] = []
    parent = step.parent_id
    while parent and parent not in found:
        found.append(parent)
        parent = around.get(parent, "")
    return found


def _before(step: Step, earlier: Sequence[Step], above: dict[int, list[str]], followed: set[int]) -> list[Step]:
    """Give the stages that a stage was given documents of, as far as the tree tells.

    They are those inside it; or, of a reranker, those that ended before it began, below the nearest span around it that
    holds any. A stage that another of them follows is passed over.
    """
    inside = [one for one in earlier if step.span_id and step.span_id in above[id(one)]]
    if inside:
        return [one for one in inside if id(one) not in followed]
    if step.stage is None or step.stage.kind == "candidates":
        return []
    ended = [one for one in earlier if one.end is None or step.start is None or one.end <= step.start]
    for scope in above[id(step)]:
        here = [one for one in ended if scope in above[id(one)] and id(one) not in followed]
        if here:
            return here
    return [one for one in ended if id(one) not in followed]


def without_echoes(spans: Iterable[Span]) -> list[Span]:
    """Leave out inputs that say nothing new: those that in every trace are what the one stage before passed on."""
    given = list(spans)
    held = {(span.trace_id, span.stage): {one.doc_id for one in span.documents or ()} for span in given}
    inputs = [span for span in given if span.stage.endswith(_INPUT)]
    said: defaultdict[str, bool] = defaultdict(bool)
    for span in inputs:
        alone = len(span.parents) == 1
        said[span.stage] |= not alone or held[span.trace_id, span.parents[0]] != held[span.trace_id, span.stage]
    before = {(span.trace_id, span.stage): span.parents for span in inputs if not said[span.stage]}
    return [
        replace(span, parents=before.get((span.trace_id, span.parents[0]), span.parents)) if span.parents else span
        for span in given
        if (span.trace_id, span.stage) not in before
    ]


CORPUS = "corpus"
"""The part of the loss by what the corpus does not hold."""
UNRECORDED = "unrecorded"
"""The step of documents that were lost where the trace does not tell."""


def stages_to(traces: Traces, last: Stage) -> tuple[Stage, ...]:
    """Give the stages whose documents may come to the last one, and that one, those nearer to the query first."""
    wanted = {last.name}
    for stage in reversed(traces.stages):
        wanted |= set(stage.parents) if stage.name in wanted else set()
    return tuple(stage for stage in traces.stages if stage.name in wanted)


class StepSet(NamedTuple):
    """What all branches of a pipeline together still hold behind a step."""

    name: str
    documents: Judged  # as far as they are recorded
    known: Bools  # (T,): whether they are all recorded


def held_behind(
    traces: Traces, path: Sequence[Stage], judgments: Qrels, lists: Mapping[str, Judged], *, join: bool
) -> Iterator[StepSet]:
    """Yield the documents that all branches still hold behind each step; a step is named after its stages.

    With `join`, a step behind which nothing is known of any topic is joined with the next one: what both lose together
    is known, though not which of them.
    """
    topics = lists[path[-1].name].query_ids
    waiting: list[str] = []
    for step in range(1, path[-1].step + 1):
        waiting += [stage.name for stage in path if stage.step == step]
        passed = {stage.name for stage in path if stage.step <= step}
        needed = {parent for stage in path if stage.step > step for parent in stage.parents}
        held = [stage.name for stage in path if stage.name in passed & (needed | {path[-1].name})]
        known = recorded(traces, held, topics)
        if join and step < path[-1].step and not known.any():
            continue
        name, waiting = " + ".join(waiting), []
        documents = lists[held[0]] if len(held) == 1 else judge(judgments, traces.union(held))
        yield StepSet(f"{name} (stage)" if name in (CORPUS, ORDER, UNRECORDED) else name, documents, known)


def recorded(traces: Traces, stages: Iterable[str], query_ids: Sequence[str]) -> Bools:
    """Return for which queries the documents of all these stages are recorded: (T,)."""
    names = list(stages)
    return np.array([all(traces.documents(query, name) is not None for name in names) for query in query_ids], np.bool_)


def inside(judgments: Qrels, corpus: Iterable[str]) -> Run:
    """Give the judged documents that the corpus holds as a run."""
    known = set(corpus)
    pairs = zip(*(judgments.table[name].to_pylist() for name in ("query_id", "doc_id")), strict=True)
    kept = list(dict.fromkeys(pair for pair in pairs if pair[1] in known))
    columns = {"query_id": [query for query, _ in kept], "doc_id": [doc for _, doc in kept]}
    return Run.of(pa.table({**columns, "score": [-float(at) for at in range(len(kept))]}), name=CORPUS)


def relevant_in(shown: Judged, rel: float) -> Iterator[tuple[str, str, int, float]]:
    """Give topic, document, rank and grade of the relevant documents of a list."""
    names = shown.qrels.index.row_names
    for hit in np.flatnonzero(shown.relevant(rel)).tolist():
        yield shown.query_ids[shown.topic[hit]], names[shown.row[hit]], int(shown.rank[hit]), float(shown.grade[hit])


def lost_of(shown: Judged, sets: Sequence[StepSet], rel: float) -> Iterator[tuple[str, str, str, float]]:
    """Yield the relevant documents that the last set is not known to hold, with the step that lost each.

    That is the step behind the last set that holds it. If a set between it and the next one that is known to lack the
    document is not recorded, or there is no such set, the step is `UNRECORDED`.
    """
    labels = np.flatnonzero(shown.relevant_labels(rel))
    rows, topics = shown.label_row[labels], shown.label_topic[labels]
    holds = np.stack([np.isin(rows, one.documents.row) for one in sets])
    lacks = ~holds & np.stack([one.known[topics] for one in sets])
    names = shown.qrels.index.row_names
    for at in np.flatnonzero(~holds[-1]).tolist():
        held = np.flatnonzero(holds[:, at])
        behind = int(held[-1]) + 1 if len(held) else 0
        told = lacks[behind:, at].all() or sets[behind].name == CORPUS  # what is not in the corpus cannot come later
        step = sets[behind].name if told else UNRECORDED
        label = labels[at]
        yield shown.query_ids[topics[at]], names[rows[at]], step, float(shown.label_grade[label])


def sufficient_intervals(values: Floats, method: IntervalMethod, bounds: ArrayLike = (np.nan, np.nan)) -> Floats:
    """Return an interval for the mean of each row, (S, T) to (S, 2); NaN where there is not enough data for one."""
    limits = mean_intervals(values, method, bounds)
    for row, known in enumerate([row[~np.isnan(row)] for row in values]):
        if insufficiency(len(known), variance=spread(known)):
            limits[row] = np.nan
    return limits


def compare_with_rest(
    values: Floats, members: Bools | Sequence[Bools], *, level: float, seed: int = 0, min_units: int = 0
) -> list[AgainstRest | None]:
    """Test the mean of each group of topics against that of all others; None where there is not enough data.

    Both sides need enough topics for a verdict, `min_units` if that is more. One side may be constant.
    """
    known = ~np.isnan(values)
    masks = np.asarray(members, dtype=np.bool_).reshape(-1, len(values)) & known
    sizes = masks.sum(axis=1)
    variance = spread(values[known])
    enough = [
        insufficiency(min(size, int(known.sum()) - size), "verdict", variance=variance, min_units=min_units) is None
        for size in sizes.tolist()
    ]
    tests = iter(against_rest(values, masks[enough], level=level, seed=seed) if any(enough) else ())
    return [next(tests) if some else None for some in enough]


def clicks_of(traces: Traces, stage: str) -> dict[str, dict[str, float]]:
    """Take the clicks that were recorded with the list that people saw: ids in the fact ``clicks``."""
    found: dict[str, dict[str, float]] = {}
    for span in traces.spans:
        given = span.facts.get("clicks") if span.stage == stage else None
        if isinstance(given, Mapping):
            found[span.query_id] = {str(doc): float(times) for doc, times in given.items()}
        elif isinstance(given, (list, tuple)):
            found[span.query_id] = dict(Counter(map(str, given)))
    return found


def read_clicks(clicks: Any) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Read clicks: rows of ``query_id``, ``doc_id`` and, where it is not 1, ``clicks``; a row without a document: none.

    Where rows have ``expected`` too, the clicks that ranks let expect as `judged.online.clicks.coec` counts them, the
    second are these; a document without any was not shown.

    Raises
    ------
    InputError
        If they cannot be read so.

    >>> read_clicks([{"query_id": "q", "doc_id": "a", "clicks": 2}, {"query_id": "left", "doc_id": None}])
    ({'q': {'a': 2.0}, 'left': {}}, {})
    """
    where = str(clicks) if isinstance(clicks, (str, Path)) else "<clicks>"
    fix = "give columns query_id, doc_id and clicks"
    found: dict[str, dict[str, float]] = {}
    expected: dict[str, dict[str, float]] = {}
    for line, row in records_of(clicks, where, "clicks", fix):
        query, doc, times = row.get("query_id", row.get("query")), row.get("doc_id"), row.get("clicks", 1)
        try:
            count, hoped = float(1 if times is None else times), float(row.get("expected") or 0)
        except (TypeError, ValueError, OverflowError):
            count = hoped = math.nan
        if query is None or "doc_id" not in row or not (0 <= count < math.inf and 0 <= hoped < math.inf):
            problem = "a row without query_id or doc_id, or whose clicks or expected clicks are not a count"
            raise InputError(problem, fix=fix, path=where, line=line)
        known = found.setdefault(str(query), {})
        if doc is not None and doc != "":
            known[str(doc)] = known.get(str(doc), 0.0) + count
            if hoped:
                own = expected.setdefault(str(query), {})
                own[str(doc)] = own.get(str(doc), 0.0) + hoped
    return found, expected
