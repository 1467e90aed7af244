"""Trials in traces of OpenInference and of OpenTelemetry for GenAI: each trace is one trial."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from judged.pipelines.traces.attributes import first_value, get_list, parse_json
from judged.pipelines.traces.steps import ancestors_of, parse_span
from judged.pipelines.trajectories.messages import log_of, messages_of
from judged.pipelines.trajectories.tool_calls import LoggedStep, ToolRules, TrialLog, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.pipelines.traces.steps import ParsedSpan
    from judged.pipelines.trajectories.tool_calls import Row

_ROLES: Mapping[str, Literal["tool", "agent", "model"]] = {
    "TOOL": "tool", "EXECUTE_TOOL": "tool", "AGENT": "agent", "INVOKE_AGENT": "agent", "LLM": "model", "CHAT": "model",
    "TEXT_COMPLETION": "model", "GENERATE_CONTENT": "model",
}  # fmt: skip
_INPUTS = ("input.value", "gen_ai.input.messages", "llm.input_messages")
_OUTPUTS = ("output.value", "gen_ai.output.messages", "llm.output_messages")
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

    @property
    def role(self) -> str | None:
        """What the span is: a tool, an agent, a model, or none of these."""
        return _ROLES.get(self.span.kind.upper())

    def effort(self) -> dict[str, Any]:
        """Return the tokens and cost of a request to a model, and the latency, if recorded."""
        start, end = self.span.start, self.span.end
        effort = {
            "tokens": tokens_of({name: first_value(self.attributes, *paths) for name, paths in _TOKENS.items()}),
            "cost": first_value(self.attributes, "llm.cost.total"),
            "latency_ms": None if start is None or end is None else round(1000 * (end - start), 3),
        }
        return {name: value for name, value in effort.items() if value is not None}

    def log(self, paths: Iterable[str]) -> TrialLog | None:
        """Return the log of the messages in the first attribute that has any."""
        for path in paths:
            value = first_value(self.attributes, path)
            rows = parse_json(value) if isinstance(value, str) else value
            if not isinstance(rows, Mapping):
                rows = [_without_prefix(row) for _, row in get_list(self.attributes, path) or ()]
            if (messages := messages_of(rows)) is not None:
                return log_of(messages, ToolRules())
        return None


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
    log.steps += _steps(order)
    if not log.steps:
        return None
    models = [agent for agent in order if agent.role == "model"]
    inputs = ((agent.log(_INPUTS), agent.span.query) for agent in (root, *models))
    output, last = root.log(_OUTPUTS), models[-1].log(_OUTPUTS) if models else None
    answer = (output.answer if output else root.span.facts.get("answer")) or (last and last.answer)
    efforts = [agent.effort() for agent in models] or [root.effort()]
    names = (first_value(agent.attributes, "gen_ai.agent.name", "agent.name") for agent in order)
    fields: dict[str, Any] = {
        "query_id": next((agent.span.query_id for agent in order if agent.span.query_id is not None), None),
        "run_id": next(filter(None, names), None),
        "question": next(filter(None, ((log and log.question) or query for log, query in inputs)), None),
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


def _steps(order: Sequence[AgentSpan]) -> Iterator[LoggedStep]:
    """Yield the steps of a trace in order of start, also those of nested agents.

    The stages of retrieval inside a tool, or inside another stage, are one search.
    """
    by_id = {agent.span.span_id: agent for agent in order if agent.span.span_id}
    parent_of = {span_id: agent.span.parent_id for span_id, agent in by_id.items()}
    ancestors = [[by_id[name] for name in ancestors_of(agent.span, parent_of) if name in by_id] for agent in order]
    stages: defaultdict[int, list[ParsedSpan]] = defaultdict(list)  # by owner
    searches: dict[str, AgentSpan] = {}  # last search below a parent
    callers: set[int] = set()
    for agent, around in zip(order, ancestors, strict=True):
        if agent.span.stage is not None:
            owner = _owner(agent, around)
            if owner is agent and agent.span.stage.kind == "rerank":  # of the search before it
                owner = searches.get(agent.span.parent_id, owner)
            searches[owner.span.parent_id] = owner
            stages[id(owner)].append(agent.span)
        if agent.role in ("tool", "agent"):
            callers.update(map(id, around))
    for agent in order:
        of_agent = stages.get(id(agent), ())
        if agent.role == "model":
            yield LoggedStep(kind="reason", effort=agent.effort())
        elif agent.role == "tool" or of_agent:
            tool, arguments, outputs = _call(agent, of_agent)
            kind = "search" if of_agent else "other" if id(agent) in callers else None
            yield LoggedStep(tool, arguments, outputs, agent.failed, agent.effort(), kind)


def _owner(agent: AgentSpan, ancestors: Iterable[AgentSpan]) -> AgentSpan:
    """Return the tool around a stage of retrieval, or else the outermost stage, in the same agent."""
    owner = agent
    for ancestor in ancestors:
        if ancestor.role == "tool":
            return ancestor
        if ancestor.role == "agent":
            return owner
        owner = ancestor if ancestor.span.stage is not None else owner
    return owner


def _call(agent: AgentSpan, spans: Iterable[ParsedSpan]) -> tuple[str, Any, tuple[Any, Any]]:
    """Return tool, arguments, and outputs of a tool or a search, whose documents are those of its last stage."""
    stages = [span.stage for span in sorted(spans, key=lambda span: span.end or 0) if span.stage is not None]
    query = next((stage.query for stage in stages if stage.query), None)
    is_final = len(stages) < 2 or stages[-1] is agent.span.stage or stages[-1].kind == "rerank"
    lists = [stage.documents for stage in (stages[-1:] if is_final else stages) if stage.documents is not None]
    ids = dict.fromkeys(document.doc_id for documents in lists for document in documents)
    documents = [{"id": doc_id} for doc_id in ids] if lists else None
    if agent.role != "tool":
        return agent.name, query, (documents, None)
    tool = first_value(agent.attributes, "tool.name", "gen_ai.tool.name") or agent.name
    arguments = first_value(agent.attributes, "gen_ai.tool.call.arguments", "input.value", "tool.parameters") or query
    output = first_value(agent.attributes, "output.value", "gen_ai.tool.call.result")
    return tool, arguments, (documents, output) if is_final else (output, documents)
