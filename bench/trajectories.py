"""Time reading of trajectories in each layout, and their evaluation: ``trajectories.py [TRIALS]``.

A trial has 20 searches with 10 documents each. Each reading is a separate process; CPU seconds and peak memory include
imports. The ratio compares with parsing the JSON of the file only.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judged.pipelines.trajectories import Trajectories, evaluate, read_trajectories

SEARCHES, DOCUMENTS = 20, 10


def main() -> None:
    if sys.argv[1:2] in (["read"], ["evaluate"]):
        trajectories = read_trajectories(sys.argv[2])
        if sys.argv[1] == "evaluate":
            lists = trajectories["steps"]["documents"]
            relevant = {row["query_id"]: {lists[i][3].as_py(): 1} for i, row in _first_steps(trajectories)}
            evaluate(trajectories, qrels=relevant)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = usage.ru_utime + usage.ru_stime
        print(f"{trajectories['steps'].num_rows} {seconds:.2f} {usage.ru_maxrss / 1024:.0f}")
        return
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder_name:
        for layout, write in {"own lines": _own, "browsecomp": _browsecomp, "messages": _messages}.items():
            path = Path(folder_name) / "trials.jsonl"
            source = random.Random(0)  # noqa: S311
            with path.open("w") as file:
                file.writelines(f"{json.dumps(write(i, source))}\n" for i in range(trials))
            start = time.process_time()
            with path.open() as file:
                for line in file:
                    json.loads(line)
            parsing = time.process_time() - start
            for task in ("read", "evaluate") if write is _own else ("read",):
                command = [sys.executable, __file__, task, str(path)]
                result = subprocess.run(command, capture_output=True, text=True, check=True)
                steps, seconds, megabytes = map(float, result.stdout.split())
                print(
                    f"{task}, {layout} ({path.stat().st_size / 1e6:.0f} MB): {steps:,.0f} steps, {seconds:.1f} s of"
                    f" CPU, {megabytes:.0f} MB, {seconds / parsing:.1f} times the parsing of JSON"
                )


def _first_steps(trajectories: Trajectories) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the first step of each trial with its row."""
    columns = trajectories["steps"].select(["query_id", "step"]).to_pylist()
    yield from ((i, row) for i, row in enumerate(columns) if row["step"] == 1)


def _documents(source: random.Random) -> list[str]:
    return [f"document-{source.randrange(100_000)}" for _ in range(DOCUMENTS)]


def _own(i: int, source: random.Random) -> dict[str, Any]:
    steps = [
        {"kind": "search", "tool": "search", "query": f"search {j} of {i}", "documents": _documents(source)}
        for j in range(SEARCHES)
    ]
    return {"query_id": f"q{i}", "run_id": "agent", "answer": "seven", "correct": i % 3 > 0, "steps": steps}


def _browsecomp(i: int, source: random.Random) -> dict[str, Any]:
    result: list[dict[str, Any]] = [
        {"type": "tool_call", "tool_name": "search", "arguments": json.dumps({"query": f"search {j} of {i}"}),
         "output": json.dumps([{"docid": doc_id, "score": 1.5, "snippet": "words"} for doc_id in _documents(source)])}
        for j in range(SEARCHES)
    ]  # fmt: skip
    result.append({"type": "output_text", "output": "seven"})
    return {"query_id": f"q{i}", "status": "completed", "retrieved_docids": [], "result": result}


def _messages(i: int, source: random.Random) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"question {i}"}]
    for j in range(SEARCHES):
        function = {"name": "search", "arguments": json.dumps({"query": f"search {j} of {i}"})}
        output = json.dumps([{"id": doc_id, "text": "words"} for doc_id in _documents(source)])
        messages += [
            {"role": "assistant", "tool_calls": [{"id": f"c{j}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{j}", "content": output},
        ]
    return {"messages": [*messages, {"role": "assistant", "content": "seven"}]}


if __name__ == "__main__":
    main()
