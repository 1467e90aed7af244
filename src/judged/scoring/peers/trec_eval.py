"""Table of the measures of trec_eval and the equivalent measures of `judged`, in trec_eval's order of output.

A measure has one or more output lines: ``P`` has ``P_5``, ``P_10``, ... Measure objects are created on first access.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.errors import JudgedError
from judged.results.types import cached_property
from judged.scoring.measures.grammar import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from judged.scoring.measures.base import Measure


_SPACE = r"[ \t\n\v\f\r]*"
_INTEGER = re.compile(_SPACE + r"([+-]?[0-9]+)")
_REAL = re.compile(
    _SPACE + r"([+-]?)(?:(?P<hex>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<word>inf(?:inity)?|nan))",
    re.IGNORECASE,
)
_LONG_LIMIT = 2**63


def atol(text: str) -> int:
    """Parse an integer like C's ``atol``: ignore trailing text, and return 0 without digits.

    >>> atol("23.4"), atol(" -1x"), atol("2e1"), atol("many"), atol("")
    (23, -1, 2, 0, 0)
    """
    match = _INTEGER.match(text)
    return max(-_LONG_LIMIT, min(int(match[1]), _LONG_LIMIT - 1)) if match else 0


def atof(text: str) -> float:
    """Parse a number like C's ``atof``: ignore trailing text, and return 0 without a number.

    >>> atof(".5"), atof("1,5"), atof("0x1A"), atof("abc"), atof("-1e-2x")
    (0.5, 1.0, 26.0, 0.0, -0.01)
    """
    match = _REAL.match(text)
    if match is None:
        return 0.0
    digits = match["decimal"] or match["word"]
    try:
        value = float(digits) if digits else float.fromhex(match["hex"])
    except OverflowError:
        value = float("inf")
    return -value if match[1] == "-" else value


USAGE = 1
"""Exit code for wrong options or an unknown measure."""
INPUT = 2
"""Exit code for an unreadable file or invalid parameters."""
CALCULATION = 4
"""Exit code for a measure that cannot be computed on the input."""
NO_TOPICS = 7
"""Exit code if there is no topic to evaluate."""
ZSCORES = 255
"""Exit code for an unreadable file of means."""


class TrecEvalError(JudgedError):
    """Error that ends the command with an exit code, after the output so far."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


Version: TypeAlias = Literal["trec_eval-10", "trec_eval-9"]
ValueKind: TypeAlias = Literal["float", "integer", "text"]
LineScope: TypeAlias = Literal["both", "summary", "topics"]
QrelsFormat: TypeAlias = Literal["any", "qrels", "qrels_jg", "prefs"]

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
RECALLS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FACTORS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)

_MAX_COLLECTION = 2**53  # largest integer up to which a double represents every integer
_PAIR_LIST = re.compile(r"[^=,]*=[^=,]*(?:,[^=,]*=[^=,]*)*")
_LEVEL = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")


@dataclass(frozen=True)
class OutputLine:
    """Line of trec_eval's output, with its measure."""

    name: str  # printed name: `P_5`
    root: str  # name of the measure: `P`
    # judged_name, parameters: name and parameters of the measure of `judged`; for a text line, the kind and length
    judged_name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kind: ValueKind = "float"  # format of the value
    scope: LineScope = "both"  # whether the line is printed for topics, in the summary, or both
    format: QrelsFormat = "qrels"  # required format of the judgments

    @cached_property
    def measure(self) -> Measure | None:
        """The measure of `judged`; None for a text line."""
        if self.kind == "text":
            return None
        entry, values = find(self.judged_name)
        try:
            return entry.cls(**{**values, **self.parameters})
        except ValueError as error:
            raise TrecEvalError(f"{self.name}: {error}", INPUT) from None

    @property
    def summary_only(self) -> bool:
        """Whether the line is only in the summary."""
        return self.scope == "summary"


@dataclass(frozen=True)
class TrecEvalOptions:
    """Command-line options that affect measures."""

    level: float = 1.0
    collection: int = 0
    dialect: Version = "trec_eval-10"

    @property
    def rounding(self) -> str:
        """Rounding of recall points to numbers of documents."""
        return "nearest" if self.dialect == "trec_eval-10" else "up"


ParameterParser: TypeAlias = "Callable[[_Row, str | None, TrecEvalOptions], list[OutputLine]]"


@dataclass(frozen=True)
class _Row:
    """Measure of trec_eval, with its equivalent in `judged` and the parser of its parameters."""

    name: str
    judged_name: str
    parse: ParameterParser
    defaults: tuple[float, ...] = ()
    kind: ValueKind = "float"
    scope: LineScope = "both"
    format: QrelsFormat = "qrels"
    is_new: bool = False
    uses_level: bool = True

    def line(self, name: str, parameters: Mapping[str, Any], options: TrecEvalOptions) -> OutputLine:
        """Create an output line, with option ``-l`` as the parameter `rel` if the measure has one."""
        if self.kind != "text" and self.uses_level and options.level != 1:
            entry, _ = find(self.judged_name)
            if any(parameter.name == "rel" for parameter in entry.all_parameters):
                parameters = {**parameters, "rel": options.level}
        return OutputLine(name, self.name, self.judged_name, parameters, self.kind, self.scope, self.format)


def _no_parameters(row: _Row, parameters: str | None, options: TrecEvalOptions) -> list[OutputLine]:
    del parameters  # trec_eval ignores the parameters of a measure without parameters
    return [row.line(row.name, {}, options)]


def _parse_cutoffs(row: _Row, parameters: str | None, options: TrecEvalOptions) -> list[OutputLine]:
    cutoffs = row.defaults if parameters is None else sorted(map(atol, parameters.split(",")))
    if cutoffs[0] <= 0:
        raise TrecEvalError(f"{row.name}.{parameters}: a cutoff must be 1 or more", INPUT)
    _check_distinct(cutoffs, row, parameters)
    return [row.line(f"{row.name}_{cutoff}", {"cutoff": cutoff}, options) for cutoff in cutoffs]


def _point_parser(parameter: str, *, has_rounding: bool = False) -> ParameterParser:
    # One line per number. trec_eval cuts the suffix of its name, with two decimals, to nine characters.

    def read(row: _Row, parameters: str | None, options: TrecEvalOptions) -> list[OutputLine]:
        points = row.defaults if parameters is None else sorted(map(atof, parameters.split(",")))
        _check_distinct(points, row, parameters)
        rounding = {"rounding": options.rounding} if has_rounding else {}
        return [
            row.line(f"{row.name}_{point:3.2f}"[: len(row.name) + 9], {parameter: point, **rounding}, options)
            for point in points
        ]

    return read


def _parse_numbers(row: _Row, parameters: str | None, options: TrecEvalOptions) -> list[OutputLine]:
    values = row.defaults if parameters is None else tuple(map(atof, parameters.split(",")))
    return [row.line(_with_suffix(row.name, parameters), _NUMBER_PARAMETERS[row.name](values, options), options)]


def _parse_gains(row: _Row, parameters: str | None, options: TrecEvalOptions) -> list[OutputLine]:
    if parameters is None:
        return [row.line(row.name, {}, options)]
    pairs = _parse_pairs(row, parameters)
    levels = {atol(name): gain for name, gain in pairs.items() if _LEVEL.fullmatch(name)}
    if any(level < 0 for level in levels):
        problem = "a gain requires a level of 0 or more (-1 and -2 mean unjudged)"
        raise TrecEvalError(f"{row.name}.{parameters}: {problem}", INPUT)
    return [row.line(f"{row.name}_{parameters}", {"gain": levels} if levels else {}, options)]


def _parse_persistence(row: _Row, parameters: str | None, options: TrecEvalOptions) -> list[OutputLine]:
    # `p` is the persistence; the other names are levels with their gains
    pairs = {} if parameters is None else _parse_pairs(row, parameters, "p=0.8")
    values: dict[str, Any] = {"p": pairs.get("p", 0.9)}
    levels = {atol(name): gain for name, gain in pairs.items() if _LEVEL.fullmatch(name)}
    if row.name == "rbp":
        values |= {"gain": levels or "graded", "max": "topic"}
    return [row.line(_with_suffix(row.name, parameters), values, options)]


def _parse_pairs(row: _Row, parameters: str, example: str = "1=3,2=9") -> dict[str, float]:
    if not _PAIR_LIST.fullmatch(parameters):
        pair = f"p={parameters}" if example.startswith("p") and _NUMBER.fullmatch(parameters) else example
        fix = f"write {row.name}.{pair}"
        fix += f", or {row.name}_cut.{parameters} for a cutoff" if row.name == "ndcg" and parameters.isdecimal() else ""
        raise TrecEvalError(
            f"{row.name}.{parameters}: the parameters must be pairs of the form NAME=VALUE. Fix: {fix}", INPUT
        )
    pairs = [pair.split("=") for pair in parameters.split(",")]
    return {name: atof(value) for name, value in reversed(pairs)}  # trec_eval uses the first of two equal names


def _with_suffix(name: str, parameters: str | None) -> str:
    return name if parameters is None else f"{name}_{parameters}"


def _check_distinct(values: Iterable[float], row: _Row, parameters: str | None) -> None:
    values = list(values)
    if len(set(values)) < len(values):
        raise TrecEvalError(f"{row.name}.{parameters}: a value occurs twice", INPUT)


def _utility_parameters(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    if len(values) != 4:
        problem = f"utility takes 4 coefficients, got {len(values)}"
        raise TrecEvalError(f"{problem}. Fix: write utility.1,-1,0,0", CALCULATION)
    if options.collection > _MAX_COLLECTION:
        problem = f"-N {options.collection}: the collection may have at most {_MAX_COLLECTION} documents"
        raise TrecEvalError(f"{problem}. Fix: use the size of the collection, or omit -N", INPUT)
    return {**dict(zip("abcd", values, strict=True)), "n": options.collection}


def _points_parameters(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    return {"points": values, "rounding": options.rounding}


def _weight_parameters(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    # trec_eval's weight is the square of beta. Prefer the neighbor of the square root whose square is exactly it.
    del options
    weight = values[0]
    if not 0 <= weight < math.inf:
        raise TrecEvalError(f"set_F.{weight:g}: the weight of recall must be 0 or more", INPUT)
    root = math.sqrt(weight)
    candidates = (root, math.nextafter(root, 0), math.nextafter(root, math.inf))
    return {"beta": next((beta for beta in candidates if beta * beta == weight), root)}


def _length_parameters(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    del options
    return {"length": max(0, int(values[0])) if math.isfinite(values[0]) else 0}


_NUMBER_PARAMETERS: dict[str, Callable[[tuple[float, ...], TrecEvalOptions], dict[str, Any]]] = {
    "relstring": _length_parameters,
    "utility": _utility_parameters,
    "11pt_avg": _points_parameters,
    "set_F": _weight_parameters,
}

_ROWS = (
    _Row("runid", "runid", _no_parameters, kind="text", scope="summary", format="any"),
    _Row("num_q", "NumQ", _no_parameters, kind="integer", scope="summary", format="any"),
    _Row("num_ret", "NumRet", _no_parameters, kind="integer"),
    _Row("num_rel", "NumRel", _no_parameters, kind="integer"),
    _Row("num_rel_ret", "NumRelRet", _no_parameters, kind="integer"),
    _Row("map", "AP", _no_parameters),
    _Row("gm_map", "GMAP", _no_parameters, scope="summary"),
    _Row("Rprec", "Rprec", _no_parameters),
    _Row("bpref", "Bpref", _no_parameters),
    _Row("recip_rank", "RR", _no_parameters),
    _Row("iprec_at_recall", "IPrec", _point_parser("recall", has_rounding=True), RECALLS),
    _Row("P", "P", _parse_cutoffs, CUTS),
    _Row("relstring", "relstring", _parse_numbers, (10.0,), kind="text", scope="topics"),
    _Row("recall", "R", _parse_cutoffs, CUTS),
    _Row("infAP", "InfAP", _no_parameters),
    _Row("gm_bpref", "GMBpref", _no_parameters, scope="summary"),
    _Row("Rprec_mult", "RprecMult", _point_parser("factor"), FACTORS),
    _Row("utility", "Utility", _parse_numbers, (1.0, -1.0, 0.0, 0.0)),
    _Row("11pt_avg", "AP11", _parse_numbers, RECALLS),
    _Row("binG", "BinG", _no_parameters),
    _Row("G", "G", _parse_gains),
    _Row("dcg", "DCG", _parse_gains, is_new=True),
    _Row("ideal_dcg", "IdealDCG", _parse_gains, is_new=True),
    _Row("ndcg", "nDCG", _parse_gains),
    _Row("ndcg_rel", "nDCGrel", _parse_gains),
    _Row("Rndcg", "RnDCG", _parse_gains),
    _Row("ndcg_cut", "nDCG", _parse_cutoffs, CUTS),
    _Row("map_cut", "AP", _parse_cutoffs, CUTS),
    _Row("relative_P", "RelP", _parse_cutoffs, CUTS),
    _Row("success", "Success", _parse_cutoffs, (1, 5, 10)),
    _Row("set_P", "SetP", _no_parameters),
    _Row("set_relative_P", "SetRelP", _no_parameters),
    _Row("set_recall", "SetR", _no_parameters),
    _Row("set_map", "SetAP", _no_parameters),
    _Row("set_F", "SetF", _parse_numbers, (1.0,)),
    _Row("num_nonrel_judged_ret", "NumNonrelRet", _no_parameters, kind="integer"),
    _Row("prefs_num_prefs_poss", "prefs_num_prefs_poss", _no_parameters, kind="integer", format="prefs"),
    _Row("prefs_num_prefs_ful", "prefs_num_prefs_ful", _no_parameters, kind="integer", format="prefs"),
    _Row("prefs_num_prefs_ful_ret", "prefs_num_prefs_ful_ret", _no_parameters, kind="integer", format="prefs"),
    *(
        _Row(f"prefs_{name}", f"prefs_{name}", _no_parameters, format="prefs")
        for name in (
            *("simp", "pair", "avgjg", "avgjg_Rnonrel", "simp_ret", "pair_ret", "avgjg_ret", "avgjg_Rnonrel_ret"),
            *("simp_imp", "pair_imp", "avgjg_imp"),
        )
    ),
    _Row("map_avgjg", "map_avgjg", _no_parameters, format="qrels_jg"),
    _Row("P_avgjg", "P_avgjg", _parse_cutoffs, CUTS, format="qrels_jg"),
    _Row("Rprec_mult_avgjg", "Rprec_mult_avgjg", _point_parser("factor"), FACTORS, format="qrels_jg"),
    _Row("yaap", "Yaap", _no_parameters),
    _Row("rbp", "RBP", _parse_persistence, is_new=True, uses_level=False),
    _Row("rbp_resid", "RBPResidual", _parse_persistence, is_new=True),
    _Row("unj", "Unjudged", _parse_cutoffs, (5, 10, 20), is_new=True),
)
_TABLE = {row.name: row for row in _ROWS}

ALL = tuple(_TABLE)
"""Names of all measures of trec_eval 10, in its order of output."""

_OFFICIAL = (
    *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret"),
    *("map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P"),
)
_SETS = ("set_P", "set_recall", "set_relative_P", "set_map", "set_F")
_PREFS = tuple(name for name in ALL if name.startswith("prefs_"))
NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": _OFFICIAL,
    "set": ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", *_SETS),
    "all_trec": tuple(
        row.name for row in _ROWS if row.format in {"any", "qrels"} and row.name not in {"yaap", "dcg", "ideal_dcg"}
    ),
    "all_prefs": ("runid", "num_q", *_PREFS),
    "prefs": ("runid", "num_q", *_PREFS[:6]),
    "qrels_jg": ("runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"),
}
"""Names of groups of measures."""


def expand(*specs: str, level: float = 1.0, collection: int = 0, dialect: Version = "trec_eval-10") -> list[OutputLine]:
    """Return the output lines for the values of ``-m``, in trec_eval's order.

    >>> [line.name for line in expand("P.10,5", "ndcg.1=3,2=9", "P.20")]
    ['P_5', 'P_10', 'ndcg_1=3,2=9']
    >>> [str(line.measure) for line in expand("P.5", "recip_rank", level=2)]
    ['RR(rel=2)', 'P(rel=2)@5']
    """
    # If a measure has parameters in several values, the first ones are used. Values without parameters, such as a
    # nickname, do not reset them.
    selected: set[str] = set()
    parameters_by_name: dict[str, str] = {}
    for spec in specs:
        name, parameters = split_spec(spec)
        selected.update(roots(spec, dialect))
        if parameters is not None:
            parameters_by_name.setdefault(name, parameters)
    options = TrecEvalOptions(level, collection, dialect)
    rows = [row for row in _ROWS if row.name in selected]
    return [line for row in rows for line in row.parse(row, parameters_by_name.get(row.name), options)]


def measure_names(dialect: Version) -> tuple[str, ...]:
    """Return the names of the measures in a version of trec_eval, in its order."""
    return tuple(row.name for row in _ROWS if dialect == "trec_eval-10" or not row.is_new)


def split_spec(spec: str) -> tuple[str, str | None]:
    """Split ``name.parameters`` at the first dot."""
    name, separator, parameters = spec.partition(".")
    return name, parameters if separator else None


def roots(spec: str, dialect: Version = "trec_eval-10") -> tuple[str, ...]:
    """Return the names of the measures for one value of ``-m``, without checking the parameters.

    >>> roots("set_F.0.5"), len(roots("all_trec")), len(roots("all_trec", "trec_eval-9"))
    (('set_F',), 37, 34)
    """
    name, parameters = split_spec(spec)
    available = measure_names(dialect)
    selected = [root for root in NICKNAMES.get(name, (name,)) if root in available]
    if parameters == "" or not selected:
        from judged.scoring.peers.names import suggest_name

        judged_names = {root: _TABLE[root].judged_name for root in available}
        fix = suggest_name(spec, judged_names, NICKNAMES, set(_TABLE) - set(available))
        raise TrecEvalError(f"there is no measure {spec!r}. Fix: {fix}", USAGE)
    return tuple(selected)
