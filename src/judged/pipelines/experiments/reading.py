"""Read the plan of an experiment; every complaint names the line and the key."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from judged.data.toml_places import SettingError
from judged.errors import InputError
from judged.pipelines.experiments.configurations import (
    CONTROL,
    FULL,
    ONE_AT_A_TIME,
    Choices,
    RefusedLevelError,
    level_text,
    refuse_weights,
)
from judged.pipelines.experiments.engines import ENGINES
from judged.pipelines.experiments.limits import LIMITS
from judged.pipelines.experiments.pipelines import OPERATORS, settings_of
from judged.results.spelling import one_of
from judged.scoring.evaluation import measures_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from judged.data.toml_places import Places

FILES = ("documents", "queries", "qrels")
NUMBERS = {
    "depth": (100, 1, 1_000_000), "rounds": (3, 1, 10_000), "warm_up": (20, 0, 1_000_000), "seed": (0, 0, 2**32),
    "concurrency": (0, 0, 1_000),
}  # fmt: skip
"""Default, minimum, and maximum of each number of a plan."""
_KEYS = (*FILES, "measures", "design", *NUMBERS, *LIMITS, "control", "factors", "forbidden", "pipelines")


def options_of(raw: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Give files, measures, design and numbers."""
    for key in raw:
        _refuse_unless(_KEYS, key, "table or key")
    options: dict[str, Any] = {}
    for key in FILES:
        if not isinstance(raw.get(key), (str, PathLike)):
            raise SettingError(
                key, f"{key} is missing" if key not in raw else f"{key} names no file", f"name it: {key} = ..."
            )
        options[key] = str(folder / raw[key])
    for key, (usual, least, most) in {**NUMBERS, **LIMITS}.items():
        value = raw.get(key, usual)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            problem = f"{key} {value!r:.40} makes no sense"
            raise SettingError(key, problem, f"give a whole number from {least} to {most:,}")
        options[key] = value
    try:
        options["measures"] = tuple(map(str, measures_of(raw.get("measures", ["nDCG@10", "R@100"]))))
    except (InputError, ValueError) as error:
        raise SettingError("measures", *getattr(error, "parts", (str(error), "name measures"))) from None
    options["design"] = raw.get("design", FULL)
    if options["design"] not in (FULL, ONE_AT_A_TIME):
        raise SettingError("design", f"no design {options['design']!r}", f"use {FULL} or {ONE_AT_A_TIME}")
    return options


def choices_of(raw: Mapping[str, Any], folder: Path, places: Places, design: str) -> Choices:
    """Give what is chosen among; refuse names and values that no engine of the plan knows."""
    with places.part():
        for key in ("control", "factors", "pipelines"):
            if not isinstance(raw.get(key, {}), Mapping):
                raise SettingError(key, f"{key} is not a table", f"write [{key}]")
        forbidden: Any = raw.get("forbidden", [])
        if not isinstance(forbidden, (list, tuple)) or not all(isinstance(one, Mapping) and one for one in forbidden):
            raise SettingError("forbidden", "forbidden is not a list of tables", "write [[forbidden]]")
    pipelines: dict[str, Mapping[str, Any]] = {}
    for name, own in raw.get("pipelines", {}).items():
        with places.part(f"pipelines.{name}"):
            pipelines[name] = _pipeline(name, own)
    with places.part("factors"):
        factors = {factor: _levels(factor, levels) for factor, levels in raw.get("factors", {}).items()}
    with places.part("control"):
        control = _control(raw.get("control", {}), factors)
    choices = Choices(control, factors, tuple(forbidden), pipelines, design, folder)
    _refuse_pipelines(choices, places)
    with places.part("factors" if "engine" in factors else "control"):
        for name in choices.engines:
            _refuse_engine(choices, name)
    given = [("control", None, raw.get("control", {})), ("factors", None, factors)]
    for table, at, settings in (*given, *(("forbidden", at, own) for at, own in enumerate(forbidden))):
        with places.part(table, at):
            for key, value in settings.items():
                several: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else (value,)
                _refuse_unknown(choices, key, several)
                if table == "forbidden":
                    _refuse_absent(choices, key, several)
    return choices


def _refuse_pipelines(choices: Choices, places: Places) -> None:
    for refuse in (_refuse_values, _refuse_engine):  # first each alone, then what they are together
        for name in choices.pipelines:
            with places.part(f"pipelines.{name}"):
                refuse(choices, name)


def _refuse_values(choices: Choices, name: str) -> None:
    """Refuse values of a pipeline that its engine does not take, and parts that there are not."""
    own = choices.pipelines[name]
    for key in settings_of(own["engine"]).keys() & own.keys():
        try:
            choices.value(own["engine"], key, own[key])
        except RefusedLevelError as error:
            raise SettingError(key, *error.parts) from None
    key = "lists" if "lists" in own else "of"
    for below in own.get("lists") or ([own["of"]] if "of" in own else []):
        if not isinstance(below, str) or below not in (*ENGINES, *choices.pipelines):
            known = ", ".join((*ENGINES, *choices.pipelines))
            raise SettingError(key, f"no engine or pipeline {below!r}", f"use one of {known}")
    if own.get("weights"):
        refuse_weights(name, own["weights"], own["lists"])


def _refuse_absent(choices: Choices, key: str, values: Iterable[Any]) -> None:
    """Refuse to forbid what no configuration has."""
    levels = [*choices.factors.get(key, ()), *([choices.control[key]] if key in choices.control else [])]
    for value in values:
        if value not in levels:
            known = ", ".join(dict.fromkeys(map(level_text, levels)))
            fix = f"use one of {known}" if known else f"name its levels in [factors]: {key} = [...]"
            raise SettingError(key, f"no configuration has {key} {value!r}", fix)


def _control(given: Mapping[str, Any], factors: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Give the settings of the control: of a factor that it does not name the first level."""
    control = {**{factor: levels[0] for factor, levels in factors.items()}, **given}
    if "engine" not in control:
        raise SettingError("engine", "nothing says which engine is asked", "name it: engine = 'sqlite'")
    for factor, levels in factors.items():
        if control[factor] not in levels:
            problem = f"{factor} {control[factor]!r} is no level of this factor"
            raise SettingError(factor, problem, f"use one of {', '.join(map(level_text, levels))}, or add it")
    return control


def _levels(factor: str, levels: Any) -> tuple[Any, ...]:
    if not isinstance(levels, (list, tuple)) or not levels:
        raise SettingError(factor, f"{factor} has no levels", f"give a list: {factor} = [...]")
    given = tuple(cast("Iterable[Any]", levels))
    if len({level_text(level) for level in given}) < len(given):
        raise SettingError(factor, f"{factor} has a level twice", "keep one")
    return given


def _refuse_engine(choices: Choices, name: str) -> None:
    """Refuse an engine that there is not, and values in pipelines that their engines do not take."""
    try:
        choices.part(name, {})
    except InputError as error:
        raise SettingError("engine", *error.parts) from None


def _refuse_unknown(choices: Choices, key: str, values: Iterable[Any]) -> None:
    """Refuse a setting that no engine of the plan has, or a value that none of them takes."""
    if key == "engine":
        return
    taking: dict[str, set[str]] = {}
    for name in choices.engines:
        for part in choices.part(name, {})[0].all():
            for setting in settings_of(part.engine):
                taking.setdefault(setting, set()).add(part.engine)
    _refuse_unless(taking, key, "setting of the plan's engines")
    for value in values:
        refused: list[RefusedLevelError] = []
        for engine in sorted(taking[key]):
            try:
                choices.value(engine, key, value)
            except RefusedLevelError as error:
                refused.append(error)
        if len(refused) == len(taking[key]):
            raise SettingError(key, *refused[0].parts)


def _pipeline(name: str, own: Any) -> Mapping[str, Any]:
    """Give what a pipeline is made of; refuse what cannot be one."""
    if not isinstance(own, Mapping):
        raise SettingError("", f"{name} is not a table", f"write [pipelines.{name}]")
    if name in ENGINES or name in OPERATORS or name == CONTROL:
        raise SettingError("", f"{name} is a name already", "give the pipeline another one")
    engine = own.get("engine")
    if engine not in (*ENGINES, *OPERATORS):
        raise SettingError("engine", f"no engine {engine!r}", f"use one of {', '.join((*ENGINES, *OPERATORS))}")
    needs = {"fusion": ("lists",), "rerank": ("of", "function"), "generate": ("of",)}.get(engine, ())
    for key in needs:
        if key not in own:
            raise SettingError(key, f"{engine} needs {key}", f"name it: {key} = ...")
    lists: Any = own.get("lists", ["", "-"])
    named = isinstance(lists, list) and all(isinstance(one, str) for one in lists)
    if not named or len(set(lists)) < max(2, len(lists)):
        raise SettingError(
            "lists", "these are not two lists or more", 'name engines or pipelines: lists = ["bm25s", "dense"]'
        )
    for key in own:
        _refuse_unless(dict.fromkeys(("engine", *needs, *settings_of(engine))), key, f"setting of {engine}")
    return own


def _refuse_unless(known: Iterable[str], key: str, what: str) -> None:
    names = list(known)
    if key not in names:
        try:
            fix = f"write {one_of(what, key, names)}"
        except InputError as error:
            fix = error.fix
        raise SettingError(key, f"no {what} {key!r}", fix)
