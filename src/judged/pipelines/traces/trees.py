"""The stages of one trace, from the tree of its spans: which stage was given what of which others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from judged.pipelines.traces.attributes import answered, asked, dig, first, parent_id, parsed, span_id, times, trace_id
from judged.pipelines.traces.conventions import facts_of, recorded_stage, span_kind
from judged.pipelines.traces.traces import Span

if TYPE_CHECKING:
    from judged.pipelines.traces.conventions import Format, Recorded
    from judged.pipelines.traces.reading import Row

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
