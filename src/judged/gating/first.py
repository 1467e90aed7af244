"""A first configuration of a gate, made from the baseline and its topics."""

from __future__ import annotations

import json
import math
import os
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.decimals import decimal
from judged.errors import InputError, JudgedWarning
from judged.evaluation import evaluate, runs_of
from judged.gating.check_result import digits, often
from judged.gating.config import ALL, MINIMUM
from judged.gating.cutting import refuse_outcomes
from judged.gating.reading import parse_config
from judged.judging import judge
from judged.measures import aggregate
from judged.notes import lines
from judged.stats.pairing import paired_differences, spread, topics_text
from judged.stats.sample_size import minimum_detectable, power
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints
    from judged.data import Run
    from judged.evaluation import Scores
    from judged.slicing.slices import Slice, Slicing

ALPHA, POWER, CORRELATION, RELATIVE = 0.05, 0.8, 0.9, 0.02
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_DEPTHS = (100, 50, 20)
_BELOW = 0.05  # how much less of the first page may be judged than the baseline's


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a check would be made of: the baseline's scores over a slice, and how much versions differ there."""

    measure: str
    slice: str
    mean: float
    n: int
    sd: float  # of the differences between two versions
    assumed: bool  # whether it was, or is estimated from other runs
    ratio: bool
    minimum: int = MINIMUM


def first_config(
    qrels: Any,
    baseline: Any,
    others: Any = None,
    measures: Any = None,
    *,
    attributes: Any = None,
    queries: Any = None,
    by: str | Sequence[str] | None = None,
    attributes_path: str | None = None,
    queries_path: str | None = None,
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
    # `attributes`, `queries`, `by`: what is known of the topics, their texts, and the
    # attributes to slice by, which may be derived. None: the only one there is, or no slices. `margin_relative`: take
    # this share of the baseline's mean as every margin. None: 0.02, or what the topics can tell if `strict`. Returns
    # TOML, which `parse_config` accepts.
    judgments = Qrels.of(qrels)
    first = runs_of(baseline)
    if len(first) != 1:
        raise InputError(f"the baseline holds {len(first)} runs", fix="give one run")
    wanted = _fitting(judgments, first[0]) if measures is None else measures
    runs = [*first, *([] if others is None else runs_of(others))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        scores = evaluate(judgments, runs, wanted)
        share = evaluate(judgments, first, "Judged@10").value("Judged@10")
    _refuse_zeros(scores)
    doubts = list(lines(note for note in scores.notes if note.subject))
    if not _least_share(share):
        doubts.append(
            f"{first[0].name}: {share:.1%} of its first 10 documents are judged: judgments are sparse, or document ids"
            " do not match"
        )
    for text in doubts:
        warnings.warn(text, JudgedWarning, stacklevel=2)
    slicing = _slicing(judgments, attributes, queries, by, scores.query_ids)
    files = {
        "attributes": _named("attributes", attributes, attributes_path),
        "queries": _named("queries", queries, queries_path),
    }
    text = _written(scores, slicing, files, share, margin_relative, strict=strict)
    parse_config(text)
    return text


def relative_to(path: str, out: Path | None) -> str:
    """Write a path as seen from the folder of a file that is to be written."""
    folder = Path() if out is None or str(out) == "-" else out.parent
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return Path(path).absolute().as_posix()


def _fitting(qrels: Qrels, run: Run) -> list[str]:
    """Choose measures that make sense for so many relevant documents, and lists so long."""
    judged = judge(qrels, run)
    relevant = judged.num_relevant(float(np.nextafter(0, 1)))
    first = "RR@10" if _median(relevant) == 1 else "nDCG@10"
    deep = next((f"R@{depth}" for depth in _DEPTHS if _median(judged.returned) >= depth), None)
    return [first] if deep is None else [first, deep]


def _refuse_zeros(scores: Scores) -> None:
    """Refuse a baseline that no candidate could lose anything against."""
    for measure, row in zip(scores.measures, scores.values[0], strict=True):
        if measure.properties.higher_is_better and not np.nan_to_num(row).any():
            raise InputError(
                f"{measure} of the baseline {scores.run_names[0]} is 0 on every topic, so that nothing can be lost",
                fix="check that qrels and run use the same ids of topics and documents ('judged check'), and that some"
                " document has the grade that the measure asks for",
            )


def _median(counts: Floats | Ints) -> float:
    """Give the median of the topics that have any; 0 without one."""
    some = counts[counts > 0]
    return float(np.median(some)) if len(some) else 0.0


def _slicing(
    qrels: Qrels,
    attributes: Any,
    queries: Any,
    by: str | Sequence[str] | None,
    query_ids: Sequence[str],
) -> Slicing | None:
    from judged.slicing.derived import known_topics
    from judged.slicing.slices import slice_topics

    names = [by] if isinstance(by, str) else list(by or ())
    if not names and attributes is None:
        return None
    refuse_outcomes(names, "no gate can be cut by")
    known = known_topics(qrels, attributes=attributes, queries=queries, needed=names)
    if not names and len(known.names) != 1:
        raise InputError("it is not said what to slice by", fix=f"give --by with one of {', '.join(known.names)}")
    return slice_topics(known, names or known.names[0], query_ids=query_ids)


def _named(what: str, given: Any, path: str | None) -> str | None:
    """Say how the configuration names a file."""
    if given is None or path is not None:
        return path
    if not isinstance(given, (str, Path)):
        raise InputError(f"the {what} are no file, which a configuration names", fix=f"give {what}_path")
    return str(given)


def _written(
    scores: Scores,
    slicing: Slicing | None,
    files: dict[str, str | None],
    share: float,
    relative: float | None,
    *,
    strict: bool,
) -> str:
    slices = () if slicing is None else slicing.slices
    small = (
        () if slicing is None else tuple(zip(slicing.slices, slicing.n.tolist(), slicing.small.tolist(), strict=True))
    )
    kept = [one for one, _, is_small in small if not is_small]
    asked = [(row, ALL, MINIMUM) for row in range(len(scores.measures))]
    asked += [(0, one.name, one.minimum) for one in kept]
    seen = [_seen(scores, row, name, minimum, slicing) for row, name, minimum in asked]
    left_out = [f"{one.name} ({n})" for one, n, is_small in small if is_small]
    parts = [_head(scores), _gate(files if slices else {}, strict=strict), _slices(kept, left_out)]
    parts += [_check(one, len(seen), relative, strict=strict) for one in seen] + [_guardrails(scores, share)]
    return "\n\n".join(part.rstrip() for part in parts if part)


def _seen(scores: Scores, row: int, name: str, minimum: int, slicing: Slicing | None) -> _Seen:
    mask = np.ones(len(scores.query_ids), dtype=np.bool_) if slicing is None or name == ALL else slicing.mask(name)
    measure, values = scores.measures[row], scores.values[:, row][:, mask]
    own = values[0][~np.isnan(values[0])]
    kind = measure.entry.aggregate
    ratio = kind == "geometric mean"
    if ratio or kind in {"sum", "count"} or measure.properties.higher_is_better is None:
        if not ratio:
            raise InputError(f"{measure} cannot be checked by a gate", fix="take means of quality, such as nDCG@10")
        sd, assumed = math.nan, True
    elif len(values) > 1:
        sd, assumed = _pooled(values), False
    else:
        sd, assumed = spread(own) * math.sqrt(2 * (1 - CORRELATION)), True
    return _Seen(str(measure), name, aggregate(kind, own), len(own), sd, assumed, ratio, minimum)


def _pooled(values: Floats) -> float:
    """Give the root of the mean variance of the differences from the first row."""
    variances = [spread(paired_differences(values[0], row)[0]) ** 2 for row in values[1:]]
    return math.sqrt(sum(variances) / len(variances))


def _head(scores: Scores) -> str:
    return _comment(
        f"May a candidate take the place of {scores.run_names[0]}? Ask: judged gate QRELS BASELINE CANDIDATE --config"
        f" THIS_FILE. This is a first configuration, made from {topics_text(len(scores.query_ids))}. The margins are"
        " yours to choose: the largest loss that nobody would care about. What each of them can tell stands with it.\n"
    )


def _comment(text: str) -> str:
    """Break a text into lines of a comment."""
    return "\n".join(f"# {line}" for line in textwrap.wrap(" ".join(text.split()), 96, break_long_words=False))


def _gate(files: dict[str, str | None], *, strict: bool) -> str:
    told = {
        f"strict = {str(strict).lower()}": "true: a check that is inconclusive fails, too",
        f"alpha = {ALPHA:g}": "the chance that a change fails that loses no more than the margins",
        'test = "randomisation"': 'or "t"',
        'correction = "holm"': "allows for the number of checks",
        "seed = 0": "the same files give the same decision",
    }
    width = max(map(len, told))
    lines = ["[gate]", *(f"{setting.ljust(width)}  # {why}" for setting, why in told.items())]
    lines += [f"{name} = {json.dumps(path)}" for name, path in files.items() if path is not None]
    return "\n".join(lines)


def _slices(kept: Sequence[Slice], left_out: Sequence[str]) -> str:
    blocks = [
        f"[[slice]]\nname = {json.dumps(one.name)}\nexpression = {json.dumps(one.expression)}\nminimum = {one.minimum}"
        '\n# owner = "who is told when it fails"'
        for one in kept
    ]
    if left_out:
        blocks.append(_comment(f"Too few topics to decide anything: {', '.join(left_out)}."))
    return "\n\n".join(blocks)


def _check(one: _Seen, family: int, relative: float | None, *, strict: bool) -> str:
    head = ["[[check]]", f"measure = {json.dumps(one.measure)}"]
    head += [] if one.slice == ALL else [f"slice = {json.dumps(one.slice)}"]
    if one.n < one.minimum:
        head.append(_comment(f"{topics_text(one.n)}: with fewer than {one.minimum} nothing is decided; see minimum."))
    known = not one.ratio and one.n > 1 and one.sd > 0
    share = RELATIVE if relative is None else relative
    if not known:
        return "\n".join([*head, f"margin_relative = {share:g}", _comment(_unknown(one))])
    told = rounded_up(minimum_detectable(one.sd, one.n, 2 * ALPHA, POWER))
    if strict and relative is None:
        of_mean = f", {told / abs(one.mean):.0%} of the baseline's mean {decimal(one.mean)}" if one.mean else ""
        about = f"The least round number that these topics can tell{of_mean}. {_told(one, told, family)}"
        return "\n".join([*head, f"margin = {digits(told)}", _comment(f"{about} {_rests(one)}")])
    part = share * abs(one.mean)
    about = f"{100 * share:g}% of the baseline's mean {decimal(one.mean)} is {digits(part)}. {_told(one, part, family)}"
    other = (
        f"To have most checks decided, as strict = true asks for: margin = {digits(told)}. {_told(one, told, family)}"
    )
    return "\n".join([*head, f"margin_relative = {share:g}", _comment(f"{about} {_rests(one)}"), _comment(other)])


def _told(one: _Seen, margin: float, family: int) -> str:
    """Say what a margin can tell."""
    loss = margin + minimum_detectable(one.sd, one.n, 2 * ALPHA / family, POWER)
    return (
        f"With {topics_text(one.n)} a candidate that loses {digits(loss)} fails {often(POWER)}, and one as good as the"
        f" baseline passes with a chance of {_chance(one, margin):.0%}."
    )


def _rests(one: _Seen) -> str:
    """Say what that rests on."""
    how = (
        f"if the scores of two versions correlate at {CORRELATION:g}, which is assumed: name other runs to measure it"
        if one.assumed
        else "measured on the other runs"
    )
    return f"(Standard deviation of the differences by topic: {decimal(one.sd, 3)}, {how}.)"


def _chance(one: _Seen, margin: float) -> float:
    """Give the chance that a candidate without a true difference passes: the power of one side at alpha."""
    # The other side of a two-sided test at twice alpha is where a candidate fails: of a small margin it is no small
    # part.
    from scipy.special import nctdtr

    beyond = -student_quantile(1 - ALPHA, one.n - 1)
    fails = float(nctdtr(one.n - 1, math.sqrt(one.n) * margin / one.sd, beyond))
    return power(margin, one.sd, one.n, 2 * ALPHA) - (0.0 if math.isnan(fails) else fails)


def _unknown(one: _Seen) -> str:
    why = "geometric means are compared by ratios" if one.ratio else "the scores do not vary, or are too few"
    return f"A share of the baseline's {decimal(one.mean)}: {why}, so that no margin follows from these topics."


def _guardrails(scores: Scores, share: float) -> str:
    least = _least_share(share)
    about = _comment(
        f"Of the first 10 documents of {scores.run_names[0]}, {share:.0%} are judged. With many unjudged ones, a loss"
        " may be one of judgments: such a candidate must be judged before it is compared."
        + ("" if least > 0 else " So few are judged here that no least share is asked for.")
    )
    rail = f'\n[[guardrail]]\nmeasure = "Judged@10"\nat_least = {least:g}' if least > 0 else ""
    return (
        f"{about}{rail}\n\n"
        "# For how many topics may the candidate return nothing where the baseline returns something?\n"
        "[[guardrail]]\nmissing_topics = 0\n\n"
        "# Costs, from a table with a column run: one row a run, or many and a quantile.\n"
        '# [[guardrail]]\n# table = "latency.csv"\n# column = "ms"\n# quantile = 0.95\n# at_most_ratio = 1.1'
    )


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
