"""Starting configuration of a gate, derived from the baseline and its topics."""

from __future__ import annotations

import json
import math
import os
import re
import textwrap
import warnings
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.class_measures import measures_of_classes, read_class_measures
from judged.comparison.slicing.derived import read_topic_attributes
from judged.comparison.slicing.topic_slices import Slice, slice_topics
from judged.data.qrels import Qrels
from judged.diagnosis.gates.check_result import format_loss
from judged.diagnosis.gates.config import ALL
from judged.diagnosis.gates.config_file import parse_config
from judged.diagnosis.gates.guardrails import check_no_outcome
from judged.errors import InputError, JudgedWarning
from judged.results.blocks import lines
from judged.results.decimals import decimal
from judged.scoring.evaluation import measures_of, runs_of
from judged.scoring.evaluation.evaluate import evaluate_without_warnings
from judged.scoring.judging import judge
from judged.scoring.measures.aggregates import aggregate
from judged.stats.inputs import paired_differences, spread, topics_text
from judged.stats.sample_size import minimum_detectable, power
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.run import Run
    from judged.results.types import Floats
    from judged.scoring.evaluation import Scores

ALPHA, POWER, CORRELATION, RELATIVE = 0.05, 0.8, 0.9, 0.02
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_DEPTHS = (100, 50, 20)
_JUDGED_SLACK = 0.05  # how far the judged share of the candidate's top 10 may be below the baseline's


def first_config(
    qrels: Any,
    baseline: Any,
    others: Any = None,
    measures: Any = None,
    *,
    attributes: Any = None,
    queries: Any = None,
    by: str | Sequence[str] | None = None,
    class_measures: Any = None,
    out: Path | None = None,
    margin_relative: float | None = None,
    strict: bool = False,
) -> str:
    """Return a starting configuration as TOML: measures, margins that these topics can detect, and guardrails.

    >>> qrels = {f"q{i}": {"d": 1, "e": 1} for i in range(12)}
    >>> run = {topic: ["d", "e"] if i % 3 else ["x", "d"] for i, topic in enumerate(qrels)}
    >>> [line for line in first_config(qrels, run, strict=True).splitlines() if line.startswith("m")]
    ['measure = "nDCG@10"', 'margin = 0.12', 'measure = "Judged@10"', 'missing_topics = 0']
    """
    # `others`: runs similar to the baseline. The spread of their differences from it determines the detectable loss.
    # Without them, scores of two versions are assumed to correlate at 0.9.
    # `measures`: None: nDCG@10, or RR@10 if a typical topic has one relevant document; and the deepest R@k of _DEPTHS
    # that the lists reach. `by`: attributes to slice by. None: the only attribute of the table, or no slices.
    # `class_measures`: measures of single slices, as for `Slicing.with_measures`; others have the first measure.
    # `out`: path of the configuration; other paths are written relative to its folder.
    # `margin_relative`: margin of all checks as a share of the baseline's mean. None: 0.02, or the detectable loss if
    # `strict`.
    judgments, baseline_runs = Qrels.of(qrels), runs_of(baseline)
    if len(baseline_runs) != 1:
        raise InputError(f"the baseline must be one run, got {len(baseline_runs)}", fix="select one run")
    checked = measures_of(_default_measures(judgments, baseline_runs[0]) if measures is None else measures)
    declared = read_class_measures(class_measures or {})
    compared_runs = [*baseline_runs, *([] if others is None else runs_of(others))]
    scores = evaluate_without_warnings(judgments, compared_runs, [*checked, *declared.measures.values()])
    share = evaluate_without_warnings(judgments, baseline_runs, "Judged@10").value("Judged@10")
    _check_baseline_scores(scores)
    _warn_of_sparse_judgments(scores, share)
    slicing = _topic_slicing(judgments, attributes, queries, by or declared.by or None, scores.query_ids)
    tables = {"attributes": attributes, "queries": queries} if slicing else {}
    paths = {key: _relative_path(path, key, out) for key, path in tables.items() if path is not None}
    sizes = [] if slicing is None else list(zip(slicing.slices, slicing.n.tolist(), slicing.small, strict=True))
    large_slices = [topic_slice for topic_slice, _, is_small in sizes if not is_small]
    few = ", ".join(f"{topic_slice.name} ({n})" for topic_slice, n, is_small in sizes if is_small)
    if slicing is None and declared.measures:
        raise InputError("the measures of classes require a slicing attribute", fix="use --by NAME")
    own = {} if slicing is None else measures_of_classes(scores, slicing.with_measures(declared.measures))
    checks = [_CheckPlan.of(scores, row, Slice(ALL, ""), slicing) for row in range(len(checked))]
    for i, (topic_slice, _, is_small) in enumerate(sizes):
        row = scores.measures.index(own.get(i, checked[0]))
        checks += [] if is_small else [_CheckPlan.of(scores, row, topic_slice, slicing)]
    sections = [
        "\n".join(f"{key} = {json.dumps(path)}" for key, path in paths.items()),
        *(_slice_lines(topic_slice) for topic_slice in large_slices),
        _comment(f"Slices with too few topics for a decision: {few}.") if few else "",
        *("\n".join(_check_lines(check, len(checks), margin_relative, strict=strict)) for check in checks),
    ]
    template = files("judged.diagnosis.gates").joinpath("first_config.toml").read_text("utf-8")
    text = template.format(
        baseline=" ".join(baseline_runs[0].name.split()),
        topics=topics_text(len(scores.query_ids)),
        strict=str(strict).lower(),
        alpha=ALPHA,
        parts="\n\n".join(filter(None, sections)),
        share=share,
        judged=_judged_guardrail(share),
    )
    parse_config(text)  # check that the result is valid
    return text.rstrip()


def _relative_path(path: Any, key: str, out: Path | None) -> str:
    """Return a path relative to the folder of the configuration `out`."""
    if not isinstance(path, (str, Path)):
        raise InputError(f"{key} must be a path, got {type(path).__name__}", fix="save the table and use its path")
    folder = Path() if out is None or str(out) == "-" else out.parent
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # the path is on another drive (Windows)
        return Path(path).absolute().as_posix()


def _default_measures(qrels: Qrels, run: Run) -> list[str]:
    """Select measures that suit the number of relevant documents and the length of the lists."""
    judged = judge(qrels, run)
    relevant, returned = judged.num_relevant(float(np.nextafter(0, 1))), judged.returned
    typical, length = (np.median(counts[counts > 0]) if counts.any() else 0 for counts in (relevant, returned))
    recall = [f"R@{depth}" for depth in _DEPTHS if length >= depth]
    return ["RR@10" if typical == 1 else "nDCG@10", *recall[:1]]


def _check_baseline_scores(scores: Scores) -> None:
    """Raise InputError if the baseline scores 0 everywhere, so that no candidate can lose."""
    for measure, row in zip(scores.measures, scores.values[0], strict=True):
        if measure.properties.higher_is_better and not np.nan_to_num(row).any():
            raise InputError(
                f"{measure} of the baseline {scores.run_names[0]} is 0 on every topic, so no loss is possible",
                fix="check that qrels and run use the same ids of topics and documents ('judged check'), and that some"
                " document has a grade that the measure counts as relevant",
            )


def _warn_of_sparse_judgments(scores: Scores, share: float) -> None:
    messages = list(lines(note for note in scores.notes if note.subject))
    if not _min_judged_share(share):
        messages.append(
            f"{scores.run_names[0]}: {share:.1%} of the top 10 documents are judged: judgments are sparse, or"
            " document ids do not match"
        )
    for message in messages:
        warnings.warn(message, JudgedWarning, stacklevel=3)


def _topic_slicing(
    qrels: Qrels, attributes: Any, queries: Any, by: str | Sequence[str] | None, query_ids: Sequence[str]
) -> Slicing | None:
    names = [by] if isinstance(by, str) else list(by or ())
    if not names and attributes is None:
        return None
    check_no_outcome(names, "the slices of a gate must not depend on")
    topic_attributes = read_topic_attributes(qrels, attributes=attributes, queries=queries, needed=names)
    if not names and len(topic_attributes.names) != 1:
        raise InputError("no slicing attribute", fix=f"use --by with one of {', '.join(topic_attributes.names)}")
    return slice_topics(topic_attributes, names or topic_attributes.names[0], query_ids=query_ids)


@dataclass(frozen=True)
class _CheckPlan:
    """Scores of the baseline over a slice, and the spread of differences between versions."""

    measure: str
    slice: Slice
    mean: float
    n: int
    sd: float  # of the differences by topic between two versions; NaN if means are compared by ratios
    is_assumed: bool  # whether `sd` follows from CORRELATION; otherwise other runs determine it

    @classmethod
    def of(cls, scores: Scores, row: int, topic_slice: Slice, slicing: Slicing | None) -> _CheckPlan:
        measure, values = scores.measures[row], scores.values[:, row]
        values = values if topic_slice.name == ALL or slicing is None else values[:, slicing.mask(topic_slice.name)]
        baseline, kind = values[0][~np.isnan(values[0])], measure.entry.aggregate
        if kind in {"sum", "count"} or (kind != "geometric mean" and measure.properties.higher_is_better is None):
            raise InputError(
                f"{measure} cannot be checked by a gate",
                fix="use a quality measure that is averaged over topics, such as nDCG@10",
            )
        is_assumed = len(values) == 1 or kind == "geometric mean"
        # Var(a - b) = 2 (1 - r) Var(a) for two runs of equal variance whose scores correlate at r.
        sd = spread(baseline) * math.sqrt(2 * (1 - CORRELATION)) if is_assumed else _pooled_sd(values)
        sd = math.nan if kind == "geometric mean" else sd
        return cls(str(measure), topic_slice, aggregate(kind, baseline), len(baseline), sd, is_assumed)


def _pooled_sd(values: Floats) -> float:
    """Return the root mean variance of the differences from the first row."""
    variances = [spread(paired_differences(values[0], row)[0]) ** 2 for row in values[1:]]
    return math.sqrt(sum(variances) / len(variances))


def _comment(text: str) -> str:
    """Wrap a text into comment lines."""
    return "\n".join(f"# {line}" for line in textwrap.wrap(" ".join(text.split()), 96, break_long_words=False))


def _slice_lines(topic_slice: Slice) -> str:
    settings = {"name": topic_slice.name, "expression": topic_slice.expression, "min_topics": topic_slice.min_topics}
    settings_lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(["[[slice]]", *settings_lines, '# owner = "contact for failures"'])


def _check_lines(check: _CheckPlan, family: int, margin_relative: float | None, *, strict: bool) -> Iterator[str]:
    yield "[[check]]"
    yield f"measure = {json.dumps(check.measure)}"
    if check.slice.name != ALL:
        yield f"slice = {json.dumps(check.slice.name)}"
    if check.n < check.slice.min_topics:
        yield _comment(
            f"{topics_text(check.n)}: a decision requires at least {check.slice.min_topics} topics; see min_topics."
        )
    mean, share = decimal(check.mean), RELATIVE if margin_relative is None else margin_relative
    if not (check.n > 1 and check.sd > 0):  # also if the sd is NaN
        ratio = math.isnan(check.sd) and check.n > 1
        reason = (
            "geometric means are compared by ratios" if ratio else "the scores do not vary, or there are too few scores"
        )
        yield f"margin_relative = {share:g}"
        yield _comment(
            f"margin_relative is a share of the baseline's mean, {mean}."
            f" No margin can be computed from these topics: {reason}."
        )
        return
    detectable = round_up(minimum_detectable(check.sd, check.n, 2 * ALPHA, POWER))
    if strict and margin_relative is None:
        share_of_mean = f" ({detectable / abs(check.mean):.0%} of the baseline's mean {mean})" if check.mean else ""
        rates = _error_rates(check, detectable, family)
        explanation = f"The smallest loss that a test on these topics can detect, rounded up{share_of_mean}. {rates}"
        yield f"margin = {format_loss(detectable)}"
        yield _comment(f"{explanation} {_sd_source(check)}")
        return
    margin = share * abs(check.mean)
    rates = _error_rates(check, margin, family)
    explanation = f"{100 * share:g}% of the baseline's mean {mean} is {format_loss(margin)}. {rates}"
    yield f"margin_relative = {share:g}"
    yield _comment(f"{explanation} {_sd_source(check)}")
    advice = f"To make most checks conclusive, for example with strict = true, use margin = {format_loss(detectable)}."
    yield _comment(f"{advice} {_error_rates(check, detectable, family)}")


def _error_rates(check: _CheckPlan, margin: float, family: int) -> str:
    """Describe the probabilities of the outcomes at a margin."""
    loss = format_loss(margin + minimum_detectable(check.sd, check.n, 2 * ALPHA / family, POWER))
    passes = round(100 * pass_probability(margin, check.sd, check.n))
    fails = round(100 * fail_probability(margin, check.sd, check.n, family))
    return (
        f"With {topics_text(check.n)}, a candidate that loses {loss} fails with probability {POWER:.0%}, and a"
        f" candidate as good as the baseline passes with probability {passes}%, fails with probability {fails}%, and is"
        f" inconclusive with probability {100 - passes - fails}% (exit code 0, or 1 with strict = true)."
    )


def first_error_rates(config: str) -> str:
    """Return the first sentence on error rates in the comments of a configuration; empty if there is none."""
    comments = " ".join(line.removeprefix("# ") for line in config.splitlines() if line.startswith("# "))
    sentence = re.search(r"With [\d,]+ topics?, a candidate that loses .*? strict = true\)\.", comments)
    return sentence[0] if sentence else ""


def _sd_source(check: _CheckPlan) -> str:
    source = (
        f"assuming a correlation of {CORRELATION:g} between the scores of two versions; add other runs to measure"
        " this correlation"
        if check.is_assumed
        else "measured on the other runs"
    )
    return f"(Standard deviation of the differences by topic: {decimal(check.sd, 3)}, {source}.)"


def pass_probability(margin: float, sd: float, n: int) -> float:
    """Return the probability that a candidate without a true difference passes: the power of a one-sided test."""
    # `power` is that of a two-sided test at 2 alpha, which also counts results on the side where a candidate fails.
    # With a small margin that part is not negligible, so it is subtracted.
    return power(margin, sd, n, 2 * ALPHA) - fail_probability(margin, sd, n)


def fail_probability(margin: float, sd: float, n: int, family: int = 1) -> float:
    """Return the probability that a candidate without a true difference fails a test, corrected for `family` tests."""
    from scipy.special import nctdtr

    p = float(nctdtr(n - 1, math.sqrt(n) * margin / sd, -student_quantile(1 - ALPHA / family, n - 1)))
    return 0.0 if math.isnan(p) else p


def _judged_guardrail(share: float) -> str:
    minimum = _min_judged_share(share)
    if not minimum:
        return "# There is no guardrail for the share of judged documents, because too few documents are judged."
    return f'[[guardrail]]\nmeasure = "Judged@10"\nat_least = {minimum:g}'


def _min_judged_share(share: float) -> float:
    """Return the minimum judged share for a candidate, or 0 if the baseline's is too low for a guardrail."""
    return 0.0 if math.isnan(share) else max(math.floor(100 * (share - _JUDGED_SLACK) + 1e-9) / 100, 0.0)


def round_up(value: float) -> float:
    """Round up to a number with at most two significant digits, as people choose thresholds.

    >>> round_up(0.0312), round_up(0.00801), round_up(0.05), round_up(1.2)
    (0.04, 0.01, 0.05, 1.2)
    """
    scale = 10.0 ** math.floor(math.log10(value))
    rounded = next(step for step in _STEPS if step * scale >= value * (1 - 1e-9))
    return float(f"{rounded * scale:.2g}")
