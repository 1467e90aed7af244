"""What other tools write in a measure's name, and what it is called here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from judged.errors import MeasureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.scoring.measures.base import Entry

_LETTERS = str.maketrans({"\N{GREEK SMALL LETTER ALPHA}": "alpha", "-": "_"})

_RENAMED = {"gains": "gain", "max_rel": "max", "min_rel": "min"}
"""Parameters of ir_measures, and ours, where a measure has ours and not theirs."""

_FORMULATIONS: dict[str, dict[str, Any]] = {"log2": {}, "exp-log2": {"gain": "exp2"}}
"""What ir_measures writes as ``dcg=``."""


class _Implied(NamedTuple):
    """A parameter that other tools imply and that must be given here: how to write it, and who implies what."""

    parameter: str
    example: str
    why: str


_IMPLIED = {
    "ERR": _Implied(
        "max", "ERR(max=4)", ", with the highest grade of your scale; gdeval and ir_measures take 4 without saying so"
    ),
    "RBP": _Implied("p", "RBP(p=0.8)", ": ir_measures takes 0.8 and trec_eval 10 takes 0.9 without saying so"),
    "Accuracy": _Implied(
        "n", "Accuracy(n=...)", " with the size of the collection; what ir_measures calls Accuracy is PairAccuracy"
    ),
}


def key(name: str) -> str:
    r"""Give the form in which names are compared: case, hyphen or underscore, and a Greek alpha make no difference.

    >>> key("\N{GREEK SMALL LETTER ALPHA}-nDCG"), key("R-Prec")
    ('alpha_ndcg', 'r_prec')
    """
    return name.translate(_LETTERS).lower()


def unquoted(written: str) -> str:
    """Take quotation marks off a value.

    >>> unquoted("'exp-log2'"), unquoted('"log2"'), unquoted("2")
    ('exp-log2', 'log2', '2')
    """
    quoted = len(written) > 1 and written[0] == written[-1] and written[0] in "'\""
    return written[1:-1] if quoted else written


def translated(entry: Entry, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Turn ir_measures' parameters into ours; some of them make it another measure."""
    known = {parameter.name for parameter in entry.all_parameters}
    name, made = entry.name, dict[str, Any]()
    for parameter, value in given.items():
        if parameter in known:
            made[parameter] = value
        elif _RENAMED.get(parameter) in known:
            made[_RENAMED[parameter]] = value
        elif parameter == "dcg" and "DCG" in name:
            made |= _one_of(_FORMULATIONS, value, f"{name}: dcg")
        elif (name, parameter) == ("SetP", "relative"):
            name = _one_of({"true": "SetRelP", "false": "SetP"}, str(value).lower(), f"{name}: relative")
        elif (name, parameter) == ("NumRet", "rel"):
            name, made["rel"] = "NumRelRet", value
        else:
            made[parameter] = value  # the measure itself refuses it and says what it takes
    return name, made


def refuse_implied(entry: Entry, given: Mapping[str, Any], cutoffs: str | None) -> None:
    """Refuse a name that leaves out what other tools imply, and say how to write it."""
    implied = _IMPLIED.get(entry.name)
    if implied is None or implied.parameter in given:
        return
    if any(parameter.name == implied.parameter and parameter.required for parameter in entry.all_parameters):
        example = implied.example + (f"@{cutoffs}" if cutoffs else "")
        raise MeasureError(f"{entry.name} needs {implied.parameter}. Fix: write {example}{implied.why}")


def _one_of(table: dict[str, Any], value: Any, what: str) -> Any:
    if value not in table:
        raise MeasureError(f"{what}={value!r} is not allowed. Fix: use one of {', '.join(table)}")
    return table[value]
