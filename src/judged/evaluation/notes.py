"""What a reader of the numbers should know: the warnings that `evaluate` attaches to its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data import Qrels
    from judged.judging import Judged
    from judged.measures import Measure

_SHOWN = 5
_HUGE = 100.0
_SHARE_DEPTH, _SHARE_GAP = 10, 0.1


def qrels_notes(qrels: Qrels, measures: Sequence[Measure], *, level_chosen: bool) -> tuple[str, ...]:
    """Say what about the judgments changes how these measures are to be read."""
    grades = np.unique(qrels.index.grade)
    positive = grades[grades > 0]
    notes = [_level_note(positive, measures)] if len(positive) > 1 and not level_chosen else []
    if len(positive) == 1 and (graded := [str(m) for m in measures if m.entry.properties.graded]):
        notes.append(
            f"{_some(graded)}: all relevant documents have grade {positive[0]:g}, so grades make no difference"
        )
    if len(positive) and positive[-1] > _HUGE:
        notes.append(f"grades go up to {positive[-1]:g}; with gain=exp2 one such document outweighs all others")
    if len(qrels) > len(qrels.index.topic):
        several = len(qrels) - len(qrels.index.topic)
        notes.append(f"{several} judgments repeat a pair under another iteration; the highest grade of a pair counts")
    positive_topics = np.unique(qrels.index.topic[qrels.index.grade > 0])
    if barren := len(qrels.topics) - len(positive_topics):
        names = [qrels.topics[code] for code in np.setdiff1d(np.arange(len(qrels.topics)), positive_topics).tolist()]
        notes.append(f"{barren} of {len(qrels.topics)} topics have no relevant document and score 0: {_some(names)}")
    return tuple(note for note in notes if note)


def run_notes(judged: Judged, missing: Sequence[str]) -> tuple[str, ...]:
    """Say what about this run changes how its numbers are to be read."""
    notes: list[str] = []
    if missing:
        notes.append(f"nothing returned for {len(missing)} of {len(judged)} topics; they score 0: {_some(missing)}")
    if judged.extra:
        notes.append(f"{len(judged.extra)} topics are not in the qrels and are left out: {_some(judged.extra)}")
    if not len(judged.topic):
        notes.append("no returned document is judged; do document ids match? See 'judged check'")
    elif judged.ranked:
        constant = (judged.tie_first == 1) & (judged.tie_last >= judged.returned[judged.topic]) & (judged.tie_last > 1)
        if topics := len(np.unique(judged.topic[constant])):
            notes.append(f"in {topics} topics every document has the same score: their order is that of the ids")
    return tuple(notes)


def list_notes(lists: Sequence[Judged]) -> tuple[str, ...]:
    """Say what about the runs together changes how their numbers are to be read."""
    return tuple(note for note in (_tie_note(lists), _share_note(lists)) if note)


def _tie_note(lists: Sequence[Judged]) -> str:
    """Say how much of each run is tied: there the document ids decide."""
    shares = {
        one.run.name: float(np.mean(one.tie_last > one.tie_first)) for one in lists if one.ranked and len(one.topic)
    }
    tied = sorted((name for name in shares if shares[name] > 0), key=lambda name: -shares[name])
    if not tied:
        return ""
    some = _some([f"{name} {_percent(shares[name])}" for name in tied])
    return f"ties among the judged documents, put in order by document id: {some}"


def _share_note(lists: Sequence[Judged]) -> str:
    """Warn when the first pages of the compared runs are judged to different degrees."""
    shares = {judged.run.name: _judged_share(judged) for judged in lists if judged.ranked}
    if len(shares) < 2 or max(shares.values()) - min(shares.values()) < _SHARE_GAP:
        return ""
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    return (
        f"the runs are judged to different degrees: {shares[most]:.0%} of the first {_SHARE_DEPTH} of {most},"
        f" {shares[least]:.0%} of {least}; unjudged documents count as not relevant"
    )


def _percent(share: float) -> str:
    return "under 1%" if share < 0.005 else f"{share:.0%}"


def _judged_share(judged: Judged) -> float:
    shown = int(np.minimum(judged.returned, _SHARE_DEPTH).sum())
    return np.count_nonzero(judged.rank <= _SHARE_DEPTH) / shown if shown else 0.0


def _level_note(positive: np.ndarray, measures: Sequence[Measure]) -> str:
    binary = [str(m) for m in measures if "rel" in m.__dataclass_fields__ and m.rel == 1 and m.entry.family != "count"]  # type: ignore[attr-defined]
    if not binary:
        return ""
    levels = ", ".join(f"{grade:g}" for grade in positive)
    example = _with_level(binary[0], positive[1])
    return f"{_some(binary)}: grades {levels} all count as relevant; choose a level with rel=, say {example}"


def _with_level(name: str, grade: float) -> str:
    head, at, cutoff = name.partition("@")
    return f"{head[:-1]},rel={grade:g}){at}{cutoff}" if head.endswith(")") else f"{head}(rel={grade:g}){at}{cutoff}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f", ... ({len(names)} in all)" if len(names) > _SHOWN else "")
