"""What judged gives and raises goes from process to process, and can be copied."""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import judged
from judged.data import sample
from judged.diagnosis.gates import Check
from judged.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

ANYWHERE = [pickle.loads, copy.deepcopy]
TOPICS = [f"q{at}" for at in range(1, 13)]
QRELS = {q: {f"d{d}": (at * d) % 4 for d in range(1, 9)} for at, q in enumerate(TOPICS, 1)}
OTHER = {q: {doc: min(3, grade + (q > "q4")) for doc, grade in of.items()} for q, of in QRELS.items()}
OLD, NEW, THIRD = (
    {q: {f"d{d}": float(-(d * (at + shift) % 11)) for d in range(1, 11)} for at, q in enumerate(TOPICS, 1)}
    for shift in range(3)
)
RUNS = {"old": OLD, "new": NEW, "third": THIRD}
KINDS = {q: {"kind": "ab"[at % 2], "need": f"n{at // 3}"} for at, q in enumerate(TOPICS)}
X = np.random.default_rng(1).random((12, 3))
CHECKS = judged.GateConfig((Check("nDCG@5", margin=0.5),))


def exceptions() -> list[type[BaseException]]:
    """Import everything, and find the classes of exceptions."""
    for module in pkgutil.walk_packages(judged.__path__, "judged."):
        if not module.name.endswith("__main__"):
            with suppress(MissingExtraError):  # modules for users of a tool that is no dependency
                importlib.import_module(module.name)

    def below(base: type[BaseException]) -> set[type[BaseException]]:
        return {one for sub in base.__subclasses__() for one in {sub, *below(sub)}}

    return sorted((one for one in below(BaseException) if one.__module__.startswith("judged.")), key=str)


def example(kind: type[BaseException]) -> BaseException:
    """Raise one with something for everything that it takes."""
    values: dict[str, Any] = {"error": OSError(28, "No space left"), "line": 3, "code": 2, "ctx": None, "param": None}
    if not inspect.isfunction(kind.__init__):
        return kind("wrong. Fix: this.")
    taken = [name for name in inspect.signature(kind.__init__).parameters if name != "self"]
    return kind(**{name: values.get(name, f"some {name}") for name in taken})


def through(value: Any) -> list[Any]:
    """Give what becomes of something in another process, and of a copy."""
    return [pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)]  # noqa: S301


def test_every_exception_survives() -> None:
    kinds = exceptions()
    assert {judged.InputError, judged.MeasureError, judged.MissingExtraError, judged.JudgedWarning} < set(kinds)
    for kind in kinds:
        given = example(kind)
        for made in through(given):
            assert (type(made), str(made)) == (type(given), str(given))
            assert vars(made).keys() == vars(given).keys()
            assert {name: str(value) for name, value in vars(made).items()} == {
                name: str(value) for name, value in vars(given).items()
            }


def _fail(number: int) -> int:
    raise judged.InputError("wrong", fix="this", path="a.run", line=number)


def test_an_error_comes_out_of_a_pool_of_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(judged.InputError) as caught:
        pool.apply_async(_fail, (3,)).get(timeout=30)
    assert (caught.value.path, caught.value.line) == ("a.run", 3)


PUBLIC: dict[str, Callable[[], Any]] = {
    "Qrels": lambda: judged.Qrels.of(QRELS),
    "Run": lambda: sample.runs()[0],
    "Topics": sample.topics,
    "agree": lambda: judged.agree(QRELS, OTHER),
    "advise": lambda: judged.advise(QRELS, RUNS),
    "compare": lambda: judged.compare(QRELS, RUNS),
    "orders": lambda: judged.evaluate(QRELS, RUNS, ["AP", "P@5"]).orders(),
    "curve": lambda: judged.curve(QRELS, RUNS, "nDCG"),
    "precision_recall": lambda: judged.precision_recall(QRELS, RUNS),
    "diff": lambda: judged.diff(QRELS, OLD, NEW),
    "disagreement": lambda: judged.disagree(QRELS, RUNS, ["nDCG@5", "AP"]),
    "matrix": lambda: judged.matrix(QRELS, RUNS),
    "review": lambda: judged.review(QRELS, RUNS),
    "stages": lambda: judged.stages(QRELS, OLD, NEW),
    "tradeoff": lambda: judged.evaluate(QRELS, RUNS, "AP").tradeoff({name: {"ms": 1.0} for name in RUNS}),
    "evaluate": lambda: judged.evaluate(QRELS, RUNS),
    "estimates": lambda: judged.evaluate(QRELS, RUNS).estimates(),
    "explain": lambda: judged.scoring.explanation.explain_list(judged.judge(QRELS, OLD), "nDCG@5", "q1"),
    "compare_tools": lambda: judged.compare_tools(QRELS, OLD, "q1", "nDCG@5"),
    "gate": lambda: judged.gate(QRELS, OLD, NEW, CHECKS),
    "GateConfig": lambda: CHECKS,
    "judge": lambda: judged.judge(QRELS, OLD),
    "parse": lambda: judged.measures.parse("nDCG(gain=exp2)@10"),
    "report": lambda: judged.report(QRELS, RUNS),
    "by_slice": lambda: judged.evaluate(QRELS, RUNS).by_slice(judged.slice_topics(KINDS, "kind")),
    "friedman": lambda: judged.stats.friedman(X),
    "anova": lambda: judged.stats.anova(X),
    "tukey_hsd": lambda: judged.stats.tukey_hsd(X),
    "paired_test": lambda: judged.stats.paired_test(X[:, 0], X[:, 1]),
    "effect_sizes": lambda: judged.stats.effect_sizes(X[:, 0], X[:, 1]),
    "plan": lambda: judged.stats.plan(X, difference=0.1),
    "reliability": lambda: judged.stats.reliability(X),
    "leave_one_out": lambda: judged.leave_one_out(QRELS, RUNS, "AP"),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_result_survives(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = PUBLIC[name]()
    for made in through(given):
        assert type(made) is type(given)
        assert repr(made) == repr(given)
        if hasattr(given, "to_dict"):
            assert str(made.to_dict()) == str(given.to_dict())
