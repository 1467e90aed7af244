"""The options of the command, read by the rules of getopt_long, and the manual that tells of them."""

from __future__ import annotations

import getopt
import re
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from judged.data import files
from judged.data.compute import pc
from judged.data.layout import Layout, is_data
from judged.data.qrels import Qrels, by_user
from judged.data.run import Run
from judged.data.sources import Source, open_source
from judged.data.text_rows import TextRows
from judged.errors import InputError
from judged.scoring.measures.pages import page
from judged.scoring.peers.names import parameters_of
from judged.scoring.peers.trec_eval import NICKNAMES, USAGE, Dialect, TrecEvalError, atol, expand, names, roots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from judged.data.layout import Kind
    from judged.results.types import Table
    from judged.scoring.peers.trec_eval import Printed


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
        raise TrecEvalError(f"-{option} {text}: {text!r} is not a number. Fix: write digits, as in -{option} 10", USAGE)
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
            raise TrecEvalError(f"there is no dialect {text!r}. Fix: use one of {', '.join(known)}", USAGE)
        if name == "--dialect":
            found = known[text]
    return found


_OPTIONS = """\
Evaluate the ranking in RUN against the judgments in QRELS, and print what trec_eval prints.
RUN may be - for standard input; both may be compressed.

  -h, --help                           show this text, with the pages of the measures that -m names
  -v, --version                        show the version
  -q, --query_eval_wanted              print lines for each topic too
  -n, --nosummary                      print no summary
  -c, --complete_rel_info_wanted       count a topic of QRELS that RUN lacks as 0
  -l, --level_for_rel LEVEL            lowest grade that is relevant; default 1
  -m, --measure MEASURE[.PARAMETERS]   a measure or a nickname; repeat for more; default official
  -M, --Max_retrieved_per_topic COUNT  use only the first documents of each topic
  -J, --Judged_docs_only               leave unjudged documents out of the rankings first
  -N, --Number_docs_in_coll COUNT      size of the collection, for utility
  -D, --Debug_level LEVEL[.TOPIC]      evaluate only this topic; nothing else is printed for a level
  -R, --Rel_info_format FORM           form of QRELS: qrels, qrels_jg, prefs, qrels_prefs
  -T, --Results_format FORM            form of RUN: trec_results
  -Z, --Zscore FILE                    print deviations from the means in FILE
      --dialect NAME                   trec_eval-10 (default) or trec_eval-9
  -o                                   does nothing

Exit code: 0 fine; 1 wrong options or no such measure; 2 a file that cannot be read, or senseless parameters;
4 a document twice in a topic, a topic that RUN lacks without -c, a measure that does not go with the form of QRELS,
or utility without 4 coefficients; 7 no topic; 255 FILE of -Z cannot be read."""

_FORMS = {
    "qrels": "Lines of QRELS: topic, a word that is ignored, document, grade. Grades are cut to whole numbers; a\n"
    "negative one says that the document was not judged.",
    "qrels_jg": "Lines of QRELS: topic, user, document, grade. Measures are computed for each user, and averaged.",
    "prefs": "Lines of QRELS: topic, user, group, document, level. Within a group of one user a document of a higher\n"
    "level is preferred to one of a lower level; the preferences of a user are carried on from group to group.",
    "qrels_prefs": "Lines of QRELS: topic, user, document, level. A user prefers a higher level to a lower one.",
}
_RUNS = """\
Lines of RUN: topic, a word that is ignored, document, rank (ignored), score, tag; more is ignored. Documents are
ordered by descending score, and those of equal score by descending document id, in bytes. Lines with # are comments."""

_TEXTS = {
    "runid": "The tag in the last line of RUN.",
    "relstring": "The grades of the first documents, a character each: 0 to 9, > above, - without a judgment, . for a\n"
    "negative grade. Only for topics; without a parameter 10 documents.",
}


_PARAMETERS = re.compile(r"^(?:## Parameters\n.*?(?=^## )|It has no parameters\.\n\n)", re.MULTILINE | re.DOTALL)


def manual(options: Options) -> str:
    """Write the help that some options ask for."""
    parts = [USAGE_LINE, _OPTIONS]
    parts += [_FORMS[options.form]] if options.form in _FORMS else []
    parts += [_RUNS] if options.results_form == "trec_results" else []
    if options.measures:
        parts += [_page(lines) for lines in _by_root(options)]
    else:
        there = names(options.dialect)
        groups = {group: [name for name in several if name in there] for group, several in NICKNAMES.items()}
        parts.append("\n".join(["Nicknames of measures:", *(_listed(f"  {name}:", groups[name]) for name in groups)]))
        parts.append(f"{_listed('Measures:', there)}\n'judged trec_eval -h -m MEASURE' shows the page of one.")
    return "\n\n".join(parts) + "\n"


def _listed(start: str, words: Iterable[str], between: str = " ") -> str:
    """Write words behind a start, in lines of the terminal's width."""
    text = f"{start} {between.join(words)}"
    return textwrap.fill(text, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _by_root(options: Options) -> list[list[Printed]]:
    found: dict[str, list[Printed]] = {}
    asked = {"level": options.level, "collection": options.collection}
    for line in expand(*options.measures, **asked, dialect=options.dialect):
        found.setdefault(line.root, []).append(line)
    return list(found.values())


def _page(lines: list[Printed]) -> str:
    """Write our page of a measure, with trec_eval's parameters in place of ours."""
    first = lines[0]
    parts = [_listed(f"{first.root}: printed as", [line.name for line in lines], ", ")]
    form = parameters_of(first.root)
    parts.append(f"Its parameters are {form}" if form else "It takes no parameters.")
    if first.kind == "text":
        return "\n\n".join([parts[0], _TEXTS[first.root], parts[1]])
    parts.insert(1, _listed("In judged:", [str(line.measure) for line in lines], ", "))
    return "\n\n".join(["\n".join(parts), _PARAMETERS.sub("", page(first.ours))])


_QRELS = ("query_id", "iteration", "doc_id", "relevance")
_PREFS = ("query_id", "user", "subgroup", "doc_id", "relevance")
_SCORE = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_BLANK = rb"[ \t\v\f\r]"
_WORDS = {"iteration": "user (or 0)", "user": "user", "doc_id": "document", "relevance": "grade"}


def read_qrels(path: str, *, by_user: bool = False) -> Qrels:
    """Read judgments: four fields a line.

    With `by_user` the second field is the user, and a user who judges a document twice for a topic is refused.
    Otherwise a pair may stand in them twice: only the evaluation of its topic fails.
    """
    table, where = _table(path, _QRELS)
    if by_user:
        counts = table.group_by(["query_id", "iteration", "doc_id"]).aggregate([([], "count_all")])
        for pair in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
            problem = f"user {pair['iteration']} judges document {pair['doc_id']} twice for topic {pair['query_id']}"
            raise InputError(problem, fix="keep one judgment", path=where)
    return Qrels(table, "qrels", where)


def whole_grades(qrels: Qrels) -> tuple[Qrels, str]:
    """Cut grades to whole numbers as C's ``atol`` does; with a warning where that changes any, else an empty text."""
    whole = qrels.regraded(np.trunc(qrels.grades) + 0.0)
    changed = np.count_nonzero(whole.grades != qrels.grades)
    text = f"warning: {qrels.where}: {changed} of {len(qrels)} grades are no whole numbers; their fractions are ignored"
    return whole, text if changed else ""


def open_run(path: str) -> Run:
    """Open a run: six fields a line or more, of which topic, document and score count; ``-`` is standard input."""
    rows = _text_rows(path, "run")
    names = ("query_id", "", "doc_id", "", "score", "run_id")
    layout = Layout(names, rows.layout.delimiter, fields=rows.layout.fields, open_ended=True)
    return Run(replace(rows, layout=layout))


def run_tag(run: Run) -> str:
    """Give the tag in the last line of a run's file."""
    assert isinstance(run.rows, TextRows)  # noqa: S101 - made by open_run
    last = b""
    for block in files.blocks(run.rows.path):
        last = next(filter(is_data, _backwards(block)), last)
    return last.split()[5].decode(errors="replace")


def in_words(error: InputError, path: str) -> InputError:
    """Say what a line of a run lacks in trec_eval's words, in place of the names of our columns."""
    if error.rule != "too-few-fields" or path == "-":  # what came through a pipe is not there to be read again
        return error
    rows = _text_rows(path, "run")
    raw = next((raw for number, raw in rows.numbered() if error.path == rows.where and number == error.line), b"")
    fields = raw.decode(errors="replace").split()
    problem, fix = error.problem, "write topic, Q0, document, rank, score, tag"
    if len(fields) == 5 and _SCORE.fullmatch(fields[-1]):
        problem = f"the run tag is missing: {problem}"
        fix = "add a sixth column, any word; 'judged evaluate' reads runs without it"
    return InputError(problem, fix=fix if fields else error.fix, path=error.path, line=error.line)


def _backwards(block: bytes) -> Iterator[bytes]:
    end = len(block)
    while end > 0:
        start = block.rfind(b"\n", 0, end - 1) + 1
        yield block[start:end]
        end = start


def _text_rows(path: str, kind: Kind) -> TextRows:
    rows = open_source(path, kind, "trec").rows
    if not isinstance(rows, TextRows):
        raise InputError("this is not a text file", fix="give a file in TREC's form", path=str(path))
    return rows


def _refuse_malformed(rows: TextRows, names: tuple[str, ...]) -> None:
    """Refuse a line that is blank or has another number of fields."""
    complete = rb"\S+" + (len(names) - 1) * (_BLANK + rb"+\S+") + _BLANK + rb"*$"
    malformed = re.compile(rb"^(?!" + _BLANK + rb"*(?:#|" + complete + rb")).*$", re.MULTILINE)
    above = 0
    for block in files.blocks(rows.path):
        if bad := malformed.search(block.removesuffix(b"\n")):
            count = len(bad[0].split())
            problem = (
                f"{count} fields where {len(names)} are needed" if count else "a blank line, which is refused here"
            )
            fix = "write topic, " + ", ".join(_WORDS.get(name, name) for name in names[1:])
            line = above + block.count(b"\n", 0, bad.start()) + 1
            raise InputError(problem, fix=fix, path=rows.where, line=line)
        above += block.count(b"\n")


def read_preferences(path: str, form: str) -> Qrels:
    """Read preferences: ``prefs`` have a user and a group, ``qrels_prefs`` a user whose one group is all."""
    # User and group together are the iteration.
    subgroup = None if form == "qrels_prefs" else "subgroup"
    names = ("query_id", "user", "doc_id", "relevance") if subgroup is None else _PREFS
    table, where = _table(path, names)
    return Qrels(by_user(table, subgroup), "qrels", where)


def _table(path: str, names: tuple[str, ...]) -> tuple[Table, str]:
    rows = _text_rows(path, "qrels")
    _refuse_malformed(rows, names)
    rows = replace(rows, layout=Layout(names, rows.layout.delimiter, fields=rows.layout.fields))
    table, _ = Source(rows).table(names)
    return table, rows.where
