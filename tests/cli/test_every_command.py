"""Every command in every form: it does its job, and says in one line when its output takes nothing."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from every_command import ARGUMENTS, commands, forms, write_files
from judged.cli.exits import stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import click

    from command_line import Ended

KNOWN = dict(commands())
SHARED_FORMS = ("markdown", "latex", "csv", "json", "html", "svg", "pdf", "parquet")  # written by one function for all
FORM_BY_FORM = {"evaluate", "report", "rag evaluate"}  # commands whose own code depends on the form


def tried(position: int, name: str, command: click.Command) -> tuple[str, ...]:
    """Return the forms in which a command is tried.

    tests/results writes every kind of answer in every form. Here it is enough that the option reaches the writer: the
    first form, a picture, the forms of this command alone, and one of the other forms in turn.
    """
    form_names = forms(command)
    if name in FORM_BY_FORM or not form_names:
        return form_names or ("",)
    if name.startswith(("online", "clicks")):
        return tuple(form for form in form_names if form not in {*SHARED_FORMS, "png"})
    shared = SHARED_FORMS[position % len(SHARED_FORMS)]
    return tuple(form for form in form_names if form not in SHARED_FORMS or form == shared)


FORMS = [(name, form) for i, (name, command) in enumerate(KNOWN.items()) for form in tried(i, name, command)]
WITH_FILE = [(name, form) for name, form in FORMS if any(option.name == "out" for option in KNOWN[name].params)]
ENDING = {"markdown": "md", "table": "txt", "text": "txt", "plot": "txt", "latex": "tex"}
NOT_PRINTED = {("tradeoff", "html"), *((name, form) for name in KNOWN for form in ("png", "svg", "pdf", "parquet"))}
PRINTED = {
    name: [form for command_name, form in FORMS if command_name == name and (name, form) not in NOT_PRINTED]
    for name in KNOWN
}
# Each command in one form, in turn, and each form with a command: the same few lines write all.
IN_TURN = sorted(
    {(name, printed[i % len(printed)]) for i, (name, printed) in enumerate(PRINTED.items()) if printed}
    | {(name, form) for form, name in {form: name for name, printed in PRINTED.items() for form in printed}.items()}
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def this_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no connection leave this machine."""
    connect = socket.socket.connect

    def local(self: socket.socket, address: Any) -> None:
        assert isinstance(address, str) or address[0] in {"127.0.0.1", "localhost", "::1"}, f"a connection to {address}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local)


def arguments(name: str, form: str) -> tuple[str, ...]:
    return (*name.split(), *ARGUMENTS[name], *(("--format", form) if form else ()))


def test_no_command_is_forgotten() -> None:
    assert ARGUMENTS.keys() == KNOWN.keys()
    assert {form for _, form in IN_TURN} == {form for printed in PRINTED.values() for form in printed}
    assert {form for _, form in FORMS if form} == {form for command in KNOWN.values() for form in forms(command)}


@pytest.mark.usefixtures("files", "this_machine_only")
@pytest.mark.parametrize(("name", "form"), [(name, form) for name, form in FORMS if name not in {"serve", "study run"}])
def test_a_command_does_its_job(name: str, form: str, run: Callable[..., Ended]) -> None:
    to_file = ("-o", f"out.{ENDING.get(form, form)}") if (name, form) in WITH_FILE and name != "gate init" else ()
    done = run(*arguments(name, form), *to_file)
    if form in {"png", "svg", "pdf"} and "this result has no chart" in done.err:
        assert done.code == 2
        return
    assert done.code == 0, done.err
    assert done.out or to_file


def refused(done: Ended) -> bool:
    """Whether it ended with one sentence and the code of what cannot be written."""
    *_, last = done.err.splitlines()
    assert "Traceback" not in done.err
    return done.code == 74 and last.startswith("error: ") and " Fix: " in last


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("name", "form"), IN_TURN)
def test_a_full_output_is_one_line_and_74(
    name: str, form: str, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stream(os.open("/dev/full", os.O_WRONLY), "utf-8", "strict"))
    assert refused(run(*arguments(name, form)))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", [name for i, name in enumerate(KNOWN) if not (i % 4 and forms(KNOWN[name]))])
def test_a_closed_output_is_one_line_and_74(
    name: str, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stream(os.open(os.devnull, os.O_RDONLY), "utf-8", "strict"))
    assert refused(run(*arguments(name, "")))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", sorted({name for name, _ in WITH_FILE}))
def test_a_full_device_is_one_line_and_74(name: str, run: Callable[..., Ended]) -> None:
    form = forms(KNOWN[name])[:1]
    forced = ("--force",) if name == "gate init" else ()
    assert refused(run(*arguments(name, *(form or ("",))), "-o", "/dev/full", *forced))
