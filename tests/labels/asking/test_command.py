"""The ask command: confirmation before sending, and no API key or document text in its output."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.labels import LabelStore
from judged.labels.asking import Endpoint
from labels.asking.fake_endpoint import KEY, PLANTED, Fake, confused, made_store, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from command_line import Ended


def _file(fake: Fake, folder: Path, **more: Any) -> str:
    path = folder / "endpoint.toml"
    lines = [f'base_url = "{fake.url}"', 'model = "fake"', 'key_variable = "JUDGED_TEST_KEY"', "backoff = 0.001"]
    path.write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in more.items())]))
    return str(path)


def test_no_output_contains_the_key_or_texts(
    tmp_path: Path, run: Callable[..., Ended], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in debug logs, output, or errors, although the endpoint repeats both in its errors."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("JUDGED_TEST_KEY", KEY)
    path = str(tmp_path / "labels.db")
    made_store(path, n=12).close()
    outputs: list[str] = []
    with serving(confused, fault=lambda i: (400, 500, "drop", "")[i % 4]) as fake:
        file = _file(fake, tmp_path, retries=1, workers=2)
        for output_format in ("table", "json", "csv", "html"):
            ended = run("labels", "ask", path, "--endpoint", file, "--yes", "--format", output_format)
            outputs += [ended.out, ended.err]
        with serving(confused, fault=lambda _: 401) as closed:
            file = _file(closed, tmp_path)
            ended = run("labels", "ask", path, "--endpoint", file, "--yes", "--judge", "other")
        outputs += [ended.out, ended.err, caplog.text, repr(Endpoint.read(file))]
        assert set(fake.keys) == {f"Bearer {KEY}"}
    store = LabelStore.open(path)
    outputs.append(str(store.labels().table.to_pylist()))
    outputs.append(Path(file).read_text())
    assert not [text for text in outputs if KEY in text or PLANTED in text or "zanzibar" in text.lower()]
    assert KEY.encode() not in Path(path).read_bytes()
    store.close()


def test_the_command_shows_the_requests_and_needs_confirmation(
    tmp_path: Path, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGED_TEST_KEY", KEY)
    path = str(tmp_path / "labels.db")
    made_store(path, n=5).close()
    with serving(confused) as fake:
        file = _file(fake, tmp_path)
        first = run("labels", "ask", path, "--endpoint", file)
        assert (first.code, fake.calls) == (2, 0)
        assert all(text in first.err for text in (fake.url.split("/")[2], "5 requests", PLANTED, "--yes"))
        partial = run("labels", "ask", path, "--endpoint", file, "--yes", "--budget-calls", "2")
        assert (partial.code, fake.calls) == (1, 2)
        remaining = run("labels", "ask", path, "--endpoint", file, "--yes")
        assert (remaining.code, fake.calls) == (0, 5)
        assert run("labels", "ask", path, "--endpoint", file).code == 0  # nothing to send: no confirmation
