"""How good labels are: agreement first, then each judge against the others, repeats, known grades, drift, time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.agreement import agree
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.labels.corrected_systems import of_slices, topic_interval, topic_means
from judged.labels.exchange import is_store
from judged.labels.labels import ADJUDICATOR, Labels
from judged.labels.store import LabelStore
from judged.results import COUNT, SHARE, TEXT, Answer, Sentences, Table, columns_of, counted, number
from judged.results.blocks import Note
from judged.results.decimals import decimal, percent
from judged.results.table import p_value
from judged.stats.agreement import MIN_GROUPS, krippendorff_alpha
from judged.stats.correction import adjust, clopper_pearson_intervals
from judged.stats.inputs import spread
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.comparison.agreement import JudgeAgreement
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.stats.agreement import Agreement, Scale

HASTY = 1.0
"""Seconds below which nobody has read anything."""
_TWO, _SIGNED = number(3), number(3, "+")
_WHERE_KNOWN = (
    ("repeated", SHARE, "same again", ("repeats", "repeated_ci")),
    ("right", SHARE, "known right", ("gold", "right_ci")),
    ("drift", _SIGNED, "drift", ()),
    ("drift_p", number(3), "p of drift", ()),
    ("seconds", number(1), "seconds", ("hasty",)),
)


@dataclass(frozen=True)
class JudgeQuality:
    """One judge, and what the others and the clock say of them."""

    judge: str
    kind: str
    labels: int  # valid grades that count, repeats apart
    invalid: int  # what was no label: taken back, put off, or an answer that is no grade
    shared: int  # pairs that another judge graded too
    same: float  # the share of the others' grades that equal the judge's, on these pairs
    shift: float  # the mean over topics of the judge's grade less the others' mean
    shift_ci: tuple[float, float] | None
    without: float  # the agreement of all others among themselves
    repeats: int  # pairs that were graded again
    repeated: float  # the share of these with the same grade again
    repeated_ci: tuple[float, float] | None
    gold: int  # pairs whose grade is known
    right: float  # the share of these that were graded so
    right_ci: tuple[float, float] | None
    drift: float  # the shift of the later half of the labels less that of the earlier half
    drift_p: float  # of a Welch test over topics, Holm over judges; NaN where it was not tested
    seconds: float  # the median that a label took
    hasty: float  # the share of labels that took less than `HASTY` seconds


@dataclass(frozen=True)
class Spread:
    """Agreement on a topic, a slice or a grade."""

    name: str
    pairs: int  # that several judges graded
    same: float  # the share of equal grades among all pairs of labels of the same document
    distance: float  # the mean distance of two labels
    alpha: float = math.nan
    alpha_ci: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class LabelQuality(Answer):
    """What `quality` returns: agreement, judges, topics, slices, grades, and what it does to systems."""

    kind: ClassVar[str] = "label-quality"
    main: ClassVar[str] = "judges"

    alpha: Agreement
    pairs: int
    judges: tuple[JudgeQuality, ...]
    topics: tuple[Spread, ...]
    slices: tuple[Spread, ...]
    grades: tuple[Spread, ...]
    systems: JudgeAgreement | None
    threshold: float = 0.05
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What is measured."""
        return "How far labels can be trusted"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, the overall number first."""
        said = [self.alpha.sentence]
        for one in self.judges:
            if one.drift_p < self.threshold:
                way = f"{decimal(abs(one.drift), 2)} {'higher' if one.drift > 0 else 'lower'}"
                p = p_value(self.threshold).write(one.drift_p)
                said.append(
                    f"{one.judge}'s later labels are {way} against the others' than the earlier ones (p {p}, Holm)."
                )
        best = max((one.right for one in self.judges if one.gold), default=0.0)
        said += [
            f"{one.judge} graded {percent(one.right)} of {counted(one.gold, 'known document')} right."
            for one in self.judges
            if one.right_ci is not None and one.right_ci[1] < best and insufficiency(one.gold, "verdict") is None
        ]
        if self.systems is not None and self.systems.systems:
            worst = max(self.systems.systems, key=lambda one: one.largest_change)
            said.append(worst.sentence)
        return tuple(said)

    def blocks(self) -> tuple[Block, ...]:
        """Give agreement in words, judges, slices, grades, topics, and systems under each two judges."""
        rows = self.judges
        columns: list[Any] = [("judge", TEXT), ("kind", TEXT), ("labels", COUNT), ("invalid", COUNT), ("shared", COUNT)]
        columns += [
            ("same", SHARE, "same as others"),
            ("shift", _SIGNED),
            "shift_ci",
            ("without", _TWO, "alpha without"),
        ]
        for name, show, title, ends in _WHERE_KNOWN:
            known = any(not math.isnan(getattr(one, name)) for one in rows)
            columns += [(name, show, title) if known else name, *ends]
        judges = columns_of(rows, *columns)
        blocks: list[Block] = [Sentences(self.sentences), Table("judges", judges, labels=2)]
        if self.slices:
            blocks.append(Table("slices", _spread(self.slices, "slice", alpha=True), title="By slice"))
        blocks.append(Table("grades", _spread(self.grades, "grade"), title="By grade"))
        blocks.append(Table("topics", _spread(self.topics, "query_id"), title="By topic", folded=True))
        if self.systems is not None:
            blocks.append(replace(self.systems.table("systems"), title="Systems under each two judges"))
        return tuple(blocks)

    def facts(self) -> dict[str, Any]:
        """Give the agreement of all."""
        alpha = {"name": self.alpha.name, "value": self.alpha.value, "interval": self.alpha.interval}
        return {"pairs": self.pairs, "alpha": alpha}


def _spread(rows: tuple[Spread, ...], name: str, *, alpha: bool = False) -> tuple[Any, ...]:
    title = "topic" if name == "query_id" else name
    records = [{**vars(row), name: row.name} for row in rows]
    numbers = (("pairs", COUNT), ("same", SHARE), ("distance", _TWO))
    return columns_of(records, (name, TEXT, title), *numbers, *((("alpha", _TWO), "alpha_ci") if alpha else ()))


def quality(
    labels: Any,
    runs: Any = (),
    measure: str = "nDCG@10",
    *,
    gold: Any = None,
    slicing: Any = None,
    scale: Scale = "ordinal",
    level: float = 0.95,
    alpha: float = 0.05,
) -> LabelQuality:
    """Measure how far labels of several judges can be trusted.

    Parameters
    ----------
    labels
        `Labels`, or anything that `Labels.of` takes. Of repeats the first counts, except for self-consistency. Those
        of the judge ``adjudicator`` are left out.
    runs, measure
        Systems that are scored under each two judges' grades, as `agree` does.
    gold
        Judgments that are known to be right, as `Qrels.of` takes them; None: those of a store's tasks, if it has any.
    slicing
        Slices of topics, or a table with the one attribute by which to slice.
    scale
        Of Krippendorff's alpha.
    level
        Of intervals, which are over topics (of shares of repeats and known grades over documents).
    alpha
        Significance of drift, corrected over judges.

    Returns
    -------
    LabelQuality

    Raises
    ------
    InputError
        If no two judges graded the same document.

    Examples
    --------
    >>> ann = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
    >>> bob = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0, "d": 1}}
    >>> found = quality({"ann": ann, "bob": bob})
    >>> round(found.alpha.value, 3), [(one.judge, one.same, one.shift) for one in found.judges]
    (0.794, [('ann', 0.8, -0.16666666666666666), ('bob', 0.8, 0.16666666666666666)])
    """
    given = Labels.of(labels)
    if set(given.judges) > {ADJUDICATOR}:  # who has seen what the others said
        given = given.of_judges([judge for judge in given.judges if judge != ADJUDICATOR])
    grades, topic = given.grades, given.topic
    several = (~np.isnan(grades)).sum(axis=1) > 1
    if not several.any():
        fix = "have some documents judged by two or more"
        raise InputError("no document was graded by two judges", fix=fix, path=given.where)
    overall = krippendorff_alpha(grades, scale, groups=topic, level=level)
    query_ids = given.pairs["query_id"].unique().to_pylist()
    topics = [_agreement(str(name), grades[topic == at]) for at, name in enumerate(query_ids)]
    systems = None
    if len(runs) if hasattr(runs, "__len__") else runs is not None:
        people = {judge: given.of_judges([judge]) for judge in given.judges}
        systems = agree(
            {judge: _qrels(own) for judge, own in people.items()}, runs=runs, measures=measure, scale=scale, level=level
        )
    known = _known(labels) if gold is None else _by_pair(Qrels.of(gold).table.to_pylist(), "relevance")
    judges = _judges(given, known, scale, level)
    notes: list[Note] = []
    if overall.groups < MIN_GROUPS and overall.interval is not None:
        text = f"With {overall.groups} topics, intervals cover the true value less often than stated"
        notes.append(Note("few-topics", text))
    return LabelQuality(
        overall,
        int(several.sum()),
        tuple(judges),
        tuple(sorted((one for one in topics if one.pairs), key=lambda one: (one.same, one.name))),
        () if slicing is None else tuple(_slices(slicing, query_ids, grades, topic, scale, level)),
        tuple(_by_grade(grades)),
        systems,
        alpha,
        tuple(notes),
    )


def _qrels(labels: Labels) -> Qrels:
    table = labels.graded.filter(pc.equal(labels.graded["repeat"], 0)).select(["query_id", "doc_id", "grade"])
    return Qrels(table.rename_columns(["query_id", "doc_id", "relevance"]), labels.judges[0])


def _meetings(grades: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Give each two judges' grades of what both graded."""
    for one in range(grades.shape[1]):
        for other in range(one + 1, grades.shape[1]):
            both = ~np.isnan(grades[:, one]) & ~np.isnan(grades[:, other])
            yield grades[both, one], grades[both, other]


def _agreement(name: str, grades: Floats) -> Spread:
    pairs = int(((~np.isnan(grades)).sum(axis=1) > 1).sum())
    first, second = (np.concatenate(side) for side in zip(*_meetings(grades), strict=True))
    if not len(first):
        return Spread(name, pairs, math.nan, math.nan)
    return Spread(name, pairs, float((first == second).mean()), float(np.abs(first - second).mean()))


def _by_grade(grades: Floats) -> Iterator[Spread]:
    """Of all labels that met one of this grade, how many are the same (specific agreement; Cicchetti 1990)."""
    first, second = (np.concatenate(side) for side in zip(*_meetings(grades), strict=True))
    one, other = np.concatenate([first, second]), np.concatenate([second, first])
    for grade in np.unique(one):
        met = one == grade
        yield Spread(
            f"{grade:g}", int(met.sum()), float((other[met] == grade).mean()), float(np.abs(other[met] - grade).mean())
        )


def _slices(
    slicing: Any, query_ids: list[str], grades: Floats, topic: Ints, scale: Scale, level: float
) -> Iterator[Spread]:
    for name, rows in of_slices(as_slicing(slicing), query_ids, topic):
        alpha = krippendorff_alpha(grades[rows], scale, groups=topic[rows], level=level)
        yield replace(_agreement(name, grades[rows]), alpha=alpha.value, alpha_ci=alpha.interval)


def _judges(
    labels: Labels, gold: Mapping[tuple[str, str], float], scale: Scale, level: float
) -> Iterator[JudgeQuality]:
    """Look at each judge."""
    grades, topic = labels.grades, labels.topic
    kinds = dict(zip(labels.table["judge"].to_pylist(), labels.table["kind"].to_pylist(), strict=True))
    drifts = [_drift(labels, at) for at in range(len(labels.judges))]
    tested = np.array([p for _, p in drifts])
    corrected = np.full(len(tested), np.nan)
    corrected[~np.isnan(tested)] = adjust(tested[~np.isnan(tested)])
    for at, judge in enumerate(labels.judges):
        own = labels.of_judges([judge])
        mine, rest = grades[:, at], np.delete(grades, at, axis=1)
        shared = ~np.isnan(mine) & (~np.isnan(rest)).any(axis=1)
        met = ~np.isnan(rest[shared])
        same = (rest[shared] == mine[shared, None]).sum() / met.sum() if shared.any() else math.nan
        shift = mine[shared] - np.nanmean(rest[shared], axis=1)
        means = topic_means(shift, topic[shared])
        few = not ((~np.isnan(rest)).sum(axis=1) > 1).any()
        again, equal = _repeats(own)
        known, right = _gold(own, gold)
        seconds = own.graded["seconds"].drop_null().to_numpy()
        yield JudgeQuality(
            judge=judge,
            kind=kinds[judge],
            labels=int((~np.isnan(mine)).sum()),
            invalid=int(pc.sum(pc.invert(own.last["valid"])).as_py() or 0),
            shared=int(shared.sum()),
            same=float(same),
            shift=float(means.mean()) if len(means) else math.nan,
            shift_ci=topic_interval(means, level),
            without=math.nan if few else krippendorff_alpha(rest, scale, groups=topic, level=level).value,
            repeats=again,
            repeated=equal / again if again else math.nan,
            repeated_ci=_share(equal, again, level),
            gold=known,
            right=right / known if known else math.nan,
            right_ci=_share(right, known, level),
            drift=drifts[at][0],
            drift_p=float(corrected[at]),
            seconds=float(np.median(seconds)) if len(seconds) else math.nan,
            hasty=float((seconds < HASTY).mean()) if len(seconds) else math.nan,
        )


def _share(count: int, size: int, level: float) -> tuple[float, float] | None:
    if insufficiency(size):
        return None
    low, high = clopper_pearson_intervals(np.array([count]), np.array([size]), level)
    return float(low[0]), float(high[0])


def _repeats(own: Labels) -> tuple[int, int]:
    """Count the pairs that a judge graded again, and those with the same grade."""
    grades: dict[tuple[str, str], list[float]] = {}
    for row in own.graded.select(["query_id", "doc_id", "repeat", "grade"]).sort_by("repeat").to_pylist():
        grades.setdefault((row["query_id"], row["doc_id"]), []).append(row["grade"])
    several = [each for each in grades.values() if len(each) > 1]
    return len(several), sum(each[0] == each[1] for each in several)


def _known(labels: Any) -> Mapping[tuple[str, str], float]:
    """Give the grades that are known to be right of a store's tasks; none where labels are no store."""
    if isinstance(labels, (str, Path)) and is_store(labels):
        with LabelStore.open(labels, new=False) as store:
            return _known(store)
    tasks = labels.every_task() if isinstance(labels, LabelStore) else ()
    return _by_pair([task._asdict() for task in tasks if task.gold is not None], "gold")


def _by_pair(rows: list[dict[str, Any]], column: str) -> Mapping[tuple[str, str], float]:
    return {(row["query_id"], row["doc_id"]): row[column] for row in rows}


def _gold(own: Labels, known: Mapping[tuple[str, str], float]) -> tuple[int, int]:
    """Count the labels of pairs whose grade is known, and those that are right."""
    rows = [row for row in own.graded.to_pylist() if (row["query_id"], row["doc_id"]) in known and not row["repeat"]]
    return len(rows), sum(row["grade"] == known[row["query_id"], row["doc_id"]] for row in rows)


def _drift(labels: Labels, judge: int) -> tuple[float, float]:
    """Compare the later half of a judge's labels with the earlier one, against the others' grades of the same pairs."""
    grades, topic = labels.grades, labels.topic
    own = labels.of_judges([labels.judges[judge]]).graded
    own = own.filter(pc.and_(pc.equal(own["repeat"], 0), pc.not_equal(own["at"], "")))
    rest = np.delete(grades, judge, axis=1)
    order = np.argsort(np.array(own["at"].to_pylist(), dtype=str), kind="stable")
    rows = labels.row_of(own)[order]
    rows = rows[~np.isnan(rest[rows]).all(axis=1)]
    shift = grades[rows, judge] - np.nanmean(rest[rows], axis=1)
    half = len(rows) // 2
    first, second = topic_means(shift[:half], topic[rows[:half]]), topic_means(shift[half:], topic[rows[half:]])
    if not min(len(first), len(second)):
        return math.nan, math.nan
    if insufficiency(min(len(first), len(second)), "verdict", variance=np.nansum([spread(first), spread(second)])):
        return float(second.mean() - first.mean()), math.nan
    from scipy import stats

    found: Any = stats.ttest_ind(second, first, equal_var=False)
    return float(second.mean() - first.mean()), float(found.pvalue)
