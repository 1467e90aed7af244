"""Kinds of failure that show over many topics only: sources that are merged, dates, query classes, and clicks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.comparison.fusion import fuse
from judged.comparison.slicing.by_document import dates_by_doc, parse_date
from judged.data.documents import Documents
from judged.diagnosis.changes import mean_of
from judged.errors import InputError
from judged.labels.labels import Labels
from judged.pipelines.traces.steps import CORPUS, clicks_of, compare_with_rest, read_clicks, recorded
from judged.scoring.judging import judge
from judged.stats.classical import with_hall_tests
from judged.stats.correction import adjust, hypergeometric_p_values
from judged.stats.inputs import spread
from judged.stats.paired import paired_test
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.pipelines.traces.funnel_answer import TraceFunnel
    from judged.pipelines.traces.traces import Stage, Traces

Grades = Mapping[str, Mapping[str, float]]
"""Grades by topic and document."""
Clicks = Mapping[str, Mapping[str, float]]
"""How often each document was clicked, by topic; none of a topic whose list was left."""
LEAST = 10
"""Minimum number of topics for a test of a kind of failure."""
CLASS = "class of queries"
"""The kind of a slice that loses more while other kinds that could be the reason were not tested."""
NO_DATA = "no-data"
"""The code of what was not tested for want of data."""
_COMMON = ("missing content", "freshness", "feedback")  # they may befall the queries of one class
_BANDS = 5  # of the scores of a source
_GOOD = 0.5  # of the best score: from there on a list is good


class FailureTest(NamedTuple):
    """One test of a kind of failure.

    `difference` is above 0 where that is the failure, and `p` of that side; for calibration either side is.
    """

    failure: str
    where: str  # the source, the slice, or what was looked at
    what: str  # what was averaged over topics
    n: int
    difference: float
    interval: tuple[float, float] | None
    p: float
    recoverable: float = math.nan  # of the measure; NaN where that is not known
    values: Mapping[str, float] = {}  # by topic: of these the mean is tested, or that of the slice against the others
    members: frozenset[str] | None = None  # the topics of the slice
    adjusted: float = math.nan
    found: bool = False


class Untested(NamedTuple):
    """A kind of failure, or a part of it, that was not tested."""

    failure: str
    what: str  # the source, the slice, or what was not looked at
    code: str  # ``no-data``, or the code of an `Insufficiency`
    reason: str


Result: TypeAlias = "FailureTest | Untested"


def tested(
    made: TraceFunnel,
    qrels: Qrels,
    *,
    documents: Any,
    date: str,
    today: Any,
    clicks: Any,
    labels: Any,
    fdr: float,
    level: float,
    seed: int,
) -> tuple[tuple[FailureTest, ...], tuple[Untested, ...]]:
    """Test every kind for which there are data, and say of the others why not.

    The rate of false discoveries is that over all tests. A slice that loses more is *intent* only if missing content,
    freshness and feedback were looked for as well: else its kind is `CLASS`, as they could be the reason.
    """
    grades = _grades(qrels)
    traced = clicks_of(made.traces, made.losses[-1].stage.name)
    clicked, expected = (traced, dict[str, dict[str, float]]()) if clicks is None else read_clicks(clicks)
    paired = {"level": level, "seed": seed}
    results: list[Result] = [
        *_calibration(made, qrels, grades, paired),
        *_freshness(made, grades, documents, date, today, paired),
        *_subtopics(made, qrels, paired),
        *_classes(made, clicked, level, seed),
        *_feedback(made, grades, clicked, expected, paired),
    ]
    tests = [one for one in results if isinstance(one, FailureTest)]
    tests = [test if test.failure == "calibration" else test._replace(p=_above(test)) for test in tests]
    disagreement = list(_disagreement(made, labels))
    tests += [one for one in disagreement if isinstance(one, FailureTest)]
    if CORPUS not in made.parts:
        reason = "no ids of the corpus are given (--corpus FILE)"
        results.insert(0, Untested("missing content", "corpus", NO_DATA, reason))
    untested = tuple(one for one in (*results, *disagreement) if isinstance(one, Untested))
    if alternatives(untested, tests):
        tests = [test._replace(failure=CLASS) if test.members is not None else test for test in tests]
    adjusted = adjust([test.p for test in tests], "bh").tolist() if tests else []
    return tuple(test._replace(adjusted=p, found=p <= fdr) for test, p in zip(tests, adjusted, strict=True)), untested


def alternatives(untested: Iterable[Untested], tests: Iterable[FailureTest]) -> tuple[str, ...]:
    """Return the kinds that were not tested and could be the reason why a class of queries loses more."""
    known = {test.failure for test in tests if test.values}  # a test of single topics' labels says nothing of a class
    return tuple(dict.fromkeys(one.failure for one in untested if one.failure in _COMMON and one.failure not in known))


def missed_share(n: int) -> float:
    """Return the share of all topics of which a random sample of n holds none in 5 of 100 cases.

    >>> [round(missed_share(n), 3) for n in (10, 25, 100)]
    [0.259, 0.113, 0.03]
    """
    return 1 - 0.05 ** (1 / n)


def _above(test: FailureTest) -> float:
    """Return the p-value of a difference above 0: the other side is no failure, and must not make room for others."""
    return test.p / 2 if test.difference > 0 else 1 - test.p / 2


def of_topics(
    failure: str, where: str, what: str, values: Mapping[str, float], gain: float = math.nan, **paired: Any
) -> Iterator[Result]:
    """Test whether the mean over topics is 0, by flipping signs and by Hall's test."""
    known = {topic: value for topic, value in values.items() if not math.isnan(value)}
    if lacking := insufficiency(len(known), "verdict", min_units=LEAST):
        yield Untested(failure, where, lacking.code, lacking.sentence("topic"))
        return
    gaps = np.array(list(known.values()))
    found = paired_test(np.zeros(len(gaps)), gaps, **paired)
    (found,) = with_hall_tests([gaps], [found])
    interval = None if insufficiency(len(gaps), variance=spread(gaps)) else found.interval
    yield FailureTest(failure, where, what, len(gaps), found.difference, interval, found.p, gain, known)


def _grades(qrels: Qrels) -> dict[str, dict[str, float]]:
    """Give the highest grade of each pair."""
    found: dict[str, dict[str, float]] = {}
    columns = (qrels.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
    for query, doc, grade in zip(*columns, strict=True):
        known = found.setdefault(query, {})
        known[doc] = max(known.get(doc, grade), grade)
    return found


def _lists(traces: Traces, stage: str, topics: Sequence[str]) -> dict[str, list[str]]:
    """Return what a stage passed on, by topic and rank, of topics for which that is recorded."""
    known = {topic: traces.documents(topic, stage) for topic in topics}
    return {topic: [one.doc_id for one in docs] for topic, docs in known.items() if docs is not None}


def _calibration(made: TraceFunnel, qrels: Qrels, grades: Grades, paired: Mapping[str, Any]) -> Iterator[Result]:
    """Hold documents of one source only against those of the others only, at the same place of the merged list."""
    merging = [loss.stage for loss in made.losses if len(loss.stage.parents) > 1]
    for stage in merging:
        yield from _merged(made, stage, qrels, grades, paired)
    if not merging:
        yield Untested("calibration", "merged sources", NO_DATA, "no stage has two parents or more")


def _merged(
    made: TraceFunnel, stage: Stage, qrels: Qrels, grades: Grades, paired: Mapping[str, Any]
) -> Iterator[Result]:
    from scipy.optimize import isotonic_regression

    merged = _lists(made.traces, stage.name, made.query_ids)
    parts = {name: _lists(made.traces, name, made.query_ids) for name in stage.parents}
    rows: list[tuple[int, float, tuple[str, ...], int]] = []  # rank, relevance, sources, topic
    topics = list(merged)
    for at, (topic, listed) in enumerate(merged.items()):
        if not all(topic in part for part in parts.values()):
            continue
        held = {name: set(part[topic]) for name, part in parts.items()}
        known = grades.get(topic, {})
        rows += [
            (rank, float(known.get(doc, -1) >= made.rel), tuple(name for name in held if doc in held[name]), at)
            for rank, doc in enumerate(listed)
        ]
    if not rows:
        yield Untested("calibration", f"sources of {stage.name}", NO_DATA, "no list is recorded with all its sources")
        return
    rank, relevance, topic = (np.array([row[at] for row in rows]) for at in (0, 1, 3))
    times = np.bincount(rank)
    share = np.bincount(rank, relevance) / times
    curve = isotonic_regression(share, weights=times, increasing=False).x
    beyond = relevance - curve[rank]  # how much more often it is relevant than what stands there usually is
    gain = _gain_of_ranks(made, stage, qrels)
    last = 1 if len(stage.parents) == 2 else len(stage.parents)  # of two sources one test says all
    for name in stage.parents[:last]:
        alone = np.array([row[2] == (name,) for row in rows])
        others = np.array([bool(row[2]) and name not in row[2] for row in rows])
        gaps = {
            topics[at]: float(beyond[here & alone].mean() - beyond[here & others].mean())
            for at, here in ((at, topic == at) for at in np.unique(topic).tolist())
            if (here & alone).any() and (here & others).any()
        }
        rivals = ", ".join(other for other in stage.parents if other != name)
        what = f"share relevant at the same place of {stage.name}, {name} alone less {rivals} alone"
        yield from of_topics("calibration", f"{name} at {stage.name}", what, gaps, gain, **paired)


class ScoreBand(NamedTuple):
    """How often what a source of a merged list scores so high is relevant."""

    where: str  # the source, and what merges it
    n: int  # documents, over all topics
    low: float  # their lowest and highest score
    high: float
    relevant: float  # the share


def score_curves(made: TraceFunnel, qrels: Qrels) -> tuple[ScoreBand, ...]:
    """Give the share of relevant documents by score, in five bands of equal size, of each source that is merged."""
    grades, bands = _grades(qrels), list[ScoreBand]()
    merging = [loss.stage for loss in made.losses if len(loss.stage.parents) > 1]
    for source, merged in ((source, stage.name) for stage in merging for source in stage.parents):
        rows = sorted(
            (one.score, grades.get(topic, {}).get(one.doc_id, -1) >= made.rel)
            for topic in made.query_ids
            for one in made.traces.documents(topic, source) or ()
            if one.score is not None
        )
        fifths = np.array_split(np.array(rows, dtype=np.float64).reshape(-1, 2), _BANDS)
        bands += [
            ScoreBand(
                f"{source} at {merged}", len(part), float(part[0, 0]), float(part[-1, 0]), float(part[:, 1].mean())
            )
            for part in fifths
            if len(part)
        ]
    return tuple(bands)


def _gain_of_ranks(made: TraceFunnel, stage: Stage, qrels: Qrels) -> float:
    """Return what the measure gains if the same sources are merged by ranks (RRF).

    The mean is over the topics of which all sources and the merged list are recorded.
    """
    every = (made.traces.run_or_empty(name) for name in stage.parents)
    sources = [run for run in every if len(run.table)]
    if not sources:
        return math.nan
    depth = max((len(docs) for docs in _lists(made.traces, stage.name, made.query_ids).values()), default=0)
    fused = made.measure(judge(qrels, fuse(sources, cutoff=depth or None)))
    here = next(loss.score for loss in made.losses if loss.stage is stage)
    known = recorded(made.traces, stage.parents, made.query_ids)
    return mean_of(np.where(known, fused - here, np.nan))


def _freshness(
    made: TraceFunnel, grades: Grades, documents: Any, date: str, today: Any, paired: Mapping[str, Any]
) -> Iterator[Result]:
    """Look at pairs of documents of one grade: how often the newer one stands lower, less how often higher."""
    if documents is None:
        yield Untested("freshness", "all topics", NO_DATA, "no dates of documents are given (--documents FILE)")
        return
    table = Documents.of(documents)
    if date not in table.names:
        known = ", ".join(table.names) or "nothing"
        raise InputError(
            f"no column {date!r} of dates (there is {known})",
            fix="name the column with date= or --date",
            path=table.where,
        )
    days = dates_by_doc(table.ids, table.table[date].to_pylist(), date, table.where)
    now = max(days.values(), default=None) if today is None else parse_date(today, "today")
    past = {doc: day for doc, day in days.items() if now is None or day <= now}
    shown = _lists(made.traces, made.losses[-1].stage.name, made.query_ids)
    gaps: dict[str, float] = {}
    for topic, listed in shown.items():
        place = {doc: rank for rank, doc in enumerate(listed)}
        dated = [(doc, grade) for doc, grade in grades.get(topic, {}).items() if grade >= made.rel and doc in past]
        ways = [
            float(np.sign(place.get(newer, math.inf) - place.get(older, math.inf)))
            if newer in place or older in place
            else 0.0
            for (one, grade), (other, same) in combinations(dated, 2)
            if grade == same and past[one] != past[other]
            for older, newer in [sorted((one, other), key=past.__getitem__)]
        ]
        gaps[topic] = float(np.mean(ways)) if ways else math.nan
    what = f"pairs of one grade with the newer below the older, less the other way round; today is {now}"
    yield from of_topics("freshness", "all topics", what, gaps, **paired)


def _subtopics(made: TraceFunnel, qrels: Qrels, paired: Mapping[str, Any]) -> Iterator[Result]:
    """Count subtopics that the list leaves out, against as many relevant documents drawn by lot."""
    if "iteration" not in qrels.table.column_names:
        yield Untested("intent", "subtopics", NO_DATA, "the judgments have no subtopics")
        return
    subtopics: dict[str, dict[str, set[str]]] = {}
    columns = (qrels.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance", "iteration"))
    for query, doc, grade, subtopic in zip(*columns, strict=True):
        if grade >= made.rel:
            subtopics.setdefault(query, {}).setdefault(subtopic, set()).add(doc)
    shown = _lists(made.traces, made.losses[-1].stage.name, made.query_ids)
    cutoff = getattr(made.measure, "cutoff", None)
    gaps: dict[str, float] = {}
    for topic, listed in shown.items():
        parts = list(subtopics.get(topic, {}).values())
        every = set[str]().union(*parts)
        seen = every & set(listed[:cutoff])
        if len(parts) > 1 and seen:
            lot = [math.comb(len(every) - len(part), len(seen)) / math.comb(len(every), len(seen)) for part in parts]
            gaps[topic] = (sum(not part & seen for part in parts) - sum(lot)) / len(parts)
    what = "share of subtopics left out, less that of as many relevant documents drawn by lot"
    yield from of_topics("intent", "subtopics", what, gaps, **paired)


def _classes(made: TraceFunnel, clicks: Clicks, level: float, seed: int) -> Iterator[Result]:
    """Hold the loss of each slice, and how often users leave its good lists, against all other topics."""
    if made.slicing is None:
        yield Untested("intent", "classes of queries", NO_DATA, "no classes of queries are given (--by NAME)")
        return
    share = np.divide(made.score, made.best, out=np.full(len(made.score), math.nan), where=made.best > 0)
    left = [
        float(not any(clicks[topic].values())) if topic in clicks and good >= _GOOD else math.nan
        for topic, good in zip(made.query_ids, share.tolist(), strict=True)
    ]
    sides = {
        f"loss of {made.measure}, less that of all others": made.best - made.score,
        "share of good lists without a click, less that of all others": np.array(left),
    }
    few = dict.fromkeys(made.slicing.names, 0)
    for at, (what, values) in enumerate(sides.items()):
        known = ~np.isnan(values)
        by_topic = {made.query_ids[at]: float(values[at]) for at in np.flatnonzero(known).tolist()}
        tests = compare_with_rest(values, made.slicing.members, level=level, seed=seed, min_units=LEAST)
        for name, mask, rest in zip(made.slicing.names, made.slicing.members, tests, strict=True):
            inside = int((mask & known).sum())
            if rest is None:
                few[name] += at == 0 and bool(min(inside, int(known.sum()) - inside) < LEAST)
                continue
            gain = rest.difference * inside / int(known.sum()) if at == 0 else math.nan
            members = frozenset(topic for topic, member in zip(made.query_ids, mask.tolist(), strict=True) if member)
            test = (rest.n, rest.difference, rest.interval, rest.p, gain, by_topic, members)
            yield FailureTest("intent", name, what, *test)
    reason = f"fewer than {LEAST} topics in the class or outside"
    yield from (Untested("intent", name, "few-units", reason) for name, times in few.items() if times)


def _feedback(
    made: TraceFunnel, grades: Grades, clicks: Clicks, expected: Clicks, paired: Mapping[str, Any]
) -> Iterator[Result]:
    """Look at pairs of documents: whether clicks follow the grade, and, of one grade, the place or what is popular.

    Clicks count by those that ranks let expect, where these are known. Only then is what still follows the place a
    failure; a document is popular by its clicks for other topics.
    """
    if not clicks:
        yield Untested("feedback", "clicks", NO_DATA, "no clicks are given or traced (--clicks FILE)")
        return
    shown = _lists(made.traces, made.losses[-1].stage.name, made.query_ids)
    popular = Counter[str]()
    for counts in clicks.values():
        popular.update(counts)
    worse: dict[str, float] = {}
    higher: dict[str, float] = {}
    favored: dict[str, float] = {}
    for topic, listed in shown.items():
        if topic not in clicks:
            continue
        own, hoped = clicks[topic], expected.get(topic)
        known = [
            (grades[topic][doc], own.get(doc, 0.0), (hoped or {}).get(doc, 0.0), popular[doc] - own.get(doc, 0.0))
            for doc in listed
            if doc in grades.get(topic, {}) and (hoped is None or hoped.get(doc))  # without expected clicks: not shown
        ]
        pairs: list[tuple[float, float, float, float]] = []
        for (grade, count, hope, liked), (below, other, less, disliked) in combinations(known, 2):
            # As if both had been shown equally often at one rank: of unequal counts the signs follow the expected ones.
            one, two = (count * less / (hope + less), other * hope / (hope + less)) if hoped else (count, other)
            more, size = (one - two, one + two) if hoped else (float(np.sign(one - two)), 1.0)
            pairs.append((grade - below, more, size, float(np.sign(liked - disliked))))
        worse[topic] = _share([(more, size) for gap, more, size, _ in pairs if gap < 0])
        if hoped is not None:
            higher[topic] = _share([(more, size) for gap, more, size, _ in pairs if gap == 0])
            favored[topic] = _share([(more * side, size) for gap, more, size, side in pairs if gap == 0 and side])
    what = "pairs with the better document lower in which the worse has more clicks, less those in which it has fewer"
    yield from of_topics("feedback", "all topics", what, worse, **paired)
    if not expected:
        reason = "no expected clicks are given (a column expected of --clicks)"
        yield Untested("feedback", "position and popularity", NO_DATA, reason)
        return
    what = "pairs of one grade: clicks of the upper less those of the lower, of all, at equal expected clicks"
    yield from of_topics("feedback", "position", what, higher, **paired)
    what = "pairs of one grade: the same of the document that is clicked more for other topics"
    yield from of_topics("feedback", "popularity", what, favored, **paired)


def _share(parts: list[tuple[float, float]]) -> float:
    """Divide a sum by a sum; NaN where there is nothing."""
    size = sum(size for _, size in parts)
    return sum(more for more, _ in parts) / size if size else math.nan


def _disagreement(made: TraceFunnel, labels: Any) -> Iterator[Result]:
    """Hold each topic's documents that judges put on both sides of what is relevant against those of all topics.

    Those count that people saw, or that some judge found relevant: they decide the score. Several judges graded them.
    """
    if labels is None:
        yield Untested("feedback", "labels", NO_DATA, "no labels of several judges are given (--labels STORE)")
        return
    given = Labels.of(labels)
    shown = _lists(made.traces, made.losses[-1].stage.name, made.query_ids)
    cutoff = getattr(made.measure, "cutoff", None)
    seen = {topic: set(docs[:cutoff]) for topic, docs in shown.items()}
    relevant = np.where(np.isnan(given.grades), np.nan, given.grades >= made.rel)
    judges, votes = (~np.isnan(relevant)).sum(axis=1), np.nansum(relevant, axis=1)
    documents, apart = Counter[str](), Counter[str]()
    for pair, count, for_it in zip(given.pairs.to_pylist(), judges.tolist(), votes.tolist(), strict=True):
        topic = pair["query_id"]
        if topic in seen and count > 1 and (for_it > 0 or pair["doc_id"] in seen[topic]):
            documents[topic] += 1
            apart[topic] += 0 < for_it < count
    if lacking := insufficiency(len(documents), "verdict", min_units=LEAST):
        yield Untested("feedback", "labels", lacking.code, lacking.sentence("topic"))
        return
    topics, total, every = list(documents), apart.total(), documents.total()
    counts, sizes = (np.array([of[topic] for topic in topics]) for of in (apart, documents))
    chances, _ = hypergeometric_p_values(counts, sizes, total, every)
    what = "share of its deciding documents that judges put on both sides of relevant, less that of all topics"
    for topic, count, size, p in zip(topics, counts.tolist(), sizes.tolist(), chances.tolist(), strict=True):
        yield FailureTest("feedback", f"labels of {topic}", what, 1, count / size - total / every, None, p)
