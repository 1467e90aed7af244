"""A query tried live: settings that no plan has yet, or other words, beside the list of the control."""

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
from judged.pipelines.experiments.configurations import Choices, level_text, spelled
from judged.pipelines.experiments.pipelines import settings_of, system_of
from judged.pipelines.experiments.plan import Plan, importing_from
from judged.pipelines.experiments.worker import refuse_odd
from judged.results import CHANGE, Answer, Code, RankedLists, Sentences
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.diagnosis.diff import Diff
    from judged.pipelines.experiments.engines.base import Setting
    from judged.pipelines.experiments.pipelines import Part, System
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance

_MOST = 16  # engines that are kept


class Field(NamedTuple):
    """A setting of an engine, and its value as it is typed."""

    name: str
    value: str
    setting: Setting

    @property
    def editable(self) -> bool:
        """Whether another value may be tried: no file, address or function, which no visitor of a page may choose."""
        return bool(self.setting.values) or not isinstance(self.setting.default, str)

    @property
    def choices(self) -> list[str]:
        """The values that it takes; empty where any of its kind will do."""
        values = self.setting.values or ((False, True) if isinstance(self.setting.default, bool) else ())
        return list(map(level_text, values))

    def read(self, text: str) -> Any:
        """Take what somebody typed; whether an engine takes the value, `Choices` says.

        Raises
        ------
        InputError
            If it is not of the setting's kind.
        """
        default, text = self.setting.default, text.strip()
        if isinstance(default, (str, bool)):
            return dict(zip(self.choices, self.setting.values or (False, True), strict=False)).get(text, text)
        try:
            if isinstance(default, tuple):
                return () if text == "none" else tuple(float(part) for part in text.split(",") if part.strip())
            return float(text) if isinstance(default, float) else int(text)
        except ValueError:
            fix = f"write {'numbers with commas between' if isinstance(default, tuple) else 'a number'}"
            raise InputError(f"{self.name} cannot be {text!r:.60}", fix=fix) from None


@dataclass(frozen=True, eq=False, repr=False)
class Trial(Answer):
    """What `Trials.attempt` returns: both lists of one topic, what moved, and what was tried.

    Attributes
    ----------
    sides : Diff
        The list of the control, asked with the topic's own words, and the one that was tried.
    query : str
        What the other one was asked.
    reworded : bool
        Whether these are other words than the topic's.
    changed : dict
        The settings in which it differs from the control.
    refused : tuple of str
        Which query an engine refused, and why.
    toml : str
        The levels to add to the plan; empty if it has them.
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
        """What was tried."""
        return f"Topic {self.topic}: {spelled(self.changed) or 'the control'}"

    @property
    def topic(self) -> str:
        """The topic."""
        return self.sides.topics[0].query_id

    @property
    def provenance(self) -> Provenance:
        """What the scores rest on."""
        return self.sides.provenance

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was refused, what changed, and what that does not say."""
        alone = "This is one topic: what helps it may hurt others."
        said = [*self.refused, self.sides.topics[0].sentence, alone]
        if self.toml:
            said[-1] += " Put it into the plan, and run that, to see."
        if self.reworded:
            said.append("Other words are a configuration by `synonyms` or `rewrite`, which do the same to every query.")
        return tuple(said)

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked, and what it would be in a plan."""
        return {"topic": self.topic, "query": self.query, "settings": dict(self.changed), "toml": self.toml}

    def blocks(self) -> tuple[Block, ...]:
        """Give what changed, both lists, and the levels for the plan."""
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


class Trials:
    """The engines of a plan: built when they are first asked, each once, and kept for the next query.

    Examples
    --------
    >>> from judged.data import sample
    >>> names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    >>> files = {key: str(sample.FOLDER / name) for key, name in names.items()}
    >>> trials = Trials(Plan.of(files | {"control": {"engine": "sqlite", "stemmer": "none"}}))
    >>> trial = trials.attempt("t05", {"stemmer": "english"})
    >>> [(one.measure, round(one.first, 3), round(one.second, 3)) for one in trial.sides.topics[0].scores]
    [('nDCG@10', 0.847, 0.847), ('R@100', 0.667, 0.667)]
    >>> print(trial.toml)
    [factors]
    stemmer = ["none", "english"]
    >>> trials.close()
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.choices = Choices(plan.control, plan.factors, plan.forbidden, plan.pipelines, plan.design, plan.folder)
        self._folders: list[str] = []
        weakref.finalize(self, _remove, self._folders)
        self._made: dict[str, System] = {}
        self._lock = Lock()

    @cached_property
    def texts(self) -> Texts:
        """The documents."""
        return Texts.read(self.plan.documents)

    @cached_property
    def queries(self) -> Topics:
        """The queries."""
        return Topics.read(self.plan.queries)

    @cached_property
    def qrels(self) -> Qrels:
        """The judgments."""
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
    ) -> Trial:
        """Ask the control with a topic's query, and beside it with other settings, or in other words.

        Parameters
        ----------
        topic
            Its id.
        changes
            Settings of the control that are tried with other values, as they are typed.
        engine
            An engine or pipeline of the plan; the control's for "".
        query
            In which words the other is asked; those of the topic for "".
        measure, cutoff
            As for `diff`; the measures of the plan for None.

        Raises
        ------
        InputError
            If a setting is not known, an engine cannot be built so, or the qrels lack the topic.
        """
        settings, own = self.settings(changes, engine), self.queries.text(topic)
        asked = query.strip() or own
        qrels = self.qrels.over([topic])
        runs: list[Run] = []
        refused: list[str] = []
        for name, of, words in (("control", self.choices.control, own), ("tried", settings, asked)):
            hits, reasons = self._search(self.choices.part(of["engine"], of)[0], words)
            runs.append(Run.of({topic: hits}, name=name))
            refused += [f"{name}: the query was refused ({reason})." for reason in reasons]
        how: dict[str, Any] = {"measure": self.plan.measures if measure is None else measure, "cutoff": cutoff}
        sides = diff(qrels, runs[0], runs[1], topic, texts=self.texts, queries={topic: asked}, **how)
        changed = {name: value for name, value in settings.items() if value != self.choices.control.get(name)}
        return Trial(sides, asked, asked != own, changed, tuple(refused), self.as_toml(settings), sides.notes)

    def fields(self, settings: Mapping[str, Any]) -> dict[str, Field]:
        """Give what can be set of an engine or pipeline, but for what the plan says of its parts."""
        found: dict[str, Field] = {}
        for part in self.choices.part(settings["engine"], settings)[0].all():
            for name, setting in settings_of(part.engine).items():
                if name not in self.choices.pipelines.get(part.name, {}):
                    found.setdefault(name, Field(name, level_text(part.settings[name]), setting))
        return found

    def settings(self, changes: Mapping[str, str], engine: str = "") -> dict[str, Any]:
        """Give the settings of the control with changes as they were typed; what only other engines know is left out.

        Raises
        ------
        InputError
            If nobody knows a setting, or it may not be changed here.
        """
        made = {**self.choices.control, **({"engine": engine} if engine else {})}
        if made["engine"] not in self.choices.engines:
            raise InputError(f"no engine {engine!r:.60} is in the plan", fix=f"use {', '.join(self.choices.engines)}")
        known = self.fields(made)
        elsewhere = {name for other in self.choices.engines for name in self.fields({"engine": other})}
        for name, text in changes.items():
            if name not in known and name not in elsewhere:
                raise InputError(f"no setting {name!r:.60}", fix=f"use one of {', '.join(known)}")
            if name not in known or text.strip() == known[name].value:
                continue
            if not known[name].editable:
                raise InputError(f"{name} cannot be changed here", fix="change it in the plan")
            made[name] = known[name].read(text)
        return made

    def as_toml(self, settings: Mapping[str, Any]) -> str:
        """Write the levels that the plan lacks of these settings; empty where it has them all."""
        usual = {name: one.setting.default for name, one in self.fields(settings).items()}
        lines: list[str] = []
        for name, value in settings.items():
            levels = self.choices.factors.get(name, (self.choices.control.get(name, usual.get(name)),))
            if value not in levels:  # texts, numbers, truth values and lists of these are alike in JSON and TOML
                lines.append(f"{name} = {json.dumps([*levels, value], ensure_ascii=False)}")
        return "\n".join(["[factors]", *lines]) if lines else ""

    def _search(self, part: Part, query: str) -> tuple[dict[str, float], list[str]]:
        """Ask a configuration within the plan's limits of time, and give also why any of its parts refused."""
        done: Future[tuple[dict[str, float], list[str]]] = Future()

        def ask() -> None:
            try:
                done.set_result(self._ask(part, query))
            except BaseException as error:  # noqa: BLE001 - it is raised by `done.result`
                done.set_exception(error)

        limit = self.plan.query_seconds
        if _by_content(part).name not in self._made:
            limit += self.plan.build_seconds
        Thread(target=ask, daemon=True).start()  # an engine that never answers must not keep the program from ending
        try:
            return done.result(limit)
        except TimeoutError:
            if done.done():  # the engine's own
                raise
            fix = "correct the engine, or set higher limits in the plan (build_seconds, query_seconds), and start again"
            raise InputError(f"{part.name}: no result after {limit:,} seconds", fix=fix) from None

    def _ask(self, part: Part, query: str) -> tuple[dict[str, float], list[str]]:
        with self._lock, importing_from(self.plan.folder):
            if len(self._made) > _MOST:
                self._forget()
            known = set(self._made)
            try:
                system = system_of(_by_content(part), self._made)
                self._folders.append(tempfile.mkdtemp(prefix="judged-try-"))
                system.build(self.texts.documents, Path(self._folders[-1]))
                hits = system.search(query, self.plan.depth, told := [])
                refuse_odd(query, hits)
            except BaseException:
                for name in set(self._made) - known:  # perhaps half made
                    del self._made[name]
                raise
        return dict(hits), [asked.refused for asked in told if asked.refused]

    def close(self) -> None:
        """Let go of the engines, and remove what they wrote."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        for engine in dict.fromkeys(engine for system in self._made.values() for engine in system.engines()):
            engine.close()
        self._made.clear()
        _remove(self._folders)


def _remove(folders: list[str]) -> None:
    while folders:
        shutil.rmtree(folders.pop(), ignore_errors=True)


def _by_content(part: Part) -> Part:
    """Name parts by what they are, so that an engine serves every configuration that it is a part of."""
    below = tuple(map(_by_content, part.of))
    what = json.dumps([part.engine, dict(part.settings), [one.name for one in below]], sort_keys=True)
    return replace(part, name=sha256(what.encode()).hexdigest(), of=below)
