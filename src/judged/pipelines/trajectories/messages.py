"""Trials in chat logs with tool calls, and in records of BrowseComp.

Read are messages of OpenAI (chat completions, and items of responses), Anthropic, LangChain, and LlamaIndex.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from judged.pipelines.traces.attributes import first_value
from judged.pipelines.trajectories.tool_calls import ToolCall, TrialLog

if TYPE_CHECKING:
    from judged.pipelines.trajectories.tool_calls import Row, ToolRules

_ROLES = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "aimessagechunk": "assistant",
    "tool": "tool", "function": "tool", "system": "system", "developer": "system",
}  # fmt: skip
_LISTS = ("messages", "items", "input", "output")
_RESULTS = ("tool_result", "tool_call_response")
_REASONING = ("thinking", "redacted_thinking", "reasoning")


def messages_of(record: Any) -> list[Row] | None:
    """Return the messages of a record or list; None if it has none.

    >>> messages_of({"messages": [{"role": "user", "content": "Who?"}]}), messages_of({"messages": ["Who?"]})
    ([{'role': 'user', 'content': 'Who?'}], None)
    """
    if isinstance(record, Mapping):
        row = cast("Row", record)
        lists = [row[name] for name in _LISTS if isinstance(row.get(name), list)]
        if isinstance(row.get("input"), str) and lists:  # a request of one text
            lists.insert(0, [{"role": "user", "content": row["input"]}])
        record = [message for messages in lists for message in messages]
    if not isinstance(record, list) or not record:
        return None
    messages = [_unwrapped(message) for message in cast("list[Any]", record)]
    return cast("list[Row]", messages) if all(map(is_message, messages)) else None


def is_message(value: Any) -> bool:
    """Check if a value is a message, or an item of a response."""
    return isinstance(value, Mapping) and bool(_role(_unwrapped(value)) or _is_item(_unwrapped(value)))


def log_of(messages: list[Row], rules: ToolRules) -> TrialLog:
    """Convert messages to the log of a trial."""
    log = TrialLog(rules)
    for message in messages:
        log.add_tokens(first_value(message, "usage_metadata", "usage", "response_metadata.token_usage"))
        if _is_item(message):
            _add_item(log, message)
        else:
            _add_message(log, message)
    return log


def log_of_browsecomp(record: Row, rules: ToolRules) -> TrialLog:
    """Convert the steps of a record of BrowseComp to the log of a trial."""
    log = TrialLog(rules)
    for step in cast("list[Row]", record.get("result") or []):
        kind, output = step.get("type"), step.get("output")
        if kind == "tool_call":
            log.call(ToolCall(step.get("tool_name"), step.get("arguments"), (output,)), is_pending=False)
        elif kind == "output_text":
            log.say(str(output or ""))
        else:
            log.reason()
    return log


def add_retrieved(record: dict[str, Any], retrieved: Any, rules: ToolRules) -> None:
    """Add a step with the documents that BrowseComp states as retrieved, but that no step has."""
    returned = {document for step in record["steps"] for document in step.get("documents") or ()}
    missing = [str(document) for document in retrieved or () if str(document) not in returned]
    if missing:
        step = {"kind": "search", "tool": "retrieved_docids", "documents": missing}
        ends = record["steps"] and record["steps"][-1]["kind"] == "answer"
        record["steps"].insert(len(record["steps"]) - bool(ends), step)
        rules.counts["trials with documents of unknown calls, added as one search with the tool retrieved_docids"] += 1


def _unwrapped(message: Any) -> Any:
    """Return the message inside the serializations of LangChain."""
    if not isinstance(message, Mapping):
        return message
    row = cast("Row", message)
    if "lc" in row and isinstance(row.get("kwargs"), Mapping):
        name = str((row.get("id") or [""])[-1]).removesuffix("Chunk").removesuffix("Message")
        return {"type": name.lower(), **row["kwargs"]}
    return {"type": row.get("type"), **row["data"]} if isinstance(row.get("data"), Mapping) else row


def _role(message: Row) -> str | None:
    return _ROLES.get(str(message.get("role") or message.get("type")).lower())


def _is_item(message: Row) -> bool:
    """Check if this is an item of a response of OpenAI other than a message."""
    kind = message.get("type")
    return isinstance(kind, str) and not message.get("role") and kind.endswith(("_call", "_call_output", "reasoning"))


def _add_item(log: TrialLog, item: Row) -> None:
    kind, call_id = str(item["type"]), item.get("call_id") or item.get("id")
    failed = item.get("status") in ("failed", "incomplete") or bool(item.get("error"))
    if kind == "reasoning":
        log.reason()
    elif kind.endswith("_output"):
        log.result(call_id, None, item.get("output"), failed=failed)
    else:
        arguments = next((item[key] for key in ("arguments", "input", "action", "queries") if item.get(key)), None)
        outputs = [item[key] for key in ("results", "output") if key in item]
        tool = item.get("name") or kind.removesuffix("_call")
        if isinstance(arguments, Mapping) and kind == "web_search_call":
            action = cast("Row", arguments)
            tool = tool if action.get("type") == "search" else str(action.get("type"))  # such as open_page
            arguments = {key: action[key] for key in ("query", "queries", "url") if action.get(key)}
            outputs = [action.get("sources")]
        has_result = kind not in ("function_call", "custom_tool_call")
        call = ToolCall(tool, arguments, tuple(outputs), has_result and failed)
        log.call(call, call_id, is_pending=not has_result)


def _add_message(log: TrialLog, message: Row) -> None:
    role, extra = _role(message), message.get("additional_kwargs") or {}
    content = message.get("content") or message.get("blocks") or message.get("parts") or []
    if role == "tool" and not _has_results(content):
        call_id = message.get("tool_call_id") or extra.get("tool_call_id")
        tool, failed = message.get("name") or extra.get("name"), message.get("status") == "error"
        log.result(call_id, tool, message.get("artifact"), content, failed=failed)
    elif role != "system":
        blocks = [content] if isinstance(content, (str, Mapping)) else cast("list[Any]", content)
        call_ids: set[Any] = set()
        texts = [text for block in blocks if (text := _add_block(log, block, str(role), call_ids))]
        if role == "user" and "".join(texts).strip():
            log.ask("\n".join(texts).strip())
        calls = message.get("tool_calls") or extra.get("tool_calls") or message.get("function_call") or []
        for call in [calls] if isinstance(calls, Mapping) else calls:
            if call.get("id", call.get("tool_call_id")) not in call_ids or not call_ids:
                _add_call(log, call)


def _add_block(log: TrialLog, block: Any, role: str, call_ids: set[Any]) -> str | None:
    """Add a block of content, and return its text; `call_ids` collects the ids of calls."""
    part = {"type": "text", "text": block} if isinstance(block, str) else cast("Row", block)
    kind = str(part.get("type") or part.get("block_type"))
    if kind in _REASONING:
        log.reason()
    elif kind.endswith(("tool_use", "tool_call", "function_call")):
        call_ids.add(_add_call(log, part))
    elif kind.endswith(_RESULTS):
        output = next((part[key] for key in ("content", "response", "result") if key in part), None)
        call_id = part.get("tool_use_id") or part.get("id")
        log.result(call_id, None, output, failed=bool(part.get("is_error")))
    elif kind.endswith("text"):
        text = part.get("text", part.get("content"))
        if role == "assistant":
            log.say(str(text or ""))
        return str(text or "")
    return None


def _has_results(content: Any) -> bool:
    """Check if a message of a tool has blocks of results, as in conventions of OpenTelemetry."""
    return isinstance(content, list) and any(
        isinstance(block, Mapping) and str(block.get("type")).endswith(_RESULTS) for block in cast("list[Any]", content)
    )


def _add_call(log: TrialLog, call: Row) -> Any:
    """Add a call in any of the layouts, and return its id."""
    function: Row = call["function"] if isinstance(call.get("function"), Mapping) else call
    call_id = call.get("id") or call.get("tool_call_id")
    names = ("arguments", "args", "input", "tool_kwargs")
    arguments = next((function[name] for name in names if function.get(name) is not None), None)
    log.call(ToolCall(function.get("name") or function.get("tool_name"), arguments), call_id)
    return call_id
