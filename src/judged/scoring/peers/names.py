"""Parsers of the measure names of other tools.

A parser gets a name and the distinct grades of the qrels. It returns the equivalent measures of `judged`, or None if
the tool does not have the name. The caller then parses it as a name of `judged`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from judged.errors import JudgedError, MeasureError
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import find, normalize_name, parse, parse_many

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged.scoring.peers.trec_eval import Version


NameParser: TypeAlias = "Callable[[str, Sequence[float]], tuple[Measure, ...] | None]"

GDEVAL = {
    "ndcg@k": "nDCG(gain=exp2,undefined=skip)",
    "err@k": "ERR(max=4,undefined=skip)",
    "ndcg": "nDCG(gain=exp2,undefined=skip)@20",
    "err": "ERR(max=4,undefined=skip)@20",
}
"""Columns of gdeval. ``undefined=skip`` excludes topics without a positive grade, as gdeval does."""

MSMARCO = {"mrr@k": "RR"}

BEIR = {
    "ndcg@k": "nDCG",
    "map@k": "AP",
    "recall@k": "R",
    "p@k": "P",
    "mrr@k": "RR",
    "r_cap@k": "RelP",
    "recall_cap@k": "RelP",
    "hole@k": "Hole",
    "accuracy@k": "Success",
    "top_k_accuracy@k": "Success",
}

NDEVAL = (
    *(f"{name}@5,10,20" for name in ("ERR-IA", "nERR-IA", "alpha-DCG", "alpha-nDCG")),
    *("NRBP", "nNRBP", "MAP-IA", "P-IA@5,10,20", "strec@5,10,20"),
)
"""Columns of ndeval in its order; they are aliases of measures of `judged`."""

_RANX = re.compile(r"(?P<name>[a-z][a-z0-9_-]*?)(?:[@.](?P<number>[0-9]+))?(?:-l(?P<level>-?[0-9]+))?")
_NO_CUTOFF = 2**53  # a cutoff beyond the end of any ranking


def table_parser(table: Mapping[str, str]) -> NameParser:
    """Return a parser for the names in a table; ``name@k`` matches the name with any cutoffs.

    >>> table_parser({"ndcg@k": "nDCG(gain=exp2)"})("NDCG @ 5,10", ())
    (nDCG(gain=exp2)@5, nDCG(gain=exp2)@10)
    """

    def read(name: str, grades: Sequence[float]) -> tuple[Measure, ...] | None:
        del grades
        head, separator, cutoffs = name.partition("@")
        measure = table.get(normalize_name(head.strip()) + ("@k" if separator else ""))
        return None if measure is None else parse_many(measure + separator + cutoffs)

    return read


def trec_eval_parser(version: Version) -> NameParser:
    """Return a parser for the values of trec_eval's ``-m``, including nicknames and parameters."""

    def read(name: str, grades: Sequence[float]) -> tuple[Measure, ...]:
        del grades
        from judged.scoring.peers.trec_eval import USAGE, TrecEvalError, TrecEvalOptions, expand

        try:
            lines = expand(name, dialect=version)
        except TrecEvalError as error:
            if error.code != USAGE:
                raise MeasureError(str(error)) from None
            rounding = TrecEvalOptions(dialect=version).rounding
            return tuple(_set_rounding(measure, rounding) for measure in parse_many(name))
        measures = tuple(line.measure for line in lines if line.measure is not None)
        if not measures:
            raise MeasureError(f"{name} is text, not a score. Fix: print it with 'judged trec_eval'")
        return measures

    return read


def _set_rounding(measure: Measure, rounding: str) -> Measure:
    return measure.replace(rounding=rounding) if hasattr(measure, "rounding") else measure


_RANX_BINARY = {
    "hits": ("NumRelRet", "NumRelRet@{}"),
    "hit_rate": (f"Success@{_NO_CUTOFF}", "Success@{}"),
    "precision": ("SetP", "P@{}"),
    "recall": ("SetR", "R@{}"),
    "f1": ("SetF", "F@{}"),
    "r-precision": ("Rprec", "Rprec"),
    "bpref": ("Bpref", "Bpref"),
    "mrr": ("RR", "RR@{}"),
    "map": ("AP", "AP@{}"),
}
"""Measures without and with a cutoff."""

_RANX_GRADED = {
    "dcg": ("DCG", "linear"),
    "dcg_burges": ("DCG", "exp2"),
    "ndcg": ("nDCG", "linear"),
    "ndcg_burges": ("nDCG", "exp2"),
}


def parse_ranx_name(name: str, grades: Sequence[float]) -> tuple[Measure, ...] | None:
    """Parse a name of ranx: ``ndcg@10``, ``map-l2``, ``rbp.95``. With a level, lower grades have gain 0.

    >>> parse_ranx_name("ndcg@10-l2", [0, 1, 2]), parse_ranx_name("f1-l2", []), parse_ranx_name("mrr@5", [])
    ((nDCG(gain={0:0,1:0,2:2})@10,), (SetF(rel=2),), (RR@5,))
    """
    if (rbp := parse_ranx_rbp(name, grades)) is not None:
        measure, factor = rbp
        if factor == 1.0:
            return (measure,)
        raise MeasureError(
            f"ranx's {name} does not scale grades, so its maximum is {factor:g}. Fix: write {measure}, which is ranx's"
            f" score divided by {factor:g}, or call judged.scoring.compat.ranx.evaluate"
        )
    match = _RANX.fullmatch(name.strip())
    if match is None:
        return None
    level, cutoff = int(match["level"] or 1), int(match["number"] or 0)
    if match["name"] in _RANX_BINARY:
        without_cutoff, with_cutoff = _RANX_BINARY[match["name"]]
        name = with_cutoff.format(cutoff) if cutoff else without_cutoff
        return tuple(measure.replace(rel=level) for measure in parse_many(name))
    if match["name"] in _RANX_GRADED:
        measure, gain = _RANX_GRADED[match["name"]]
        return (find(measure)[0].cls(gain=_gain_from(level, gain, grades), cutoff=cutoff or None),)
    return None


def parse_ranx_rbp(name: str, grades: Sequence[float]) -> tuple[Measure, float] | None:
    """Parse ``rbp.95`` to a measure and the factor from its score to ranx's score. Return None for other names.

    >>> parse_ranx_rbp("rbp.95", [0, 1]), parse_ranx_rbp("rbp.8-l2", [0, 1, 2])
    ((RBP(p=0.95), 1.0), (RBP(p=0.8,gain={0:0,1:0,2:2},max=2), 2.0))
    """
    match = _RANX.fullmatch(name.strip())
    if match is None or match["name"] != "rbp" or not match["number"]:
        return None
    rbp, persistence = find("RBP")[0].cls, float(f"0.{match['number']}")
    level, highest = int(match["level"] or 1), float(max((1.0, *grades)))
    if level == 1 and highest == 1.0:
        return rbp(p=persistence), 1.0
    gain = _gain_from(level, "linear", grades)
    return rbp(p=persistence, gain="graded" if gain == "linear" else gain, max=highest), highest


def _gain_from(level: int, gain: str, grades: Sequence[float]) -> str | dict[float, float]:
    """Return a gain table that is 0 below `level`, or the name of the gain if no grade is below it."""
    if not any(0 < grade < level for grade in grades):
        return gain
    gains = {grade: 2**grade - 1 if gain == "exp2" else grade for grade in grades}
    return {grade: gain_value if grade >= level else 0.0 for grade, gain_value in gains.items()}


_CUTOFFS = "cutoffs: {}.5,10"
_GAINS = "the gain of each grade: {}.1=3,2=9"
_PARAMETER_SYNTAX: dict[str, str] = {
    **dict.fromkeys(("P", "recall", "ndcg_cut", "map_cut", "relative_P", "success", "P_avgjg", "unj"), _CUTOFFS),
    **dict.fromkeys(("G", "dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg"), _GAINS),
    **dict.fromkeys(("Rprec_mult", "Rprec_mult_avgjg"), "multiples of the number of relevant documents: {}.0.5,1"),
    "iprec_at_recall": "recall levels, with one line for each level: {}.0.1,0.5",
    "11pt_avg": "recall levels to average: {}.0.25,0.5,0.75",
    "relstring": "number of documents: {}.20",
    "utility": "4 coefficients, for returned relevant, returned nonrelevant, missed relevant, and other documents:"
    " {}.1,-1,0,0",
    "set_F": "the weight of recall, which is the square of beta: {}.0.5",
    "rbp": "the persistence, and the gain of each grade: {}.p=0.8 or {}.p=0.8,1=1,2=3",
    "rbp_resid": "the persistence: {}.p=0.8",
}
_CUTOFF_MEASURES = {name for name, form in _PARAMETER_SYNTAX.items() if form == _CUTOFFS}


def describe_parameters(name: str) -> str:
    """Return the syntax of trec_eval's parameters for a measure, or an empty text if it has none.

    >>> describe_parameters("ndcg_cut"), describe_parameters("map")
    ('cutoffs: ndcg_cut.5,10', '')
    """
    return _PARAMETER_SYNTAX.get(name, "").replace("{}", name)


def suggest_name(spec: str, names: Mapping[str, str], groups: Collection[str], later: Collection[str]) -> str:
    """Return a hint for an unknown name: the intended name, if it can be inferred, or all names."""
    root, _, parameters = spec.partition(".")
    if root in later:
        return f"{root} is not in trec_eval 9: omit --dialect trec_eval-9"
    if not parameters and (root in names or root in groups):
        syntax = describe_parameters(root)
        return f"write {root}" + (f", or add {syntax}" if syntax else "")
    suggestion = _suggest_by_prefix(spec, names) or _suggest_by_judged_name(spec, names)
    if suggestion:
        return suggestion
    names_by_lowercase = {name.casefold(): name for name in (*names, *groups)}
    matches = difflib.get_close_matches(root.casefold(), names_by_lowercase, 1, 0.6)
    if matches:
        return f"did you mean {names_by_lowercase[matches[0]]}" + (f".{parameters}" if parameters else "") + "?"
    excluded = ("prefs_", "runid", "num_q", "relstring")
    candidates = [name for name in names if not name.startswith(excluded) and not name.endswith("_avgjg")]
    return f"write one of {' '.join(candidates)}"


def _suggest_by_prefix(spec: str, names: Mapping[str, str]) -> str:
    # a name as trec_eval prints it, ``P_10``, or in another case, ``MAP``
    text = spec.casefold()
    matches = [name for name in names if re.match(rf"{re.escape(name.casefold())}(?:[_.@:](?:[-+.0-9]|p=)|$)", text)]
    if not matches:
        return ""
    name = max(matches, key=len)
    parameters = spec[len(name) + 1 :]
    if not parameters:
        return f"did you mean {name}?"
    if parameters.isdecimal() and f"{name}_cut" in names:
        return f"write {name}_cut.{parameters}"
    if name not in _PARAMETER_SYNTAX:
        return f"write {name}, which takes no parameters"
    return f"write {name}.{parameters}"


def _suggest_by_judged_name(spec: str, names: Mapping[str, str]) -> str:
    # a name of `judged`: ``RR``, ``nDCG@10``, ``precision``
    match = re.fullmatch(r"([^@(.]+)(?:@([0-9]+))?", spec)
    try:
        judged_name = find(match[1])[0].name if match else parse(spec).entry.name
    except JudgedError:
        return ""
    tool_names = [name for name, judged_measure in names.items() if judged_measure == judged_name]
    if match is None or not tool_names:
        return f"use 'judged evaluate -m \"{spec}\"'; trec_eval does not compute {spec}"
    with_cutoff = [name for name in tool_names if name in _CUTOFF_MEASURES]
    without_cutoff = [name for name in tool_names if name not in _CUTOFF_MEASURES]
    if match[2]:
        unsupported = f"use 'judged evaluate -m {spec}'; trec_eval does not compute {spec}"
        return f"write {with_cutoff[0]}.{match[2]}" if with_cutoff else unsupported
    return f"did you mean {(without_cutoff or with_cutoff)[0]}?"


def check_names(names: object, noun: str, example: str) -> list[str]:
    """Return the names as a list. Raise an error if one is not a string."""
    name_list: list[Any] = [names] if isinstance(names, str) or not isinstance(names, Iterable) else [*names]
    for name in name_list:
        if not isinstance(name, str):
            raise MeasureError(f"a {noun} must be a name, got {name!r}. Fix: use strings, such as {example}")
    return name_list
