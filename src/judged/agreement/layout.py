"""Agreement as tables of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.decimals import decimal
from judged.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.agreement.two_judges import PairAgreement, SystemEffect
    from judged.stats.agreement import Agreement


def pairs_table(pairs: Sequence[PairAgreement]) -> Table:
    """Lay out one row for each two judges."""
    rows = tuple(
        (
            pair.first, pair.second, str(len(pair.topics)), str(pair.shared), decimal(pair.same, 3),
            _cell(pair.kappa), decimal(pair.linear.value, 3), decimal(pair.quadratic.value, 3), _cell(pair.alpha),
        )
        for pair in pairs
    )  # fmt: skip
    header = ("judge", "other judge", "topics", "shared", "same", "kappa", "linear", "quadratic")
    scale = pairs[0].alpha.method.removeprefix("Krippendorff's ")
    return Table((*header, scale), rows, labels=2)


def overall_table(coefficients: Sequence[Agreement]) -> Table:
    """Lay out one row for each coefficient of all judges together."""
    rows = tuple((one.method, _cell(one), str(one.judges), str(one.groups), str(one.units)) for one in coefficients)
    return Table(("all judges", "value", "judges", "topics", "documents"), rows)


def confusion_table(pair: PairAgreement) -> Table:
    """Lay out how often each grade met each."""
    names = [f"{grade:g}" for grade in pair.confusion.grades.tolist()]
    counts = pair.confusion.counts
    rows = tuple((name, *map(str, row.tolist()), str(int(row.sum()))) for name, row in zip(names, counts, strict=True))
    below = ("all", *map(str, counts.sum(axis=0).tolist()), str(int(counts.sum())))
    return Table((f"{pair.first} \\ {pair.second}", *names, "all"), (*rows, below))


def topic_table(pair: PairAgreement) -> Table:
    """Lay out one row a topic, the least agreement first."""
    ordered = sorted(pair.topics, key=lambda topic: (topic.same, topic.query_id))
    rows = tuple(
        (one.query_id, str(one.shared), decimal(one.same, 3), decimal(one.distance, 3), decimal(one.bias, 3, "+"))
        for one in ordered
    )
    return Table(("query_id", "shared", "same", "distance", "bias"), rows)


def systems_table(systems: Sequence[SystemEffect]) -> Table:
    """Lay out one row for each two judges and measure."""
    rows = tuple(
        (
            one.first, one.second, one.measure, str(one.topics), str(len(one.runs)), decimal(one.tau.value, 3),
            decimal(one.tau_ap.value, 3), decimal(one.spearman.value, 3), str(one.tau.discordant),
            decimal(one.largest_change),
        )
        for one in systems
    )  # fmt: skip
    numbers = ("topics", "runs", "tau", "tau_AP", "rho", "swaps", "largest change")
    return Table(("judge", "other judge", "measure", *numbers), rows, labels=3)


def long_table(
    pairs: Sequence[PairAgreement],
    systems: Sequence[SystemEffect],
    overall: Mapping[str, Agreement],
    *,
    per_topic: bool,
) -> Table:
    """Lay out one number a row, in full precision: for CSV."""
    rows: list[tuple[str, ...]] = []
    if len(pairs) > 1:
        rows += [("", "", "", name, *_limits(one)) for name, one in overall.items()]
    for pair in pairs:
        names = (pair.first, pair.second)
        rows += [(*names, "", "shared", str(pair.shared), "", ""), (*names, "", "same", _full(pair.same), "", "")]
        for name in ("kappa", "linear", "quadratic", "alpha"):
            rows.append((*names, "", name, *_limits(getattr(pair, name))))
        if per_topic:
            for topic in pair.topics:
                for name in ("same", "distance", "bias"):
                    rows.append((*names, topic.query_id, name, _full(getattr(topic, name)), "", ""))
    for one in systems:
        numbers = {"tau": one.tau.value, "tau_ap": one.tau_ap.value, "spearman": one.spearman.value}
        numbers |= {"swaps": float(one.tau.discordant), "largest_change": one.largest_change}
        for name, value in numbers.items():
            rows.append((one.first, one.second, "", f"{name} {one.measure}", _full(value), "", ""))
    return Table(("judge", "other_judge", "query_id", "quantity", "value", "ci_low", "ci_high"), tuple(rows), labels=4)


def _limits(found: Agreement) -> Iterator[str]:
    return map(_full, (found.value, *(found.interval or (math.nan, math.nan))))


def _cell(found: Agreement) -> str:
    text = decimal(found.value, 3)
    return (
        text if found.interval is None else f"{text} [{decimal(found.interval[0], 3)}, {decimal(found.interval[1], 3)}]"
    )


def _full(value: float) -> str:
    return "" if math.isnan(value) else repr(value)
