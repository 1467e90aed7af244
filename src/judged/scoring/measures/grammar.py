"""Names to measures: ``nDCG(gain=exp2)@10`` is parsed to a value, and printed back the same.

A name is ``Name``, ``Name@k``, ``Name(parameter=value,...)@k``. Several at once: ``nDCG@1..10``,
``P@5,10``, ``nDCG@10,RR``. Over some topics only: ``P@5 where kind == 'law'``.
Names of trec_eval (``ndcg_cut_10``, ``P.5,10``), ir_measures (``nDCG(dcg='exp-log2')@10``), ndeval
(``alpha-nDCG@20``) and ranx (``mrr@10-l2``) are understood.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from judged.errors import MeasureError
from judged.results.decimals import read_number
from judged.scoring.measures.base import Entry, Measure
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_NAME = re.compile(
    r"\s*(?P<name>[0-9]*[A-Za-z\u03b1][A-Za-z0-9_-]*?)\s*(?:\((?P<inside>.*)\))?"
    r"\s*(?:@\s*(?P<cutoffs>[0-9.](?:[0-9.,\s]|e[+-]?[0-9])*))?(?:-l(?P<level>[0-9]+))?\s*",
    re.DOTALL,
)
_WITHOUT_AT = re.compile(r"(?P<name>.*?[^\W\d])[-_. ]?(?P<cutoff>\d+)")
_SUFFIX = re.compile(r"(?P<name>[A-Za-z][A-Za-z_]*?)[_.](?P<cutoffs>[0-9][0-9.,]*)")
_PART = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\{[^}]*\}|[^,{}]+)\s*(?:,|$)")
_AFTER = re.compile(r"(?P<name>[^@(]*)@(?P<cutoffs>[^@(]*)(?P<inside>\(.*\))\s*", re.DOTALL)  # RR@10(rel=2)
_WHERE = re.compile(r"(?P<names>.*?)\swhere\b(?P<where>.*)", re.DOTALL)
_TOKEN = re.compile(r"\([^)]*\)|\{[^}]*\}|[,;]|\s+|[^,;({\s]+|[({]")  # what is in brackets is one
_BEGINS = re.compile(r"(?![0-9.]+e[+-]?[0-9]+$)(?!\w+\s*=)[0-9]*[A-Za-z\u03b1]")  # a name, and no cutoff
_MOST = 100_000
_DIGITS = 16  # of a cutoff: a double holds no more


def parse(text: object) -> Measure:
    """Read one measure's name.

    >>> parse("nDCG@10"), parse("ndcg_cut_10"), parse("NDCG( gain = exp2 ) @10"), parse("mrr@10-l2")
    (nDCG@10, nDCG@10, nDCG(gain=exp2)@10, RR(rel=2)@10)
    >>> parse("nDCG(dcg='exp-log2', judged_only=True)@10")  # as ir_measures writes it
    nDCG(gain=exp2,judged_only=true)@10
    >>> parse("nDCG(gain={1:1,2:5})@10") == parse(str(parse("nDCG(gain={1:1,2:5})@10")))
    True

    Raises
    ------
    MeasureError
        If there is no such measure, or its parameters are wrong; the message says what is possible.
    """
    measures = parse_many(text)
    if len(measures) != 1:
        raise MeasureError(f"{text} names {len(measures)} measures where one is wanted. Fix: name one, with one cutoff")
    return measures[0]


def parse_many(text: object) -> tuple[Measure, ...]:
    """Read a name that may stand for a series.

    >>> parse_many("P@5,10"), parse_many("nDCG@1..3"), parse_many("nDCG@10,RR@5(rel=2)")
    ((P@5, P@10), (nDCG@1, nDCG@2, nDCG@3), (nDCG@10, RR(rel=2)@5))
    >>> parse_many("P@5,10 where kind == 'law'")
    (P@5 where kind == 'law', P@10 where kind == 'law')

    Raises
    ------
    MeasureError
        As `parse`.
    """
    if isinstance(text, Measure):
        return (text.complete(),)
    if isinstance(text, type) and issubclass(text, Measure):
        return (text(),)
    if not isinstance(text, str):
        raise MeasureError(f"{text!r:.80} is not a measure. Fix: give a name such as 'nDCG@10', or a measure")
    return _parsed(text, REGISTRY.added)


@lru_cache(maxsize=1024)
def _parsed(text: str, added: int) -> tuple[Measure, ...]:
    """Read a name, and keep what it means until another measure is registered."""
    if len(several := listed(text)) > 1:
        return tuple(measure for one in several for measure in _parsed(one, added))
    name, where = condition_of(text)
    if where:
        return tuple(measure.replace(where=where) for measure in _parsed(name, added))
    entry, values, cutoffs = _read(text)
    if cutoffs is None:
        return (entry.cls(**values).complete(),)
    if entry.at != "cutoff":
        return tuple(entry.cls(**{**values, entry.at: one}) for one in cutoffs.replace(" ", "").split(","))
    return tuple(entry.cls(**{**values, "cutoff": cutoff}) for cutoff in _series(cutoffs, text))


def listed(given: Any) -> list[Any]:
    """Take one measure or name, or several, as a list; commas and blanks part names, where they are not inside one.

    >>> listed("AP"), listed(("nDCG@10 P@5,10", "RBP(p=0.5,rel=2)@10; RR"))
    (['AP'], ['nDCG@10', 'P@5,10', 'RBP(p=0.5,rel=2)@10', 'RR'])
    """
    if isinstance(given, str):
        names, where = condition_of(given)
        return [f"{name} where {where}" if where else name for name in _names_in(names)]
    if isinstance(given, (Measure, type)):
        return [given]
    try:
        return [one for several in given for one in (listed(several) if isinstance(several, str) else [several])]
    except TypeError:
        raise MeasureError(f"{given!r:.80} is not a measure. Fix: give a name such as 'nDCG@10', or several") from None


def _names_in(text: str) -> Iterator[str]:
    name, between = "", ""
    for token in _TOKEN.findall(text):
        if token.isspace() or token in {",", ";"}:
            between += token
            continue
        if between and name and _BEGINS.match(token) and (not between.isspace() or name[-1] != "@"):
            yield name
            name = ""
        name += (between if name else "") + token
        between = ""
    if name:
        yield name


def condition_of(text: str) -> tuple[str, str]:
    """Part a name, or several, from the condition behind it; empty where there is none.

    >>> condition_of("P@5 where kind == 'law'"), condition_of("P@5")
    (('P@5', "kind == 'law'"), ('P@5', ''))
    """
    found = _WHERE.fullmatch(text)
    if found is None:
        return text, ""
    if not found["where"].strip():
        raise MeasureError(
            f"{text!r} does not say which topics after 'where'. Fix: write, for example,"
            f" {found['names']} where kind == 'law'"
        )
    return found["names"], found["where"].strip()


def find(name: str) -> tuple[Entry, Mapping[str, Any]]:
    """Find a measure by its name or an alias, whatever the case, with the parameters that an alias stands for.

    >>> find("hitrate")[0].name, find("ndcg_burges")[1]
    ('Success', {'gain': 'exp2'})
    """
    if name in REGISTRY:
        return REGISTRY[name], {}
    known = _names()
    if (found := known.get(key(name))) is not None:
        return found
    parted = _WITHOUT_AT.fullmatch(name)
    if parted and (found := known.get(key(parted["name"]))) is not None:
        written = parted["name"] if found[1] else found[0].name
        raise MeasureError(f"there is no measure {name!r}. Fix: did you mean {written}@{parted['cutoff']}?")
    import difflib  # only wrong names need it

    close = difflib.get_close_matches(key(name), known, n=3, cutoff=0.5)
    names = ", ".join(dict.fromkeys(known[one][0].name for one in close))
    fix = f"did you mean {names}? 'judged measures' lists all" if names else "'judged measures' lists all"
    raise MeasureError(f"there is no measure {name!r}. Fix: {fix}")


def entry_of(text: str) -> Entry:
    """Find the measure that a name means, whatever parameters and cutoff it has.

    >>> entry_of("RBP(p=0.8)@10").name, entry_of("ERR").name, entry_of("ndcg_cut_10").name
    ('RBP', 'ERR', 'nDCG')
    """
    text = condition_of(text)[0]
    whole, suffixed = _NAME.fullmatch(text), _SUFFIX.fullmatch(text.strip())
    name = whole["name"] if whole else text
    try:
        return find(name)[0]
    except MeasureError:
        if suffixed is None:
            raise
        return find(suffixed["name"])[0]


def _names() -> dict[str, tuple[Entry, Mapping[str, Any]]]:
    known: dict[str, tuple[Entry, Mapping[str, Any]]] = {}
    for entry in REGISTRY.values():
        for alias, values in {**entry.aliases, entry.name: {}}.items():
            known[key(alias)] = (entry, values)
    return known


def _read(text: str) -> tuple[Entry, dict[str, Any], str | None]:
    if after := _AFTER.fullmatch(text):
        text = f"{after['name']}{after['inside']}@{after['cutoffs']}"
    whole = _NAME.fullmatch(text)
    if whole is None:
        suffixed = _SUFFIX.fullmatch(text.strip())
        if suffixed is None:
            raise MeasureError(
                f"{text!r} is not a measure's name. Fix: write NAME, NAME@10 or NAME(parameter=value)@10"
            )
        entry, values = find(suffixed["name"])
        return _with_weight(entry, dict(values), suffixed["cutoffs"])
    name, cutoffs = whole["name"], whole["cutoffs"]
    suffixed = _SUFFIX.fullmatch(name)
    if suffixed and cutoffs is None and whole["inside"] is None and name not in REGISTRY:
        name, cutoffs = suffixed["name"], suffixed["cutoffs"]
    entry, values = find(name)
    other, given = translated(entry, {**values, **dict(_parts(whole["inside"] or "", text))})
    if whole["level"]:
        given["rel"] = whole["level"]
    refuse_implied(entry, given, cutoffs)
    found = REGISTRY[other], given, cutoffs
    return found if whole["cutoffs"] else _with_weight(*found)


def _with_weight(entry: Entry, given: dict[str, Any], cutoffs: str | None) -> tuple[Entry, dict[str, Any], str | None]:
    """Read trec_eval's ``set_F.2`` as it means it: the number is beta squared, and no cutoff."""
    if entry.name != "SetF" or cutoffs is None or not re.fullmatch(r"[0-9]*\.?[0-9]+", cutoffs):
        return entry, given, cutoffs
    return entry, {**given, "beta": math.sqrt(float(cutoffs))}, None


def _parts(inside: str, text: str) -> Iterator[tuple[str, Any]]:
    at = 0
    while at < len(inside.rstrip()):
        part = _PART.match(inside, at)
        if part is None:
            raise MeasureError(
                f"{text!r}: cannot read {inside[at:]!r}. Fix: write parameter=value, separated by commas"
            )
        yield part[1], _value(part[2].strip(), text)
        at = part.end()


def _value(written: str, text: str) -> Any:
    if not written.startswith("{"):
        return unquoted(written)
    parts = [part.split(":") for part in written.strip("{}").split(",") if part.strip()]
    kinds = {len(part) for part in parts}
    if kinds == {1}:
        return [part[0] for part in parts]
    if kinds != {2}:
        raise MeasureError(f"{text!r}: cannot read {written}. Fix: write a table such as {{1:1,2:3}}")
    table = {float_or_text(key): gain for key, gain in parts}
    if len(table) < len(parts):
        raise MeasureError(f"{text!r}: a grade stands twice in {written}. Fix: give each grade one gain")
    return table


def float_or_text(written: str) -> Any:
    """Read a number where there is one, so that 1 and 1.0 are the same key."""
    try:
        return read_number(written)
    except ValueError:
        return written.strip()


def _series(cutoffs: str, text: str) -> list[int]:
    found: list[int] = []
    for part in cutoffs.replace(" ", "").split(","):
        first, dots, last = part.partition("..")
        if not first.isdecimal() or (dots and not last.isdecimal()) or max(len(first), len(last)) > _DIGITS:
            raise MeasureError(f"{text!r}: {part!r} is not a cutoff. Fix: write @10, @5,10 or @1..10")
        if dots and int(last) < int(first):
            raise MeasureError(f"{text!r}: {part!r} does not count up. Fix: write the smaller cutoff first")
        if dots and int(last) - int(first) >= _MOST:
            raise MeasureError(f"{text!r}: {part!r} is a long series. Fix: at most {_MOST} cutoffs")
        found.extend(range(int(first), int(last or first) + 1))
    return found


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
