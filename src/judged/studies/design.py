"""Design of a user study: systems, tasks, questionnaires, groups of people, and the order of tasks."""

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
from judged.results import listed
from judged.results.types import cached_property
from judged.studies.questionnaires import Item, Questionnaire

if TYPE_CHECKING:
    from collections.abc import Iterable

Order: TypeAlias = Literal["mixed", "blocked"]
Variants: TypeAlias = Literal["crossed", "between"]


class Condition(NamedTuple):
    """System, and interface variant (empty without variants), that a task is done with."""

    system: str
    variant: str = ""


@dataclass(frozen=True)
class StudySystem:
    """System of a study: a frozen run, or a search engine that is queried during the study.

    Each system has exactly one of `run`, `endpoint`, and `engine`.

    Parameters
    ----------
    name
        Name in the records; participants do not see it.
    run
        Run file.
    texts
        File of documents with titles and texts, as for `judged.data.texts.Texts`.
    endpoint
        File that describes an HTTP search engine, as in ``examples/engines``.
    engine
        ``sqlite``: BM25 of SQLite over `texts`.
    """

    name: str
    texts: str
    run: str = ""
    endpoint: str = ""
    engine: Literal["sqlite"] | None = None

    def __post_init__(self) -> None:
        names = [name for name in ("run", "endpoint", "engine") if getattr(self, name)]
        if len(names) != 1:
            problem = (
                f"the system {self.name} must have one of run, endpoint, and engine, got {listed(names) or 'none'}"
            )
            raise InputError(problem, fix="write exactly one of these keys")


@dataclass(frozen=True)
class Variant:
    """Interface variant: presentation of the results.

    Parameters
    ----------
    name
        Name in the records.
    marks
        Whether query words are marked.
    snippets
        Length of a snippet in characters; 0: titles only.
    weights
        Whether scores are displayed.
    results
        Number of results on a page.
    term_weights
        Whether participants set a weight for each term of the query. All systems must have an `engine`.
    """

    name: str = ""
    marks: bool = True
    snippets: Annotated[int, Range(0, 10_000)] = 160
    weights: bool = False
    results: Annotated[int, Range(1, 1_000)] = 10
    term_weights: bool = False

    __post_init__ = check_ranges


@dataclass(frozen=True)
class Task:
    """Task for one topic.

    Parameters
    ----------
    topic
        Id of the topic.
    query
        Text of the topic.
    instruction
        Instruction for the participant.
    minutes
        Time limit; 0: none.
    save
        Number of documents to save; 0: any number.
    """

    topic: str
    query: str
    instruction: str
    minutes: Annotated[float, Range(0, 100_000)]
    save: Annotated[int, Range(0, 1_000)]

    __post_init__ = check_ranges


@dataclass(frozen=True)
class Group:
    """Group of similar people, such as novices, and its number of participants."""

    name: str
    participants: Annotated[int, Range(1, 100_000)] = 12

    __post_init__ = check_ranges


@dataclass(frozen=True)
class Design:
    """Design of a study. Immutable.

    Parameters
    ----------
    title, consent, instruction, thanks
        Texts for participants.
    systems
        Systems to compare; one is enough if there are several interface variants.
    tasks, practice
        Tasks of the study, and tasks for practice, which come first and are not analyzed.
    language
        Language of the texts, such as ``en``.
    seed
        Seed of all random orders.
    personal
        Whether participants may be asked for their name or e-mail address.
    order
        ``mixed``: systems change from task to task; ``blocked``: all tasks with one system, then with the next.
    variants
        ``crossed``: each person uses each interface variant with each system; ``between``: each person uses one
        variant.
    interfaces
        Interface variants; at least one.
    questionnaires
        Questionnaires in the order of presentation.
    groups
        Groups of people; at least one, whose name may be empty.
    preference
        Topics for which the lists of two systems are compared side by side at the end.
    qrels
        File of judgments; empty: none.
    path
        File of the design; paths in it are relative to its folder.

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
    systems: tuple[StudySystem, ...]
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
            raise InputError("the design must have at least two systems or variants", fix=fix, path=self.path)
        if len(self.tasks) < len(self.conditions):
            least = len(self.conditions)
            noun = "system" if least == len(self.systems) else "combination of system and variant"
            problem = f"there must be at least {least} topics, one for each {noun}, got {len(self.tasks)}"
            fix = f"use {len(self.conditions)} topics or more" + (
                ', or write variants = "between"' if len(self.conditions) > len(self.systems) else ""
            )
            raise SettingError("topics", problem, fix)
        without_engine = [system.name for system in self.systems if not system.engine]
        if without_engine and any(variant.term_weights for variant in self.interfaces):
            problem = f"`term_weights` requires systems with an engine, got {listed(without_engine)} without one"
            raise InputError(problem, fix='write engine = "sqlite" for each system', path=self.path)
        for kind, names in (
            ("systems", [system.name for system in self.systems]),
            ("variants", [variant.name for variant in self.interfaces]),
            ("questionnaires", [questionnaire.name for questionnaire in self.questionnaires]),
            ("groups", [group.name for group in self.groups]),
        ):
            if duplicates := [name for name in names if names.count(name) > 1]:
                problem = f"names of {kind} must be unique, got {duplicates[0]!r} twice"
                raise InputError(problem, fix=f"rename one of the {kind}", path=self.path)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of each participant: all systems, with all variants if these are crossed."""
        names = [variant.name for variant in self.interfaces] if self.variants == "crossed" else [""]
        return tuple(Condition(system.name, name) for system in self.systems for name in names)

    def system(self, name: str) -> StudySystem:
        """Return the system with this name."""
        return next(system for system in self.systems if system.name == name)

    def interface(self, name: str) -> Variant:
        """Return the interface variant with this name."""
        return next(variant for variant in self.interfaces if variant.name == name)

    def task(self, topic: str) -> Task:
        """Return the task of a topic."""
        return next(task for task in (*self.tasks, *self.practice, *self.preference) if task.topic == topic)

    def file(self, name: str) -> Path:
        """Return the path of a file of the design."""
        return Path(self.path).parent / name


@dataclass(frozen=True)
class _Topics:
    file: str
    use: tuple[str, ...] = ()
    practice: tuple[str, ...] = ()
    preference: tuple[str, ...] = ()
    instruction: str = "Learn about this topic, and save the documents that help you."
    minutes: float = 5.0
    save: int = 0


@dataclass(frozen=True)
class _TaskOverrides:
    topic: str
    instruction: str | None = None
    minutes: float | None = None
    save: int | None = None


_LISTS: Mapping[str, type] = {
    "system": StudySystem, "variant": Variant, "task": _TaskOverrides, "questionnaire": Questionnaire, "group": Group,
}  # fmt: skip
_TABLES = ("study", "topics", *_LISTS)
# Fields of Design that are not keys of [study]: they have tables of their own, or come from the caller.
_EXCLUDED = ("systems", "tasks", "practice", "interfaces", "questionnaires", "groups", "preference", "path")


def read_design(path: str | Path) -> Design:
    """Read a design from a TOML file.

    ``[study]`` has the keys of `Design`; ``[topics]`` the ``file`` of topics, the ids for ``use``, ``practice``, and
    ``preference``, and ``instruction``, ``minutes``, and ``save`` of all tasks, which a ``[[task]]`` overrides for its
    ``topic``; ``[[system]]``, ``[[variant]]``, ``[[questionnaire]]``, ``[[group]]`` have the keys of their classes.

    Raises
    ------
    InputError
        If the design or its topics cannot be read, a key is unknown or missing, or a value is invalid (with the line).
    """
    return parse_design(read_toml(path, "write a design with 'judged study init FILE'"), str(path))


def parse_design(text: str, path: str = "") -> Design:
    """Parse a design from the text of its file; `path` is used in messages and to resolve relative paths."""
    raw, lines = parse_toml(text, path, "[study] or [[system]]"), SourceLines.of(text, path)
    with lines.locate_errors():
        for table, value in raw.items():
            if table not in _TABLES:
                raise SettingError(table, f"unknown table {table!r}", suggest_name(table, _TABLES))
            is_list = table in _LISTS
            if not isinstance(value, list if is_list else dict):
                header = f"[[{table}]]" if is_list else f"[{table}]"
                raise SettingError(table, f"{table} must be a TOML table with the header {header}", f"write {header}")
        if "topics" not in raw:
            fix = 'write [topics] with file = "..." and use = ["...", "..."]'
            raise InputError("the design must have a table [topics]", fix=fix)
    lists = {
        name: tuple(lines.map_tables(name, raw.get(name, []), lambda keys, kind=kind: build_from_keys(kind, keys)))
        for name, kind in _LISTS.items()
        if name != "questionnaire"
    }
    with lines.locate_errors("topics"):
        topics = build_from_keys(_Topics, raw["topics"])
        queries = _read_topic_texts(topics, Path(path).parent / topics.file)
    tasks = _tasks(topics, queries, lists["task"], lines)
    other_fields = {
        "systems": lists["system"],
        "tasks": tuple(tasks[topic] for topic in topics.use or queries if topic not in topics.practice),
        "practice": tuple(tasks[topic] for topic in topics.practice),
        "interfaces": lists["variant"] or (Variant(),),
        "questionnaires": _questionnaires(raw.get("questionnaire", []), lines),
        "groups": lists["group"] or (Group(""),),
        "preference": tuple(tasks[topic] for topic in topics.preference),
        "path": path,
    }
    with lines.locate_errors("study"):
        return build_from_keys(Design, raw.get("study", {}), other_fields, exclude=_EXCLUDED)


def _read_topic_texts(topics: _Topics, path: Path) -> dict[str, str]:
    """Read the texts of all topics; check that the topics of the design exist and are unique."""
    texts = Topics.of(path)
    queries = dict(zip(texts.table["query_id"].to_pylist(), texts.table["text"].to_pylist(), strict=True))
    for key in ("use", "practice", "preference"):
        names: tuple[str, ...] = getattr(topics, key)
        for i, name in enumerate(names):
            if name not in queries:
                raise SettingError(key, f"{topics.file} has no topic {name!r}", suggest_name(name, list(queries)[:20]))
            if name in names[:i] or (key == "practice" and name in topics.use):
                raise SettingError(key, f"the topic {name} is a duplicate", "remove one of the two")
    return queries


def _tasks(
    topics: _Topics, queries: Mapping[str, str], overrides: Iterable[_TaskOverrides], lines: SourceLines
) -> dict[str, Task]:
    """Build the tasks of all topics; `lines` adds the line to error messages."""
    with lines.locate_errors("topics"):
        defaults = topics.instruction, topics.minutes, topics.save
        tasks = {topic: Task(topic, query, *defaults) for topic, query in queries.items()}

    def override(task: _TaskOverrides) -> Task:
        if task.topic not in tasks:
            raise SettingError("topic", f"unknown topic {task.topic!r}", suggest_name(task.topic, list(tasks)[:20]))
        values = {key: getattr(task, key) for key in ("instruction", "minutes", "save")}
        return replace(tasks[task.topic], **{key: value for key, value in values.items() if value is not None})

    return tasks | {task.topic: task for task in lines.map_tables("task", overrides, override)}


def _questionnaires(tables: Iterable[dict[str, Any]], lines: SourceLines) -> tuple[Questionnaire, ...]:
    item_count = 0  # items are numbered over all questionnaires, as in the file

    def build(keys: dict[str, Any]) -> Questionnaire:
        nonlocal item_count
        items: list[Item] = []
        for i, item in enumerate(keys.get("item", []), item_count):
            with lines.locate_errors("questionnaire.item", i):
                items.append(build_from_keys(Item, item))
        item_count += len(items)
        other_keys = {key: value for key, value in keys.items() if key != "item"}
        return build_from_keys(Questionnaire, other_keys, {"items": tuple(items)})

    return tuple(lines.map_tables("questionnaire", tables, build))


def first_design(name: str = "study.toml", *, term_weights: bool = False) -> str:
    """Return the text of an example design for the sample; `name` is the file name in its comments.

    The design compares two rankers or, with `term_weights`, one search engine with and without weights of terms.

    >>> parse_design(first_design()).title
    "Two ways to search Python's standard library"
    >>> parse_design(first_design(term_weights=True)).conditions
    (Condition(system='bm25', variant='plain'), Condition(system='bm25', variant='weights'))
    """
    file = "term_weights_design.toml" if term_weights else "first_design.toml"
    names = {
        "qrels": "qrels.txt",
        "queries": "queries.jsonl",
        "texts": "docs.jsonl.gz",
        "first": "runs/bm25.run.gz",
        "second": "runs/tfidf.run.gz",
    }
    paths = {key: json.dumps((sample.FOLDER / file_name).as_posix()) for key, file_name in names.items()}
    return files("judged.studies").joinpath(file).read_text("utf-8").format(name=name, **paths)
