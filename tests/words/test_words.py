"""Names, meanings, and types of shared parameters: signatures and options follow parameters.md."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import click
import pytest

import judged
from judged.cli.main import app
from judged.results.spelling import OTHER_NAMES
from judged.scoring.evaluation.scores import LazyMethod, Scores
from word_list import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGES = (
    "judged.scoring.advice", "judged.online.clicks", "judged.comparison.fusion", "judged.online", "judged.reports",
    "judged.pipelines.traces",
    "judged", "judged.comparison.agreement", "judged.comparison", "judged.scoring.curves",
    "judged.data", "judged.scoring.evaluation",
    "judged.pipelines.experiments", "judged.scoring.explanation", "judged.diagnosis.gates",
    "judged.scoring.judging", "judged.comparison.slicing", "judged.stats",
    "judged.labels", "judged.pipelines.rag", "judged.scoring.uncertainty",
)  # fmt: skip
INTERNAL = {"measures_with_level", "config_of", "dialect_of", "measures_of", "parse_config", "read_config", "runs_of"}
LOGS = ("online ", "logs ", "clicks ", "watch ")
OF_LOGS = {"metric", "metrics", "mapping"}
"""What users did has metrics, as judgments have measures; and a mapping says what the columns of a log are."""
PLACES = {"explain_document": "query_id"}
"""Functions of one document of a topic, which is named by the two columns that qrels have."""
CLICK = {"int": "integer", "float": "float", "str": "text", "bool": "boolean"}


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Give every public function, and every method of `Scores` that is one of scores, once."""
    seen: set[int] = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) and id(value) not in seen and name not in INTERNAL:
                seen.add(id(value))
                yield name, value
    for name, method in vars(Scores).items():
        if isinstance(method, LazyMethod):
            yield f"Scores.{name}", method.__get__(None, Scores)


def faults_of_functions(given: list[tuple[str, Callable[..., Any]]]) -> list[str]:
    """Say which parameters are not on the list, are called by another word, or have a default of another type."""
    words, never = listed()
    parameters = [
        (name, parameter)
        for name, function in given
        for parameter in inspect.signature(function).parameters.values()
        if not (parameter.name in OF_LOGS and function.__module__.startswith("judged.online"))
        and PLACES.get(name) != parameter.name
    ]
    taken = {
        (inspect.unwrap(function), name) for _, function in given for name in inspect.signature(function).parameters
    }
    times = Counter(name for _, name in taken)  # a method of scores and its function of runs are one
    said = list[str]()
    for name, one in parameters:
        if one.name in never and one.name not in words:
            said.append(f"{name}({one.name}): the word is {never[one.name]}")
        elif times[one.name] > 1 and one.kind is not one.VAR_KEYWORD and one.name not in words:
            said.append(f"{name}({one.name}): several take it, and it is not on the list")
        word, usual = words.get(one.name), one.default
        if word and word.types and usual not in (None, (), one.empty) and not isinstance(usual, word.types):
            said.append(f"{name}({one.name}={usual!r}): the list says {' or '.join(word.kinds)}")
    return said


def commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Give every command with its whole name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), f"{path}{name} ")  # type: ignore[arg-type]
    else:
        yield path, command


def faults_of_options(given: list[tuple[str, click.Command]]) -> list[str]:
    """Say which options have a name that another word stands for, or take something else than that word."""
    words, never = listed()
    said = list[str]()
    for path, command in given:
        for option in (one for one in command.params if isinstance(one, click.Option) and one.param_type_name):
            name = max(option.opts, key=len).removeprefix("--").replace("-", "_")
            of_logs = path.startswith(LOGS) and name in OF_LOGS
            if name in never and name not in words and not of_logs:
                said.append(f"{path}--{name}: the word is {never[name]}")
            word = words.get(name)
            takes = "text" if isinstance(option.type, click.Choice) else option.type.name.removesuffix(" range")
            fits = {CLICK[kind] for kind in word.kinds if kind in CLICK} if word else set[str]()
            if fits and takes not in fits and not (option.multiple or takes == "text"):
                said.append(
                    f"{path}--{name} takes {takes}, and the list says {' or '.join(word.kinds if word else ())}"
                )
    return said


def test_every_parameter_is_called_by_its_word() -> None:
    assert faults_of_functions(list(functions())) == []


def test_every_option_is_called_by_its_word() -> None:
    assert faults_of_options(list(commands(app))) == []


def documented(function: Callable[..., Any]) -> set[str] | None:
    """Give the parameters that a docstring describes; None where it has no such section."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", inspect.getdoc(function) or "", re.DOTALL | re.MULTILINE
    )
    if section is None:
        return None
    lines = [line for line in section[1].splitlines() if not line.startswith(" ")]
    return {name.strip(" *") for line in lines for name in line.partition(" : ")[0].split(",")}


@pytest.mark.parametrize(("name", "function"), [pytest.param(*each, id=each[0]) for each in functions()])
def test_every_parameter_is_described_and_no_other(name: str, function: Callable[..., Any]) -> None:
    """Also of what is made of two docstrings; a few functions of few parameters have one sentence for all."""
    described = documented(function)
    public = name in judged.__all__ or name.startswith("Scores.")
    assert described is not None or not public
    assert described in (None, set(inspect.signature(function).parameters))


def test_errors_of_calls_name_what_was_called() -> None:
    qrels, run = {"q": {"d": 1}}, {"q": {"d": 1.0}}
    with pytest.raises(TypeError, match=r"^compare\(\) got an unexpected keyword argument 'wher'"):
        judged.compare(qrels, run, wher="kind == 'law'")
    with pytest.raises(TypeError, match=r"^Scores\.compare\(\) got an unexpected keyword argument 'by'"):
        judged.evaluate(qrels, run, "AP").compare(by="kind")


@pytest.mark.parametrize(
    ("function", "given", "meant"),
    [
        (judged.evaluate, {"metrics": ["AP"]}, "measures"),
        (judged.evaluate, {"relevance_level": 2}, "rel"),
        (judged.compare, {"method": "t"}, "test, or correction"),
        (judged.slices, {"slicing": {}, "by": "kind"}, "slicing"),
        (judged.explain, {"measure": "AP", "query_id": "q"}, "topic"),
    ],
)
def test_an_unknown_parameter_is_answered_with_the_one_that_is_meant(
    function: Callable[..., Any], given: dict[str, Any], meant: str
) -> None:
    with pytest.raises(TypeError, match=f": write {meant}$"):
        function({"q": {"d": 1}}, {"q": {"d": 1.0}}, **given)


def test_a_command_is_called_as_its_function() -> None:
    """What is not a function: the ways to look at things, the other tools, and the lists of names."""
    looks = {"measures", "serve", "demo", "trec_eval", "online", "logs", "traces", "experiment", "labels", "collection",
             "plugins"}  # fmt: skip
    apart = {*looks, "change", "clicks", "history", "rag", "study", "trajectories", "watch"}
    context = click.Context(app)
    names = {name.replace("-", "_") for name in app.list_commands(context)} - apart  # type: ignore[attr-defined]
    assert {name for name in names if not callable(getattr(judged, name, None))} == set()


def test_judged_shows_what_people_start_with() -> None:
    assert len(dir(judged)) <= 76
    assert all(getattr(judged, name) is not None for name in dir(judged))


PLANTED: list[tuple[str, Callable[..., Any]]] = [
    ("the word is limit", lambda shown=5: shown),
    ("the word is texts", lambda docs=None: docs),
    ("the word is fdr", lambda rate=0.1: rate),
    ("the list says float", lambda level="0.95": level),
    ("the list says int", lambda cutoff=10.5: cutoff),
    ("the list says str", lambda ties=True: ties),
]


@pytest.mark.parametrize(("message", "function"), PLANTED)
def test_a_planted_parameter_is_found(message: str, function: Callable[..., Any]) -> None:
    (said,) = faults_of_functions([("planted", function)])
    assert message in said


def test_a_word_of_two_functions_must_be_on_the_list() -> None:
    planted = [("one", lambda smoothing=1: smoothing), ("other", lambda smoothing=2: smoothing)]
    assert [fault.split(":")[0] for fault in faults_of_functions(planted)] == ["one(smoothing)", "other(smoothing)"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (click.Option(["--docs"]), "the word is texts"),
        (click.Option(["--minimum"], type=int), "the word is min_"),
        (click.Option(["--level"], type=int), "takes integer"),
        (click.Option(["--cutoff"], type=float), "takes float"),
    ],
)
def test_a_planted_option_is_found(option: click.Option, message: str) -> None:
    (said,) = faults_of_options([("planted ", click.Command("planted", params=[option]))])
    assert message in said


def options() -> set[str]:
    """Name every option of every command."""
    every = (one for _, command in commands(app) for one in command.params if isinstance(one, click.Option))
    return {max(one.opts, key=len).removeprefix("--") for one in every}


def test_every_hint_names_an_option_that_there_is() -> None:
    parameters = {
        name.replace("_", "-") for _, function in functions() for name in inspect.signature(function).parameters
    }
    assert set(OTHER_NAMES) <= options() | parameters
    for name, others in OTHER_NAMES.items():
        assert name not in others.split()


def test_words_that_are_never_used_are_answered_with_the_right_one() -> None:
    known = options()
    never = {wrong.replace("_", "-"): right.replace("_", "-") for wrong, right in listed()[1].items()}
    asked = {wrong: right for wrong, right in never.items() if right in known and wrong not in known}
    assert {wrong: right for wrong, right in asked.items() if wrong not in OTHER_NAMES.get(right, "").split()} == {}
