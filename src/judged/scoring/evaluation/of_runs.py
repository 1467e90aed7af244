"""Functions of scores, made into functions of qrels and runs: one definition gives both."""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from judged.data.qrels import Qrels
from judged.errors import JudgedWarning
from judged.results.spelling import hint
from judged.scoring.evaluation.dialects import dialect_of
from judged.scoring.evaluation.evaluate import evaluate
from judged.scoring.evaluation.inputs import measures_of, narrowed, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.results.notes import Note
    from judged.scoring.evaluation.scores import Scores

    Answered = TypeVar("Answered")

TESTED_MEASURES = ("nDCG@10", "AP")
"""Where nothing is said; few, for every measure that is tested is another chance to find something by luck."""

_FEW = 3
_RUNS = "qrels, runs\n    As `evaluate` takes them."
_MEASURES = "measures\n    As `evaluate` takes them; None: nDCG@10 and AP, or those of the dialect."
_POLICIES = "{}\n    Policies, as `evaluate` takes them."
_BLOCK = re.compile(r"\n(?=\S)")  # between parameters: what is said of each is indented
_GIVEN = {"scores", "qrels", "runs", "measures", "documents"}
_NAMING = {"measure", "x", "y"}  # parameters that name one of the measures


def scored(qrels: Any, runs: Any, measures: Any = None, **policies: Any) -> Scores:
    """Evaluate runs for a result that has its warnings among its own notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return evaluate(qrels, runs, _usual(policies.get("dialect")) if measures is None else measures, **policies)


def _usual(dialect: Any) -> tuple[str, ...]:
    """Take a dialect's own measures where they are few."""
    rules = dialect_of(dialect)
    count = len(rules.measures(list(rules.defaults), (0.0, 1.0))) if rules.defaults else 0
    return rules.defaults if 0 < count <= _FEW else TESTED_MEASURES


def of_runs(
    function: Callable[..., Answered],
    name: str,
    *,
    examples: str,
    measures: Any = None,
    prepare: Callable[[Qrels, dict[str, Any]], tuple[Qrels, tuple[Note, ...]]] | None = None,
) -> Callable[..., Answered]:
    """Make the function `name` of qrels and runs out of one of scores: it evaluates, and asks that function.

    It takes what `evaluate` and the function take. Whatever else the function has parameters for
    (``qrels``, ``runs``, ``documents``) it is given. ``measures`` are the default, or a function of the options that
    names them: then the new function has no such parameter. ``prepare`` may change the judgments first, and say so.
    """
    own = inspect.signature(function).parameters
    known = inspect.signature(evaluate).parameters
    front = [p for p in own.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in _GIVEN]
    options = [p for p in own.values() if p.kind is p.KEYWORD_ONLY and p.name not in _GIVEN]
    policies = [p for p in known.values() if p.kind is p.KEYWORD_ONLY and p.name not in {*own, "unjudged", "seed"}]
    policies += [known["documents"]] if "documents" in own else []
    asked = [] if callable(measures) else [known["measures"].replace(default=measures)]
    shape = inspect.Signature([known["qrels"], known["runs"], *front, *asked, *options, *policies])

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            bound = shape.bind(*args, **given)
        except TypeError as error:
            raise TypeError(hint(name, given, shape.parameters) or f"{name}() {error}") from None
        bound.apply_defaults()
        asking = dict(bound.arguments)
        judgments, runs = Qrels.of(asking.pop("qrels")), runs_of(asking.pop("runs"))
        judgments, notes = (judgments, ()) if prepare is None else prepare(judgments, asking)
        wanted = measures(asking) if callable(measures) else asking.pop("measures")
        how = {policy.name: asking.pop(policy.name) for policy in policies}
        judgments, lacking = narrowed(judgments, how.pop("where"), how["attributes"])
        besides = {"qrels": judgments, "runs": runs, "documents": how.get("documents")}
        told = {key: value for key, value in besides.items() if key in own}
        for key in _NAMING & {key for key, value in asking.items() if value is not None}:
            read = measures_of(asking[key], rel=how["rel"])  # as `evaluate` reads it
            asking |= {key: read[0]} if len(read) == 1 else {}
        scores = scored(judgments, runs, wanted, **how)
        return function(replace(scores, notes=(*notes, *lacking, *scores.notes)), **asking, **told)

    call.__signature__ = shape  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = _documented(function, [policy.name for policy in policies], examples, asked=bool(asked))
    return call


def _documented(function: Callable[..., Any], policies: list[str], examples: str, *, asked: bool) -> str:
    """Give the function's own page, with what is evaluated in place of the scores."""
    page, _, _ = (inspect.getdoc(function) or "").partition("\nExamples\n")
    before, title, rest = page.partition("Parameters\n----------\n")
    given, returns, after = rest.partition("\n\nReturns\n")
    own = [block for block in _BLOCK.split(given) if not set(block.partition("\n")[0].split(", ")) <= _GIVEN]
    parameters = (_RUNS, *([_MEASURES] if asked else []), *own, _POLICIES.format(", ".join(policies)))
    shown = f"\nExamples\n--------\n{inspect.cleandoc(examples)}\n"
    return before + title + "\n".join(parameters) + returns + after + shown
