"""Trajectories in every layout, and odd ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError, JudgedError
from judged.pipelines.trajectories import (
    Trajectories,
    TrajectoryRecorder,
    check_trajectories,
    read_trajectories,
    write_trajectories,
)
from judged.pipelines.trajectories.tool_calls import ToolRules, answer_facts
from judged.pipelines.trajectories.trajectories import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Row = dict[str, Any]

OWN: Row = {
    "query_id": "q1", "run_id": "a", "question": "Who?", "answer": "Ada", "citations": ["d1"], "confidence": 0.5,
    "tokens": 100, "cost": 0.01, "latency_ms": 20.5, "references": ["Ada Lovelace"], "correct": True,
    "steps": [
        {"kind": "search", "tool": "find", "query": "who", "documents": ["d1", "d2"], "tokens": 40},
        {"kind": "search", "tool": "find", "query": "who else", "failed": True, "documents": []},
        {"kind": "open", "documents": ["d1"]},
        {"kind": "reason"},
        {"kind": "answer"},
    ],
}  # fmt: skip


def write(path: Path, *rows: Any, lines: bool = True, indent: int | None = None) -> Path:
    text = "".join(f"{json.dumps(row)}\n" for row in rows) if lines else json.dumps(rows[0], indent=indent)
    path.write_text(text, encoding="utf-8")
    return path


def steps(trajectories: Trajectories, *names: str, run: str | None = None) -> list[tuple[Any, ...]]:
    rows = (trajectories if run is None else trajectories.of_run(run))["steps"].to_pylist()
    return [tuple(row[name] for name in names or ("kind", "tool", "query", "documents", "failed")) for row in rows]


def trial(trajectories: Trajectories, *names: str) -> Any:
    (row,) = trajectories["trials"].to_pylist()
    return row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)


def cited(trajectories: Trajectories) -> list[str]:
    return trajectories["citations"]["doc_id"].to_pylist()


def notes(trajectories: Trajectories) -> str:
    return "\n".join(map(str, trajectories.notes))


def test_own_layout_round_trip(tmp_path: Path) -> None:
    rows = [OWN, OWN | {"run_id": "b", "status": "failed", "correct": "partial"}, OWN | {"answer": None}]
    first = read_trajectories(write(tmp_path / "own.jsonl", *rows))
    write_trajectories(first, tmp_path / "again")
    again = Trajectories.of(tmp_path / "again")
    for name in ("trials", "steps", "citations", "references", "correctness"):
        order = [(column, "ascending") for column in KEYS[name]]
        assert again[name].equals(first[name].sort_by(order)), name
    assert first["trials"]["trial"].to_pylist() == [1, 1, 2]
    assert first["correctness"]["verdict"].to_pylist() == ["support", "partial", "support"]
    assert first["references"].num_rows == 1
    assert "1 question repeated" in notes(first)
    assert not again.notes


def test_documents_of_own_steps_can_be_objects(tmp_path: Path) -> None:
    row = {"query_id": 1, "steps": [{"kind": "search", "documents": [{"id": "a", "score": 2}, {"docid": 7}]}], "x": 1}
    loaded = read_trajectories(write(tmp_path / "own.jsonl", row))
    assert steps(loaded, "query_id", "run_id", "documents") == [("1", "agent", ["a", "7"])]
    assert "unknown fields are ignored: x" in notes(loaded)


def test_own_steps_come_before_messages(tmp_path: Path) -> None:
    loaded = read_trajectories(write(tmp_path / "own.jsonl", OWN | {"messages": OPENAI}))
    assert steps(loaded, "query")[:2] == [("who",), ("who else",)]


def test_joined_systems_share_references(tmp_path: Path) -> None:
    parts = [read_trajectories(write(tmp_path / "own.jsonl", OWN | {"run_id": run})) for run in "ab"]
    joined = Trajectories.join(parts)
    assert (joined.run_names, len(joined), joined["references"].num_rows) == (("a", "b"), 2, 1)
    with pytest.raises(InputError):
        Trajectories.join([parts[0], parts[0]])


def test_folder_of_tables(tmp_path: Path) -> None:
    folder = tmp_path / "agent-x"
    folder.mkdir()
    (folder / "trials.csv").write_text("query_id,run_id,answer\nq1,x,Ada\nq2,x,\n")
    rows: Iterable[Row] = [{"query_id": "q1", "run_id": "x", "kind": "search", "documents": ["d"]}] * 2
    write(folder / "steps.jsonl", *rows)
    loaded = read_trajectories(folder)
    assert steps(loaded, "step", "documents") == [(1, ["d"]), (2, ["d"])]
    assert loaded["trials"]["answer"].to_pylist() == ["Ada", None]


def browsecomp(query: str = "7", **fields: Any) -> Row:
    result = [
        {"type": "reasoning", "tool_name": None, "arguments": None, "output": ["Plan."]},
        {
            "type": "tool_call", "tool_name": "local_knowledge_base_retrieval",
            "arguments": '{"user_query": "blue bird"}',
            "output": '[{"docid": "11", "score": 3.5, "snippet": "id: 99"}, {"docid": "12", "score": 3.1}]',
        },
        {"type": "tool_call", "tool_name": "get_document", "arguments": '{"docid": "12"}', "output": '{"docid": "12"}'},
        {"type": "tool_call", "tool_name": "get_document", "arguments": {"docid": "5"}, "output": '{"error": "no"}'},
        {"type": "output_text", "output": "Blue [12, 11] and 【11】, [3](http://x), [99].\n**Confidence:** 85%"},
    ]  # fmt: skip
    row = {
        "metadata": {"model": "gpt"}, "query_id": query, "tool_call_counts": {"search": 1}, "status": "completed",
        "usage": {"input_tokens": 90, "output_tokens": 10}, "retrieved_docids": ["11", "12"], "result": result,
    }  # fmt: skip
    return row | fields


def test_browsecomp(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write(folder / "1.json", browsecomp(), lines=False, indent=2)
    write(folder / "2.json", browsecomp("8", status="incomplete"), lines=False)
    loaded = read_trajectories(folder)
    row = loaded["trials"].to_pylist()[1]
    assert [row[name] for name in ("query_id", "run_id", "status", "confidence", "tokens")] == [
        "8", "gpt", "incomplete", 0.85, 100,
    ]  # fmt: skip
    assert steps(loaded.of_topics(["7"])) == [
        ("reason", None, None, None, False),
        ("search", "local_knowledge_base_retrieval", "blue bird", ["11", "12"], False),
        ("open", "get_document", None, ["12"], False),
        ("open", "get_document", None, [], True),
        ("answer", None, None, None, False),
    ]
    assert cited(loaded.of_topics(["7"])) == ["12", "11"]
    assert "citations of documents that no call returned: 2" in notes(loaded)
    assert "without a result" not in notes(loaded)
    assert loaded["trials"]["abstained"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    "output",
    [
        "[1] Title\ndocid: 11 score: 2\n[2] Title\ndocid: 12",
        '{"docid": "11", "snippet": "a"}{"docid": "12", "snippet": "b"}',
        '[{"docid": "11", "snippet": "a"}, {"docid": "12", "snip',  # cut
        "[{'docid': '11'}, {'docid': '12'}]",
        {"results": [{"id": 11}, {"id": 12}], "id": "request"},
        [{"type": "text", "text": '{"doc_id": "11"}'}, {"type": "text", "text": '{"doc_id": "12"}'}],
        {"hits": {"hits": [{"_id": "11", "_source": {}}, {"_id": "12"}]}},
        "[Document(id='11', metadata={}), Document(id='12', metadata={})]",
        [{"page_content": "x", "id": None, "metadata": {"id": "11"}}, {"metadata": {"doc_id": "12"}}],
        {"source_nodes": [{"node": {"id_": "11"}, "score": 1}, {"node": {"id_": "12"}}]},
        {"content": [{"type": "text", "text": "docid: 11\ndocid: 12"}], "isError": False},
        '"[{\\"docid\\": \\"11\\"}, {\\"docid\\": \\"12\\"}]"',
        ["11", "12", "11"],
        [{"page_content": "x", "metadata": {"url": "11"}}, {"page_content": "y", "metadata": {"source": "12"}}],
        "<document id='11'>text</document><document id='12'/>",
    ],
)
def test_ids_in_outputs(output: Any) -> None:
    assert ToolRules().documents(output) == ["11", "12"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [([], []), ("[]", []), ({"results": []}, []), (None, None), ("No results were found.", None), ({"a": 1}, None),
     ({"error": "timeout", "id": "x"}, None), (7, None), ("the valid: key", None)],
)  # fmt: skip
def test_outputs_without_documents(output: Any, expected: Any) -> None:
    assert ToolRules().documents(output) == expected


def test_key_of_ids() -> None:
    rules = ToolRules(id_from="ref")
    assert rules.documents([{"id": "x", "ref": "11"}, {"id": "y", "metadata": {"ref": 12}}, {"id": "z"}]) == [
        "11",
        "12",
    ]
    assert rules.counts.total() == 1
    assert rules.documents("id: 5, ref=11") == ["11"]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [("search", "search"), ("webSearch", "search"), ("websearch", "search"), ("retrieve_docs", "search"),
     ("sql_query", "search"), ("browser.search", "search"), ("deep_research", "other"), ("get_document", "open"),
     ("browser.open", "open"), ("fetch_url", "open"), ("thread", "other"), ("openai", "other"), ("visit", "open"),
     ("python", "other"), ("finalAnswer", "answer"), (None, "other"), ("readPage", "open")],
)  # fmt: skip
def test_kinds_of_tools(tool: str | None, kind: str) -> None:
    assert ToolRules().kind(tool) == kind
    assert ToolRules({"python": "search"}).kind("python") == "search"


def test_documents_of_unknown_calls(tmp_path: Path) -> None:
    calls = [{"type": "tool_call", "tool_name": "search", "arguments": '{"query": "a"}', "output": "hidden"}]
    answer = [{"type": "output_text", "output": "Blue [12]."}]
    row = browsecomp(result=calls + answer)
    loaded = read_trajectories(write(tmp_path / "a.jsonl", row, browsecomp("8", result=answer)))
    assert steps(loaded, "query_id", "kind", "tool", "documents") == [
        ("7", "search", "search", None),
        ("7", "search", "retrieved_docids", ["11", "12"]),
        ("7", "answer", None, None),
        ("8", "search", "retrieved_docids", ["11", "12"]),
        ("8", "answer", None, None),
    ]
    assert "trials with documents of unknown calls" in notes(loaded)


FIRST, SECOND = '[{"docid": "d1"}, {"docid": "d2"}]', '[{"docid": "d3"}]'


def call(call_id: str, query: str) -> Row:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "search", "arguments": json.dumps({"query": query})},
    }


OPENAI = [
    {"role": "system", "content": "Search."},
    {"role": "user", "content": "Who  was FIRST?"},
    {"role": "assistant", "content": "I search.", "tool_calls": [call("c1", "one"), call("c2", "two")]},
    {"role": "tool", "tool_call_id": "c2", "content": SECOND},
    {"role": "tool", "tool_call_id": "c1", "content": FIRST},
    {"role": "assistant", "content": "Ada [d1]. Confidence: 90%"},
]
RESPONSES = [
    {"role": "user", "content": [{"type": "input_text", "text": "Who  was FIRST?"}]},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c1", "id": "f1", "name": "search", "arguments": '{"query": "one"}'},
    {"type": "function_call", "call_id": "c2", "id": "f2", "name": "search", "arguments": '{"query": "two"}'},
    {"type": "function_call_output", "call_id": "c1", "output": FIRST},
    {"type": "function_call_output", "call_id": "c2", "output": SECOND},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ada [d1]. Confidence: 90%"}]},
]
ANTHROPIC = [
    {"role": "user", "content": "Who  was FIRST?"},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "tool_use", "id": "c1", "name": "search", "input": {"query": "one"}},
        {"type": "tool_use", "id": "c2", "name": "search", "input": {"query": "two"}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": FIRST}]},
        {"type": "tool_result", "tool_use_id": "c2", "content": SECOND},
    ]},
    {"role": "assistant", "content": [
        {"type": "text", "text": "Ada [d1]."}, {"type": "text", "text": "Confidence: 90%"},
    ]},
]  # fmt: skip
LANGCHAIN: list[Row] = [
    {"type": "human", "content": "Who  was FIRST?"},
    {"type": "ai", "content": [{"type": "text", "text": "I search."},
                               {"type": "tool_use", "id": "c1", "name": "search", "input": {"query": "one"}}],
     "tool_calls": [{"name": "search", "args": {"query": "one"}, "id": "c1", "type": "tool_call"},
                    {"name": "search", "args": {"query": "two"}, "id": "c2", "type": "tool_call"}],
     "additional_kwargs": {"tool_calls": [call("c1", "one")]},
     "usage_metadata": {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}},
    {"type": "tool", "name": "search", "tool_call_id": "c1", "content": "text", "status": "success",
     "artifact": [{"page_content": "x", "metadata": {"id": "d1"}}, {"page_content": "y", "metadata": {"id": "d2"}}]},
    {"type": "tool", "name": "search", "tool_call_id": "c2", "content": SECOND},
    {"type": "ai", "content": "Ada [d1]. Confidence: 90%", "usage_metadata": {"total_tokens": 50}},
]  # fmt: skip
LC_NAMES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
SERIALIZED = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", LC_NAMES[message["type"]]],
     "kwargs": {key: value for key, value in message.items() if key != "type"}}
    for message in LANGCHAIN
]  # fmt: skip
LLAMAINDEX = [
    {"role": "user", "blocks": [{"block_type": "text", "text": "Who  was FIRST?"}], "additional_kwargs": {}},
    {"role": "assistant", "blocks": [{"block_type": "text", "text": "I search."}],
     "additional_kwargs": {"tool_calls": [call("c1", "one"), call("c2", "two")]}},
    {"role": "tool", "blocks": [{"block_type": "text", "text": FIRST}],
     "additional_kwargs": {"tool_call_id": "c1", "name": "search"}},
    {"role": "tool", "content": SECOND, "additional_kwargs": {"tool_call_id": "c2", "name": "search"}},
    {"role": "assistant", "blocks": [{"block_type": "text", "text": "Ada [d1]. Confidence: 90%"}]},
]  # fmt: skip
SHAPES = {"openai": OPENAI, "responses": RESPONSES, "anthropic": ANTHROPIC, "langchain": LANGCHAIN,
          "serialized": SERIALIZED, "llamaindex": LLAMAINDEX}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["record", "list", "lists", "lines"])
def test_messages(shape: str, form: str, tmp_path: Path) -> None:
    messages = SHAPES[shape]
    path = tmp_path / "log.json"
    if form == "record":
        write(path, {"messages": messages, "model": "agent"})
    elif form == "lines":
        write(path, *messages)
    else:
        write(path, messages if form == "list" else [messages], lines=False)
    loaded = read_trajectories(path)
    assert trial(loaded, "query_id", "run_id", "trial", "status") == ("who was first?", "agent", 1, "completed")
    assert trial(loaded, "confidence", "answer")[0] == 0.9
    assert trial(loaded, "answer").startswith("Ada [d1].")
    assert cited(loaded) == ["d1"]
    assert steps(loaded) == [
        ("reason", None, None, None, False),
        ("search", "search", "one", ["d1", "d2"], False),
        ("search", "search", "two", ["d3"], False),
        ("answer", None, None, None, False),
    ]
    assert trial(loaded, "tokens") == (150 if shape in ("langchain", "serialized") else None)
    assert not loaded.notes


def logs(path: Path, *messages: Row, **options: Any) -> Trajectories:
    return read_trajectories(write(path / "log.jsonl", {"query_id": "q", "messages": messages}), **options)


def test_failed_calls_and_retries(tmp_path: Path) -> None:
    use = {"type": "tool_use", "name": "search", "input": {"query": "one"}}
    loaded = logs(
        tmp_path,
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": [use | {"id": "c1"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": FIRST, "is_error": True}]},
        {"role": "assistant", "content": [use | {"id": "c1"}]},  # the same id again
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": FIRST}]},
        {"role": "assistant", "content": "Ada"},
    )
    assert steps(loaded, "kind", "documents", "failed")[:2] == [("search", [], True), ("search", ["d1", "d2"], False)]
    failed = {"type": "tool", "tool_call_id": "c1", "content": FIRST, "status": "error"}
    loaded = logs(tmp_path, OPENAI[1], {"role": "assistant", "tool_calls": [call("c1", "one")]}, failed, OPENAI[-1])
    assert steps(loaded, "documents", "failed")[0] == ([], True)
    error = failed | {"content": '{"error": "timeout"}', "status": None}
    loaded = logs(tmp_path, OPENAI[1], {"role": "assistant", "tool_calls": [call("c1", "one")]}, error, OPENAI[-1])
    assert steps(loaded, "documents", "failed")[0] == ([], True)


def test_missing_ids_and_results(tmp_path: Path) -> None:
    calls = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("c1", "one"), call("c2", "two"), call("c3", "x")],
    }
    results = [{"role": "tool", "id": "of the message", "content": content} for content in (FIRST, SECOND)]
    loaded = logs(tmp_path, OPENAI[1], calls, *results, OPENAI[-1])
    assert steps(loaded, "query", "documents")[:3] == [("one", ["d1", "d2"]), ("two", ["d3"]), ("x", None)]
    assert "calls without a result: 1" in notes(loaded)
    assert "results without the id of their call, in the order of the calls: 2" in notes(loaded)
    lost = {"role": "tool", "tool_call_id": "c9", "name": "search", "content": FIRST}
    loaded = logs(tmp_path, OPENAI[1], lost, OPENAI[-1])
    assert steps(loaded, "kind", "query", "documents")[0] == ("search", None, ["d1", "d2"])
    assert "results without their call: 1" in notes(loaded)


def test_logs_without_an_answer(tmp_path: Path) -> None:
    loaded = logs(tmp_path, *OPENAI[:-1])
    assert trial(loaded, "status", "answer", "abstained") == ("incomplete", None, None)
    row = {"query_id": "q", "status": "completed", "messages": OPENAI[:-1]}
    loaded = read_trajectories(write(tmp_path / "log.jsonl", row))
    assert trial(loaded, "status", "answer", "abstained") == ("completed", None, None)
    final = {"id": "c9", "function": {"name": "final_answer", "arguments": '{"answer": "Ada [d3]"}'}}
    loaded = logs(tmp_path, *OPENAI[:-1], {"role": "assistant", "tool_calls": [final]}, {"type": "reasoning"})
    assert trial(loaded, "status", "answer") == ("completed", "Ada [d3]")
    assert cited(loaded) == ["d3"]


def test_later_questions(tmp_path: Path) -> None:
    more = [{"role": "user", "content": "And then?"}, {"role": "assistant", "content": "Bob [d3]"}]
    loaded = logs(tmp_path, *OPENAI, *more)
    assert trial(loaded, "question", "answer") == ("Who  was FIRST?", "Bob [d3]")
    assert steps(loaded, "kind")[-2:] == [("reason",), ("answer",)]
    assert "texts of users after the question: 1" in notes(loaded)


def test_searches_of_the_provider(tmp_path: Path) -> None:
    items = [
        {"type": "file_search_call", "id": "f", "status": "completed", "queries": ["one", "two"],
         "results": [{"file_id": "d1", "score": 1}, {"file_id": "d2"}]},
        {"type": "web_search_call", "id": "w", "status": "completed",
         "action": {"type": "search", "query": "three", "sources": [{"type": "url", "url": "http://x"}]}},
        {"type": "web_search_call", "id": "v", "status": "failed", "action": {"type": "search", "query": "four"}},
        {"type": "web_search_call", "id": "o", "action": {"type": "open_page", "url": "http://x"}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ada"}]},
    ]  # fmt: skip
    row = {"object": "response", "model": "m", "input": "Who?", "output": items, "usage": {"total_tokens": 9}}
    loaded = read_trajectories(write(tmp_path / "r.json", row, lines=False, indent=1))
    assert steps(loaded, "query", "documents", "failed")[:-1] == [
        ("one; two", ["d1", "d2"], False), ("three", ["http://x"], False), ("four", [], True),
        (None, ["http://x"], False),
    ]  # fmt: skip
    assert trial(loaded, "query_id", "run_id", "tokens") == ("who?", "m", 9)


def test_repeated_questions_and_topics(tmp_path: Path) -> None:
    rows = [{"messages": OPENAI}, {"messages": OPENAI, "trial": 5}, {"messages": OPENAI, "run_id": "b"}]
    path = write(tmp_path / "log.jsonl", *rows, {"messages": OPENAI})
    loaded = read_trajectories(path, topics={"t1": "who was first?"})
    keys = loaded["trials"].select(["query_id", "run_id", "trial"]).to_pylist()
    assert [tuple(key.values()) for key in keys] == [
        ("t1", "agent", 1),
        ("t1", "agent", 5),
        ("t1", "b", 1),
        ("t1", "agent", 3),
    ]
    assert "1 question repeated" in notes(loaded)
    other = read_trajectories(path, topics={"t1": "something else"})
    assert other.query_ids == ("who was first?",)
    assert "matches no topic" in notes(other)
    row = {"messages": OPENAI, "metadata": {"topic": 7}}
    assert read_trajectories(write(path, row), topic_from="metadata.topic").query_ids == ("7",)


def test_kinds_of_tools_in_logs(tmp_path: Path) -> None:
    find = {"id": "c1", "function": {"name": "find_papers", "arguments": "one"}}
    messages = [OPENAI[1], {"role": "assistant", "tool_calls": [find]}, OPENAI[4], OPENAI[-1]]
    path = write(tmp_path / "log.jsonl", {"messages": messages}, OWN)
    assert steps(read_trajectories(path), "kind", "documents", run="agent")[0] == ("other", None)
    loaded = read_trajectories(path, tools={"find_papers": "search"})
    assert steps(loaded, "kind", "query", "documents", run="agent")[0] == ("search", "one", ["d1", "d2"])
    with pytest.raises(InputError, match="unknown kind"):
        read_trajectories(path, tools={"find_papers": "find"})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (OWN | {"query_id": "q9", "steps": [{"kind": "search", "documents": 5, "failed": "maybe"}]}, 2),
        (OWN | {"query_id": "q9", "steps": ["search"]}, 2),
        (OWN | {"query_id": "q9", "citations": [["d1"]]}, 2),
        ({"steps": [], "answer": "x"}, 2),
        ({"messages": [{"role": "assistant", "content": "Ada"}]}, 2),
        ({"query_id": "q", "messages": [{"role": "assistant", "tool_calls": ["search"]}]}, 2),
        (OWN | {"query_id": "q9", "steps": [{"kind": "find"}]}, None),
        (OWN | {"query_id": "q9", "confidence": 80}, None),
        (OWN | {"trial": 1}, None),
    ],
)
@pytest.mark.parametrize("files", [1, 2])
def test_invalid_trials_are_refused(row: Row, line: int | None, files: int, tmp_path: Path) -> None:
    paths = [write(tmp_path / "bad.jsonl", OWN, row)]
    if files == 2:
        paths.insert(0, write(tmp_path / "good.jsonl", OWN | {"query_id": "q2"}))
    with pytest.raises(InputError) as caught:
        read_trajectories(paths)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "bad.jsonl"), line)


def test_unreadable_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"cut": [\n"text"\n{{"event": "start"}}\n{json.dumps(OWN)}\n')
    loaded = read_trajectories(path)
    assert loaded["trials"].num_rows == 1
    assert "2 records skipped, the first at" in notes(loaded)
    assert "log.jsonl:3" in notes(loaded)
    path.write_text('{"event": "start"}\n')
    with pytest.raises(InputError, match="no trial could be read"):
        read_trajectories(path)
    path.write_text("")
    with pytest.raises(InputError):
        read_trajectories(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files of trials"):
        read_trajectories(tmp_path / "empty")


def span(
    name: str, start: float, end: float, kind: str, inside: str = "root", trace: str = "t1", **attributes: Any
) -> Row:
    fields = {key.replace("__", "."): value for key, value in attributes.items()}
    return {
        "name": name, "context": {"trace_id": trace, "span_id": f"{trace}-{name}"},
        "parent_id": f"{trace}-{inside}" if inside else None,
        "start_time": f"2026-02-03T15:19:{start:09.6f}Z", "end_time": f"2026-02-03T15:19:{end:09.6f}Z",
        "attributes": {"openinference.span.kind": kind} | fields,
    }  # fmt: skip


def retrieved(*ids: str) -> Row:
    return {f"retrieval.documents.{i}.document.id": doc_id for i, doc_id in enumerate(ids)}


def agent_trace(trace: str = "t1") -> list[Row]:
    """Children are written before their parents; times are out of order."""
    return [
        span("llm2", 8, 9, "LLM", trace=trace, llm__token_count__prompt=50, llm__token_count__completion=5),
        span("vectors", 2.2, 3, "RETRIEVER", "search", trace, input__value="inner", **retrieved("d1", "d2")),
        span("search", 2, 3.5, "TOOL", trace=trace, tool__name="kb", input__value='{"query": "one"}',
             output__value="text of docid: d9"),
        span("llm1", 1, 2, "LLM", trace=trace, llm__token_count__total=45),
        span("sub", 4, 7, "TOOL", trace=trace, tool__name="search_helper", input__value='{"task": "x"}'),
        span("helper", 4.1, 6.9, "AGENT", "sub", trace, input__value="sub question"),
        span("web", 5, 6, "TOOL", "helper", trace, input__value='{"query": "two"}', output__value='[{"id": "d3"}]'),
        span("plain", 6.1, 6.5, "RETRIEVER", "helper", trace, input__value="three", **retrieved("d4", "d5")),
        span("order", 6.5, 6.6, "RERANKER", "helper", trace, reranker__query="three",
             **{"reranker.output_documents.0.document.id": "d5"}),
        span("root", 0, 9.5, "AGENT", "", trace,
             agent__name="scout", input__value="Who was first?", output__value="Ada [d5]"),
    ]  # fmt: skip


def test_spans(tmp_path: Path) -> None:
    loaded = read_trajectories(write(tmp_path / "spans.jsonl", *agent_trace()), tools={"web": "search"})
    assert steps(loaded) == [
        ("reason", None, None, None, False),
        ("search", "kb", "one", ["d1", "d2"], False),
        ("other", "search_helper", None, None, False),
        ("search", "web", "two", ["d3"], False),
        ("search", "plain", "three", ["d5"], False),
        ("answer", None, None, None, False),
    ]
    assert trial(loaded, "query_id", "run_id", "answer", "tokens") == ("who was first?", "scout", "Ada [d5]", 100)
    assert trial(loaded, "latency_ms", "status") == (9500, "completed")
    assert cited(loaded) == ["d5"]
    efforts = steps(loaded, "tokens", "latency_ms")
    assert (efforts[0], efforts[1], efforts[-1]) == ((45, 1000), (None, 1500), (55, 1000))


def test_several_retrievers_in_a_tool(tmp_path: Path) -> None:
    def documents(output: str | None, **reranked: Any) -> Any:
        rows = [
            span("root", 0, 9, "CHAIN", "", input__value="Who?", output__value="Ada"),
            span("kb", 1, 5, "TOOL", **({} if output is None else {"output__value": output})),
            span("words", 1.1, 2, "RETRIEVER", "kb", **retrieved("d1", "d2")),
            span("vectors", 1.2, 2.5, "RETRIEVER", "kb", **retrieved("d3", "d1")),
        ]
        rows += [span("order", 3, 4, "RERANKER", "kb", **reranked)] if reranked else []
        ((kind, found),) = steps(read_trajectories(write(tmp_path / "s.jsonl", *rows)), "kind", "documents")[:-1]
        return found if kind == "search" else kind

    assert documents(None) == ["d1", "d2", "d3"]
    assert documents('[{"id": "d3"}]') == ["d3"]
    assert documents("docid: d3", **{"reranker.output_documents.0.document.id": "d2"}) == ["d2"]


def test_the_last_stated_confidence_counts() -> None:
    texts = ["Confidence: 20%. Confidence: 70%", "confidence (0 to 1): 0.7", "Confidence: 150%", "85% confidence"]
    facts = [answer_facts(text, [], Counter()) for text in texts]
    assert [row.get("confidence") for row in facts] == [0.7, None, None, None]


def test_spans_of_several_traces_and_failures(tmp_path: Path) -> None:
    rows = agent_trace("t1") + agent_trace("t2")
    rows[-1] |= {"status_code": "ERROR", "start_time": "2026-02-03T15:19:00.1Z"}
    rows[-1]["attributes"].pop("output.value")
    rows[2] |= {"status": {"code": 2}}
    loaded = read_trajectories(write(tmp_path / "spans.jsonl", *reversed(rows)))
    assert loaded["trials"].select(["trial", "status", "answer"]).to_pylist()[1] == {
        "trial": 2, "status": "failed", "answer": None,
    }  # fmt: skip
    assert [row for row in steps(loaded) if row[1] == "kb"] == [
        ("search", "kb", "one", [], True), ("search", "kb", "one", ["d1", "d2"], False),
    ]  # fmt: skip
    orphans = [row for row in agent_trace() if row["name"] != "root"]
    with pytest.raises(InputError, match="a trace without a question"):
        read_trajectories(write(tmp_path / "orphans.jsonl", *[row for row in orphans if row["name"] != "vectors"]))


def test_spans_of_generative_ai(tmp_path: Path) -> None:
    def operation(name: str, **attributes: Any) -> Row:
        return {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()} | {
            "gen_ai.operation.name": name
        }

    def otlp(name: str, start: int, attributes: Row, parent: str = "root") -> Row:
        pairs = [{"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
                 for key, value in attributes.items()]  # fmt: skip
        return {
            "traceId": "t", "spanId": name, "parentSpanId": parent, "name": name, "attributes": pairs,
            "startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str((start + 1) * 10**9),
        }  # fmt: skip

    start = 1_770_000_000
    question = [{"role": "user", "parts": [{"type": "text", "content": "Who?"}]}]
    asked = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "s", "arguments": {}}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Ada [d2]"}]}]
    usage = {"usage__input_tokens": 10, "usage__output_tokens": 2}
    spans = [
        otlp("root", start, operation("invoke_agent", agent__name="scout"), ""),
        otlp("chat 1", start + 1, operation("chat", input__messages=json.dumps(question),
             output__messages=json.dumps(asked), **usage)),
        otlp("execute_tool s", start + 2, operation("execute_tool", tool__name="search",
             tool__call__arguments='{"query": "one"}', tool__call__result='{"results": [{"id": "d1"}, {"id": "d2"}]}')),
        otlp("chat 2", start + 4, operation("chat", output__messages=json.dumps(answer), **usage)),
    ]  # fmt: skip
    batch = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    loaded = read_trajectories(write(tmp_path / "otlp.json", batch, lines=False))
    assert steps(loaded, "kind", "tool", "query", "documents") == [
        ("reason", None, None, None),
        ("search", "search", "one", ["d1", "d2"]),
        ("answer", None, None, None),
    ]
    assert trial(loaded, "query_id", "run_id", "answer", "tokens") == ("who?", "scout", "Ada [d2]", 24)
    without = read_trajectories(
        write(tmp_path / "otlp.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans[:3]}]}]})
    )
    assert trial(without, "answer", "status") == (None, "incomplete")


def test_recorder_round_trip(tmp_path: Path) -> None:
    recorder = TrajectoryRecorder(tmp_path / "runs.jsonl", run_id="mine")
    for _ in range(2):
        with recorder.trial("q1", "Who?") as recorded:
            recorded.search("who", {"d1": 0.5, "d2": 0.4}, tokens=7)
            recorded.search("who else", [("d3", 0.1)], failed=True)
            recorded.open("d2")
            recorded.step("other", tool="python")
            recorded.answer("Ada", citations=["d2"], confidence=0.8)
    with pytest.raises(ZeroDivisionError), recorder.trial("q2") as recorded:
        recorded.search("x", [1 / 0])
    with pytest.raises(KeyError), recorder.trial("q2") as recorded:
        recorded.search(OWN["no query"], None)
    with pytest.raises(InputError), recorder.trial("q3") as recorded:
        recorded.step("find")  # pyright: ignore[reportArgumentType]
    loaded = read_trajectories(recorder.path)
    assert steps(loaded.of_topics(["q1"]))[:5] == [
        ("search", "search", "who", ["d1", "d2"], False),
        ("search", "search", "who else", ["d3"], True),
        ("open", "open", None, ["d2"], False),
        ("other", "python", None, None, False),
        ("answer", None, None, None, False),
    ]
    rows = loaded["trials"].to_pylist()
    assert [(row["trial"], row["status"], row["confidence"]) for row in rows] == [
        (1, "completed", 0.8), (2, "completed", 0.8), (1, "failed", None), (2, "failed", None), (1, "failed", None),
    ]  # fmt: skip
    assert all(row["run_id"] == "mine" and row["latency_ms"] >= 0 for row in rows)
    assert steps(loaded.of_topics(["q2"])) == steps(loaded.of_topics(["q3"])) == []
    with pytest.raises(JudgedError), TrajectoryRecorder(tmp_path / "missing" / "runs.jsonl").trial("q"):
        pass


def test_check_counts(tmp_path: Path) -> None:
    rows = [
        OWN | {"citations": ["d1", "d2"]},
        OWN | {"status": "failed", "answer": None, "confidence": None, "citations": []},
    ]
    searches = [{}, {"documents": ["x"]}, {"failed": True}]
    rows.append(OWN | {"run_id": "b", "steps": [{"kind": "search", **search} for search in searches]})
    check = check_trajectories(read_trajectories(write(tmp_path / "own.jsonl", *rows)))
    systems, kinds = (table.records() for table in check.blocks())  # pyright: ignore[reportAttributeAccessIssue]
    assert systems[0] == {
        "system": "a", "n": 1, "trials": 2, "completed": 1, "answers": 1, "citing": 1, "confident": 1, "searches": 2,
    }  # fmt: skip
    assert kinds[0] == {
        "system": "a", "kind": "search", "tool": "find", "steps": 4, "failed": 2, "unrecorded": 0, "documents": 1,
    }  # fmt: skip
    assert kinds[-1] == {
        "system": "b", "kind": "search", "tool": "", "steps": 3, "failed": 1, "unrecorded": 1, "documents": 1,
    }  # fmt: skip
    assert check.facts() == {"n": 1, "trials": 3}


def test_names_of_systems(tmp_path: Path) -> None:
    loaded = read_trajectories(write(tmp_path / "own.jsonl", OWN, OWN | {"run_id": "b"}))
    assert loaded.with_run_name("b").run_names == ("b",)
    with pytest.raises(InputError):
        loaded.with_run_name("c")
    renamed = loaded.of_run("a").with_run_name("c")
    assert {
        renamed[name]["run_id"].unique().to_pylist()[0] for name in ("trials", "steps", "citations", "correctness")
    } == {"c"}
