"""The command that asks: a go before anything is sent, and neither key nor text in anything that it says."""

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


def test_neither_key_nor_texts_are_said_anywhere(
    tmp_path: Path, run: Callable[..., Ended], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in logs at their lowest level, in output or in errors, although the endpoint repeats both in its own."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("JUDGED_TEST_KEY", KEY)
    where = str(tmp_path / "labels.db")
    made_store(where, n=12).close()
    said: list[str] = []
    with serving(confused, fault=lambda at: (400, 500, "drop", "")[at % 4]) as fake:
        file = _file(fake, tmp_path, retries=1, workers=2)
        for form in ("table", "json", "csv", "html"):
            done = run("labels", "ask", where, "--endpoint", file, "--yes", "--format", form)
            said += [done.out, done.err]
        with serving(confused, fault=lambda _: 401) as closed:
            file = _file(closed, tmp_path)
            done = run("labels", "ask", where, "--endpoint", file, "--yes", "--judge", "other")
        said += [done.out, done.err, caplog.text, repr(Endpoint.read(file))]
        assert set(fake.keys) == {f"Bearer {KEY}"}
    store = LabelStore.open(where)
    said.append(str(store.labels().table.to_pylist()))
    said.append(Path(file).read_text())
    assert not [text for text in said if KEY in text or PLANTED in text or "zanzibar" in text.lower()]
    assert KEY.encode() not in Path(where).read_bytes()
    store.close()


def test_the_command_says_what_it_would_send_and_needs_a_go(
    tmp_path: Path, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGED_TEST_KEY", KEY)
    where = str(tmp_path / "labels.db")
    made_store(where, n=5).close()
    with serving(confused) as fake:
        file = _file(fake, tmp_path)
        first = run("labels", "ask", where, "--endpoint", file)
        assert (first.code, fake.calls) == (2, 0)
        assert all(part in first.err for part in (fake.url.split("/")[2], "5 requests", PLANTED, "--yes"))
        part = run("labels", "ask", where, "--endpoint", file, "--yes", "--budget-calls", "2")
        assert (part.code, fake.calls) == (1, 2)
        rest = run("labels", "ask", where, "--endpoint", file, "--yes")
        assert (rest.code, fake.calls) == (0, 5)
        assert run("labels", "ask", where, "--endpoint", file).code == 0  # nothing is sent: nobody needs to say yes
