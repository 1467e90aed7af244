"""The options of the command, read by the rules of getopt_long."""

from __future__ import annotations

import getopt
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from judged.peers.cnumbers import atol
from judged.peers.errors import USAGE, TrecEvalError
from judged.peers.trec_eval import Dialect, roots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE_LINE = "usage: judged trec_eval [-h] [-q] [-c] [-n] [-l LEVEL] [-m MEASURE[.PARAMETERS]]... QRELS RUN"


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    measures: tuple[str, ...] = ()  # the `-m` options as they were written; none means `official`
    # per_topic, summary: whether lines are printed for each topic, and for all
    per_topic: bool = False
    summary: bool = True
    complete: bool = False  # whether a topic that the run lacks counts as 0
    level: int = 1  # the lowest grade that is relevant
    depth: int | None = None  # how many documents of each topic count; None for all
    judged_only: bool = False  # whether unjudged documents are left out of the ranking first
    collection: int = 0  # how many documents the collection has
    topic: str | None = None  # the only topic to evaluate, if one is named
    # form, results_form: how the judgments and the run are written
    form: str = "qrels"
    results_form: str = "trec_results"
    # the file with mean and standard deviation of each line, if scores are to be expressed in them
    zscores: str | None = None
    dialect: Dialect = "trec_eval-10"
    help: bool = False
    version: bool = False
    qrels: str = ""
    run: str = ""


_LONG = {
    "help": "h",
    "version": "v",
    "query_eval_wanted": "q",
    "measure=": "m",
    "complete_rel_info_wanted": "c",
    "level_for_rel=": "l",
    "nosummary": "n",
    "Debug_level=": "D",
    "Judged_docs_only": "J",
    "Number_docs_in_coll=": "N",
    "Max_retrieved_per_topic=": "M",
    "Rel_info_format=": "R",
    "Results_format=": "T",
    "Output_old_results_format=": "o",
    "Zscore=": "Z",
    "dialect=": "dialect",
}
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(?:\.[0-9]*)?\s*")
_SHORT = "hvqm:cl:nD:JN:M:R:T:oZ:"


def _measure(options: Options, text: str) -> Options:
    roots(text, options.dialect)
    return replace(options, measures=(*options.measures, text))


def _whole(option: str, text: str) -> int:
    """Read a number as ``atol`` does, which cuts decimals off; but refuse what it would take for 0 or half of it."""
    if not _NUMBER.fullmatch(text):
        raise TrecEvalError(f"-{option} {text}: {text!r} is no number. Fix: write digits, as in -{option} 10", USAGE)
    return atol(text)


def _depth(options: Options, text: str) -> Options:
    depth = _whole("M", text)
    if depth < 0:
        raise TrecEvalError(f"-M {text}: a number of documents is not negative. Fix: give 0 or more", USAGE)
    return replace(options, depth=depth)


def _level(options: Options, text: str) -> Options:
    level = _whole("l", text)
    if level < 0:
        raise TrecEvalError(f"-l {text}: negative grades mean unjudged. Fix: give a level of 0 or more", USAGE)
    return replace(options, level=level)


def _topic(options: Options, text: str) -> Options:
    _, point, topic = text.partition(".")
    return replace(options, topic=topic if point else options.topic)


_MEANING: dict[str, Callable[[Options, str], Options]] = {
    "h": lambda options, _: replace(options, help=True),
    "v": lambda options, _: replace(options, version=True),
    "q": lambda options, _: replace(options, per_topic=True),
    "m": _measure,
    "c": lambda options, _: replace(options, complete=True),
    "l": _level,
    "n": lambda options, _: replace(options, summary=False),
    "D": _topic,
    "J": lambda options, _: replace(options, judged_only=True),
    "N": lambda options, text: replace(options, collection=_whole("N", text)),
    "M": _depth,
    "R": lambda options, text: replace(options, form=text),
    "T": lambda options, text: replace(options, results_form=text),
    "o": lambda options, _: options,
    "Z": lambda options, text: replace(options, zscores=text),
}


def read_options(arguments: Sequence[str]) -> Options:
    """Read the arguments: options may be bundled, abbreviated when long, and stand among the operands.

    >>> options = read_options(["-qc", "-l2", "q.txt", "--measure", "P.5", "--Max=100", "-m", "map", "r.txt"])
    >>> options.measures, options.level, options.depth, options.qrels, options.run
    (('P.5', 'map'), 2, 100, 'q.txt', 'r.txt')
    """
    try:
        pairs, operands = getopt.gnu_getopt(list(arguments), _SHORT, list(_LONG))
    except getopt.GetoptError as error:
        raise TrecEvalError(f"{error.msg}. {USAGE_LINE}", USAGE) from None
    options = Options(dialect=_dialect(pairs))
    for name, text in pairs:
        letter = _letter(name)
        if letter != "dialect":
            options = _MEANING[letter](options, text)
        if options.version:
            return options
    if options.help:
        return options
    if len(operands) != 2:
        raise TrecEvalError(f"{len(operands)} files are named where 2 are needed. {USAGE_LINE}", USAGE)
    return replace(options, qrels=operands[0], run=operands[1])


def _letter(name: str) -> str:
    word = name.lstrip("-")
    return word if len(word) == 1 else _LONG.get(word) or _LONG[f"{word}="]


def _dialect(pairs: Sequence[tuple[str, str]]) -> Dialect:
    """Find the dialect first: what measures there are depends on it."""
    known: dict[str, Dialect] = {name: name for name in get_args(Dialect)}
    found: Dialect = "trec_eval-10"
    for name, text in pairs:
        if name == "--dialect" and text not in known:
            raise TrecEvalError(f"there is no dialect {text!r}. Fix: one of {', '.join(known)}", USAGE)
        if name == "--dialect":
            found = known[text]
    return found
