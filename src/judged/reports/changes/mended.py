"""Whether a change mended the kind of failure that it was meant to mend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.pipelines.traces.failure_tests import CLASS
from judged.pipelines.traces.failures import FAILURES
from judged.pipelines.traces.sufficient import compare_with_rest
from judged.reports.changes.questions import Question
from judged.results import ANY, CHANGE, COUNT, NUMBER, P_VALUE, TEXT, Column, Table, columns_of, counted, listed
from judged.results.decimals import decimal
from judged.stats.correction import adjust
from judged.stats.inputs import spread
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.pipelines.traces import Failures
    from judged.reports.changes.questions import State
    from judged.results import Block

_ALPHA = 0.05


def mended(before: Failures, after: Failures, meant: str | None) -> Question:
    """Test for each kind of failure whether less is lost by it, and whether the one that was meant was mended."""
    both = [topic for topic in before.funnel.query_ids if topic in set(after.funnel.query_ids)]
    rows = [_loss_change(kind, before, after, both) for kind in before.recoverable if kind in after.recoverable]
    shifts = list(_shifts(before, after, both))
    table = Table(
        "kinds",
        (
            *columns_of(rows, ("kind", TEXT), ("n", COUNT, "topics"), ("before", NUMBER), ("after", NUMBER)),
            Column("difference", [row.difference for row in rows], CHANGE, ci=[row.interval for row in rows]),
            *columns_of(rows, ("p", P_VALUE)),
        ),
        f"What is lost of {before.funnel.measure}, by kind of failure",
        note="means over the topics of which both losses are known; p of a paired test, each for itself",
    )
    blocks: tuple[Block, ...] = (table, _shifts_table(shifts)) if shifts else (table,)
    question = "Did it mend what it was meant to?"
    if meant is None:
        return Question(question, "look", "No kind of failure was named.", blocks)
    if FAILURES[meant].over_topics:
        state, said = _mended_over_topics(before, after, meant, shifts)
        return Question(question, state, said, blocks)
    row = next((row for row in rows if row.kind == meant), None)
    if row is None:
        said = f"{meant} was not tested: {_reasons(before, after, meant)}."
        return Question(question, "not tested", said, blocks)
    if lacking := insufficiency(row.n, "verdict"):
        return Question(question, "not tested", f"{meant} was not tested. {lacking.sentence('topic')}", blocks)
    state = "undecided" if not row.p <= _ALPHA else "good" if row.difference < 0 else "bad"
    n = counted(row.n, "topic")
    said = f"{meant} loses {decimal(row.after)} where it lost {decimal(row.before)} (p = {row.p:.2g}, {n})."
    return Question(question, state, said, blocks)


class _LossChange(NamedTuple):
    """What a kind of failure loses before and after."""

    kind: str
    n: int
    before: float
    after: float
    difference: float
    interval: tuple[float, float] | None
    p: float


def _loss_change(kind: str, before: Failures, after: Failures, topics: Sequence[str]) -> _LossChange:
    sides: list[Floats] = []
    for one in (before, after):
        place = {topic: at for at, topic in enumerate(one.funnel.query_ids)}
        sides.append(np.asarray(one.recoverable[kind], dtype=np.float64)[[place[topic] for topic in topics]])
    known = ~np.isnan(sides[0] + sides[1])
    old, new = (side[known] for side in sides)
    if not len(old):
        return _LossChange(kind, 0, math.nan, math.nan, math.nan, None, math.nan)
    test = paired_test(old, new)
    interval = None if insufficiency(len(old), variance=spread(new - old)) else test.interval
    p = math.nan if insufficiency(len(old), "verdict") else test.p
    return _LossChange(kind, len(old), float(old.mean()), float(new.mean()), test.difference, interval, p)


class _Shift(NamedTuple):
    """How far what a test over topics measures changed."""

    failure: str
    where: str
    what: str
    n: int
    found_before: bool
    found_after: bool
    difference: float
    interval: tuple[float, float] | None
    p: float
    adjusted: float = math.nan

    @property
    def is_less(self) -> bool:
        """Whether it is shown to be less of a failure than before."""
        return self.adjusted <= _ALPHA and self.difference < 0


def _shifts(before: Failures, after: Failures, topics: Sequence[str]) -> Iterator[_Shift]:
    """Test the change of each quantity that is tested before and after, topic by topic; p by Holm."""
    later = {(test.where, test.what): test for test in after.tests}
    pairs = [(test, later[test.where, test.what]) for test in before.tests if (test.where, test.what) in later]
    made: list[_Shift] = []
    for old, new in pairs:
        shared = [topic for topic in topics if topic in old.values and topic in new.values]
        one, two = (np.array([test.values[topic] for topic in shared]) for test in (old, new))
        if old.members is not None:
            mask = np.array([topic in old.members for topic in shared], dtype=np.bool_)
            (rest,) = compare_with_rest(two - one, [mask], level=1 - _ALPHA)
            if rest is not None:
                tested = (rest.n, rest.difference, rest.interval, rest.p)
            elif np.any(two != one):
                continue
            else:  # no topic changed
                tested = (int(mask.sum()), 0.0, None, 1.0)
        else:
            if insufficiency(len(shared), "verdict"):
                continue
            test = paired_test(one, two)
            interval = None if insufficiency(len(shared), variance=spread(two - one)) else test.interval
            tested = (len(shared), test.difference, interval, test.p)
        n, difference, interval, p = tested
        made.append(_Shift(old.failure, old.where, old.what, n, old.found, new.found, difference, interval, p))
    adjusted = adjust([one.p for one in made], "holm").tolist() if made else []
    yield from (one._replace(adjusted=p) for one, p in zip(made, adjusted, strict=True))


def _shifts_table(shifts: Sequence[_Shift]) -> Table:
    return Table(
        "shifts",
        (
            *columns_of(shifts, ("failure", TEXT), ("where", TEXT), ("n", COUNT, "topics")),
            Column("found_before", [one.found_before for one in shifts], ANY, "shown before"),
            Column("found_after", [one.found_after for one in shifts], ANY, "shown after"),
            Column("difference", [one.difference for one in shifts], CHANGE, ci=[one.interval for one in shifts]),
            Column("p", [one.p for one in shifts], P_VALUE, only="data"),
            Column("adjusted", [one.adjusted for one in shifts], P_VALUE, "adjusted p"),
            Column("what", [one.what for one in shifts], TEXT, "change of", below=True),
        ),
        "Kinds that show over topics",
        labels=2,
        note="shown: by the tests of 'judged traces failures'; change: after less before on the same topics, of classes"
        " against all other topics; p by Holm",
    )


def _mended_over_topics(before: Failures, after: Failures, meant: str, shifts: Sequence[_Shift]) -> tuple[State, str]:
    """Say whether a kind that shows over topics only was mended: shown before, and less of it after."""
    kinds = {meant} | ({CLASS} if meant == "intent" else set())
    own = [one for one in shifts if one.failure in kinds]
    if not own:
        return "not tested", f"{meant} was not tested: {_reasons(before, after, meant)}."
    also = [one for one in dict.fromkeys((*before.alternatives, *after.alternatives)) if one != meant]
    classes = meant == "intent" and any(one.where != "subtopics" for one in own)
    doubt = f" It could also be {listed(also, 'or')}." if also and classes else ""
    shown = [one for one in own if one.found_before]
    if not shown:
        return (
            "undecided",
            f"Before, {meant} is not shown ({counted(len(own), 'test')}), so nothing shows it mended.{doubt}",
        )
    if all(one.failure == CLASS for one in own):
        meant = f"a loss of a {CLASS}"
    named = listed([f"{one.where} {decimal(one.difference, 3, '+')} (p = {one.adjusted:.2g})" for one in shown])
    less, still = all(one.is_less for one in shown), [one.where for one in own if one.found_after]
    state: State = ("look" if less else "bad") if still else "good" if less else "undecided"
    after_said = f"after, it is still shown ({listed(still)})" if still else "after, it is not shown"
    return state, f"Before, {meant} is shown; {after_said}. Change: {named}.{doubt}"


def _reasons(before: Failures, after: Failures, meant: str) -> str:
    """Say why a kind was not tested, before or after."""
    reasons = [one.reason for side in (before, after) for one in side.untested if one.failure == meant]
    return "; ".join(dict.fromkeys(reason.rstrip(".") for reason in reasons)) or (
        "there are not the same tests before and after"
    )
