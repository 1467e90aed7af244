"""A first configuration of a gate, made from the baseline and its topics."""

from __future__ import annotations

import json
import math
import os
import textwrap
import warnings
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.derived import topic_attributes
from judged.comparison.slicing.topic_slices import Slice, slice_topics
from judged.data.qrels import Qrels
from judged.diagnosis.gates.check_result import digits, often
from judged.diagnosis.gates.config import ALL, parse_config
from judged.diagnosis.gates.guardrails import refuse_outcomes
from judged.errors import InputError, JudgedWarning
from judged.results.blocks import lines
from judged.results.decimals import decimal
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.evaluate import scored
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
_BELOW = 0.05  # how much less of the first page may be judged than the baseline's


def first_config(
    qrels: Any,
    baseline: Any,
    others: Any = None,
    measures: Any = None,
    *,
    attributes: Any = None,
    queries: Any = None,
    by: str | Sequence[str] | None = None,
    out: Path | None = None,
    margin_relative: float | None = None,
    strict: bool = False,
) -> str:
    """Write a first configuration: measures that fit, margins that these topics can tell, a guardrail.

    >>> qrels = {f"q{at}": {"d": 1, "e": 1} for at in range(12)}
    >>> run = {topic: ["d", "e"] if at % 3 else ["x", "d"] for at, topic in enumerate(qrels)}
    >>> [line for line in first_config(qrels, run, strict=True).splitlines() if line.startswith("m")]
    ['measure = "nDCG@10"', 'margin = 0.12', 'measure = "Judged@10"', 'missing_topics = 0']
    """
    # `others`: other runs of the same topics, the more like the baseline the better: how much they differ from it,
    # topic by topic, says what can be told. Without any, scores of two versions are taken to correlate at 0.9.
    # `measures`: None: nDCG@10, or RR@10 where topics have one relevant document; and R@100, or less for shorter lists.
    # `attributes`, `queries`, `by`: files with facts about the topics and their texts, and the attributes to slice
    # by, which may be derived. None: the only one there is, or no slices. `out`: where it will be written, from which
    # files are named. `margin_relative`: take this share of the baseline's mean as every margin. None: 0.02, or what
    # the topics can tell if `strict`. Returns TOML, which `parse_config` accepts.
    judgments, first = Qrels.of(qrels), runs_of(baseline)
    if len(first) != 1:
        raise InputError(f"the baseline holds {len(first)} runs", fix="give one run")
    wanted = _fitting(judgments, first[0]) if measures is None else measures
    scores = scored(judgments, [*first, *([] if others is None else runs_of(others))], wanted)
    share = scored(judgments, first, "Judged@10").value("Judged@10")
    _refuse_zeros(scores)
    _warn(scores, share)
    slicing = _slicing(judgments, attributes, queries, by, scores.query_ids)
    named = {"attributes": attributes, "queries": queries} if slicing else {}
    paths = {name: _seen_from(path, name, out) for name, path in named.items() if path is not None}
    known = [] if slicing is None else list(zip(slicing.slices, slicing.n.tolist(), slicing.small, strict=True))
    kept = [one for one, _, small in known if not small]
    few = ", ".join(f"{one.name} ({n})" for one, n, small in known if small)
    checks = [_Check.of(scores, row, Slice(ALL, ""), slicing) for row in range(len(scores.measures))]
    checks += [_Check.of(scores, 0, one, slicing) for one in kept]
    parts = [
        "\n".join(f"{name} = {json.dumps(path)}" for name, path in paths.items()),
        *(_slice(one) for one in kept),
        _comment(f"Too few topics to decide anything: {few}.") if few else "",
        *("\n".join(_check_lines(check, len(checks), margin_relative, strict=strict)) for check in checks),
    ]
    template = files("judged.diagnosis.gates").joinpath("first_config.toml").read_text("utf-8")
    text = template.format(
        baseline=" ".join(first[0].name.split()),
        topics=topics_text(len(scores.query_ids)),
        strict=str(strict).lower(),
        alpha=ALPHA,
        parts="\n\n".join(filter(None, parts)),
        share=share,
        judged=_judged(share),
    )
    parse_config(text)
    return text.rstrip()


def _seen_from(path: Any, what: str, out: Path | None) -> str:
    """Write the path of a file as seen from the folder of the configuration."""
    if not isinstance(path, (str, Path)):
        raise InputError(
            f"the {what} did not come from a file that a configuration could name", fix="give the path of one"
        )
    folder = Path() if out is None or str(out) == "-" else out.parent
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return Path(path).absolute().as_posix()


def _fitting(qrels: Qrels, run: Run) -> list[str]:
    """Choose measures that make sense for so many relevant documents, and lists so long."""
    judged = judge(qrels, run)
    relevant, returned = judged.num_relevant(float(np.nextafter(0, 1))), judged.returned
    typical, length = (np.median(counts[counts > 0]) if counts.any() else 0 for counts in (relevant, returned))
    deep = [f"R@{depth}" for depth in _DEPTHS if length >= depth]
    return ["RR@10" if typical == 1 else "nDCG@10", *deep[:1]]


def _refuse_zeros(scores: Scores) -> None:
    """Refuse a baseline that no candidate could lose anything against."""
    for measure, row in zip(scores.measures, scores.values[0], strict=True):
        if measure.properties.higher_is_better and not np.nan_to_num(row).any():
            raise InputError(
                f"{measure} of the baseline {scores.run_names[0]} is 0 on every topic, so nothing can be lost",
                fix="check that qrels and run use the same ids of topics and documents ('judged check'), and that some"
                " document has the grade that the measure asks for",
            )


def _warn(scores: Scores, share: float) -> None:
    """Say what makes a baseline doubtful."""
    doubts = list(lines(note for note in scores.notes if note.subject))
    if not _least_share(share):
        doubts.append(
            f"{scores.run_names[0]}: {share:.1%} of its first 10 documents are judged: judgments are sparse, or"
            " document ids do not match"
        )
    for text in doubts:
        warnings.warn(text, JudgedWarning, stacklevel=3)


def _slicing(
    qrels: Qrels, attributes: Any, queries: Any, by: str | Sequence[str] | None, query_ids: Sequence[str]
) -> Slicing | None:
    names = [by] if isinstance(by, str) else list(by or ())
    if not names and attributes is None:
        return None
    refuse_outcomes(names, "no gate can be cut by")
    known = topic_attributes(qrels, attributes=attributes, queries=queries, needed=names)
    if not names and len(known.names) != 1:
        raise InputError("nothing says what to slice by", fix=f"give --by with one of {', '.join(known.names)}")
    return slice_topics(known, names or known.names[0], query_ids=query_ids)


@dataclass(frozen=True)
class _Check:
    """What a check would be made of: the baseline's scores over a slice, and how much versions differ there."""

    measure: str
    slice: Slice
    mean: float
    n: int
    sd: float  # of the differences between two versions; NaN where means are compared by ratios
    assumed: bool  # whether it was, or is estimated from other runs

    @classmethod
    def of(cls, scores: Scores, row: int, part: Slice, slicing: Slicing | None) -> _Check:
        """Look at the topics of a slice, or at all."""
        measure, values = scores.measures[row], scores.values[:, row]
        values = values if part.name == ALL or slicing is None else values[:, slicing.mask(part.name)]
        own, kind = values[0][~np.isnan(values[0])], measure.entry.aggregate
        if kind in {"sum", "count"} or (kind != "geometric mean" and measure.properties.higher_is_better is None):
            raise InputError(f"{measure} cannot be checked by a gate", fix="take means of quality, such as nDCG@10")
        assumed = len(values) == 1 or kind == "geometric mean"
        sd = spread(own) * math.sqrt(2 * (1 - CORRELATION)) if assumed else _pooled(values)
        sd = math.nan if kind == "geometric mean" else sd
        return cls(str(measure), part, aggregate(kind, own), len(own), sd, assumed)


def _pooled(values: Floats) -> float:
    """Give the root of the mean variance of the differences from the first row."""
    variances = [spread(paired_differences(values[0], row)[0]) ** 2 for row in values[1:]]
    return math.sqrt(sum(variances) / len(variances))


def _comment(text: str) -> str:
    """Break a text into lines of a comment."""
    return "\n".join(f"# {line}" for line in textwrap.wrap(" ".join(text.split()), 96, break_long_words=False))


def _slice(one: Slice) -> str:
    settings = {"name": one.name, "expression": one.expression, "min_topics": one.min_topics}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(["[[slice]]", *lines, '# owner = "who is told when it fails"'])


def _check_lines(check: _Check, family: int, relative: float | None, *, strict: bool) -> Iterator[str]:
    yield "[[check]]"
    yield f"measure = {json.dumps(check.measure)}"
    if check.slice.name != ALL:
        yield f"slice = {json.dumps(check.slice.name)}"
    if check.n < check.slice.min_topics:
        yield _comment(
            f"{topics_text(check.n)}: with fewer than {check.slice.min_topics} nothing is decided; see min_topics."
        )
    mean, share = decimal(check.mean), RELATIVE if relative is None else relative
    if not (check.n > 1 and check.sd > 0):
        ratio = math.isnan(check.sd) and check.n > 1
        why = "geometric means are compared by ratios" if ratio else "the scores do not vary, or are too few"
        yield f"margin_relative = {share:g}"
        yield _comment(f"A share of the baseline's {mean}: {why}, so that no margin follows from these topics.")
        return
    told = rounded_up(minimum_detectable(check.sd, check.n, 2 * ALPHA, POWER))
    if strict and relative is None:
        of_mean = f", {told / abs(check.mean):.0%} of the baseline's mean {mean}" if check.mean else ""
        about = f"The least round number that these topics can tell{of_mean}. {_told(check, told, family)}"
        yield f"margin = {digits(told)}"
        yield _comment(f"{about} {_rests(check)}")
        return
    part = share * abs(check.mean)
    about = f"{100 * share:g}% of the baseline's mean {mean} is {digits(part)}. {_told(check, part, family)}"
    yield f"margin_relative = {share:g}"
    yield _comment(f"{about} {_rests(check)}")
    decided = f"To have most checks decided, as strict = true asks for: margin = {digits(told)}."
    yield _comment(f"{decided} {_told(check, told, family)}")


def _told(check: _Check, margin: float, family: int) -> str:
    """Say what a margin can tell."""
    loss = margin + minimum_detectable(check.sd, check.n, 2 * ALPHA / family, POWER)
    return (
        f"With {topics_text(check.n)} a candidate that loses {digits(loss)} fails {often(POWER)}, and one as good as"
        f" the baseline passes with a chance of {chance(margin, check.sd, check.n):.0%}."
    )


def _rests(check: _Check) -> str:
    """Say what that rests on."""
    how = (
        f"if the scores of two versions correlate at {CORRELATION:g}, which is assumed: name other runs to measure it"
        if check.assumed
        else "measured on the other runs"
    )
    return f"(Standard deviation of the differences by topic: {decimal(check.sd, 3)}, {how}.)"


def chance(margin: float, sd: float, n: int) -> float:
    """Give the chance that a candidate without a true difference passes: the power of one side at alpha."""
    # The other side of a two-sided test at twice alpha is where a candidate fails: of a small margin it is no small
    # part.
    from scipy.special import nctdtr

    fails = float(nctdtr(n - 1, math.sqrt(n) * margin / sd, -student_quantile(1 - ALPHA, n - 1)))
    return power(margin, sd, n, 2 * ALPHA) - (0.0 if math.isnan(fails) else fails)


def _judged(share: float) -> str:
    """Ask for a share of judged documents, where the baseline has any to speak of."""
    least = _least_share(share)
    if not least:
        return "# So few are judged here that no least share is asked for."
    return f'[[guardrail]]\nmeasure = "Judged@10"\nat_least = {least:g}'


def _least_share(share: float) -> float:
    """Give the least share of judged documents that a candidate should have; 0: none can be asked for."""
    return 0.0 if math.isnan(share) else max(math.floor(100 * (share - _BELOW) + 1e-9) / 100, 0.0)


def rounded_up(value: float) -> float:
    """Give the next number that people would choose.

    >>> rounded_up(0.0312), rounded_up(0.00801), rounded_up(0.05), rounded_up(1.2)
    (0.04, 0.01, 0.05, 1.2)
    """
    scale = 10.0 ** math.floor(math.log10(value))
    step = next(one for one in _STEPS if one * scale >= value * (1 - 1e-9))
    return float(f"{step * scale:.2g}")
