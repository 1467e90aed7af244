"""The commands in which a model fills a table: what is written where, and that nothing is sent without a go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from judged.pipelines.rag.readers import read_responses
from judged.pipelines.rag.responses import write_responses
from labels.asking.fake_endpoint import serving
from pipelines.rag.test_filling import QUERIES, listed, made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended


def test_the_table_is_written_beside_the_others(tmp_path: Path, run: Callable[..., Ended]) -> None:
    answers, queries = tmp_path / "answers", tmp_path / "queries.jsonl"
    write_responses(made(), answers)
    queries.write_text("".join(json.dumps({"query_id": key, "text": text}) + "\n" for key, text in QUERIES.items()))
    before = {file.name: file.read_bytes() for file in answers.iterdir()}
    with serving(listed) as fake:
        endpoint = tmp_path / "endpoint.toml"
        endpoint.write_text(f'base_url = "{fake.url}"\nmodel = "fake"\n')
        command = ("rag", "assign", str(answers), "--queries", str(queries), "--endpoint", str(endpoint))
        asked = run(*command)
        assert (asked.code, fake.calls) == (2, 0)  # nobody said yes
        assert "nothing was sent" in asked.err
        done = run(*command, "--yes", "--budget-calls", "3", "--format", "json")
        assert (done.code, fake.calls) == (1, 3)  # something is left
        done = run(*command, "--yes", "--family", "a=Fake-7B")
        assert (done.code, fake.calls) == (0, 24)  # 16, and two topics again
        assert "it may favor them" in done.err
        assert run(*command, "--yes").code == 0
        assert fake.calls == 24
        elsewhere = run(*command, "--yes", "--into", str(tmp_path / "new"), "--store", str(answers / "asked.db"))
        assert (elsewhere.code, fake.calls) == (0, 24)
    assert {name: (answers / name).read_bytes() for name in before} == before
    assert read_responses(answers)["assignments"].num_rows == 96 + 48
    assert read_responses(tmp_path / "new")["assignments"].num_rows == 96 + 48
    assert len(read_responses(tmp_path / "new")) == 8
