"""The design of a study: systems, tasks, questionnaires, groups of people, and how their order is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from judged.data import sample
from judged.data.toml_files import (
    Range,
    SettingError,
    SourceLines,
    build_from_keys,
    check_ranges,
    parse_toml,
    read_toml,
    suggest_name,
)
from judged.data.topics import Topics
from judged.errors import InputError
from judged.results.types import cached_property
from judged.studies.questionnaires import Item, Questionnaire

if TYPE_CHECKING:
    from collections.abc import Iterable

Order: TypeAlias = Literal["mixed", "blocked"]
Variants: TypeAlias = Literal["crossed", "between"]


class Condition(NamedTuple):
    """With what a task is done: a system, and an interface variant (empty where there are none)."""

    system: str
    variant: str = ""


@dataclass(frozen=True)
class System:
    """What is searched with: a frozen run, or an engine that is asked while the study runs.

    Parameters
    ----------
    name
        How records call it; participants never see it.
    run
        File of its run.
    texts
        Documents with titles and texts, as `judged.data.texts.Texts` reads them.
    endpoint
        In place of a run: the file that says how an engine is asked over HTTP, as in ``examples/engines``.
    """

    name: str
    texts: str
    run: str = ""
    endpoint: str = ""

    def __post_init__(self) -> None:
        if bool(self.run) == bool(self.endpoint):
            problem = f"{self.name} has {'both' if self.run else 'neither'} a run and an endpoint"
            raise InputError(problem.replace("neither a run and", "neither a run nor"), fix="give one of them")


@dataclass(frozen=True)
class Variant:
    """How results are shown.

    Parameters
    ----------
    name
        How records call it.
    marks
        Whether words of the query are marked.
    snippets
        Characters of a snippet; 0: titles alone.
    weights
        Whether scores are shown.
    results
        Results on a page.
    """

    name: str = ""
    marks: bool = True
    snippets: Annotated[int, Range(0, 10_000)] = 160
    weights: bool = False
    results: Annotated[int, Range(1, 1_000)] = 10

    __post_init__ = check_ranges


@dataclass(frozen=True)
class Task:
    """What is done for one topic.

    Parameters
    ----------
    topic
        Its id.
    query
        Its text.
    instruction
        What the participant is asked to do.
    minutes
        How long it may take; 0: as long as it takes.
    save
        How many documents are to be saved; 0: as many as one likes.
    """

    topic: str
    query: str
    instruction: str
    minutes: Annotated[float, Range(0, 100_000)]
    save: Annotated[int, Range(0, 1_000)]

    __post_init__ = check_ranges


@dataclass(frozen=True)
class Group:
    """People who are alike, such as novices, and how many of them take part."""

    name: str
    participants: Annotated[int, Range(1, 100_000)] = 12

    __post_init__ = check_ranges


@dataclass(frozen=True)
class Design:
    """All that a study is made of. Immutable.

    Parameters
    ----------
    title, consent, instruction, thanks
        Texts for participants.
    systems
        What is compared: two or more.
    tasks, practice
        Tasks that count, and those that come first and do not.
    language
        Of the texts, such as ``en``.
    seed
        Of every random order.
    personal
        Whether participants may be asked who they are.
    order
        ``mixed``: systems change from task to task; ``blocked``: all tasks with one system, then with the next.
    variants
        How interface variants meet people: ``crossed``: everyone has each with each system; ``between``: everyone has
        one.
    interfaces
        The interface variants; there is always one.
    questionnaires
        In the order in which they are asked.
    groups
        There is always one; its name is empty where the design has none.
    preference
        Topics of which the lists of two systems are shown side by side at the end.
    qrels
        File of judgments; empty: there are none.
    path
        The file that it was read from: files in it are seen from there.

    Examples
    --------
    >>> from judged.data import sample
    >>> design = parse_design(f'''
    ... [study]
    ... title = "Two rankers"
    ... [topics]
    ... file = "{sample.FOLDER.as_posix()}/queries.jsonl"
    ... use = ["t01", "t02"]
    ... [[system]]
    ... name = "one"
    ... run = "one.run"
    ... texts = "docs.jsonl"
    ... [[system]]
    ... name = "two"
    ... run = "two.run"
    ... texts = "docs.jsonl"
    ... ''')
    >>> design.tasks[0].query, design.conditions
    ('most common elements of a list', (Condition(system='one', variant=''), Condition(system='two', variant='')))
    """

    title: str
    systems: tuple[System, ...]
    tasks: tuple[Task, ...]
    practice: tuple[Task, ...] = ()
    language: str = "en"
    seed: Annotated[int, Range(0, 2**32)] = 0
    consent: str = ""
    instruction: str = ""
    thanks: str = "Thank you. You are done."
    personal: bool = False
    order: Order = "mixed"
    variants: Variants = "crossed"
    interfaces: tuple[Variant, ...] = (Variant(),)
    questionnaires: tuple[Questionnaire, ...] = ()
    groups: tuple[Group, ...] = (Group(""),)
    preference: tuple[Task, ...] = ()
    qrels: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        check_ranges(self)
        if len(self.systems) < 2 and len(self.interfaces) < 2:
            fix = "add a [[system]], or a second [[variant]] of the interface"
            raise InputError("there is nothing to compare", fix=fix, path=self.path)
        if len(self.tasks) < len(self.conditions):
            problem = f"{len(self.tasks)} topics cannot be done with {len(self.conditions)} systems and variants"
            fix = f"use {len(self.conditions)} topics or more" + (
                ', or write variants = "between"' if len(self.conditions) > len(self.systems) else ""
            )
            raise SettingError("topics", problem, fix)
        for what, names in (
            ("systems", [system.name for system in self.systems]),
            ("variants", [variant.name for variant in self.interfaces]),
            ("questionnaires", [questionnaire.name for questionnaire in self.questionnaires]),
            ("groups", [group.name for group in self.groups]),
        ):
            if len(set(names)) < len(names):
                again = next(name for name in names if names.count(name) > 1)
                raise InputError(f"two {what} are called {again!r}", fix="give each its own name", path=self.path)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """What every participant meets: each system, with each variant where these are crossed."""
        names = [variant.name for variant in self.interfaces] if self.variants == "crossed" else [""]
        return tuple(Condition(system.name, name) for system in self.systems for name in names)

    def system(self, name: str) -> System:
        """Give a system by its name."""
        return next(system for system in self.systems if system.name == name)

    def interface(self, name: str) -> Variant:
        """Give an interface variant by its name."""
        return next(variant for variant in self.interfaces if variant.name == name)

    def task(self, topic: str) -> Task:
        """Give the task of a topic."""
        return next(task for task in (*self.tasks, *self.practice, *self.preference) if task.topic == topic)

    def file(self, name: str) -> Path:
        """Say where a file of the design is."""
        return Path(self.path).parent / name


@dataclass(frozen=True)
class _Topics:
    file: str
    use: tuple[str, ...] = ()
    practice: tuple[str, ...] = ()
    preference: tuple[str, ...] = ()
    instruction: str = "Find out what you can about this, and save the documents that help."
    minutes: float = 5.0
    save: int = 0


@dataclass(frozen=True)
class _OwnTask:
    topic: str
    instruction: str | None = None
    minutes: float | None = None
    save: int | None = None


_LISTS: Mapping[str, type] = {
    "system": System, "variant": Variant, "task": _OwnTask, "questionnaire": Questionnaire, "group": Group,
}  # fmt: skip
_TABLES = ("study", "topics", *_LISTS)
_APART = ("systems", "tasks", "practice", "interfaces", "questionnaires", "groups", "preference", "path")


def read_design(path: str | Path) -> Design:
    """Read a design from a TOML file.

    ``[study]`` has the keys of `Design`; ``[topics]`` the ``file`` of topics, those to ``use``, of ``practice`` and of
    ``preference``, and ``instruction``, ``minutes`` and ``save`` of all tasks, which a ``[[task]]`` changes for its
    ``topic``; ``[[system]]``, ``[[variant]]``, ``[[questionnaire]]``, ``[[group]]`` the keys of their classes.

    Raises
    ------
    InputError
        If it or its topics cannot be read, a key is unknown or missing, or a value makes no sense, with the line.
    """
    return parse_design(read_toml(path, "write one with 'judged study init FILE'"), str(path))


def parse_design(text: str, path: str = "") -> Design:
    """Read a design from the text of its file; `path` is what messages call it, and its files are seen from there."""
    raw, places = parse_toml(text, path, "[study] or [[system]]"), SourceLines.of(text, path)
    with places.locate_errors():
        for table, value in raw.items():
            if table not in _TABLES:
                raise SettingError(table, f"no table {table!r}", suggest_name(table, _TABLES))
            many = table in _LISTS
            if not isinstance(value, list if many else dict):
                written = f"[[{table}]]" if many else f"[{table}]"
                raise SettingError(table, f"{table} is no such table", f"write {written}")
        if "topics" not in raw:
            raise InputError("there are no topics", fix='write [topics] with file = "..." and use = ["...", "..."]')
    made = {
        name: tuple(places.map_tables(name, raw.get(name, []), lambda keys, kind=kind: build_from_keys(kind, keys)))
        for name, kind in _LISTS.items()
        if name != "questionnaire"
    }
    with places.locate_errors("topics"):
        topics = build_from_keys(_Topics, raw["topics"])
        known = _known(topics, Path(path).parent / topics.file)
    tasks = _tasks(topics, known, made["task"], places)
    more = {
        "systems": made["system"],
        "tasks": tuple(tasks[topic] for topic in topics.use or known if topic not in topics.practice),
        "practice": tuple(tasks[topic] for topic in topics.practice),
        "interfaces": made["variant"] or (Variant(),),
        "questionnaires": _questionnaires(raw.get("questionnaire", []), places),
        "groups": made["group"] or (Group(""),),
        "preference": tuple(tasks[topic] for topic in topics.preference),
        "path": path,
    }
    with places.locate_errors("study"):
        return build_from_keys(Design, raw.get("study", {}), more, exclude=_APART)


def _known(topics: _Topics, path: Path) -> dict[str, str]:
    """Read the texts of topics, and refuse those that are named and not there, or named twice."""
    texts = Topics.of(path)
    known = dict(zip(texts.table["query_id"].to_pylist(), texts.table["text"].to_pylist(), strict=True))
    for key in ("use", "practice", "preference"):
        names: tuple[str, ...] = getattr(topics, key)
        for at, name in enumerate(names):
            if name not in known:
                raise SettingError(key, f"{topics.file} has no topic {name!r}", suggest_name(name, list(known)[:20]))
            if name in names[:at] or (key == "practice" and name in topics.use):
                raise SettingError(key, f"the topic {name} is there twice", "leave it once")
    return known


def _tasks(topics: _Topics, known: Mapping[str, str], own: Iterable[_OwnTask], places: SourceLines) -> dict[str, Task]:
    """Make the task of each topic."""
    with places.locate_errors("topics"):
        tasks = {
            topic: Task(topic, query, topics.instruction, topics.minutes, topics.save) for topic, query in known.items()
        }

    def changed(task: _OwnTask) -> Task:
        if task.topic not in tasks:
            raise SettingError("topic", f"no topic {task.topic!r}", suggest_name(task.topic, list(tasks)[:20]))
        given = {key: getattr(task, key) for key in ("instruction", "minutes", "save")}
        return replace(tasks[task.topic], **{key: value for key, value in given.items() if value is not None})

    return tasks | {task.topic: task for task in places.map_tables("task", own, changed)}


def _questionnaires(given: Iterable[dict[str, Any]], places: SourceLines) -> tuple[Questionnaire, ...]:
    """Make questionnaires, and their own items: these are counted over all of them, as in the file."""
    before = 0

    def made(keys: dict[str, Any]) -> Questionnaire:
        nonlocal before
        items: list[Item] = []
        for at, item in enumerate(keys.get("item", []), before):
            with places.locate_errors("questionnaire.item", at):
                items.append(build_from_keys(Item, item))
        before += len(items)
        others = {key: value for key, value in keys.items() if key != "item"}
        return build_from_keys(Questionnaire, others, {"items": tuple(items)})

    return tuple(places.map_tables("questionnaire", given, made))


def first_design(name: str = "study.toml") -> str:
    """Write a first design, of two rankers of the sample; `name` is that of its file.

    >>> parse_design(first_design()).title
    "Two ways to search Python's standard library"
    """
    places = {
        "qrels": "qrels.txt",
        "queries": "queries.jsonl",
        "texts": "docs.jsonl.gz",
        "first": "runs/bm25.run.gz",
        "second": "runs/tfidf.run.gz",
    }
    paths = {key: json.dumps((sample.FOLDER / place).as_posix()) for key, place in places.items()}
    return files("judged.studies").joinpath("first_design.toml").read_text("utf-8").format(name=name, **paths)
