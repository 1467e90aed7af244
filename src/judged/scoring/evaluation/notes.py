"""What a reader of the numbers should know: the warnings that `evaluate` attaches to its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.data.compute import distinct
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted, decimal, percent
from judged.scoring.measures.aggregates import aggregate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from judged.data.qrels import Origin, Qrels
    from judged.results.blocks import Severity
    from judged.results.types import Floats
    from judged.scoring.evaluation.dialects import Dialect
    from judged.scoring.evaluation.facts import Policies
    from judged.scoring.evaluation.summary import Sampled
    from judged.scoring.judging import Judged, TopicPolicy
    from judged.scoring.measures.base import Measure

TESTABLE = 6
"""Topics from which a paired randomisation test can reach p = 0.05: the most extreme 2 of 2^n signs."""
_HUGE = 100.0
_SHARE_DEPTH, _SHARE_GAP = 10, 0.1
_UNJUDGED = 0.3  # of the first documents
_FOREIGN = 0.1
_LOOKED_AT = 10  # runs, and measures, whose ties are tried out
_SEEN = 0.001
_ORDERED = {
    "docid": ", put in order by document id",
    "docid-rising": ", put in order by document id, rising",
    "stable": ", left as the run lists them",
    "rank": "",
    "expected": ", averaged over all their orders",
    "bounds": "",
}
_SERIES = 5  # cutoffs of one measure: more are named by a letter
_SELVES = 3  # topics: fewer documents may have the id of their topic by chance
_MANY = 10  # documents: in shorter lists such scores may be chance, or typed by hand


def dialect_notes(rules: Dialect, given: Qrels, read: Qrels) -> tuple[Note, ...]:
    """Say where a dialect reads grades as other numbers."""
    changed = int(np.count_nonzero(given.grades != read.grades)) if read is not given else 0
    text = f"{rules.name}: {rules.regrades}; this changes {changed} of {len(given)} judgments"
    return (Note("regraded", text),) if changed else ()


def self_notes(qrels: Qrels, chosen: Policies) -> tuple[Note, ...]:
    """Warn of relevant documents that cannot be found, since documents with the id of their topic are left out."""
    if not chosen.exclude_self:
        return ()
    index = qrels.index
    row = index.rows_of(np.arange(len(index.topics)), index.topic_ids)
    own = [index.topics[code] for code in np.flatnonzero((row >= 0) & (index.grade[row] > 0)).tolist()]
    text = f"in {counted(len(own), 'topic')} the document with the topic's own id is relevant, and is left out of runs"
    return (Note("relevant-self-left-out", f"{text}: {first_few(own)}"),) if own else ()


def qrels_notes(qrels: Qrels, measures: Sequence[Measure], chosen: Collection[Measure]) -> tuple[Note, ...]:
    """Say what about the judgments changes how these measures are to be read; of some the level was chosen."""
    grades = distinct(qrels.index.grade)
    positive = grades[grades > 0]
    said = {"levels-alike": _level_note(positive, [measure for measure in measures if measure not in chosen])}
    if len(positive) == 1 and (graded := [m for m in measures if m.properties.graded]):
        said["one-grade"] = (
            f"{named(graded)}: all relevant documents have grade {positive[0]:g}, so grades make no difference"
        )
    if len(positive) and positive[-1] > _HUGE:
        said["huge-grades"] = f"grades go up to {positive[-1]:g}; with gain=exp2 one such document outweighs all others"
    said["several-labels"] = _label_note(qrels, measures)
    fractions = int(np.count_nonzero((qrels.grades > 0) & (qrels.grades < 1)))
    binary = [m for m in measures if m not in chosen and getattr(m, "rel", None) == 1]
    if fractions and len(positive) and positive[-1] >= 1 and binary:
        said["grades-below-1"] = (
            f"{named(binary)}: {counted(fractions, 'judgment')} with a grade between 0 and 1"
            f" count as not relevant; choose a level with rel=, say {binary[0].replace(rel=positive[0])}"
        )
    return (*origin_notes(qrels.origin), *_notes(said), *_barren_notes(qrels, measures))


def origin_notes(origin: Origin | None) -> tuple[Note, ...]:
    """Say where judgments do not stand for what people wanted and said."""
    if origin is None:
        return ()
    by_kind = {"model": (origin.model, "language models"), "click": (origin.click, "clicks")}
    every = origin.human + origin.model + origin.click
    said = {
        f"{kind}-judgments": f"the qrels were made of {counted(every, 'label')}, {part:,} by {whose}, not people"
        for kind, (part, whose) in by_kind.items()
        if part
    }
    if origin.synthetic:
        said["synthetic-topics"] = (
            f"{counted(origin.synthetic, 'topic was', 'topics were')} made from documents: nobody asked them"
        )
    return _notes(said)


def level_notes(measures: Sequence[Measure], rel: float | None) -> tuple[Note, ...]:
    """Say which measures a level of relevance that was chosen for the call does not change."""
    without = [measure for measure in measures if not hasattr(measure, "rel")]
    if rel is None or not without:
        return ()
    return (Note("no-level", f"{named(without)}: no level of relevance to choose, so rel={rel:g} changes nothing"),)


def named(measures: Iterable[Measure]) -> str:
    """Name measures, a long series of one of them by a letter.

    >>> from judged.scoring.measures import parse_many
    >>> named(parse_many("P@1,2")), named([*parse_many("AP"), *parse_many("nDCG@1..100")])
    ('P@1, P@2', 'AP, nDCG@k')
    """
    series: dict[str, list[str]] = {}
    for measure in measures:
        name = str(measure)
        stem, at, _ = ("", "", "") if measure.where else name.rpartition("@")
        letter = "c" if measure.entry.cutoff_name == "recall" else "k"
        series.setdefault(f"{stem}@{letter}" if at else name, []).append(name)
    return first_few(
        [name for short, names in series.items() for name in (names if len(names) <= _SERIES else [short])]
    )


def _notes(said: Mapping[str, str]) -> tuple[Note, ...]:
    return tuple(Note(rule, text) for rule, text in said.items() if text)


def _label_note(qrels: Qrels, measures: Sequence[Measure]) -> str:
    """Say what becomes of several labels of one pair, or that measures of subtopics and assessors find but one."""
    by_label = [m for m in measures if m.properties.uses_all_labels]
    highest = [m for m in measures if not m.properties.uses_all_labels]
    several = len(qrels) - len(qrels.index.topic)
    if several and highest:
        return f"{several} judgments repeat a pair under another iteration; the highest grade of a pair counts" + (
            f" for {named(highest)}" if by_label else ""
        )
    if by_label and len(qrels.aspects.names) == 1:
        return f"{named(by_label)}: the qrels name no subtopics, assessors or users: all judgments are one label"
    return ""


def _barren_notes(qrels: Qrels, measures: Sequence[Measure]) -> list[Note]:
    """Name the topics that have nothing at the level of some measure, and so score 0 whatever is returned."""
    by_level: dict[float, list[Measure]] = {}
    for measure in measures:
        if getattr(measure, "undefined", None) == 0.0:
            by_level.setdefault(getattr(measure, "rel", np.nextafter(0, 1)), []).append(measure)
    notes: list[Note] = []
    highest = float(qrels.index.grade.max())
    for level, asked in sorted(by_level.items()):
        kept = set(qrels.index.topic[qrels.index.grade >= level].tolist())
        barren = [topic for code, topic in enumerate(qrels.topics) if code not in kept]
        if not kept:
            choice = "; choose a level with rel=" if highest > 0 else ""
            reason = f"no grade reaches {level:g}" if level >= 1 else "no grade is high enough"
            text = f"{named(asked)}: 0 for every topic: {reason}, the highest is {highest:.15g}{choice}"
            notes.append(Note("no-relevant", text))
        elif barren:
            what = "no relevant document" if level <= 1 else f"no document of grade {level:g} or more"
            text = f"{named(asked)}: {len(barren)} of {len(qrels.topics)} topics have {what}: {first_few(barren)}"
            notes.append(Note("topics-without-relevant", text))
    return notes


def notes_of_runs(lists: Iterable[Judged], topics: TopicPolicy, left_out: Sequence[Measure] = ()) -> tuple[Note, ...]:
    """Say of each run what changes how its numbers are to be read; `left_out` do not count a topic that it lacks."""
    return tuple(note for judged in lists for note in _run_notes(judged, topics, left_out))


def _run_notes(judged: Judged, topics: TopicPolicy, left_out: Sequence[Measure]) -> list[Note]:
    notes: list[Note] = []
    missing = [judged.query_ids[topic] for topic in np.flatnonzero(judged.returned == 0).tolist()]

    def say(rule: str, text: str, weight: float = 0.0, severity: Severity = "warning") -> None:
        notes.append(Note(rule, text, judged.run.name, weight, severity))

    if missing:
        scored = "they score 0" if topics == "qrels" else "those that the run lacks do not count"
        scored += f", and do not count for {named(left_out)}" if left_out else ""
        text = f"nothing returned for {len(missing)} of {len(judged)} topics; {scored}: {first_few(missing)}"
        say("missing-topics", text, len(missing))
    if extra := [topic for topic in judged.extra if topic not in judged.qrels.left_out]:
        scored = "scored 0" if topics == "run" else "left out"
        text = f"no judgments for {counted(len(extra), 'topic')} of the run; {scored}: {first_few(extra)}"
        say("extra-topics", text, len(extra))
    if not len(judged.topic):
        text = (
            "nothing was measured: none of the returned documents is judged; does the run use"
            " the document ids of the qrels? See 'judged check'"
        )
        say("nothing-judged", text, severity="error")
        return notes
    if (share := _known_returned(judged)) < _FOREIGN:
        text = f"it returned {share:.1%} of the judged documents that it could have; do the ids mean the same?"
        say("few-judged", text, -share)
    if judged.self_first * 2 >= np.count_nonzero(judged.present) and judged.self_first >= _SELVES:
        text = f"the first document has the id of the topic in {counted(judged.self_first, 'topic')}: did these queries"
        say("self-first", f"{text} find themselves? exclude_self leaves such documents out", judged.self_first)
    if judged.ranked:
        constant = (judged.tie_first == 1) & (judged.tie_last >= judged.returned[judged.topic]) & (judged.tie_last > 1)
        if level := len(distinct(judged.topic[constant])):
            text = f"in {level} topics every document has the same score: their order is that of the ids"
            say("constant-scores", text, level)
        if _upside_down(judged):
            text = "the scores are the whole numbers from 1 to n: if 1 is the best, they are ranks, upside down"
            say("ranks-as-scores", text)
    return notes


def _known_returned(judged: Judged) -> float:
    """Give the share of the judged documents returned, among those for which there was room."""
    known = judged.sum_labels(np.ones(len(judged.label_topic), dtype=np.bool_))
    return len(judged.topic) / float(np.minimum(known, judged.returned).sum())


def _upside_down(judged: Judged) -> bool:
    """Whether every score is the number of documents from there down, as when ranks stand in for scores."""
    returned = judged.returned[judged.topic]
    return bool((returned >= _MANY).all() and (judged.score == returned - judged.rank + 1).all())


def list_notes(lists: Sequence[Judged], chosen: Policies, measures: Sequence[Measure]) -> tuple[Note, ...]:
    """Say what about the runs together changes how their numbers are to be read."""
    return _notes(
        {
            "different-topics": _topic_note(lists, chosen.topics),
            "few-topics": few_note(min(len(judged.over(chosen.topics)) for judged in lists)),
            "ties": _tie_note(lists, chosen, measures),
            "judged-unequally": _share_note(lists),
        }
    )


def few_note(topics: int) -> str:
    """Say what a mean over so few topics is worth; empty where two runs can be compared, or there is one topic."""
    if topics < 2 or topics >= TESTABLE:
        return ""
    return (
        f"{topics} topics say little about others like them: with fewer than {TESTABLE} no difference between runs can"
        " reach p = 0.05, and intervals rest on the bounds of a measure as much as on its scores"
    )


def sample_notes(sampled: Mapping[str, Sequence[tuple[Measure, Sampled]]], seed: int) -> tuple[Note, ...]:
    """Say which means over all orders of tied documents are those of a sample, run by run."""
    notes: list[Note] = []
    for run, samples in sampled.items():
        topics, error = (max(getattr(sample, part) for _, sample in samples) for part in ("n", "error"))
        text = (
            "there are too many orders of tied documents; the mean is that of a sample for"
            f" {named([measure for measure, _ in samples])} in up to {topics} topics"
            f" (seed {seed}, standard error of a topic at most {error:.2g})"
        )
        notes.append(Note("sampled-orders", text, run, error))
    return tuple(notes)


def _topic_note(lists: Sequence[Judged], topics: TopicPolicy) -> str:
    """Warn where the runs' means are over different topics."""
    if topics == "qrels" or len({(judged.present.tobytes(), judged.extra) for judged in lists}) == 1:
        return ""
    counts = first_few([f"{judged.run.name} {len(judged.over(topics))}" for judged in lists])
    return f"the means are over different topics and cannot be compared: {counts}"


def _tie_note(lists: Sequence[Judged], chosen: Policies, measures: Sequence[Measure]) -> str:
    """Say how much of each run is tied, and how far that could move a number: there the document ids decide."""
    shares = {
        judged.run.name: float(np.mean(judged.tie_last > judged.tie_first))
        for judged in lists
        if judged.ranked and len(judged.topic)
    }
    tied = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])
    if not tied:
        return ""
    named = first_few([f"{name} {percent(shares[name])}" for name in tied])
    most = [judged.over(chosen.topics) for judged in lists if judged.run.name in tied[:_LOOKED_AT]]
    effect = "" if chosen.ties in {"expected", "bounds"} else _tie_effect(most, measures)
    return f"ties among the judged documents{_ORDERED[chosen.ties]}: {named}{effect}"


def _tie_effect(lists: Sequence[Judged], measures: Sequence[Measure]) -> str:
    """Say which number the order of ties could move most, among those that are quickly found."""
    quick = [m for m in measures if m.properties.better_first and not getattr(m, "judged_only", False)][:_LOOKED_AT]
    if not quick or any(judged.ranking.depth is not None for judged in lists):
        return ""
    from judged.scoring.uncertainty.ties import tie_range

    widths: list[tuple[float, str]] = []
    for judged in lists:
        for measure in quick:
            ends = tie_range(judged, measure)
            low, high = (aggregate(measure.entry.aggregate, part[~np.isnan(part)]) for part in (ends.low, ends.high))
            widths.append(
                (high - low, f"{measure} of {judged.run.name} between {decimal(low, 3)} and {decimal(high, 3)}")
            )
    width, most = max(widths)
    if width < _SEEN:
        return "; their order moves no number by as much as 0.001"
    return f"; another order could put {most} (--ties bounds)"


def _share_note(lists: Sequence[Judged]) -> str:
    """Warn when the first pages of the compared runs are judged to different degrees."""
    shares = {judged.run.name: _judged_share(judged) for judged in lists if judged.ranked}
    if len(shares) < 2 or max(shares.values()) - min(shares.values()) < _SHARE_GAP:
        return ""
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    return (
        f"the runs are judged to different degrees: {percent(shares[most])} of the first {_SHARE_DEPTH} of {most},"
        f" {percent(shares[least])} of {least}; unjudged documents count as not relevant"
    )


def unjudged_notes(lists: Sequence[Judged]) -> tuple[Note, ...]:
    """Name the runs of which much of the first page is not judged, for results that do not show how much is."""
    shares = {judged.run.name: 1 - _judged_share(judged) for judged in lists if judged.ranked and judged.returned.any()}
    many = sorted((name for name in shares if shares[name] >= _UNJUDGED), key=lambda name: -shares[name])
    if not many:
        return ()
    named = first_few([f"{name} {percent(shares[name])}" for name in many])
    text = f"of the first {_SHARE_DEPTH} documents many are not judged, and count as not relevant: {named}"
    return (Note("unjudged", text),)


def _judged_share(judged: Judged) -> float:
    shown = int(np.minimum(judged.returned, _SHARE_DEPTH).sum())
    return np.count_nonzero(judged.rank <= _SHARE_DEPTH) / shown if shown else 0.0


def _level_note(positive: Floats, measures: Sequence[Measure]) -> str:
    """Say which grades count alike where a level was left at its default."""
    alike = [grade for grade in positive.tolist() if grade >= 1]
    binary = [m for m in measures if getattr(m, "rel", None) == 1 and m.entry.family != "count"]
    binary = [m for m in binary if not m.properties.graded]
    if not binary or len(alike) < 2:
        return ""
    levels = first_few([f"{grade:g}" for grade in alike])
    example = binary[0].replace(rel=alike[1])
    return f"{named(binary)}: grades {levels} all count as relevant; choose a level with rel=, say {example}"
