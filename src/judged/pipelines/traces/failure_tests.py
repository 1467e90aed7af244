"""Tests of kinds of failure over topics: merged sources, dates, classes of queries, clicks, and labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.comparison.fusion import fuse
from judged.data.freshness import dated_documents
from judged.diagnosis.changes import mean_of
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
"""Numbers of clicks by topic and document; an empty mapping for an abandoned list."""
MIN_TOPICS = 10
"""Minimum number of topics for a test of a kind of failure."""
SLICE_TEST = "class of queries"
"""Kind of a slice with a higher loss, if other possible causes were not tested."""
NO_DATA = "no-data"
"""Code of tests that lack data."""
_POSSIBLE_CAUSES = ("missing content", "freshness", "feedback")  # can affect the queries of a class
_N_BANDS = 5  # of the scores of a source
_GOOD_SHARE = 0.5  # of the best score, for a good list


class FailureTest(NamedTuple):
    """Test of a kind of failure.

    `difference` above 0 is the failure, and `p` is for that side; for calibration both sides are.
    """

    failure: str
    where: str  # source, slice, or other subject
    quantity: str  # quantity that was averaged over topics
    n: int
    difference: float
    interval: tuple[float, float] | None
    p: float
    recoverable: float = math.nan  # gain of the measure; NaN if unknown
    values: Mapping[str, float] = {}  # by topic; the mean is tested, or that of the slice against the others
    members: frozenset[str] | None = None  # topics of the slice
    adjusted: float = math.nan
    significant: bool = False


class Untested(NamedTuple):
    """Kind of failure, or a part of it, that was not tested."""

    failure: str
    where: str  # source, slice, or other subject
    code: str  # `NO_DATA`, or the code of an `Insufficiency`
    reason: str


Result: TypeAlias = "FailureTest | Untested"


def run_tests(
    funnel: TraceFunnel,
    qrels: Qrels,
    *,
    documents: Any,
    clicks: Any,
    labels: Any,
    fdr: float,
    level: float,
    seed: int,
) -> tuple[tuple[FailureTest, ...], tuple[Untested, ...]]:
    """Run all tests with data, and return reasons for the others.

    The false discovery rate is over all tests. A slice with a higher loss is *intent* only if missing content,
    freshness, and feedback were tested as well: otherwise its kind is `SLICE_TEST`, as they are possible causes.
    """
    grades = _grades_of(qrels)
    traced = clicks_of(funnel.traces, funnel.losses[-1].stage.name)
    clicked, expected = (traced, dict[str, dict[str, float]]()) if clicks is None else read_clicks(clicks)
    test_options = {"level": level, "seed": seed}
    results: list[Result] = [
        *_calibration(funnel, qrels, grades, test_options),
        *_freshness(funnel, grades, documents, test_options),
        *_subtopics(funnel, qrels, test_options),
        *_classes(funnel, clicked, level, seed),
        *_feedback(funnel, grades, clicked, expected, test_options),
    ]
    tests = [result for result in results if isinstance(result, FailureTest)]
    tests = [test if test.failure == "calibration" else test._replace(p=_one_sided_p(test)) for test in tests]
    disagreement = list(_disagreement(funnel, labels))
    tests += [result for result in disagreement if isinstance(result, FailureTest)]
    if CORPUS not in funnel.parts:
        reason = "no document ids of the corpus (use --corpus FILE)"
        results.insert(0, Untested("missing content", "corpus", NO_DATA, reason))
    untested = tuple(result for result in (*results, *disagreement) if isinstance(result, Untested))
    if alternatives(untested, tests):
        tests = [test._replace(failure=SLICE_TEST) if test.members is not None else test for test in tests]
    adjusted = adjust([test.p for test in tests], "bh").tolist() if tests else []
    return tuple(
        test._replace(adjusted=p, significant=p <= fdr) for test, p in zip(tests, adjusted, strict=True)
    ), untested


def alternatives(untested: Iterable[Untested], tests: Iterable[FailureTest]) -> tuple[str, ...]:
    """Return the kinds that were not tested and could be the reason why a class of queries loses more."""
    # Tests of the labels of single topics have no values: they do not rule out a cause.
    tested = {test.failure for test in tests if test.values}
    missing = (test.failure for test in untested)
    return tuple(dict.fromkeys(kind for kind in missing if kind in _POSSIBLE_CAUSES and kind not in tested))


def missed_share(n: int) -> float:
    """Return the share of topics that a random sample of n misses completely in 5 of 100 cases.

    >>> [round(missed_share(n), 3) for n in (10, 25, 100)]
    [0.259, 0.113, 0.03]
    """
    return 1 - 0.05 ** (1 / n)


def _one_sided_p(test: FailureTest) -> float:
    # A difference below 0 is no failure: a small p-value would add power for other tests in Benjamini-Hochberg.
    return test.p / 2 if test.difference > 0 else 1 - test.p / 2


def mean_test(
    failure: str, where: str, quantity: str, values: Mapping[str, float], gain: float = math.nan, **test_options: Any
) -> Iterator[Result]:
    """Test whether the mean over topics is 0, by sign flips and by Hall's test."""
    valid = {topic: value for topic, value in values.items() if not math.isnan(value)}
    if shortage := insufficiency(len(valid), "verdict", min_units=MIN_TOPICS):
        yield Untested(failure, where, shortage.code, shortage.sentence("topic"))
        return
    differences = np.array(list(valid.values()))
    test = paired_test(np.zeros(len(differences)), differences, **test_options)
    (test,) = with_hall_tests([differences], [test])
    interval = None if insufficiency(len(differences), variance=spread(differences)) else test.interval
    yield FailureTest(failure, where, quantity, len(differences), test.difference, interval, test.p, gain, valid)


def _grades_of(qrels: Qrels) -> dict[str, dict[str, float]]:
    """Return the highest grade of each (topic, document) pair."""
    grades_of: dict[str, dict[str, float]] = {}
    columns = (qrels.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance"))
    for query, doc, grade in zip(*columns, strict=True):
        topic_grades = grades_of.setdefault(query, {})
        topic_grades[doc] = max(topic_grades.get(doc, grade), grade)
    return grades_of


def _rankings(traces: Traces, stage: str, topics: Sequence[str]) -> dict[str, list[str]]:
    """Return the documents of a stage by topic and rank, for topics for which they are recorded."""
    documents_of = {topic: traces.documents(topic, stage) for topic in topics}
    return {topic: [document.doc_id for document in docs] for topic, docs in documents_of.items() if docs is not None}


def _calibration(
    funnel: TraceFunnel, qrels: Qrels, grades: Grades, test_options: Mapping[str, Any]
) -> Iterator[Result]:
    """Compare documents of only one source with those of only others, at the same rank of the merged list."""
    merging_stages = [loss.stage for loss in funnel.losses if len(loss.stage.parents) > 1]
    for stage in merging_stages:
        yield from _merged(funnel, stage, qrels, grades, test_options)
    if not merging_stages:
        yield Untested("calibration", "merged sources", NO_DATA, "no stage has two or more parents")


def _merged(
    funnel: TraceFunnel, stage: Stage, qrels: Qrels, grades: Grades, test_options: Mapping[str, Any]
) -> Iterator[Result]:
    from scipy.optimize import isotonic_regression

    merged = _rankings(funnel.traces, stage.name, funnel.query_ids)
    sources = {name: _rankings(funnel.traces, name, funnel.query_ids) for name in stage.parents}
    rows: list[tuple[int, float, tuple[str, ...], int]] = []  # rank, relevance, sources, topic
    topics = list(merged)
    for i, (topic, documents) in enumerate(merged.items()):
        if not all(topic in source for source in sources.values()):
            continue
        doc_sets = {name: set(source[topic]) for name, source in sources.items()}
        topic_grades = grades.get(topic, {})
        for rank, doc in enumerate(documents):
            is_relevant = float(topic_grades.get(doc, -1) >= funnel.rel)
            rows.append((rank, is_relevant, tuple(name for name in doc_sets if doc in doc_sets[name]), i))
    if not rows:
        yield Untested(
            "calibration",
            f"sources of {stage.name}",
            NO_DATA,
            "no merged list is recorded together with all its sources",
        )
        return
    ranks, relevance, topic = (np.array([row[column] for row in rows]) for column in (0, 1, 3))
    counts = np.bincount(ranks)
    curve = isotonic_regression(np.bincount(ranks, relevance) / counts, weights=counts, increasing=False).x
    excess = relevance - curve[ranks]  # relevance above the usual one at this rank
    gain = _gain_of_rrf(funnel, stage, qrels)
    n_tests = 1 if len(stage.parents) == 2 else len(stage.parents)  # two sources have one difference
    for name in stage.parents[:n_tests]:
        is_alone = np.array([row[2] == (name,) for row in rows])
        is_elsewhere = np.array([bool(row[2]) and name not in row[2] for row in rows])
        differences = {
            topics[i]: float(excess[in_topic & is_alone].mean() - excess[in_topic & is_elsewhere].mean())
            for i, in_topic in ((i, topic == i) for i in np.unique(topic).tolist())
            if (in_topic & is_alone).any() and (in_topic & is_elsewhere).any()
        }
        rivals = " or ".join(other for other in stage.parents if other != name)
        quantity = (
            f"share of relevant documents, compared with the usual share at the same rank of {stage.name}: documents"
            f" returned only by {name}, minus documents returned by {rivals} but not by {name}"
        )
        yield from mean_test("calibration", f"{name} at {stage.name}", quantity, differences, gain, **test_options)


class ScoreBand(NamedTuple):
    """Share of relevant documents in a band of scores of a source."""

    where: str  # source, and stage that merges it
    n: int  # documents, over all topics
    low: float  # lowest score
    high: float  # highest score
    relevant: float  # share


def score_curves(funnel: TraceFunnel, qrels: Qrels) -> tuple[ScoreBand, ...]:
    """Compute the share of relevant documents by score, in bands of equal size, for each source that is merged."""
    grades, bands = _grades_of(qrels), list[ScoreBand]()
    merging_stages = [loss.stage for loss in funnel.losses if len(loss.stage.parents) > 1]
    for source, stage_name in ((source, stage.name) for stage in merging_stages for source in stage.parents):
        rows = sorted(
            (document.score, grades.get(topic, {}).get(document.doc_id, -1) >= funnel.rel)
            for topic in funnel.query_ids
            for document in funnel.traces.documents(topic, source) or ()
            if document.score is not None
        )
        for band in filter(len, np.array_split(np.array(rows, dtype=np.float64).reshape(-1, 2), _N_BANDS)):
            low, high, relevant = float(band[0, 0]), float(band[-1, 0]), float(band[:, 1].mean())
            bands.append(ScoreBand(f"{source} at {stage_name}", len(band), low, high, relevant))
    return tuple(bands)


def _gain_of_rrf(funnel: TraceFunnel, stage: Stage, qrels: Qrels) -> float:
    # Gain of the measure if the sources are merged by reciprocal rank fusion, over topics with all lists recorded.
    sources = [run for run in (funnel.traces.run_or_empty(name) for name in stage.parents) if len(run.table)]
    if not sources:
        return math.nan
    depth = max((len(docs) for docs in _rankings(funnel.traces, stage.name, funnel.query_ids).values()), default=0)
    fused = funnel.measure(judge(qrels, fuse(sources, cutoff=depth or None)))
    scores = next(loss.score for loss in funnel.losses if loss.stage is stage)
    return mean_of(np.where(recorded(funnel.traces, stage.parents, funnel.query_ids), fused - scores, np.nan))


def _freshness(
    funnel: TraceFunnel, grades: Grades, documents: Any, test_options: Mapping[str, Any]
) -> Iterator[Result]:
    """Compare pairs of documents of the same grade: how often the newer one is lower, minus how often it is higher."""
    if documents is None:
        yield Untested("freshness", "all topics", NO_DATA, "no dates of documents (use --documents FILE)")
        return
    table = dated_documents(documents)
    dates = {doc: day for doc, day in table.dates.items() if day <= table.as_of}
    rankings = _rankings(funnel.traces, funnel.losses[-1].stage.name, funnel.query_ids)
    differences: dict[str, float] = {}
    for topic, ranking in rankings.items():
        ranks = {doc: rank for rank, doc in enumerate(ranking)}
        dated = [(doc, grade) for doc, grade in grades.get(topic, {}).items() if grade >= funnel.rel and doc in dates]
        signs = [
            float(np.sign(ranks.get(newer, math.inf) - ranks.get(older, math.inf)))
            if newer in ranks or older in ranks
            else 0.0
            for (first, grade), (second, second_grade) in combinations(dated, 2)
            if grade == second_grade and dates[first] != dates[second]
            for older, newer in [sorted((first, second), key=dates.__getitem__)]
        ]
        differences[topic] = float(np.mean(signs)) if signs else math.nan
    quantity = (
        "among pairs of documents with equal grades: share of pairs with the newer document ranked lower, minus share"
        f" of pairs with the newer document ranked higher; documents after {table.as_of} are ignored"
    )
    yield from mean_test("freshness", "all topics", quantity, differences, **test_options)


def _subtopics(funnel: TraceFunnel, qrels: Qrels, test_options: Mapping[str, Any]) -> Iterator[Result]:
    """Count subtopics that the list lacks, compared with a random sample of relevant documents of the same size."""
    if "iteration" not in qrels.table.column_names:
        yield Untested("intent", "subtopics", NO_DATA, "the judgments have no subtopics")
        return
    subtopics: dict[str, dict[str, set[str]]] = {}
    columns = (qrels.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance", "iteration"))
    for query, doc, grade, subtopic in zip(*columns, strict=True):
        if grade >= funnel.rel:
            subtopics.setdefault(query, {}).setdefault(subtopic, set()).add(doc)
    rankings = _rankings(funnel.traces, funnel.losses[-1].stage.name, funnel.query_ids)
    cutoff = getattr(funnel.measure, "cutoff", None)
    differences: dict[str, float] = {}
    for topic, documents in rankings.items():
        doc_sets = list(subtopics.get(topic, {}).values())
        relevant = set[str]().union(*doc_sets)
        listed_relevant = relevant & set(documents[:cutoff])
        if len(doc_sets) > 1 and listed_relevant:
            # A random sample of n documents lacks a subtopic with the hypergeometric probability of 0 successes.
            n, n_listed = len(relevant), len(listed_relevant)
            expected = [math.comb(n - len(docs), n_listed) / math.comb(n, n_listed) for docs in doc_sets]
            differences[topic] = (sum(not docs & listed_relevant for docs in doc_sets) - sum(expected)) / len(doc_sets)
    quantity = (
        "share of subtopics that the list lacks, minus the share that a random sample of equally many relevant"
        " documents is expected to lack"
    )
    yield from mean_test("intent", "subtopics", quantity, differences, **test_options)


def _classes(funnel: TraceFunnel, clicks: Clicks, level: float, seed: int) -> Iterator[Result]:
    """Compare the loss of each slice, and how often its good lists get no click, with all other topics."""
    if funnel.slicing is None:
        yield Untested("intent", "classes of queries", NO_DATA, "no classes of queries (use --by NAME)")
        return
    shares = np.divide(funnel.score, funnel.best, out=np.full(len(funnel.score), math.nan), where=funnel.best > 0)
    is_abandoned = [
        float(not any(clicks[topic].values())) if topic in clicks and topic_share >= _GOOD_SHARE else math.nan
        for topic, topic_share in zip(funnel.query_ids, shares.tolist(), strict=True)
    ]
    loss = f"mean loss of {funnel.measure} over topics of the class, minus the mean loss over all other topics"
    abandonment = (
        "share of good lists without a click over topics of the class, minus this share over all other topics; a good"
        " list has at least half of the best score"
    )
    quantities = {loss: funnel.best - funnel.score, abandonment: np.array(is_abandoned)}
    too_few = dict.fromkeys(funnel.slicing.names, 0)
    for i, (quantity, values) in enumerate(quantities.items()):
        is_loss, is_known = i == 0, ~np.isnan(values)
        by_topic = {funnel.query_ids[column]: float(values[column]) for column in np.flatnonzero(is_known).tolist()}
        tests = compare_with_rest(values, funnel.slicing.members, level=level, seed=seed, min_units=MIN_TOPICS)
        for name, mask, test in zip(funnel.slicing.names, funnel.slicing.members, tests, strict=True):
            n_inside = int((mask & is_known).sum())
            if test is None:
                too_few[name] += is_loss and bool(min(n_inside, int(is_known.sum()) - n_inside) < MIN_TOPICS)
                continue
            gain = test.difference * n_inside / int(is_known.sum()) if is_loss else math.nan
            members = frozenset(topic for topic, member in zip(funnel.query_ids, mask.tolist(), strict=True) if member)
            fields = (test.n, test.difference, test.interval, test.p, gain, by_topic, members)
            yield FailureTest("intent", name, quantity, *fields)
    reason = f"the class has fewer than {MIN_TOPICS} topics, or there are fewer than {MIN_TOPICS} other topics"
    yield from (Untested("intent", name, "few-units", reason) for name, count in too_few.items() if count)


def _feedback(
    funnel: TraceFunnel, grades: Grades, clicks: Clicks, expected: Clicks, test_options: Mapping[str, Any]
) -> Iterator[Result]:
    """Test for pairs of documents whether clicks follow grades, and for equal grades whether they follow position.

    If expected clicks by rank are known, clicks are divided by these; only then is a dependence on position a failure.
    Popularity is measured by clicks for other topics.
    """
    if not clicks:
        yield Untested("feedback", "clicks", NO_DATA, "no clicks in the traces (use --clicks FILE)")
        return
    rankings = _rankings(funnel.traces, funnel.losses[-1].stage.name, funnel.query_ids)
    total_clicks = Counter[str]()
    for counts in clicks.values():
        total_clicks.update(counts)
    inverted: dict[str, float] = {}
    by_position: dict[str, float] = {}
    by_popularity: dict[str, float] = {}
    for topic, ranking in rankings.items():
        if topic not in clicks:
            continue
        topic_clicks, topic_expected = clicks[topic], expected.get(topic)
        documents = [
            _ClickedDocument(
                grades[topic][doc],
                clicks=topic_clicks.get(doc, 0.0),
                expected=(topic_expected or {}).get(doc, 0.0),
                popularity=total_clicks[doc] - topic_clicks.get(doc, 0.0),
            )
            for doc in ranking
            if doc in grades.get(topic, {}) and (topic_expected is None or topic_expected.get(doc))  # else not shown
        ]
        pairs = [(upper, lower, *_click_excess(upper, lower)) for upper, lower in combinations(documents, 2)]
        inverted[topic] = _share_of_sums([pair[2:] for pair in pairs if pair[0].grade < pair[1].grade])
        if topic_expected is not None:
            equal = [pair for pair in pairs if pair[0].grade == pair[1].grade]
            by_position[topic] = _share_of_sums([pair[2:] for pair in equal])
            signs = [float(np.sign(upper.popularity - lower.popularity)) for upper, lower, *_ in equal]
            signed = [(excess * sign, total) for (*_, excess, total), sign in zip(equal, signs, strict=True) if sign]
            by_popularity[topic] = _share_of_sums(signed)
    quantity = (
        "pairs of documents with the less relevant document ranked higher: clicks on the less relevant document minus"
        " clicks on the more relevant document, divided by the clicks on the pair; clicks are adjusted for expected"
        " clicks"
        if expected
        else "pairs of documents with the less relevant document ranked higher: share of pairs with more clicks on the"
        " less relevant document, minus share of pairs with more clicks on the more relevant document"
    )
    yield from mean_test("feedback", "all topics", quantity, inverted, **test_options)
    if not expected:
        reason = "no expected clicks (add a column `expected` to the --clicks file)"
        yield Untested("feedback", "position and popularity", NO_DATA, reason)
        return
    quantity = (
        "pairs of documents with equal grades: clicks on the higher-ranked document minus clicks on the lower-ranked"
        " document, divided by the clicks on the pair; clicks are adjusted for expected clicks"
    )
    yield from mean_test("feedback", "position", quantity, by_position, **test_options)
    quantity = (
        "pairs of documents with equal grades: clicks on the more popular document minus clicks on the less popular"
        " document, divided by the clicks on the pair; clicks are adjusted for expected clicks. Popularity: clicks on"
        " the document for other topics"
    )
    yield from mean_test("feedback", "popularity", quantity, by_popularity, **test_options)


class _ClickedDocument(NamedTuple):
    grade: float
    clicks: float
    expected: float  # clicks expected by rank; 0 if unknown
    popularity: float  # clicks for other topics


def _click_excess(upper: _ClickedDocument, lower: _ClickedDocument) -> tuple[float, float]:
    """Return the difference of clicks and their sum; without expected clicks, the sign of the difference and 1."""
    expected = upper.expected + lower.expected
    if not expected:
        return float(np.sign(upper.clicks - lower.clicks)), 1.0
    # Clicks at equal expected clicks: each count is weighted by the expected clicks of the other document.
    upper_clicks, lower_clicks = upper.clicks * lower.expected / expected, lower.clicks * upper.expected / expected
    return upper_clicks - lower_clicks, upper_clicks + lower_clicks


def _share_of_sums(pairs: list[tuple[float, float]]) -> float:
    """Divide the sum of differences by the sum of totals; NaN without any."""
    total = sum(total for _, total in pairs)
    return sum(excess for excess, _ in pairs) / total if total else math.nan


def _disagreement(funnel: TraceFunnel, labels: Any) -> Iterator[Result]:
    """Compare each topic's share of documents on whose relevance judges disagree with that of all topics.

    Only documents that users saw, or that a judge found relevant, determine the score. They need several judges.
    """
    if labels is None:
        yield Untested("feedback", "labels", NO_DATA, "no labels of several annotators (use --labels STORE)")
        return
    labeled = Labels.of(labels)
    rankings = _rankings(funnel.traces, funnel.losses[-1].stage.name, funnel.query_ids)
    cutoff = getattr(funnel.measure, "cutoff", None)
    listed = {topic: set(docs[:cutoff]) for topic, docs in rankings.items()}
    relevant = np.where(np.isnan(labeled.grades), np.nan, labeled.grades >= funnel.rel)
    judges, votes = (~np.isnan(relevant)).sum(axis=1), np.nansum(relevant, axis=1)
    n_documents, n_disputed = Counter[str](), Counter[str]()
    for pair, n_judges, n_relevant in zip(labeled.pairs.to_pylist(), judges.tolist(), votes.tolist(), strict=True):
        topic = pair["query_id"]
        if topic in listed and n_judges > 1 and (n_relevant > 0 or pair["doc_id"] in listed[topic]):
            n_documents[topic] += 1
            n_disputed[topic] += 0 < n_relevant < n_judges
    if shortage := insufficiency(len(n_documents), "verdict", min_units=MIN_TOPICS):
        yield Untested("feedback", "labels", shortage.code, shortage.sentence("topic"))
        return
    topics, n_all_disputed, n_all = list(n_documents), n_disputed.total(), n_documents.total()
    counts, sizes = (np.array([counter[topic] for topic in topics]) for counter in (n_disputed, n_documents))
    p_values, _ = hypergeometric_p_values(counts, sizes, n_all_disputed, n_all)
    quantity = "share of the topic's documents on whose relevance annotators disagree, minus this share over all topics"
    for topic, size, p in zip(topics, sizes.tolist(), p_values.tolist(), strict=True):
        difference = n_disputed[topic] / size - n_all_disputed / n_all
        yield FailureTest("feedback", f"labels of {topic}", quantity, 1, difference, None, p)
