"""Notes that `evaluate` attaches to its scores: warnings on how the numbers should be read."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data import files
from judged.data.compute import distinct, pc
from judged.data.run import Run
from judged.errors import InputError, JudgedWarning
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted, decimal, percent
from judged.scoring.measures.aggregates import aggregate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from judged.data.qrels import Origin, Qrels
    from judged.results.blocks import Severity
    from judged.results.types import Floats, Strings
    from judged.scoring.evaluation.dialects import Dialect
    from judged.scoring.evaluation.facts import Policies
    from judged.scoring.evaluation.summary import SampledTopics
    from judged.scoring.judging import Judged, TopicPolicy
    from judged.scoring.measures.base import Measure

TESTABLE = 6
"""Smallest number of topics with which a paired randomization test can reach p = 0.05: 2 of 2^n signs are extreme."""
_HUGE_GRADE = 100.0
_SHARE_DEPTH, _SHARE_DIFFERENCE = 10, 0.1
_MAX_UNJUDGED = 0.3  # share of the first documents
_MIN_JUDGED_RETURNED = 0.1
_MAX_TIE_CHECKS = 10  # runs, and measures, for which tie ranges are computed
_VISIBLE_WIDTH = 0.001
_TIE_ORDER_TEXTS = {
    "docid": ", ordered by descending document id",
    "docid-rising": ", ordered by ascending document id",
    "stable": ", in the order of the run",
    "rank": "",
    "expected": ", with scores averaged over all orders of tied documents",
    "bounds": "",
}
_MAX_CUTOFFS = 5  # cutoffs of one measure that are listed; more are abbreviated
_MIN_SELF_TOPICS = 3  # in fewer topics, documents may have the id of their topic by chance
_MIN_DOCS = 10  # in shorter lists, scores that look like ranks may be chance, or typed by hand


def dialect_notes(rules: Dialect, original: Qrels, prepared: Qrels) -> tuple[Note, ...]:
    """Return a note if a dialect changes grades."""
    changed = int(np.count_nonzero(original.grades != prepared.grades)) if prepared is not original else 0
    text = f"{rules.name}: {rules.regrades}; this changes {changed} of {len(original)} judgments"
    return (Note("regraded", text),) if changed else ()


def self_notes(qrels: Qrels, policies: Policies) -> tuple[Note, ...]:
    """Return a note if documents with the id of their topic are relevant, but removed from runs."""
    if not policies.exclude_self:
        return ()
    index = qrels.index
    row = index.rows_of(np.arange(len(index.topics)), index.topic_ids)
    topics = [index.topics[code] for code in np.flatnonzero((row >= 0) & (index.grade[row] > 0)).tolist()]
    text = (
        f"in {counted(len(topics), 'topic')}, the document whose id equals the topic id is relevant, but it is"
        " removed from the runs"
    )
    return (Note("relevant-self-removed", f"{text}: {first_few(topics)}"),) if topics else ()


def qrels_notes(qrels: Qrels, measures: Sequence[Measure], with_level: Collection[Measure]) -> tuple[Note, ...]:
    """Return notes on the judgments for these measures; the caller wrote the `rel` of those in `with_level`."""
    grades = distinct(qrels.index.grade)
    positive = grades[grades > 0]
    texts = {"merged-grades": _level_note(positive, [measure for measure in measures if measure not in with_level])}
    if len(positive) == 1 and (graded := [measure for measure in measures if measure.properties.graded]):
        texts["one-grade"] = (
            f"{name_measures(graded)}: all relevant documents have grade {positive[0]:g}, so grades have no effect"
        )
    if len(positive) and positive[-1] > _HUGE_GRADE:
        texts["huge-grades"] = (
            f"the highest grade is {positive[-1]:g}; with gain=exp2, one document of this grade outweighs all other"
            " documents"
        )
    texts["several-labels"] = _label_note(qrels, measures)
    fractions = int(np.count_nonzero((qrels.grades > 0) & (qrels.grades < 1)))
    binary = [measure for measure in measures if measure not in with_level and getattr(measure, "rel", None) == 1]
    if fractions and len(positive) and positive[-1] >= 1 and binary:
        texts["grades-below-1"] = (
            f"{name_measures(binary)}: {counted(fractions, 'judgment')} with a grade between 0 and 1"
            f" count as not relevant; set the lowest relevant grade with rel=, for example"
            f" {binary[0].replace(rel=positive[0])}"
        )
    return (*origin_notes(qrels.origin), *_notes(texts), *_no_relevant_notes(qrels, measures))


def origin_notes(origin: Origin | None) -> tuple[Note, ...]:
    """Return notes if judgments or topics are not by people."""
    if origin is None:
        return ()
    by_kind = {"model": (origin.model, "language models"), "click": (origin.click, "clicks")}
    total = origin.human + origin.model + origin.click
    labels = f"the {counted(total, 'label')} that the qrels are based on"
    texts = {
        f"{kind}-judgments": f"{part:,} of {labels} are from {source} instead of people"
        for kind, (part, source) in by_kind.items()
        if part
    }
    if origin.synthetic:
        texts["synthetic-topics"] = (
            f"{counted(origin.synthetic, 'topic was', 'topics were')} generated from documents instead of user queries"
        )
    return _notes(texts)


def level_notes(measures: Sequence[Measure], rel: float | None) -> tuple[Note, ...]:
    """Return a note on the measures that a `rel` for the whole call does not change."""
    without = [measure for measure in measures if not hasattr(measure, "rel")]
    if rel is None or not without:
        return ()
    return (
        Note(
            "rel-without-effect",
            f"{name_measures(without)}: these measures do not use a lowest relevant grade, so rel={rel:g} has"
            " no effect",
        ),
    )


def name_measures(measures: Iterable[Measure]) -> str:
    """Format the names of measures; a long series of cutoffs is abbreviated.

    >>> from judged.scoring.measures import parse_many
    >>> name_measures(parse_many("P@1,2")), name_measures([*parse_many("AP"), *parse_many("nDCG@1..100")])
    ('P@1, P@2', 'AP, nDCG@k')
    """
    series: dict[str, list[str]] = {}
    for measure in measures:
        name = str(measure)
        stem, separator, _ = ("", "", "") if measure.where else name.rpartition("@")
        letter = "c" if measure.entry.cutoff_name == "recall" else "k"
        series.setdefault(f"{stem}@{letter}" if separator else name, []).append(name)
    return first_few(
        [
            name
            for abbreviation, names in series.items()
            for name in (names if len(names) <= _MAX_CUTOFFS else [abbreviation])
        ]
    )


def _notes(texts: Mapping[str, str]) -> tuple[Note, ...]:
    return tuple(Note(rule, text) for rule, text in texts.items() if text)


def _label_note(qrels: Qrels, measures: Sequence[Measure]) -> str:
    """Return the text on pairs with several labels, or on measures of subtopics or assessors without several labels."""
    by_label = [measure for measure in measures if measure.properties.uses_all_labels]
    by_highest = [measure for measure in measures if not measure.properties.uses_all_labels]
    repeated = len(qrels) - len(qrels.index.topic)
    if repeated and by_highest:
        return f"{repeated} judgments repeat a pair under another iteration; the highest grade of each pair counts" + (
            f" for {name_measures(by_highest)}" if by_label else ""
        )
    if by_label and len(qrels.aspects.names) == 1:
        names = name_measures(by_label)
        return f"{names}: the qrels identify no subtopics, assessors, or users, so each pair has one label"
    return ""


def _no_relevant_notes(qrels: Qrels, measures: Sequence[Measure]) -> list[Note]:
    """Return notes on topics without a relevant document, which score 0 for any run."""
    by_level: dict[float, list[Measure]] = {}
    for measure in measures:
        if getattr(measure, "undefined", None) == 0.0:
            by_level.setdefault(getattr(measure, "rel", np.nextafter(0, 1)), []).append(measure)
    notes: list[Note] = []
    highest = float(qrels.index.grade.max())
    for level, level_measures in sorted(by_level.items()):
        codes = set(qrels.index.topic[qrels.index.grade >= level].tolist())
        without_relevant = [topic for code, topic in enumerate(qrels.topics) if code not in codes]
        names = name_measures(level_measures)
        if not codes:
            choice = "; set the lowest relevant grade with rel=" if highest > 0 else ""
            reason = f"no grade reaches {level:g}" if level >= 1 else "no document is relevant"
            text = f"{names}: every topic scores 0: {reason} (highest grade: {highest:.15g}){choice}"
            notes.append(Note("no-relevant", text))
        elif without_relevant:
            lack = "no relevant document" if level <= 1 else f"no document of grade {level:g} or more"
            count = f"{len(without_relevant)} of {len(qrels.topics)} topics"
            text = f"{names}: {count} have {lack}: {first_few(without_relevant)}"
            notes.append(Note("topics-without-relevant", text))
    return notes


def notes_of_runs(lists: Iterable[Judged], topics: TopicPolicy, left_out: Sequence[Measure] = ()) -> tuple[Note, ...]:
    """Return notes on each run; a topic that the run lacks does not count for the measures `left_out`."""
    matched = (
        "none of the returned documents has exactly the ids of the qrels: ids were matched without regard to case,"
        " Unicode form, leading zeros, and a final .0"
    )
    return tuple(
        note
        for judged in lists
        for note in (
            *([Note("matched-ids", matched, judged.run.name)] if judged.ids_matched else []),
            *_run_notes(judged, topics, left_out),
        )
    )


def _run_notes(judged: Judged, topics: TopicPolicy, left_out: Sequence[Measure]) -> list[Note]:
    notes: list[Note] = []
    missing = [judged.query_ids[topic] for topic in np.flatnonzero(judged.returned == 0).tolist()]

    def add(rule: str, text: str, weight: float = 0.0, severity: Severity = "warning") -> None:
        notes.append(Note(rule, text, judged.run.name, weight, severity))

    if missing:
        effect = "score 0" if topics == "qrels" else "excluded from the means"
        effect += (
            f", but excluded from the means of {name_measures(left_out)}" if left_out and topics == "qrels" else ""
        )
        text = f"no documents returned for {len(missing)} of {len(judged)} topics ({effect}): {first_few(missing)}"
        add("missing-topics", text, len(missing))
    if extra := [topic for topic in judged.extra if topic not in judged.qrels.left_out]:
        effect = "score 0" if topics == "run" else "excluded"
        text = f"no judgments for {counted(len(extra), 'topic')} of the run ({effect}): {first_few(extra)}"
        add("extra-topics", text, len(extra))
    if not len(judged.topic):
        advice = "Check that the run uses the document ids of the qrels ('judged check')"
        add("nothing-judged", f"no score: none of the returned documents is judged. {advice}", severity="error")
        return notes
    if (share := _returned_share(judged)) < _MIN_JUDGED_RETURNED:
        text = (
            f"the run returned only {share:.1%} of the judged documents that lists of this length could contain;"
            " check the document ids"
        )
        add("few-judged", text, -share)
    if judged.n_self_top * 2 >= np.count_nonzero(judged.present) and judged.n_self_top >= _MIN_SELF_TOPICS:
        text = (
            f"in {counted(judged.n_self_top, 'topic')}, the id of the first document equals the topic id: the query"
            " may be a document of the collection"
        )
        add(
            "self-first",
            f"{text}. The option exclude_self removes documents whose id is the topic id",
            judged.n_self_top,
        )
    if judged.ranked:
        constant = (judged.tie_first == 1) & (judged.tie_last >= judged.returned[judged.topic]) & (judged.tie_last > 1)
        if topic_count := len(distinct(judged.topic[constant])):
            text = f"in {counted(topic_count, 'topic')}, all documents have the same score, so they are ordered by id"
            add("constant-scores", text, topic_count)
        if _scores_are_ranks(judged):
            text = (
                "the scores of each topic are the integers from 1 to n: if score 1 is the best, the scores are ranks,"
                " and the documents are in reverse order"
            )
            add("ranks-as-scores", text)
    return notes


def _returned_share(judged: Judged) -> float:
    """Return the share of judged documents that were returned, of those that the lengths of the lists allow."""
    judged_count = judged.sum_labels(np.ones(len(judged.label_topic), dtype=np.bool_))
    return len(judged.topic) / float(np.minimum(judged_count, judged.returned).sum())


def _scores_are_ranks(judged: Judged) -> bool:
    """Return whether every score is a rank counted from the last document, as if ranks were given as scores."""
    returned = judged.returned[judged.topic]
    return bool((returned >= _MIN_DOCS).all() and (judged.score == returned - judged.rank + 1).all())


def list_notes(lists: Sequence[Judged], policies: Policies, measures: Sequence[Measure]) -> tuple[Note, ...]:
    """Return notes on all runs together."""
    return _notes(
        {
            "different-topics": _topic_note(lists, policies.topics),
            "few-topics": few_topics_note(min(len(judged.over(policies.topics)) for judged in lists)),
            "ties": _tie_note(lists, policies, measures),
            "judged-share-differs": _share_note(lists),
        }
    )


def few_topics_note(topics: int) -> str:
    """Return the text on too few topics; empty if two runs can be compared, or there is one topic."""
    if topics < 2 or topics >= TESTABLE:
        return ""
    return (
        f"{topics} topics are weak evidence for other topics: with fewer than {TESTABLE}, no difference between runs"
        " can reach p = 0.05, and intervals depend on the bounds of a measure as much as on its scores"
    )


def sample_notes(sampled: Mapping[str, Sequence[tuple[Measure, SampledTopics]]], seed: int) -> tuple[Note, ...]:
    """Return notes on means over a sample of orders of tied documents, for each run."""
    notes: list[Note] = []
    for run, samples in sampled.items():
        topics, error = (max(getattr(sample, part) for _, sample in samples) for part in ("n", "error"))
        text = (
            "there are too many orders of tied documents; the mean over a sample of orders is used for"
            f" {name_measures([measure for measure, _ in samples])} in up to {topics} topics"
            f" (seed {seed}, standard error of the score of a topic at most {error:.2g})"
        )
        notes.append(Note("sampled-orders", text, run, error))
    return tuple(notes)


def _topic_note(lists: Sequence[Judged], topics: TopicPolicy) -> str:
    """Return a warning if the means of runs are over different topics."""
    if topics == "qrels" or len({(judged.present.tobytes(), judged.extra) for judged in lists}) == 1:
        return ""
    counts = first_few([f"{judged.run.name} {len(judged.over(topics))}" for judged in lists])
    return f"the means are over different topics and cannot be compared; number of topics: {counts}"


def _tie_note(lists: Sequence[Judged], policies: Policies, measures: Sequence[Measure]) -> str:
    """Return the text on the share of tied documents in each run, and how much their order could change a number."""
    shares = {
        judged.run.name: float(np.mean(judged.tie_last > judged.tie_first))
        for judged in lists
        if judged.ranked and len(judged.topic)
    }
    tied = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])
    if not tied:
        return ""
    names = first_few([f"{name} {percent(shares[name])}" for name in tied])
    most_tied = [judged.over(policies.topics) for judged in lists if judged.run.name in tied[:_MAX_TIE_CHECKS]]
    effect = "" if policies.ties in {"expected", "bounds"} else _tie_effect(most_tied, measures)
    order = _TIE_ORDER_TEXTS[policies.ties]
    return f"ties among the judged documents{order}; share of judged documents with a tie: {names}{effect}"


def _tie_effect(lists: Sequence[Judged], measures: Sequence[Measure]) -> str:
    """Return the text on the number that the order of ties could change most, among measures with a fast range."""
    fast = [m for m in measures if m.properties.better_first and not getattr(m, "judged_only", False)][:_MAX_TIE_CHECKS]
    if not fast or any(judged.ranking.depth is not None for judged in lists):
        return ""
    from judged.scoring.uncertainty.ties import tie_range

    widths: list[tuple[float, str]] = []
    for judged in lists:
        for measure in fast:
            ranges = tie_range(judged, measure)
            kind = measure.entry.aggregate
            low, high = (aggregate(kind, part[~np.isnan(part)]) for part in (ranges.low, ranges.high))
            text = f"{measure} of {judged.run.name} is between {decimal(low, 3)} and {decimal(high, 3)}"
            widths.append((high - low, text))
    width, widest = max(widths)
    if width < _VISIBLE_WIDTH:
        return "; no order of tied documents changes a score by 0.001 or more"
    return f"; depending on the order of tied documents, {widest} (--ties bounds)"


def _share_note(lists: Sequence[Judged]) -> str:
    """Return a warning if the first documents of the runs are judged to different degrees."""
    shares = {judged.run.name: _judged_share(judged) for judged in lists if judged.ranked}
    if len(shares) < 2 or max(shares.values()) - min(shares.values()) < _SHARE_DIFFERENCE:
        return ""
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    return (
        f"the share of judged documents differs between runs: {percent(shares[most])} of the first {_SHARE_DEPTH}"
        f" documents for {most}, but only {percent(shares[least])} for {least}; unjudged documents count as not"
        " relevant"
    )


def unjudged_notes(lists: Sequence[Judged]) -> tuple[Note, ...]:
    """Return a note on runs with many unjudged first documents, for results that do not show this share."""
    shares = {judged.run.name: 1 - _judged_share(judged) for judged in lists if judged.ranked and judged.returned.any()}
    many = sorted((name for name in shares if shares[name] >= _MAX_UNJUDGED), key=lambda name: -shares[name])
    if not many:
        return ()
    names = first_few([f"{name} {percent(shares[name])}" for name in many])
    text = (
        f"many of the first {_SHARE_DEPTH} documents are not judged and count as not relevant; share of unjudged"
        f" documents: {names}"
    )
    return (Note("unjudged", text),)


def _judged_share(judged: Judged) -> float:
    returned = int(np.minimum(judged.returned, _SHARE_DEPTH).sum())
    return np.count_nonzero(judged.rank <= _SHARE_DEPTH) / returned if returned else 0.0


def _level_note(positive: Floats, measures: Sequence[Measure]) -> str:
    """Return the text on grades that are not distinguished because a level has its default."""
    relevant = [grade for grade in positive.tolist() if grade >= 1]
    with_default = [m for m in measures if getattr(m, "rel", None) == 1 and m.entry.family != "count"]
    binary = [measure for measure in with_default if not measure.properties.graded]
    if not binary or len(relevant) < 2:
        return ""
    levels = first_few([f"{grade:g}" for grade in relevant])
    example = binary[0].replace(rel=relevant[1])
    effect = (
        f"grades {levels} all count as relevant; to change this, set the lowest relevant grade with rel=, for example"
        f" {example}"
    )
    return f"{name_measures(binary)}: {effect}"


def returned_docs(judged: Judged) -> Strings:
    """Return the ids of all returned documents; empty if the run cannot be read again."""
    run = judged.run  # it has no rows after it was judged
    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        return pc.unique((Run.scan(run.where) if files.exists(run.where) else run).table["doc_id"])
    return pa.array([], pa.string())
