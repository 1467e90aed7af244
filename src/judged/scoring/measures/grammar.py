"""Parser of measure names: ``nDCG(gain=exp2)@10`` is parsed to a measure, which is printed with the same name.

A name is ``Name``, ``Name@k``, or ``Name(parameter=value,...)@k``. Several measures: ``nDCG@1..10``, ``P@5,10``,
``nDCG@10,RR``. Over some topics only: ``P@5 where kind == 'law'``.
Names of trec_eval (``ndcg_cut_10``, ``P.5,10``), ir_measures (``nDCG(dcg='exp-log2')@10``), ndeval
(``alpha-nDCG@20``), and ranx (``mrr@10-l2``) are accepted too.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from judged.errors import MeasureError
from judged.results.decimals import read_number
from judged.results.spelling import use_one_of
from judged.scoring.measures.base import Entry, Measure
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Parts: TypeAlias = tuple[Entry, dict[str, Any], str | None]  # with the cutoffs as text


_NAME = re.compile(
    r"\s*(?P<name>[0-9]*[A-Za-z\u03b1][A-Za-z0-9_-]*?)\s*(?:\((?P<parameters>.*)\))?"
    r"\s*(?:@\s*(?P<cutoffs>[0-9.](?:[0-9.,\s]|e[+-]?[0-9])*))?(?:-l(?P<level>[0-9]+))?\s*",
    re.DOTALL,
)
_WITHOUT_AT = re.compile(r"(?P<name>.*?[^\W\d])[-_. ]?(?P<cutoff>\d+)")
_SUFFIX = re.compile(r"(?P<name>[A-Za-z][A-Za-z_]*?)[_.](?P<cutoffs>[0-9][0-9.,]*)")
_PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\{[^}]*\}|[^,{}]+)\s*(?:,|$)")
_PARAMETERS_LAST = re.compile(
    r"(?P<name>[^@(]*)@(?P<cutoffs>[^@(]*)(?P<parameters>\(.*\))\s*", re.DOTALL
)  # RR@10(rel=2)
_WHERE = re.compile(r"(?P<names>.*?)\swhere\b(?P<where>.*)", re.DOTALL)
_TOKEN = re.compile(r"\([^)]*\)|\{[^}]*\}|[,;]|\s+|[^,;({\s]+|[({]")  # brackets and their content are one token
_STARTS_NAME = re.compile(r"(?![0-9.]+e[+-]?[0-9]+$)(?!\w+\s*=)[0-9]*[A-Za-z\u03b1]")  # a name, and no cutoff
_MAX_CUTOFFS = 100_000
_MAX_DIGITS = 16  # digits of a cutoff: a double is exact for no more


def parse(text: object) -> Measure:
    """Parse the name of one measure.

    Parameters
    ----------
    text
        Name, or a `Measure`.

    Raises
    ------
    MeasureError
        If there is no measure with this name, or a parameter is not valid. The message lists valid names or values.

    Examples
    --------
    >>> parse("nDCG@10"), parse("ndcg_cut_10"), parse("NDCG( gain = exp2 ) @10"), parse("mrr@10-l2")
    (nDCG@10, nDCG@10, nDCG(gain=exp2)@10, RR(rel=2)@10)
    >>> parse("nDCG(dcg='exp-log2', judged_only=True)@10")  # the ir_measures spelling
    nDCG(gain=exp2,judged_only=true)@10
    >>> parse("nDCG(gain={1:1,2:5})@10") == parse(str(parse("nDCG(gain={1:1,2:5})@10")))
    True
    """
    measures = parse_many(text)
    if len(measures) != 1:
        names = ", ".join(map(str, measures))
        raise MeasureError(f"one measure is required, got {len(measures)} ({names}). Fix: use one name and one cutoff")
    return measures[0]


def parse_many(text: object) -> tuple[Measure, ...]:
    """Parse a name that may stand for several measures, such as those of a range of cutoffs.

    Parameters
    ----------
    text
        Name or pattern, such as ``P@1..10``; or a `Measure`.

    Returns
    -------
    tuple of Measure

    Raises
    ------
    MeasureError
        See `parse`.

    Examples
    --------
    >>> parse_many("P@5,10"), parse_many("nDCG@1..3"), parse_many("nDCG@10,RR@5(rel=2)")
    ((P@5, P@10), (nDCG@1, nDCG@2, nDCG@3), (nDCG@10, RR(rel=2)@5))
    >>> parse_many("P@5,10 where kind == 'law'")
    (P@5 where kind == 'law', P@10 where kind == 'law')
    """
    if isinstance(text, Measure):
        return (text.require_cutoff(),)
    if isinstance(text, type) and issubclass(text, Measure):
        return (text(),)
    if not isinstance(text, str):
        raise MeasureError(f"{text!r:.80} is not a measure. Fix: use a name such as 'nDCG@10', or a measure")
    return _parse_text(text, REGISTRY.added)


@lru_cache(maxsize=1024)
def _parse_text(text: str, added: int) -> tuple[Measure, ...]:
    # `added` is part of the cache key: registering a measure can change the meaning of a name.
    if len(parts := list_measures(text)) > 1:
        return tuple(measure for part in parts for measure in _parse_text(part, added))
    name, where = split_condition(text)
    if where:
        return tuple(measure.replace(where=where) for measure in _parse_text(name, added))
    entry, values, cutoffs = _parse_parts(text)
    if cutoffs is None:
        return (entry.cls(**values).require_cutoff(),)
    if entry.cutoff_name != "cutoff":
        return tuple(entry.cls(**{**values, entry.cutoff_name: level}) for level in cutoffs.replace(" ", "").split(","))
    return tuple(entry.cls(**{**values, "cutoff": cutoff}) for cutoff in _parse_cutoffs(cutoffs, text))


def list_measures(measures: Any) -> list[Any]:
    """Return one or several measures or names as a list. Commas, semicolons, and blanks separate names.

    >>> list_measures("AP"), list_measures(("nDCG@10 P@5,10", "RBP(p=0.5,rel=2)@10; RR"))
    (['AP'], ['nDCG@10', 'P@5,10', 'RBP(p=0.5,rel=2)@10', 'RR'])
    """
    if isinstance(measures, str):
        names, where = split_condition(measures)
        return [f"{name} where {where}" if where else name for name in _split_names(names)]
    if isinstance(measures, (Measure, type)):
        return [measures]
    try:
        parts = [list_measures(element) if isinstance(element, str) else [element] for element in measures]
    except TypeError:
        raise MeasureError(f"{measures!r:.80} is not a measure. Fix: use a name such as 'nDCG@10'") from None
    return [measure for part in parts for measure in part]


def _split_names(text: str) -> Iterator[str]:
    name, separator = "", ""
    for token in _TOKEN.findall(text):
        if token.isspace() or token in {",", ";"}:
            separator += token
            continue
        # In "nDCG@ 10" and "P@5, 10", the token after the separator continues the name.
        if separator and name and _STARTS_NAME.match(token) and (not separator.isspace() or name[-1] != "@"):
            yield name
            name = ""
        name += (separator if name else "") + token
        separator = ""
    if name:
        yield name


def split_condition(text: str) -> tuple[str, str]:
    """Split the names of measures from the condition that follows. Without a condition, the second text is empty.

    >>> split_condition("P@5 where kind == 'law'"), split_condition("P@5")
    (('P@5', "kind == 'law'"), ('P@5', ''))
    """
    match = _WHERE.fullmatch(text)
    if match is None:
        return text, ""
    if not match["where"].strip():
        raise MeasureError(
            f"{text!r} has no condition after 'where'. Fix: write, for example, {match['names']} where kind == 'law'"
        )
    return match["names"], match["where"].strip()


def find(name: str) -> tuple[Entry, Mapping[str, Any]]:
    """Find a measure by its name or an alias, ignoring case. Also return the parameters that the alias implies.

    >>> find("hitrate")[0].name, find("ndcg_burges")[1]
    ('Success', {'gain': 'exp2'})
    """
    if name in REGISTRY:
        return REGISTRY[name], {}
    names = _names()
    if (match := names.get(normalize_name(name))) is not None:
        return match
    # "ndcg10" is an error with a suggestion: in NERR10 or IFT12 the digits are part of the name.
    without_at = _WITHOUT_AT.fullmatch(name)
    if without_at and (match := names.get(normalize_name(without_at["name"]))) is not None:
        suggestion = without_at["name"] if match[1] else match[0].name
        raise MeasureError(f"there is no measure {name!r}. Fix: did you mean {suggestion}@{without_at['cutoff']}?")
    import difflib  # only wrong names need it

    close = difflib.get_close_matches(normalize_name(name), names, n=3, cutoff=0.5)
    suggestions = ", ".join(dict.fromkeys(names[alias][0].name for alias in close))
    fix = f"did you mean {suggestions}? 'judged measures' lists all" if suggestions else "'judged measures' lists all"
    raise MeasureError(f"there is no measure {name!r}. Fix: {fix}")


def find_entry(text: str) -> Entry:
    """Find the measure of a name, ignoring its parameters and cutoff.

    >>> find_entry("RBP(p=0.8)@10").name, find_entry("ERR").name, find_entry("ndcg_cut_10").name
    ('RBP', 'ERR', 'nDCG')
    """
    text = split_condition(text)[0]
    match, suffixed = _NAME.fullmatch(text), _SUFFIX.fullmatch(text.strip())
    name = match["name"] if match else text
    try:
        return find(name)[0]
    except MeasureError:
        if suffixed is None:
            raise
        return find(suffixed["name"])[0]


def _names() -> dict[str, tuple[Entry, Mapping[str, Any]]]:
    names: dict[str, tuple[Entry, Mapping[str, Any]]] = {}
    for entry in REGISTRY.values():
        for alias, values in {**entry.aliases, entry.name: {}}.items():
            names[normalize_name(alias)] = (entry, values)
    return names


def _parse_parts(text: str) -> _Parts:
    if parameters_last := _PARAMETERS_LAST.fullmatch(text):
        text = f"{parameters_last['name']}{parameters_last['parameters']}@{parameters_last['cutoffs']}"
    match = _NAME.fullmatch(text)
    if match is None:
        suffixed = _SUFFIX.fullmatch(text.strip())
        if suffixed is None:
            raise MeasureError(
                f"{text!r} is not a measure's name. Fix: write NAME, NAME@10 or NAME(parameter=value)@10"
            )
        entry, values = find(suffixed["name"])
        return _suffix_as_beta(entry, dict(values), suffixed["cutoffs"])
    name, cutoffs = match["name"], match["cutoffs"]
    suffixed = _SUFFIX.fullmatch(name)
    if suffixed and cutoffs is None and match["parameters"] is None and name not in REGISTRY:
        name, cutoffs = suffixed["name"], suffixed["cutoffs"]
    entry, values = find(name)
    values = {**values, **dict(_parse_parameters(match["parameters"] or "", text))}
    translated_name, parameters = translate_parameters(entry, values)
    if match["level"]:
        parameters["rel"] = match["level"]
    check_implied(entry, parameters, cutoffs)
    parsed = REGISTRY[translated_name], parameters, cutoffs
    return parsed if match["cutoffs"] else _suffix_as_beta(*parsed)


def _suffix_as_beta(entry: Entry, parameters: dict[str, Any], cutoffs: str | None) -> _Parts:
    # In trec_eval's ``set_F.2``, the number is beta squared, and not a cutoff.
    if entry.name != "SetF" or cutoffs is None or not re.fullmatch(r"[0-9]*\.?[0-9]+", cutoffs):
        return entry, parameters, cutoffs
    return entry, {**parameters, "beta": math.sqrt(float(cutoffs))}, None


def _parse_parameters(parameters: str, text: str) -> Iterator[tuple[str, Any]]:
    position = 0
    while position < len(parameters.rstrip()):
        match = _PARAMETER.match(parameters, position)
        if match is None:
            raise MeasureError(
                f"{text!r}: cannot parse {parameters[position:]!r}. Fix: write parameter=value, separated by commas"
            )
        yield match[1], _parse_value(match[2].strip(), text)
        position = match.end()


def _parse_value(value: str, text: str) -> Any:
    if not value.startswith("{"):
        return unquote(value)
    pairs = [pair.split(":") for pair in value.strip("{}").split(",") if pair.strip()]
    lengths = {len(pair) for pair in pairs}
    if lengths == {1}:
        return [pair[0] for pair in pairs]
    if lengths != {2}:
        raise MeasureError(f"{text!r}: cannot parse {value}. Fix: write a table such as {{1:1,2:3}}")
    table = {float_or_text(grade): gain for grade, gain in pairs}
    if len(table) < len(pairs):
        raise MeasureError(f"{text!r}: {value} has a duplicate grade. Fix: write each grade once")
    return table


def float_or_text(text: str) -> Any:
    """Parse a number, so that 1 and 1.0 are the same key. Return other text stripped."""
    try:
        return read_number(text)
    except ValueError:
        return text.strip()


def _parse_cutoffs(cutoffs: str, text: str) -> list[int]:
    parsed: list[int] = []
    for part in cutoffs.replace(" ", "").split(","):
        first, dots, last = part.partition("..")
        if not first.isdecimal() or (dots and not last.isdecimal()) or max(len(first), len(last)) > _MAX_DIGITS:
            raise MeasureError(f"{text!r}: {part!r} is not a cutoff. Fix: write @10, @5,10 or @1..10")
        if dots and int(last) < int(first):
            raise MeasureError(f"{text!r}: the range {part!r} must be ascending. Fix: write the smaller cutoff first")
        if dots and int(last) - int(first) >= _MAX_CUTOFFS:
            raise MeasureError(f"{text!r}: the range {part!r} is too long. Fix: use at most {_MAX_CUTOFFS} cutoffs")
        parsed.extend(range(int(first), int(last or first) + 1))
    return parsed


_LETTERS = str.maketrans({"\N{GREEK SMALL LETTER ALPHA}": "alpha", "-": "_"})

_RENAMED = {"gains": "gain", "max_rel": "max", "min_rel": "min"}
"""Parameters of ir_measures and the parameter here. It applies if the measure has the second and not the first."""

_FORMULATIONS: dict[str, dict[str, Any]] = {"log2": {}, "exp-log2": {"gain": "exp2"}}
"""Values of ``dcg=`` in ir_measures."""


class _Implied(NamedTuple):
    """A parameter that other tools imply and that is required here: its name, an example, and a remark."""

    parameter: str
    example: str
    remark: str


_IMPLIED = {
    "ERR": _Implied(
        "max", "ERR(max=4)", ", with the highest grade of your scale; the default of gdeval and ir_measures is 4"
    ),
    "RBP": _Implied("p", "RBP(p=0.8)", ": the default is 0.8 in ir_measures and 0.9 in trec_eval 10"),
    "Accuracy": _Implied(
        "n", "Accuracy(n=...)", " with the size of the collection; the Accuracy of ir_measures is PairAccuracy here"
    ),
}


def normalize_name(name: str) -> str:
    r"""Normalize a name for comparison: case, hyphen or underscore, and a Greek alpha make no difference.

    >>> normalize_name("\N{GREEK SMALL LETTER ALPHA}-nDCG"), normalize_name("R-Prec")
    ('alpha_ndcg', 'r_prec')
    """
    return name.translate(_LETTERS).lower()


def unquote(text: str) -> str:
    """Remove the quotation marks around a value.

    >>> unquote("'exp-log2'"), unquote('"log2"'), unquote("2")
    ('exp-log2', 'log2', '2')
    """
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def translate_parameters(entry: Entry, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Translate parameters of ir_measures. Return the name of the measure, which may change, and the parameters."""
    own_names = {parameter.name for parameter in entry.all_parameters}
    name, translated = entry.name, dict[str, Any]()
    for parameter, value in values.items():
        if parameter in own_names:
            translated[parameter] = value
        elif _RENAMED.get(parameter) in own_names:
            translated[_RENAMED[parameter]] = value
        elif parameter == "dcg" and "DCG" in name:
            translated |= _look_up(_FORMULATIONS, value, f"{name}: dcg")
        elif (name, parameter) == ("SetP", "relative"):
            name = _look_up({"true": "SetRelP", "false": "SetP"}, str(value).lower(), f"{name}: relative")
        elif (name, parameter) == ("NumRet", "rel"):
            name, translated["rel"] = "NumRelRet", value
        else:
            translated[parameter] = value  # the measure itself raises the error, which lists its parameters
    return name, translated


def check_implied(entry: Entry, parameters: Mapping[str, Any], cutoffs: str | None) -> None:
    """Raise if a name lacks a parameter that is required here and implied by other tools."""
    implied = _IMPLIED.get(entry.name)
    if implied is None or implied.parameter in parameters:
        return
    if any(parameter.name == implied.parameter and parameter.required for parameter in entry.all_parameters):
        example = implied.example + (f"@{cutoffs}" if cutoffs else "")
        raise MeasureError(f"{entry.name} requires `{implied.parameter}`. Fix: write {example}{implied.remark}")


def _look_up(table: dict[str, Any], value: Any, label: str) -> Any:
    if value not in table:
        raise MeasureError(f"{label}={value!r} is not allowed. Fix: {use_one_of(table)}")
    return table[value]
