"""Trials in chat logs with tool calls, and in records of BrowseComp.

Read are messages of OpenAI (chat completions, and items of responses), Anthropic, LangChain, and LlamaIndex.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from judged.pipelines.traces.attributes import first_value
from judged.pipelines.trajectories.tool_calls import LoggedStep, TrialLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.pipelines.trajectories.tool_calls import Row, ToolRules

_ROLES = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "aimessagechunk": "assistant",
    "tool": "tool", "function": "tool", "system": "system", "developer": "system",
}  # fmt: skip
_LISTS = ("messages", "items", "input", "output")
_RESULTS = ("_output", "tool_result", "tool_call_response")
_CALLS = ("tool_call", "function_call", "tool_use")
_IDS = ("call_id", "tool_use_id", "tool_call_id", "id")
_ARGUMENTS = ("arguments", "args", "input", "tool_kwargs", "action", "queries")


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
    message = _unwrapped(value)
    return isinstance(message, Mapping) and bool(_role(cast("Row", message)) or _is_item(cast("Row", message)))


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
    return not message.get("role") and str(message.get("type")).endswith(("_call", "_call_output", "reasoning"))


def log_of(messages: list[Row], rules: ToolRules) -> TrialLog:
    """Convert messages to the log of a trial."""
    log = TrialLog(rules)
    for message in messages:
        log.add_tokens(first_value(message, "usage_metadata", "usage", "response_metadata.token_usage"))
        if _is_item(message):
            _add_part(log, message)
        elif (role := _role(message)) != "system":
            _add_message(log, message, role)
    return log


def record_of_browsecomp(row: Row, fields: Row, rules: ToolRules) -> dict[str, Any]:
    """Convert a record of BrowseComp; documents that it states as retrieved, but no step has, are one more search."""
    log = TrialLog(rules)
    for step in cast("list[Row]", row.get("result") or []):
        _add_part(log, step)
    record = log.record(fields)
    steps = record["steps"]
    returned = {document for step in steps for document in step.get("documents") or ()}
    if missing := [str(document) for document in row.get("retrieved_docids") or () if str(document) not in returned]:
        ends = bool(steps) and steps[-1]["kind"] == "answer"
        search = {"kind": "search", "tool": "retrieved_docids", "documents": missing}
        steps.insert(len(steps) - ends, search)
        rules.counts["trials with documents of unknown calls, added as one search with the tool retrieved_docids"] += 1
    return record


def _add_message(log: TrialLog, message: Row, role: str | None) -> None:
    """Add the parts of a message: blocks of content, calls of tools, or a result."""
    extra = message.get("additional_kwargs") or {}
    content = message.get("content") or message.get("blocks") or message.get("parts") or []
    parts = cast("list[Any]", content if isinstance(content, list) else [content])
    if role == "tool" and not any(_kind(part).endswith(_RESULTS) for part in parts):
        _add_part(log, {**message, **extra, "type": "tool_result", "id": None, "content": content})
        return
    texts = [text for part in parts if (text := _add_part(log, part, role))]
    if role == "user" and "".join(texts).strip():
        log.ask("\n".join(texts).strip())
    ids = {_first(part, _IDS) for part in parts if _kind(part).endswith(_CALLS)}  # LangChain repeats calls
    calls = message.get("tool_calls") or extra.get("tool_calls") or message.get("function_call") or []
    for call in [calls] if isinstance(calls, Mapping) else calls:
        if _first(call, _IDS) not in ids:
            _add_part(log, {**call, "type": "tool_call"})


def _kind(part: Any) -> str:
    return str(part.get("type") or part.get("block_type")) if isinstance(part, Mapping) else "text"


def _first(row: Row, names: Iterable[str]) -> Any:
    """Return the first value that is present and not empty."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _add_part(log: TrialLog, part: Any, role: str | None = "assistant") -> str | None:
    """Add a block of content, an item of a response, or a call, and return its text."""
    kind, row = _kind(part), cast("Row", {"text": part} if isinstance(part, str) else part)
    call_id = _first(row, _IDS)
    failed = row.get("status") in ("failed", "incomplete", "error") or bool(row.get("error") or row.get("is_error"))
    if kind.endswith(("thinking", "reasoning")):
        log.add(LoggedStep(kind="reason"))
    elif kind.endswith(_RESULTS):
        output = next((row[key] for key in ("output", "content", "response", "result") if key in row), None)
        log.add_result(call_id, row.get("name"), row.get("artifact"), output, failed=failed)
    elif kind.endswith(("_call", "tool_use")):
        is_request = kind.endswith(_CALLS)  # other calls are of providers, with their results
        function: Row = row["function"] if isinstance(row.get("function"), Mapping) else row
        tool = function.get("name") or function.get("tool_name") or (None if is_request else kind.removesuffix("_call"))
        arguments = _first(function, _ARGUMENTS)
        outputs = (row.get("results"), row.get("output"))
        if isinstance(arguments, Mapping) and kind == "web_search_call":
            action = cast("Row", arguments)
            tool = tool if action.get("type") == "search" else str(action.get("type"))  # such as open_page
            arguments = {key: action[key] for key in ("query", "queries", "url") if action.get(key)}
            outputs = (action.get("sources"),)
        is_pending = is_request and "output" not in row
        log.add(LoggedStep(tool, arguments, outputs, failed, call_id=call_id, is_pending=is_pending))
    elif kind.endswith("text"):
        text = str(_first(row, ("text", "content", "output")) or "")
        if role == "assistant":
            log.say(text)
        return text
    return None
