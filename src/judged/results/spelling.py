"""Other spellings of choices, options, and parameters, for Python and the command line."""

from __future__ import annotations

import inspect
import re
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_OTHER_CHOICES = {
    "t": "ttest pairedt pairedttest student students studentst studentsttest",
    "randomization": "permutation permutationtest randomizationtest fisher fisherrandomization",
    "wilcoxon": "signedrank wilcoxonsignedrank",
    "sign": "signtest",
    "tukey": "tukeyhsd hsd",
    "bh": "benjaminihochberg fdr fdrbh",
    "by": "benjaminiyekutieli fdrby",
    "bonferroni": "bonf",
}
"""Other names of choices, without hyphens and blanks."""
OTHER_NAMES = {
    "as-of": "today reference-date reference-day",
    "freshness-bands": "bands age-bands",
    "digits": "decimals precision round rounding places decimal-places float-format",
    "min-difference": "delta min-delta min-diff mindiff epsilon threshold minimum",
    "margin": "delta fail-under min-delta tolerance equivalence equivalence-margin threshold noninferiority-margin",
    "level": "confidence confidence-level conf-level conf ci-level",
    "alpha": "level significance significance-level sig confidence confidence-level p-value p-threshold",
    "rel": "level rel-level relevance-level relevance relevance-threshold min-rel min-relevance min-grade grade",
    "measure": "metric metrics measures m eval-metric k cutoff at",
    "measures": "metric metrics measure eval-metric eval-metrics",
    "slicing": "by slices slice attributes groups",
    "cutoff": "k at top top-k topk rank depth",
    "to": "k cutoff top-k max-rank",
    "depth": "k cutoff top-k topk max-rank max-depth",
    "limit": "top worst best show shown max n-topics head",
    "texts": "docs corpus titles documents passages collection doc-texts",
    "documents": "docs corpus texts collection",
    "queries": "query-file queries-file query topics-file topic-file texts-of-topics",
    "where": "topics filter subset select only query-id query-ids qid qids topic topic-ids",
    "topic": "topics query query-id query-ids qid qids id",
    "per-topic": "per-query by-topic by-query per-topics topicwise all-topics q",
    "pairs": "all-pairs pairwise",
    "algorithm": "method fusion how",
    "normalize": "norm normalise normalization normalisation scale",
    "folds": "cv n-splits splits",
    "weight": "weights w alpha",
    "rrf-k": "k rank-constant",
    "test": "method statistical-test stat-test significance-test hypothesis-test stat",
    "correction": "adjust adjustment p-adjust padjust multiple-testing multiple-comparisons corrections method",
    "baseline": "control reference base against baseline-run reference-run baseline-system",
    "format": "json csv latex markdown html table output-format out-format fmt form type as-json",
    "output": "out save outfile output-file save-to to file",
    "seed": "random-state random-seed rng rng-seed",
    "resamples": "n-resamples permutations n-permutations iterations draws samples samples-of-topics",
    "attributes": "attrs metadata features topic-attributes query-attributes categories",
    "by": "slice group-by groupby facet facets slice-by attribute",
    "min-topics": "minimum min-size min-queries least",
    "min-loss": "minimum min-difference delta",
    "ties": "tie tie-breaking tie-break tiebreak ties-policy",
    "fdr": "rate false-discovery-rate q-value",
    "ci": "interval intervals confidence-interval",
    "higher-is-better": "more-is-better maximize maximise",
    "n": "num-topics n-topics topics sample-size",
    "difference": "delta effect effect-size",
    "sd": "std stddev standard-deviation",
    "config": "configuration settings gate-config",
    "weights": "weight traffic",
    "as": "dialect tool tools compare-with",
    "costs": "cost-file latency",
    "judge": "assessor annotator rater",
}
"""Other names of options and parameters."""


def _normalize(name: str) -> str:
    """Remove differences that do not matter: case, hyphens, spaces, and z for s."""
    return re.sub(r"[\W_]", "", name.casefold()).replace("iz", "is")


_CHOICE_BY_SPELLING = {_normalize(other): name for name, others in _OTHER_CHOICES.items() for other in others.split()}


def canonical_name(value: str, choices: Iterable[str]) -> str:
    """Return the choice that a spelling means, or the spelling itself.

    >>> choices = ["t", "holm", "randomized-tukey", "bh"]
    >>> [canonical_name(name, choices) for name in ("t-test", "Holm", "Randomized Tukey", "x")]
    ['t', 'holm', 'randomized-tukey', 'x']
    """
    names = list(choices)
    if value in names:
        return value
    name_by_key = {_normalize(name): name for name in names}
    key = _normalize(value)
    other_name = _CHOICE_BY_SPELLING.get(key, "")
    return name_by_key.get(key, other_name if other_name in names else value)


def use_one_of(names: Iterable[str]) -> str:
    """Return the fix that names the possible values.

    >>> use_one_of(["holm", "bh"]), use_one_of(["holm"])
    ('use one of holm, bh', 'use holm')
    """
    texts = list(names)
    return f"use {texts[0]}" if len(texts) == 1 else f"use one of {', '.join(texts)}"


def one_of(noun: str, value: str, choices: Iterable[str]) -> str:
    """Return the choice that a spelling means.

    >>> one_of("correction", "Benjamini-Hochberg", ["holm", "bh"])
    'bh'

    Raises
    ------
    InputError
        If there is no such choice.
    """
    names = list(choices)
    name = canonical_name(value, names) if isinstance(value, str) else value  # pyright: ignore[reportUnnecessaryIsInstance]
    if name not in names:
        from difflib import get_close_matches  # only needed for errors

        close = get_close_matches(str(value).casefold(), names, 1)
        fix = f"did you mean {close[0]}? One of {', '.join(names)}" if close else use_one_of(names)
        raise InputError(f"unknown {noun}: {value!r}", fix=fix)
    return name


def hint(name: str, arguments: Mapping[str, Any], parameters: Iterable[str]) -> str:
    """Return a message for the first unknown parameter of a call that resembles another one; empty if there is none.

    >>> hint("evaluate", {"metrics": ["AP"]}, ["qrels", "runs", "measures"])
    "evaluate() got an unexpected keyword argument 'metrics': write measures"
    """
    names = list(parameters)
    for argument in arguments:
        option = argument.replace("_", "-")
        matches = [name for name in names if option in OTHER_NAMES.get(name.replace("_", "-"), "").split()]
        if argument not in names and matches:
            return f"{name}() got an unexpected keyword argument {argument!r}: write {', or '.join(matches)}"
    return ""


def with_parameter_hints(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function so that the error of an unknown parameter suggests the right one."""
    parameters = inspect.signature(function).parameters

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if kwargs.keys() - parameters and (problem := hint(function.__name__, kwargs, parameters)):
            raise TypeError(problem)
        return function(*args, **kwargs)

    return call
