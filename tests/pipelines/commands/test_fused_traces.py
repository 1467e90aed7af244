"""`judged fuse --traces` writes the fused runs as stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from judged.pipelines.traces import read_traces

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from command_line import Ended


def test_traces_have_the_lists_as_parents(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, docs in (("a", "xy"), ("b", "yz")):
        rows = [f"q1 Q0 {doc} {rank} {3 - rank} {name}" for rank, doc in enumerate(docs, 1)]
        Path(f"{name}.run").write_text("\n".join(rows))
    options = ("--weight", "a=2", "--weight", "b=1", "--cutoff", "2", "--rrf-k", "5")
    assert run("fuse", "a.run", "b.run", "--traces", "t.jsonl", *options).code == 0
    traces = read_traces(["t.jsonl"])
    assert [(stage.name, stage.parents) for stage in traces.stages] == [("a", ()), ("b", ()), ("fused", ("a", "b"))]
    settings = {span.stage: span.settings for span in traces.spans}
    fused = settings["fused"]
    assert (settings["a"], fused["algorithm"], fused["rrf_k"], fused["cutoff"]) == ({}, "rrf", 5.0, 2)
    assert fused["weights"] == {"a": 2.0, "b": 1.0}
    assert "depth" not in fused
