"""The one table from trec_eval's names of measures to ours.

In the order in which trec_eval prints them. A measure stands for one or several printed lines: ``P`` for
``P_5``, ``P_10`` and so on. Ours are made when they are asked for, so that a name costs nothing.
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
_WHOLE = re.compile(_SPACE + r"([+-]?[0-9]+)")
_REAL = re.compile(
    _SPACE + r"([+-]?)(?:(?P<hex>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<word>inf(?:inity)?|nan))",
    re.IGNORECASE,
)
_LONGEST = 2**63


def atol(text: str) -> int:
    """Read a whole number as C's ``atol`` does.

    >>> atol("23.4"), atol(" -1x"), atol("2e1"), atol("many"), atol("")
    (23, -1, 2, 0, 0)
    """
    found = _WHOLE.match(text)
    return max(-_LONGEST, min(int(found[1]), _LONGEST - 1)) if found else 0


def atof(text: str) -> float:
    """Read a number as C's ``atof`` does.

    >>> atof(".5"), atof("1,5"), atof("0x1A"), atof("abc"), atof("-1e-2x")
    (0.5, 1.0, 26.0, 0.0, -0.01)
    """
    found = _REAL.match(text)
    if found is None:
        return 0.0
    digits = found["decimal"] or found["word"]
    try:
        value = float(digits) if digits else float.fromhex(found["hex"])
    except OverflowError:
        value = float("inf")
    return -value if found[1] == "-" else value


USAGE = 1
"""Wrong options, or a measure that does not exist."""
INPUT = 2
"""A file that cannot be read, or parameters that make no sense."""
CALCULATION = 4
"""A measure cannot be computed on this input."""
NO_TOPICS = 7
"""Nothing to evaluate."""
ZSCORES = 255
"""The file of means cannot be read."""


class TrecEvalError(JudgedError):
    """The command ends with this message and exit code, after what was printed so far."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


Dialect: TypeAlias = Literal["trec_eval-10", "trec_eval-9"]
Kind: TypeAlias = Literal["float", "integer", "text"]
Shown: TypeAlias = Literal["both", "summary", "topics"]
Format: TypeAlias = Literal["any", "qrels", "qrels_jg", "prefs"]

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
RECALLS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FACTORS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)

_LARGEST_COLLECTION = 2**53  # a double holds every whole number up to here
_PAIRS = re.compile(r"[^=,]*=[^=,]*(?:,[^=,]*=[^=,]*)*")
_LEVEL = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+")


@dataclass(frozen=True)
class Printed:
    """One line of trec_eval's output, and what computes it."""

    name: str  # as it is printed: `P_5`
    root: str  # the measure that it belongs to: `P`
    # ours, given: the name of our measure and its parameters. For lines of text only: what to print, and how much.
    ours: str
    given: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "float"  # how the value is written
    shown: Shown = "both"  # where the line stands: for each topic, in the summary, or both
    format: Format = "qrels"  # the form of judgments that it is computed from

    @cached_property
    def measure(self) -> Measure | None:
        """Our measure, made now; None for a line of text."""
        if self.kind == "text":
            return None
        entry, values = find(self.ours)
        try:
            return entry.cls(**{**values, **self.given})
        except ValueError as error:
            raise TrecEvalError(f"{self.name}: {error}", INPUT) from None

    @property
    def summary_only(self) -> bool:
        """Whether it has no line for each topic."""
        return self.shown == "summary"


@dataclass(frozen=True)
class TrecEvalOptions:
    """What the options say that goes into measures."""

    level: float = 1.0
    collection: int = 0
    dialect: Dialect = "trec_eval-10"

    @property
    def rounding(self) -> str:
        """How recall points become numbers of documents."""
        return "nearest" if self.dialect == "trec_eval-10" else "up"


Reader: TypeAlias = "Callable[[_Row, str | None, TrecEvalOptions], list[Printed]]"


@dataclass(frozen=True)
class _Row:
    """A measure of trec_eval: its name, ours, and how its parameters are read."""

    name: str
    ours: str
    read: Reader
    defaults: tuple[float, ...] = ()
    kind: Kind = "float"
    shown: Shown = "both"
    format: Format = "qrels"
    new: bool = False
    levels: bool = True

    def line(self, name: str, given: Mapping[str, Any], options: TrecEvalOptions) -> Printed:
        """Make one printed line; `rel` goes to every measure that knows one."""
        if self.kind != "text" and self.levels and options.level != 1:
            entry, _ = find(self.ours)
            if any(parameter.name == "rel" for parameter in entry.all_parameters):
                given = {**given, "rel": options.level}
        return Printed(name, self.name, self.ours, given, self.kind, self.shown, self.format)


def _plain(row: _Row, written: str | None, options: TrecEvalOptions) -> list[Printed]:
    del written  # trec_eval does not look at the parameters of a measure that takes none
    return [row.line(row.name, {}, options)]


def _cutoffs(row: _Row, written: str | None, options: TrecEvalOptions) -> list[Printed]:
    """Whole numbers in rising order, one line for each."""
    cuts = row.defaults if written is None else sorted(map(atol, written.split(",")))
    if cuts[0] <= 0:
        raise TrecEvalError(f"{row.name}.{written}: a cutoff must be 1 or more", INPUT)
    _refuse_repeated(cuts, row, written)
    return [row.line(f"{row.name}_{cut}", {"cutoff": cut}, options) for cut in cuts]


def _points(parameter: str, *, rounded: bool = False) -> Reader:
    """Numbers in rising order, one line for each, printed with two decimals in at most nine characters."""

    def read(row: _Row, written: str | None, options: TrecEvalOptions) -> list[Printed]:
        points = row.defaults if written is None else sorted(map(atof, written.split(",")))
        _refuse_repeated(points, row, written)
        more = {"rounding": options.rounding} if rounded else {}
        return [
            row.line(f"{row.name}_{point:3.2f}"[: len(row.name) + 9], {parameter: point, **more}, options)
            for point in points
        ]

    return read


def _numbers(row: _Row, written: str | None, options: TrecEvalOptions) -> list[Printed]:
    """Numbers as they stand; the name shows them as they were written."""
    values = row.defaults if written is None else tuple(map(atof, written.split(",")))
    return [row.line(_suffixed(row.name, written), _GIVEN[row.name](values, options), options)]


def _gains(row: _Row, written: str | None, options: TrecEvalOptions) -> list[Printed]:
    """Pairs of level and gain; the name shows them as they were written."""
    if written is None:
        return [row.line(row.name, {}, options)]
    pairs = _pairs(row, written)
    levels = {atol(name): gain for name, gain in pairs.items() if _LEVEL.fullmatch(name)}
    if any(level < 0 for level in levels):
        problem = "documents without a judgment (levels -1 and -2) get no gain here"
        raise TrecEvalError(f"{row.name}.{written}: {problem}", INPUT)
    return [row.line(f"{row.name}_{written}", {"gain": levels} if levels else {}, options)]


def _persistence(row: _Row, written: str | None, options: TrecEvalOptions) -> list[Printed]:
    """Pairs, of which ``p`` is the persistence and the others are levels with their gains."""
    pairs = {} if written is None else _pairs(row, written, "p=0.8")
    given: dict[str, Any] = {"p": pairs.get("p", 0.9)}
    levels = {atol(name): gain for name, gain in pairs.items() if _LEVEL.fullmatch(name)}
    if row.name == "rbp":
        given |= {"gain": levels or "graded", "max": "topic"}
    return [row.line(_suffixed(row.name, written), given, options)]


def _pairs(row: _Row, written: str, example: str = "1=3,2=9") -> dict[str, float]:
    if not _PAIRS.fullmatch(written):
        pair = f"p={written}" if example.startswith("p") and _NUMBER.fullmatch(written) else example
        cut = f", or {row.name}_cut.{written} for a cutoff" if row.name == "ndcg" and written.isdecimal() else ""
        raise TrecEvalError(f"{row.name}.{written}: no pairs. Fix: write {row.name}.{pair}{cut}", INPUT)
    found = [pair.split("=") for pair in written.split(",")]
    return {name: atof(value) for name, value in reversed(found)}  # of two equal names the first counts


def _suffixed(name: str, written: str | None) -> str:
    return name if written is None else f"{name}_{written}"


def _refuse_repeated(values: Iterable[float], row: _Row, written: str | None) -> None:
    values = list(values)
    if len(set(values)) < len(values):
        raise TrecEvalError(f"{row.name}.{written}: a cutoff appears in it twice", INPUT)


def _of_utility(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    if len(values) != 4:
        problem = f"utility takes 4 coefficients, not {len(values)}"
        raise TrecEvalError(f"{problem}. Fix: write utility.1,-1,0,0", CALCULATION)
    if options.collection > _LARGEST_COLLECTION:
        problem = f"-N {options.collection}: utility takes at most {_LARGEST_COLLECTION} documents"
        raise TrecEvalError(f"{problem}. Fix: give the size of the collection, or leave out -N", INPUT)
    return {**dict(zip("abcd", values, strict=True)), "n": options.collection}


def _of_points(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    return {"points": values, "rounding": options.rounding}


def _of_weight(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    """Give the beta whose square is trec_eval's weight, to the last bit where there is such a number."""
    del options
    weight = values[0]
    if not 0 <= weight < math.inf:
        raise TrecEvalError(f"set_F.{weight:g}: the weight of recall must be 0 or more", INPUT)
    root = math.sqrt(weight)
    close = (root, math.nextafter(root, 0), math.nextafter(root, math.inf))
    return {"beta": next((beta for beta in close if beta * beta == weight), root)}


def _of_length(values: tuple[float, ...], options: TrecEvalOptions) -> dict[str, Any]:
    del options
    return {"length": max(0, int(values[0])) if math.isfinite(values[0]) else 0}


_GIVEN: dict[str, Callable[[tuple[float, ...], TrecEvalOptions], dict[str, Any]]] = {
    "relstring": _of_length,
    "utility": _of_utility,
    "11pt_avg": _of_points,
    "set_F": _of_weight,
}

_ROWS = (
    _Row("runid", "runid", _plain, kind="text", shown="summary", format="any"),
    _Row("num_q", "NumQ", _plain, kind="integer", shown="summary", format="any"),
    _Row("num_ret", "NumRet", _plain, kind="integer"),
    _Row("num_rel", "NumRel", _plain, kind="integer"),
    _Row("num_rel_ret", "NumRelRet", _plain, kind="integer"),
    _Row("map", "AP", _plain),
    _Row("gm_map", "GMAP", _plain, shown="summary"),
    _Row("Rprec", "Rprec", _plain),
    _Row("bpref", "Bpref", _plain),
    _Row("recip_rank", "RR", _plain),
    _Row("iprec_at_recall", "IPrec", _points("recall", rounded=True), RECALLS),
    _Row("P", "P", _cutoffs, CUTS),
    _Row("relstring", "relstring", _numbers, (10.0,), kind="text", shown="topics"),
    _Row("recall", "R", _cutoffs, CUTS),
    _Row("infAP", "InfAP", _plain),
    _Row("gm_bpref", "GMBpref", _plain, shown="summary"),
    _Row("Rprec_mult", "RprecMult", _points("factor"), FACTORS),
    _Row("utility", "Utility", _numbers, (1.0, -1.0, 0.0, 0.0)),
    _Row("11pt_avg", "AP11", _numbers, RECALLS),
    _Row("binG", "BinG", _plain),
    _Row("G", "G", _gains),
    _Row("dcg", "DCG", _gains, new=True),
    _Row("ideal_dcg", "IdealDCG", _gains, new=True),
    _Row("ndcg", "nDCG", _gains),
    _Row("ndcg_rel", "nDCGrel", _gains),
    _Row("Rndcg", "RnDCG", _gains),
    _Row("ndcg_cut", "nDCG", _cutoffs, CUTS),
    _Row("map_cut", "AP", _cutoffs, CUTS),
    _Row("relative_P", "RelP", _cutoffs, CUTS),
    _Row("success", "Success", _cutoffs, (1, 5, 10)),
    _Row("set_P", "SetP", _plain),
    _Row("set_relative_P", "SetRelP", _plain),
    _Row("set_recall", "SetR", _plain),
    _Row("set_map", "SetAP", _plain),
    _Row("set_F", "SetF", _numbers, (1.0,)),
    _Row("num_nonrel_judged_ret", "NumNonrelRet", _plain, kind="integer"),
    _Row("prefs_num_prefs_poss", "prefs_num_prefs_poss", _plain, kind="integer", format="prefs"),
    _Row("prefs_num_prefs_ful", "prefs_num_prefs_ful", _plain, kind="integer", format="prefs"),
    _Row("prefs_num_prefs_ful_ret", "prefs_num_prefs_ful_ret", _plain, kind="integer", format="prefs"),
    *(
        _Row(f"prefs_{name}", f"prefs_{name}", _plain, format="prefs")
        for name in (
            *("simp", "pair", "avgjg", "avgjg_Rnonrel", "simp_ret", "pair_ret", "avgjg_ret", "avgjg_Rnonrel_ret"),
            *("simp_imp", "pair_imp", "avgjg_imp"),
        )
    ),
    _Row("map_avgjg", "map_avgjg", _plain, format="qrels_jg"),
    _Row("P_avgjg", "P_avgjg", _cutoffs, CUTS, format="qrels_jg"),
    _Row("Rprec_mult_avgjg", "Rprec_mult_avgjg", _points("factor"), FACTORS, format="qrels_jg"),
    _Row("yaap", "Yaap", _plain),
    _Row("rbp", "RBP", _persistence, new=True, levels=False),
    _Row("rbp_resid", "RBPResidual", _persistence, new=True),
    _Row("unj", "Unjudged", _cutoffs, (5, 10, 20), new=True),
)
_TABLE = {row.name: row for row in _ROWS}

ALL = tuple(_TABLE)
"""Every measure of trec_eval 10, in the order in which it prints them."""

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
"""Names that stand for several measures."""


def expand(*specs: str, level: float = 1.0, collection: int = 0, dialect: Dialect = "trec_eval-10") -> list[Printed]:
    """Give the lines that some ``-m`` options ask for, in trec_eval's order.

    >>> [line.name for line in expand("P.10,5", "ndcg.1=3,2=9", "P.20")]
    ['P_5', 'P_10', 'ndcg_1=3,2=9']
    >>> [str(line.measure) for line in expand("P.5", "recip_rank", level=2)]
    ['RR(rel=2)', 'P(rel=2)@5']
    """
    # If a measure is named with parameters more than once, the first ones count; given any, those of a mere name or
    # nickname do not.
    marked: set[str] = set()
    written: dict[str, str] = {}
    for spec in specs:
        name, parameters = split(spec)
        marked.update(roots(spec, dialect))
        if parameters is not None:
            written.setdefault(name, parameters)
    options = TrecEvalOptions(level, collection, dialect)
    return [line for row in _ROWS if row.name in marked for line in row.read(row, written.get(row.name), options)]


def names(dialect: Dialect) -> tuple[str, ...]:
    """Give the measures that a version of trec_eval has, in its order."""
    return tuple(row.name for row in _ROWS if dialect == "trec_eval-10" or not row.new)


def split(spec: str) -> tuple[str, str | None]:
    """Cut ``name.parameters`` at the first point."""
    name, point, parameters = spec.partition(".")
    return name, parameters if point else None


def roots(spec: str, dialect: Dialect = "trec_eval-10") -> tuple[str, ...]:
    """Give the measures that one ``-m`` option names, without a look at their parameters.

    >>> roots("set_F.0.5"), len(roots("all_trec")), len(roots("all_trec", "trec_eval-9"))
    (('set_F',), 37, 34)
    """
    name, parameters = split(spec)
    there = names(dialect)
    known = [one for one in NICKNAMES.get(name, (name,)) if one in there]
    if parameters == "" or not known:
        from judged.scoring.peers.names import instead

        fix = instead(spec, {one: _TABLE[one].ours for one in there}, NICKNAMES, set(_TABLE) - set(there))
        raise TrecEvalError(f"there is no measure {spec!r}. Fix: {fix}", USAGE)
    return tuple(known)
