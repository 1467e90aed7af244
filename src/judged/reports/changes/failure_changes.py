"""Changes of kinds of failure between two traced systems: tests, causes, and the answers of a review."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.pipelines.traces.failure_tests import SLICE_TEST
from judged.pipelines.traces.failures import FAILURES
from judged.pipelines.traces.steps import compare_with_rest
from judged.reports.changes.questions import ReviewQuestion
from judged.results import CHANGE, COUNT, NUMBER, P_VALUE, TEXT, Column, Table, columns_of, counted, listed
from judged.results.decimals import decimal, p_text
from judged.stats.correction import adjust
from judged.stats.inputs import spread
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.pipelines.traces import Failures
    from judged.pipelines.traces.failure_tests import FailureTest
    from judged.reports.changes.questions import QuestionState
    from judged.results.types import Bools, Floats

Direction: TypeAlias = Literal["less", "more", ""]

_ALPHA = 0.05
_IN_ORDER = tuple(kind for kind, failure in FAILURES.items() if not failure.over_topics and kind != "debugging")
_WITHOUT_LOSS = "feedback"  # a kind of failure of clicks, not of documents


class FailureChange(NamedTuple):
    """Change of a quantity that shows a kind of failure, on topics that have it before and after the change."""

    failure: str
    where: str  # source, slice, or other subject of the test; of kinds of single documents, the mean loss
    quantity: str  # quantity of the test; empty for a loss
    n: int
    before: float  # mean over the topics; of a class, minus the mean over all other topics
    after: float
    is_detected_before: bool
    is_detected_after: bool
    difference: float
    interval: tuple[float, float] | None
    p: float  # NaN if not tested
    adjusted: float = math.nan  # Holm, over all changes
    causes: tuple[str, ...] = ()  # other changes that can be the reason for this one

    @property
    def direction(self) -> Direction:
        """Whether the failure became significantly less or more; empty otherwise.

        A test over topics must also detect the failure: before the change if it became less, after it if more.
        """
        if not self.adjusted <= _ALPHA:  # also for NaN
            return ""
        side = self.before if self.is_detected_before else self.after
        # For calibration, both signs are failures.
        is_less = (self.difference < 0) != (self.failure == "calibration" and side < 0)
        is_detected = self.is_detected_before if is_less else self.is_detected_after
        return "" if not (self.is_loss or is_detected) else "less" if is_less else "more"

    @property
    def is_main(self) -> bool:
        """Whether the failure changed significantly, and no other change can be the reason."""
        return bool(self.direction) and not self.causes

    @property
    def subject(self) -> str:
        """Kind, and where it was measured."""
        return f"{self.failure} ({self.where})"

    @property
    def is_loss(self) -> bool:
        """Whether the quantity is the loss of a kind of single documents, and not that of a test over topics."""
        return not self.quantity

    @property
    def estimate(self) -> str:
        """Difference, formatted with interval, adjusted p-value, and number of topics."""
        low, high = self.interval or (math.nan, math.nan)
        limits = f" [{decimal(low, 3, '+')}, {decimal(high, 3, '+')}]" if self.interval else ""
        return f"{decimal(self.difference, 3, '+')}{limits} (p {p_text(self.adjusted, _ALPHA)}, n = {self.n})"


def failure_changes(before: Failures, after: Failures) -> tuple[FailureChange, ...]:
    """Test the change of each kind of failure, on the topics of both; p-values are corrected together (Holm).

    A kind of single documents is compared by its mean loss, a test over topics by its quantity, paired by topic. Of a
    class of topics, the change is compared with that of all other topics.
    """
    topics = [topic for topic in before.funnel.query_ids if topic in set(after.funnel.query_ids)]
    kinds = [kind for kind in FAILURES if kind in before.recoverable and kind in after.recoverable]
    losses = {kind: (_losses(before, kind, topics), _losses(after, kind, topics)) for kind in kinds}
    rows: list[FailureChange] = []
    for kind, pair in losses.items():
        is_before, is_after = (any(row[2] == kind for row in side.documents) for side in (before, after))
        rows.append(_mean_change((kind, f"loss of {before.funnel.measure}", ""), *pair, (is_before, is_after)))
    later = {(test.where, test.quantity): test for test in after.tests}
    for old in before.tests:
        if (new := later.get((old.where, old.quantity))) is not None:
            rows += _test_change(old, new, [topic for topic in topics if topic in old.values and topic in new.values])
    # A test without any difference cannot be significant, so Holm's correction need not count it (Tarone 1990).
    is_constant = [row.difference == 0 and row.interval is None for row in rows]
    counted_p = [math.nan if constant else row.p for row, constant in zip(rows, is_constant, strict=True)]
    adjusted = np.where(is_constant, [row.p for row in rows], adjust(counted_p, "holm")).tolist()
    rows = [row._replace(adjusted=p) for row, p in zip(rows, adjusted, strict=True)]
    return tuple(_with_causes(rows, losses, _classes(rows, before, topics)))


def _losses(result: Failures, kind: str, topics: Sequence[str]) -> Floats:
    index = {topic: i for i, topic in enumerate(result.funnel.query_ids)}
    return np.asarray(result.recoverable[kind], dtype=np.float64)[[index[topic] for topic in topics]]


def _mean_change(subject: tuple[str, str, str], old: Floats, new: Floats, detected: tuple[bool, bool]) -> FailureChange:
    has_both = ~np.isnan(old + new)
    old, new = old[has_both], new[has_both]
    if not len(old):
        return FailureChange(*subject, 0, math.nan, math.nan, *detected, math.nan, None, math.nan)
    means = float(old.mean()), float(new.mean())
    test = paired_test(old, new)
    # Too few topics for a verdict: report the means, and no p-value.
    p = math.nan if insufficiency(len(old), "verdict") else test.p
    interval = None if insufficiency(len(old), variance=spread(new - old)) else test.interval
    return FailureChange(*subject, len(old), *means, *detected, test.difference, interval, p)


def _test_change(old: FailureTest, new: FailureTest, topics: Sequence[str]) -> Iterator[FailureChange]:
    """Test the change of the quantity of a test over topics, if there are enough topics."""
    subject, detected = (old.failure, old.where, old.quantity), (old.significant, new.significant)
    before, after = (np.array([test.values[topic] for topic in topics]) for test in (old, new))
    if old.members is None:
        if not insufficiency(len(topics), "verdict"):
            yield _mean_change(subject, before, after, detected)
        return
    is_member = np.array([topic in old.members for topic in topics], dtype=np.bool_)
    (contrast,) = compare_with_rest(after - before, [is_member], level=1 - _ALPHA)
    if contrast is None and (not topics or np.any(after != before)):
        return
    is_split = 0 < is_member.sum() < len(topics)
    first, second = (
        float(values[is_member].mean() - values[~is_member].mean()) if is_split else math.nan
        for values in (before, after)
    )
    # Without a contrast, no topic changed.
    result = (0.0, None, 1.0) if contrast is None else (contrast.difference, contrast.interval, contrast.p)
    yield FailureChange(*subject, int(is_member.sum()), first, second, *detected, *result)


def _classes(rows: Sequence[FailureChange], before: Failures, topics: Sequence[str]) -> Bools:
    """Return a mask of the topics of classes whose failures changed."""
    members_of = {test.where: test.members or frozenset[str]() for test in before.tests}
    changed = [members_of[row.where] for row in rows if row.direction and not row.is_loss]
    return np.array([any(topic in members for members in changed) for topic in topics], dtype=np.bool_)


def _with_causes(
    rows: Sequence[FailureChange], losses: Mapping[str, tuple[Floats, Floats]], is_in_class: Bools
) -> Iterator[FailureChange]:
    """Add to each change of a loss the other changes that can be its reason.

    A failure that depends on dates, sources, or classes is part of the loss at the step that causes it, so both change
    in the same direction. A loss outside the classes is no part of these. And documents that a step passes on can be
    lost at a later step: a change at a step can cause the opposite change at later steps, and not at earlier ones.
    """
    by_test = dict.fromkeys((row.failure, row.direction) for row in rows if not row.is_loss and row.direction)
    earlier: list[FailureChange] = []
    for row in rows:
        if not row.is_loss or not row.direction:
            yield row
            continue
        inside = [kind for kind, direction in by_test if direction == row.direction and kind != _WITHOUT_LOSS]
        if inside and set(inside) <= {"intent", SLICE_TEST}:
            old, new = (loss[~is_in_class] for loss in losses[row.failure])
            others = _mean_change(row[:3], old, new, (True, True))
            # Bonferroni's correction, as this test is in addition to all others.
            is_outside = others.p * len(rows) <= _ALPHA and others.difference * row.difference > 0
            inside = [] if is_outside else inside
        if row.failure in _IN_ORDER:
            inside += [cause.failure for cause in earlier if cause.direction != row.direction]
            earlier.append(row)
        yield row._replace(causes=tuple(inside))


def answer_kinds(rows: Sequence[FailureChange], before: Failures, after: Failures) -> ReviewQuestion:
    """Answer which kinds of failure became less or more, with the changes of all kinds."""
    question = "Which kinds of failure changed?"
    tested = {kind for kind in FAILURES for row in rows if _is_of(row, kind) and not math.isnan(row.p)}
    untested = {kind: _untested_reasons(before, after, kind) for kind in FAILURES if kind not in tested}
    reasons = "; ".join(f"{kind} ({reason})" for kind, reason in untested.items())
    missing = f" Not tested: {reasons}." if untested else ""
    table = _changes_table(rows, untested)
    if not tested:
        return ReviewQuestion(question, "not tested", f"No kind of failure was tested.{missing}", (table,))
    main = [row for row in rows if row.is_main]
    texts = [
        f"{direction.capitalize()}: {'; '.join(changes)}."
        for direction in ("less", "more")
        if (changes := [f"{row.subject} {row.estimate}" for row in main if row.direction == direction])
    ]
    texts += [
        f"{row.direction.capitalize()}, possibly a consequence of {listed(row.causes)}: {row.subject} {row.estimate}."
        for row in rows
        if row.causes
    ]
    n_tests = counted(sum(not math.isnan(row.p) for row in rows), "test")
    finding = " ".join(texts) or f"No kind of failure changed significantly ({n_tests})."
    directions = {row.direction for row in main}
    state: QuestionState = "inspect" if directions else "undecided"
    if len(directions) == 1:
        state = "good" if "less" in directions else "bad"
    return ReviewQuestion(question, state, f"{finding}{missing}", (table,))


def _is_of(row: FailureChange, kind: str) -> bool:
    return row.failure == kind or (kind == "intent" and row.failure == SLICE_TEST)


def _changes_table(rows: Sequence[FailureChange], untested: Mapping[str, str]) -> Table:
    empty = (0, math.nan, math.nan, False, False, math.nan, None, math.nan)
    unmeasured = {kind: reason for kind, reason in untested.items() if not any(_is_of(row, kind) for row in rows)}
    all_rows = [*rows, *(FailureChange(kind, "", reason, *empty) for kind, reason in unmeasured.items())]
    changes = [
        "not tested"
        if math.isnan(row.p)
        else row.direction or ("not detected" if row.adjusted <= _ALPHA else "not significant")
        for row in all_rows
    ]
    return Table(
        "kinds",
        (
            *columns_of(all_rows, ("failure", TEXT), ("where", TEXT)),
            Column("n", [row.n or None for row in all_rows], COUNT, "topics"),
            *(
                Column(
                    name,
                    [getattr(row, name) for row in all_rows],
                    NUMBER,
                    mark=["*" if getattr(row, f"is_detected_{name}") else "" for row in all_rows],
                )
                for name in ("before", "after")
            ),
            *columns_of(all_rows, "is_detected_before", "is_detected_after"),
            Column("difference", [row.difference for row in all_rows], CHANGE, ci=[row.interval for row in all_rows]),
            Column("p", [row.p for row in all_rows], P_VALUE, only="data"),
            *columns_of(all_rows, ("adjusted", P_VALUE, "adjusted p")),
            Column("change", changes, TEXT),
            Column("causes", [", ".join(row.causes) for row in all_rows], TEXT, "possible causes"),
            Column("quantity", [row.quantity or None for row in all_rows], TEXT, "quantity, or reason", below=True),
        ),
        "Changes of kinds of failure",
        labels=2,
        note="means over the topics with a value before and after the change (for a class of topics, minus the mean"
        " over all other topics); * detected: there are documents of this kind, or the test in 'judged traces failures'"
        " is significant; p: paired test of the difference, Holm-corrected over all rows with any difference;"
        " possible causes: other changes of which this one can be a consequence",
    )


def answer_fixed(rows: Sequence[FailureChange], before: Failures, after: Failures, target: str) -> ReviewQuestion:
    """Answer whether the kind of failure `target` was fixed."""
    question = "Does the change fix the target failure?"
    relevant = [row for row in rows if _is_of(row, target)]
    tested = [row for row in relevant if not math.isnan(row.p)]
    if not tested:
        shortage = insufficiency(relevant[0].n, "verdict") if relevant else None
        reason = shortage.sentence("topic") if shortage else f"{_untested_reasons(before, after, target)}."
        return ReviewQuestion(question, "not tested", f"{target} was not tested: {reason}")
    if FAILURES[target].over_topics:
        return ReviewQuestion(question, *_answer_fixed_over_topics(before, after, target, tested))
    (row,) = tested
    state: QuestionState = "good" if row.direction == "less" else "bad" if row.direction else "undecided"
    change = f"changed from {decimal(row.before)} to {decimal(row.after)}: {row.estimate}"
    return ReviewQuestion(question, state, f"The mean loss due to {target} failures {change}.")


def _answer_fixed_over_topics(
    before: Failures, after: Failures, target: str, rows: Sequence[FailureChange]
) -> tuple[QuestionState, str]:
    """Answer whether a failure that only tests over topics detect was detected before, and is less after."""
    subject = f"The failure '{target}'"
    # A class of topics that loses more can have other causes than its intent.
    alternatives = [kind for kind in dict.fromkeys((*before.alternatives, *after.alternatives)) if kind != target]
    is_class = target == "intent" and any(row.where != "subtopics" for row in rows)
    caveat = f" Other possible causes: {listed(alternatives, 'or')}." if alternatives and is_class else ""
    detected = [row for row in rows if row.is_detected_before]
    if not detected:
        n_tests = counted(len(rows), "test")
        finding = f"{subject} was not detected before the change ({n_tests}), so a fix cannot be shown.{caveat}"
        return "undecided", finding
    if all(row.failure == SLICE_TEST for row in rows):
        subject = f"A higher loss in a {SLICE_TEST}"
    is_less = all(row.direction == "less" for row in detected)
    remaining = [row.where for row in rows if row.is_detected_after]
    state: QuestionState = ("inspect" if is_less else "bad") if remaining else "good" if is_less else "undecided"
    result = f"still detected ({listed(remaining)})" if remaining else "not detected"
    finding = f"{subject} was detected before the change, and is {result} after the change."
    return state, f"{finding} Difference: {'; '.join(f'{row.where} {row.estimate}' for row in detected)}.{caveat}"


def _untested_reasons(before: Failures, after: Failures, kind: str) -> str:
    reasons = [row.reason for result in (before, after) for row in result.untested if row.failure == kind]
    unique_reasons = "; ".join(dict.fromkeys(reason.rstrip(".") for reason in reasons))
    return unique_reasons or "no quantity was measured on enough common topics before and after the change"
