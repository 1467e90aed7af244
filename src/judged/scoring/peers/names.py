"""The names that other tools give to measures, each read as that tool means it.

A reader takes one name, and the grades that the qrels hold; it gives our measures, or None where the tool has no
such name, which is then read as one of ours.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.errors import JudgedError, MeasureError
from judged.scoring.measures.base import Measure
from judged.scoring.measures.grammar import find, normalize_name, parse, parse_many

if TYPE_CHECKING:
    from collections.abc import Collection

    Version: TypeAlias = Literal["trec_eval-10", "trec_eval-9"]


Reader: TypeAlias = "Callable[[str, Sequence[float]], tuple[Measure, ...] | None]"

GDEVAL = {
    "ndcg@k": "nDCG(gain=exp2,undefined=skip)",
    "err@k": "ERR(max=4,undefined=skip)",
    "ndcg": "nDCG(gain=exp2,undefined=skip)@20",
    "err": "ERR(max=4,undefined=skip)@20",
}
"""gdeval's columns: ``skip`` leaves out the topics without a positive grade, as it does."""

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
"""ndeval's columns, in their order; they are aliases of our measures."""

_RANX = re.compile(r"(?P<name>[a-z][a-z0-9_-]*?)(?:[@.](?P<number>[0-9]+))?(?:-l(?P<level>-?[0-9]+))?")
_DEEPEST = 2**53  # a cutoff that cuts nothing


def listed(table: Mapping[str, str]) -> Reader:
    """Read names by a table; ``name@k`` stands for the name with any cutoffs.

    >>> listed({"ndcg@k": "nDCG(gain=exp2)"})("NDCG @ 5,10", ())
    (nDCG(gain=exp2)@5, nDCG(gain=exp2)@10)
    """

    def read(name: str, grades: Sequence[float]) -> tuple[Measure, ...] | None:
        del grades
        head, at, cutoffs = name.partition("@")
        known = table.get(normalize_name(head.strip()) + ("@k" if at else ""))
        return None if known is None else parse_many(known + at + cutoffs)

    return read


def trec_eval(version: Version) -> Reader:
    """Read what follows trec_eval's ``-m``, nicknames and parameters too, by the table of the drop-in command."""

    def read(name: str, grades: Sequence[float]) -> tuple[Measure, ...]:
        del grades
        from judged.scoring.peers.trec_eval import USAGE, TrecEvalError, TrecEvalOptions, expand

        try:
            lines = expand(name, dialect=version)
        except TrecEvalError as error:
            if error.code != USAGE:
                raise MeasureError(str(error)) from None
            rounding = TrecEvalOptions(dialect=version).rounding
            return tuple(_rounded(measure, rounding) for measure in parse_many(name))
        found = tuple(line.measure for line in lines if line.measure is not None)
        if not found:
            raise MeasureError(f"{name} is text and no number. Fix: 'judged trec_eval' prints it")
        return found

    return read


def _rounded(measure: Measure, rounding: str) -> Measure:
    """Let recall levels become numbers of documents as this version does."""
    return measure.replace(rounding=rounding) if hasattr(measure, "rounding") else measure


_RANX_BINARY = {
    "hits": ("NumRelRet", "NumRelRet@{}"),
    "hit_rate": (f"Success@{_DEEPEST}", "Success@{}"),
    "precision": ("SetP", "P@{}"),
    "recall": ("SetR", "R@{}"),
    "f1": ("SetF", "F@{}"),
    "r-precision": ("Rprec", "Rprec"),
    "bpref": ("Bpref", "Bpref"),
    "mrr": ("RR", "RR@{}"),
    "map": ("AP", "AP@{}"),
}
"""Without and with a cutoff."""

_RANX_GRADED = {
    "dcg": ("DCG", "linear"),
    "dcg_burges": ("DCG", "exp2"),
    "ndcg": ("nDCG", "linear"),
    "ndcg_burges": ("nDCG", "exp2"),
}


def ranx(name: str, grades: Sequence[float]) -> tuple[Measure, ...] | None:
    """Read ranx's names: ``ndcg@10``, ``map-l2``, ``rbp.95``. A level takes the gain of lower grades away.

    >>> ranx("ndcg@10-l2", [0, 1, 2]), ranx("f1-l2", []), ranx("mrr@5", [])
    ((nDCG(gain={0:0,1:0,2:2})@10,), (SetF(rel=2),), (RR@5,))
    """
    if (rbp := ranx_rbp(name, grades)) is not None:
        measure, factor = rbp
        if factor == 1.0:
            return (measure,)
        raise MeasureError(
            f"ranx's {name} adds up grades as they are, so that it goes up to {factor:g}. Fix: write {measure}, which"
            f" is ranx's number divided by {factor:g}, or call judged.scoring.compat.ranx.evaluate for its own"
        )
    found = _RANX.fullmatch(name.strip())
    if found is None:
        return None
    level, cutoff = int(found["level"] or 1), int(found["number"] or 0)
    if found["name"] in _RANX_BINARY:
        whole, cut = _RANX_BINARY[found["name"]]
        return tuple(one.replace(rel=level) for one in parse_many(cut.format(cutoff) if cutoff else whole))
    if found["name"] in _RANX_GRADED:
        measure, gain = _RANX_GRADED[found["name"]]
        return (find(measure)[0].cls(gain=_gain_from(level, gain, grades), cutoff=cutoff or None),)
    return None


def ranx_rbp(name: str, grades: Sequence[float]) -> tuple[Measure, float] | None:
    """Read ``rbp.95``: our measure, and what its number must be multiplied by to be ranx's; None for other names.

    >>> ranx_rbp("rbp.95", [0, 1]), ranx_rbp("rbp.8-l2", [0, 1, 2])
    ((RBP(p=0.95), 1.0), (RBP(p=0.8,gain={0:0,1:0,2:2},max=2), 2.0))
    """
    found = _RANX.fullmatch(name.strip())
    if found is None or found["name"] != "rbp" or not found["number"]:
        return None
    rbp, persistence = find("RBP")[0].cls, float(f"0.{found['number']}")
    level, highest = int(found["level"] or 1), float(max((1.0, *grades)))
    if level == 1 and highest == 1.0:
        return rbp(p=persistence), 1.0
    gain = _gain_from(level, "linear", grades)
    return rbp(p=persistence, gain="graded" if gain == "linear" else gain, max=highest), highest


def _gain_from(level: int, gain: str, grades: Sequence[float]) -> str | dict[float, float]:
    """Give a gain that only grades from this level have; the plain one where that is the same."""
    if not any(0 < grade < level for grade in grades):
        return gain
    worth = {grade: 2**grade - 1 if gain == "exp2" else grade for grade in grades}
    return {grade: gained if grade >= level else 0.0 for grade, gained in worth.items()}


_CUTOFFS = "cutoffs: {}.5,10"
_GAINS = "the gain of each grade: {}.1=3,2=9"
_FORMS: dict[str, str] = {
    **dict.fromkeys(("P", "recall", "ndcg_cut", "map_cut", "relative_P", "success", "P_avgjg", "unj"), _CUTOFFS),
    **dict.fromkeys(("G", "dcg", "ideal_dcg", "ndcg", "ndcg_rel", "Rndcg"), _GAINS),
    **dict.fromkeys(("Rprec_mult", "Rprec_mult_avgjg"), "multiples of the number of relevant documents: {}.0.5,1"),
    "iprec_at_recall": "recall points, a line each: {}.0.1,0.5",
    "11pt_avg": "recall points, averaged: {}.0.25,0.5,0.75",
    "relstring": "how many documents: {}.20",
    "utility": "4 coefficients, for relevant and other documents returned, then for those not returned: {}.1,-1,0,0",
    "set_F": "the weight of recall, which is the square of beta: {}.0.5",
    "rbp": "the persistence, and the gain of each grade: {}.p=0.8 or {}.p=0.8,1=1,2=3",
    "rbp_resid": "the persistence: {}.p=0.8",
}
_BY_CUTOFF = {name for name, form in _FORMS.items() if form == _CUTOFFS}


def parameters_of(name: str) -> str:
    """Say how trec_eval's parameters of a measure are written; nothing for one that takes none.

    >>> parameters_of("ndcg_cut"), parameters_of("map")
    ('cutoffs: ndcg_cut.5,10', '')
    """
    return _FORMS.get(name, "").replace("{}", name)


def instead(spec: str, names: Mapping[str, str], groups: Collection[str], later: Collection[str]) -> str:
    """Say what to write for a name that is not there."""
    root, _, written = spec.partition(".")
    if root in later:
        return f"{root} is not in trec_eval 9: leave out --dialect trec_eval-9"
    if not written and (root in names or root in groups):
        form = parameters_of(root)
        return f"write {root}" + (f", or name {form}" if form else "")
    found = _underscored(spec, names) or _of_ours(spec, names)
    if found:
        return found
    known = {name.casefold(): name for name in (*names, *groups)}
    close = difflib.get_close_matches(root.casefold(), known, 1, 0.6)
    if close:
        return f"did you mean {known[close[0]]}" + (f".{written}" if written else "") + "?"
    special = ("prefs_", "runid", "num_q", "relstring")
    shown = [name for name in names if not name.startswith(special) and not name.endswith("_avgjg")]
    return f"write one of {' '.join(shown)}"


def _underscored(spec: str, names: Mapping[str, str]) -> str:
    """Read a name as it is printed, ``P_10``, and one in another case, ``MAP``."""
    low = spec.casefold()
    fitting = [name for name in names if re.match(rf"{re.escape(name.casefold())}(?:[_.@:](?:[-+.0-9]|p=)|$)", low)]
    if not fitting:
        return ""
    name = max(fitting, key=len)
    written = spec[len(name) + 1 :]
    if not written:
        return f"did you mean {name}?"
    if written.isdecimal() and f"{name}_cut" in names:
        return f"write {name}_cut.{written}"
    if name not in _FORMS:
        return f"write {name}, which takes no parameters here"
    return f"write {name}.{written}"


def _of_ours(spec: str, names: Mapping[str, str]) -> str:
    """Read one of our names: ``RR``, ``nDCG@10``, ``precision``."""
    bare = re.fullmatch(r"([^@(.]+)(?:@([0-9]+))?", spec)
    try:
        ours = find(bare[1])[0].name if bare else parse(spec).entry.name
    except JudgedError:
        return ""
    theirs = [name for name, our in names.items() if our == ours]
    if bare is None or not theirs:
        return f"'judged evaluate -m \"{spec}\"' computes it; trec_eval does not"
    cut = [name for name in theirs if name in _BY_CUTOFF]
    whole = [name for name in theirs if name not in _BY_CUTOFF]
    if bare[2]:
        return f"write {cut[0]}.{bare[2]}" if cut else f"'judged evaluate -m {spec}' computes it; trec_eval does not"
    return f"did you mean {(whole or cut)[0]}?"


def names_of(given: object, what: str, example: str) -> list[str]:
    """Take one name or several, and nothing else."""
    names: list[Any] = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    for name in names:
        if not isinstance(name, str):
            raise MeasureError(f"{name!r} is not the name of a {what}. Fix: give names as text, such as {example}")
    return names
