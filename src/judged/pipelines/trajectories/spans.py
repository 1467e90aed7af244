"""Trials in traces of OpenInference and of OpenTelemetry for GenAI: each trace is one trial."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from judged.pipelines.traces.attributes import first_value, get_list, parse_json
from judged.pipelines.traces.steps import ancestors_of, parse_span
from judged.pipelines.trajectories.messages import log_of, messages_of
from judged.pipelines.trajectories.tool_calls import ToolCall, ToolRules, TrialLog, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.pipelines.traces.steps import ParsedSpan
    from judged.pipelines.trajectories.tool_calls import Row
    from judged.pipelines.trajectories.trajectories import StepKind

_TOOLS = ("TOOL", "EXECUTE_TOOL")
_AGENTS = ("AGENT", "INVOKE_AGENT")
_MODELS = ("LLM", "CHAT", "TEXT_COMPLETION", "GENERATE_CONTENT")
_INPUTS = ("input.value", "gen_ai.input.messages", "llm.input_messages")
_OUTPUTS = ("output.value", "gen_ai.output.messages", "llm.output_messages")
_NAMES = ("gen_ai.agent.name", "agent.name")
_TOKENS = {"total_tokens": ("llm.token_count.total",), "input_tokens": ("llm.token_count.prompt",
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"), "output_tokens": ("llm.token_count.completion",
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")}  # fmt: skip


@dataclass(frozen=True, eq=False)
class AgentSpan:
    """Span of an agent.

    Parameters
    ----------
    span, name, attributes
        Fields, name, and attributes.
    failed
        Whether its status is an error.
    """

    span: ParsedSpan
    name: str
    attributes: Row
    failed: bool

    def is_kind(self, kinds: Sequence[str]) -> bool:
        """Check if the kind is one of `kinds`."""
        return self.span.kind.upper() in kinds

    def effort(self) -> dict[str, Any]:
        """Return the tokens and cost of a request to a model, and the latency, if recorded."""
        start, end = self.span.start, self.span.end
        effort = {
            "tokens": tokens_of({name: first_value(self.attributes, *paths) for name, paths in _TOKENS.items()}),
            "cost": first_value(self.attributes, "llm.cost.total"),
            "latency_ms": None if start is None or end is None else round(1000 * (end - start), 3),
        }
        return {name: value for name, value in effort.items() if value is not None}

    def log(self, *paths: str) -> TrialLog | None:
        """Return the log of the messages in the first attribute that has any."""
        for path in paths:
            value = first_value(self.attributes, path)
            rows = parse_json(value) if isinstance(value, str) else value
            if not isinstance(rows, Mapping):
                rows = [_without_prefix(row) for _, row in get_list(self.attributes, path) or ()]
            if (messages := messages_of(rows)) is not None:
                return log_of(messages, ToolRules())
        return None

    def question(self) -> str | None:
        """Return the text of the input."""
        log = self.log(*_INPUTS)
        return (log.question if log else None) or self.span.query

    def answer(self, *, is_root: bool) -> str | None:
        """Return the text of the output; None if it calls a tool."""
        log = self.log(*_OUTPUTS)
        return log.answer if log else self.span.facts.get("answer") if is_root else None


def _without_prefix(row: Any) -> Any:
    """Return a message of OpenInference with the keys of other messages."""
    if not isinstance(row, Mapping):
        return row
    inner = cast("Row", row.get("message", row))
    message: dict[str, Any] = {str(key).removeprefix("message."): value for key, value in inner.items()}
    calls = get_list(message, "tool_calls")
    return message | {"tool_calls": [call for _, call in calls]} if calls else message


def parse_agent_span(row: Row, attributes: Row, rules: ToolRules) -> AgentSpan:
    """Parse a span.

    Raises
    ------
    ValueError
        If the span is invalid.
    """
    span = parse_span(row, attributes, rules.counts, None, rules.topic_from, rules.id_from)
    code = str(first_value(row, "status_code", "statusCode", "status.code", "status.status_code") or "")
    return AgentSpan(span, str(row.get("name") or "tool"), attributes, code.upper().endswith("ERROR") or code == "2")


def trial_of_trace(spans: Iterable[AgentSpan], rules: ToolRules) -> dict[str, Any] | None:
    """Convert the spans of a trace to the record of a trial; None if they have no tool, search, or model."""
    order = sorted(spans, key=lambda agent: (agent.span.start is None, agent.span.start or 0))
    ids = {agent.span.span_id for agent in order}
    roots = [agent for agent in order if agent.span.parent_id not in ids]
    root = next((agent for agent in roots if not agent.span.parent_id), (roots or order)[0])
    log = TrialLog(rules)
    for step in _steps(order):
        log.steps.append(step)
    if not log.steps:
        return None
    models = [agent for agent in order if agent.is_kind(_MODELS)]
    questions = (agent.question() for agent in (root, *models))
    answer = root.answer(is_root=True) or (models[-1].answer(is_root=False) if models else None)
    efforts = [agent.effort() for agent in models] or [root.effort()]
    fields: dict[str, Any] = {
        "query_id": next((agent.span.query_id for agent in order if agent.span.query_id is not None), None),
        "run_id": next((name for name in (first_value(agent.attributes, *_NAMES) for agent in order) if name), None),
        "question": next(filter(None, questions), None),
        "latency_ms": root.effort().get("latency_ms"),
        "status": "failed" if root.failed else None,
    }
    for name in ("tokens", "cost"):
        values = [effort[name] for effort in efforts if name in effort]
        fields[name] = sum(values) if values else None
    log.say(answer or "")
    record = log.record({name: value for name, value in fields.items() if value is not None})
    steps = record["steps"]
    if [step["kind"] for step in steps[-2:]] == ["reason", "answer"]:  # the request that gave the answer
        steps[-2:] = [steps[-2] | {"kind": "answer"}]
    return record


def _steps(order: Sequence[AgentSpan]) -> Iterator[ToolCall | dict[str, Any]]:
    """Yield the steps of a trace in order of start, also those of nested agents.

    The stages of retrieval inside a tool, or inside another stage, are one search.
    """
    by_id = {agent.span.span_id: agent for agent in order if agent.span.span_id}
    parent_of = {agent.span.span_id: agent.span.parent_id for agent in order if agent.span.span_id}
    ancestors = {
        id(agent): [by_id[name] for name in ancestors_of(agent.span, parent_of) if name in by_id] for agent in order
    }
    stages: defaultdict[int, list[AgentSpan]] = defaultdict(list)
    searches: dict[str, AgentSpan] = {}  # last search below a parent
    for agent in order:
        if agent.span.stage is not None:
            owner = _owner(agent, ancestors[id(agent)])
            if owner is agent and agent.span.stage.kind == "rerank":  # of the search before it
                owner = searches.get(agent.span.parent_id, owner)
            searches[owner.span.parent_id] = owner
            stages[id(owner)].append(agent)
    callers = {id(caller) for agent in order if agent.is_kind((*_TOOLS, *_AGENTS)) for caller in ancestors[id(agent)]}
    for agent in order:
        is_caller = id(agent) in callers and id(agent) not in stages
        if agent.is_kind(_MODELS):
            yield {"kind": "reason", **agent.effort()}
        elif agent.is_kind(_TOOLS) or id(agent) in stages:
            yield _call(agent, stages[id(agent)], "other" if is_caller else None)


def _owner(agent: AgentSpan, ancestors: Iterable[AgentSpan]) -> AgentSpan:
    """Return the tool around a stage of retrieval, or else the outermost stage, in the same agent."""
    owner = agent
    for ancestor in ancestors:
        if ancestor.is_kind(_TOOLS):
            return ancestor
        if ancestor.is_kind(_AGENTS):
            return owner
        owner = ancestor if ancestor.span.stage is not None else owner
    return owner


def _call(agent: AgentSpan, stages: Sequence[AgentSpan], kind: StepKind | None) -> ToolCall:
    """Convert a tool, or a search without a tool, to a call with the documents of its last stage."""
    attributes = agent.attributes
    output = first_value(attributes, "output.value", "gen_ai.tool.call.result")
    recorded = sorted(stages, key=lambda stage: stage.span.end or 0)
    query = next((query for stage in recorded if (query := stage.span.stage and stage.span.stage.query)), None)
    if agent.is_kind(_TOOLS):
        tool = first_value(attributes, "tool.name", "gen_ai.tool.name") or agent.name
        paths = ("gen_ai.tool.call.arguments", "input.value", "tool.parameters")
        arguments = first_value(attributes, *paths) or query
    else:
        tool, arguments, output = agent.name, query, None
    last = recorded[-1] if recorded else agent
    is_final = len(recorded) == 1 or last is agent or (last.span.stage is not None and last.span.stage.kind == "rerank")
    documents = _documents([last] if is_final else recorded)
    outputs = (documents, output) if is_final else (output, documents)
    return ToolCall(tool, arguments, outputs, agent.failed, agent.effort(), kind or ("search" if stages else None))


def _documents(stages: Sequence[AgentSpan]) -> list[dict[str, str]] | None:
    """Return the documents of all stages, as a tool would; None if they are not recorded."""
    lists = [stage.span.stage.documents for stage in stages if stage.span.stage is not None]
    recorded = [documents for documents in lists if documents is not None]
    ids = dict.fromkeys(document.doc_id for documents in recorded for document in documents)
    return [{"id": doc_id} for doc_id in ids] if recorded else None
