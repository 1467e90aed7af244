"""The command as a function from arguments to output and exit code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import judged
from judged.errors import InputError, JudgedError
from judged.scoring.compat.trec_eval.options import (
    CommandOptions,
    explain_line_error,
    manual,
    open_run,
    read_options,
    read_preferences,
    read_qrels,
    run_tag,
    truncate_grades,
)  # fmt: skip
from judged.scoring.peers.trec_eval import CALCULATION, INPUT, TrecEvalError, expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.scoring.compat.trec_eval.scores import Scorer
    from judged.scoring.peers.trec_eval import OutputLine, ValueKind

MEASURE_GROUPS = {"qrels": "qrels", "qrels_jg": "qrels_jg", "prefs": "prefs", "qrels_prefs": "prefs"}
"""Group of measures that can be computed, by format of the judgments."""


@dataclass(frozen=True)
class CommandResult:
    """Output and exit code of the command."""

    output: str  # text for standard output
    code: int = 0  # exit code
    message: str = ""  # text for standard error


def trec_eval(arguments: Sequence[str]) -> CommandResult:
    """Run the command with these arguments.

    >>> trec_eval(["-m", "nDCG@10", "qrels.txt", "my.run"]).code
    1
    """
    options = CommandOptions()
    try:
        options = read_options(arguments)
        if options.version:
            return CommandResult("", 0, f"judged {judged.__version__}, with the rules of {options.dialect}")
        if options.help:
            return CommandResult(manual(options))
        return _evaluate(options)
    except InputError as error:
        return CommandResult("", INPUT, f"error: {explain_line_error(error, options.run)}")
    except JudgedError as error:
        return CommandResult("", error.code if isinstance(error, TrecEvalError) else INPUT, f"error: {error}")


def _evaluate(options: CommandOptions) -> CommandResult:
    from judged.scoring.compat.trec_eval.scores import Scorer, read_means, select_topics

    qrels, warning = _read_judgments(options)
    if options.run_format != "trec_results":
        raise TrecEvalError(f"-T must be trec_results, got {options.run_format!r}. Fix: use -T trec_results", INPUT)
    run = open_run(options.run)
    means = None if options.means_path is None else read_means(options.means_path)
    lines = expand(
        *(options.measures or ("official",)),
        level=options.level,
        collection=options.collection,
        dialect=options.dialect,
    )
    selection = select_topics(qrels, run, options, needs_ranking=any(line.format != "any" for line in lines))
    group = MEASURE_GROUPS[options.qrels_format]
    invalid_line = next((line for line in lines if line.format not in {"any", group}), None)
    if invalid_line:
        measure_option = "" if group == "qrels" else f"-m {group}"  # the nickname of this group of measures
        format_option = f"-R {invalid_line.format}" if options.measures or not measure_option else ""
        fix = ", or ".join(filter(None, (measure_option, format_option)))
        problem = f"{invalid_line.root} cannot be computed from judgments in the format {options.qrels_format}"
        raise TrecEvalError(f"{problem}. Fix: {fix}", CALCULATION)
    scorer = Scorer(selection, options, means)
    output = _format_output(lines, scorer, options, run=None if selection.problem else run)
    if selection.problem:
        return CommandResult(output, CALCULATION, f"error: {selection.problem}")
    return CommandResult(output, message=warning)


def _read_judgments(options: CommandOptions) -> tuple[Qrels, str]:
    if options.qrels_format not in MEASURE_GROUPS:
        formats = ", ".join(MEASURE_GROUPS)
        raise TrecEvalError(f"-R must be one of {formats}, got {options.qrels_format!r}. Fix: use -R qrels", INPUT)
    if MEASURE_GROUPS[options.qrels_format] == "prefs":
        return read_preferences(options.qrels, options.qrels_format), ""
    return truncate_grades(read_qrels(options.qrels, by_user=options.qrels_format == "qrels_jg"))


def _format_output(lines: Sequence[OutputLine], scorer: Scorer, options: CommandOptions, run: Run | None) -> str:
    """Return the lines of each topic, and the summary unless `run` is None (the evaluation ended with an error)."""
    columns: list[tuple[str, list[str]]] = []
    summary: list[str] = []
    has_summary = run is not None and options.summary
    zscores = options.means_path is not None
    for line in lines:
        has_topic_lines = options.per_topic and line.scope != "summary"
        if line.kind == "text":
            if line.root == "relstring" and has_topic_lines:
                columns.append((format_name(line.name), scorer.relevance_strings(line)))
            elif line.root == "runid" and run is not None and has_summary:
                summary.append(f"{format_name(line.name)}\t{SUMMARY_TOPIC}\t{run_tag(run)}\n")
            continue
        if not (has_topic_lines or has_summary):
            continue
        scores = scorer.scores(line)
        kind = "float" if zscores else line.kind
        name = format_name(line.name, zscores=zscores)
        if has_topic_lines:
            columns.append((name, [format_value(score, kind) for score in scores.tolist()]))
        if has_summary and line.scope != "topics":
            summary.append(f"{name}\t{SUMMARY_TOPIC}\t{format_value(scorer.summary(line, scores), kind)}\n")
    return merge_columns(scorer.selection.topics, columns) + "".join(summary)


SUMMARY_TOPIC = "all"
"""Topic id in the lines of the summary."""


def format_name(name: str, *, zscores: bool = False) -> str:
    """Return the name of a line, padded with blanks.

    >>> format_name("P_5", zscores=True)
    'ZP_5                   '
    """
    return f"{'Z' if zscores else ''}{name:<22}"


def format_value(value: float, kind: ValueKind) -> str:
    """Format a number like C, where the result of 0/0 is a negative NaN.

    >>> values = (0.25, "float"), (3.0, "integer"), (math.nan, "float"), (-1e6, "float")
    >>> tuple(format_value(value, kind) for value, kind in values)
    ('0.2500', '3', '  -nan', '-1000000.0000')
    """
    if kind == "integer":
        return str(int(value))
    return "  -nan" if math.isnan(value) else f"{value:6.4f}"


def merge_columns(topics: Sequence[str], columns: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return all lines of the first topic, then those of the second topic, and so on.

    >>> print(merge_columns(["1", "2"], [("map", ["0.5000", "0.2500"]), ("P_5", ["0.2000", "0.4000"])]), end="")
    map 1       0.5000
    P_5 1       0.2000
    map 2       0.2500
    P_5 2       0.4000
    """
    columns = list(columns)
    lines = [f"{name}\t{topic}\t{values[i]}\n" for i, topic in enumerate(topics) for name, values in columns]
    return "".join(lines)
