"""Trials of single queries with other settings or words, compared with the control."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.diagnosis.diff import diff
from judged.errors import InputError
from judged.pipelines.experiments.configurations import DesignSpace, format_factor_level, format_levels
from judged.pipelines.experiments.pipelines import create_system, settings_of
from judged.pipelines.experiments.plan import Plan, extended_import_path
from judged.pipelines.experiments.worker import check_hits
from judged.results import CHANGE, Answer, Code, Headline, RankedLists, Sentences
from judged.results.spelling import use_one_of
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.diagnosis.diff import Diff
    from judged.pipelines.experiments.engines.base import Setting
    from judged.pipelines.experiments.pipelines import Node, SearchSystem
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance

_MAX_SYSTEMS = 16  # systems kept in memory


class SettingField(NamedTuple):
    """A setting of an engine, with its value as text."""

    name: str
    value: str
    setting: Setting

    @property
    def is_editable(self) -> bool:
        """Whether visitors may change it. Files, addresses, and functions are excluded for security."""
        return bool(self.setting.values) or not isinstance(self.setting.default, str)

    @property
    def allowed_values(self) -> list[str]:
        """Allowed values; empty if any value of the type is allowed."""
        values = self.setting.values or ((False, True) if isinstance(self.setting.default, bool) else ())
        return list(map(format_factor_level, values))

    def parse(self, text: str) -> Any:
        """Convert text of a form. Whether the engine allows the value is checked by `DesignSpace.parse_value`.

        Raises
        ------
        InputError
            If the text does not fit the type of the setting.
        """
        default, text = self.setting.default, text.strip()
        if isinstance(default, (str, bool)):
            return dict(zip(self.allowed_values, self.setting.values or (False, True), strict=False)).get(text, text)
        try:
            if isinstance(default, tuple):
                return () if text == "none" else tuple(float(part) for part in text.split(",") if part.strip())
            return float(text) if isinstance(default, float) else int(text)
        except ValueError:
            fix = f"write {'numbers, separated by commas' if isinstance(default, tuple) else 'a number'}"
            raise InputError(f"invalid value of {self.name}: {text!r:.60}", fix=fix) from None


@dataclass(frozen=True, eq=False, repr=False)
class QueryTrial(Answer):
    """Result of `TrialEngines.attempt`: the lists of control and trial for one topic, and their differences.

    Attributes
    ----------
    sides : Diff
        List of the control with the words of the topic, and list of the trial.
    query : str
        Query of the trial.
    reworded : bool
        Whether the query differs from the topic's.
    changed : dict
        Settings that differ from the control.
    refused : tuple of str
        Rejected queries, each with the engine's reason.
    toml : str
        Levels to add to the plan; empty if it has them.
    """

    kind: ClassVar[str] = "trial"
    main: ClassVar[str] = "documents"

    sides: Diff
    query: str
    reworded: bool
    changed: Mapping[str, Any]
    refused: tuple[str, ...]
    toml: str
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Topic and changed settings."""
        return f"Topic {self.topic}: {format_levels(self.changed) or 'the control configuration'}"

    @property
    def topic(self) -> str:
        """ID of the topic."""
        return self.sides.topics[0].query_id

    @property
    def provenance(self) -> Provenance:
        """Provenance of the scores."""
        return self.sides.provenance

    @property
    def headline(self) -> Headline:
        """The change of the first measure. One topic is never tested."""
        if self.refused:
            return Headline("unknown", "refused", f"The engine refused {len(self.refused)} of 2 queries.")
        scores = self.sides.topics[0].scores[0]
        word = {"won": "better on this topic", "lost": "worse on this topic", "same": "same score"}
        sentence = "This is a single topic: a change that helps here can hurt other topics."
        label = f"{scores.measure}, trial - control, topic {self.topic}"
        return Headline("info", word[self.sides.topics[0].outcome], sentence, label, scores.difference, CHANGE)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Rejections, the change of scores, and its limits."""
        caveat = "This is a single topic: a change that helps here can hurt other topics."
        sentences = [*self.refused, self.sides.topics[0].sentence, caveat]
        if self.toml:
            sentences[-1] += " To test the change on all topics, add the new levels to the plan, and run the plan."
        if self.reworded:
            sentences.append(
                "To test another wording on all topics, use the setting `synonyms` or the setting `rewrite`: they"
                " change every query."
            )
        return tuple(sentences)

    def facts(self) -> Mapping[str, Any]:
        """Return the topic, the query, the settings, and the levels for the plan."""
        return {"topic": self.topic, "query": self.query, "settings": dict(self.changed), "toml": self.toml}

    def blocks(self) -> tuple[Block, ...]:
        """Return the scores, both lists, and the levels for the plan."""
        first, second = self.sides.runs
        scores = self.sides.table("scores").changed("first", title=first).changed("second", title=second)
        scores = scores.changed("difference", show=CHANGE).showing("measure", "first", "second", "difference")
        return (
            Sentences(self.sentences),
            replace(scores, only="", title="Scores of this topic"),
            *(replace(block, sentences=()) for block in self.sides.blocks() if isinstance(block, RankedLists)),
            self.sides.table("documents"),
            *([Code((self.toml,), "toml", "Levels to add to the plan")] if self.toml else []),
        )


class TrialEngines:
    """Engines of a plan. Each is built at its first use and kept for later queries.

    Examples
    --------
    >>> from judged.data import sample
    >>> names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    >>> files = {key: str(sample.FOLDER / name) for key, name in names.items()}
    >>> trials = TrialEngines(Plan.of(files | {"control": {"engine": "sqlite", "stemmer": "none"}}))
    >>> trial = trials.attempt("t05", {"stemmer": "english"})
    >>> [(row.measure, round(row.first, 3), round(row.second, 3)) for row in trial.sides.topics[0].scores]
    [('nDCG@10', 0.847, 0.847), ('R@100', 0.667, 0.667)]
    >>> print(trial.toml)
    [factors]
    stemmer = ["none", "english"]
    >>> trials.close()
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.design_space = DesignSpace(
            plan.control, plan.factors, plan.forbidden, plan.pipelines, plan.design, plan.folder
        )
        self._folders: list[str] = []
        weakref.finalize(self, _remove_folders, self._folders)
        self._systems: dict[str, SearchSystem] = {}
        self._lock = Lock()

    @cached_property
    def texts(self) -> Texts:
        """Documents of the plan."""
        return Texts.read(self.plan.documents)

    @cached_property
    def queries(self) -> Topics:
        """Queries of the plan."""
        return Topics.read(self.plan.queries)

    @cached_property
    def qrels(self) -> Qrels:
        """Judgments of the plan."""
        return Qrels.read(self.plan.qrels)

    def attempt(
        self,
        topic: str,
        changes: Mapping[str, str],
        *,
        engine: str = "",
        query: str = "",
        measure: Any = None,
        cutoff: int = 10,
    ) -> QueryTrial:
        """Search the control with the topic's query, and a variant with other settings or words.

        Parameters
        ----------
        topic
            ID of the topic.
        changes
            New values of settings, as text.
        engine
            Engine or pipeline of the plan; "" for the control's.
        query
            Words of the variant; "" for the topic's.
        measure, cutoff
            As for `diff`; None for the measures of the plan.

        Raises
        ------
        InputError
            If a setting is unknown, an engine cannot be built, or the topic has no judgments.
        """
        settings, topic_query = self.settings(changes, engine), self.queries.text(topic)
        trial_query = query.strip() or topic_query
        qrels = self.qrels.over([topic])
        runs: list[Run] = []
        refused: list[str] = []
        control = self.design_space.control
        for name, values, words in (("control", control, topic_query), ("trial", settings, trial_query)):
            hits, reasons = self._search(self.design_space.node(values["engine"], values)[0], words)
            runs.append(Run.of({topic: hits}, name=name))
            refused += [f"{name}: the engine refused the query ({reason})." for reason in reasons]
        options: dict[str, Any] = {"measure": self.plan.measures if measure is None else measure, "cutoff": cutoff}
        sides = diff(qrels, runs[0], runs[1], topic, texts=self.texts, queries={topic: trial_query}, **options)
        changed = {name: value for name, value in settings.items() if value != control.get(name)}
        reworded, toml = trial_query != topic_query, self.as_toml(settings)
        return QueryTrial(sides, trial_query, reworded, changed, tuple(refused), toml, sides.notes)

    def fields(self, settings: Mapping[str, Any]) -> dict[str, SettingField]:
        """Return the settings of an engine or pipeline, without those that the plan fixes in its pipelines."""
        fields: dict[str, SettingField] = {}
        for node in self.design_space.node(settings["engine"], settings)[0].all():
            for name, setting in settings_of(node.engine).items():
                if name not in self.design_space.pipelines.get(node.name, {}):
                    fields.setdefault(name, SettingField(name, format_factor_level(node.settings[name]), setting))
        return fields

    def settings(self, changes: Mapping[str, str], engine: str = "") -> dict[str, Any]:
        """Return the settings of the control with changes; settings that only other engines have are ignored.

        Raises
        ------
        InputError
            If a setting is unknown, or cannot be changed here.
        """
        settings = {**self.design_space.control, **({"engine": engine} if engine else {})}
        if settings["engine"] not in self.design_space.engines:
            raise InputError(
                f"the plan has no engine {engine!r:.60}", fix=f"use {', '.join(self.design_space.engines)}"
            )
        fields = self.fields(settings)
        other_names = {
            name for engine_name in self.design_space.engines for name in self.fields({"engine": engine_name})
        }
        for name, text in changes.items():
            if name not in fields and name not in other_names:
                raise InputError(f"no setting {name!r:.60}", fix=use_one_of(fields))
            if name not in fields or text.strip() == fields[name].value:
                continue
            if not fields[name].is_editable:
                raise InputError(f"{name} cannot be changed here", fix="change the setting in the plan")
            settings[name] = fields[name].parse(text)
        return settings

    def as_toml(self, settings: Mapping[str, Any]) -> str:
        """Format the levels that the plan does not have; empty if it has all."""
        defaults = {name: field.setting.default for name, field in self.fields(settings).items()}
        lines: list[str] = []
        for name, value in settings.items():
            levels = self.design_space.factors.get(name, (self.design_space.control.get(name, defaults.get(name)),))
            if value not in levels:  # JSON and TOML write these types in the same way
                lines.append(f"{name} = {json.dumps([*levels, value], ensure_ascii=False)}")
        return "\n".join(["[factors]", *lines]) if lines else ""

    def _search(self, node: Node, query: str) -> tuple[dict[str, float], list[str]]:
        """Search within the time limits of the plan. Return scores by document, and reasons of rejections."""
        future: Future[tuple[dict[str, float], list[str]]] = Future()

        def search() -> None:
            try:
                future.set_result(self._search_now(node, query))
            except BaseException as error:  # noqa: BLE001 - `future.result` raises it
                future.set_exception(error)

        limit = self.plan.query_seconds
        if _content_named(node).name not in self._systems:
            limit += self.plan.build_seconds
        Thread(target=search, daemon=True).start()  # a daemon thread: an engine that hangs must not block the exit
        try:
            return future.result(limit)
        except TimeoutError:
            if future.done():  # raised by the engine, not by `result`
                raise
            fix = "correct the engine, or set higher limits in the plan (build_seconds, query_seconds), and start again"
            raise InputError(f"{node.name}: no result after {limit:,} seconds", fix=fix) from None

    def _search_now(self, node: Node, query: str) -> tuple[dict[str, float], list[str]]:
        with self._lock, extended_import_path(self.plan.folder):
            if len(self._systems) > _MAX_SYSTEMS:
                self._close_systems()
            earlier_names = set(self._systems)
            try:
                system = create_system(_content_named(node), self._systems)
                self._folders.append(tempfile.mkdtemp(prefix="judged-try-"))
                system.build(self.texts.documents, Path(self._folders[-1]))
                hits = system.search(query, self.plan.depth, records := [])
                check_hits(query, hits)
            except BaseException:
                for name in set(self._systems) - earlier_names:  # may be half built
                    del self._systems[name]
                raise
        return dict(hits), [record.refused for record in records if record.refused]

    def close(self) -> None:
        """Close the engines and remove their files."""
        with self._lock:
            self._close_systems()

    def _close_systems(self) -> None:
        for engine in dict.fromkeys(engine for system in self._systems.values() for engine in system.engines()):
            engine.close()
        self._systems.clear()
        _remove_folders(self._folders)


def _remove_folders(folders: list[str]) -> None:
    while folders:
        shutil.rmtree(folders.pop(), ignore_errors=True)


def _content_named(node: Node) -> Node:
    """Rename nodes to hashes of their content, so that configurations with the same node share its engine."""
    children = tuple(map(_content_named, node.of))
    content = json.dumps([node.engine, dict(node.settings), [child.name for child in children]], sort_keys=True)
    return replace(node, name=sha256(content.encode()).hexdigest(), of=children)
