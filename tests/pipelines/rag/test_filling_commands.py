"""Commands that fill tables with a model: files that are written, and consent before requests are sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from judged.pipelines.rag.readers import read_responses
from judged.pipelines.rag.responses import write_responses
from labels.asking.fake_endpoint import serving
from pipelines.rag.test_filling import QUERIES, even_supported, sample_responses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended


def test_the_table_is_added_to_the_folder(tmp_path: Path, run: Callable[..., Ended]) -> None:
    answers, queries = tmp_path / "answers", tmp_path / "queries.jsonl"
    write_responses(sample_responses(), answers)
    queries.write_text("".join(json.dumps({"query_id": key, "text": text}) + "\n" for key, text in QUERIES.items()))
    before = {file.name: file.read_bytes() for file in answers.iterdir()}
    with serving(even_supported) as fake:
        endpoint = tmp_path / "endpoint.toml"
        endpoint.write_text(f'base_url = "{fake.url}"\nmodel = "fake"\n')
        command = ("rag", "assign", str(answers), "--queries", str(queries), "--endpoint", str(endpoint))
        without_consent = run(*command)
        assert (without_consent.code, fake.calls) == (2, 0)
        assert "no request was sent" in without_consent.err
        completed = run(*command, "--yes", "--budget-calls", "3", "--format", "json")
        assert (completed.code, fake.calls) == (1, 3)  # requests are left
        completed = run(*command, "--yes", "--family", "a=Fake-7B")
        assert (completed.code, fake.calls) == (0, 24)  # 16, and two topics repeated
        assert "may favor these systems" in completed.err
        assert run(*command, "--yes").code == 0
        assert fake.calls == 24
        other_folder = run(*command, "--yes", "--into", str(tmp_path / "new"), "--store", str(answers / "asked.db"))
        assert (other_folder.code, fake.calls) == (0, 24)
    assert {name: (answers / name).read_bytes() for name in before} == before
    assert read_responses(answers)["assignments"].num_rows == 96 + 48
    assert read_responses(tmp_path / "new")["assignments"].num_rows == 96 + 48
    assert len(read_responses(tmp_path / "new")) == 8
