"""Several processes that write into one place at once."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from faults.commands import Command, command_line, environment
from faults.processes import folders
from faults.state import snapshot

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = 5
_VOLATILE = ("time", "token", "secret", "label", "task")


def _commands(name: str, *each: tuple[str, ...], **how: Any) -> list[Command]:
    return [Command(name, words, volatile=_VOLATILE, **how) for words in each]


GROUPS: dict[str, tuple[list[Command], dict[str, str]]] = {
    "labels import": (
        _commands("import", *(
            ("labels", "import", "{out}/labels.db", "one.csv", "--judge", f"judge{n}") for n in range(WRITERS)
        )),
        {"labels.db": "labels.db"},
    ),
    "labels new": (
        _commands("new", *(
            ("labels", "new", "{out}/labels.db", "--topics", "queries.jsonl", "--documents", f"docs{n}.jsonl")
            for n in range(WRITERS)
        )),
        {},
    ),
    "labels tasks": (
        _commands("tasks", *(
            ("labels", "tasks", "{out}/labels.db", "many.csv", "--judges", f"judge{n}") for n in range(WRITERS)
        )),
        {"labels.db": "labels.db"},
    ),
    "logs convert": (
        _commands("convert", *(
            ("logs", "convert", f"log{n}.jsonl", "--to", "{out}/log", "--threads", "1") for n in range(WRITERS)
        )),
        {},
    ),
    "logs convert (old)": (
        _commands("convert", *(
            ("logs", "convert", f"log{n}.jsonl", "--to", "{out}/log", "--threads", "1") for n in range(WRITERS)
        )),
        {"log": "converted"},
    ),
    "demo": (_commands("demo", *[("demo", "--to", "{out}/sample")] * WRITERS), {}),
    "experiment run": (
        _commands(
            "run", *[("experiment", "run", "plan.toml", "--to", "{out}/results", "--resamples", "1000")] * WRITERS,
            timed=True,
        ),
        {},
    ),
    "study links": (
        _commands("links", *(
            ("study", "links", "study.toml", "--store", "{out}/study.db", "--participants", str(2 + n))
            for n in range(WRITERS)
        )),
        {},
    ),
}  # fmt: skip


def write_inputs(inputs: Path) -> None:
    """Write the files of the writers, each another one."""
    rows = [f"q{1 + n % 12},d{n},{n % 4}" for n in range(4000)]
    (inputs / "one.csv").write_text("\n".join(["query_id,doc_id,relevance", *rows]) + "\n")
    lines = (inputs / "log.jsonl").read_text().splitlines()
    document = '{{"doc_id": "w{0}-{1}", "text": "words {1}"}}\n'
    for n in range(WRITERS):
        (inputs / f"docs{n}.jsonl").write_text("".join(document.format(n, index) for index in range(300)))
        (inputs / f"log{n}.jsonl").write_text("\n".join(lines[: 30 + 6 * n]) + "\n")


def write_at_once(name: str, inputs: Path, place: Path) -> tuple[dict[str, int], list[str]]:
    """Run all commands of a group concurrently, and return the counts of exit codes and the errors."""
    group, old = GROUPS[name]
    with folders(place) as (out, temporary):
        out.mkdir()
        for target, source in old.items():
            (shutil.copytree if (inputs / source).is_dir() else shutil.copy)(inputs / source, out / target)
        started = [
            subprocess.Popen(
                command_line(command, out), cwd=inputs, env=environment(temporary), text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for command in group
        ]  # fmt: skip
        ended = [(*process.communicate(timeout=300), process.returncode) for process in started]
        codes = [code for _, _, code in ended]
        wrong = [f"one ends with {code}: {err[-300:]}" for _, err, code in ended if code not in (0, 2, 74)]
        wrong += [f"it refuses with {err[-200:]!r}" for _, err, code in ended if code in (2, 74) and "Fix:" not in err]
        wrong += [] if 0 in codes else ["none of them succeeds"]
        wrong += [f"left behind: {path.name}" for path in out.rglob("*") if path.name.endswith(".part")]
        succeeded = [command for command, code in zip(group, codes, strict=True) if code == 0]
        wrong += _wrong_content(name, snapshot(group[0], out), succeeded, inputs, place)
        if name == "study links":
            wrong += _wrong_links(out, [output for output, _, code in ended if code == 0])
    return {str(code): codes.count(code) for code in sorted(set(codes))}, [f"{name}: {text}" for text in wrong]


def _wrong_content(name: str, now: dict[str, Any], succeeded: list[Command], inputs: Path, place: Path) -> list[str]:
    """Compare with the content after sequential runs of the successful commands; for a log, after one of them."""
    alone = [[command] for command in succeeded] if name.startswith("logs convert") else [succeeded]
    expected: list[dict[str, Any]] = []
    for commands in alone:
        with folders(place) as (out, temporary):
            out.mkdir()
            for target, source in GROUPS[name][1].items():
                (shutil.copytree if (inputs / source).is_dir() else shutil.copy)(inputs / source, out / target)
            for command in commands:
                subprocess.run(
                    command_line(command, out), cwd=inputs, env=environment(temporary), check=True, capture_output=True
                )
            expected.append(snapshot(commands[0], out))
    if now in expected:
        return []
    if name == "study links":  # who comes first has the first numbers: see `_wrong_links`
        return []
    odd = [file for file in now.keys() | expected[0].keys() if now.get(file) != expected[0].get(file)]
    details = {file: _difference(now.get(file), expected[0].get(file)) for file in odd[:3]}
    return [f"the content is not that of the writers one after another: {details}"]


def _difference(now: Any, expected: Any) -> str:
    if isinstance(now, dict) and isinstance(expected, dict):
        return ", ".join(
            f"{table} {len(now.get(table, []))} rows for {len(rows)}" for table, rows in expected.items()
            if rows != now.get(table)
        )  # fmt: skip
    return f"{str(now)[:60]!r} for {str(expected)[:60]!r}"


def _wrong_links(out: Path, outputs: list[str]) -> list[str]:
    """Return printed links of participants that are not in the store, or are in another group."""
    from judged.studies.storage import StudyStore

    store = StudyStore.open(out / "study.db")
    people, wrong = store.participants(), list[str]()
    for line in (line for text in outputs for line in text.splitlines()):
        participant, group, link = line.split("\t")
        if participant != "observer" and (participant not in people or people[participant].group != group):
            wrong.append(f"a link was printed for {participant} of group {group!r}, who is {people.get(participant)}")
        if store.find_participant(link.rpartition("/")[2]) != participant:
            wrong.append(f"the link of {participant} does not let them in")
    numbers = sorted(people.values())
    if len(set(numbers)) < len(numbers):
        wrong.append(f"participants share places: {numbers}")
    without_trials = [participant for participant in people if not store.trials(participant)]
    store.close()
    return wrong + [f"{participant} has no trials" for participant in without_trials]
