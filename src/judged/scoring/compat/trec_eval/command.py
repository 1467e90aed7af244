"""The whole command as a function: arguments in, what it prints and its exit code out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import judged
from judged.errors import InputError, JudgedError
from judged.scoring.compat.trec_eval.options import Options, read_options
from judged.scoring.peers.trec_eval import CALCULATION, INPUT, TrecEvalError, expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.scoring.compat.trec_eval.scores import Scorer
    from judged.scoring.peers.trec_eval import Kind, Printed

FORMS = {"qrels": "qrels", "qrels_jg": "qrels_jg", "prefs": "prefs", "qrels_prefs": "prefs"}
"""The forms of judgments, and which measures go with each."""


@dataclass(frozen=True)
class Outcome:
    """What a call of the command gives."""

    output: str  # the text on standard output
    code: int = 0  # the exit code
    message: str = ""  # the text on standard error


def trec_eval(arguments: Sequence[str]) -> Outcome:
    """Do what the command does with these arguments.

    >>> trec_eval(["-m", "nDCG@10", "qrels.txt", "my.run"]).code
    1
    """
    options = Options()
    try:
        options = read_options(arguments)
        if options.version:
            return Outcome("", 0, f"judged {judged.__version__}, by the rules of {options.dialect}")
        if options.help:
            from judged.scoring.compat.trec_eval.options import manual

            return Outcome(manual(options))
        return _evaluated(options)
    except InputError as error:
        from judged.scoring.compat.trec_eval.options import in_words

        return Outcome("", INPUT, f"error: {in_words(error, options.run)}")
    except JudgedError as error:
        return Outcome("", error.code if isinstance(error, TrecEvalError) else INPUT, f"error: {error}")


def _evaluated(options: Options) -> Outcome:
    from judged.scoring.compat.trec_eval.options import open_run
    from judged.scoring.compat.trec_eval.scores import Scorer, read_means, walk

    qrels, warning = _judgments(options)
    if options.results_form != "trec_results":
        raise TrecEvalError(f"there is no form of runs {options.results_form!r}. Fix: use trec_results", INPUT)
    run = open_run(options.run)
    means = None if options.zscores is None else read_means(options.zscores)
    lines = expand(
        *(options.measures or ("official",)),
        level=options.level,
        collection=options.collection,
        dialect=options.dialect,
    )
    found = walk(qrels, run, options, ranked=any(line.format != "any" for line in lines))
    alien = next((line for line in lines if line.format not in {"any", FORMS[options.form]}), None)
    if alien:
        group = FORMS[options.form]
        own = "" if group == "qrels" else f"-m {group}"  # the nickname of the measures that go with this form
        other = f"-R {alien.format}" if options.measures or not own else ""
        fix = ", or ".join(filter(None, (own, other)))
        problem = f"{alien.root} cannot be computed from judgments in the form {options.form}. Fix: {fix}"
        raise TrecEvalError(problem, CALCULATION)
    scorer = Scorer(found, options, means)
    if found.stopped:
        return Outcome(_printed(lines, scorer, options, run=None), CALCULATION, f"error: {found.stopped}")
    return Outcome(_printed(lines, scorer, options, run), message=warning)


def _judgments(options: Options) -> tuple[Qrels, str]:
    from judged.scoring.compat.trec_eval.options import read_preferences, read_qrels, whole_grades

    if options.form not in FORMS:
        raise TrecEvalError(
            f"there is no form of judgments {options.form!r}. Fix: use one of {', '.join(FORMS)}", INPUT
        )
    if FORMS[options.form] == "prefs":
        return read_preferences(options.qrels, options.form), ""
    return whole_grades(read_qrels(options.qrels, by_user=options.form == "qrels_jg"))


def _printed(lines: Sequence[Printed], scorer: Scorer, options: Options, run: Run | None) -> str:
    """Write the lines of each topic and the summary; no summary where the evaluation stopped: `run` is None."""
    from judged.scoring.compat.trec_eval.options import run_tag

    columns: list[tuple[str, list[str]]] = []
    summary: list[str] = []
    wanted = run is not None and options.summary
    zscores = options.zscores is not None
    for line in lines:
        shown = options.per_topic and line.shown != "summary"
        if line.kind == "text":
            if line.root == "relstring" and shown:
                columns.append((start(line.name), scorer.strings(line)))
            elif line.root == "runid" and run is not None and wanted:
                summary.append(f"{start(line.name)}\t{ALL}\t{run_tag(run)}\n")
            continue
        if not (shown or wanted):
            continue
        scores = scorer.scores(line)
        kind = "float" if zscores else line.kind
        name = start(line.name, zscores=zscores)
        if shown:
            columns.append((name, [number(score, kind) for score in scores.tolist()]))
        if wanted and line.shown != "topics":
            summary.append(f"{name}\t{ALL}\t{number(scorer.summary(line, scores), kind)}\n")
    return by_topic(scorer.walk.topics, columns) + "".join(summary)


ALL = "all"
"""What stands in place of a topic in the summary."""


def start(name: str, *, zscores: bool = False) -> str:
    """Begin a line: the name, filled up with blanks.

    >>> start("P_5", zscores=True)
    'ZP_5                   '
    """
    return f"{'Z' if zscores else ''}{name:<22}"


def number(value: float, kind: Kind) -> str:
    """Write a number as C does, where 0/0 is a negative NaN.

    >>> number(0.25, "float"), number(3.0, "integer"), number(math.nan, "float"), number(-1e6, "float")
    ('0.2500', '3', '  -nan', '-1000000.0000')
    """
    if kind == "integer":
        return str(int(value))
    return "  -nan" if math.isnan(value) else f"{value:6.4f}"


def by_topic(topics: Sequence[str], columns: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Write all lines of the first topic, then those of the second, and so on.

    >>> print(by_topic(["1", "2"], [("map", ["0.5000", "0.2500"]), ("P_5", ["0.2000", "0.4000"])]), end="")
    map 1       0.5000
    P_5 1       0.2000
    map 2       0.2500
    P_5 2       0.4000
    """
    columns = list(columns)
    written = [f"{name}\t{topic}\t{values[at]}\n" for at, topic in enumerate(topics) for name, values in columns]
    return "".join(written)
