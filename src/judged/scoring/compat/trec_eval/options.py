"""Command-line options, parsed by the rules of getopt_long, with their help, and the readers of the input files."""

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
from judged.data.qrels import Qrels, preferences_to_judgments
from judged.data.run import Run
from judged.data.sources import Source, open_source
from judged.data.text_rows import TextRows
from judged.errors import InputError
from judged.results.decimals import counted
from judged.results.spelling import use_one_of
from judged.scoring.measures.pages import page
from judged.scoring.peers.names import describe_parameters
from judged.scoring.peers.trec_eval import NICKNAMES, USAGE, TrecEvalError, Version, atol, expand, measure_names, roots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from judged.data.column_names import Kind
    from judged.results.types import Table
    from judged.scoring.peers.trec_eval import OutputLine


USAGE_LINE = "usage: judged trec_eval [-h] [-q] [-c] [-n] [-l LEVEL] [-m MEASURE[.PARAMETERS]]... QRELS RUN"


@dataclass(frozen=True)
class CommandOptions:
    """Parsed command line."""

    measures: tuple[str, ...] = ()  # values of `-m`; empty for `official`
    # per_topic, summary: whether to print lines for each topic, and for all topics
    per_topic: bool = False
    summary: bool = True
    complete: bool = False  # whether a topic that is missing in the run scores 0
    level: int = 1  # lowest relevant grade
    depth: int | None = None  # number of documents used per topic; None for all
    judged_only: bool = False  # whether to remove unjudged documents from rankings
    collection: int = 0  # number of documents in the collection
    topic: str | None = None  # the only topic to evaluate; None for all
    qrels_format: str = "qrels"
    run_format: str = "trec_results"
    means_path: str | None = None  # file with mean and standard deviation of each line, to print z-scores
    dialect: Version = "trec_eval-10"
    help: bool = False
    version: bool = False
    qrels: str = ""
    run: str = ""


_LONG_OPTIONS = {
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
_SHORT_OPTIONS = "hvqm:cl:nD:JN:M:R:T:oZ:"


def _add_measure(options: CommandOptions, text: str) -> CommandOptions:
    roots(text, options.dialect)
    return replace(options, measures=(*options.measures, text))


def _parse_integer(option: str, text: str) -> int:
    """Parse an integer like ``atol``, which truncates decimals, but raise an error for text that it would ignore."""
    if not _NUMBER.fullmatch(text):
        raise TrecEvalError(f"-{option} {text}: {text!r} is not a number. Fix: write digits, as in -{option} 10", USAGE)
    return atol(text)


def _set_depth(options: CommandOptions, text: str) -> CommandOptions:
    depth = _parse_integer("M", text)
    if depth < 0:
        raise TrecEvalError(f"-M {text}: the number of documents must be 0 or more. Fix: use -M 10", USAGE)
    return replace(options, depth=depth)


def _set_level(options: CommandOptions, text: str) -> CommandOptions:
    level = _parse_integer("l", text)
    if level < 0:
        raise TrecEvalError(f"-l {text}: the level must be 0 or more (negative means unjudged). Fix: use -l 1", USAGE)
    return replace(options, level=level)


def _set_topic(options: CommandOptions, text: str) -> CommandOptions:
    _, point, topic = text.partition(".")
    return replace(options, topic=topic if point else options.topic)


_OPTION_HANDLERS: dict[str, Callable[[CommandOptions, str], CommandOptions]] = {
    "h": lambda options, _: replace(options, help=True),
    "v": lambda options, _: replace(options, version=True),
    "q": lambda options, _: replace(options, per_topic=True),
    "m": _add_measure,
    "c": lambda options, _: replace(options, complete=True),
    "l": _set_level,
    "n": lambda options, _: replace(options, summary=False),
    "D": _set_topic,
    "J": lambda options, _: replace(options, judged_only=True),
    "N": lambda options, text: replace(options, collection=_parse_integer("N", text)),
    "M": _set_depth,
    "R": lambda options, text: replace(options, qrels_format=text),
    "T": lambda options, text: replace(options, run_format=text),
    "o": lambda options, _: options,
    "Z": lambda options, text: replace(options, means_path=text),
}


def read_options(arguments: Sequence[str]) -> CommandOptions:
    """Parse the arguments. Options may be bundled, abbreviated if long, and mixed with operands.

    >>> options = read_options(["-qc", "-l2", "q.txt", "--measure", "P.5", "--Max=100", "-m", "map", "r.txt"])
    >>> options.measures, options.level, options.depth, options.qrels, options.run
    (('P.5', 'map'), 2, 100, 'q.txt', 'r.txt')
    """
    try:
        pairs, operands = getopt.gnu_getopt(list(arguments), _SHORT_OPTIONS, list(_LONG_OPTIONS))
    except getopt.GetoptError as error:
        raise TrecEvalError(f"{error.msg}. {USAGE_LINE}", USAGE) from None
    options = CommandOptions(dialect=_find_version(pairs))
    for name, text in pairs:
        letter = _option_letter(name)
        if letter != "dialect":
            options = _OPTION_HANDLERS[letter](options, text)
        if options.version:
            return options
    if options.help:
        return options
    if len(operands) != 2:
        raise TrecEvalError(f"2 files (QRELS and RUN) are required, got {len(operands)}. {USAGE_LINE}", USAGE)
    return replace(options, qrels=operands[0], run=operands[1])


def _option_letter(name: str) -> str:
    word = name.lstrip("-")
    return word if len(word) == 1 else _LONG_OPTIONS.get(word) or _LONG_OPTIONS[f"{word}="]


def _find_version(pairs: Sequence[tuple[str, str]]) -> Version:
    # `--dialect` is evaluated before the other options, because the set of measures depends on it.
    versions: dict[str, Version] = {name: name for name in get_args(Version)}
    version: Version = "trec_eval-10"
    for name, text in pairs:
        if name == "--dialect" and text not in versions:
            raise TrecEvalError(f"unknown dialect {text!r}. Fix: {use_one_of(versions)}", USAGE)
        if name == "--dialect":
            version = versions[text]
    return version


_OPTIONS_HELP = """\
Evaluate the ranking in RUN against the judgments in QRELS, and print the same lines as trec_eval.
RUN may be - for standard input. RUN and QRELS may be compressed.

  -h, --help                           show this text; with -m, also the pages of these measures
  -v, --version                        show the version
  -q, --query_eval_wanted              print lines for each topic too
  -n, --nosummary                      print no summary
  -c, --complete_rel_info_wanted       count topics of QRELS missing from RUN as 0
  -l, --level_for_rel LEVEL            lowest relevant grade; default 1
  -m, --measure MEASURE[.PARAMETERS]   a measure or nickname; can be repeated; default official
  -M, --Max_retrieved_per_topic COUNT  number of documents to use per topic
  -J, --Judged_docs_only               remove unjudged documents from the rankings
  -N, --Number_docs_in_coll COUNT      size of the collection, for utility
  -D, --Debug_level LEVEL[.TOPIC]      evaluate only this topic; there is no debug output
  -R, --Rel_info_format FORMAT         format of QRELS: qrels, qrels_jg, prefs, qrels_prefs
  -T, --Results_format FORMAT          format of RUN: trec_results
  -Z, --Zscore FILE                    print z-scores, with the means and deviations in FILE
      --dialect NAME                   version to reproduce: trec_eval-10 (default) or trec_eval-9
  -o                                   accepted, without effect

Exit codes: 0 success; 1 invalid options or unknown measure; 2 unreadable file or invalid parameters; 4 duplicate
document in a topic, topic missing from RUN without -c, measure that cannot be computed from the format of QRELS, or
utility without 4 coefficients; 7 no topic to evaluate; 255 unreadable FILE of -Z."""

_QRELS_HELP = {
    "qrels": "Lines of QRELS: topic, an ignored field, document, grade. Grades are truncated to integers. A negative\n"
    "grade means that the document was not judged.",
    "qrels_jg": "Lines of QRELS: topic, user, document, grade. Measures are computed for each user and averaged.",
    "prefs": "Lines of QRELS: topic, user, group, document, level. Within a group, a user prefers documents of a\n"
    "higher level to documents of a lower level. The preferences of a user are transitive across groups.",
    "qrels_prefs": "Lines of QRELS: topic, user, document, level. A user prefers documents of a higher level to"
    " documents of a lower level.",
}
_RUN_HELP = """\
Lines of RUN: topic, an ignored field, document, rank (ignored), score, tag; further fields are ignored. Documents
are ordered by descending score. Documents with equal scores are ordered by descending document id (bytewise). Lines
that start with # are comments."""

_TEXT_LINES_HELP = {
    "runid": "The tag in the last line of RUN.",
    "relstring": "The grades of the first documents, one character each: 0 to 9, > for higher grades, - for unjudged\n"
    "documents, . for negative grades. Only for single topics. Default: 10 documents.",
}


_PARAMETER_SECTION = re.compile(r"^(?:## Parameters\n.*?(?=^## )|It has no parameters\.\n\n)", re.MULTILINE | re.DOTALL)


def manual(options: CommandOptions) -> str:
    """Return the help for the options."""
    parts = [USAGE_LINE, _OPTIONS_HELP]
    parts += [_QRELS_HELP[options.qrels_format]] if options.qrels_format in _QRELS_HELP else []
    parts += [_RUN_HELP] if options.run_format == "trec_results" else []
    if options.measures:
        parts += [_format_page(lines) for lines in _group_by_root(options)]
    else:
        available = measure_names(options.dialect)
        groups = {group: [name for name in members if name in available] for group, members in NICKNAMES.items()}
        parts.append("\n".join(["Nicknames of measures:", *(_wrap(f"  {name}:", groups[name]) for name in groups)]))
        parts.append(f"{_wrap('Measures:', available)}\n'judged trec_eval -h -m MEASURE' shows the page of a measure.")
    return "\n\n".join(parts) + "\n"


def _wrap(label: str, words: Iterable[str], separator: str = " ") -> str:
    text = f"{label} {separator.join(words)}"
    return textwrap.fill(text, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _group_by_root(options: CommandOptions) -> list[list[OutputLine]]:
    lines_by_root: dict[str, list[OutputLine]] = {}
    settings = {"level": options.level, "collection": options.collection}
    for line in expand(*options.measures, **settings, dialect=options.dialect):
        lines_by_root.setdefault(line.root, []).append(line)
    return list(lines_by_root.values())


def _format_page(lines: list[OutputLine]) -> str:
    """Return the page of a measure of `judged`, with trec_eval's parameters in place of its own."""
    first = lines[0]
    parts = [_wrap(f"{first.root}: printed as", [line.name for line in lines], ", ")]
    syntax = describe_parameters(first.root)
    parts.append(f"Parameters of {first.root}: {syntax}" if syntax else f"{first.root} takes no parameters.")
    if first.kind == "text":
        return "\n\n".join([parts[0], _TEXT_LINES_HELP[first.root], parts[1]])
    parts.insert(1, _wrap("In judged:", [str(line.measure) for line in lines], ", "))
    return "\n\n".join(["\n".join(parts), _PARAMETER_SECTION.sub("", page(first.judged_name))])


_QRELS_COLUMNS = ("query_id", "iteration", "doc_id", "relevance")
_PREFERENCE_COLUMNS = ("query_id", "user", "subgroup", "doc_id", "relevance")
_SCORE = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_SPACE = rb"[ \t\v\f\r]"
_COLUMN_LABELS = {"iteration": "user (or 0)", "user": "user", "doc_id": "document", "relevance": "grade"}


def read_qrels(path: str, *, by_user: bool = False) -> Qrels:
    """Read judgments with four fields per line.

    With `by_user`, the second field is the user, and each user may judge a document once per topic. Otherwise, a pair
    may occur twice, and only the evaluation of its topic fails.
    """
    table, source = _read_table(path, _QRELS_COLUMNS)
    if by_user:
        counts = table.group_by(["query_id", "iteration", "doc_id"]).aggregate([([], "count_all")])
        for pair in counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist():
            problem = f"user {pair['iteration']} judges document {pair['doc_id']} twice for topic {pair['query_id']}"
            raise InputError(problem, fix="keep one judgment", path=source)
    return Qrels(table, "qrels", source)


def truncate_grades(qrels: Qrels) -> tuple[Qrels, str]:
    """Truncate grades to integers like C's ``atol``. Return also a warning if that changed a grade, or ""."""
    truncated = qrels.regraded(np.trunc(qrels.grades) + 0.0)
    num_changed = np.count_nonzero(truncated.grades != qrels.grades)
    problem = f"{num_changed} of {len(qrels)} grades are not integers; fractions are ignored"
    return truncated, f"warning: {qrels.where}: {problem}" if num_changed else ""


def open_run(path: str) -> Run:
    """Open a run with at least six fields per line; ``-`` is standard input."""
    rows = _text_rows(path, "run")
    names = ("query_id", "", "doc_id", "", "score", "run_id")
    layout = Layout(names, rows.layout.delimiter, fields=rows.layout.fields, open_ended=True)
    return Run(replace(rows, layout=layout))


def run_tag(run: Run) -> str:
    """Return the tag in the last line of a run."""
    assert isinstance(run.rows, TextRows)  # noqa: S101 - made by open_run
    last_line = b""
    for block in files.blocks(run.rows.path):
        last_line = next(filter(is_data, _reversed_lines(block)), last_line)
    return last_line.split()[5].decode(errors="replace")


def explain_line_error(error: InputError, path: str) -> InputError:
    """Return the error for a line with too few fields, with trec_eval's field names in place of column names."""
    if error.rule != "too-few-fields" or path == "-":  # standard input cannot be read again
        return error
    rows = _text_rows(path, "run")
    numbered = rows.numbered() if error.path == rows.where else ()
    fields = next((line for number, line in numbered if number == error.line), b"").decode(errors="replace").split()
    problem, fix = error.problem, "write topic, Q0, document, rank, score, tag"
    if len(fields) == 5 and _SCORE.fullmatch(fields[-1]):
        problem = f"the run tag is missing: {problem}"
        fix = "add a sixth column with any word; 'judged evaluate' reads runs without a tag"
    return InputError(problem, fix=fix if fields else error.fix, path=error.path, line=error.line)


def _reversed_lines(block: bytes) -> Iterator[bytes]:
    end = len(block)
    while end > 0:
        start = block.rfind(b"\n", 0, end - 1) + 1
        yield block[start:end]
        end = start


def _text_rows(path: str, kind: Kind) -> TextRows:
    rows = open_source(path, kind, "trec").rows
    if not isinstance(rows, TextRows):
        raise InputError("a text file is required", fix="use a file in TREC format", path=str(path))
    return rows


def _check_lines(rows: TextRows, names: tuple[str, ...]) -> None:
    """Raise an error for a blank line, or a line with a wrong number of fields."""
    complete = rb"\S+" + (len(names) - 1) * (_SPACE + rb"+\S+") + _SPACE + rb"*$"
    malformed = re.compile(rb"^(?!" + _SPACE + rb"*(?:#|" + complete + rb")).*$", re.MULTILINE)
    num_lines_before = 0
    for block in files.blocks(rows.path):
        if match := malformed.search(block.removesuffix(b"\n")):
            num_fields = len(match[0].split())
            problem = (
                f"{counted(num_fields, 'field')}, expected {len(names)}"
                if num_fields
                else "a blank line is not allowed"
            )
            fix = "write topic, " + ", ".join(_COLUMN_LABELS.get(name, name) for name in names[1:])
            line = num_lines_before + block.count(b"\n", 0, match.start()) + 1
            raise InputError(problem, fix=fix, path=rows.where, line=line)
        num_lines_before += block.count(b"\n")


def read_preferences(path: str, qrels_format: str) -> Qrels:
    """Read preferences: ``prefs`` has a user and a group per line, ``qrels_prefs`` only a user."""
    # User and group together become the iteration.
    subgroup = None if qrels_format == "qrels_prefs" else "subgroup"
    names = ("query_id", "user", "doc_id", "relevance") if subgroup is None else _PREFERENCE_COLUMNS
    table, source = _read_table(path, names)
    return Qrels(preferences_to_judgments(table, subgroup), "qrels", source)


def _read_table(path: str, names: tuple[str, ...]) -> tuple[Table, str]:
    rows = _text_rows(path, "qrels")
    _check_lines(rows, names)
    rows = replace(rows, layout=Layout(names, rows.layout.delimiter, fields=rows.layout.fields))
    table, _ = Source(rows).table(names)
    return table, rows.where
